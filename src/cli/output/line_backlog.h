/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_LINE_BACKLOG_H
#define LK_CLI_OUTPUT_LINE_BACKLOG_H

#include "cli/output/nonblocking_fd.h"
#include "cli/output/text.h"
#include "net/loop.h"

/**
 * Writes lines to a descriptor without blocking: a slow reader must not delay a
 * heartbeat. Unwritten lines are queued, up to 1 MiB; later ones are dropped
 * and counted.
 */
typedef struct cli_line_backlog {
  cli_nonblocking_fd out;
  bool is_open;
  lk_loop *loop; /**< watches for room; NULL: what has no room is written with
                      the next line, or at the close */
  lk_loop_io io;
  cli_text queue;
  size_t sent;    /**< number of bytes of the queue that were written */
  int error;      /**< the errno of the write or open that has failed: nothing
                       is written any more. 0: none has */
  size_t dropped; /**< lines dropped since the last queued line */
  /** Appends a line that reports `lines` dropped lines to `out`. May be NULL:
      nothing is reported. */
  void (*say_dropped)(cli_text *out, size_t lines);
} cli_line_backlog;

void cli_line_backlog_init(cli_line_backlog *backlog, int fd, lk_loop *loop,
                           void (*say_dropped)(cli_text *out, size_t lines));
/** Lets another loop watch for room, or none. The old one must exist still. */
void cli_line_backlog_set_loop(cli_line_backlog *backlog, lk_loop *loop);
/** Queues a line, which includes its newline, and writes as much as possible
    now. Before cli_line_backlog_init() and after the close the line is
    discarded. */
void cli_line_backlog_put(cli_line_backlog *backlog, lk_bytes line);
/** Writes the rest of the queue, unless the reader takes nothing for a second.
    Frees the queue. */
void cli_line_backlog_close(cli_line_backlog *backlog);

#endif
