/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/scenario.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A foreign locker acquires as Curator does. It creates a node, lists, waits
 * for its predecessor and lists again. Then it does the same in the next
 * directory, if it wants several locks or a permit. A writer may downgrade. On
 * any error it deletes its nodes and starts again.
 */

typedef enum step {
  STEP_IDLE,
  STEP_CREATE,
  STEP_LIST,
  STEP_WAIT,
  STEP_HOLD,
  STEP_CLEAN_UP,
  STEP_FIND_LEFTOVERS
} step;

enum { PLACES_MAX = 3, SUFFIX_DIGITS = 10, ANY_VERSION = -1, AT_ONCE = 0 };

/* A node that the locker needs: its directory, and the part of its name before
 * the number. */
typedef struct foreign_place {
  const char *dir;
  const char *mark;
} foreign_place;

typedef struct sim_foreign_state {
  step step;
  foreign_place places[PLACES_MAX];
  size_t nplaces;
  size_t current;  /* index of the place that it is about to get; all before it
                      are granted */
  char prefix[48]; /* unique; all its node names begin with it */
  char node[PLACES_MAX][112];
  char predecessor[112];
  lk_watch *watch;          /* NULL: none */
  size_t outstanding;       /* number of requests without a reply */
  int32_t limit;            /* number of permits */
  size_t lists_outstanding; /* number of cleanup lists without a reply */
  size_t lists_received;    /* number of cleanup lists with a reply */
  bool may_have_nodes;      /* a cleanup list had an own node, or failed */
} sim_foreign_state;

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

/* The marks are compared by their addresses. */
static const char mutex[] = "lock-", reads[] = "__READ__",
                  writes[] = "__WRIT__", lease[] = "lease-";

static lk_client *client_of(const sim_actor *a)
{
  return a->process->client;
}

static void set_step(sim_actor *a, step next, int64_t in_us)
{
  a->foreign_state->step = next;
  sim_actor_act_in(a, in_us);
}

static int64_t random_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a) / 2);
}

/* Gives up: deletes all its nodes when all its requests are answered. */
static void clean_up(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;

  if (f->watch != NULL)
    (void)lk_watch_remove(client_of(a), f->watch, NULL, NULL);
  f->watch = NULL;
  set_step(a, STEP_CLEAN_UP, sim_actor_T_us(a) / 16);
}

/* Called with the result of sending a request: counts it as outstanding, or
 * cleans up if it was not sent. */
static void count_request(sim_actor *a, int err)
{
  if (err == 0)
    a->foreign_state->outstanding++;
  else
    clean_up(a);
}

/* Called for each reply. false: the locker has given up meanwhile, and ignores
 * the reply. */
static bool count_reply(sim_actor *a)
{
  a->foreign_state->outstanding--;
  return a->foreign_state->step == STEP_WAIT;
}

/* The outcome of the delete is not needed: the lists of a cleanup show it. */
static void send_delete(lk_client *c, const char *path)
{
  (void)lk_delete(c, path, ANY_VERSION, NULL, NULL, NULL);
}

/* ---- choice of locks ---------------------------------------------------- */

static void add_place(sim_foreign_state *f, const char *dir, const char *mark)
{
  f->places[f->nplaces++] = (foreign_place){dir, mark};
}

static void choose_permit(sim_actor *a)
{
  const sim_world *w = a->process->world;

  add_place(a->foreign_state, w->locks[w->semaphore_index], mutex);
  add_place(a->foreign_state, w->locks[w->semaphore_index + 1], lease);
}

/* One queue, or several in the order that all actors use. */
static void choose_queues(sim_actor *a)
{
  const sim_world *w = a->process->world;
  bool has_multilocks = w->lock_mix->kinds[SIM_MULTILOCK] > 0;
  const char *mark = writes;

  if (sim_one_in(&a->rng, 2))
    mark = mutex;
  else if (sim_one_in(&a->rng, 3))
    mark = reads;
  if (!has_multilocks || sim_one_in(&a->rng, 2)) {
    add_place(a->foreign_state,
              w->locks[sim_roll(&a->rng, (uint32_t)w->nqueues)], mark);
    return;
  }
  for (size_t i = 0; i < w->nqueues; i++)
    add_place(a->foreign_state, w->locks[w->reversed ? w->nqueues - 1 - i : i],
              mark);
}

