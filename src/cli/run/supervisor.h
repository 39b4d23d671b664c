/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_SUPERVISOR_H
#define LK_CLI_RUN_SUPERVISOR_H

#include "cli/output/text.h"
#include "cli/run/job.h"
#include "cli/run/supervisor_protocol.h"

/**
 * @file
 * The supervisor: a process between latchkey and the command. It starts the
 * command, passes signals on to it, and ends it, with all that came of it, when
 * the lease runs out or when latchkey is gone, however that went. It keeps the
 * time itself, so that a latchkey that is stopped or hangs changes nothing.
 *
 * It is in a process group of its own, obeys no signal but KILL, and adopts
 * what the command leaves behind, so that a process cannot get away from it by
 * leaving its process group or session.
 */

/** latchkey's end. */
typedef struct cli_supervisor {
  pid_t pid; /**< 0: none */
  int fd;    /**< becomes readable with news, or at its end; -1: none */
  cli_order
      waiting; /**< for room in the socket: wait until `fd` is writable,
                    then cli_supervisor_flush(); `what` 0: nothing waits */
} cli_supervisor;

/** The name that processes have for themselves, to be changed in the
   supervisor, so that a kill by name that is meant for latchkey leaves its
   supervisor alive. */
typedef struct cli_process_title {
  char *at;
  size_t len;
} cli_process_title;

/** Fork it. 0, or an errno. `job` is copied as it is now. */
int cli_supervisor_fork(cli_supervisor *g, const cli_job *job,
                        cli_on_lost on_lost, cli_process_title title);
/** The first order, CLI_ORDER_START. `environment`: what to add, NAME=VALUE
   with a NUL behind each. 0, or an errno. */
int cli_supervisor_start_command(const cli_supervisor *g,
                                 const cli_order *order, lk_bytes environment);
/** Send an order, or merge it into the one that waits. */
void cli_supervisor_send_order(cli_supervisor *g, const cli_order *order);
/** Send the order that waits, if there is room. */
void cli_supervisor_flush(cli_supervisor *g);
/** 1: there is news; 0: none at present; -1: the supervisor is gone. */
int cli_supervisor_receive(const cli_supervisor *g, cli_supervisor_report *out);
/** After SIGCHLD: let it go on if a process has stopped it. */
void cli_supervisor_continue(const cli_supervisor *g);
/** Say goodbye, read its news to the end, and wait until it has ended. */
void cli_supervisor_close(cli_supervisor *g);

/** What the supervisor does; for supervisor.c. */
_Noreturn void cli_supervisor_main(const cli_job *job, cli_on_lost on_lost,
                                   int fd);

#endif
