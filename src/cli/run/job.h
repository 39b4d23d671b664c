/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_JOB_H
#define LK_CLI_RUN_JOB_H

/**
 * @file
 * COMMAND and its descendants: the variables that COMMAND gets, its process,
 * and how they are started, signalled, stopped and killed.
 */

#include <sys/types.h>

#include <latchkey/client.h>

#include "cli/output/text.h"
#include "cli/run/descendants.h"
#include "cli/run/signals.h"

/** Appends a variable of COMMAND to a text of "NAME=VALUE", each followed by a
    NUL. */
void cli_environment_add(cli_text *out, const char *name, const char *value);
/** Appends LATCHKEY_SESSION. */
void cli_environment_add_session(cli_text *out, const lk_client *c);

/* COMMAND as a process: what its child does before exec(), and what its end
   means. */

/** Called by the child after fork(), when it is in its process group. Restores
    the signals and executes `argv`. COMMAND is killed when `parent` dies. If
    COMMAND cannot be executed, writes the errno to `exec_result`, the writing
    end of a pipe with O_CLOEXEC, and exits. */
_Noreturn void cli_command_process_exec(char **argv, pid_t parent,
                                        const cli_signals *signals,
                                        int exec_result);
/** Waits until the child has called exec() or has ended, and closes the reading
    end of the pipe. Returns 0 if COMMAND was executed, else the errno. */
int cli_command_process_exec_error(int exec_result);

/** Appends why COMMAND cannot be run, with its name in printable form, and cut
    if it is long. `advice` may be "". */
void cli_command_process_say_not_run(const char *name, const char *reason,
                                     const char *advice, cli_text *out);
/** Returns the exit code of latchkey if COMMAND could not be executed. */
int cli_command_process_failure_code(int error);
/** Returns "; " and advice for that errno, or "". */
const char *cli_command_process_failure_advice(int error);
/** Returns the exit code of latchkey after COMMAND has ended with `status`, as
    of waitpid(). */
int cli_command_process_exit_code(int status);

enum { CLI_WATCHDOG_SIZE = 40 };

/**
 * COMMAND and its descendants: how they are started, signalled, stopped and
 * killed. The supervisor, which is COMMAND's parent, calls these functions;
 * orphans.h is for latchkey.
 */
typedef struct cli_job {
  char **argv;     /**< ends with NULL */
  bool foreground; /**< COMMAND runs in `group`, not in a process group of its
                      own */
  pid_t group;     /**< latchkey's process group */
  bool owns_namespace; /**< latchkey is process 1 of its PID namespace */
  cli_signals signals;
  cli_cgroup cgroup;
  pid_t pid;       /**< process id of COMMAND; 0: not started, or in latchkey:
                      its start was not reported yet */
  int exec_result; /**< reading end of the pipe for cli_job_read_exec_result();
                      -1: it was read, or COMMAND was not started */
  bool reaped;     /**< COMMAND was reaped: `pid` may be another process now */
  char watchdog[CLI_WATCHDOG_SIZE]; /**< in the supervisor: the variable
                                       WATCHDOG_PID of COMMAND, or "" */
  bool adopts_orphans; /**< in the supervisor: cli_descendants_adopt() */
} cli_job;

/**
 * Starts COMMAND with the current environment, in a cgroup if one can be made;
 * it is killed when this process dies. Returns 0 or an errno. On 0,
 * `exec_result` becomes readable when COMMAND was executed or could not be.
 */
int cli_job_start(cli_job *job);
/** Returns 0 if COMMAND was executed, else the errno of execvp(). */
int cli_job_read_exec_result(cli_job *job);

/** Signals COMMAND's process group; in the foreground COMMAND alone. Returns 0
    or an errno: EPERM, no process may be signalled. */
int cli_job_signal(const cli_job *job, int number);
/** Sends TERM, then CONT: a stopped process handles TERM only after it is
    continued. Returns the same. */
int cli_job_terminate(const cli_job *job);
/** Whether COMMAND was started in a cgroup. Without one, cli_job_stop() stops
    nothing. */
bool cli_job_has_cgroup(const cli_job *job);
/** Stops all processes. Returns whether none runs; see cli_descendants_stop().
    `command_ended`: COMMAND has ended. */
bool cli_job_stop(const cli_job *job, bool command_ended);
/** Continues the processes that cli_job_stop() has stopped. */
void cli_job_continue(const cli_job *job);
/** Kills COMMAND and all its descendants; see cli_descendants_kill_round(). */
cli_descendants_left cli_job_kill_round(cli_job *job, cli_killed *out);
/** Repeats cli_job_kill_round(); see cli_descendants_kill(). */
void cli_job_kill(cli_job *job);
/** Whether descendants are found that have left the process group. */
bool cli_job_finds_orphans(const cli_job *job);

#endif
