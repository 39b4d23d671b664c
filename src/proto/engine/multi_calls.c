/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The requests multi and multiRead, and the functions that create their
 * operations. */

#include "proto/engine/calls.h"
#include "proto/wire/create_mode.h"
#include "proto/wire/opcode.h"
#include "proto/wire/path.h"

static lk_op create_operation(int32_t type, const char *path, lk_bytes data,
                              const lk_acls *acl, int flags)
{
  return (lk_op){.type = type,
                 .flags = flags,
                 .version = -1,
                 .path = path,
                 .data = data,
                 .acl = acl};
}

lk_op lk_op_create(const char *path, lk_bytes data, const lk_acls *acl,
                   int flags)
{
  return create_operation(LK_OP_CREATE, path, data, acl, flags);
}

lk_op lk_op_create2(const char *path, lk_bytes data, const lk_acls *acl,
                    int flags)
{
  return create_operation(LK_OP_CREATE2, path, data, acl, flags);
}

lk_op lk_op_create_ttl(const char *path, lk_bytes data, const lk_acls *acl,
                       int flags, int64_t ttl_ms)
{
  lk_op op = create_operation(LK_OP_CREATE_TTL, path, data, acl, flags);

  op.ttl_ms = ttl_ms;
  return op;
}

lk_op lk_op_delete(const char *path, int32_t version)
{
  return (lk_op){.type = LK_OP_DELETE, .version = version, .path = path};
}

lk_op lk_op_set(const char *path, lk_bytes data, int32_t version)
{
  return (lk_op){
      .type = LK_OP_SET, .version = version, .path = path, .data = data};
}

lk_op lk_op_check(const char *path, int32_t version)
{
  return (lk_op){.type = LK_OP_CHECK, .version = version, .path = path};
}

lk_read lk_read_get(const char *path)
{
  return (lk_read){.type = LK_READ_GET, .path = path};
}

lk_read lk_read_get_children(const char *path)
{
  return (lk_read){.type = LK_READ_GET_CHILDREN, .path = path};
}

static int check_operation(const lk_op *op)
{
  lk_path_use path_use = LK_PATH_OF_NODE;

  switch (op->type) {
  case LK_OP_CREATE:
  case LK_OP_CREATE2:
    if (!lk__create_flags_valid(op->flags))
      return LK_ERR_BAD_ARGUMENT;
    path_use = lk__create_path_use(op->flags);
    break;
  case LK_OP_CREATE_TTL:
    if (!lk__create_ttl_valid(op->flags, op->ttl_ms))
      return LK_ERR_BAD_ARGUMENT;
    path_use = lk__create_path_use(op->flags);
    break;
  case LK_OP_DELETE:
  case LK_OP_SET:
  case LK_OP_CHECK:
    if (op->version < -1)
      return LK_ERR_BAD_ARGUMENT;
    break;
  default: return LK_ERR_BAD_ARGUMENT;
  }
  return lk__path_valid(op->path, path_use) ? 0 : LK_ERR_BAD_PATH;
}

int lk_multi(lk_client *c, const lk_op *ops, size_t count, const lk_call *call,
             lk_multi_cb done, void *arg)
{
  static const lk_op none; /* `ops` must not be NULL: see lk_call_spec */
  lk_call_spec spec = {.op = LK_OPCODE_MULTI,
                       .ops = count == 0 ? &none : ops,
                       .operations = count,
                       .done = (void (*)(void))done,
                       .arg = arg};
  int err = lk__call_take_options(c, &spec, call);

  for (size_t i = 0; i < count && err == 0; i++)
    err = check_operation(&ops[i]);
  return err != 0 ? err : lk__call_send(c, &spec, NULL, NULL);
}

static int check_read_operation(const lk_read *r)
{
  if (r->type != LK_READ_GET && r->type != LK_READ_GET_CHILDREN)
    return LK_ERR_BAD_ARGUMENT;
  return lk__path_valid(r->path, LK_PATH_OF_NODE) ? 0 : LK_ERR_BAD_PATH;
}

int lk_multi_read(lk_client *c, const lk_read *reads, size_t count,
                  const lk_call *call, lk_multi_read_cb done, void *arg)
{
  static const lk_read none; /* `reads` must not be NULL: see lk_call_spec */
  lk_call_spec spec = {.op = LK_OPCODE_MULTI_READ,
                       .reads = count == 0 ? &none : reads,
                       .operations = count,
                       .done = (void (*)(void))done,
                       .arg = arg};
  int err = lk__call_take_options(c, &spec, call);

  for (size_t i = 0; i < count && err == 0; i++)
    err = check_read_operation(&reads[i]);
  return err != 0 ? err : lk__call_send(c, &spec, NULL, NULL);
}
