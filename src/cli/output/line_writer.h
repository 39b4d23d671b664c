/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_LINE_WRITER_H
#define LK_CLI_OUTPUT_LINE_WRITER_H

#include <ev.h>

#include "cli/output/nonblocking.h"
#include "cli/output/text.h"

/**
 * A descriptor that lines go to without ever blocking: a reader that sleeps
 * must not cost us the lock. Lines that it does not take wait here, 1 MiB at
 * most; later ones are dropped and counted.
 */
typedef struct cli_line_writer {
  cli_nonblocking out;
  struct ev_loop *loop;
  ev_io watcher;
  cli_text queue;
  size_t sent;    /**< of the queue */
  bool broken;    /**< the reader is gone */
  size_t dropped; /**< lines, since a line was taken */
  /** Make a line that says how many were dropped. May be NULL. */
  void (*say_dropped)(cli_text *out, size_t lines);
} cli_line_writer;

void cli_line_writer_init(cli_line_writer *o, int fd, struct ev_loop *loop,
                          void (*say_dropped)(cli_text *out, size_t lines));
/** Add a line (with its end; before cli_line_writer_init() and after the close
   it goes nowhere) and write what can be written now. */
void cli_line_writer_put(cli_line_writer *o, lk_bytes line);
/** Write the rest, waiting a second at most, and give memory back. */
void cli_line_writer_close(cli_line_writer *o);

#endif
