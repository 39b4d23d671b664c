/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/session/request_batch.h"

/* Limit of the outstanding requests. */
enum { WINDOW = 256 };

/* The argument of a request's callback. */
typedef struct request_ticket {
  cli_request_batch *batch;
  size_t at; /* index of the request */
} request_ticket;

static void send_next_request(cli_request_batch *b)
{
  request_ticket *t = malloc(sizeof *t);

  if (t == NULL) {
    b->err = LK_ERR_NO_MEMORY;
    return;
  }
  *t = (request_ticket){.batch = b, .at = b->next};
  b->err = b->send(b, t->at, t);
  if (b->err != 0) {
    free(t);
    return;
  }
  b->next++;
  b->outstanding++;
}

static void fill_window(cli_request_batch *b)
{
  while (b->outstanding < WINDOW && b->next < b->count && b->err == 0)
    send_next_request(b);
}

int cli_request_batch_run(cli_request_batch *b)
{
  const int sent = 0; /* no error: cli_command_wait() waits */

  fill_window(b);
  if (b->outstanding > 0)
    cli_command_wait(b->command, sent);
  return b->err;
}

cli_request_batch *cli_request_batch_of(void *ticket, size_t *at)
{
  request_ticket *t = ticket;

  *at = t->at;
  return t->batch;
}

void cli_request_batch_complete(void *ticket, int err)
{
  request_ticket *t = ticket;
  cli_request_batch *b = t->batch;

  free(t);
  b->outstanding--;
  if (b->err == 0)
    b->err = err;
  fill_window(b);
  if (b->outstanding == 0)
    cli_command_complete(b->command, b->err);
}
