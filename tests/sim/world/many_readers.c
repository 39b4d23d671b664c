/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/coverage.h"
#include "sim/world/leases.h"
#include "sim/world/lock_styles.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Many readers in one process, each with its own read-write lock on one
 * directory. They acquire, hold and release together. A heartbeat then checks
 * more nodes, and a setWatches has more paths, than fit into one request. Some
 * of them act alone.
 */

enum {
  READERS_MIN = 70,
  READERS_MAX = 150,
  SINGLE_ACTIONS_MAX = 3,   /* of single readers at a time */
  HEARTBEAT_NODES_MAX = 64, /* in one request of a heartbeat */
  AT_ONCE = 0
};

static const bool WITHOUT_CALLBACK = false;

struct sim_many_readers {
  size_t count; /* 0: the next act makes the readers */
  sim_handle *readers[READERS_MAX];
  bool together; /* all have called acquire, and release when `until_us` is
                    reached */
};

static sim_world *world_of(const sim_actor *a)
{
  return a->process->world;
}

static bool is_busy(const sim_handle *h)
{
  return h->acquiring || h->count > 0;
}

static void reader_on_callback(sim_handle *h, int callback, int err,
                               const lk_lock_event *e)
{
  sim_actor *a = h->arg;

  (void)err;
  (void)callback;
  if (e != NULL && e->type == LK_LOCK_EVENT_LOST && a->many_readers->count > 0)
    sim_actor_act_in(a, AT_ONCE);
}

/* ---- handles ------------------------------------------------------------ */

static sim_handle *make_reader(sim_actor *a, size_t number)
{
  sim_world *w = world_of(a);
  lk_lock_config options = {.layout = w->style->layout,
                            .peek = sim_one_in(&a->rng, 4)};
  sim_lock_request wanted = {.kind = SIM_RWLOCK,
                             .nplaces = 1,
                             .places = {{.lock_index = a->lock_index}}};
  char name[16];

  snprintf(name, sizeof name, "%s.c%u", a->process->name,
           (unsigned)number % 1000);
  sim_handle *write_side =
      sim_handle_new(a->process, name, &wanted, sim_lease_get(a->process),
                     &options, reader_on_callback, a);

  return write_side->other;
}

static void free_reader(sim_handle *reader)
{
  sim_handle *write_side = reader->other;

  sim_handle_free(write_side); /* frees both sides */
}

static void make_readers(sim_actor *a)
{
  struct sim_many_readers *c = a->many_readers;

  a->lock_index = sim_roll(&a->rng, (uint32_t)world_of(a)->nqueues);
  c->together = false;
  c->count = (size_t)sim_between(&a->rng, READERS_MIN, READERS_MAX);
  for (size_t i = 0; i < c->count; i++)
    c->readers[i] = make_reader(a, i);
}

static void free_readers(sim_actor *a)
{
  struct sim_many_readers *c = a->many_readers;

  while (c->count > 0)
    free_reader(c->readers[--c->count]);
}

/* ---- operations --------------------------------------------------------- */

enum { FIRST_READER = 0 };

/* Whether reader `i` exists. A callback may have freed the client and with it
 * all readers. */
static bool may_continue(const sim_actor *a, size_t i)
{
  return sim_process_runs(a->process) && i < a->many_readers->count;
}

static void release_or_cancel(sim_handle *h)
{
  if (h->count > 0)
    (void)sim_handle_release(h, WITHOUT_CALLBACK);
  else if (h->acquiring)
    sim_handle_cancel(h);
}

static void acquire_all(sim_actor *a)
{
  int64_t t = sim_actor_T_us(a);

  for (size_t i = 0; may_continue(a, i); i++)
    (void)sim_handle_acquire(a->many_readers->readers[i], LK_NO_LIMIT);
  a->until_us = world_of(a)->agenda.now_us + sim_between(&a->rng, t / 2, 4 * t);
  a->many_readers->together = true;
}

static void release_all(sim_actor *a)
{
  for (size_t i = 0; may_continue(a, i); i++)
    release_or_cancel(a->many_readers->readers[i]);
  a->many_readers->together = false;
}

/* Releases the locks that are lost; else they cannot be acquired again. */
static void release_lost(sim_actor *a)
{
  for (size_t i = 0; may_continue(a, i); i++) {
    if (a->many_readers->readers[i]->lost)
      (void)sim_handle_release(a->many_readers->readers[i], WITHOUT_CALLBACK);
  }
}

static void act_on_one(sim_actor *a)
{
  size_t i = sim_roll(&a->rng, (uint32_t)a->many_readers->count);
  sim_handle *h = a->many_readers->readers[i];

  if (sim_one_in(&a->rng, 3)) {
    free_reader(h);
    if (may_continue(a, i))
      a->many_readers->readers[i] = make_reader(a, i);
  } else if (is_busy(h)) {
    release_or_cancel(h);
  } else {
    (void)sim_handle_acquire(h, world_of(a)->timeout_ms);
  }
}

/* Whether more locks are held than one heartbeat request can check. */
static bool heartbeat_is_split(const struct sim_many_readers *c)
{
  size_t held = 0;

  for (size_t i = 0; i < c->count; i++) {
    if (sim_holds(c->readers[i]))
      held++;
  }
  return held > HEARTBEAT_NODES_MAX;
}

static bool all_idle(const struct sim_many_readers *c)
{
  for (size_t i = 0; i < c->count; i++) {
    if (is_busy(c->readers[i]))
      return false;
  }
  return true;
}

static void many_readers_act(sim_actor *a)
{
  bool phase_is_over = world_of(a)->agenda.now_us >= a->until_us;

  if (a->many_readers->count == 0 && !a->stopping)
    make_readers(a);
  release_lost(a);
  if (a->many_readers->together && heartbeat_is_split(a->many_readers))
    sim_coverage_milestone(SIM_MILESTONE_SPLIT_HEARTBEAT);
  if (a->stopping || (a->many_readers->together && phase_is_over))
    release_all(a);
  else if (!a->many_readers->together && phase_is_over)
    acquire_all(a);
  for (uint32_t n = sim_roll(&a->rng, SINGLE_ACTIONS_MAX + 1);
       n > 0 && !a->stopping; n--) {
    if (may_continue(a, FIRST_READER))
      act_on_one(a);
  }
  if (!a->many_readers->together && phase_is_over)
    a->until_us =
        world_of(a)->agenda.now_us + sim_between(&a->rng, 0, sim_actor_T_us(a));
  a->idle = a->stopping && all_idle(a->many_readers);
  if (sim_process_runs(a->process) && !a->idle)
    sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 4));
}

static void many_readers_start(sim_actor *a)
{
  if (a->many_readers == NULL)
    a->many_readers = sim_allocate(sizeof *a->many_readers);
  a->many_readers->count = 0;
  a->until_us = 0;
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

const sim_actor_kind sim_many_readers = {.start = many_readers_start,
                                         .act = many_readers_act,
                                         .leave = free_readers,
                                         .reports_idle = true};
