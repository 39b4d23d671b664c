/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "sim/model/paths.h"
#include "sim/model/text.h"
#include "sim/model/write_request.h"

enum { MOST_SCRATCH = 1 << 16 };

static lk_bytes keep(lk_bytes b, lk_arena *memory)
{
  if (b.at == NULL)
    return b;
  char *copy = lk__arena_take(memory, 1, b.len + 1);

  if (b.len > 0)
    memcpy(copy, b.at, b.len);
  return lk_bytes_of(copy, b.len);
}

static lk_bytes keep_text(lk_bytes b, lk_arena *memory)
{
  return keep(sim_text(b, memory), memory);
}

static lk_vec keep_acl(lk_vec list, lk_arena *memory)
{
  const lk_acl *from = list.items;

  if (list.count == 0)
    return list;
  lk_acl *to = lk__arena_take(memory, list.count, sizeof *to);

  for (size_t i = 0; i < list.count; i++)
    to[i] = (lk_acl){from[i].perms, keep_text(from[i].scheme, memory),
                     keep_text(from[i].id, memory)};
  return lk__vec_of(to, list.count);
}

static void from_create(sim_operation *w, const struct lk_create_request *r,
                        lk_arena *memory)
{
  w->path = keep_text(r->path, memory);
  w->data = keep(r->data, memory);
  w->flags = r->flags;
  w->acl = keep_acl(r->acl, memory);
}

static void from_part(sim_operation *w, const lk_operation *p, lk_arena *memory)
{
  w->op = p->type;
  switch (p->type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
    from_create(w, &p->body.create, memory);
    break;
  case LK_OPCODE_CREATE_TTL:
    from_create(w, &p->body.create_ttl.create, memory);
    w->ttl_ms = p->body.create_ttl.ttl_ms;
    break;
  case LK_OPCODE_SET_DATA:
    w->path = keep_text(p->body.set_data.path, memory);
    w->data = keep(p->body.set_data.data, memory);
    w->version = p->body.set_data.version;
    break;
  default: /* delete, check */
    w->path = keep_text(p->body.path_version.path, memory);
    w->version = p->body.path_version.version;
    break;
  }
}

/* In a multi of 3.8 nothing but the flags says what is created. */
static int32_t op_of_part(const lk_operation *p)
{
  bool ttl = p->type == LK_OPCODE_CREATE_TTL;

  switch (p->type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL: break;
  default: return p->type;
  }
  switch (ttl ? p->body.create_ttl.create.flags : p->body.create.flags) {
  case 4: return LK_OPCODE_CREATE_CONTAINER;
  case 5:
  case 6: return ttl ? LK_OPCODE_CREATE_TTL : SIM_OP_CREATE_NO_TTL;
  default: return LK_OPCODE_CREATE;
  }
}

static void read_parts(sim_write_request *a, lk_reader *in, lk_arena *memory,
                       lk_arena *scratch)
{
  lk_reader again = *in;
  lk_operation part;

  while (lk__operation_decode(&again, false, scratch, &part)) {
    a->count++;
    if (!lk__opcode_info(part.type)->multi)
      lk__reader_fail(&again, LK_ERR_MARSHALLING);
  }
  if (again.err != 0) {
    lk__reader_fail(in, again.err);
    return;
  }
  a->wants = lk__arena_take(memory, a->count, sizeof *a->wants);
  for (size_t i = 0; i < a->count; i++) {
    lk__operation_decode(in, false, scratch, &part);
    from_part(&a->wants[i], &part, memory);
    a->wants[i].op = op_of_part(&part);
  }
}

static void read_set_acl(sim_operation *w, lk_reader *in, lk_arena *memory,
                         lk_arena *scratch)
{
  struct lk_set_acl_request r;

  if (lk__record_decode(&lk__set_acl_request_record, &r, in, scratch) != 0)
    return;
  w->op = LK_OPCODE_SET_ACL;
  w->path = keep_text(r.path, memory);
  w->version = r.version;
  w->acl = keep_acl(r.acl, memory);
}

/* It goes no further than this. */
static void read_reconfig(sim_operation *w, lk_reader *in)
{
  struct lk_reconfig_request r;

  w->op = LK_OPCODE_RECONFIG;
  if (lk__record_decode(&lk__reconfig_request_record, &r, in, NULL) == 0)
    w->path = lk_text("/zookeeper/config");
}

static void read_one(sim_write_request *a, lk_reader *in, lk_arena *memory,
                     lk_arena *scratch)
{
  a->count = 1;
  a->wants = lk__arena_take(memory, 1, sizeof *a->wants);
  if (a->op == LK_OPCODE_SET_ACL) {
    read_set_acl(a->wants, in, memory, scratch);
    return;
  }
  if (a->op == LK_OPCODE_RECONFIG) {
    read_reconfig(a->wants, in);
    return;
  }
  lk_operation part = {.type = a->op};

  if (lk__record_decode(lk__operation_record(a->op, false), &part.body, in,
                        scratch) == 0)
    from_part(a->wants, &part, memory);
}

const sim_write_request *
sim_write_request_read(int64_t session, const sim_ids *who, const char *chroot,
                       int32_t xid, int32_t op, lk_reader *body,
                       lk_arena *memory, lk_arena *scratch)
{
  sim_write_request *a = lk__arena_take(memory, 1, sizeof *a);

  *a =
      (sim_write_request){.session = session, .xid = xid, .op = op, .who = who};
  if (op == LK_OPCODE_MULTI)
    read_parts(a, body, memory, scratch);
  else if (op != LK_OPCODE_CLOSE_SESSION)
    read_one(a, body, memory, scratch);
  for (size_t i = 0; body->err == 0 && i < a->count; i++) {
    a->wants[i].path = sim_path_from(chroot, a->wants[i].path);
    if (a->wants[i].path.at == NULL)
      lk__reader_fail(body, LK_ERR_MARSHALLING);
  }
  a->err = body->err == 0 ? 0 : LK_ERR_MARSHALLING;
  lk__arena_reset(scratch, MOST_SCRATCH);
  return a;
}

const sim_write_request *sim_write_request_new(int64_t session, int32_t op,
                                               const sim_operation *want,
                                               lk_arena *memory)
{
  sim_write_request *a = lk__arena_take(memory, 1, sizeof *a);

  *a = (sim_write_request){.session = session, .op = op};
  if (want != NULL) {
    a->count = 1;
    a->wants = lk__arena_take(memory, 1, sizeof *a->wants);
    *a->wants = *want;
    a->wants->op = op;
    a->wants->path = keep(want->path, memory);
    a->wants->data = keep(want->data, memory);
  }
  return a;
}
