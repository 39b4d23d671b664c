/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_CLOCK_H
#define LK_CLI_CLOCK_H

#include <stdint.h>

/** Milliseconds of CLOCK_BOOTTIME, which runs while the machine is suspended;
    of CLOCK_MONOTONIC where the kernel lacks it. */
int64_t cli_boottime_ms(void);

/** Milliseconds since 1970. */
int64_t cli_wall_ms(void);

#endif
