/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_DEADLINE_H
#define LK_RECIPES_COMMON_DEADLINE_H

/**
 * @file
 * Deadlines of calls that send several requests.
 */

#include "base/timeout.h"
#include "recipes/common/config_copy.h"

/** Copy the options of a call that sends several requests. If `call` is NULL,
    `out` gets the defaults. Returns 0, or LK_ERR_BAD_ARGUMENT; a watch
    (`on_event`) is refused as well, since it would belong to one request. */
static inline int lk__call_options_copy(const lk_client *c, lk_call *out,
                                        const lk_call *call)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_call);
  int err = lk__config_copy(c, &sized, out, call);

  if (err == 0 && out->on_event != NULL)
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

#endif
