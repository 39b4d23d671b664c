/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdlib.h>

typedef struct reads {
  bench *b;
  char path[BENCH_PATH_SIZE];
  size_t size; /* of the node's data */
  size_t window, sent, answered;
  double began; /* time at which the last read was sent */
  double *took; /* latency of each read in microseconds; NULL: not recorded */
} reads;

static void send_get(reads *r);

static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  reads *r = arg;

  (void)c;
  (void)stat;
  if (err != 0 || data->len != r->size)
    bench_fail("a read", err);
  if (r->took != NULL)
    r->took[r->answered] = (bench_clock() - r->began) * 1e6;
  r->answered++;
  if (r->sent < r->b->n)
    send_get(r);
  else if (r->answered == r->b->n)
    bench_done(r->b);
}

static void send_get(reads *r)
{
  if (r->took != NULL)
    r->began = bench_clock();
  r->sent++;

  int err = lk_get(r->b->first.client, r->path, NULL, on_data, r);

  if (err != 0)
    bench_fail("cannot send a read", err);
}

static void start(void *arg)
{
  reads *r = arg;

  while (r->sent < r->window && r->sent < r->b->n)
    send_get(r);
}

static void prepare(reads *r, bench *b)
{
  r->b = b;
  r->size = bench_number(b, "size");

  char *data = bench_new(r->size + 1, 1);

  memset(data, 'x', r->size);
  if (!bench_can_read(b, 1, r->size))
    bench_create_nodes(b, 1, 1, lk_bytes_of(data, r->size));
  bench_path(b, r->path, 0, 1);
  free(data);
}

void bench_get_pipelined(bench *b)
{
  reads r = {.window = bench_number(b, "window")};
  bench_cost cost;

  prepare(&r, b);
  bench_region(b, start, &r, &cost);
  bench_print("get-pipelined", b->n, &cost, " window=%zu", r.window);
}

void bench_get_seq(bench *b)
{
  reads r = {.window = 1, .took = bench_new(b->n, sizeof *r.took)};
  bench_cost cost;

  prepare(&r, b);
  bench_region(b, start, &r, &cost);
  bench_print("get-seq", b->n, &cost, " p50_us=%.1f p99_us=%.1f",
              bench_quantile(r.took, b->n, 0.5),
              bench_quantile(r.took, b->n, 0.99));
  free(r.took);
}
