/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A foreign waiter stands in a queue as Curator's read-write lock does: a WRIT
 * node, which it may turn into a READ node of the same number before it deletes
 * it, or a READ node from the start. It does not wait for its turn, since it
 * protects nothing: it is in the way of those who wait behind it.
 */

typedef enum step { REST, MAKE, STAND, TURN, DROP, LOOK, WAIT } step;

typedef struct sim_visit {
  step step;
  char prefix[48]; /* of its nodes' names */
  char dir[SIM_LOCK_PATH];
  char node[112];   /* "" when it has none that it knows of */
  char reader[112]; /* what it turns into */
  bool is_reader;
} sim_visit;

#define SAY(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static int64_t some_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a));
}

static void go_on(sim_actor *a, step next, int64_t in_us)
{
  a->visit->step = next;
  if (next != WAIT)
    sim_actor_wait(a, in_us);
}

/* Whatever went wrong, what it has is found by its name. */
static void clean_up(sim_actor *a)
{
  go_on(a, LOOK, sim_actor_T_us(a) / 16);
}

/* ---- it comes ----------------------------------------------------------- */

static void on_made(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_visit *v = a->visit;

  (void)c;
  (void)stat;
  if (err != 0) {
    clean_up(a);
    return;
  }
  SAY(a, "stands at %s", path);
  snprintf(v->node, sizeof v->node, "%s", path);
  go_on(a, v->is_reader ? DROP : STAND, some_time(a));
}

static void make(sim_actor *a)
{
  sim_visit *v = a->visit;
  const sim_world *w = a->process->world;
  char path[104];
  unsigned uuid = (unsigned)sim_rng_next(&a->rng);

  v->is_reader = sim_roll(&a->rng, 4) == 0;
  snprintf(v->dir, sizeof v->dir, "%s",
           w->locks[sim_roll(&a->rng, (uint32_t)w->nqueues)]);
  snprintf(v->prefix, sizeof v->prefix, "_c_%08x" SIM_FOREIGN "%012x-", uuid,
           a->number);
  snprintf(path, sizeof path, "%s/%s%s", v->dir, v->prefix,
           v->is_reader ? "__READ__" : "__WRIT__");
  v->node[0] = '\0';
  v->reader[0] = '\0';
  go_on(a, WAIT, 0);
  if (lk_create2(a->process->client, path, lk_text(a->name), NULL,
                 LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_made, a) != 0)
    clean_up(a);
}

/* ---- it turns into a reader --------------------------------------------- */

static void on_turned(lk_client *c, int err, const lk_op_result *results,
                      size_t count, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)results;
  (void)count;
  if (err != 0) {
    clean_up(a);
    return;
  }
  SAY(a, "is also at %s", a->visit->reader);
  (void)lk_delete(a->process->client, a->visit->node, -1, NULL, NULL, NULL);
  go_on(a, LOOK, some_time(a));
}

static void turn(sim_actor *a)
{
  sim_visit *v = a->visit;
  size_t len = strlen(v->node);
  lk_op ops[2];

  snprintf(v->reader, sizeof v->reader, "%s/%s__READ__%s", v->dir, v->prefix,
           v->node + len - 10);
  ops[0] = lk_op_check(v->node, -1);
  ops[1] = lk_op_create(v->reader, lk_text(a->name), NULL, LK_EPHEMERAL);
  go_on(a, WAIT, 0);
  if (lk_multi(a->process->client, ops, 2, NULL, on_turned, a) != 0)
    clean_up(a);
}

/* ---- it goes ------------------------------------------------------------ */

static void on_listed(lk_client *c, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  const sim_visit *v = a->visit;
  bool some = false;

  (void)stat;
  for (size_t i = 0; i < count; i++) {
    char path[136];

    if (names[i].len < strlen(v->prefix) ||
        memcmp(names[i].at, v->prefix, strlen(v->prefix)) != 0)
      continue;
    some = true;
    snprintf(path, sizeof path, "%s/%.*s", v->dir, (int)names[i].len,
             (const char *)names[i].at);
    (void)lk_delete(c, path, -1, NULL, NULL, NULL);
  }
  if (some || (err != 0 && err != LK_ERR_NO_NODE))
    clean_up(a);
  else
    go_on(a, REST, 2 * some_time(a));
}

static void look(sim_actor *a)
{
  lk_client *c = a->process->client;

  go_on(a, WAIT, 0);
  if (lk_sync(c, a->visit->dir, NULL, NULL, NULL) != 0 ||
      lk_get_children(c, a->visit->dir, NULL, on_listed, a) != 0)
    clean_up(a);
}

/* ---- the trade ---------------------------------------------------------- */

static void act(sim_actor *a)
{
  sim_visit *v = a->visit;

  if (a->stopping && v->step != REST && v->step != WAIT)
    v->step = LOOK;
  switch (v->step) {
  case REST:
    a->idle = a->stopping;
    if (!a->stopping)
      make(a);
    break;
  case MAKE: make(a); break;
  case STAND: go_on(a, sim_roll(&a->rng, 2) == 0 ? TURN : DROP, 0); break;
  case TURN: turn(a); break;
  case DROP:
  case LOOK: look(a); break;
  case WAIT: break;
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
}

const sim_actor_kind sim_foreign_waiter = {start, act, leave, .rests = true};
