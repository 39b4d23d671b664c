/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/sequence_limit.h"

/* Half of an int32 counter. */
static const int64_t warning_level = (int64_t)1 << 30;

bool lk__sequence_is_in_range(int64_t number)
{
  return number >= 0 && number <= LK_SEQUENCE_LIMIT;
}

bool lk__sequence_is_near_end(int64_t number)
{
  return number >= warning_level;
}
