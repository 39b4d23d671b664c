/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_BATCH_H
#define LK_CLI_BATCH_H

#include "cli/ask.h"

/**
 * Many questions of one kind, numbered from 0, some hundred of them on their
 * way at a time. Fill in the first members. `count` may grow while it runs.
 */
typedef struct cli_batch {
  cli_ask *ask;
  /** Put question `at`; its callback gets `number` and hands it to
      cli_batch_answer(). Gives what the request returned. */
  int (*put)(struct cli_batch *b, size_t at, void *number);
  void *owner;
  size_t count;
  size_t next;
  size_t left; /**< not yet answered */
  int err;     /**< the first */
} cli_batch;

/** Put them all and wait for the answers; gives the first error. */
int cli_batch_run(cli_batch *b);

/** For callbacks: which batch, and which question. */
cli_batch *cli_batch_of(void *number, size_t *at);
/** The question is answered; `err` ends the batch. `number` is no more. */
void cli_batch_answer(void *number, int err);

#endif
