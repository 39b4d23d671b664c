/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_PRINT_H
#define LK_CLI_OUTPUT_PRINT_H

#include "cli/output/text.h"

/** Exit codes, as flock and env have them. */
enum cli_exit_code {
  CLI_EXIT_DONE = 0,
  CLI_EXIT_NO = 1,             /**< no such node, or: it is held */
  CLI_EXIT_LOST = 123,         /**< the lock was lost while the command ran */
  CLI_EXIT_BUSY = 124,         /**< not obtained */
  CLI_EXIT_FAILED = 125,       /**< latchkey itself failed */
  CLI_EXIT_NOT_RUNNABLE = 126, /**< the command was found, but cannot be run */
  CLI_EXIT_NOT_FOUND = 127,    /**< the command was not found */
  CLI_EXIT_SIGNAL = 128        /**< and the number of a signal */
};

/** From now on messages on standard error are JSON, an object a line: "event"
    ("failed", "warning", "notice"), "time", "reason", and "code" where it
    failed. */
void cli_print_as_json(bool yes);

/** A line "latchkey: …" on standard error. */
void cli_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The same with "warning: " in front. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The same for an error that ends this program. Returns `code`, its exit
    code. */
int cli_fail(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** "latchkey: VERB: …" with the text, which is freed. `verb` NULL: without. */
int cli_fail_text(int code, const char *verb, cli_text *line);

/** The object of a failure, with its end of line. */
void cli_failed_json(cli_text *out, const char *lock, int code,
                     const char *reason);

/** Write all of the text to `fd`. False with errno. */
bool cli_write_all(int fd, const cli_text *out);

/** Write the text to standard output; CLI_EXIT_DONE, or CLI_EXIT_FAILED once it
   has said why not. */
int cli_print(const cli_text *out);

/** What a library's error means for a verb: CLI_EXIT_NO where the answer of the
    server is a plain no, else CLI_EXIT_FAILED. */
int cli_error_exit_code(int err);

/** What happened, for messages. */
const char *cli_error_reason(int err);

/** What to do where an access list forbids something. */
#define CLI_ADVICE_IDENTITY \
  "--auth-file or --cert gives an identity that the access list names"

/** "; what to do about it", or "". */
const char *cli_error_advice(int err);

/** "; latchkey doctor tells more" where it does, or "". */
const char *cli_error_doctor_advice(int err);

/** Say "latchkey: VERB PATH: error; hints" and return cli_error_exit_code(err).
 */
int cli_fail_request(const char *verb, const char *path, int err);

#endif
