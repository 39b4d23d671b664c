/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_INTERRUPT_H
#define LK_CLI_SESSION_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

#include "net/loop.h"

/**
 * INT, TERM and HUP set `*done`, so that the verb closes its session and ends.
 * They are blocked and read from a signalfd. A signal that was ignored when
 * latchkey was started stays ignored.
 *
 * No other thread may run with these signals unblocked: the kernel would
 * deliver them to that thread, and they would kill latchkey.
 */
typedef struct cli_interrupt {
  bool *done; /**< set by the first signal */
  lk_loop *loop;
  lk_loop_io io; /**< of the signalfd; its descriptor is -1 if there is none */
  sigset_t mask_before;
} cli_interrupt;

/** Whether this process ignores the signal. */
bool cli_signal_is_ignored(int number);

/** Blocks the signals, and keeps the loop running until cli_interrupt_close().
    If no descriptor is left for the signalfd, does neither: the signals kill
    latchkey. */
void cli_interrupt_open(cli_interrupt *interrupt, lk_loop *loop, bool *done);
/** Discards signals that are still pending, and unblocks the signals: later
    ones kill latchkey. */
void cli_interrupt_close(cli_interrupt *interrupt);

#endif
