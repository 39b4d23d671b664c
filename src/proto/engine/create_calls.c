/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/calls.h"
#include "proto/wire/create_mode.h"
#include "proto/wire/opcode.h"

static struct lk_create_request create_body(lk_bytes data, const lk_acls *acl,
                                            int32_t flags)
{
  if (acl == NULL)
    acl = &lk_acl_open;
  return (struct lk_create_request){.data = data,
                                    .acl = lk__vec_of(acl->entries, acl->count),
                                    .flags = flags};
}

static int queue_create(lk_client *c, int32_t op, const char *path,
                        lk_bytes data, const lk_acls *acl, int flags,
                        const lk_call *call, lk_create_cb done, void *arg)
{
  if (!lk__create_flags_valid(flags))
    return LK_ERR_BAD_ARGUMENT;
  struct lk_create_request r = create_body(data, acl, flags);
  lk_call_spec spec = {.op = lk__create_opcode(op, flags),
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_create(c, &spec, flags, &lk__create_request_record, &r, call);
}

int lk_create(lk_client *c, const char *path, lk_bytes data, const lk_acls *acl,
              int flags, const lk_call *call, lk_create_cb done, void *arg)
{
  return queue_create(c, LK_OPCODE_CREATE, path, data, acl, flags, call, done,
                      arg);
}

int lk_create2(lk_client *c, const char *path, lk_bytes data,
               const lk_acls *acl, int flags, const lk_call *call,
               lk_create_cb done, void *arg)
{
  return queue_create(c, LK_OPCODE_CREATE2, path, data, acl, flags, call, done,
                      arg);
}

int lk_create_ttl(lk_client *c, const char *path, lk_bytes data,
                  const lk_acls *acl, int flags, int64_t ttl_ms,
                  const lk_call *call, lk_create_cb done, void *arg)
{
  if (!lk__create_ttl_valid(flags, ttl_ms))
    return LK_ERR_BAD_ARGUMENT;
  struct lk_create_ttl_request r = {
      .create = create_body(data, acl, lk__create_ttl_flags(flags)),
      .ttl_ms = ttl_ms};
  lk_call_spec spec = {.op = LK_OPCODE_CREATE_TTL,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_create(c, &spec, flags, &lk__create_ttl_request_record, &r,
                         call);
}
