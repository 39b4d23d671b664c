/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/session/pipeline.h"

/* Outstanding requests. */
enum { WINDOW = 256 };

typedef struct request_index {
  cli_pipeline *batch;
  size_t at;
} request_index;

static void send_next(cli_pipeline *b)
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
  b->left++;
}

static void fill_window(cli_pipeline *b)
{
  while (b->left < WINDOW && b->next < b->count && b->err == 0)
    send_next(b);
}

int cli_pipeline_run(cli_pipeline *b)
{
  fill_window(b);
  if (b->left > 0)
    cli_command_wait(b->command, 0);
  return b->err;
}

cli_pipeline *cli_pipeline_of(void *arg, size_t *at)
{
  request_index *n = arg;

  *at = n->at;
  return n->batch;
}

void cli_pipeline_complete(void *arg, int err)
{
  request_index *n = arg;
  cli_pipeline *b = n->batch;

  free(n);
  b->left--;
  if (b->err == 0)
    b->err = err;
  fill_window(b);
  if (b->left == 0)
    cli_command_complete(b->command, b->err);
}
