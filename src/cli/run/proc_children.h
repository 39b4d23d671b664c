/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_PROC_CHILDREN_H
#define LK_CLI_RUN_PROC_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * Invokes `each` for every child of `parent`, including zombies. Returns false
 * if not all children can be listed.
 *
 * The kernel lists children in /proc/PID/task/TID/children (since Linux 3.5, as
 * a build option). A process can read its own list even if the mount option
 * `hidepid` hides the directories of its children. Without these files, all of
 * /proc is searched. If a child is reaped during the call, the list can lack
 * another child (proc(5)): it is complete only if none was reaped.
 */
bool cli_proc_children_each(pid_t parent, void (*each)(pid_t child, void *arg),
                            void *arg);

/** A list of process ids; zeroed at first. */
typedef struct cli_pids {
  pid_t *at;
  size_t count;
  size_t cap;  /**< number of entries that `at` has room for */
  bool failed; /**< memory was lacking: the list is not complete */
} cli_pids;

/** Adds a process id; for cli_proc_children_each(). */
void cli_pids_add(pid_t pid, void *pids);
void cli_pids_free(cli_pids *pids);

/** Returns the letter for the state of a process in /proc/PID/stat; `parent`
    gets its parent. Returns '\0' if there is no such process or it is hidden.
 */
char cli_proc_state(pid_t pid, pid_t *parent);

enum { CLI_PROC_NAME_SIZE = 32 };

/** Gets the name of a process, as in /proc/PID/comm; "?" if it is not known. */
void cli_proc_name(pid_t pid, char name[CLI_PROC_NAME_SIZE]);

#endif
