/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_JOB_H
#define LK_CLI_RUN_JOB_H

#include "cli/run/cgroup.h"
#include "cli/run/signals.h"

/** The command and how to start it. */
typedef struct cli_job {
  char **argv;     /**< ends with NULL */
  bool foreground; /**< COMMAND runs in `group`, not in a process group of its
                      own */
  pid_t group;     /**< latchkey's process group */
  cli_signals signals;
  cli_cgroup cgroup;
} cli_job;

/**
 * Starts the command with the current environment; it is killed when this
 * process dies. Returns its process id, or -1 with errno. `report` gets a
 * descriptor: if execvp() fails, an errno (an int) can be read from it, else
 * end-of-file.
 */
pid_t cli_job_start(const cli_job *job, int *report);

#endif
