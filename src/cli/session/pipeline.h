/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_PIPELINE_H
#define LK_CLI_SESSION_PIPELINE_H

#include "cli/session/command.h"

/**
 * Many questions of one kind, numbered from 0, some hundred of them on their
 * way at a time. Fill in the first members. `count` may grow while it runs.
 */
typedef struct cli_pipeline {
  cli_command *command;
  /** Put question `at`; its callback gets `number` and hands it to
      cli_pipeline_complete(). Gives what the request returned. */
  int (*put)(struct cli_pipeline *b, size_t at, void *number);
  void *owner;
  size_t count;
  size_t next;
  size_t left; /**< not yet answered */
  int err;     /**< the first */
} cli_pipeline;

/** Put them all and wait for the answers; gives the first error. */
int cli_pipeline_run(cli_pipeline *b);

/** For callbacks: which batch, and which question. */
cli_pipeline *cli_pipeline_of(void *number, size_t *at);
/** The question is answered; `err` ends the batch. `number` is no more. */
void cli_pipeline_complete(void *number, int err);

#endif
