/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_SUPERVISOR_HANDLE_H
#define LK_CLI_RUN_SUPERVISOR_HANDLE_H

#include "cli/output/text.h"
#include "cli/run/job.h"
#include "cli/run/supervisor_protocol.h"

/**
 * @file
 * The supervisor: a process between latchkey and COMMAND. It starts COMMAND
 * and passes signals on to it. When the lease runs out or latchkey has ended
 * for any reason, it ends COMMAND with all its descendants. It has a timer of
 * its own, so COMMAND is ended in time even if latchkey is stopped or hangs.
 *
 * The supervisor has a process group of its own, and only KILL and STOP act on
 * it. It adopts orphaned descendants of COMMAND, so that a process does not
 * escape by leaving its process group or session.
 */

/** The supervisor as latchkey sees it. */
typedef struct cli_supervisor {
  pid_t pid; /**< 0: no process */
  int fd;    /**< the socket to the supervisor; readable when a report has come
                or the supervisor has ended; -1: none */
  /** The order for which the socket had no room; `what` is 0 if there is none.
      When `fd` is writable, cli_supervisor_flush() sends it. */
  cli_order waiting;
} cli_supervisor;

/** The memory of argv. The supervisor overwrites it with its own name, so that
    a kill by name that is meant for latchkey does not reach it. */
typedef struct cli_process_title {
  char *at;
  size_t len;
} cli_process_title;

/** Forks the supervisor, which has a copy of `job`. Returns 0 or an errno. */
int cli_supervisor_fork(cli_supervisor *supervisor, const cli_job *job,
                        cli_on_lost on_lost, cli_process_title title);
/** Sends the first order, CLI_ORDER_START. `environment` contains variables to
    add, NAME=VALUE, each ended by a NUL. Returns 0 or an errno. */
int cli_supervisor_start_command(const cli_supervisor *supervisor,
                                 const cli_order *order, lk_bytes environment);
/** Sends an order, or merges it into the one that waits for room. */
void cli_supervisor_send_order(cli_supervisor *supervisor,
                               const cli_order *order);
/** Sends the waiting order if the socket has room. */
void cli_supervisor_flush(cli_supervisor *supervisor);
typedef enum cli_received {
  CLI_RECEIVED_END = -1,    /**< the supervisor has ended */
  CLI_RECEIVED_NOTHING = 0, /**< there is no report now */
  CLI_RECEIVED_REPORT = 1
} cli_received;

/** Receives a report, which `out` gets. */
cli_received cli_supervisor_receive(const cli_supervisor *supervisor,
                                    cli_supervisor_report *out);
/** Called after SIGCHLD. Continues the supervisor if another process has
    stopped it. */
void cli_supervisor_continue(const cli_supervisor *supervisor);
/** Sends CLI_ORDER_EXIT, discards all reports, and waits until the process has
    exited. */
void cli_supervisor_close(cli_supervisor *supervisor);

#endif
