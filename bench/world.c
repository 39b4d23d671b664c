/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The program gives up after this time without progress, in seconds. */
enum { PATIENCE = 5 };

_Noreturn void bench_fail(const char *what, int err)
{
  fprintf(stderr, "latchkey-bench: %s: %s\n", what, lk_error_text(err));
  exit(1);
}

void *bench_new(size_t count, size_t size)
{
  void *p = calloc(count, size);

  if (p == NULL)
    bench_fail("cannot begin", LK_ERR_NO_MEMORY);
  return p;
}

void bench_wait(bench *b)
{
  ev_run(b->loop, 0);
}

void bench_done(bench *b)
{
  ev_break(b->loop, EVBREAK_ONE);
}

/* ---- sessions ------------------------------------------------------------ */

static void note_awaited_end(bench *b)
{
  if (--b->awaited > 0)
    return;
  ev_timer_stop(b->loop, &b->progress_timer);
  bench_done(b);
}

/* If a session breaks, the program ends, since its figures would be wrong. */
static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  bench_session *s = arg;

  (void)c;
  if (state == LK_STATE_CONNECTED)
    note_awaited_end(s->b);
  else if (state != LK_STATE_CONNECTING && !s->b->closing)
    bench_fail("a session does not stand any more", err);
}

static void check_progress(struct ev_loop *loop, ev_timer *w, int events)
{
  bench *b = w->data;

  (void)loop;
  (void)events;
  if (b->awaited == b->awaited_before)
    bench_fail(b->hosts, LK_ERR_CONNECT);
  b->awaited_before = b->awaited;
}

static void await(bench *b, size_t count)
{
  b->awaited = count;
  b->awaited_before = count;
  ev_timer_init(&b->progress_timer, check_progress, PATIENCE, PATIENCE);
  b->progress_timer.data = b;
  ev_timer_start(b->loop, &b->progress_timer);
}

static void raise_descriptors(void)
{
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
}

static lk_tls_config tls_config(void)
{
  return (lk_tls_config){.size = sizeof(lk_tls_config),
                         .ca_file = getenv("LATCHKEY_TLS_CACERT"),
                         .cert_file = getenv("LATCHKEY_TLS_CERT"),
                         .key_file = getenv("LATCHKEY_TLS_KEY")};
}

void bench_start_connecting(bench *b, bench_session *sessions, size_t count)
{
  lk_client_config config = {.size = sizeof config,
                             .hosts = b->hosts,
                             .outstanding_limit = SIZE_MAX,
                             .mem = &bench_mem};
  lk_tls_config tls = tls_config();

  if (strncmp(b->hosts, "tls://", 6) == 0)
    config.tls = &tls;
  raise_descriptors();
  await(b, count);
  for (bench_session *s = sessions; s < sessions + count; s++) {
    int err = lk_ev_client_new(&s->client, b->ev, &config);

    if (err != 0)
      bench_fail("cannot make a client", err);
    s->b = b;
    s->listener =
        (lk_listener){.size = sizeof(lk_listener), .state = on_state, .arg = s};
    lk_client_attach(s->client, &s->listener);
  }
}

void bench_connect(bench *b, bench_session *sessions, size_t count)
{
  bench_start_connecting(b, sessions, count);
  bench_wait(b);
}

static void on_closed(lk_client *c, int err, void *arg)
{
  (void)c;
  if (err != 0)
    bench_fail("cannot close a session", err);
  note_awaited_end(arg);
}

void bench_close(bench *b, bench_session *sessions, size_t count)
{
  b->closing = true;
  await(b, count);
  for (bench_session *s = sessions; s < sessions + count; s++) {
    int err = lk_client_close(s->client, on_closed, b);

    if (err != 0)
      bench_fail("cannot close a session", err);
  }
  bench_wait(b);
  for (bench_session *s = sessions; s < sessions + count; s++)
    lk_client_free(s->client);
  b->closing = false;
}
