/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An inventory that reaches 0 only if the lock works. A node has a number of
 * pieces. Each holder reads it and writes one less, without a version. A second
 * holder at the same time would take a piece twice.
 *
 *     inventory [CONTENDERS [SESSIONS [RUNNERS [TURNS]]]]      1000 250 4 5
 *
 * CONTENDERS locks on SESSIONS sessions in this process, on one loop, each
 * acquire once. RUNNERS shell loops of `latchkey run` each acquire TURNS times.
 * LATCHKEY_ZK names the servers, LATCHKEY the command.
 */
#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOCK "/demo/lock"
#define NODE "/demo/inventory"

extern char **environ;

typedef struct contest contest;

typedef struct session {
  contest *contest;
  lk_client *client;
  lk_listener listener;
} session;

typedef struct contender {
  session *session;
  lk_lock *lock;
} contender;

struct contest {
  struct ev_loop *loop;
  lk_ev *ev;
  size_t ncontenders, nsessions, nrunners;
  long turns, pieces;
  contender *contenders;
  contender *holder;
  session *sessions;
  ev_child *runners;
  ev_timer progress;
  size_t connected, granted, runners_left;
  unsigned long replies;
  double started, released, ended;
  long written;     /* the number that the last holder of this process wrote */
  double candidate; /* duration of the last handoff; it counts if no other
                       process has held the lock in between */
  double *handoffs;
  size_t nhandoffs;
  bool created, failed;
};

static double seconds(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(contest *s, const char *what, int err)
{
  if (!s->failed)
    fprintf(stderr, "inventory: %s: %s\n", what, lk_error_text(err));
  s->failed = true;
  ev_break(s->loop, EVBREAK_ALL);
}

static void stop_when_done(contest *s)
{
  if (s->granted == s->ncontenders)
    s->ended = seconds();
  if (s->granted == s->ncontenders && s->runners_left == 0)
    ev_break(s->loop, EVBREAK_ALL);
}

/* ---- one turn ---------------------------------------------------------- */

static void on_written(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  contender *me = arg;
  contest *s = me->session->contest;

  (void)c;
  (void)stat;
  if (err != 0) {
    fail(s, "cannot write the inventory", err);
    return;
  }
  s->holder = NULL;
  s->released = seconds();
  err = lk_lock_release(me->lock, NULL, NULL);
  if (err != 0) {
    fail(s, "cannot release", err);
    return;
  }
  s->granted++;
  stop_when_done(s);
}

static long parse(const lk_bytes *data)
{
  char text[24] = "";

  if (data->len < sizeof text)
    memcpy(text, data->at, data->len);
  return strtol(text, NULL, 10);
}

static void on_read(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  contender *me = arg;
  contest *s = me->session->contest;
  char text[24];

  (void)stat;
  if (err == 0) {
    long left = parse(data);

    if (left == s->written && s->candidate > 0)
      s->handoffs[s->nhandoffs++] = s->candidate;
    s->written = left - 1;
    snprintf(text, sizeof text, "%ld", left - 1);
    err = lk_set(c, NODE, lk_text(text), -1, NULL, on_written, me);
  }
  if (err != 0)
    fail(s, "cannot read the inventory", err);
}

static void on_granted(lk_lock *lock, int err, void *arg)
{
  contender *me = arg;
  contest *s = me->session->contest;

  (void)lock;
  if (err != 0) {
    fail(s, "cannot take the lock", err);
    return;
  }
  s->candidate = s->released > 0 ? seconds() - s->released : 0;
  if (s->holder != NULL) {
    fprintf(stderr, "inventory: TWO HOLDERS in this very process\n");
    exit(1);
  }
  s->holder = me;
  err = lk_get(me->session->client, NODE, NULL, on_read, me);
  if (err != 0)
    fail(s, "cannot ask for the inventory", err);
}

/* ---- opening ----------------------------------------------------------- */

static void on_runner_exit(struct ev_loop *loop, ev_child *w, int events)
{
  contest *s = w->data;

  (void)events;
  ev_child_stop(loop, w);
  if (!WIFEXITED(w->rstatus) || WEXITSTATUS(w->rstatus) != 0) {
    fprintf(stderr, "inventory: a shell loop of `latchkey run` failed\n");
    s->failed = true;
    ev_break(loop, EVBREAK_ALL);
  }
  s->runners_left--;
  stop_when_done(s);
}

static void start_runners(contest *s)
{
  static const char script[] =
      "i=0; while [ $i -lt \"$1\" ]; do "
      "\"$LATCHKEY\" run -q " LOCK " -- sh -c '"
      "n=$(\"$LATCHKEY\" get " NODE ") && "
      "\"$LATCHKEY\" set " NODE " $((n - 1)) >/dev/null' || exit 1; "
      "i=$((i + 1)); done";
  char turns[24];

  snprintf(turns, sizeof turns, "%ld", s->turns);
  for (size_t i = 0; i < s->nrunners; i++) {
    char sh[] = "sh", c[] = "-c", text[sizeof script];
    char *argv[] = {sh, c, text, sh, turns, NULL};
    pid_t pid;

    memcpy(text, script, sizeof script);
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0) {
      fail(s, "cannot start a shell", LK_ERR_SYSTEM);
      return;
    }
    ev_child_init(&s->runners[i], on_runner_exit, pid, 0);
    s->runners[i].data = s;
    ev_child_start(s->loop, &s->runners[i]);
    s->runners_left++;
  }
}

