/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SYSTEM_CLOCKS_H
#define LK_CLI_SYSTEM_CLOCKS_H

#include <stdint.h>

/** Returns milliseconds of CLOCK_BOOTTIME, which runs while the machine is
    suspended; of CLOCK_MONOTONIC if the kernel lacks it. */
int64_t cli_boottime_ms(void);

/** Returns milliseconds since 1970. */
int64_t cli_wall_ms(void);

#endif
