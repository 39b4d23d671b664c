/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/session/pipeline.h"

/* Questions on their way at one time. */
enum { WINDOW = 256 };

typedef struct number {
  cli_pipeline *batch;
  size_t at;
} number;

static void put_next(cli_pipeline *b)
{
  number *n = malloc(sizeof *n);

  if (n == NULL) {
    b->err = LK_ERR_NO_MEMORY;
    return;
  }
  *n = (number){b, b->next};
  b->err = b->put(b, n->at, n);
  if (b->err != 0) {
    free(n);
    return;
  }
  b->next++;
  b->left++;
}

static void fill(cli_pipeline *b)
{
  while (b->left < WINDOW && b->next < b->count && b->err == 0)
    put_next(b);
}

int cli_pipeline_run(cli_pipeline *b)
{
  fill(b);
  if (b->left > 0)
    cli_command_wait(b->ask, 0);
  return b->err;
}

cli_pipeline *cli_pipeline_of(void *arg, size_t *at)
{
  number *n = arg;

  *at = n->at;
  return n->batch;
}

void cli_pipeline_complete(void *arg, int err)
{
  number *n = arg;
  cli_pipeline *b = n->batch;

  free(n);
  b->left--;
  if (b->err == 0)
    b->err = err;
  fill(b);
  if (b->left == 0)
    cli_command_complete(b->ask, b->err);
}
