/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_FOLLOW_H
#define LK_CLI_SESSION_FOLLOW_H

#include "cli/output/line_backlog.h"
#include "cli/session/command.h"
#include "cli/session/interrupt.h"

/**
 * A verb that writes lines to standard output until it is interrupted, its
 * reader is gone, or it has an error.
 */
typedef struct cli_follow {
  cli_command command;
  cli_line_backlog out;
  cli_interrupt interrupt;
  bool sigpipe_was_ignored; /**< when latchkey was started */
  bool done;                /**< the verb ends */
  int err;                  /**< why it ends; 0: regularly */
  lk_loop_io stdout_io; /**< reports that the other end of the pipe is closed */
  cli_text newest; /**< a report that waits for a slow reader; empty: none */
  lk_loop_timer newest_timer; /**< runs while `newest` waits */
  int64_t reports_left;       /**< until the verb ends; 0: no limit */
} cli_follow;

/** Connects, as cli_command_open(). The rest of `f` is zeros. */
bool cli_follow_open(cli_follow *f, const cli_options *o, const char *verb,
                     const char *path);
/** Begins the output. The caller starts what writes lines after this. */
void cli_follow_begin(cli_follow *f);
/** Whether the reader is so slow that no more lines should be queued. */
bool cli_follow_is_full(const cli_follow *f);
/** Queues a line, which includes its newline, and frees it. */
void cli_follow_put(cli_follow *f, cli_text *line);
/** Queues a report of the present state: one or more lines, which it frees.
    While the reader is too slow, the report waits, and a newer one replaces it.
    Ends the verb after the reports of -n. */
void cli_follow_put_newest(cli_follow *f, cli_text *report);
/** Ends the verb with `err`. */
void cli_follow_stop(cli_follow *f, int err);
/** Runs until the verb ends. */
void cli_follow_run(cli_follow *f);
/** Writes what is queued, closes the session and frees everything. Returns the
    exit code. */
int cli_follow_end(cli_follow *f);

#endif
