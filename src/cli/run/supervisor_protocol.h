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
 * The messages between latchkey and its supervisor. They pass through a
 * SOCK_SEQPACKET socket with non-blocking sends. While the socket is full, a
 * side keeps one unsent message and merges later ones into it. So no content is
 * lost, and the memory is bounded.
 */

/** The contents of an order. In brackets: the members of cli_order that belong
    to it. */
enum {
  CLI_ORDER_START = 1,     /**< start COMMAND (`lease_deadline`, `margin_ms`,
                                `max_hold_ms`); its environment follows */
  CLI_ORDER_LEASE = 2,     /**< the lease deadline has moved (`lease_deadline`,
                                `margin_ms`) */
  CLI_ORDER_LOST = 4,      /**< the lock is lost */
  CLI_ORDER_SIGNAL = 8,    /**< send these signals to COMMAND (`signals`) */
  CLI_ORDER_EXIT = 16,     /**< exit, without killing processes of COMMAND */
  CLI_ORDER_SIGNALLED = 32 /**< COMMAND has got a signal that may end it: it is
                                to be continued if it is stopped */
};

/** A message from latchkey to its supervisor. */
typedef struct cli_order {
  unsigned what;          /**< CLI_ORDER_..., or-ed */
  uint64_t signals;       /**< bit N: signal N */
  int64_t lease_deadline; /**< on cli_boottime_ms() */
  int64_t margin_ms;      /**< --kill-after: from TERM to the lease deadline */
  int64_t max_hold_ms;    /**< 0: no limit */
} cli_order;

/** The contents of a report, in the order in which latchkey handles those of
    one report. In brackets: the members of cli_supervisor_report that belong to
    them. */
enum {
  CLI_REPORT_STARTED = 1,      /**< COMMAND runs (`child`) */
  CLI_REPORT_NOT_EXECUTED = 2, /**< COMMAND cannot be executed (`error`) */
  CLI_REPORT_NOT_STARTED = 4,  /**< COMMAND was not started (`error`; ETIMEDOUT:
                                the lease deadline had passed) */
  CLI_REPORT_ACTED = 8,        /**< the kill schedule signalled COMMAND
                                  (`action_bits`) */
  CLI_REPORT_STOPPED = 16,     /**< a signal stopped COMMAND (`signal`) */
  CLI_REPORT_ENDED = 32,       /**< COMMAND has ended (`status`) */
  CLI_REPORT_NOT_FOUND = 64,   /**< descendants may still run that cannot be
                                    found, so that they were not killed */
  CLI_REPORT_NONE_LEFT = 128, /**< COMMAND has ended, and no other descendant is
                                   left */
  CLI_REPORT_NO_CGROUP = 256, /**< with CLI_REPORT_STARTED: there is no cgroup
                                   that holds COMMAND */
  CLI_REPORT_REFUSED = 512    /**< `refused_signal` may not be sent to
                                   `refused`; handled before
                                   CLI_REPORT_ACTED */
};

/** A message from the supervisor to latchkey. */
typedef struct cli_supervisor_report {
  unsigned what;        /**< CLI_REPORT_..., or-ed */
  unsigned action_bits; /**< bit N: cli_action N was done */
  pid_t child;          /**< process id of COMMAND */
  int error;            /**< an errno */
  int signal;           /**< the last one that stopped COMMAND */
  int status;           /**< as of waitpid() */
  pid_t refused;        /**< a process of COMMAND */
  int refused_signal;   /**< the last one that was refused */
  int refused_error;    /**< the errno of kill() */
} cli_supervisor_report;

/**
 * Sends a message without blocking. Returns false if the socket has no room:
 * the caller sends again when the socket is writable. Returns true if the
 * message was sent, or if the peer has closed its end: the next receive then
 * reports end-of-file.
 */
bool cli_supervisor_socket_send(int fd, const void *message, size_t size);

/** Returns an order for one signal. */
cli_order cli_order_signal(int number);

/**
 * Merges `more` into an unsent order. The newer lease deadline replaces the
 * older one. Of SIGTSTP and SIGCONT only the later one stays, as in the kernel.
 */
void cli_order_merge(cli_order *into, const cli_order *more);

/** Merges `more` into an unsent report. CLI_ACTION_STOP removes an earlier
    CLI_ACTION_CONT, since a report shows CONT after STOP. */
void cli_supervisor_report_merge(cli_supervisor_report *into,
                                 const cli_supervisor_report *more);

#endif
