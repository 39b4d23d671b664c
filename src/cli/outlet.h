/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTLET_H
#define LK_CLI_OUTLET_H

#include <ev.h>

#include "cli/text.h"

/**
 * A descriptor that lines go to without ever blocking: a reader that sleeps
 * must not cost us the lock. What it does not take waits here, 1 MiB at most;
 * then lines are lost. The descriptor's own flags are left alone, since others
 * share them.
 */
typedef struct cli_outlet {
  int fd;
  struct ev_loop *loop;
  ev_io watcher;
  cli_text queue;
  size_t sent; /**< of the queue */
  bool broken; /**< nobody reads any more */
} cli_outlet;

void cli_outlet_init(cli_outlet *o, int fd, struct ev_loop *loop);
/** Add a line (with its end; before cli_outlet_init() and after the close it
    goes nowhere) and write what can be written now. */
void cli_outlet_put(cli_outlet *o, lk_bytes line);
/** Write the rest, waiting a second at most, and give memory back. */
void cli_outlet_close(cli_outlet *o);

#endif
