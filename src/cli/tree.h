/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_TREE_H
#define LK_CLI_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cgroup.h"

/** Whether this process has no child; one that was started by exec can have
    some. */
bool cli_tree_alone(void);

/** From now on orphaned descendants become children of this process, wherever
    their process group or session is. */
void cli_tree_adopt(void);

/** KILL every child of this process. With cli_tree_adopt() and repeated until
    no child is left, this reaches all descendants. None of them can be
    mistaken: until it is waited for, a child's number is its own. */
void cli_tree_kill_children(void);

/** Somebody to watch in cli_tree_end(): gets the wait status of `child`. */
typedef struct cli_ended {
  pid_t child;
  bool known;
  int status;
} cli_ended;

/** KILL the cgroup, the process group `group` (0: none) and all descendants,
    and wait until they are gone. */
void cli_tree_end(const cli_cgroup *cgroup, pid_t group, cli_ended *ended);

#endif
