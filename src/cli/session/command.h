/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_COMMAND_H
#define LK_CLI_SESSION_COMMAND_H

#include "cli/session/session.h"

/**
 * The state of a verb: a session, one request at a time, and the output.
 */
typedef struct cli_command {
  const cli_options *options;
  const char *verb;
  const char *path;
  cli_session session;
  cli_text out; /**< for standard output */
  bool done;    /**< the request has completed */
  int err;      /**< the error of the request, or 0 */
} cli_command;

/** Starts to connect. On false, `complaint` gets one line, and there is nothing
    to close. */
bool cli_command_begin(cli_command *a, const cli_options *o, const char *verb,
                       const char *path, cli_text *complaint);
/** Connects and waits for the session. On false it has printed why; the exit
    code is CLI_EXIT_FAILED, and there is nothing to close. */
bool cli_command_open(cli_command *a, const cli_options *o, const char *verb,
                      const char *path);
/** Returns the call options of a request. */
lk_call cli_command_call_options(const cli_command *a, bool repeat);
/** Stores the result of the request; for callbacks. */
void cli_command_complete(cli_command *a, int err);
/** Waits until the request has completed; `err` is the return value of the
    call. Returns the error. */
int cli_command_wait(cli_command *a, int err);
/** Frees everything and prints nothing. */
void cli_command_free(cli_command *a);
/** Prints the output and a complaint about `err`, and closes the session.
    Returns the exit code. */
int cli_command_close(cli_command *a, int err);

#endif