static void start_acquire(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;
  const unsigned *kinds = a->process->world->lock_mix->kinds;
  bool has_semaphore = kinds[SIM_SEMAPHORE] > 0;

  memset(f, 0, sizeof *f);
  snprintf(f->prefix, sizeof f->prefix, "_c_%08x" SIM_FOREIGN "%012x-",
           (unsigned)sim_rng_next(&a->rng), a->number);
  if (has_semaphore && (kinds[SIM_MUTEX] == 0 || sim_one_in(&a->rng, 2)))
    choose_permit(a);
  else
    choose_queues(a);
  set_step(a, STEP_CREATE, AT_ONCE);
}

/* ---- one place in a queue ----------------------------------------------- */

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_foreign_state *f = a->foreign_state;

  (void)c;
  (void)stat;
  if (!count_reply(a))
    return;
  if (err != 0) {
    clean_up(a);
    return;
  }
  snprintf(f->node[f->current], sizeof f->node[0], "%s", path);
  set_step(a, STEP_LIST, AT_ONCE);
}

static void create_node(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;
  const foreign_place *p = &f->places[f->current];
  char path[112];

  snprintf(path, sizeof path, "%s/%s%s", p->dir, f->prefix, p->mark);
  f->step = STEP_WAIT;
  count_request(a,
                lk_create2(client_of(a), path, lk_text(a->name), NULL,
                           LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_created, a));
}

static void on_event(lk_client *c, lk_watch *w, const lk_event *e, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)w;
  a->foreign_state->watch = NULL;
  if (a->foreign_state->step != STEP_WAIT)
    return;
  if (e->type == LK_EVENT_ENDED)
    clean_up(a);
  else
    set_step(a, STEP_LIST, AT_ONCE);
}

/* The options of a request that sets a watch in place of the last one. */
static lk_call replace_watch(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;

  lk_watch_cancel(client_of(a), f->watch);
  f->watch = NULL;
  return (lk_call){.size = sizeof(lk_call),
                   .until_disconnect = true,
                   .on_event = on_event,
                   .watch_arg = a,
                   .watch = &f->watch};
}

/* If the predecessor is gone, the locker lists again. It also does so after a
 * long time without an event: no event is sent for a node that may not be
 * read. */
static void on_predecessor_read(lk_client *c, int err, const lk_bytes *data,
                                const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (err != 0)
    a->foreign_state->watch = NULL;
  if (!count_reply(a))
    return;
  if (err == 0)
    sim_actor_act_in(a, 4 * sim_actor_T_us(a));
  else if (err == LK_ERR_NO_NODE)
    set_step(a, STEP_LIST, AT_ONCE);
  else
    clean_up(a);
}

/* ---- evaluation of a list ----------------------------------------------- */

static const char *mark_of(const char *name)
{
  static const char *const marks[] = {mutex, reads, writes};

  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    const char *at = strstr(name, marks[i]);

    if (at != NULL && strlen(at) == strlen(marks[i]) + SUFFIX_DIGITS)
      return marks[i];
  }
  return NULL;
}

/* Whether nodes with these marks exclude each other. Curator's mutexes and
 * read-write locks ignore each other's nodes. */
static bool excludes(const char *other, const char *own)
{
  bool are_of_one_kind = (own == mutex) == (other == mutex);
  bool both_read = own == reads && other == reads;

  return other != NULL && own != NULL && are_of_one_kind && !both_read;
}

static int compare_numbers(const char *a, const char *b)
{
  return strcmp(a + strlen(a) - SUFFIX_DIGITS, b + strlen(b) - SUFFIX_DIGITS);
}

/* Finds the nearest predecessor; `predecessor` is empty if there is none.
 * false: the own node is missing. */
static bool find_predecessor(sim_foreign_state *f, const lk_bytes *names,
                             size_t count)
{
  const foreign_place *p = &f->places[f->current];
  const char *own = strrchr(f->node[f->current], '/') + 1;
  char nearest[112] = "";
  bool found = false;

  for (size_t i = 0; i < count; i++) {
    char name[96];

    snprintf(name, sizeof name, "%.*s", (int)names[i].len,
             (const char *)names[i].at);
    found = found || strcmp(name, own) == 0;
    if (excludes(mark_of(name), p->mark) && compare_numbers(name, own) < 0 &&
        (nearest[0] == '\0' || compare_numbers(name, nearest) > 0))
      snprintf(nearest, sizeof nearest, "%s", name);
  }
  f->predecessor[0] = '\0';
  if (nearest[0] != '\0')
    snprintf(f->predecessor, sizeof f->predecessor, "%s/%.70s", p->dir,
             nearest);
  return found;
}

