/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "sim/model/paths.h"
#include "sim/model/text.h"
#include "sim/model/write_request.h"

enum { SCRATCH_KEPT = 1 << 16 }; /* bytes */

/* The flags of createTTL. */
enum { TTL_FLAGS = 5, TTL_SEQUENTIAL_FLAGS = 6 };

static lk_bytes copy_bytes(lk_bytes b, lk_arena *memory)
{
  if (b.at == NULL)
    return b;
  char *copy = lk__arena_take(memory, 1, b.len + 1);

  if (b.len > 0)
    memcpy(copy, b.at, b.len);
  return lk_bytes_of(copy, b.len);
}

static lk_bytes copy_text(lk_bytes b, lk_arena *memory)
{
  return copy_bytes(sim_text_as_java(b, memory), memory);
}

static lk_vec copy_acl(lk_vec list, lk_arena *memory)
{
  const lk_acl *from = list.items;

  if (list.count == 0)
    return list;
  lk_acl *to = lk__arena_take(memory, list.count, sizeof *to);

  for (size_t i = 0; i < list.count; i++)
    to[i] = (lk_acl){from[i].perms, copy_text(from[i].scheme, memory),
                     copy_text(from[i].id, memory)};
  return lk__vec_of(to, list.count);
}

static void set_from_create(sim_operation *o, const struct lk_create_request *r,
                            lk_arena *memory)
{
  o->path = copy_text(r->path, memory);
  o->data = copy_bytes(r->data, memory);
  o->flags = r->flags;
  o->acl = copy_acl(r->acl, memory);
}

static void set_from_operation(sim_operation *o, const lk_operation *operation,
                               lk_arena *memory)
{
  o->op = operation->type;
  switch (operation->type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
    set_from_create(o, &operation->body.create, memory);
    break;
  case LK_OPCODE_CREATE_TTL:
    set_from_create(o, &operation->body.create_ttl.create, memory);
    o->ttl_ms = operation->body.create_ttl.ttl_ms;
    break;
  case LK_OPCODE_SET_DATA:
    o->path = copy_text(operation->body.set_data.path, memory);
    o->data = copy_bytes(operation->body.set_data.data, memory);
    o->version = operation->body.set_data.version;
    break;
  default: /* delete, check */
    o->path = copy_text(operation->body.path_version.path, memory);
    o->version = operation->body.path_version.version;
    break;
  }
}

static bool is_create(const lk_operation *operation)
{
  switch (operation->type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL: return true;
  default: return false;
  }
}

static int32_t create_flags(const lk_operation *operation)
{
  return operation->type == LK_OPCODE_CREATE_TTL
             ? operation->body.create_ttl.create.flags
             : operation->body.create.flags;
}

/* Servers check the flags of a createTTL later. */
static bool flags_are_valid(const lk_operation *operation)
{
  return !is_create(operation) || operation->type == LK_OPCODE_CREATE_TTL ||
         (create_flags(operation) >= 0 &&
          create_flags(operation) <= LK_CONTAINER);
}

/* In a multi, servers go by the flags of a create, and newer ones by its
 * opcode, too. */
static int32_t opcode_in_multi(const lk_operation *operation, bool newer)
{
  bool is_create_ttl = operation->type == LK_OPCODE_CREATE_TTL;

  if (!is_create(operation))
    return operation->type;
  switch (create_flags(operation)) {
  case LK_CONTAINER: return LK_OPCODE_CREATE_CONTAINER;
  case TTL_FLAGS:
  case TTL_SEQUENTIAL_FLAGS:
    return is_create_ttl ? LK_OPCODE_CREATE_TTL : SIM_OP_CREATE_NO_TTL;
  default: return newer && !is_create_ttl ? operation->type : LK_OPCODE_CREATE;
  }
}

