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
 * its own, so a latchkey that is stopped or hangs delays nothing.
 *
 * The supervisor has a process group of its own, ignores all signals but KILL
 * and STOP, and adopts orphaned descendants of COMMAND: a process cannot escape
 * by leaving its process group or session.
 */

/** The supervisor as latchkey sees it. */
typedef struct cli_supervisor {
  pid_t pid; /**< 0: no process */
  int fd;    /**< the socket; readable: a report or end-of-file; -1: none */
  cli_order
      waiting; /**< the order for which the socket had no room; when `fd` is
                  writable, cli_supervisor_flush() sends it; `what` 0: none */
} cli_supervisor;

/** The memory of argv. The supervisor overwrites it with its own name, so that
    a kill by name that is meant for latchkey does not reach it. */
typedef struct cli_process_title {
  char *at;
  size_t len;
} cli_process_title;

/** Forks the supervisor. `job` is copied as it is now. Returns 0 or an errno.
 */
int cli_supervisor_fork(cli_supervisor *g, const cli_job *job,
                        cli_on_lost on_lost, cli_process_title title);
/** Sends the first order, CLI_ORDER_START. `environment` holds variables to
   add, NAME=VALUE, each ended by a NUL. Returns 0 or an errno. */
int cli_supervisor_start_command(const cli_supervisor *g,
                                 const cli_order *order, lk_bytes environment);
/** Sends an order, or merges it into the one that waits for room. */
void cli_supervisor_send_order(cli_supervisor *g, const cli_order *order);
/** Sends the waiting order if the socket has room. */
void cli_supervisor_flush(cli_supervisor *g);
/** Receives a report. Returns 1 with a report in `out`, 0 if there is none now,
   -1 if the supervisor has ended. */
int cli_supervisor_receive(const cli_supervisor *g, cli_supervisor_report *out);
/** Called after SIGCHLD: continues the supervisor if a process has stopped it.
 */
void cli_supervisor_continue(const cli_supervisor *g);
/** Sends CLI_ORDER_EXIT, reads reports to the end, and waits for the process.
 */
void cli_supervisor_close(cli_supervisor *g);

#endif
