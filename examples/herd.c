/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cost of the naive lock, in which every waiter watches the directory and
 * lists it again after each change. WRITERS sessions queue for the lock, and
 * the first releases it when all are in the queue. Then the sessions do the
 * same with this library's lock, whose nodes have the same names. The replies
 * of the server are counted.
 *
 *     herd [HOSTS [WRITERS]]
 *
 * Do not copy the naive part: it has only the requests that are counted.
 */

#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR "/zk-book"

enum { MOST = 200 };

typedef struct writer {
  lk_client *client;
  lk_listener listener;
  char *node; /* naive lock: the path of its own node */
  bool first; /* naive lock: it has no predecessor */
  bool holds; /* naive lock: it holds or has held the lock */
  lk_rwlock *rw;
} writer;

static writer writers[MOST];
static int count = 20, there, replies, lists, names_listed, granted;

static void fail(const char *what, int err)
{
  if (err == 0)
    return;
  fprintf(stderr, "%s: %s\n", what, lk_error_text(err));
  exit(1);
}

static void on_reply(lk_client *c, const lk_reply *reply, void *arg)
{
  (void)c;
  (void)arg;
  replies += reply->evidence <
             LK_EVIDENCE_RESUMED; /* connect replies are not counted */
}

/* ---- naive -------------------------------------------------------------- */

static void list(writer *w);

/* Called when the writer holds the lock: it releases when all writers are in
 * the queue. */
static void release_naively(writer *w)
{
  if (there < count)
    return;
  w->holds = true;
  granted++;
  fail("cannot delete", lk_delete(w->client, w->node, -1, NULL, NULL, NULL));
  fail("cannot close", lk_client_close(w->client, NULL, NULL));
}

static const char *number_of(const char *name, size_t len)
{
  return name + len - 10;
}

static bool is_first(const writer *w, const lk_bytes *names, size_t n)
{
  const char *own = number_of(w->node, strlen(w->node));

  for (size_t i = 0; i < n; i++) {
    if (names[i].len >= 10 &&
        memcmp(number_of(names[i].at, names[i].len), own, 10) < 0)
      return false;
  }
  return true;
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t n,
                     const lk_stat *stat, void *arg)
{
  writer *w = arg;

  (void)c;
  (void)stat;
  if (w->holds || err == LK_ERR_CLOSED)
    return;
  fail("cannot list", err);
  lists++;
  names_listed += (int)n;
  w->first = err == 0 && is_first(w, names, n);
  if (w->first)
    release_naively(w);
}

static void on_change(lk_client *c, lk_watch *watch, const lk_event *event,
                      void *arg)
{
  writer *w = arg;

  (void)c;
  (void)watch;
  if (event->type != LK_EVENT_ENDED && !w->holds)
    list(w);
}

static void list(writer *w)
{
  lk_watch *watch;
  lk_call call = {.size = sizeof call,
                  .on_event = on_change,
                  .watch_arg = w,
                  .watch = &watch};

  fail("cannot list",
       lk_get_children(w->client, DIR "/naive", &call, on_names, w));
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  writer *w = arg;

  (void)c;
  (void)stat;
  fail("cannot create", err);
  if (err != 0)
    return;
  w->node = strdup(path);
  there++;
  if (w->node != NULL)
    list(w);
  for (int i = 0; i < count; i++) {
    if (writers[i].first && !writers[i].holds)
      release_naively(&writers[i]);
  }
}

static void contend_naively(writer *w)
{
  fail("cannot create",
       lk_create2(w->client, DIR "/naive/w-", lk_text(""), NULL,
                  LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_created, w));
}

/* ---- ours --------------------------------------------------------------- */

static void release_lock(writer *w)
{
  fail("cannot release",
       lk_lock_release(lk_rwlock_write_side(w->rw), NULL, NULL));
  fail("cannot close", lk_client_close(w->client, NULL, NULL));
}

static void on_held(lk_lock *lock, int err, void *arg)
{
  writer *w = arg;

  (void)lock;
  fail("cannot lock", err);
  there++;
  granted += err == 0;
  w->holds = err == 0;
  if (err == 0 && there >= count)
    release_lock(w);
}

static void on_event(lk_lock *lock, const lk_lock_event *event, void *arg)
{
  (void)lock;
  (void)arg;
  if (event->type != LK_LOCK_EVENT_WAITING)
    return;
  there++;
  for (int i = 0; i < count && there == count; i++) {
    if (writers[i].holds)
      release_lock(&writers[i]);
  }
}

static void contend_with_ours(writer *w)
{
  lk_lock_config native = {.size = sizeof native,
                           .layout = LK_LAYOUT_NATIVE,
                           .on_event = on_event,
                           .arg = w};

  fail("no lock", lk_rwlock_new(&w->rw, w->client, DIR "/ours", &native));
  fail("cannot lock",
       lk_lock_acquire(lk_rwlock_write_side(w->rw), 60000, on_held, w));
}

/* ---- both --------------------------------------------------------------- */

static void free_all(lk_ev *ev)
{
  for (int i = 0; i < count; i++) {
    lk_rwlock_free(writers[i].rw);
    free(writers[i].node);
  }
  lk_ev_free(ev); /* frees the clients as well */
}

/* The directories exist now, so the writers can queue. */
static void on_directories(lk_client *c, int err, const char *path,
                           const lk_stat *stat, void *arg)
{
  void (*const *ask)(writer * w) = arg;

  (void)c;
  (void)err;
  (void)path;
  (void)stat;
  for (int i = 0; i < count; i++)
    (*ask)(&writers[i]);
}

/* Let the writers contend by `ask`; returns the number of replies, or -1 after
 * an error. */
static int measure(const char *hosts, const char *dir, void (*ask)(writer *w))
{
  struct ev_loop *loop = ev_default_loop(0);
  lk_client_config config = {.size = sizeof config, .hosts = hosts};
  lk_ev *ev = NULL;

  memset(writers, 0, sizeof writers);
  there = replies = granted = 0;
  fail("cannot begin", lk_ev_new(&ev, loop, NULL));
  for (int i = 0; i < count; i++) {
    writer *w = &writers[i];

    fail("no client", lk_ev_client_new(&w->client, ev, &config));
    w->listener = (lk_listener){.size = sizeof(lk_listener), .reply = on_reply};
    lk_client_attach(w->client, &w->listener);
  }
  lk_create(writers->client, DIR, lk_text(""), NULL, LK_PERSISTENT, NULL, NULL,
            NULL);
  lk_create(writers->client, dir, lk_text(""), NULL, LK_PERSISTENT, NULL,
            on_directories, &ask);
  ev_run(loop, 0); /* until all clients are closed */
  free_all(ev);
  return granted == count ? replies : -1;
}

int main(int argc, char **argv)
{
  const char *hosts = argc > 1 ? argv[1] : "127.0.0.1:2181";

  count = argc > 2 ? atoi(argv[2]) : count;
  if (count < 1 || count > MOST) {
    fprintf(stderr, "1 to %d writers\n", MOST);
    return 1;
  }
  int naive = measure(hosts, DIR "/naive", contend_naively);
  int ours = measure(hosts, DIR "/ours", contend_with_ours);

  printf("naive: %d writers, %d replies, %d lists with %d names\n", count,
         naive, lists, names_listed);
  printf("ours: %d writers, %d replies\n", count, ours);
  return naive < 0 || ours < 0;
}
