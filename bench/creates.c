/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdio.h>

typedef struct pairs {
  bench *b;
  char path[BENCH_PATH_SIZE];
  size_t window, sent, answered;
} pairs;

static void send_create(pairs *p);

static void on_deleted(lk_client *c, int err, void *arg)
{
  pairs *p = arg;

  (void)c;
  if (err != 0)
    bench_fail("a delete", err);
  p->answered++;
  if (p->sent < p->b->n)
    send_create(p);
  else if (p->answered == p->b->n)
    bench_done(p->b);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)stat;
  if (err == 0)
    err = lk_delete(c, path, -1, NULL, on_deleted, arg);
  if (err != 0)
    bench_fail("a create", err);
}

static void send_create(pairs *p)
{
  p->sent++;

  int err = lk_create(p->b->first.client, p->path, lk_text(""), NULL,
                      LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_created, p);

  if (err != 0)
    bench_fail("cannot send a create", err);
}

static void start(void *arg)
{
  pairs *p = arg;

  while (p->sent < p->window && p->sent < p->b->n)
    send_create(p);
}

void bench_create_delete(bench *b)
{
  pairs p = {.b = b, .window = bench_number(b, "window")};
  bench_cost cost;

  snprintf(p.path, sizeof p.path, "%s/n-", bench_root(b));
  bench_region(b, start, &p, &cost);
  bench_print("create-delete", b->n, &cost, " window=%zu", p.window);
}
