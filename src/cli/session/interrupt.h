/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_INTERRUPT_H
#define LK_CLI_SESSION_INTERRUPT_H

#include <ev.h>
#include <stdbool.h>

enum { CLI_INTERRUPTS = 3 };

/** INT, TERM and HUP set `*done`, so that the verb closes its session and ends.
    A signal that was ignored when latchkey was started stays ignored. */
typedef struct cli_interrupt {
  bool *done; /**< set by the first signal */
  struct ev_loop *loop;
  ev_signal watchers[CLI_INTERRUPTS];
} cli_interrupt;

void cli_interrupt_open(cli_interrupt *i, struct ev_loop *loop, bool *done);
void cli_interrupt_close(cli_interrupt *i);

#endif
