/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_TIMEOUT_H
#define LK_BASE_TIMEOUT_H

/**
 * @file
 * The timeouts of the public interface as deadlines, which is what the library
 * passes on: see "Timeouts" in <latchkey/client.h>. INT64_MAX is never. `now`
 * is read once, when the call is made; a deadline that has passed by then is
 * `now`.
 */

#include <latchkey/types.h>

/** When `timeout_ms` from now has certainly passed: a reading of the clock
   drops less than a millisecond. */
int64_t lk__timeout_after(int64_t now, int64_t timeout_ms);

/** A deadline that a caller has given. */
int64_t lk__timeout_until(int64_t now, int64_t deadline_ms);

/** The earlier of a timeout and a deadline, where 0 is no limit. */
int64_t lk__timeout_end(int64_t now, int64_t timeout_ms, int64_t deadline_ms);

#endif
