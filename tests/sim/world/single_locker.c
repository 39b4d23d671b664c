/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/leases.h"

#include <latchkey/single.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Single lockers of all processes want one lock of a single node. Some poll,
 * some spread their retries, all of them give up, let go and come back by
 * chance.
 */

#define SAY(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static int64_t some_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a) / 8);
}

/* ---- callbacks ---------------------------------------------------------- */

static void on_event(lk_lock *l, const lk_lock_event *e, void *arg)
{
  sim_actor *a = arg;

  (void)l;
  if (e->type != LK_LOCK_EVENT_LOST)
    return;
  SAY(a, "loses the node: %s", lk_error_name(e->err));
  a->sitting.lost = true;
  sim_actor_wait(a, some_time(a));
}

static void on_got(lk_lock *l, int err, void *arg)
{
  sim_actor *a = arg;

  SAY(a, "%s %s", err == 0 ? "sits" : "does not sit:",
      err == 0 ? lk_lock_node(l) : lk_error_name(err));
  a->sitting.wants = false;
  sim_actor_wait(a, some_time(a));
}

/* ---- what it does ------------------------------------------------------- */

static void make(sim_actor *a)
{
  lk_lock_config config = {.size = sizeof config,
                           .data = lk_text(a->name),
                           .fail_on_expiry = sim_roll(&a->rng, 4) == 0,
                           .peek = sim_roll(&a->rng, 4) == 0,
                           .on_event = on_event,
                           .arg = a};
  lk_single_config options = {
      .size = sizeof options,
      .poll_ms = sim_roll(&a->rng, 4) == 0 ? 20 : 0,
      .spread_ms = sim_roll(&a->rng, 2) == 0 ? -1 : 0,
  };

  a->sitting = (sim_sitting){.lock = NULL};
  a->process->starves = 0;
  (void)sim_lease_take(a->process);
  if (lk_single_new(&a->sitting.lock, a->process->client, SIM_SINGLE, &config,
                    &options) != 0)
    abort();
}

static void leave(sim_actor *a)
{
  lk_lock *l = a->sitting.lock;

  a->sitting.lock = NULL;
  lk_lock_free(l);
}

static void acquire(sim_actor *a)
{
  int64_t t = a->process->world->timeout_ms;
  const int64_t timeouts[] = {0, t / 10, t, -1, -1, -1};
  int64_t timeout = timeouts[sim_roll(&a->rng, 6)];

  SAY(a, "wants the node, %d ms", (int)timeout);
  a->sitting.wants = true;
  if (lk_lock_acquire(a->sitting.lock, timeout, on_got, a) != 0)
    a->sitting.wants = false;
}

static void release(sim_actor *a)
{
  SAY(a, "lets go of the node");
  (void)lk_lock_release(a->sitting.lock, NULL, NULL);
  a->sitting.lost = false;
}

static void give_up(sim_actor *a)
{
  SAY(a, "gives up");
  if (sim_roll(&a->rng, 2) == 0) {
    lk_lock_cancel(a->sitting.lock);
    return;
  }
  leave(a);
  make(a);
}

static void act(sim_actor *a)
{
  sim_sitting *s = &a->sitting;

  if (s->lost || lk_lock_count(s->lock) > 0)
    release(a);
  else if (s->wants && !a->stopping && sim_roll(&a->rng, 4) == 0)
    give_up(a);
  else if (!s->wants && !a->stopping)
    acquire(a);
  a->idle = a->stopping && !s->wants && lk_lock_count(s->lock) == 0;
  if (!a->idle)
    sim_actor_wait(a, some_time(a));
}

static void start(sim_actor *a)
{
  make(a);
  sim_actor_wait(a, some_time(a));
}

const sim_actor_kind sim_single_locker = {start, act, leave, .rests = true};
