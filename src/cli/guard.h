/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_GUARD_H
#define LK_CLI_GUARD_H

#include "cli/child.h"
#include "cli/lease.h"
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

/** What latchkey tells the guard. */
typedef enum cli_order_type {
  CLI_ORDER_START,  /**< `lease`, `margin_ms`, `max_hold_ms`; the environment
                         follows */
  CLI_ORDER_LEASE,  /**< `lease` */
  CLI_ORDER_LOST,   /**< the lock is lost */
  CLI_ORDER_SIGNAL, /**< send `signal` */
  CLI_ORDER_BYE     /**< leave alone what is left, and end */
} cli_order_type;

typedef struct cli_order {
  cli_order_type type;
  int signal;
  int64_t lease;     /**< its deadline, on cli_guard_clock() */
  int64_t margin_ms; /**< of the lease */
  int64_t max_hold_ms; /**< 0: without end */
} cli_order;

/** What the guard tells latchkey. */
typedef enum cli_news_type {
  CLI_NEWS_STARTED,     /**< `value`: its process id */
  CLI_NEWS_NOT_STARTED, /**< it cannot be executed; `value`: an errno */
  CLI_NEWS_FAILED,      /**< it was not tried; `value`: an errno, ETIMEDOUT
                             when the lease had run out already */
  CLI_NEWS_ACTED,       /**< on_lost did something: `value` is the cli_act */
  CLI_NEWS_STOPPED,     /**< `value`: the signal that stopped it */
  CLI_NEWS_ENDED,       /**< `value`: its wait status */
  CLI_NEWS_EMPTY        /**< and nothing of it is left */
} cli_news_type;

typedef struct cli_news {
  cli_news_type type;
  int value;
} cli_news;

/** latchkey's end. */
typedef struct cli_guard {
  pid_t pid; /**< 0: none */
  int fd;    /**< becomes readable with news, or at its end; -1: none */
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
/** `environment`: what to add, NAME=VALUE with a NUL behind each; for START. */
bool cli_guard_order(const cli_guard *g, const cli_order *order,
                     lk_bytes environment);
/** 1: there is news; 0: none at present; -1: the guard is gone. */
int cli_guard_news(const cli_guard *g, cli_news *out);
/** Say goodbye and wait until it has ended. */
void cli_guard_close(cli_guard *g);

/** What the guard does; for guard.c. */
_Noreturn void cli_warden(const cli_job *job, cli_policy on_lost, int fd);

#endif
