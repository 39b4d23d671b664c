/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SPAN_H
#define LK_RECIPES_SPAN_H

#include "recipes/sized.h"

/** One deadline over the many requests of a call. */

/** Copy the options of such a call; NULL: there are none. 0, or
    LK_ERR_BAD_ARGUMENT. */
static inline int lk__span_take(const lk_client *c, lk_call *out,
                                const lk_call *call)
{
  static const lk_sized what = LK_SIZED(lk_call);
  int err = lk__sized_take(c, &what, out, call);

  if (err == 0 && (out->timeout_ms < 0 || out->on_event != NULL))
    err = LK_ERR_BAD_ARGUMENT;
  return err;
}

/** When a call that begins now must be over; INT64_MAX: it need not. */
static inline int64_t lk__span_end(const lk_client *c, const lk_call *call)
{
  int64_t now = lk_client_clock(c);

  if (call->timeout_ms == 0 || call->timeout_ms >= INT64_MAX - now)
    return INT64_MAX;
  return now + call->timeout_ms;
}

/** The options of one of its requests. 0, or LK_ERR_DEADLINE: it is over. */
static inline int lk__span_call(const lk_client *c, int64_t end, lk_call *out)
{
  *out = (lk_call){.size = sizeof *out};
  if (end == INT64_MAX)
    return 0;
  out->timeout_ms = end - lk_client_clock(c);
  return out->timeout_ms > 0 ? 0 : LK_ERR_DEADLINE;
}

#endif
