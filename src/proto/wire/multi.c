/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"

#include "proto/wire/opcode.h"
#include "proto/wire/path.h"

/* ---- operations ------------------------------------------------------- */

const lk_record *lk__operation_record(int32_t type, lk_operation_list list)
{
  const lk_opcode_info *info = lk__opcode_info(type);

  if (info == NULL)
    return NULL;
  if (list == LK_OPERATIONS_OF_REPLY)
    return info->in_result ? info->reply : NULL;
  return info->in_multi || info->in_multi_read ? info->request : NULL;
}

bool lk__operation_decode(lk_reader *in, lk_operation_list list,
                          lk_arena *arena, lk_operation *out)
{
  struct lk_multi_header head;
  const lk_record *rec;

  if (lk__record_decode(&lk__multi_header_record, &head, in, arena) != 0 ||
      head.done)
    return false;
  rec = lk__operation_record(head.type, list);
  if (rec == NULL) {
    lk__reader_fail(in, LK_ERR_MARSHALLING);
    return false;
  }
  out->type = head.type;
  out->err = head.err;
  return lk__record_decode(rec, &out->body, in, arena) == 0;
}

void lk__operation_encode(const lk_operation *operation, lk_operation_list list,
                          lk_writer *out)
{
  struct lk_multi_header head = {
      .type = operation->type, .done = false, .err = operation->err};
  const lk_record *rec = lk__operation_record(operation->type, list);

  if (rec == NULL) {
    out->err = LK_ERR_BAD_ARGUMENT;
    return;
  }
  lk__record_encode(&lk__multi_header_record, &head, out);
  lk__record_encode(rec, &operation->body, out);
}

void lk__operation_encode_end(lk_writer *out)
{
  static const struct lk_multi_header end = {
      .type = -1, .done = true, .err = -1};

  lk__record_encode(&lk__multi_header_record, &end, out);
}

/* ---- requests --------------------------------------------------------- */

/* The error of a header is meaningless in a request, and is -1 there. */
static struct lk_multi_header request_header(int32_t opcode)
{
  return (struct lk_multi_header){.type = opcode, .done = false, .err = -1};
}

/* Set the body of a request except its path. false: the type is unknown or the
 * TTL is invalid. */
static bool fill_body(const lk_op *op, int32_t type, lk_operation *operation)
{
  const lk_acls *acl = op->acl == NULL ? lk_acl_open() : op->acl;
  struct lk_create_request create = {.data = op->data,
                                     .acl =
                                         lk__vec_of(acl->entries, acl->count),
                                     .flags = op->flags};

  switch (type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER: operation->body.create = create; return true;
  case LK_OPCODE_CREATE_TTL:
    create.flags = lk__create_ttl_flags(op->flags);
    operation->body.create_ttl.create = create;
    operation->body.create_ttl.ttl_ms = op->ttl_ms;
    /* The caller has checked this, too. It is checked again since an invalid
     * TTL can make a server exit. */
    return lk__create_ttl_valid(op->flags, op->ttl_ms);
  case LK_OPCODE_SET_DATA:
    operation->body.set_data.data = op->data;
    operation->body.set_data.version = op->version;
    return true;
  case LK_OPCODE_DELETE:
  case LK_OPCODE_CHECK:
    operation->body.path_version.version = op->version;
    return true;
  default: return false;
  }
}

static bool is_create(const lk_op *op)
{
  return op->type == LK_OP_CREATE || op->type == LK_OP_CREATE2 ||
         op->type == LK_OP_CREATE_TTL;
}

/* The constants LK_OP_... have the numbers of their opcodes. */
static int32_t opcode_of(const lk_op *op)
{
  bool may_create_container =
      op->type == LK_OP_CREATE || op->type == LK_OP_CREATE2;

  return may_create_container ? lk__create_opcode(op->type, op->flags)
                              : op->type;
}

