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
  cli_text out;        /**< for standard output */
  bool done;           /**< the current request has completed */
  int err;             /**< its error, or 0 */
  int64_t deadline_ms; /**< of the last call options */
} cli_command;

/** Starts to connect. On false, `complaint` gets one line, and there is nothing
    to close. */
bool cli_command_begin(cli_command *command, const cli_options *o,
                       const char *verb, const char *path, cli_text *complaint);
/** Connects and waits for the session. Returns false after it has printed why
    there is no session. The exit code is CLI_EXIT_FAILED then, and there is
    nothing to close. */
bool cli_command_open(cli_command *command, const cli_options *o,
                      const char *verb, const char *path);
/** Returns the call options, with the deadline, of a request that may be sent
    again after a connection loss. */
lk_call cli_command_repeatable_call(cli_command *command);
/** Returns the call options, with the deadline, of a request that is sent only
    once. */
lk_call cli_command_unrepeatable_call(cli_command *command);
/** Stores the result of the request; for callbacks. */
void cli_command_complete(cli_command *command, int err);
/** Waits until the request has completed. `err` is what the call that sent the
    request has returned; unless it is 0, there is no wait. Returns the error.
 */
int cli_command_wait(cli_command *command, int err);
/** Frees everything and prints nothing. */
void cli_command_free(cli_command *command);
/** Prints the output, or a complaint if `err` is not 0. Closes the session and
    frees everything. Returns the exit code. */
int cli_command_close(cli_command *command, int err);

#endif