static void read_multi(sim_write_request *request, lk_reader *in, bool newer,
                       lk_arena *memory, lk_arena *scratch)
{
  lk_reader ahead = *in; /* counts and checks the operations */
  lk_operation operation;

  while (lk__operation_decode(&ahead, LK_OPERATIONS_OF_REQUEST, scratch,
                              &operation)) {
    request->count++;
    if (!lk__opcode_info(operation.type)->in_multi ||
        (newer && !flags_are_valid(&operation)))
      lk__reader_fail(&ahead, LK_ERR_MARSHALLING);
  }
  if (ahead.err != 0) {
    lk__reader_fail(in, ahead.err);
    return;
  }
  request->operations =
      lk__arena_take(memory, request->count, sizeof *request->operations);
  for (size_t i = 0; i < request->count; i++) {
    lk__operation_decode(in, LK_OPERATIONS_OF_REQUEST, scratch, &operation);
    set_from_operation(&request->operations[i], &operation, memory);
    request->operations[i].op = opcode_in_multi(&operation, newer);
  }
}

static void read_set_acl(sim_operation *o, lk_reader *in, lk_arena *memory,
                         lk_arena *scratch)
{
  struct lk_set_acl_request r;

  if (lk__record_decode(&lk__set_acl_request_record, &r, in, scratch) != 0)
    return;
  o->op = LK_OPCODE_SET_ACL;
  o->path = copy_text(r.path, memory);
  o->version = r.version;
  o->acl = copy_acl(r.acl, memory);
}

/* The leader refuses every reconfig, so the request is not decoded further. */
static void read_reconfig(sim_operation *o, lk_reader *in)
{
  struct lk_reconfig_request r;

  o->op = LK_OPCODE_RECONFIG;
  if (lk__record_decode(&lk__reconfig_request_record, &r, in, NULL) == 0)
    o->path = lk_text("/zookeeper/config");
}

static void read_single(sim_write_request *request, lk_reader *in,
                        lk_arena *memory, lk_arena *scratch)
{
  request->count = 1;
  request->operations = lk__arena_take(memory, 1, sizeof *request->operations);
  if (request->op == LK_OPCODE_SET_ACL) {
    read_set_acl(request->operations, in, memory, scratch);
    return;
  }
  if (request->op == LK_OPCODE_RECONFIG) {
    read_reconfig(request->operations, in);
    return;
  }
  lk_operation operation = {.type = request->op};

  if (lk__record_decode(
          lk__operation_record(request->op, LK_OPERATIONS_OF_REQUEST),
          &operation.body, in, scratch) == 0)
    set_from_operation(request->operations, &operation, memory);
}

const sim_write_request *
sim_write_request_read(int64_t session, const sim_ids *ids, const char *chroot,
                       int32_t xid, int32_t op, lk_reader *body, bool newer,
                       lk_arena *memory, lk_arena *scratch)
{
  sim_write_request *request = lk__arena_take(memory, 1, sizeof *request);

  *request =
      (sim_write_request){.session = session, .xid = xid, .op = op, .ids = ids};
  if (op == LK_OPCODE_MULTI)
    read_multi(request, body, newer, memory, scratch);
  else if (op != LK_OPCODE_CLOSE_SESSION)
    read_single(request, body, memory, scratch);
  for (size_t i = 0; body->err == 0 && i < request->count; i++) {
    request->operations[i].path =
        sim_path_strip_chroot(chroot, request->operations[i].path);
    if (request->operations[i].path.at == NULL)
      lk__reader_fail(body, LK_ERR_MARSHALLING);
  }
  request->err = body->err == 0 ? 0 : LK_ERR_MARSHALLING;
  lk__arena_reset(scratch, SCRATCH_KEPT);
  return request;
}

const sim_write_request *sim_write_request_new(int64_t session, int32_t op,
                                               const sim_operation *operation,
                                               lk_arena *memory)
{
  sim_write_request *request = lk__arena_take(memory, 1, sizeof *request);

  *request = (sim_write_request){.session = session, .op = op};
  if (operation != NULL) {
    request->count = 1;
    request->operations =
        lk__arena_take(memory, 1, sizeof *request->operations);
    *request->operations = *operation;
    request->operations->op = op;
    request->operations->path = copy_bytes(operation->path, memory);
    request->operations->data = copy_bytes(operation->data, memory);
  }
  return request;
}
