/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_SUPERVISOR_MAIN_H
#define LK_CLI_RUN_SUPERVISOR_MAIN_H

/**
 * @file
 * The supervisor: the parent process of COMMAND. It follows the orders of
 * latchkey and the kill schedule.
 */

#include <stddef.h>

#include "cli/run/job.h"
#include "cli/run/kill_schedule.h"

/** Runs the supervisor process, which has been forked, until it exits. `fd` is
    its end of the socket to latchkey. */
_Noreturn void cli_supervisor_main(const cli_job *job, cli_on_lost on_lost,
                                   int fd);

#endif
