/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_TIMEOUT_H
#define LK_BASE_TIMEOUT_H

/**
 * @file
 * Conversion of the timeouts of the public interface to deadlines, which the
 * library uses inside: see "Timeouts" in <latchkey/client.h>. The deadline
 * INT64_MAX never passes. `now` is the time of the call. A deadline that has
 * passed before the call becomes `now`.
 */

#include <latchkey/types.h>

/** The deadline of a timeout that begins now: `now` + `timeout_ms` + 1. The
    clock is read in whole milliseconds, so without the 1 the timeout could end
    up to a millisecond early. 0 and other negative timeouts have passed: `now`.
 */
int64_t lk__timeout_after(int64_t now, int64_t timeout_ms);

/** A caller's deadline, where LK_NO_LIMIT becomes INT64_MAX. */
int64_t lk__timeout_until(int64_t now, int64_t deadline_ms);

/** The earlier of the ends of a timeout and a deadline. A value of 0 is no
    limit here, like LK_NO_LIMIT: a caller leaves options at 0 that it does not
    use. */
int64_t lk__timeout_end(int64_t now, int64_t timeout_ms, int64_t deadline_ms);

#endif
