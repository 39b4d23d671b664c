/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_MIN_HOLD_H
#define LK_CLI_RUN_MIN_HOLD_H

#include "cli/run/runner.h"

/**
 * @file
 * --min-hold: how long the lock is kept after COMMAND has ended. It keeps
 * other clients from repeating a run that was completed, for example a cron job
 * that takes less time than the clocks of two machines differ.
 */

/** Called when COMMAND has ended or could not be started. Releases the lock at
    the end of --min-hold, which counts from the acquisition of the lock. */
void cli_min_hold_release_later(cli_runner *r);
/** Handles a signal to latchkey in CLI_PHASE_KEEPING. A signal that ends a wait
    ends --min-hold, too. */
void cli_min_hold_signal(cli_runner *r, int number);
/** Reports that the lock was lost in CLI_PHASE_KEEPING, and ends --min-hold. */
void cli_min_hold_lock_lost(cli_runner *r);

#endif
