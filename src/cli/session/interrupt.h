/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_INTERRUPT_H
#define LK_CLI_SESSION_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

#include "cli/session/signal_queue.h"

/**
 * INT, TERM and HUP set `*done`, so that the verb closes its session and ends.
 * They are blocked and taken from a queue. A signal that was ignored when
 * latchkey was started stays ignored.
 *
 * No other thread may run with these signals unblocked: the kernel would
 * deliver them to that thread, and they would kill latchkey.
 */
typedef struct cli_interrupt {
  bool *done; /**< set by each signal */
  int number; /**< the first signal; 0: none has come */
  lk_loop *loop;
  cli_signal_queue signals;
  cli_signal_watcher watcher;
  bool open; /**< false: the signals are not blocked */
  sigset_t mask_before;
} cli_interrupt;

/** Whether this process ignores the signal. */
bool cli_signal_is_ignored(int number);

/** Has INT, TERM and HUP end process 1, with exit code 128+N. To process 1, the
    kernel delivers no signal that has neither a handler nor is awaited. Does
    nothing in another process, or for a signal that is ignored. */
void cli_interrupt_end_process_1(void);

/** Blocks the signals, and keeps the loop running until cli_interrupt_close().
    If no descriptor is left for the queue, does neither: the signals kill
    latchkey. */
void cli_interrupt_open(cli_interrupt *interrupt, lk_loop *loop, bool *done);
/** Discards signals that are still pending, and unblocks the signals: later
    ones kill latchkey. */
void cli_interrupt_close(cli_interrupt *interrupt);

#endif
