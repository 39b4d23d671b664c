/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_CLOCK_CHECK_H
#define LK_CLI_DOCTOR_CLOCK_CHECK_H

#include <ev.h>
#include <stdint.h>

/** How often to look, in ms. */
enum { CLI_CLOCK_CHECK_TICK_MS = 50 };

/** What the clocks of this machine say at a moment, in ms. */
typedef struct cli_clock_reading {
  int64_t boot; /**< runs while the machine sleeps */
  int64_t wall; /**< can be set */
} cli_clock_reading;

/** How the clocks of this machine ran during an examination. */
typedef struct cli_clock_check {
  cli_clock_reading first;
  cli_clock_reading last;
  int64_t longest; /**< between two looks, on the first clock */
  ev_timer ticker;
} cli_clock_check;

cli_clock_reading cli_clock_read(void);

void cli_clock_check_begin(cli_clock_check *c, cli_clock_reading now);
void cli_clock_check_look(cli_clock_check *c, cli_clock_reading now);

/** Look as long as `loop` runs, until the end of this. */
void cli_clock_check_start(cli_clock_check *c, struct ev_loop *loop);
void cli_clock_check_stop(cli_clock_check *c, struct ev_loop *loop);

/** How long this took. */
int64_t cli_clock_check_took_ms(const cli_clock_check *c);
/** How long this process stood still, or its machine; 0: no longer than what
    is usual where much is going on. */
int64_t cli_clock_check_stood_ms(const cli_clock_check *c);
/** By how much the wall clock was set; 0: by no more than clock
    synchronization does. */
int64_t cli_clock_check_step_ms(const cli_clock_check *c);

#endif
