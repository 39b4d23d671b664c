/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 7, BATCH = 500 };

typedef struct watch_storm {
  bench *b;
  size_t window;     /* largest number of outstanding reads */
  size_t sent;       /* number of reads sent */
  size_t registered; /* number of watches set */
  size_t fired;      /* number of watches that have fired */
  size_t deleted;    /* number of nodes deleted */
  const char *go;    /* the path of a file whose reader deletes the nodes; NULL:
                        session `deleter` deletes them */
  bench_session deleter;
} watch_storm;

/* ---- setting the watches ------------------------------------------------- */

static void send_watch(watch_storm *s);

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  watch_storm *s = arg;

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
  watch_storm *s = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (err != 0)
    bench_fail("a watch", err);
  s->registered++;
  if (s->sent < s->b->n)
    send_watch(s);
  else if (s->registered == s->b->n)
    bench_done(s->b);
}

static void send_watch(watch_storm *s)
{
  const lk_call call = {
      .size = sizeof call, .on_event = on_event, .watch_arg = s};
  char path[BENCH_PATH_SIZE];

  bench_path(s->b, path, s->sent++, WIDTH);

  int err = lk_get(s->b->first.client, path, &call, on_set, s);

  if (err != 0)
    bench_fail("cannot send a watched read", err);
}

static void set(void *arg)
{
  watch_storm *s = arg;

  while (s->sent < s->window && s->sent < s->b->n)
    send_watch(s);
}

/* ---- firing the watches -------------------------------------------------- */

static void delete_some(watch_storm *s);

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

/* Many deletes in one transaction, so that the cost of the deletes does not
 * hide the cost of the events. */
static void delete_some(watch_storm *s)
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

  int err = lk_multi(s->deleter.client, ops, count, NULL, on_deleted, s);

  if (err != 0)
    bench_fail("cannot send deletes", err);
}

/* Tell the reader of the file `go` to delete the nodes. */
static void signal_reader(watch_storm *s)
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
  watch_storm *s = arg;

  if (s->go != NULL)
    signal_reader(s);
  else
    delete_some(s);
}

void bench_watch_storm(bench *b)
{
  watch_storm s = {
      .b = b, .window = bench_number(b, "window"), .go = getenv("BENCH_GO")};
  bench_cost setting, firing;

  bench_create_nodes(b, b->n, WIDTH, lk_text(""));
  if (s.go == NULL)
    bench_connect(b, &s.deleter, 1);
  bench_region(b, set, &s, &setting);
  bench_print("watch-set", b->n, &setting, " window=%zu", s.window);
  bench_region(b, fire, &s, &firing);
  bench_print("watch-fire", b->n, &firing, " by=%s",
              s.go == NULL ? "us" : "others");
  if (s.go == NULL)
    bench_close(b, &s.deleter, 1);
}
