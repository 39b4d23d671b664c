/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/scenario.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A foreign locker locks as Curator does, one step after the other: it makes a
 * node, lists, waits for the one before it, lists again; then the same in the
 * next directory, if it wants several or a permit. A writer may turn into a
 * reader of its number. Whatever goes wrong, it takes all back and begins anew.
 */

typedef enum step { REST, ENTER, LIST, WAIT, HOLD, CLEAN, LOOK } step;

enum { MOST_POSTS = 3, SUFFIX = 10 };

/* A node that it wants to have, and what is before its number. */
typedef struct post {
  const char *dir;
  const char *mark;
} post;

typedef struct sim_visit {
  step step;
  post posts[MOST_POSTS];
  size_t nposts;
  size_t at; /* the one it waits for; all before it are had */
  char prefix[48];
  char node[MOST_POSTS][112];
  char pred[112];
  lk_watch *watch;
  size_t asked; /* requests under way */
  int32_t limit;
  size_t unseen; /* directories to be looked at while it cleans up … */
  size_t seen;   /* … and those it has looked at */
  bool some;     /* … where something was left */
} sim_visit;

#define SAY(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static const char mutex[] = "lock-", reads[] = "__READ__",
                  writes[] = "__WRIT__", lease[] = "lease-";

static lk_client *client_of(const sim_actor *a)
{
  return a->process->client;
}

static void go_on(sim_actor *a, step next, int64_t in_us)
{
  a->visit->step = next;
  sim_actor_wait(a, in_us);
}

static int64_t some_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a) / 2);
}

/* The result of a request. */
static void ask(sim_actor *a, int err);

/* Not before all is answered that it has asked for. */
static void clean_up(sim_actor *a)
{
  sim_visit *v = a->visit;

  if (v->watch != NULL)
    lk_watch_cancel(client_of(a), v->watch, true);
  v->watch = NULL;
  go_on(a, CLEAN, sim_actor_T_us(a) / 16);
}

static void ask(sim_actor *a, int err)
{
  a->visit->asked += err == 0;
  if (err != 0)
    clean_up(a);
}

/* false: the answer is of no use any more. */
static bool answered(sim_actor *a)
{
  a->visit->asked--;
  return a->visit->step == WAIT;
}

/* ---- what it wants ------------------------------------------------------ */

static void add_post(sim_visit *v, const char *dir, const char *mark)
{
  v->posts[v->nposts++] = (post){dir, mark};
}

static void want_permit(sim_actor *a)
{
  const sim_world *w = a->process->world;

  add_post(a->visit, w->locks[w->semaphore_at], mutex);
  add_post(a->visit, w->locks[w->semaphore_at + 1], lease);
}

/* One queue, or several in the order that all keep to. */
static void want_queues(sim_actor *a)
{
  const sim_world *w = a->process->world;
  bool several = w->lock_mix->kinds[SIM_MULTILOCK] > 0;
  const char *mark = sim_roll(&a->rng, 2) == 0   ? mutex
                     : sim_roll(&a->rng, 3) == 0 ? reads
                                                 : writes;

  if (!several || sim_roll(&a->rng, 2) == 0) {
    add_post(a->visit, w->locks[sim_roll(&a->rng, (uint32_t)w->nqueues)], mark);
    return;
  }
  for (size_t i = 0; i < w->nqueues; i++)
    add_post(a->visit, w->locks[w->reversed ? w->nqueues - 1 - i : i], mark);
}

static void begin(sim_actor *a)
{
  sim_visit *v = a->visit;
  const unsigned *kinds = a->process->world->lock_mix->kinds;
  bool permits = kinds[SIM_SEMAPHORE] > 0;

  memset(v, 0, sizeof *v);
  snprintf(v->prefix, sizeof v->prefix, "_c_%08x" SIM_FOREIGN "%012x-",
           (unsigned)sim_rng_next(&a->rng), a->number);
  if (permits && (kinds[SIM_MUTEX] == 0 || sim_roll(&a->rng, 2) == 0))
    want_permit(a);
  else
    want_queues(a);
  go_on(a, ENTER, 0);
}

/* ---- a place ------------------------------------------------------------ */

static void on_made(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_visit *v = a->visit;

  (void)c;
  (void)stat;
  if (!answered(a))
    return;
  if (err != 0) {
    clean_up(a);
    return;
  }
  snprintf(v->node[v->at], sizeof v->node[0], "%s", path);
  go_on(a, LIST, 0);
}

static void enter(sim_actor *a)
{
  sim_visit *v = a->visit;
  const post *p = &v->posts[v->at];
  char path[112];

  snprintf(path, sizeof path, "%s/%s%s", p->dir, v->prefix, p->mark);
  v->step = WAIT;
  ask(a, lk_create2(client_of(a), path, lk_text(a->name), NULL,
                    LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_made, a));
}

static void on_event(lk_client *c, lk_watch *w, const lk_event *e, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)w;
  a->visit->watch = NULL;
  if (a->visit->step != WAIT)
    return;
  if (e->type == LK_EVENT_ENDED)
    clean_up(a);
  else
    go_on(a, LIST, 0);
}

