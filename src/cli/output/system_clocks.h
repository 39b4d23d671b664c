/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_SYSTEM_CLOCKS_H
#define LK_CLI_OUTPUT_SYSTEM_CLOCKS_H

#include <stdint.h>

/** Returns the time of CLOCK_BOOTTIME in milliseconds. This clock also runs
    while the machine is suspended. A kernel without it gives the time of
    CLOCK_MONOTONIC. */
int64_t cli_boottime_ms(void);

/** Returns milliseconds since 1970. */
int64_t cli_wall_ms(void);

#endif
