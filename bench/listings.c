/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

enum { NAME_LEN = 60 };

typedef struct listings {
  bench *b;
  size_t names; /* in each */
  size_t answered;
} listings;

static void ask(listings *l);

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
    ask(l);
}

static void ask(listings *l)
{
  int err =
      lk_get_children(l->b->first.client, bench_root(l->b), NULL, on_names, l);

  if (err != 0)
    bench_fail("cannot ask for a listing", err);
}

static void start(void *arg)
{
  ask(arg);
}

void bench_children(bench *b)
{
  listings l = {.b = b, .names = bench_number(b, "names")};
  bench_cost cost;

  bench_make(b, l.names, NAME_LEN, lk_text(""));
  bench_region(b, start, &l, &cost);
  bench_tell("children", b->n, &cost, " names=%zu", l.names);
}