static void on_nodes_created(lk_client *c, int err, const char *path,
                             const lk_stat *stat, void *arg)
{
  contest *s = arg;

  (void)c;
  (void)path;
  (void)stat;
  if (err != 0) {
    fail(s, "cannot create " NODE, err);
    return;
  }
  s->created = true;
  printf("%zu sessions are connected, the inventory holds %ld pieces: go.\n",
         s->nsessions, s->pieces);
  fflush(stdout);
  s->replies = 0;
  s->started = seconds();
  start_runners(s);
  for (size_t i = 0; i < s->ncontenders && !s->failed; i++) {
    contender *me = &s->contenders[i];

    err = lk_lock_acquire(me->lock, -1, on_granted, me);
    if (err != 0)
      fail(s, "cannot ask for the lock", err);
  }
}

static void create_nodes(contest *s)
{
  lk_client *c = s->sessions[0].client;
  char text[24];

  snprintf(text, sizeof text, "%ld", s->pieces);
  int err =
      lk_create(c, "/demo", lk_text(""), NULL, LK_CONTAINER, NULL, NULL, NULL);

  /* A lock creates its directory if that is missing. A thousand locks that
   * start together would all try to create it, so it is created before. */
  if (err == 0)
    err = lk_create(c, LOCK, lk_text(""), NULL, LK_CONTAINER, NULL, NULL, NULL);
  if (err == 0)
    err = lk_create(c, NODE, lk_text(text), NULL, LK_PERSISTENT, NULL,
                    on_nodes_created, s);
  if (err != 0)
    fail(s, "cannot ask for " NODE, err);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  session *me = arg;
  contest *s = me->contest;

  (void)c;
  if (state == LK_STATE_CONNECTED && !s->created) {
    if (++s->connected == s->nsessions)
      create_nodes(s);
  } else if (state == LK_STATE_EXPIRED || state == LK_STATE_AUTH_FAILED) {
    fail(s, "a session ended", err);
  }
}

static void on_reply(lk_client *c, const lk_reply *reply, void *arg)
{
  session *me = arg;

  (void)c;
  (void)reply;
  me->contest->replies++;
}

static int open_session(contest *s, session *me)
{
  lk_client_config config = {.size = sizeof config,
                             .hosts = getenv("LATCHKEY_ZK")};
  int err = lk_ev_client_new(&me->client, s->ev, &config);

  me->contest = s;
  me->listener = (lk_listener){.size = sizeof(lk_listener),
                               .state = on_state,
                               .reply = on_reply,
                               .arg = me};
  if (err == 0)
    lk_client_attach(me->client, &me->listener);
  return err;
}

/* ---- report ------------------------------------------------------------ */

static void on_progress(struct ev_loop *loop, ev_timer *w, int events)
{
  contest *s = w->data;

  (void)loop;
  (void)events;
  if (!s->created)
    printf("  %zu of %zu sessions are connected\n", s->connected, s->nsessions);
  else
    printf("  %5.1f s: %zu of %zu contenders have held the lock, %ld pieces "
           "were left\n",
           seconds() - s->started, s->granted, s->ncontenders, s->written);
  fflush(stdout);
}

