/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"

#include "proto/wire/multi.h"
#include "proto/wire/path.h"

/* ---- opcodes and their properties ---------------------------------------- */

/* The flags of records.def. */
enum {
  WRITE = 1,
  LEADER = 2,
  READ_ONLY = 4,
  MULTI = 8,
  MULTI_READ = 16,
  RESULT = 32,
  OPERATIONS = 64,
  NEVER = 128
};

#define INFO(constant, op, label, in, out, flags) \
  {.number = (op),                                \
   .name = #label,                                \
   .request = &lk__##in##_record,                 \
   .reply = &lk__##out##_record,                  \
   .write = ((flags)&WRITE) != 0,                 \
   .leader = ((flags)&LEADER) != 0,               \
   .served_read_only = ((flags)&READ_ONLY) != 0,  \
   .in_multi = ((flags)&MULTI) != 0,              \
   .in_multi_read = ((flags)&MULTI_READ) != 0,    \
   .in_result = ((flags)&RESULT) != 0,            \
   .has_operations = ((flags)&OPERATIONS) != 0,   \
   .never_alone = ((flags)&NEVER) != 0},
const lk_opcode_info lk__opcodes[] = {LK_OPCODES(INFO)};
const size_t lk__nopcodes = sizeof lk__opcodes / sizeof lk__opcodes[0];

/* The index of each opcode in lk__opcodes. */
enum {
#define INDEX(constant, op, label, in, out, flags) AT_##constant,
  LK_OPCODES(INDEX)
};

/* The smallest opcode. A smaller one would have a negative index in `places`,
   which does not compile. */
enum { FIRST = LK_OPCODE_CLOSE_SESSION };

/* For each opcode, from FIRST on: its index in lk__opcodes plus 1; 0: there is
   no such opcode. */
static const unsigned char places[] = {
#define PLACE(constant, op, label, in, out, flags) \
  [(op)-FIRST] = AT_##constant + 1,
    LK_OPCODES(PLACE)};

const lk_opcode_info *lk__opcode_info(int32_t op)
{
  uint32_t at = (uint32_t)op - (uint32_t)FIRST;

  if (at >= sizeof places || places[at] == 0)
    return NULL;
  return &lk__opcodes[places[at] - 1];
}

/* ---- kinds of nodes ------------------------------------------------------ */

bool lk__create_flags_valid(int flags)
{
  bool no_other_flag = (flags & ~(LK_EPHEMERAL | LK_SEQUENTIAL)) == 0;

  return no_other_flag || flags == LK_CONTAINER;
}

bool lk__create_ttl_valid(int flags, int64_t ttl_ms)
{
  return (flags == LK_PERSISTENT || flags == LK_SEQUENTIAL) && ttl_ms > 0 &&
         ttl_ms <= LK_TTL_MAX_MS;
}

int32_t lk__create_opcode(int32_t op, int flags)
{
  return flags == LK_CONTAINER ? LK_OPCODE_CREATE_CONTAINER : op;
}

/* ---- the body of a reply ------------------------------------------------- */

/* Replace the path in the reply to a create by a C string without the chroot:
 * callbacks get no length. Fails if the path is absent or contains a NUL, or if
 * there is no memory. */
static int take_created_path(const lk_reply_context *context, lk_bytes *path)
{
  if (path->at == NULL)
    return LK_ERR_PROTOCOL;
  lk_bytes rest = lk__path_strip(context->chroot, context->chroot_len, *path);

  if (memchr(rest.at, '\0', rest.len) != NULL)
    return LK_ERR_PROTOCOL;
  char *copy = lk__arena_take_raw(context->arena, rest.len + 1, 1);

  if (copy == NULL)
    return LK_ERR_NO_MEMORY;
  memcpy(copy, rest.at, rest.len);
  copy[rest.len] = '\0';
  path->at = copy;
  return 0;
}

/* The reply to a create has the zxid of the create or a later one. */
static bool was_created_before(const lk_stat *stat, int64_t zxid)
{
  return stat->czxid > 0 && stat->czxid <= zxid;
}

/* Only "/" and the nodes of ZooKeeper itself were created by no transaction.
 * None of them is ephemeral. So a lock's own node has a fencing token. */
static int check_stat(const lk_stat *stat)
{
  bool is_of_server = stat->czxid == 0 && stat->ephemeral_owner == 0;

  return stat->czxid > 0 || is_of_server ? 0 : LK_ERR_PROTOCOL;
}

/* Remove the chroot from each path of a list. */
static int strip_paths(const lk_reply_context *context, lk_vec *paths)
{
  lk_bytes *items = paths->items;

  for (size_t i = 0; i < paths->count; i++) {
    if (items[i].at == NULL)
      return LK_ERR_PROTOCOL;
    items[i] = lk__path_strip(context->chroot, context->chroot_len, items[i]);
  }
  return 0;
}

int lk__reply_body_decode(const lk_reply_context *context, lk_reader *in,
                          lk_reply_body *out)
{
  int err = 0;

  if (context->op == LK_OPCODE_MULTI)
    return lk__multi_decode(in, context->operations, context->chroot,
                            context->arena, &out->multi.results,
                            &out->multi.outcome);
  if (context->op == LK_OPCODE_MULTI_READ)
    return lk__multi_read_decode(in, context->operations, context->arena,
                                 &out->reads);
  const lk_opcode_info *info = lk__opcode_info(context->op);

  if (info == NULL)
    return LK_ERR_PROTOCOL; /* the client sends no such request */
  /* The struct of this record is a member of the union. */
  err = lk__record_decode(info->reply, out, in, context->arena);
  if (err != 0)
    return err;
  switch (context->op) {
  case LK_OPCODE_CREATE: return take_created_path(context, &out->path.path);
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
    return was_created_before(&out->path_stat.stat, context->zxid)
               ? take_created_path(context, &out->path_stat.path)
               : LK_ERR_PROTOCOL;
  case LK_OPCODE_EXISTS:
  case LK_OPCODE_SET_DATA: return check_stat(&out->stat.stat);
  case LK_OPCODE_GET_DATA: return check_stat(&out->data.stat);
  case LK_OPCODE_GET_CHILDREN2: return check_stat(&out->names_stat.stat);
  case LK_OPCODE_GET_EPHEMERALS: return strip_paths(context, &out->paths.paths);
  default: return 0;
  }
}
