/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_SIGNALS_H
#define LK_CLI_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "cli/session/signal_queue.h"

/**
 * The signals that are passed to COMMAND or end a wait, taken from a queue. A
 * signal that was ignored when latchkey was started stays ignored, in latchkey
 * and in COMMAND, as with nohup(1).
 */
typedef struct cli_signals {
  bool opened;
  cli_signal_queue queue;
  sigset_t mask_before;
  bool sigpipe_ignored; /**< SIGPIPE was ignored when latchkey was started */
  bool sigxfsz_ignored; /**< likewise SIGXFSZ */
} cli_signals;

/** A signal that was received. */
typedef struct cli_signal {
  int number;
  bool from_terminal; /**< sent by the kernel, to the whole foreground group */
} cli_signal;

/** Opens the queue. Returns 0 or an errno. From now on SIGPIPE and SIGXFSZ
    are ignored, and writes fail with EPIPE or EFBIG. */
int cli_signals_open(cli_signals *s);
/** Takes the next signal. Returns false if none is pending. */
bool cli_signals_next(const cli_signals *s, cli_signal *out);
/** Whether the signal ends a run that waits for the lock. */
bool cli_signal_ends_wait(int number);
/** Whether the signal is to end COMMAND, or may do so. */
bool cli_signal_may_end_command(int number);
/** Restores the signal mask and dispositions of the start; for a child between
    fork() and exec(). */
void cli_signals_restore(const cli_signals *s);
/** Whether a shell with job control could continue this process: an ancestor in
    the session, but in another process group. True if that is not known. */
bool cli_signals_have_shell(void);
/** Stops this process as SIGTSTP does. Returns true after SIGCONT. If no shell
    could continue the process, returns false at once. */
bool cli_signals_stop_self(void);
/** Whether a shell ends its loop when a command in it dies of the signal. That
    holds for INT and QUIT. */
bool cli_signal_ends_loops(int number);
/** Kills this process with the signal, without a core dump. Returns if this is
    process 1, which the signal does not kill. */
void cli_signals_die_of(int number);
/** "INT", …; never NULL. */
const char *cli_signal_name(int number);

#endif