static int by_value(const void *a, const void *b)
{
  const double *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

static void report(contest *s)
{
  size_t n = s->nhandoffs;
  double took = s->ended - s->started;
  double work =
      2.0 * (double)s->ncontenders; /* a get and a set for each holder */

  qsort(s->handoffs, n, sizeof *s->handoffs, by_value);
  printf("%zu turns of %zu sessions in one process and %zu of %zu loops of "
         "`latchkey run`\n",
         s->ncontenders, s->nsessions, s->nrunners * (size_t)s->turns,
         s->nrunners);
  printf("grants a second:    %.0f (those of this process, until its last)\n",
         (double)s->ncontenders / took);
  if (n > 0)
    printf("handoff:            median %.2f ms, p99 %.2f ms (release to next "
           "grant, %zu of them)\n",
           s->handoffs[n / 2] * 1e3, s->handoffs[n * 99 / 100] * 1e3, n);
  printf("requests per grant: %.2f (beside the turn's get and set; pings and "
         "heartbeats count)\n",
         ((double)s->replies - work) / (double)s->ncontenders);
}

static void on_counted(lk_client *c, int err, const lk_bytes *data,
                       const lk_stat *stat, void *arg)
{
  contest *s = arg;

  (void)c;
  (void)stat;
  if (err != 0)
    fail(s, "cannot read the inventory", err);
  s->written = err == 0 ? parse(data) : -1;
  ev_break(s->loop, EVBREAK_ALL);
}

/* Read the number that is left in the node. */
static bool count(contest *s)
{
  int err = lk_get(s->sessions[0].client, NODE, NULL, on_counted, s);

  if (err != 0)
    fail(s, "cannot ask for the inventory", err);
  else
    ev_run(s->loop, 0);
  if (s->failed)
    return false;
  printf("inventory:          %ld of %ld pieces left%s\n", s->written,
         s->pieces, s->written == 0 ? "" : ": THE LOCK FAILED");
  return s->written == 0;
}

/* ---- main -------------------------------------------------------------- */

static size_t number(int argc, char **argv, int i, size_t usual)
{
  char *end = NULL;
  unsigned long n = i < argc ? strtoul(argv[i], &end, 10) : usual;

  if (i < argc && (*end != '\0' || argv[i][0] == '\0' || n > 100000)) {
    fprintf(stderr, "usage: inventory [CONTENDERS [SESSIONS [RUNNERS "
                    "[TURNS]]]]\n");
    exit(2);
  }
  return n;
}

static void raise_descriptors(void)
{
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

static int set_up(contest *s)
{
  int err = lk_ev_new(&s->ev, s->loop, NULL);

  for (size_t i = 0; i < s->nsessions && err == 0; i++)
    err = open_session(s, &s->sessions[i]);
  for (size_t i = 0; i < s->ncontenders && err == 0; i++) {
    s->contenders[i].session = &s->sessions[i % s->nsessions];
    err = lk_lock_new(&s->contenders[i].lock, s->contenders[i].session->client,
                      LOCK, NULL);
  }
  return err;
}

static void on_closed(lk_client *c, int err, void *arg)
{
  contest *s = arg;

  (void)c;
  (void)err;
  if (--s->connected == 0)
    ev_break(s->loop, EVBREAK_ALL);
}

static void close_all_sessions(contest *s)
{
  ev_timer_stop(s->loop, &s->progress);
  for (size_t i = 0; i < s->ncontenders; i++)
    lk_lock_free(s->contenders[i].lock);
  s->connected = 0;
  for (size_t i = 0; i < s->nsessions; i++) {
    if (s->sessions[i].client != NULL)
      s->connected += lk_client_close(s->sessions[i].client, on_closed, s) == 0;
  }
  if (s->connected > 0)
    ev_run(s->loop, 0);
  lk_ev_free(s->ev);
}

int main(int argc, char **argv)
{
  contest s = {.loop = ev_default_loop(0),
               .ncontenders = number(argc, argv, 1, 1000),
               .nsessions = number(argc, argv, 2, 250),
               .nrunners = number(argc, argv, 3, 4),
               .turns = (long)number(argc, argv, 4, 5)};

  if (getenv("LATCHKEY") == NULL)
    s.nrunners = 0;
  if (s.ncontenders == 0 || s.nsessions == 0)
    return 2;
  s.pieces = (long)s.ncontenders + (long)s.nrunners * s.turns;
  s.written = s.pieces;
  s.contenders = calloc(s.ncontenders, sizeof *s.contenders);
  s.sessions = calloc(s.nsessions, sizeof *s.sessions);
  s.runners = calloc(s.nrunners + 1, sizeof *s.runners);
  s.handoffs = calloc(s.ncontenders, sizeof *s.handoffs);
  if (s.contenders == NULL || s.sessions == NULL || s.runners == NULL ||
      s.handoffs == NULL)
    return 1;
  raise_descriptors();
  ev_timer_init(&s.progress, on_progress, 1, 1);
  s.progress.data = &s;
  ev_timer_start(s.loop, &s.progress);
  int err = set_up(&s);

  if (err != 0)
    fail(&s, "cannot begin", err);
  else
    ev_run(s.loop, 0);
  bool is_empty = !s.failed && count(&s);

  if (!s.failed)
    report(&s);
  close_all_sessions(&s);
  free(s.contenders);
  free(s.sessions);
  free(s.runners);
  free(s.handoffs);
  return is_empty ? 0 : 1;
}
