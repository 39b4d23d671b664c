/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_KILL_SCHEDULE_H
#define LK_CLI_RUN_KILL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options/on_lost.h"

/** What was done to COMMAND last. */
typedef enum cli_kill_stage {
  CLI_STAGE_RUNNING,
  CLI_STAGE_TERM_SENT,
  CLI_STAGE_STOPPED,
  CLI_STAGE_KILLED
} cli_kill_stage;

/** The signals to send to COMMAND. CLI_ACTION_CONT: the lease was renewed. */
typedef enum cli_action {
  CLI_ACTION_NONE,
  CLI_ACTION_TERM,
  CLI_ACTION_KILL,
  CLI_ACTION_STOP,
  CLI_ACTION_CONT
} cli_action;

/**
 * The times at which TERM, STOP and KILL are sent to COMMAND. The supervisor
 * computes them from the lease deadline. All times are milliseconds on the
 * clock of the caller. TERM is sent the margin before the lease deadline. KILL
 * is sent a tenth of the margin before it, so that no process of COMMAND runs
 * at the deadline, even if many have to die one after the other.
 */
typedef struct cli_kill_schedule {
  cli_on_lost policy;
  cli_kill_stage stage;
  int64_t margin_ms;        /**< --kill-after */
  int64_t lease_deadline;   /**< the one of the last order */
  int64_t max_hold_ends_at; /**< end of --max-hold; 0: no limit */
  bool max_hold_is_over;    /**< TERM was sent because --max-hold was over */
  bool lost;                /**< the lock is lost */
  bool all_stopped;         /**< in CLI_STAGE_STOPPED: no process of COMMAND
                          runs */
  bool kill_at_is_fixed;    /**< a later lease deadline does not delay the KILL:
                             TERM was sent after the deadline, the lock is lost,
                             or COMMAND has ended */
  int64_t kill_at; /**< time of the KILL that is due after the TERM or after the
                      loss of the lock */
} cli_kill_schedule;

/** Returns the margin: `kill_after_ms`, or a sixth of the session timeout if
    `kill_after_ms` is 0 or not less than half of the timeout. `fits` gets
    whether `kill_after_ms` is less than half. */
int64_t cli_kill_schedule_margin_ms(int64_t kill_after_ms,
                                    int64_t session_timeout_ms, bool *fits);

/** Called when the lock is lost. */
void cli_kill_schedule_lock_lost(cli_kill_schedule *schedule, int64_t now);

/** Called when COMMAND has ended. If TERM was sent, its remaining descendants
    get KILL at the time that holds now: a later lease deadline does not delay
    that. */
void cli_kill_schedule_command_ended(cli_kill_schedule *schedule);

/** Returns the action that is due; the caller repeats the call until it returns
    CLI_ACTION_NONE. `next` gets the time of the next call, INT64_MAX for
    never. */
cli_action cli_kill_schedule_next(cli_kill_schedule *schedule, int64_t now,
                                  int64_t *next);

#endif
