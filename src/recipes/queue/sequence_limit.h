/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_SEQUENCE_LIMIT_H
#define LK_RECIPES_QUEUE_SEQUENCE_LIMIT_H

/**
 * @file
 * The limit of sequence numbers. Servers take them from an int32 counter of the
 * directory. At its end, they give one number to several nodes, or negative
 * numbers, so an acquisition with a number near the end fails with
 * LK_ERR_SEQ_UNSAFE.
 */

#include <stdbool.h>
#include <stdint.h>

/** The largest number with which a lock is granted: 2^20 before the end of the
    counter. */
#define LK_SEQUENCE_LIMIT ((int64_t)INT32_MAX - (1 << 20))

/** Whether the number is from 0 to LK_SEQUENCE_LIMIT. */
bool lk__sequence_is_in_range(int64_t number);
/** Whether the owner should be warned: half of the counter is used. */
bool lk__sequence_is_near_end(int64_t number);

#endif
