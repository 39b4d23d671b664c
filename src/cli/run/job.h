/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_JOB_H
#define LK_CLI_RUN_JOB_H

#include "cli/run/cgroup.h"
#include "cli/run/signals.h"

/** The command and how to start it. */
typedef struct cli_job {
  char **argv;     /**< ends with NULL */
  bool foreground; /**< in `group`, not in one of its own */
  pid_t group;     /**< latchkey's own */
  cli_signals signals;
  cli_cgroup cgroup;
} cli_job;

/**
 * Start it with the environment as it is. It is killed when this process dies.
 * Returns its process id and in `report` a descriptor from which comes an
 * errno (an int) when it cannot be executed, and nothing when it can; or -1
 * with errno.
 */
pid_t cli_job_start(const cli_job *job, int *report);

#endif