static lk_call watched(sim_actor *a)
{
  sim_visit *v = a->visit;

  if (v->watch != NULL)
    lk_watch_cancel(client_of(a), v->watch, false);
  v->watch = NULL;
  return (lk_call){.size = sizeof(lk_call),
                   .until_disconnect = true,
                   .on_event = on_event,
                   .watch_arg = a,
                   .watch = &v->watch};
}

/* It has gone already: look again. So it does after a long time, since nobody
 * is told of the end of a node that nobody may read. */
static void on_pred(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (err != 0)
    a->visit->watch = NULL;
  if (!answered(a))
    return;
  if (err == 0)
    sim_actor_wait(a, 4 * sim_actor_T_us(a));
  else if (err == LK_ERR_NO_NODE)
    go_on(a, LIST, 0);
  else
    clean_up(a);
}

/* ---- what a list says --------------------------------------------------- */

static const char *mark_of(const char *name)
{
  static const char *const marks[] = {mutex, reads, writes};

  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    const char *at = strstr(name, marks[i]);

    if (at != NULL && strlen(at) == strlen(marks[i]) + SUFFIX)
      return marks[i];
  }
  return NULL;
}

/* It looks at its own family only. */
static bool keeps_out(const char *other, const char *own)
{
  if (other == NULL || own == NULL || (own == mutex) != (other == mutex))
    return false;
  return own != reads || other == writes;
}

static int compare(const char *a, const char *b)
{
  return strcmp(a + strlen(a) - SUFFIX, b + strlen(b) - SUFFIX);
}

/* The nearest that keeps it out; false: it is not in the list itself. */
static bool find_pred(sim_visit *v, const lk_bytes *names, size_t count)
{
  const post *p = &v->posts[v->at];
  const char *own = strrchr(v->node[v->at], '/') + 1;
  char nearest[112] = "";
  bool found = false;

  for (size_t i = 0; i < count; i++) {
    char name[96];

    snprintf(name, sizeof name, "%.*s", (int)names[i].len,
             (const char *)names[i].at);
    found = found || strcmp(name, own) == 0;
    if (keeps_out(mark_of(name), p->mark) && compare(name, own) < 0 &&
        (nearest[0] == '\0' || compare(name, nearest) > 0))
      snprintf(nearest, sizeof nearest, "%s", name);
  }
  v->pred[0] = '\0';
  if (nearest[0] != '\0')
    snprintf(v->pred, sizeof v->pred, "%s/%.70s", p->dir, nearest);
  return found;
}

static void enter_next(sim_actor *a)
{
  sim_visit *v = a->visit;

  SAY(a, "is in, at %s", v->node[v->at]);
  sim_checker_entered(a->process->world->checker, v->node[v->at]);
  if (v->posts[v->at].mark == lease)
    (void)lk_delete(client_of(a), v->node[0], -1, NULL, NULL, NULL);
  if (++v->at < v->nposts)
    go_on(a, ENTER, 0);
  else
    go_on(a, HOLD, some_time(a));
}

/* ---- permits ------------------------------------------------------------ */

static void judge_permits(sim_actor *a, const lk_bytes *names, size_t count)
{
  sim_visit *v = a->visit;
  const char *own = strrchr(v->node[v->at], '/') + 1;
  bool found = false;

  for (size_t i = 0; i < count; i++)
    found = found || (names[i].len == strlen(own) &&
                      memcmp(names[i].at, own, names[i].len) == 0);
  if (!found) {
    clean_up(a);
  } else if ((int64_t)count <= v->limit) {
    if (v->watch != NULL)
      lk_watch_cancel(client_of(a), v->watch, true);
    v->watch = NULL;
    enter_next(a);
  } else {
    sim_actor_wait(a, sim_actor_T_us(a) / 4); /* the limit may have changed */
  }
}

static void on_limit(lk_client *c, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  const unsigned char *b = data == NULL ? NULL : data->at;

  (void)c;
  (void)stat;
  if (err == 0 && data->len == 4)
    a->visit->limit = (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
                                (uint32_t)b[2] << 8 | b[3]);
}

/* Of two whose places an operator deleted each would wait for the other's
 * permit. */
static void on_place(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)stat;
  if (err == LK_ERR_NO_NODE && a->visit->step == WAIT)
    clean_up(a);
}

/* ---- lists -------------------------------------------------------------- */

static void judge_queue(sim_actor *a, const lk_bytes *names, size_t count)
{
  sim_visit *v = a->visit;

  if (!find_pred(v, names, count)) {
    clean_up(a);
  } else if (v->pred[0] == '\0') {
    enter_next(a);
  } else {
    lk_call call = watched(a);

    ask(a, lk_get(client_of(a), v->pred, &call, on_pred, a));
  }
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_visit *v = a->visit;

  (void)c;
  (void)stat;
  if (err != 0)
    v->watch = NULL;
  if (!answered(a))
    return;
  if (err != 0) {
    clean_up(a);
  } else if (v->posts[v->at].mark == lease) {
    judge_permits(a, names, count);
  } else {
    judge_queue(a, names, count);
  }
}

