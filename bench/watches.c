/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 7, BATCH = 500 };

typedef struct storm {
  bench *b;
  size_t window, asked, standing, fired, deleted;
  const char *go;     /* a file, or NULL */
  bench_session hand; /* deletes the nodes */
} storm;

/* ---- setting ------------------------------------------------------------- */

static void ask(storm *s);

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  storm *s = arg;

  (void)c;
  (void)w;
  if (event->type == LK_EVENT_ENDED)
    bench_fail("a watch", event->err);
  if (++s->fired == s->b->n)
    bench_done(s->b);
}

static void on_set(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  storm *s = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (err != 0)
    bench_fail("a watch", err);
  s->standing++;
  if (s->asked < s->b->n)
    ask(s);
  else if (s->standing == s->b->n)
    bench_done(s->b);
}

static void ask(storm *s)
{
  const lk_call call = {
      .size = sizeof call, .on_event = on_event, .watch_arg = s};
  char path[BENCH_PATH_SIZE];

  bench_path(s->b, path, s->asked++, WIDTH);

  int err = lk_get(s->b->first.client, path, &call, on_set, s);

  if (err != 0)
    bench_fail("cannot ask for a watch", err);
}

static void set(void *arg)
{
  storm *s = arg;

  while (s->asked < s->window && s->asked < s->b->n)
    ask(s);
}

/* ---- firing -------------------------------------------------------------- */

static void delete_some(storm *s);

static void on_deleted(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  (void)c;
  (void)results;
  (void)count;
  if (err != 0)
    bench_fail("a delete", err);
  delete_some(arg);
}

/* Many in one transaction: what it costs to fire shall not hide what it costs
   to be told. */
static void delete_some(storm *s)
{
  static char paths[BATCH][BENCH_PATH_SIZE];
  lk_op ops[BATCH];
  size_t count = 0;

  for (; count < BATCH && s->deleted < s->b->n; count++) {
    bench_path(s->b, paths[count], s->deleted++, WIDTH);
    ops[count] = lk_op_delete(paths[count], -1);
  }
  if (count == 0)
    return;

  int err = lk_multi(s->hand.client, ops, count, NULL, on_deleted, s);

  if (err != 0)
    bench_fail("cannot ask for deletes", err);
}

/* Tell whoever reads the file that it is his turn. */
static void let_go(storm *s)
{
  FILE *f = fopen(s->go, "w");

  if (f == NULL || fprintf(f, "%zu %s\n", s->b->n, bench_root(s->b)) < 0 ||
      fclose(f) != 0) {
    perror(s->go);
    exit(1);
  }
}

static void fire(void *arg)
{
  storm *s = arg;

  if (s->go != NULL)
    let_go(s);
  else
    delete_some(s);
}

void bench_watch_storm(bench *b)
{
  storm s = {
      .b = b, .window = bench_number(b, "window"), .go = getenv("BENCH_GO")};
  bench_cost setting, firing;

  bench_make(b, b->n, WIDTH, lk_text(""));
  if (s.go == NULL)
    bench_connect(b, &s.hand, 1);
  bench_region(b, set, &s, &setting);
  bench_tell("watch-set", b->n, &setting, " window=%zu", s.window);
  bench_region(b, fire, &s, &firing);
  bench_tell("watch-fire", b->n, &firing, " by=%s",
             s.go == NULL ? "us" : "others");
  if (s.go == NULL)
    bench_close(b, &s.hand, 1);
}
