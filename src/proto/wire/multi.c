/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"

#include "proto/wire/create_mode.h"
#include "proto/wire/path.h"

/* ---- operations ------------------------------------------------------- */

const lk_record *lk__operation_record(int32_t type, bool result)
{
  const lk_opcode_info *info = lk__opcode_info(type);

  if (info == NULL)
    return NULL;
  if (result)
    return info->result ? info->reply : NULL;
  return info->multi || info->multi_read ? info->request : NULL;
}

bool lk__operation_decode(lk_reader *in, bool result, lk_arena *arena,
                          lk_operation *out)
{
  struct lk_multi_header head;
  const lk_record *rec;

  if (lk__record_decode(&lk__multi_header_record, &head, in, arena) != 0 ||
      head.done)
    return false;
  rec = lk__operation_record(head.type, result);
  if (rec == NULL) {
    lk__reader_fail(in, LK_ERR_MARSHALLING);
    return false;
  }
  out->type = head.type;
  out->err = head.err;
  return lk__record_decode(rec, &out->body, in, arena) == 0;
}

void lk__operation_encode(const lk_operation *part, bool result, lk_writer *out)
{
  struct lk_multi_header head = {part->type, false, part->err};
  const lk_record *rec = lk__operation_record(part->type, result);

  if (rec == NULL) {
    out->err = LK_ERR_BAD_ARGUMENT;
    return;
  }
  lk__record_encode(&lk__multi_header_record, &head, out);
  lk__record_encode(rec, &part->body, out);
}

void lk__operation_encode_end(lk_writer *out)
{
  static const struct lk_multi_header end = {-1, true, -1};

  lk__record_encode(&lk__multi_header_record, &end, out);
}

/* ---- requests --------------------------------------------------------- */

/* Set the body of a request except its path. false: the type is unknown or the
 * TTL is invalid. */
static bool fill_body(const lk_op *op, int32_t type, lk_operation *part)
{
  const lk_acls *acl = op->acl == NULL ? &lk_acl_open : op->acl;
  struct lk_create_request create = {.data = op->data,
                                     .acl =
                                         lk__vec_of(acl->entries, acl->count),
                                     .flags = op->flags};

  switch (type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER: part->body.create = create; return true;
  case LK_OPCODE_CREATE_TTL:
    create.flags = lk__create_ttl_flags(op->flags);
    part->body.create_ttl.create = create;
    part->body.create_ttl.ttl_ms = op->ttl_ms;
    /* The caller has checked this, too. It is checked again since an invalid
     * TTL can make a server exit. */
    return lk__create_ttl_valid(op->flags, op->ttl_ms);
  case LK_OPCODE_SET_DATA:
    part->body.set_data.data = op->data;
    part->body.set_data.version = op->version;
    return true;
  case LK_OPCODE_DELETE:
  case LK_OPCODE_CHECK:
    part->body.path_version.version = op->version;
    return true;
  default: return false;
  }
}

static void encode_op(lk_writer *out, const lk_op *op, const char *chroot)
{
  bool creates = op->type == LK_OP_CREATE || op->type == LK_OP_CREATE2;
  struct lk_multi_header head = {
      creates ? lk__create_opcode(op->type, op->flags) : op->type, false, -1};
  lk_operation part;

  if (!fill_body(op, head.type, &part)) {
    out->err = LK_ERR_BAD_ARGUMENT;
    return;
  }
  lk__record_encode(&lk__multi_header_record, &head, out);
  lk__path_encode(
      lk__operation_record(head.type, false), &part.body, chroot,
      lk__path_rest(chroot, op->path, lk__create_sequential(op->flags)), out);
}

void lk__multi_encode(lk_writer *out, const lk_op *ops, size_t count,
                      const char *chroot)
{
  for (size_t i = 0; i < count && out->err == 0; i++)
    encode_op(out, &ops[i], chroot);
  lk__operation_encode_end(out);
}

void lk__multi_read_encode(lk_writer *out, const lk_read *reads, size_t count,
                           const char *chroot)
{
  static const struct lk_path_watch_request unwatched;

  for (size_t i = 0; i < count; i++) {
    struct lk_multi_header head = {reads[i].type, false, -1};

    lk__record_encode(&lk__multi_header_record, &head, out);
    lk__path_encode(&lk__path_watch_request_record, &unwatched, chroot,
                    lk__path_rest(chroot, reads[i].path, false), out);
  }
  lk__operation_encode_end(out);
}

/* ---- results ---------------------------------------------------------- */

/* A NUL-terminated copy of the path without its chroot; NULL: in->err is
 * set. */
static const char *copy_result_path(lk_reader *in, lk_bytes path,
                                    const char *chroot, lk_arena *arena)
{
  char *copy;

  if (path.at == NULL || memchr(path.at, '\0', path.len) != NULL) {
    lk__reader_fail(in, LK_ERR_MARSHALLING);
    return NULL;
  }
  path = lk__path_strip(chroot, strlen(chroot), path);
  copy = lk__arena_take(arena, path.len + 1, 1); /* with a NUL, as zeroed */
  if (copy == NULL)
    lk__reader_fail(in, LK_ERR_NO_MEMORY);
  else if (path.len > 0)
    memcpy(copy, path.at, path.len);
  return copy;
}

