/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_ON_LOST_H
#define LK_CLI_OPTIONS_ON_LOST_H

/** The actions of --on-lost on COMMAND. */
typedef enum cli_on_lost {
  CLI_ON_LOST_TERM,  /**< TERM, then KILL */
  CLI_ON_LOST_KILL,  /**< KILL at once */
  CLI_ON_LOST_STOP,  /**< STOP while the lease runs out; KILL when the lock is
                        lost or COMMAND was not stopped in time */
  CLI_ON_LOST_IGNORE /**< nothing */
} cli_on_lost;

#endif
