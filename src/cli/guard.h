/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_GUARD_H
#define LK_CLI_GUARD_H

#include "cli/child.h"
#include "cli/messages.h"
#include "cli/text.h"

/**
 * @file
 * The guard: a process between latchkey and the command. It starts the command,
 * passes signals on to it, and ends it, with all that came of it, when the
 * lease runs out or when latchkey is gone, however that went. It keeps the
 * time itself, so that a latchkey that is stopped or hangs changes nothing.
 *
 * It is in a process group of its own, obeys no signal but KILL, and adopts
 * what the command leaves behind, so that a process cannot get away from it by
 * leaving its process group or session.
 */

/** latchkey's end. */
typedef struct cli_guard {
  pid_t pid;         /**< 0: none */
  int fd;            /**< becomes readable with news, or at its end; -1: none */
  cli_order waiting; /**< for room in the socket: wait until `fd` is writable,
                          then cli_guard_flush(); `what` 0: nothing waits */
} cli_guard;

/** The name that processes have for themselves, to be changed in the guard, so
    that a kill by name that is meant for latchkey leaves its guard alive. */
typedef struct cli_title {
  char *at;
  size_t len;
} cli_title;

/** Milliseconds on a clock that runs while the machine sleeps. */
int64_t cli_guard_clock(void);

/** Fork it. 0, or an errno. `job` is copied as it is now. */
int cli_guard_open(cli_guard *g, const cli_job *job, cli_policy on_lost,
                   cli_title title);
/** The first order, CLI_ORDER_START. `environment`: what to add, NAME=VALUE with
    a NUL behind each. 0, or an errno. */
int cli_guard_start(const cli_guard *g, const cli_order *order,
                    lk_bytes environment);
/** Send an order, or merge it into the one that waits. */
void cli_guard_order(cli_guard *g, const cli_order *order);
/** Send the order that waits, if there is room. */
void cli_guard_flush(cli_guard *g);
/** 1: there is news; 0: none at present; -1: the guard is gone. */
int cli_guard_news(const cli_guard *g, cli_news *out);
/** After SIGCHLD: let it go on if a process has stopped it. */
void cli_guard_continue(const cli_guard *g);
/** Say goodbye, read its news to the end, and wait until it has ended. */
void cli_guard_close(cli_guard *g);

/** What the guard does; for guard.c. */
_Noreturn void cli_warden(const cli_job *job, cli_policy on_lost, int fd);

#endif