static void encode_op(lk_writer *out, const lk_op *op, const char *chroot)
{
  struct lk_multi_header head = request_header(opcode_of(op));
  lk_path_use use =
      is_create(op) ? lk__create_path_use(op->flags) : LK_PATH_OF_NODE;
  lk_operation operation;

  if (!fill_body(op, head.type, &operation)) {
    out->err = LK_ERR_BAD_ARGUMENT;
    return;
  }
  lk__record_encode(&lk__multi_header_record, &head, out);
  lk__path_encode(lk__operation_record(head.type, LK_OPERATIONS_OF_REQUEST),
                  &operation.body, chroot, lk__path_rest(chroot, op->path, use),
                  out);
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
  static const struct lk_path_watch_request no_watch;

  for (size_t i = 0; i < count; i++) {
    struct lk_multi_header head = request_header(reads[i].type);

    lk__record_encode(&lk__multi_header_record, &head, out);
    lk__path_encode(&lk__path_watch_request_record, &no_watch, chroot,
                    lk__path_rest(chroot, reads[i].path, LK_PATH_OF_NODE), out);
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
  /* The memory is zeroed, so a NUL follows the copy. */
  copy = lk__arena_take(arena, path.len + 1, 1);
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

/* Convert a decoded result of a multi. It is valid if its type is one of a
 * multi and its header has the error that belongs to this type. */
static void decode_result(lk_reader *in, const lk_operation *operation,
                          const char *chroot, lk_arena *arena,
                          lk_op_result *out)
{
  bool valid = operation->err == 0;

  out->type = operation->type;
  switch (operation->type) {
  case LK_OPCODE_ERROR:
    /* The error is 0 in the results before that of the operation that failed.
     */
    out->err = operation->body.code.err;
    valid = operation->err == out->err && lk__reply_error_is_valid(out->err);
    break;
  case LK_OPCODE_CREATE:
    out->path = copy_result_path(in, operation->body.path.path, chroot, arena);
    break;
  case LK_OPCODE_CREATE2:
    out->path =
        copy_result_path(in, operation->body.path_stat.path, chroot, arena);
    out->stat = copy_result_stat(in, &operation->body.path_stat.stat, arena);
    break;
  case LK_OPCODE_SET_DATA:
    out->stat = copy_result_stat(in, &operation->body.stat.stat, arena);
    break;
  case LK_OPCODE_DELETE:
  case LK_OPCODE_CHECK: break;
  default: valid = false; /* this is a result of a multiRead */
  }
  if (!valid)
    lk__reader_fail(in, LK_ERR_MARSHALLING);
}

/* The error of a multi is that of the operation that failed. If one failed, all
 * results have the type LK_OPCODE_ERROR. The operations behind it were not
 * tried and have RUNTIME_INCONSISTENCY, which is returned only if there is no
 * other error. */
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

int lk__multi_decode(lk_reader *in, size_t asked, const char *chroot,
                     lk_arena *arena, lk_op_result **out, int *outcome)
{
  lk_op_result *results = lk__arena_take(arena, asked, sizeof *results);
  lk_operation operation;
  size_t count = 0;

  if (results == NULL)
    lk__reader_fail(in, LK_ERR_NO_MEMORY);
  while (in->err == 0 &&
         lk__operation_decode(in, LK_OPERATIONS_OF_REPLY, arena, &operation)) {
    if (count < asked) /* else there are more results than operations */
      decode_result(in, &operation, chroot, arena, &results[count++]);
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

/* Convert a decoded result of a multiRead; see decode_result(). Each read is
 * executed even if another one has failed, so an error is never 0 here. */
static void decode_read_result(lk_reader *in, const lk_operation *operation,
                               lk_arena *arena, lk_read_result *out)
{
  bool valid = operation->err == 0;

  out->type = operation->type;
  switch (operation->type) {
  case LK_OPCODE_ERROR:
    out->err = operation->body.code.err;
    valid = operation->err == out->err && out->err != 0 &&
            lk__reply_error_is_valid(out->err);
    break;
  case LK_OPCODE_GET_DATA:
    out->data = operation->body.data.data;
    out->stat = copy_result_stat(in, &operation->body.data.stat, arena);
    break;
  case LK_OPCODE_GET_CHILDREN:
    out->names = operation->body.names.names.items;
    out->count = operation->body.names.names.count;
    break;
  default: valid = false; /* this is a result of a multi */
  }
  if (!valid)
    lk__reader_fail(in, LK_ERR_MARSHALLING);
}

int lk__multi_read_decode(lk_reader *in, size_t asked, lk_arena *arena,
                          lk_read_result **out)
{
  lk_read_result *results = lk__arena_take(arena, asked, sizeof *results);
  lk_operation operation;
  size_t count = 0;

  if (results == NULL)
    lk__reader_fail(in, LK_ERR_NO_MEMORY);
  while (in->err == 0 &&
         lk__operation_decode(in, LK_OPERATIONS_OF_REPLY, arena, &operation)) {
    if (count < asked) /* else there are more results than operations */
      decode_read_result(in, &operation, arena, &results[count++]);
    else
      lk__reader_fail(in, LK_ERR_MARSHALLING);
  }
  if (count < asked)
    lk__reader_fail(in, LK_ERR_MARSHALLING);
  *out = in->err == 0 ? results : NULL;
  return in->err;
}
