/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_PROC_CHILDREN_H
#define LK_CLI_RUN_PROC_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * Invoke `each` for every child of `parent`, including zombies. False: they
 * cannot all be listed.
 *
 * The kernel lists them in /proc/PID/task/TID/children (since Linux 3.5, where
 * it is configured), which a process can read of itself even where `hidepid`
 * hides its children's own folders; otherwise all of /proc is searched. A list
 * from which children are taken meanwhile may lack some (proc(5)): only a
 * caller that waited for none during the call has seen all of its own.
 */
bool cli_proc_children_each(pid_t parent, void (*each)(pid_t child, void *arg),
                            void *arg);

/** State of a process as a letter of /proc/PID/stat, and its parent. 0: there
    is no such process, or it cannot be seen. */
char cli_proc_state(pid_t pid, pid_t *parent);

#endif
