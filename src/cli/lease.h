/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LEASE_H
#define LK_CLI_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/** What --on-lost does to the command. */
typedef enum cli_policy {
  CLI_ON_LOST_TERM,  /**< TERM, then KILL */
  CLI_ON_LOST_KILL,  /**< KILL at once */
  CLI_ON_LOST_STOP,  /**< STOP while unsure, KILL when lost, or when it could
                          not be stopped in time */
  CLI_ON_LOST_IGNORE /**< nothing */
} cli_policy;

typedef enum cli_stage {
  CLI_STAGE_CALM,
  CLI_STAGE_TERMED,
  CLI_STAGE_STOPPED,
  CLI_STAGE_KILLED
} cli_stage;

typedef enum cli_act {
  CLI_ACT_NONE,
  CLI_ACT_TERM,
  CLI_ACT_KILL,
  CLI_ACT_STOP,
  CLI_ACT_CONT
} cli_act;

/**
 * When the command has to go: the lease as the guard sees it. Times are
 * milliseconds on one clock. KILL is sent a tenth of the margin before the
 * lease deadline, so that nothing runs at the deadline itself, however many
 * processes have to die one after the other.
 */
typedef struct cli_lease {
  cli_policy policy;
  cli_stage stage;
  int64_t margin_ms; /**< --kill-after */
  int64_t until;     /**< the lease deadline, moved on while news comes */
  int64_t over_at;   /**< --max-hold ends; 0: it does not */
  bool over;         /**< TERM went out because it has */
  bool lost;
  bool all_stopped; /**< nothing that came of the command runs */
  bool late;       /**< TERM went out when the deadline had passed already, or
                        the lock was lost: `kill_at` counts, not `until` */
  int64_t kill_at; /**< --kill-after from TERM or the loss */
} cli_lease;

/** The lock is lost. */
void cli_lease_lose(cli_lease *l, int64_t now);

/** The command has ended, and what is left of it heard TERM if it did: news of
    the lease does not put KILL off any more. */
void cli_lease_hurry(cli_lease *l);

/** What is to be done now; ask again until it is nothing. `next` gets the time
    to ask again, INT64_MAX for never. */
cli_act cli_lease_step(cli_lease *l, int64_t now, int64_t *next);

#endif
