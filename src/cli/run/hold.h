/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_HOLD_H
#define LK_CLI_RUN_HOLD_H

/**
 * @file
 * What a run does between its connection and its end: it supervises COMMAND
 * while the lock is held, keeps the lock until --min-hold is over, releases the
 * lock and closes the session. --min-hold keeps other clients from repeating a
 * run that was completed, for example a cron job that takes less time than the
 * clocks of two machines differ. runner.h declares the functions that other
 * files call.
 */

#include "cli/run/runner.h"

/** Handles a signal to latchkey in CLI_PHASE_KEEPING. A signal that ends a wait
    ends --min-hold, too. */
void cli_min_hold_signal(cli_runner *r, int number);

#endif