/* The place is granted. With a permit the node in the queue is no longer
 * needed. The locker goes on to the next place, or holds. */
static void take_place(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;

  TRACE(a, "is granted, with %s", f->node[f->current]);
  sim_checker_note_foreign_holder(a->process->world->checker,
                                  f->node[f->current]);
  if (f->places[f->current].mark == lease)
    send_delete(client_of(a), f->node[0]);
  if (++f->current < f->nplaces)
    set_step(a, STEP_CREATE, AT_ONCE);
  else
    set_step(a, STEP_HOLD, random_time(a));
}

/* ---- permits ------------------------------------------------------------ */

static bool contains(const lk_bytes *names, size_t count, const char *name)
{
  for (size_t i = 0; i < count; i++) {
    if (names[i].len == strlen(name) &&
        memcmp(names[i].at, name, names[i].len) == 0)
      return true;
  }
  return false;
}

/* The own permit is granted if all permits that exist fit into the limit. */
static void check_permits(sim_actor *a, const lk_bytes *names, size_t count)
{
  sim_foreign_state *f = a->foreign_state;
  const char *own = strrchr(f->node[f->current], '/') + 1;

  if (!contains(names, count, own)) {
    clean_up(a);
  } else if ((int64_t)count <= f->limit) {
    if (f->watch != NULL)
      (void)lk_watch_remove(client_of(a), f->watch, NULL, NULL);
    f->watch = NULL;
    take_place(a);
  } else {
    sim_actor_act_in(a, sim_actor_T_us(a) / 4); /* the limit may have changed */
  }
}

static void on_limit_read(lk_client *c, int err, const lk_bytes *data,
                          const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  const unsigned char *b = data == NULL ? NULL : data->at;

  (void)c;
  (void)stat;
  if (err == 0 && data->len == 4) /* as Curator's SharedCount writes it */
    a->foreign_state->limit =
        (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
                  (uint32_t)b[2] << 8 | b[3]);
}

/* Two lockers wait for permits at the same time only if one has lost its queue
 * node. They could wait for each other for ever, so the one without a queue
 * node gives up. */
static void on_queue_node_checked(lk_client *c, int err, const lk_stat *stat,
                                  void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)stat;
  if (err == LK_ERR_NO_NODE && a->foreign_state->step == STEP_WAIT)
    clean_up(a);
}

/* ---- lists -------------------------------------------------------------- */

static void check_queue(sim_actor *a, const lk_bytes *names, size_t count)
{
  sim_foreign_state *f = a->foreign_state;

  if (!find_predecessor(f, names, count)) {
    clean_up(a);
  } else if (f->predecessor[0] == '\0') {
    take_place(a);
  } else {
    lk_call call = replace_watch(a);

    count_request(
        a, lk_get(client_of(a), f->predecessor, &call, on_predecessor_read, a));
  }
}

static void on_listed(lk_client *c, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_foreign_state *f = a->foreign_state;

  (void)c;
  (void)stat;
  if (err != 0)
    f->watch = NULL;
  if (!count_reply(a))
    return;
  if (err != 0) {
    clean_up(a);
  } else if (f->places[f->current].mark == lease) {
    check_permits(a, names, count);
  } else {
    check_queue(a, names, count);
  }
}

static void list_directory(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;
  const sim_world *w = a->process->world;
  bool needs_permit = f->places[f->current].mark == lease;
  lk_call call = replace_watch(a); /* used only for a directory of permits */

  f->step = STEP_WAIT;
  if (needs_permit) {
    f->limit = w->permits;
    (void)lk_exists(client_of(a), f->node[0], NULL, on_queue_node_checked, a);
  }
  if (needs_permit && w->has_limit_node)
    (void)lk_get(client_of(a), SIM_LIMIT, NULL, on_limit_read, a);
  count_request(a, lk_get_children(client_of(a), f->places[f->current].dir,
                                   needs_permit ? &call : NULL, on_listed, a));
}

/* ---- release and cleanup ------------------------------------------------ */

static void on_downgraded(lk_client *c, int err, const lk_op_result *results,
                          size_t count, void *arg)
{
  sim_actor *a = arg;

  (void)results;
  (void)count;
  if (!count_reply(a))
    return;
  if (err == 0) {
    TRACE(a, "has downgraded");
    send_delete(c, a->foreign_state->node[0]);
  }
  set_step(a, STEP_CLEAN_UP, err == 0 ? random_time(a) : AT_ONCE);
}

