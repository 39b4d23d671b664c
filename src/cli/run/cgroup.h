/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_CGROUP_H
#define LK_CLI_RUN_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { CLI_CGROUP_PATH = 1024 };

/**
 * A control group (version 2) for the command, below our own: killing it is
 * one step that no process in it escapes. Often none can be made: then all of
 * this does nothing.
 */
typedef struct cli_cgroup {
  char path[CLI_CGROUP_PATH]; /**< "": none */
  int fd;                     /**< its folder, or -1 */
} cli_cgroup;

/** Choose the place of a group; nothing is made. */
void cli_cgroup_find(cli_cgroup *g);
/** Make it, if possible. */
void cli_cgroup_make(cli_cgroup *g);
/** Find the one that another process made from this description. */
void cli_cgroup_open(cli_cgroup *g);
/** fork(), the child being in the group if there is one. */
pid_t cli_cgroup_fork(const cli_cgroup *g);
void cli_cgroup_kill(const cli_cgroup *g);
/** Freeze or thaw it. Gives whether that is done; ask again until it is. */
bool cli_cgroup_freeze(const cli_cgroup *g, bool frozen);
/** Remove it; processes that are left go back to where we are. */
void cli_cgroup_remove(cli_cgroup *g);

/** Path of the cgroup, given the texts of /proc/self/mountinfo and
    /proc/self/cgroup; false: there is none. For tests. */
bool cli_cgroup_locate(const char *mounts, const char *groups, char *out,
                       size_t size);

#endif
