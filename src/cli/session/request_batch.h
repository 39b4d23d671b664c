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
  /** Sends request `at`, with `number` as the argument of its callback, which
      passes `number` to cli_request_batch_complete(). Returns an error or 0. */
  int (*send)(struct cli_request_batch *b, size_t at, void *number);
  void *owner;        /**< for `send` and the callbacks */
  size_t count;       /**< number of requests */
  size_t next;        /**< the next request to send */
  size_t outstanding; /**< number of sent requests without a reply */
  int err;     /**< the first error */
} cli_request_batch;

/** Sends all requests and waits until they have completed; returns the first
    error. */
int cli_request_batch_run(cli_request_batch *b);

/** For callbacks: returns the batch; `at` gets the number of the request. */
cli_request_batch *cli_request_batch_of(void *number, size_t *at);
/** Called when a request has completed. After an error no more requests are
    sent. Frees `number`. */
void cli_request_batch_complete(void *number, int err);

#endif
