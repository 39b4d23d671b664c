/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_TIME_H
#define LK_PROTO_ENGINE_TIME_H

/**
 * @file
 * Times and durations of the engine, in ms.
 */

#include <stdint.h>

/** A time in ms that never comes. */
#define LK_NEVER INT64_MAX

static inline int64_t lk__earlier(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static inline int64_t lk__later(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

#endif
