/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A foreign waiter queues as Curator's read-write lock does: with a WRIT node,
 * which it may downgrade to a READ node of the same number, or with a READ
 * node. It does not wait for a grant and protects nothing: others have to wait
 * for it.
 */

typedef enum step {
  STEP_IDLE,
  STEP_CREATE,
  STEP_QUEUED,
  STEP_DOWNGRADE,
  STEP_DELETE,
  STEP_FIND_LEFTOVERS,
  STEP_WAIT
} step;

typedef struct sim_foreign_state {
  step step;
  char prefix[48]; /* of the names of its nodes */
  char dir[SIM_LOCK_PATH];
  char node[112];      /* "": none that it knows of */
  char read_node[112]; /* its READ node after a downgrade */
  bool is_reader;
} sim_foreign_state;

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static int64_t random_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a));
}

static void set_step(sim_actor *a, step next, int64_t in_us)
{
  a->foreign_state->step = next;
  if (next != STEP_WAIT)
    sim_actor_act_in(a, in_us);
}

/* Its nodes are found by their prefix. */
static void clean_up(sim_actor *a)
{
  set_step(a, STEP_FIND_LEFTOVERS, sim_actor_T_us(a) / 16);
}

/* ---- create ------------------------------------------------------------- */

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_foreign_state *v = a->foreign_state;

  (void)c;
  (void)stat;
  if (err != 0) {
    clean_up(a);
    return;
  }
  TRACE(a, "has created %s", path);
  snprintf(v->node, sizeof v->node, "%s", path);
  set_step(a, v->is_reader ? STEP_DELETE : STEP_QUEUED, random_time(a));
}

static void create_node(sim_actor *a)
{
  sim_foreign_state *v = a->foreign_state;
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
  v->read_node[0] = '\0';
  set_step(a, STEP_WAIT, 0);
  if (lk_create2(a->process->client, path, lk_text(a->name), NULL,
                 LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_created, a) != 0)
    clean_up(a);
}

/* ---- downgrade ---------------------------------------------------------- */

static void on_downgraded(lk_client *c, int err, const lk_op_result *results,
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
  TRACE(a, "has downgraded to %s", a->foreign_state->read_node);
  (void)lk_delete(a->process->client, a->foreign_state->node, -1, NULL, NULL,
                  NULL);
  set_step(a, STEP_FIND_LEFTOVERS, random_time(a));
}

static void downgrade(sim_actor *a)
{
  sim_foreign_state *v = a->foreign_state;
  size_t len = strlen(v->node);
  lk_op ops[2];

  snprintf(v->read_node, sizeof v->read_node, "%s/%s__READ__%s", v->dir,
           v->prefix, v->node + len - 10);
  ops[0] = lk_op_check(v->node, -1);
  ops[1] = lk_op_create(v->read_node, lk_text(a->name), NULL, LK_EPHEMERAL);
  set_step(a, STEP_WAIT, 0);
  if (lk_multi(a->process->client, ops, 2, NULL, on_downgraded, a) != 0)
    clean_up(a);
}

/* ---- cleanup ------------------------------------------------------------ */

static void on_listed(lk_client *c, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  const sim_foreign_state *v = a->foreign_state;
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
    set_step(a, STEP_IDLE, 2 * random_time(a));
}

static void list_for_cleanup(sim_actor *a)
{
  lk_client *c = a->process->client;

  set_step(a, STEP_WAIT, 0);
  if (lk_sync(c, a->foreign_state->dir, NULL, NULL, NULL) != 0 ||
      lk_get_children(c, a->foreign_state->dir, NULL, on_listed, a) != 0)
    clean_up(a);
}

/* ---- actor -------------------------------------------------------------- */

static void foreign_waiter_act(sim_actor *a)
{
  sim_foreign_state *v = a->foreign_state;

  if (a->stopping && v->step != STEP_IDLE && v->step != STEP_WAIT)
    v->step = STEP_FIND_LEFTOVERS;
  switch (v->step) {
  case STEP_IDLE:
    a->idle = a->stopping;
    if (!a->stopping)
      create_node(a);
    break;
  case STEP_CREATE: create_node(a); break;
  case STEP_QUEUED:
    set_step(a, sim_roll(&a->rng, 2) == 0 ? STEP_DOWNGRADE : STEP_DELETE, 0);
    break;
  case STEP_DOWNGRADE: downgrade(a); break;
  case STEP_DELETE:
  case STEP_FIND_LEFTOVERS: list_for_cleanup(a); break;
  case STEP_WAIT: break;
  }
}

static void foreign_waiter_start(sim_actor *a)
{
  if (a->foreign_state == NULL)
    a->foreign_state = sim_allocate(sizeof *a->foreign_state);
  memset(a->foreign_state, 0, sizeof *a->foreign_state);
  set_step(a, STEP_IDLE, random_time(a));
}

/* Its nodes end with the session. */
static void foreign_waiter_free(sim_actor *a)
{
  sim_unschedule(&a->process->world->agenda, &a->job);
}

const sim_actor_kind sim_foreign_waiter = {
    foreign_waiter_start, foreign_waiter_act, foreign_waiter_free,
    .reports_idle = true};
