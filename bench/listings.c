/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

enum { NAME_LEN = 60 };

typedef struct listings {
  bench *b;
  size_t names; /* number of names in each listing */
  size_t answered;
} listings;

static void send_listing(listings *l);

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  listings *l = arg;

  (void)c;
  (void)stat;
  if (err != 0 || count != l->names || names[count - 1].len != NAME_LEN)
    bench_fail("a listing", err);
  if (++l->answered == l->b->n)
    bench_done(l->b);
  else
    send_listing(l);
}

static void send_listing(listings *l)
{
  int err = lk_get_children(l->b->first.client, l->b->root, NULL, on_names, l);

  if (err != 0)
    bench_fail("cannot send a list", err);
}

static void start(void *arg)
{
  send_listing(arg);
}

void bench_children(bench *b)
{
  listings l = {.b = b, .names = bench_number(b, "names")};
  bench_cost cost;

  if (!bench_can_list(b, l.names))
    bench_create_nodes(b, l.names, NAME_LEN, lk_text(""));
  bench_region(b, start, &l, &cost);
  bench_print("children", b->n, &cost, " names=%zu", l.names);
}
