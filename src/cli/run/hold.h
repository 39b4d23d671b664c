/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_HOLD_H
#define LK_CLI_RUN_HOLD_H

/**
 * @file
 * --min-hold: how long the lock is kept after COMMAND has ended. It keeps
 * other clients from repeating a run that was completed, for example a cron job
 * that takes less time than the clocks of two machines differ.
 */

#include "cli/run/runner.h"

/** Handles a signal to latchkey in CLI_PHASE_KEEPING. A signal that ends a wait
    ends --min-hold, too. */
void cli_min_hold_signal(cli_runner *r, int number);

#endif
