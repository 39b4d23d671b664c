/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_DESCENDANTS_H
#define LK_CLI_RUN_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run/cgroup.h"

/**
 * @file
 * The descendants of this process: COMMAND and all that came of it. All are
 * reached without a cgroup as well, since orphans become children of this
 * process (cli_descendants_adopt()). The number of a child is its own until it
 * is waited for, so none is mistaken for another process.
 */

/** Whether this process has no child; one that was started by exec can have
    some. */
bool cli_descendants_none(void);

/** From now on orphaned descendants become children of this process, wherever
    their process group or session is. */
void cli_descendants_adopt(void);

typedef enum cli_descendants_left {
  CLI_LEFT_NONE,
  CLI_LEFT_SOME,
  CLI_LEFT_UNKNOWN /**< not all children can be listed */
} cli_descendants_left;

/** Wait for all dead children but `command`, which stays a zombie, so that its
    number stays its own. Gives whether a child other than a dead `command` is
    left. */
cli_descendants_left cli_descendants_reap(pid_t command);

/**
 * Stop all descendants: freeze the cgroup, or send SIGSTOP to each. To be
 * repeated until it gives true: then none of them runs.
 */
bool cli_descendants_stop(const cli_cgroup *cgroup);

/** Let them go on. */
void cli_descendants_continue(const cli_cgroup *cgroup);

/** A child that had to be waited for. */
typedef struct cli_reaped {
  bool known;
  int status; /**< as waitpid() has it */
} cli_reaped;

/**
 * KILL the cgroup, the process group of `command` (0: none; `own_group`: it has
 * one of its own) and all descendants, and wait until they are gone. `command`
 * stays a zombie where children can be listed. Where they cannot, it is waited
 * for, which `out` tells; descendants that have left the process group are only
 * reached through the cgroup then, and it returns after a second.
 */
void cli_descendants_kill(const cli_cgroup *cgroup, pid_t command,
                          bool own_group, cli_reaped *out);

#endif
