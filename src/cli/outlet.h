/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTLET_H
#define LK_CLI_OUTLET_H

#include <ev.h>

#include "cli/sink.h"
#include "cli/text.h"

/**
 * A descriptor that lines go to without ever blocking: a reader that sleeps
 * must not cost us the lock. Lines that it does not take wait here, 1 MiB at
 * most; later ones are dropped and counted.
 */
typedef struct cli_outlet {
  cli_sink sink;
  struct ev_loop *loop;
  ev_io watcher;
  cli_text queue;
  size_t sent;    /**< of the queue */
  bool broken;    /**< the reader is gone */
  size_t dropped; /**< lines, since a line was taken */
  /** Make a line that says how many were dropped. May be NULL. */
  void (*say_dropped)(cli_text *out, size_t lines);
} cli_outlet;

void cli_outlet_init(cli_outlet *o, int fd, struct ev_loop *loop,
                     void (*say_dropped)(cli_text *out, size_t lines));
/** Add a line (with its end; before cli_outlet_init() and after the close it
    goes nowhere) and write what can be written now. */
void cli_outlet_put(cli_outlet *o, lk_bytes line);
/** Write the rest, waiting a second at most, and give memory back. */
void cli_outlet_close(cli_outlet *o);

#endif
