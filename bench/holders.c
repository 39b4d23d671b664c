/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <latchkey/single.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * What held locks cost the servers: sessions that each hold a lock of their
 * own, and one session that writes from time to time. From one write of that
 * session to the next, the zxid grows by the number of all transactions.
 */

/* The sessions begin in this many groups, spread over a quarter of the session
 * timeout. That is the time between two heartbeats of a session, so heartbeats
 * come evenly, as those of independent programs do. */
enum { GROUPS = 75 };

typedef struct holders {
  bench *b;
  bench_session *sessions;
  lk_lock **locks;
  lk_lease_config lease;
  bool hold;
  size_t awaited; /* number of grants that are awaited */
  ev_timer pause; /* between two groups, and between two writes */
  char node[BENCH_PATH_SIZE];
  size_t writes, written;
  double sent;       /* time of the last write */
  double *latencies; /* of the writes, in microseconds */
  int64_t first_zxid, last_zxid;
} holders;

static void wait_for(holders *h, double seconds,
                     void (*done)(struct ev_loop *, ev_timer *, int))
{
  ev_timer_init(&h->pause, done, seconds > 0 ? seconds : 0, 0);
  h->pause.data = h;
  ev_timer_start(h->b->loop, &h->pause);
}

/* ---- holding ------------------------------------------------------------- */

static void on_granted(lk_lock *lock, int err, void *arg)
{
  holders *h = arg;

  (void)lock;
  if (err != 0)
    bench_fail("an acquire", err);
  if (--h->awaited == 0)
    bench_done(h->b);
}

/* A lock of a single node has no directory, which would have to be deleted. */
static void acquire(holders *h, size_t i)
{
  char path[BENCH_PATH_SIZE];

  bench_path(h->b, path, i + 1, 6); /* node 0 is written */

  int err = lk_lease_configure(h->sessions[i].client, &h->lease);

  if (err == 0)
    err = lk_single_new(&h->locks[i], h->sessions[i].client, path, NULL, NULL);
  if (err == 0)
    err = lk_lock_acquire(h->locks[i], LK_NO_LIMIT, on_granted, h);
  if (err != 0)
    bench_fail("cannot acquire", err);
}

static void on_pause_over(struct ev_loop *loop, ev_timer *t, int events)
{
  holders *h = t->data;

  (void)loop;
  (void)events;
  bench_done(h->b);
}

static void begin_group(holders *h, size_t first, size_t count)
{
  bench_connect(h->b, h->sessions + first, count);
  if (!h->hold)
    return;
  h->awaited = count;
  for (size_t i = first; i < first + count; i++)
    acquire(h, i);
  bench_wait(h->b);
}

static size_t group_begin(const holders *h, size_t group)
{
  return h->b->n * group / GROUPS;
}

static void begin_all(holders *h)
{
  double spread = lk_client_timeout_ms(h->b->first.client) / 4e3;
  double began = bench_clock();

  for (size_t group = 0; group < GROUPS; group++) {
    size_t first = group_begin(h, group), end = group_begin(h, group + 1);
    double end_time = began + spread * (double)(group + 1) / GROUPS;

    if (end > first)
      begin_group(h, first, end - first);
    wait_for(h, end_time - bench_clock(), on_pause_over);
    bench_wait(h->b);
  }
}

/* The servers delete the nodes of one group before they get the next: a client
 * does not wait long for its close. */
static void end_all(holders *h)
{
  for (size_t group = 0; group < GROUPS; group++) {
    size_t first = group_begin(h, group), end = group_begin(h, group + 1);

    for (size_t i = first; i < end; i++)
      lk_lock_free(h->locks[i]);
    if (end > first)
      bench_close(h->b, h->sessions + first, end - first);
  }
}

/* ---- writing ------------------------------------------------------------- */

static void on_time_to_write(struct ev_loop *loop, ev_timer *t, int events);

static void on_written(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  holders *h = arg;

  (void)c;
  if (err != 0)
    bench_fail("a write", err);
  h->latencies[h->written++] = (bench_clock() - h->sent) * 1e6;
  if (h->written == 1)
    h->first_zxid = stat->mzxid;
  h->last_zxid = stat->mzxid;
  if (h->written == h->writes)
    bench_done(h->b);
  else
    wait_for(h, (double)bench_number(h->b, "every") / 1e6, on_time_to_write);
}

static void on_time_to_write(struct ev_loop *loop, ev_timer *t, int events)
{
  holders *h = t->data;

  (void)loop;
  (void)events;
  h->sent = bench_clock();

  int err = lk_set(h->b->first.client, h->node, lk_text("written"), -1, NULL,
                   on_written, h);

  if (err != 0)
    bench_fail("cannot write", err);
}

static void start(void *arg)
{
  holders *h = arg;

  wait_for(h, 0, on_time_to_write);
}

/* ---- the workload -------------------------------------------------------- */

void bench_holders(bench *b)
{
  holders h = {.b = b,
               .sessions = bench_new(b->n, sizeof *h.sessions),
               .locks = bench_new(b->n, sizeof *h.locks),
               .lease = {.size = sizeof h.lease},
               .hold = !bench_is(b, "assurance", "none"),
               .writes = bench_number(b, "writes")};
  bench_cost cost;

  if (bench_is(b, "assurance", "sync"))
    h.lease.assurance = LK_ASSURE_SYNC;
  else if (bench_is(b, "assurance", "ping"))
    h.lease.assurance = LK_ASSURE_PING;
  h.latencies = bench_new(h.writes, sizeof *h.latencies);
  bench_create_nodes(b, 1, 6, lk_text(""));
  bench_path(b, h.node, 0, 6);
  begin_all(&h);
  bench_region(b, start, &h, &cost);

  /* The zxid counts the transactions of all clients. */
  int64_t others = h.last_zxid - h.first_zxid - (int64_t)(h.writes - 1);

  bench_print("holders", b->n, &cost,
              " timeout_ms=%d other_writes_a_minute=%.0f write_p50_us=%.1f "
              "write_p99_us=%.1f",
              (int)lk_client_timeout_ms(b->first.client),
              (double)others / cost.seconds * 60,
              bench_quantile(h.latencies, h.written, 0.5),
              bench_quantile(h.latencies, h.written, 0.99));
  end_all(&h);
  free(h.sessions);
  free(h.locks);
  free(h.latencies);
}
