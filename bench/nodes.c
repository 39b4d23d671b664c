/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdio.h>

enum { WINDOW = 1000, MOST_DIGITS = 64 };

/* The creates of bench_create_nodes(), of which a limited number is outstanding
 * at any time. */
typedef struct maker {
  bench *b;
  size_t count, sent, answered, width;
  lk_bytes data;
} maker;

/* ---- the container ------------------------------------------------------- */

static void on_root(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  (void)c;
  (void)path;
  (void)stat;
  if (err != 0)
    bench_fail("cannot make a container", err);
  bench_done(arg);
}

const char *bench_root_path(bench *b)
{
  /* The session id makes the name unique. */
  lk_session session = lk_client_session(b->first.client);

  if (b->root[0] == '\0')
    snprintf(b->root, sizeof b->root, "/latchkey-bench-%016llx",
             (unsigned long long)session.id);
  return b->root;
}

const char *bench_root(bench *b)
{
  const char *root = bench_root_path(b);

  if (b->has_root)
    return root;
  b->has_root = true;

  int err = lk_create(b->first.client, root, lk_text(""), NULL, LK_CONTAINER,
                      NULL, on_root, b);

  if (err != 0)
    bench_fail("cannot send the create of the container", err);
  bench_wait(b);
  return root;
}

/* ---- what exists --------------------------------------------------------- */

typedef struct probe {
  bench *b;
  size_t found; /* bytes, or names; SIZE_MAX: no such node */
} probe;

static void on_probe_data(lk_client *c, int err, const lk_bytes *data,
                          const lk_stat *stat, void *arg)
{
  probe *p = arg;

  (void)c;
  (void)stat;
  if (err != 0 && err != LK_ERR_NO_NODE)
    bench_fail("cannot read", err);
  if (err == 0)
    p->found = data->len;
  bench_done(p->b);
}

static void on_probe_names(lk_client *c, int err, const lk_bytes *names,
                           size_t count, const lk_stat *stat, void *arg)
{
  probe *p = arg;

  (void)c;
  (void)names;
  (void)stat;
  if (err != 0 && err != LK_ERR_NO_NODE)
    bench_fail("cannot list", err);
  if (err == 0)
    p->found = count;
  bench_done(p->b);
}

bool bench_can_read(bench *b, size_t width, size_t size)
{
  probe p = {.b = b, .found = SIZE_MAX};
  char path[BENCH_PATH_SIZE];

  bench_path(b, path, 0, width);

  int err = lk_get(b->first.client, path, NULL, on_probe_data, &p);

  if (err != 0)
    bench_fail("cannot send a read", err);
  bench_wait(b);
  return p.found == size;
}

bool bench_can_list(bench *b, size_t count)
{
  probe p = {.b = b, .found = SIZE_MAX};
  int err = lk_get_children(b->first.client, bench_root_path(b), NULL,
                            on_probe_names, &p);

  if (err != 0)
    bench_fail("cannot send a list", err);
  bench_wait(b);
  return p.found == count;
}

/* ---- its children -------------------------------------------------------- */

void bench_path(bench *b, char out[BENCH_PATH_SIZE], size_t i, size_t width)
{
  if (width > MOST_DIGITS)
    width = MOST_DIGITS;
  snprintf(out, BENCH_PATH_SIZE, "%s/%0*zu", bench_root_path(b), (int)width, i);
}

static void make_next(maker *m);

static void on_made(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  maker *m = arg;

  (void)c;
  (void)path;
  (void)stat;
  if (err != 0)
    bench_fail("cannot make a node", err);
  if (++m->answered == m->count)
    bench_done(m->b);
  make_next(m);
}

static void make_next(maker *m)
{
  char path[BENCH_PATH_SIZE];

  if (m->sent == m->count)
    return;
  bench_path(m->b, path, m->sent++, m->width);

  int err = lk_create(m->b->first.client, path, m->data, NULL, LK_EPHEMERAL,
                      NULL, on_made, m);

  if (err != 0)
    bench_fail("cannot send the create of a node", err);
}

void bench_create_nodes(bench *b, size_t count, size_t width, lk_bytes data)
{
  maker m = {.b = b, .count = count, .width = width, .data = data};

  (void)bench_root(b);
  for (size_t i = 0; i < WINDOW; i++)
    make_next(&m);
  bench_wait(b);
}

/* ---- the end ------------------------------------------------------------- */

static void on_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  if (err != 0 && err != LK_ERR_NO_NODE)
    bench_fail("cannot delete a node", err);
}

static void delete_node(lk_client *c, const char *path, lk_done_cb done,
                        void *arg)
{
  int err = lk_delete(c, path, -1, NULL, done, arg);

  if (err != 0)
    bench_fail("cannot send a delete", err);
}

static void on_tidy(lk_client *c, int err, void *arg)
{
  on_deleted(c, err, arg);
  bench_done(arg);
}

static void on_left(lk_client *c, int err, const lk_bytes *names, size_t count,
                    const lk_stat *stat, void *arg)
{
  bench *b = arg;

  (void)stat;
  if (err != 0 && err != LK_ERR_NO_NODE)
    bench_fail("cannot list what is left", err);
  for (size_t i = 0; i < count; i++) {
    char path[BENCH_PATH_SIZE];

    snprintf(path, sizeof path, "%s/%.*s", b->root, (int)names[i].len,
             (const char *)names[i].at);
    delete_node(c, path, on_deleted, NULL);
  }
  delete_node(c, b->root, on_tidy, b);
}

void bench_delete_all(bench *b)
{
  if (!b->has_root)
    return;

  int err = lk_get_children(b->first.client, b->root, NULL, on_left, b);

  if (err != 0)
    bench_fail("cannot list what is left", err);
  bench_wait(b);
}
