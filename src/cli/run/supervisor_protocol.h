/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_SUPERVISOR_PROTOCOL_H
#define LK_CLI_RUN_SUPERVISOR_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run/kill_schedule.h"

/**
 * @file
 * What latchkey and its supervisor tell each other, over a socket that keeps
 * the bounds of messages and never blocks. Each side has one message that
 * waits for room in the socket; what it has to say meanwhile is merged into
 * that one. So no message is lost, and the memory is bounded.
 */

/** What an order holds; members of cli_order that belong to it in brackets. */
enum {
  CLI_ORDER_START = 1,  /**< start COMMAND (`lease`, `margin_ms`,
                             `max_hold_ms`); its environment follows */
  CLI_ORDER_LEASE = 2,  /**< the lease deadline has moved (`lease`,
                             `margin_ms`) */
  CLI_ORDER_LOST = 4,   /**< the lock is lost */
  CLI_ORDER_SIGNAL = 8, /**< send these signals to COMMAND (`signals`) */
  CLI_ORDER_EXIT = 16   /**< end, and leave alone what is left of COMMAND */
};

/** What latchkey tells its supervisor. */
typedef struct cli_order {
  unsigned what;       /**< CLI_ORDER_..., or-ed */
  uint64_t signals;    /**< bit N: signal N */
  int64_t lease;       /**< the deadline, on cli_boottime_ms() */
  int64_t margin_ms;   /**< of the lease: --kill-after */
  int64_t max_hold_ms; /**< 0: without end */
} cli_order;

/** What news holds, in the order in which it happened. */
enum {
  CLI_REPORT_STARTED = 1,      /**< COMMAND runs (`child`) */
  CLI_REPORT_NOT_EXECUTED = 2, /**< COMMAND cannot be executed (`error`) */
  CLI_REPORT_NOT_TRIED = 4,    /**< its start was not tried (`error`; ETIMEDOUT:
                               the lease had run out already) */
  CLI_REPORT_ACTED = 8,        /**< --on-lost did something (`acts`) */
  CLI_REPORT_STOPPED = 16,     /**< a signal stopped COMMAND (`signal`) */
  CLI_REPORT_ENDED = 32,       /**< COMMAND has ended (`status`) */
  CLI_REPORT_NONE_LEFT = 64    /**< and no descendant of it is left */
};

/** What the supervisor tells latchkey. */
typedef struct cli_supervisor_report {
  unsigned what; /**< CLI_NEWS_..., or-ed */
  unsigned acts; /**< bit N: the cli_action N */
  pid_t child;   /**< process id of COMMAND */
  int error;     /**< an errno */
  int signal;    /**< the last one that stopped COMMAND */
  int status;    /**< as waitpid() has it */
} cli_supervisor_report;

/**
 * Send it without waiting. False: there is no room, so it has to be sent again
 * when the socket is writable. True: it was sent, or the other side is gone,
 * which reading from the socket tells.
 */
bool cli_supervisor_socket_send(int fd, const void *message, size_t size);

/** An order for one signal. */
cli_order cli_order_signal(int number);

/**
 * Add `more` to an order that was not sent yet: the newer lease counts, and of
 * a signal that stops and SIGCONT the newer one, as in the kernel.
 */
void cli_order_merge(cli_order *into, const cli_order *more);

/** The same with news. What was stopped after it was continued is stopped. */
void cli_supervisor_report_merge(cli_supervisor_report *into,
                                 const cli_supervisor_report *more);

#endif
