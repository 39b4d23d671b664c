/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_REQUEST_BATCH_H
#define LK_CLI_SESSION_REQUEST_BATCH_H

#include "cli/session/command.h"

/**
 * Many requests of one kind, a few hundred outstanding at a time. Each request
 * has an index, from 0. The caller zeroes the batch and sets the members up to
 * `count`, which may grow during the run.
 */
typedef struct cli_request_batch {
  cli_command *command;
  /** Sends the request with the index `at`. The argument of its callback is
      `ticket`, which the callback passes to cli_request_batch_complete().
      Returns an error or 0. */
  int (*send)(struct cli_request_batch *b, size_t at, void *ticket);
  void *owner;        /**< for `send` and the callbacks */
  size_t count;       /**< number of requests */
  size_t next;        /**< index of the next request to send */
  size_t outstanding; /**< number of sent requests without a reply */
  int err;            /**< the first error, or 0 */
} cli_request_batch;

/** Sends all requests and waits until they have completed; returns the first
    error. */
int cli_request_batch_run(cli_request_batch *b);

/** For callbacks: returns the batch; `at` gets the index of the request. */
cli_request_batch *cli_request_batch_of(void *ticket, size_t *at);
/** Called by the callback of each request. After an error no more requests are
    sent. Frees `ticket`. */
void cli_request_batch_complete(void *ticket, int err);

#endif
