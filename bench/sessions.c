/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct many {
  bench *b;
  bench_session *sessions;
  ev_io input;
} many;

static long maxrss_kb(void)
{
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

static void dial_all(void *arg)
{
  many *m = arg;

  bench_start_connecting(m->b, m->sessions, m->b->n);
}

void bench_sessions(bench *b)
{
  many m = {.b = b, .sessions = bench_new(b->n, sizeof *m.sessions)};
  bench_cost cost;
  long before = maxrss_kb();

  bench_region(b, dial_all, &m, &cost);
  bench_print("sessions", b->n, &cost,
              " heap_per_session=%zu rss_per_session=%ld", cost.heap / b->n,
              (cost.maxrss_kb - before) * 1024 / (long)b->n);
  bench_close(b, m.sessions, b->n);
  free(m.sessions);
}

/* ---- idle ---------------------------------------------------------------- */

static void on_input(struct ev_loop *loop, ev_io *w, int events)
{
  many *m = w->data;
  char text[256];

  (void)events;
  if (read(w->fd, text, sizeof text) > 0)
    return;
  ev_io_stop(loop, w);
  bench_done(m->b);
}

static void begin_idling(void *arg)
{
  many *m = arg;

  puts("@ready");
  fflush(stdout);
  ev_io_init(&m->input, on_input, STDIN_FILENO, EV_READ);
  m->input.data = m;
  ev_io_start(m->b->loop, &m->input);
}

void bench_idle(bench *b)
{
  many m = {.b = b, .sessions = bench_new(b->n, sizeof *m.sessions)};
  bench_cost cost;

  bench_connect(b, m.sessions, b->n);
  bench_region(b, begin_idling, &m, &cost);
  bench_print("idle", b->n, &cost, " timeout_ms=%d",
              (int)lk_client_timeout_ms(b->first.client));
  bench_close(b, m.sessions, b->n);
  free(m.sessions);
}
