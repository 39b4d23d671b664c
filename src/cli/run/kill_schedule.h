/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_KILL_SCHEDULE_H
#define LK_CLI_RUN_KILL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/** What --on-lost does to the command. */
typedef enum cli_on_lost {
  CLI_ON_LOST_TERM,  /**< TERM, then KILL */
  CLI_ON_LOST_KILL,  /**< KILL at once */
  CLI_ON_LOST_STOP,  /**< STOP while unsure, KILL when lost, or when it could
                          not be stopped in time */
  CLI_ON_LOST_IGNORE /**< nothing */
} cli_on_lost;

typedef enum cli_kill_stage {
  CLI_STAGE_RUNNING,
  CLI_STAGE_TERM_SENT,
  CLI_STAGE_STOPPED,
  CLI_STAGE_KILLED
} cli_kill_stage;

typedef enum cli_action {
  CLI_ACTION_NONE,
  CLI_ACTION_TERM,
  CLI_ACTION_KILL,
  CLI_ACTION_STOP,
  CLI_ACTION_CONT
} cli_action;

/**
 * When the command has to go: the lease as the supervisor sees it. Times are
 * milliseconds on one clock. KILL is sent a tenth of the margin before the
 * lease deadline, so that nothing runs at the deadline itself, however many
 * processes have to die one after the other.
 */
typedef struct cli_kill_schedule {
  cli_on_lost policy;
  cli_kill_stage stage;
  int64_t margin_ms; /**< --kill-after */
  int64_t lease_deadline; /**< the lease deadline, moved on while news comes */
  int64_t max_hold_ends_at; /**< --max-hold ends; 0: it does not */
  bool max_hold_is_over;    /**< TERM went out because it has */
  bool lost;
  bool all_stopped; /**< nothing that came of the command runs */
  bool kill_at_counts; /**< TERM went out when the deadline had passed already,
                  or the lock was lost: `kill_at` counts, not `until` */
  int64_t kill_at;  /**< --kill-after from TERM or the loss */
} cli_kill_schedule;

/** Give the margin: `kill_after_ms`, or a sixth of the session timeout where
    that is 0 or not less than half of the timeout. `fits`
    gets whether `kill_after_ms` is less than half. */
int64_t cli_kill_schedule_margin_ms(int64_t kill_after_ms,
                                    int64_t session_timeout_ms, bool *fits);

/** The lock is lost. */
void cli_kill_schedule_lock_lost(cli_kill_schedule *k, int64_t now);

/** The command has ended, and what is left of it heard TERM if it did: news of
    the lease does not put KILL off any more. */
void cli_kill_schedule_command_ended(cli_kill_schedule *k);

/** What is to be done now; ask again until it is nothing. `next` gets the time
    to ask again, INT64_MAX for never. */
cli_action cli_kill_schedule_next(cli_kill_schedule *k, int64_t now,
                                  int64_t *next);

#endif
