/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_PRINT_H
#define LK_CLI_OUTPUT_PRINT_H

#include "cli/output/exit_code.h"
#include "cli/output/text.h"
#include "net/loop.h"

/** Selects the form of messages on standard error: text, or JSON with an object
    a line: "event" ("failed", "warning", "notice"), "time", "reason", and
    "code" for a failure. */
void cli_messages_in_json(bool json);

/** Lets the loop write messages for which standard error has no room. NULL:
    detaches the loop, which must exist still. */
void cli_messages_attach(lk_loop *loop);
/** Writes what is left of the messages, unless the reader takes nothing for a
    second. Called before the process ends. */
void cli_messages_close(void);

/** Appends a line that reports dropped lines; see cli_line_backlog. */
void cli_dropped_text(cli_text *out, size_t lines);
void cli_dropped_json(cli_text *out, size_t lines);

/** Prints a line "latchkey: …" on standard error. */
void cli_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Prints a line "latchkey: warning: …" on standard error. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Prints a line "latchkey: …" on standard error, for an error that ends
    latchkey with exit code `code`. Returns `code`. */
int cli_fail(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints "latchkey: VERB: " and `line`, or without VERB if `verb` is NULL.
    Frees `line`. Returns `code`. */
int cli_fail_text(int code, const char *verb, cli_text *line);

/** Appends the JSON object of a failure, with a newline. `path` is the path of
    the lock or the group, and `path_key` its key; NULL: no path. */
void cli_failed_json(cli_text *out, const char *path_key, const char *path,
                     int code, const char *reason);

/** Writes all of the text to `fd`. Returns false with errno. */
bool cli_write_all(int fd, const cli_text *out);

/** Writes the text to standard output. Returns CLI_EXIT_DONE, or
    CLI_EXIT_FAILED after it has printed why. */
int cli_print(const cli_text *out);

/** Prints that a write to standard output has failed with the errno `error`.
    Returns CLI_EXIT_FAILED. */
int cli_fail_to_print(int error);

/** Prints "latchkey: VERB PATH: error; hints". Returns
    cli_error_exit_code(err). */
int cli_fail_request(const char *verb, const char *path, int err);

#endif