/* A writer of a single lock may downgrade. */
static void release_or_downgrade(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;
  char path[144];
  lk_op ops[2];

  if (f->nplaces > 1 || f->places[0].mark != writes || sim_one_in(&a->rng, 2)) {
    clean_up(a);
    return;
  }
  snprintf(path, sizeof path, "%s/%s%s%s", f->places[0].dir, f->prefix, reads,
           f->node[0] + strlen(f->node[0]) - SUFFIX_DIGITS);
  ops[0] = lk_op_check(f->node[0], ANY_VERSION);
  ops[1] = lk_op_create(path, lk_text(a->name), NULL, LK_EPHEMERAL);
  f->step = STEP_WAIT;
  count_request(a, lk_multi(client_of(a), ops, 2, NULL, on_downgraded, a));
}

static void on_cleanup_listed(lk_client *c, int err, const lk_bytes *names,
                              size_t count, const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_foreign_state *f = a->foreign_state;
  const foreign_place *p = &f->places[f->lists_received++];

  (void)stat;
  for (size_t i = 0; i < count; i++) {
    char path[144];

    if (names[i].len < strlen(f->prefix) ||
        memcmp(names[i].at, f->prefix, strlen(f->prefix)) != 0)
      continue;
    f->may_have_nodes = true;
    snprintf(path, sizeof path, "%s/%.*s", p->dir, (int)names[i].len,
             (const char *)names[i].at);
    send_delete(c, path);
  }
  f->may_have_nodes = f->may_have_nodes || (err != 0 && err != LK_ERR_NO_NODE);
  if (--f->lists_outstanding > 0)
    return;
  if (f->may_have_nodes)
    clean_up(a);
  else
    set_step(a, STEP_IDLE, 2 * random_time(a));
}

/* Lists and deletes until no own node is left. A transaction precedes the
 * lists, so that they show all earlier writes. A sync is not enough: a deposed
 * leader that does not know it would answer a sync. */
static void list_for_cleanup(sim_actor *a)
{
  const lk_op check = lk_op_check("/", ANY_VERSION);
  sim_foreign_state *f = a->foreign_state;

  if (f->outstanding > 0 || f->lists_outstanding > 0) {
    clean_up(a);
    return;
  }
  f->step = STEP_FIND_LEFTOVERS;
  f->may_have_nodes = false;
  f->lists_received = 0;
  (void)lk_multi(client_of(a), &check, 1, NULL, NULL, NULL);
  for (size_t i = 0; i < f->nplaces; i++) {
    if (lk_get_children(client_of(a), f->places[i].dir, NULL, on_cleanup_listed,
                        a) == 0)
      f->lists_outstanding++;
    else
      f->may_have_nodes = true; /* not sent, so nodes may be left */
  }
  if (f->lists_outstanding == 0)
    clean_up(a);
}

/* ---- actor -------------------------------------------------------------- */

static void foreign_locker_act(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;

  switch (f->step) {
  case STEP_IDLE:
    a->idle = a->stopping;
    if (!a->stopping)
      start_acquire(a);
    break;
  case STEP_CREATE: create_node(a); break;
  case STEP_LIST: list_directory(a); break;
  case STEP_WAIT: /* for long without an event, or for more permits */
    if (f->current < f->nplaces && f->outstanding == 0)
      list_directory(a);
    break;
  case STEP_HOLD: release_or_downgrade(a); break;
  case STEP_CLEAN_UP: list_for_cleanup(a); break;
  case STEP_FIND_LEFTOVERS: break;
  }
}

static void foreign_locker_start(sim_actor *a)
{
  if (a->foreign_state == NULL)
    a->foreign_state = sim_allocate(sizeof *a->foreign_state);
  memset(a->foreign_state, 0, sizeof *a->foreign_state);
  set_step(a, STEP_IDLE, random_time(a));
}

/* Deletes no node: the nodes end with the session. */
static void foreign_locker_leave(sim_actor *a)
{
  a->foreign_state->watch = NULL; /* it ends with the client */
}

const sim_actor_kind sim_foreign_locker = {.start = foreign_locker_start,
                                           .act = foreign_locker_act,
                                           .leave = foreign_locker_leave,
                                           .reports_idle = true};
