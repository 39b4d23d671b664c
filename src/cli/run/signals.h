/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_SIGNALS_H
#define LK_CLI_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/**
 * The signals that are passed on or end a wait, read from a descriptor. A
 * signal that was ignored when the program began stays ignored, here and in
 * the command, as with nohup.
 */
typedef struct cli_signals {
  int fd; /**< becomes readable */
  sigset_t mask_before;
  bool pipe_ignored; /**< SIGPIPE was ignored when we began */
  bool size_ignored; /**< so was SIGXFSZ */
} cli_signals;

/** One that arrived. */
typedef struct cli_signal {
  int number;
  bool from_terminal; /**< sent by the kernel, to the whole foreground group */
} cli_signal;

/** 0, or an errno. From now on SIGPIPE and SIGXFSZ are ignored: a write tells
    by its error. */
int cli_signals_open(cli_signals *s);
/** Take one; false: none is left. */
bool cli_signals_next(const cli_signals *s, cli_signal *out);
/** Whether it ends a command that only waits. */
bool cli_signal_ends_wait(int number);
/** For a child between fork and exec: all as it was when we began. */
void cli_signals_restore(const cli_signals *s);
/** Stop as SIGTSTP does; returns when continued, or at once where no shell is
    there to do that. */
void cli_signals_stop_self(void);
/** Whether a shell ends its loops when it sees a command die of it: INT, QUIT.
 */
bool cli_signal_ends_loops(int number);
/** Die of it, without a core dump. Returns as process 1, which it does not end.
 */
void cli_signals_die_of(int number);
/** "INT", …; never NULL. */
const char *cli_signal_name(int number);

#endif
