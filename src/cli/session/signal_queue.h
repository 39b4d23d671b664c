/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_SIGNAL_QUEUE_H
#define LK_CLI_SESSION_SIGNAL_QUEUE_H

#include <signal.h>
#include <stdbool.h>

#include "net/loop.h"

/**
 * The pending signals of a set, which the caller has blocked. A signalfd tells
 * when there is one. If the system has no signalfd, the queue is looked at
 * every CLI_SIGNAL_POLL_MS.
 */
typedef struct cli_signal_queue {
  sigset_t set;
  int fd; /**< readable while a signal is pending; -1: there is no signalfd */
} cli_signal_queue;

enum { CLI_SIGNAL_POLL_MS = 50 };

/** Returns 0, or an errno if nothing was opened. `fd` is -1 then, too. */
int cli_signal_queue_open(cli_signal_queue *q, const sigset_t *set);
/** Removes a pending signal. Returns false if there is none. */
bool cli_signal_queue_take(const cli_signal_queue *q, siginfo_t *out);
void cli_signal_queue_close(cli_signal_queue *q);

/** Invokes a callback in a loop while a signal is pending. Does not keep the
    loop running. */
typedef struct cli_signal_watcher {
  /** Takes the pending signals. Set by the user, and the rest is zeros. */
  void (*on_signals)(struct cli_signal_watcher *w);
  lk_loop *loop;
  lk_loop_io io;
  lk_loop_timer timer; /**< is used if there is no signalfd */
} cli_signal_watcher;

void cli_signal_watcher_start(cli_signal_watcher *w, lk_loop *loop,
                              const cli_signal_queue *q);
/** Does nothing if `w` is all zeros. */
void cli_signal_watcher_stop(cli_signal_watcher *w);

#endif
