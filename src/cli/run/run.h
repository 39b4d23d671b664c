/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_RUN_H
#define LK_CLI_RUN_RUN_H

/**
 * @file
 * The verbs that run COMMAND: `run`, `elect` and `join`.
 */

#include "cli/options/options.h"
#include "cli/run/supervisor_handle.h"

/** The words of COMMAND. */
typedef struct cli_command_line {
  char **argv;        /**< ends with NULL */
  char **shell_words; /**< of `$SHELL -c STRING`, allocated; NULL: none */
} cli_command_line;

void cli_command_line_free(cli_command_line *c);

/** Runs the verb `run`. `operands` are LOCK, COMMAND and its arguments; they
    end with NULL. `title` is the memory of argv. Returns the exit code. */
int cli_run(const cli_options *o, char **operands, cli_process_title title);

/** Runs the verb `elect`, as cli_run(). The first operand is the path of the
    election. */
int cli_elect(const cli_options *o, char **operands, cli_process_title title);

/** Runs the verb `join`, as cli_run(). The first operand is the path of the
    group. */
int cli_join(const cli_options *o, char **operands, cli_process_title title);

/** Reports why the command line of one of these verbs is wrong: on standard
    error, and as an event if the options ask for events. Returns the exit code.
 */
int cli_run_refuse(const cli_options *o, const char *line);

#endif
