/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/session/request_batch.h"

/* Limit of the outstanding requests. */
enum { WINDOW = 256 };

/* The `number` of the header. */
typedef struct request_index {
  cli_request_batch *batch;
  size_t at;
} request_index;

static void send_next_request(cli_request_batch *b)
{
  request_index *n = malloc(sizeof *n);

  if (n == NULL) {
    b->err = LK_ERR_NO_MEMORY;
    return;
  }
  *n = (request_index){b, b->next};
  b->err = b->send(b, n->at, n);
  if (b->err != 0) {
    free(n);
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
  fill_window(b);
  if (b->outstanding > 0)
    cli_command_wait(b->command, 0);
  return b->err;
}

cli_request_batch *cli_request_batch_of(void *arg, size_t *at)
{
  request_index *n = arg;

  *at = n->at;
  return n->batch;
}

void cli_request_batch_complete(void *arg, int err)
{
  request_index *n = arg;
  cli_request_batch *b = n->batch;

  free(n);
  b->outstanding--;
  if (b->err == 0)
    b->err = err;
  fill_window(b);
  if (b->outstanding == 0)
    cli_command_complete(b->command, b->err);
}
