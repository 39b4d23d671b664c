/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_PROC_CHILDREN_H
#define LK_CLI_RUN_PROC_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * Invokes `each` for every child of `parent`, including zombies. Returns false
 * if not all children can be listed.
 *
 * The kernel lists children in /proc/PID/task/TID/children (since Linux 3.5,
 * where it is configured). A process can read its own list even where `hidepid`
 * hides its children's directories. Without these files, all of /proc is
 * searched. If children are reaped meanwhile, the list may lack others
 * (proc(5)): it is complete only if the caller reaped none during the call.
 */
bool cli_proc_children_each(pid_t parent, void (*each)(pid_t child, void *arg),
                            void *arg);

/** Returns the state of a process as a letter of /proc/PID/stat; `parent` gets
    its parent. Returns NUL if there is no such process or it cannot be seen. */
char cli_proc_state(pid_t pid, pid_t *parent);

#endif
