/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_DESCENDANTS_H
#define LK_CLI_RUN_DESCENDANTS_H

/**
 * @file
 * The descendants of this process: COMMAND and all its descendants. An orphan
 * becomes a child of this process; see cli_descendants_adopt(). So all
 * descendants are found without a cgroup, too. The kernel does not reuse the
 * process id of a child before this process reaps the child, so no other
 * process is signalled by mistake.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run/cgroup.h"

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

/** Makes orphaned descendants children of this process, whatever their process
    group or session are. Returns false if the system refuses that. */
bool cli_descendants_adopt(void);

typedef enum cli_descendants_left {
  CLI_LEFT_NONE,
  CLI_LEFT_SOME,
  CLI_LEFT_UNKNOWN /**< not all children can be listed */
} cli_descendants_left;

/** Reaps all dead children but `command`, which stays a zombie, so that its
    process id is not reused. Returns which children are left; a dead `command`
    does not count. */
cli_descendants_left cli_descendants_reap(pid_t command);

/**
 * Freezes the cgroup. Returns whether no descendant runs: the cgroup is frozen,
 * and none is outside of it. The caller repeats the call until then, and also
 * later, since a frozen process can be moved out. `ended` is COMMAND, if it has
 * ended and stays a zombie, or 0.
 */
bool cli_descendants_stop(const cli_cgroup *cgroup, pid_t ended);

/** A process that may not be signalled: it belongs to another user. */
typedef struct cli_refusal {
  pid_t pid; /**< 0: none */
  int error; /**< an errno */
} cli_refusal;

/** What a round of KILL has found. */
typedef struct cli_killed {
  bool reaped;         /**< COMMAND had to be reaped: `status` */
  int status;          /**< as of waitpid() */
  cli_refusal refused; /**< one of the children that are left */
  bool others_left;    /**< children are left that got the KILL */
} cli_killed;

/** What cli_descendants_kill() kills besides the children that it finds. */
typedef struct cli_kill_scope {
  const cli_cgroup *cgroup;
  pid_t command;       /**< COMMAND; 0: it was not started, or was reaped */
  bool leads_group;    /**< `command` leads a process group */
  bool owns_namespace; /**< latchkey is process 1 of a PID namespace: all
                            processes there end with it */
} cli_kill_scope;

/** Time limit of repeated rounds if children cannot be listed, or only those
    are left that may not be signalled. */
enum { CLI_MAX_KILL_MS = 1000 };

/** Returns the pause after a round that follows a pause of `pause_ms`; 0: it
    was the first one. */
int64_t cli_descendants_kill_pause(int64_t pause_ms);

/** Waits for the death of a child, at most `max_wait_ms`, which is less than a
    second. SIGCHLD must be blocked. */
void cli_descendants_await_death(int64_t max_wait_ms);

/**
 * Kills the cgroup, the process group and all children, and reaps the dead
 * ones. Children of a dead child become children of this process, and are
 * killed in the next round. Returns which are left; CLI_LEFT_UNKNOWN: some, and
 * they cannot be listed.
 *
 * If children can be listed, `command` stays a zombie. If not, it is reaped,
 * and descendants outside the process group are killed only through the cgroup,
 * or if latchkey owns the namespace: then all processes in it are killed,
 * except latchkey and this one.
 */
cli_descendants_left cli_descendants_kill_round(const cli_kill_scope *scope,
                                                cli_killed *out);

/** Repeats cli_descendants_kill_round() until no descendant is left. Returns
    false if some are left after CLI_MAX_KILL_MS; see there. */
bool cli_descendants_kill(const cli_kill_scope *scope, cli_killed *out);

#endif
