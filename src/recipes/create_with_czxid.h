/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_CREATE_WITH_CZXID_H
#define LK_RECIPES_CREATE_WITH_CZXID_H

/**
 * @file
 * The create of a node of which the recipe needs the czxid. It is sent as
 * create2, whose reply has it in a Stat. A server that drops create2, such as
 * RaftKeeper, gets a create: the zxid of its reply is the node's czxid.
 */

#include <latchkey/client.h>

/** See lk_create2(). In `done` the Stat may be NULL without an error. */
static inline int lk__create_with_czxid(lk_client *c, const char *path,
                                        lk_bytes data, const lk_acls *acl,
                                        int flags, lk_create_cb done, void *arg)
{
  int err = lk_create2(c, path, data, acl, flags, NULL, done, arg);

  /* The client knows by earlier requests that the server drops it. */
  return err == LK_ERR_UNIMPLEMENTED
             ? lk_create(c, path, data, acl, flags, NULL, done, arg)
             : err;
}

/** In `done`: the czxid of the node that was created, or 0 after an error. */
static inline int64_t lk__created_czxid(const lk_client *c, int err,
                                        const lk_stat *stat)
{
  const lk_reply *reply = lk_client_reply(c);

  if (err != 0)
    return 0;
  return stat != NULL ? stat->czxid : reply->zxid;
}

#endif
