/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/timeout.h"

int64_t lk__timeout_after(int64_t now, int64_t timeout_ms)
{
  if (timeout_ms == LK_NO_LIMIT)
    return INT64_MAX;
  if (timeout_ms <= 0)
    return now;
  /* 1 is added, since `now` may be rounded down by up to a millisecond. */
  bool fits = now < INT64_MAX - 1 - timeout_ms;

  return fits ? now + timeout_ms + 1 : INT64_MAX;
}

int64_t lk__timeout_until(int64_t now, int64_t deadline_ms)
{
  if (deadline_ms == LK_NO_LIMIT)
    return INT64_MAX;
  return deadline_ms < now ? now : deadline_ms;
}

int64_t lk__timeout_end(int64_t now, int64_t timeout_ms, int64_t deadline_ms)
{
  int64_t after =
      timeout_ms == 0 ? INT64_MAX : lk__timeout_after(now, timeout_ms);
  int64_t until =
      deadline_ms == 0 ? INT64_MAX : lk__timeout_until(now, deadline_ms);

  return after < until ? after : until;
}
