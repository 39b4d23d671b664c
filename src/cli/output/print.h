/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_PRINT_H
#define LK_CLI_OUTPUT_PRINT_H

#include "cli/exit_code.h"
#include "cli/output/text.h"

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

/** Say "latchkey: VERB PATH: error; hints" and return cli_error_exit_code(err).
 */
int cli_fail_request(const char *verb, const char *path, int err);

#endif
