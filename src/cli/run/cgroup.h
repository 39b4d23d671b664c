/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_CGROUP_H
#define LK_CLI_RUN_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
  CLI_CGROUP_PATH_SIZE = 1024, /**< room for the path of a group, with a NUL */
  CLI_CGROUP_NAME_SIZE = sizeof "/latchkey-0123456789abcdef"
};

/**
 * A control group (version 2) for COMMAND, below latchkey's own. The kernel
 * kills all processes of a group in one step. If there is no group, the
 * functions below do nothing, and cli_cgroup_fork() calls fork().
 */
typedef struct cli_cgroup {
  char path[CLI_CGROUP_PATH_SIZE];  /**< "": no group */
  char shown[CLI_CGROUP_PATH_SIZE]; /**< the path of the group in
                                         /proc/PID/cgroup */
  int fd; /**< descriptor of the group's directory; -1: not open */
} cli_cgroup;

/** Chooses the path of the group without creating it. */
void cli_cgroup_choose_path(cli_cgroup *g);
/** Creates the group, if possible. Removes empty groups beside it that killed
    processes have left. */
void cli_cgroup_make(cli_cgroup *g);
/** Opens the group that another process has created at `path`. */
void cli_cgroup_open(cli_cgroup *g);
/** Forks a child that is in the group. Removes the group if it takes no
    process. Returns what fork() returns. */
pid_t cli_cgroup_fork(cli_cgroup *g);
/** Whether the process is in the group or in one below it. */
bool cli_cgroup_contains(const cli_cgroup *g, pid_t pid);
void cli_cgroup_kill(const cli_cgroup *g);
/** Begin to freeze or thaw the group. */
void cli_cgroup_freeze(const cli_cgroup *g);
void cli_cgroup_thaw(const cli_cgroup *g);
/** Whether the group is frozen: no process in it runs, or it has none. */
bool cli_cgroup_is_frozen(const cli_cgroup *g);
/** Removes the group; remaining processes are moved to the parent group. */
void cli_cgroup_remove(cli_cgroup *g);

/** Gets the path of the group `own`, as in /proc/self/cgroup, below the mount
    of a line of /proc/self/mountinfo. Returns false if the mount is not one of
    cgroup version 2 or does not show the group. Exported for tests. */
bool cli_cgroup_below_mount(const char *line, const char *own, char *out,
                            size_t size);

#endif
