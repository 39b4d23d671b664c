/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_COMMAND_H
#define LK_CLI_SESSION_COMMAND_H

#include "cli/session/session.h"

/**
 * A verb at work: a session, one question at a time, and what it prints.
 */
typedef struct cli_command {
  const cli_options *options;
  const char *verb;
  const char *path;
  cli_session session;
  cli_text out; /**< for standard output */
  bool done;    /**< the question has been answered */
  int err;      /**< the answer */
} cli_command;

/** Begin to connect. False, with one line in `complaint`: it cannot even begin;
    there is nothing to close. */
bool cli_command_begin(cli_command *a, const cli_options *o, const char *verb,
                       const char *path, cli_text *complaint);
/** Connect. False once it has said why not: the exit code is CLI_EXIT_FAILED,
   and there is nothing to close. */
bool cli_command_open(cli_command *a, const cli_options *o, const char *verb,
                      const char *path);
/** The options for a request. */
lk_call cli_command_call_options(const cli_command *a, bool repeat);
/** Take note of an answer; for callbacks. */
void cli_command_complete(cli_command *a, int err);
/** Wait for the answer; `err` is what the request returned. Gives the error. */
int cli_command_wait(cli_command *a, int err);
/** Give everything back without a word. */
void cli_command_free(cli_command *a);
/** Print and close; `err` is complained about. Gives the exit code. */
int cli_command_close(cli_command *a, int err);

#endif
