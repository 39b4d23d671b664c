/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/batch.h"

/* Questions on their way at one time. */
enum { WINDOW = 256 };

typedef struct number {
  cli_batch *batch;
  size_t at;
} number;

static void put_next(cli_batch *b)
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

static void fill(cli_batch *b)
{
  while (b->left < WINDOW && b->next < b->count && b->err == 0)
    put_next(b);
}

int cli_batch_run(cli_batch *b)
{
  fill(b);
  if (b->left > 0)
    cli_ask_wait(b->ask, 0);
  return b->err;
}

cli_batch *cli_batch_of(void *arg, size_t *at)
{
  number *n = arg;

  *at = n->at;
  return n->batch;
}

void cli_batch_answer(void *arg, int err)
{
  number *n = arg;
  cli_batch *b = n->batch;

  free(n);
  b->left--;
  if (b->err == 0)
    b->err = err;
  fill(b);
  if (b->left == 0)
    cli_ask_answer(b->ask, b->err);
}
