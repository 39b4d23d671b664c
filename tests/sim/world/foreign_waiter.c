/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A foreign waiter queues as Curator's read-write lock does: with a WRIT node,
 * which it may downgrade to a READ node of the same number, or with a READ
 * node. It is not interested in the grant and protects nothing. It only makes
 * others wait for its nodes, and then deletes them.
 */

enum {
  SUFFIX_DIGITS = 10, /* of a sequence number */
  ANY_VERSION = -1,
  AT_ONCE = 0
};

typedef enum step {
  STEP_IDLE,
  STEP_QUEUED,
  STEP_DOWNGRADE,
  STEP_DELETE_ALL,
  STEP_WAIT_FOR_REPLY
} step;

typedef struct sim_foreign_state {
  step step;
  char prefix[48]; /* unique; all its node names begin with it */
  char dir[SIM_LOCK_PATH];
  char node[112];      /* "": it knows of none */
  char read_node[112]; /* its READ node after a downgrade */
  bool is_reader;
} sim_foreign_state;

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static int64_t random_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a));
}

static void continue_with(sim_actor *a, step next, int64_t in_us)
{
  a->foreign_state->step = next;
  sim_actor_act_in(a, in_us);
}

/* The callback of the request will call continue_with(). */
static void wait_for_reply(sim_actor *a)
{
  a->foreign_state->step = STEP_WAIT_FOR_REPLY;
}

/* The outcome of the delete is not needed: the next list shows it. */
static void send_delete(lk_client *c, const char *path)
{
  (void)lk_delete(c, path, ANY_VERSION, NULL, NULL, NULL);
}

/* Deletes all its nodes a little later, whether or not it knows their names: it
 * lists the directory and looks for its prefix. */
static void clean_up(sim_actor *a)
{
  continue_with(a, STEP_DELETE_ALL, sim_actor_T_us(a) / 16);
}

/* ---- create ------------------------------------------------------------- */

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  sim_foreign_state *f = a->foreign_state;

  (void)c;
  (void)stat;
  if (err != 0) {
    clean_up(a);
    return;
  }
  TRACE(a, "has created %s", path);
  snprintf(f->node, sizeof f->node, "%s", path);
  continue_with(a, f->is_reader ? STEP_DELETE_ALL : STEP_QUEUED,
                random_time(a));
}

static void create_node(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;
  const sim_world *w = a->process->world;
  char path[104];
  unsigned uuid = (unsigned)sim_rng_next(&a->rng);

  f->is_reader = sim_one_in(&a->rng, 4);
  snprintf(f->dir, sizeof f->dir, "%s",
           w->locks[sim_roll(&a->rng, (uint32_t)w->nqueues)]);
  snprintf(f->prefix, sizeof f->prefix, "_c_%08x" SIM_FOREIGN "%012x-", uuid,
           a->number);
  snprintf(path, sizeof path, "%s/%s%s", f->dir, f->prefix,
           f->is_reader ? "__READ__" : "__WRIT__");
  f->node[0] = '\0';
  f->read_node[0] = '\0';
  wait_for_reply(a);
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
  send_delete(a->process->client, a->foreign_state->node);
  continue_with(a, STEP_DELETE_ALL, random_time(a));
}

static void downgrade(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;
  size_t len = strlen(f->node);
  lk_op ops[2];

  snprintf(f->read_node, sizeof f->read_node, "%s/%s__READ__%s", f->dir,
           f->prefix, f->node + len - SUFFIX_DIGITS);
  ops[0] = lk_op_check(f->node, ANY_VERSION);
  ops[1] = lk_op_create(f->read_node, lk_text(a->name), NULL, LK_EPHEMERAL);
  wait_for_reply(a);
  if (lk_multi(a->process->client, ops, 2, NULL, on_downgraded, a) != 0)
    clean_up(a);
}

/* ---- cleanup ------------------------------------------------------------ */

static void on_listed(lk_client *c, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;
  const sim_foreign_state *f = a->foreign_state;
  bool found_any = false;

  (void)stat;
  for (size_t i = 0; i < count; i++) {
    char path[136];

    if (names[i].len < strlen(f->prefix) ||
        memcmp(names[i].at, f->prefix, strlen(f->prefix)) != 0)
      continue;
    found_any = true;
    snprintf(path, sizeof path, "%s/%.*s", f->dir, (int)names[i].len,
             (const char *)names[i].at);
    send_delete(c, path);
  }
  if (found_any || (err != 0 && err != LK_ERR_NO_NODE))
    clean_up(a);
  else
    continue_with(a, STEP_IDLE, 2 * random_time(a));
}

static void list_for_cleanup(sim_actor *a)
{
  lk_client *c = a->process->client;

  wait_for_reply(a);
  if (lk_server_sync(c, a->foreign_state->dir, NULL, NULL, NULL) != 0 ||
      lk_get_children(c, a->foreign_state->dir, NULL, on_listed, a) != 0)
    clean_up(a);
}

/* ---- actor -------------------------------------------------------------- */

static void foreign_waiter_act(sim_actor *a)
{
  sim_foreign_state *f = a->foreign_state;

  if (a->stopping && f->step != STEP_IDLE && f->step != STEP_WAIT_FOR_REPLY)
    f->step = STEP_DELETE_ALL;
  switch (f->step) {
  case STEP_IDLE:
    a->idle = a->stopping;
    if (!a->stopping)
      create_node(a);
    break;
  case STEP_QUEUED:
    continue_with(a, sim_one_in(&a->rng, 2) ? STEP_DOWNGRADE : STEP_DELETE_ALL,
                  AT_ONCE);
    break;
  case STEP_DOWNGRADE: downgrade(a); break;
  case STEP_DELETE_ALL: list_for_cleanup(a); break;
  case STEP_WAIT_FOR_REPLY: break;
  }
}

static void foreign_waiter_start(sim_actor *a)
{
  if (a->foreign_state == NULL)
    a->foreign_state = sim_allocate(sizeof *a->foreign_state);
  memset(a->foreign_state, 0, sizeof *a->foreign_state);
  continue_with(a, STEP_IDLE, random_time(a));
}

/* When the process frees its client, the nodes end with the session. */
const sim_actor_kind sim_foreign_waiter = {.start = foreign_waiter_start,
                                           .act = foreign_waiter_act,
                                           .reports_idle = true};
