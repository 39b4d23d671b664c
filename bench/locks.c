/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdlib.h>

typedef struct lock_bench lock_bench;

/* A session that acquires the lock again and again. */
typedef struct contender {
  lock_bench *lock_bench;
  lk_lock *lock;
  size_t left; /* number of acquires that are left */
  ev_timer hold;
} contender;

struct lock_bench {
  bench *b;
  size_t ncontenders, nsessions;
  double hold; /* seconds for which the lock is held */
  contender *contenders;
  bench_session *sessions;
  size_t turns;     /* number of acquires of all contenders */
  size_t grants;    /* number of grants so far */
  double released;  /* time of the last release; 0: none yet */
  double *handoffs; /* microseconds from a release to the next grant */
};

/* ---- a turn -------------------------------------------------------------- */

static void want(contender *me);

static void leave(contender *me)
{
  lock_bench *w = me->lock_bench;

  w->released = bench_clock();

  int err = lk_lock_release(me->lock, NULL, NULL);

  if (err != 0)
    bench_fail("cannot release", err);
  if (--me->left > 0)
    want(me);
  else if (w->grants == w->turns)
    bench_done(w->b);
}

static void on_held_enough(struct ev_loop *loop, ev_timer *t, int events)
{
  (void)loop;
  (void)events;
  leave(t->data);
}

static void on_granted(lk_lock *lock, int err, void *arg)
{
  contender *me = arg;
  lock_bench *w = me->lock_bench;

  (void)lock;
  if (err != 0)
    bench_fail("an acquire", err);
  if (w->grants > 0)
    w->handoffs[w->grants - 1] = (bench_clock() - w->released) * 1e6;
  w->grants++;
  if (w->hold <= 0) {
    leave(me);
    return;
  }
  ev_timer_init(&me->hold, on_held_enough, w->hold, 0);
  me->hold.data = me;
  ev_timer_start(w->b->loop, &me->hold);
}

static void want(contender *me)
{
  int err = lk_lock_acquire(me->lock, -1, on_granted, me);

  if (err != 0)
    bench_fail("cannot acquire", err);
}

static void start(void *arg)
{
  lock_bench *w = arg;

  for (size_t i = 0; i < w->ncontenders; i++)
    want(&w->contenders[i]);
}

/* ---- gathering ----------------------------------------------------------- */

static void make_contenders(lock_bench *w, const char *path, size_t each)
{
  w->contenders = bench_new(w->ncontenders, sizeof *w->contenders);
  for (size_t i = 0; i < w->ncontenders; i++) {
    contender *me = &w->contenders[i];
    int err = lk_lock_new(&me->lock, w->sessions[i % w->nsessions].client, path,
                          NULL);

    if (err != 0)
      bench_fail("cannot make a lock", err);
    me->lock_bench = w;
    me->left = each;
  }
}

static void connect_contenders(lock_bench *w, bench *b, size_t each)
{
  const char *path = bench_root(b);

  w->b = b;
  w->turns = w->ncontenders * each;
  w->handoffs = bench_new(w->turns, sizeof *w->handoffs);
  w->sessions = bench_new(w->nsessions, sizeof *w->sessions);
  bench_start_connecting(b, w->sessions, w->nsessions);
  make_contenders(w, path, each);
  bench_wait(b);
}

static void free_contenders(lock_bench *w)
{
  for (size_t i = 0; i < w->ncontenders; i++)
    lk_lock_free(w->contenders[i].lock);
  bench_close(w->b, w->sessions, w->nsessions);
  free(w->contenders);
  free(w->sessions);
  free(w->handoffs);
}

/* ---- the workloads ------------------------------------------------------- */

void bench_lock_uncontended(bench *b)
{
  lock_bench w = {.ncontenders = 1, .nsessions = 1};
  bench_cost cost;

  connect_contenders(&w, b, b->n);
  bench_region(b, start, &w, &cost);
  bench_print("lock-uncontended", w.turns, &cost,
              " acquire_p50_us=%.1f acquire_p99_us=%.1f",
              bench_quantile(w.handoffs, w.turns - 1, 0.5),
              bench_quantile(w.handoffs, w.turns - 1, 0.99));
  free_contenders(&w);
}

void bench_lock_contended(bench *b)
{
  bool shared = bench_is(b, "mode", "shared");
  lock_bench w = {.ncontenders = b->n,
                  .nsessions = shared ? 1 : b->n,
                  .hold = (double)bench_number(b, "hold") / 1e6};
  bench_cost cost;

  connect_contenders(&w, b, bench_number(b, "each"));
  bench_region(b, start, &w, &cost);
  bench_print("lock-contended", w.turns, &cost,
              " mode=%s handoff_p50_us=%.1f handoff_p99_us=%.1f",
              shared ? "shared" : "sessions",
              bench_quantile(w.handoffs, w.turns - 1, 0.5),
              bench_quantile(w.handoffs, w.turns - 1, 0.99));
  free_contenders(&w);
}
