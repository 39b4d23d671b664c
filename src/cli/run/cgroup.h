/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_CGROUP_H
#define LK_CLI_RUN_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

/** Room for the path of a group, with a NUL. */
enum { CLI_CGROUP_PATH_SIZE = 1024 };

/**
 * A control group (version 2) for COMMAND, below latchkey's own. The kernel
 * kills all processes of a group in one step. If no group can be created, the
 * functions below do nothing, and cli_cgroup_fork() calls fork().
 */
typedef struct cli_cgroup {
  char path[CLI_CGROUP_PATH_SIZE]; /**< "": no group */
  int fd; /**< descriptor of the group's directory; -1: not open */
} cli_cgroup;

/** Chooses the path of the group without creating it. */
void cli_cgroup_choose_path(cli_cgroup *g);
/** Creates the group, if possible. */
void cli_cgroup_make(cli_cgroup *g);
/** Opens the group that another process has created at `path`. */
void cli_cgroup_open(cli_cgroup *g);
/** Forks a child that is in the group, if there is a group. Returns what fork()
    returns. */
pid_t cli_cgroup_fork(const cli_cgroup *g);
void cli_cgroup_kill(const cli_cgroup *g);
/** Freezes or thaws the group. Returns whether all its processes are frozen or
    thawed; the caller repeats the call until they are. */
bool cli_cgroup_freeze(const cli_cgroup *g, bool frozen);
/** Removes the group; remaining processes are moved to the parent group. */
void cli_cgroup_remove(cli_cgroup *g);

/** Computes the path of this process's cgroup from the texts of
    /proc/self/mountinfo and /proc/self/cgroup. Returns false if there is none.
    Exported for tests. */
bool cli_cgroup_locate(const char *mounts, const char *groups, char *out,
                       size_t size);

#endif
