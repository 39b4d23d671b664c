/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_CALL_H
#define LK_RECIPES_CALL_H

/**
 * @file
 * A call of a recipe, which sends several requests: its options, its deadline,
 * and how many of its requests are under way at a time.
 */

#include <string.h>

#include <latchkey/client.h>

#include "base/acl.h"
#include "base/sized_struct.h"
#include "base/timeout.h"
#include "proto/engine/lease_slot.h"

/** Copy the options of a call that sends several requests. If `call` is NULL,
    `out` gets the defaults. Returns 0, or LK_ERR_BAD_ARGUMENT; options that
    would belong to one request are refused as well. */
static inline int lk__call_options_copy(const lk_client *c, lk_call *out,
                                        const lk_call *call)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_call);
  int err = lk__client_copy_options(c, &sized, out, call);

  if (err == 0 && (out->on_event != NULL || out->handle != NULL ||
                   out->offline != LK_OFFLINE_WAIT))
    err = LK_ERR_BAD_ARGUMENT;
  return err;
}

/** The deadline of a call that begins now, or INT64_MAX if the call has none.
 */
static inline int64_t lk__call_deadline(const lk_client *c, const lk_call *call)
{
  return lk__timeout_end(lk_client_clock(c), call->timeout_ms,
                         call->deadline_ms);
}

/** The options of a request that must complete before `deadline_ms`, which is a
    result of lk__call_deadline(). */
static inline lk_call lk__call_until(int64_t deadline_ms)
{
  return (lk_call){.size = sizeof(lk_call),
                   .deadline_ms =
                       deadline_ms == INT64_MAX ? LK_NO_LIMIT : deadline_ms};
}

/* A path of n bytes has up to n/2 parents, so requests for all of them have up
   to n²/4 bytes. Requests that are under way at the same time have about
   LK_PORTION_BYTES at most, the default limit of a single request. */

enum {
  LK_PORTION_BYTES = 1 << 20,
  LK_FIXED_BYTES = 64 /* of a request, at most: what is neither path nor acl */
};

/** How many creates of parents of `path`, with this access list or NULL, may be
    under way at a time; at least 1. */
static inline size_t
lk__portion_of_creates(const lk_client *c, const char *path, const lk_acls *acl)
{
  size_t size = LK_FIXED_BYTES + strlen(lk_client_chroot(c)) + strlen(path) +
                (acl == NULL ? 0 : lk__acls_size(acl));

  return size < LK_PORTION_BYTES ? LK_PORTION_BYTES / size : 1;
}

#endif