static const lk_stat *copy_result_stat(lk_reader *in, const lk_stat *stat,
                                       lk_arena *arena)
{
  lk_stat *copy = lk__arena_take(arena, 1, sizeof *copy);

  if (copy == NULL)
    lk__reader_fail(in, LK_ERR_NO_MEMORY);
  else
    *copy = *stat;
  return copy;
}

/* Convert a decoded result. `agrees`: its header's error fits its type. */
static void decode_result(lk_reader *in, const lk_operation *part,
                          const char *chroot, lk_arena *arena,
                          lk_op_result *out)
{
  bool agrees = part->err == 0;

  out->type = part->type;
  switch (part->type) {
  case LK_OPCODE_ERROR: /* 0 for the operations before the one that failed */
    out->err = part->body.code.err;
    agrees = part->err == out->err && lk__error_is_of_server(out->err);
    break;
  case LK_OPCODE_CREATE:
    out->path = copy_result_path(in, part->body.path.path, chroot, arena);
    break;
  case LK_OPCODE_CREATE2:
    out->path = copy_result_path(in, part->body.path_stat.path, chroot, arena);
    out->stat = copy_result_stat(in, &part->body.path_stat.stat, arena);
    break;
  case LK_OPCODE_SET_DATA:
    out->stat = copy_result_stat(in, &part->body.stat.stat, arena);
    break;
  case LK_OPCODE_DELETE:
  case LK_OPCODE_CHECK: break;
  default: agrees = false; /* a result of a multiRead */
  }
  if (!agrees)
    lk__reader_fail(in, LK_ERR_MARSHALLING);
}

/* The error of a multi is that of the operation that failed. The operations
 * behind it were not tried and have RUNTIME_INCONSISTENCY, which is returned
 * only if there is no other error. */
static int outcome_of(const lk_op_result *results, size_t count)
{
  int outcome = 0;

  for (size_t i = 0; i < count; i++) {
    if (results[i].err != 0 && results[i].err != LK_ERR_RUNTIME_INCONSISTENCY)
      return results[i].err;
    if (results[i].type == LK_OPCODE_ERROR)
      outcome = LK_ERR_RUNTIME_INCONSISTENCY;
  }
  return outcome;
}

/* A reply with more or fewer results than operations is refused. */
int lk__multi_decode(lk_reader *in, size_t asked, const char *chroot,
                     lk_arena *arena, lk_op_result **out, int *outcome)
{
  lk_op_result *results = lk__arena_take(arena, asked, sizeof *results);
  lk_operation part;
  size_t count = 0;

  if (results == NULL)
    lk__reader_fail(in, LK_ERR_NO_MEMORY);
  while (in->err == 0 && lk__operation_decode(in, true, arena, &part)) {
    if (count < asked)
      decode_result(in, &part, chroot, arena, &results[count++]);
    else
      lk__reader_fail(in, LK_ERR_MARSHALLING);
  }
  if (count < asked)
    lk__reader_fail(in, LK_ERR_MARSHALLING);
  *out = in->err == 0 ? results : NULL;
  *outcome = in->err == 0 ? outcome_of(results, count) : in->err;
  return in->err;
}

/* ---- results of reads --------------------------------------------------- */

/* The same for a result of a multiRead. Each read is executed even if another
 * one has failed, so an error is never 0 here. */
static void decode_read_result(lk_reader *in, const lk_operation *part,
                               lk_arena *arena, lk_read_result *out)
{
  bool agrees = part->err == 0;

  out->type = part->type;
  switch (part->type) {
  case LK_OPCODE_ERROR:
    out->err = part->body.code.err;
    agrees = part->err == out->err && out->err != 0 &&
             lk__error_is_of_server(out->err);
    break;
  case LK_OPCODE_GET_DATA:
    out->data = part->body.data.data;
    out->stat = copy_result_stat(in, &part->body.data.stat, arena);
    break;
  case LK_OPCODE_GET_CHILDREN:
    out->names = part->body.names.names.items;
    out->count = part->body.names.names.count;
    break;
  default: agrees = false; /* a result of a multi */
  }
  if (!agrees)
    lk__reader_fail(in, LK_ERR_MARSHALLING);
}

int lk__multi_read_decode(lk_reader *in, size_t asked, lk_arena *arena,
                          lk_read_result **out)
{
  lk_read_result *results = lk__arena_take(arena, asked, sizeof *results);
  lk_operation part;
  size_t count = 0;

  if (results == NULL)
    lk__reader_fail(in, LK_ERR_NO_MEMORY);
  while (in->err == 0 && lk__operation_decode(in, true, arena, &part)) {
    if (count < asked)
      decode_read_result(in, &part, arena, &results[count++]);
    else
      lk__reader_fail(in, LK_ERR_MARSHALLING);
  }
  if (count < asked)
    lk__reader_fail(in, LK_ERR_MARSHALLING);
  *out = in->err == 0 ? results : NULL;
  return in->err;
}
