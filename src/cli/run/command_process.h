/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_COMMAND_PROCESS_H
#define LK_CLI_RUN_COMMAND_PROCESS_H

#include <sys/types.h>

#include "cli/output/text.h"
#include "cli/run/signals.h"

/**
 * @file
 * COMMAND as a process: what its child does before exec(), and what its end
 * means.
 */

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

#endif
