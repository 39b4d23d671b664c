/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_CLOCK_CHECK_H
#define LK_CLI_DOCTOR_CLOCK_CHECK_H

#include <stdint.h>

#include "net/loop.h"

/** Interval of the samples, in ms. */
enum { CLI_CLOCK_CHECK_TICK_MS = 50 };

/** A sample of the clocks of this machine. */
typedef struct cli_clock_reading {
  int64_t boot_ms; /**< CLOCK_BOOTTIME: runs while the machine is suspended */
  int64_t wall_ms; /**< CLOCK_REALTIME: can be set */
} cli_clock_reading;

/** Samples of the clocks during an examination by the doctor. */
typedef struct cli_clock_check {
  cli_clock_reading first;
  cli_clock_reading last;
  int64_t longest_gap_ms; /**< between two samples, on CLOCK_BOOTTIME */
  lk_loop *loop;
  lk_loop_timer ticker;
} cli_clock_check;

/** Reads both clocks. */
cli_clock_reading cli_clock_read(void);

/** Begins with the sample `now`. */
void cli_clock_check_begin(cli_clock_check *c, cli_clock_reading now);
/** Adds the sample `now`. */
void cli_clock_check_sample(cli_clock_check *c, cli_clock_reading now);

/** Samples the clocks while `loop` runs, until cli_clock_check_stop(). */
void cli_clock_check_start(cli_clock_check *c, lk_loop *loop);
void cli_clock_check_stop(cli_clock_check *c);

/** Returns how long the examination took. */
int64_t cli_clock_check_took_ms(const cli_clock_check *c);
/** Returns the longest time in which this process or its machine did not run;
    0: less than 500 ms, which is usual under load. */
int64_t cli_clock_check_paused_ms(const cli_clock_check *c);
/** Returns by how much the wall clock was set forward; < 0: back. Returns 0 for
    less than 200 ms, which can be clock synchronization. */
int64_t cli_clock_check_step_ms(const cli_clock_check *c);

#endif
