/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/coverage.h"
#include "sim/world/facts.h"

#include <inttypes.h>
#include <latchkey/nodes.h>
#include <stdio.h>

/*
 * A tree maker creates nodes with their parents, and deletes trees. It has one
 * call outstanding at a time, in a directory of its own. After a call that ends
 * in doubt it uses another directory, since the request may still be executed.
 */

enum { BRANCHES = 3, LEVELS_MAX = 3 };

static sim_checker *checker_of(const sim_actor *a)
{
  return a->process->world->checker;
}

static void end_call(sim_write *x, int err)
{
  sim_actor *a = x->actor;

  SIM_TRACE(&a->process->world->trace, a->name, "has %s %s: %s",
            x->verb == SIM_CREATE ? "created" : "deleted", x->path,
            err == 0 ? "0" : lk_error_name(err));
  x->err = err;
  x->ended = true;
  sim_report_fact(
      checker_of(a),
      &(sim_fact){.type = SIM_TREE_CALL_ENDED, .err = err, .write = x});
  if (err == 0)
    sim_coverage_milestone(x->verb == SIM_CREATE ? SIM_MILESTONE_DEEP_CREATE
                                                 : SIM_MILESTONE_DEEP_DELETE);
  else if (err != LK_ERR_NO_NODE && err != LK_ERR_NODE_EXISTS)
    a->tree_number++; /* it is in doubt: use another directory */
  if (a->write == x)  /* not a call of an earlier client */
    a->write = NULL;
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  (void)path;
  (void)stat;
  end_call(arg, err);
}

static void on_deleted(lk_client *c, int err, size_t deleted, void *arg)
{
  (void)c;
  (void)deleted;
  end_call(arg, err);
}

/* A random path: the tree maker's directory, or one to three levels below
 * it. */
static void set_random_path(sim_actor *a, sim_write *x)
{
  uint32_t levels = sim_roll(&a->rng, LEVELS_MAX + 1);
  int len = snprintf(x->path, sizeof x->path, "/gardens/%s.%" PRIu64 ".%u",
                     a->name, a->process->life, a->tree_number);

  for (uint32_t i = 0; i < levels && len < (int)sizeof x->path; i++)
    len += snprintf(x->path + len, sizeof x->path - (size_t)len, "/b%u",
                    (unsigned)sim_roll(&a->rng, BRANCHES));
}

static void begin_call(sim_actor *a)
{
  lk_parents_config parents = {.size = sizeof parents,
                               .containers = sim_one_in(&a->rng, 3)};
  lk_call call = {.size = sizeof call};
  sim_write *x = sim_checker_allocate(checker_of(a), sizeof *x);
  lk_client *c = a->process->client;
  int err;

  x->actor = a;
  x->verb = sim_one_in(&a->rng, 4) ? SIM_DELETE : SIM_CREATE;
  set_random_path(a, x);
  a->write = x;
  if (x->verb == SIM_CREATE) {
    err = lk_create_with_parents(c, x->path, lk_text("x"), NULL, LK_PERSISTENT,
                                 &parents, &call, on_created, x);
  } else {
    call.repeat = sim_one_in(&a->rng, 2);
    err = lk_delete_recursive(c, x->path, &call, NULL, on_deleted, x);
  }
  x->ended = err != 0;
  if (err != 0)
    a->write = NULL;
}

/* ---- actor -------------------------------------------------------------- */

static void tree_maker_act(sim_actor *a)
{
  if (a->write == NULL && !a->stopping)
    begin_call(a);
  a->idle = a->stopping && a->write == NULL;
  if (!a->idle)
    sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 4));
}

static void tree_maker_start(sim_actor *a)
{
  a->write = NULL;
  a->tree_number = 0;
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 2));
}

const sim_actor_kind sim_tree_maker = {
    .start = tree_maker_start, .act = tree_maker_act, .reports_idle = true};