static void list(sim_actor *a)
{
  sim_visit *v = a->visit;
  const sim_world *w = a->process->world;
  bool permits = v->posts[v->at].mark == lease;
  lk_call call = watched(a);

  v->step = WAIT;
  if (permits) {
    v->limit = w->permits;
    (void)lk_exists(client_of(a), v->node[0], NULL, on_place, a);
  }
  if (permits && w->limited)
    (void)lk_get(client_of(a), SIM_LIMIT, NULL, on_limit, a);
  ask(a, lk_get_children(client_of(a), v->posts[v->at].dir,
                         permits ? &call : NULL, on_names, a));
}

/* ---- it goes ------------------------------------------------------------ */

static void on_turned(lk_client *c, int err, const lk_op_result *results,
                      size_t count, void *arg)
{
  sim_actor *a = arg;

  (void)results;
  (void)count;
  if (!answered(a))
    return;
  if (err == 0) {
    SAY(a, "reads now");
    (void)lk_delete(c, a->visit->node[0], -1, NULL, NULL, NULL);
  }
  go_on(a, CLEAN, err == 0 ? some_time(a) : 0);
}

/* A writer of one lock may go on as a reader. */
static void leave_it(sim_actor *a)
{
  sim_visit *v = a->visit;
  char path[144];
  lk_op ops[2];

  if (v->nposts > 1 || v->posts[0].mark != writes ||
      sim_roll(&a->rng, 2) == 0) {
    clean_up(a);
    return;
  }
  snprintf(path, sizeof path, "%s/%s%s%s", v->posts[0].dir, v->prefix, reads,
           v->node[0] + strlen(v->node[0]) - SUFFIX);
  ops[0] = lk_op_check(v->node[0], -1);
  ops[1] = lk_op_create(path, lk_text(a->name), NULL, LK_EPHEMERAL);
  v->step = WAIT;
  ask(a, lk_multi(client_of(a), ops, 2, NULL, on_turned, a));
}

static void on_left(lk_client *c, int err, const lk_bytes *names, size_t count,
                    const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_visit *v = a->visit;
  const post *p = &v->posts[v->seen++];

  (void)stat;
  for (size_t i = 0; i < count; i++) {
    char path[144];

    if (names[i].len < strlen(v->prefix) ||
        memcmp(names[i].at, v->prefix, strlen(v->prefix)) != 0)
      continue;
    v->some = true;
    snprintf(path, sizeof path, "%s/%.*s", p->dir, (int)names[i].len,
             (const char *)names[i].at);
    (void)lk_delete(c, path, -1, NULL, NULL, NULL);
  }
  v->some = v->some || (err != 0 && err != LK_ERR_NO_NODE);
  if (--v->unseen > 0)
    return;
  if (v->some)
    clean_up(a);
  else
    go_on(a, REST, 2 * some_time(a));
}

/* Until nothing is left, whatever it remembers. A leader that is deposed and
 * does not know it answers a sync, but no transaction. */
static void look(sim_actor *a)
{
  const lk_op check = lk_op_check("/", -1);
  sim_visit *v = a->visit;

  if (v->asked > 0 || v->unseen > 0) {
    clean_up(a);
    return;
  }
  v->step = LOOK;
  v->some = false;
  v->seen = 0;
  (void)lk_multi(client_of(a), &check, 1, NULL, NULL, NULL);
  for (size_t i = 0; i < v->nposts; i++) {
    if (lk_get_children(client_of(a), v->posts[i].dir, NULL, on_left, a) == 0)
      v->unseen++;
    else
      v->some = true; /* too many are under way, or the client has ended */
  }
  if (v->unseen == 0)
    clean_up(a);
}

/* ---- the trade ---------------------------------------------------------- */

static void act(sim_actor *a)
{
  sim_visit *v = a->visit;

  switch (v->step) {
  case REST:
    a->idle = a->stopping;
    if (!a->stopping)
      begin(a);
    break;
  case ENTER: enter(a); break;
  case LIST: list(a); break;
  case WAIT:
    if (v->at < v->nposts && v->asked == 0)
      list(a);
    break;
  case HOLD: leave_it(a); break;
  case CLEAN: look(a); break;
  case LOOK: break;
  }
}

static void start(sim_actor *a)
{
  if (a->visit == NULL)
    a->visit = sim_allocate(sizeof *a->visit);
  memset(a->visit, 0, sizeof *a->visit);
  go_on(a, REST, some_time(a));
}

/* Its nodes end with the session. */
static void leave(sim_actor *a)
{
  sim_unschedule(&a->process->world->agenda, &a->job);
  a->visit->step = WAIT;
  a->visit->watch = NULL;
}

const sim_actor_kind sim_foreign_locker = {start, act, leave, .rests = true};
