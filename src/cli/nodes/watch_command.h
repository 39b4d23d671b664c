/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_WATCH_COMMAND_H
#define LK_CLI_NODES_WATCH_COMMAND_H

/**
 * @file
 * COMMAND of `latchkey watch`, which runs with each state of a node.
 */

#include "cli/options/options.h"
#include "cli/output/text.h"
#include "cli/run/signals.h"
#include "net/loop.h"

/**
 * COMMAND with a text on its standard input, one process at a time. The loop
 * writes the text while COMMAND reads, so a COMMAND that does not read delays
 * nothing. COMMAND leads a process group of its own, and is killed when this
 * process dies.
 */
typedef struct cli_piped_command {
  char **argv;                /**< ends with NULL */
  const cli_signals *signals; /**< open; SIGPIPE is ignored then */
  lk_loop *loop;
  /* Only watch_command.c changes the members below. */
  pid_t pid;       /**< 0: COMMAND does not run */
  int exec_result; /**< for cli_command_process_exec_error(), while it runs */
  cli_text input;
  size_t written;      /**< number of bytes of `input` that were written */
  lk_loop_io input_io; /**< `fd`: the writing end of the pipe; -1: closed */
} cli_piped_command;

/** How COMMAND has ended. */
typedef struct cli_piped_command_end {
  int exec_error; /**< an errno: it could not be executed; else 0 */
  int status;     /**< as of waitpid() */
} cli_piped_command_end;

/** Starts COMMAND, which must not run. It gets the environment of this process
    and `variables`: "NAME=VALUE", each followed by a NUL. Takes the bytes of
    `input`. Returns 0 or an errno. */
int cli_piped_command_start(cli_piped_command *p, const cli_text *variables,
                            cli_text *input);
bool cli_piped_command_runs(const cli_piped_command *p);
/** Signals the process group of COMMAND, if COMMAND runs. */
void cli_piped_command_signal(const cli_piped_command *p, int number);
/** Called after SIGCHLD: reaps all children that have ended. Returns whether
    COMMAND is among them; `out` gets its end then, and the rest of its input is
    discarded. */
bool cli_piped_command_reap(cli_piped_command *p, cli_piped_command_end *out);

/** `latchkey watch [--children] PATH COMMAND`: runs COMMAND with each state of
    the node. `argv` is COMMAND, and ends with NULL. Returns the exit code. */
int cli_watch_command(const cli_options *o, const char *path, char **argv);

#endif
