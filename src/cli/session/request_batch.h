/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_REQUEST_BATCH_H
#define LK_CLI_SESSION_REQUEST_BATCH_H

#include "cli/session/command.h"

/**
 * Many requests of one kind, numbered from 0, a few hundred outstanding at a
 * time. The caller sets the members up to `count`, which may grow during the
 * run.
 */
typedef struct cli_request_batch {
  cli_command *command;
  /** Sends request `at`; its callback gets `number` and passes it to
      cli_request_batch_complete(). Returns the return value of the call. */
  int (*send)(struct cli_request_batch *b, size_t at, void *number);
  void *owner;
  size_t count;
  size_t next;
  size_t left; /**< not completed */
  int err;     /**< the first error */
} cli_request_batch;

/** Sends all requests and waits until they have completed; returns the first
    error. */
int cli_request_batch_run(cli_request_batch *b);

/** For callbacks: returns the batch; `at` gets the number of the request. */
cli_request_batch *cli_request_batch_of(void *number, size_t *at);
/** Called when a request has completed; an `err` ends the batch. Frees
    `number`. */
void cli_request_batch_complete(void *number, int err);

#endif
