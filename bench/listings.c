/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

enum { NAME_LEN = 60 };

typedef struct listings {
  bench *b;
  int (*list)(lk_client *c, const char *path, const lk_call *call,
              lk_children_cb done, void *arg);
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
  int err = l->list(l->b->first.client, bench_root(l->b), NULL, on_names, l);

  if (err != 0)
    bench_fail("cannot ask for a listing", err);
}

static void start(void *arg)
{
  ask(arg);
}

void bench_children(bench *b)
{
  bool plain = bench_is(b, "op", "8"); /* without the Stat */
  listings l = {.b = b,
                .list = plain ? lk_get_children : lk_get_children,
                .names = bench_number(b, "names")};
  bench_cost cost;

  bench_make(b, l.names, NAME_LEN, lk_text(""));
  bench_region(b, start, &l, &cost);
  bench_tell("children", b->n, &cost, " op=%d names=%zu", plain ? 8 : 12,
             l.names);
}
