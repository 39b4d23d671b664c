/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_ORPHANS_H
#define LK_CLI_RUN_ORPHANS_H

#include "cli/run/descendants.h"
#include "cli/run/job.h"

/**
 * @file
 * What is left of COMMAND when the supervisor was killed. The kernel has killed
 * COMMAND with it, and its descendants have become children of latchkey, which
 * may have other children: those that it had when it was started, their
 * orphans, and processes that an earlier COMMAND of `elect` has left.
 */

/** The children that latchkey has when it starts a supervisor. */
typedef struct cli_children {
  cli_pids pids;
  bool any; /**< there were some, which may have ended meanwhile and have left
                 orphans of their own; `pids` may lack some */
} cli_children;

/** Lists the children of this process. */
void cli_children_list(cli_children *c);
/** Called when a child was reaped: its number may be another process now. */
void cli_children_remove(cli_children *c, pid_t child);

enum { CLI_MAX_STRANGERS = 8 };

/** The processes that cli_orphans_kill() has left. */
typedef struct cli_orphans_left {
  bool not_found;      /**< there may be some that cannot be found */
  cli_refusal refused; /**< one that may not be signalled */
  /** New children whose environment is not that of COMMAND: they were not
      killed. Those beyond CLI_MAX_STRANGERS are not in it. */
  pid_t strangers[CLI_MAX_STRANGERS];
  size_t stranger_count;
} cli_orphans_left;

typedef struct cli_orphans_scope {
  cli_job *job;
  pid_t supervisor;           /**< a zombie, which is not reaped */
  const cli_children *before; /**< they are not killed */
  lk_bytes environment;       /**< what was added to that of COMMAND: texts
                                   "NAME=VALUE", each ended by a NUL */
} cli_orphans_scope;

/**
 * Kills what COMMAND has left, and waits for its end. If latchkey had children
 * before, only those new ones are killed that have the variables LATCHKEY_NODE
 * and LATCHKEY_SESSION of `environment`.
 */
void cli_orphans_kill(const cli_orphans_scope *scope, cli_orphans_left *out);

#endif
