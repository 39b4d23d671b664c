/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/system_clocks.h"

#include <time.h>

static int64_t timespec_ms(const struct timespec *t)
{
  return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

int64_t cli_boottime_ms(void)
{
  struct timespec now = {0, 0};

  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
    clock_gettime(CLOCK_MONOTONIC, &now);
  return timespec_ms(&now);
}

int64_t cli_wall_ms(void)
{
  struct timespec now = {0, 0};

  clock_gettime(CLOCK_REALTIME, &now);
  return timespec_ms(&now);
}
