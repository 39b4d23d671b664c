/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/leases.h"

#include <latchkey/single.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The single lockers of all processes use one single-node lock. Some poll, some
 * spread their retries. All cancel, release and acquire again at random times.
 */

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

/* of lk_single_config */
enum { NO_POLLING = 0, USUAL_SPREAD = 0, NO_SPREAD = -1 };

static int64_t random_time(sim_actor *a)
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
  TRACE(a, "lost: %s", lk_error_name(e->err));
  a->single.lost = true;
  sim_actor_act_in(a, random_time(a));
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  sim_actor *a = arg;

  TRACE(a, "%s %s", err == 0 ? "holds" : "acquire fails:",
        err == 0 ? lk_lock_node(l) : lk_error_name(err));
  a->single.acquiring = false;
  sim_actor_act_in(a, random_time(a));
}

/* ---- operations --------------------------------------------------------- */

static void make_lock(sim_actor *a)
{
  lk_lock_config config = {.size = sizeof config,
                           .data = lk_text(a->name),
                           .fail_on_expiry = sim_one_in(&a->rng, 4),
                           .peek = sim_one_in(&a->rng, 4),
                           .on_event = on_event,
                           .arg = a};
  lk_single_config options = {
      .size = sizeof options,
      .poll_ms = sim_one_in(&a->rng, 4) ? 20 : NO_POLLING,
      .spread_ms = sim_one_in(&a->rng, 2) ? NO_SPREAD : USUAL_SPREAD,
  };

  a->single = (sim_single_state){.lock = NULL};
  a->process->failing_allocations = 0; /* these calls must not fail */
  (void)sim_lease_get(a->process);
  if (lk_single_new(&a->single.lock, a->process->client, SIM_SINGLE_PATH,
                    &config, &options) != 0)
    abort();
}

static void free_single_lock(sim_actor *a)
{
  lk_lock *l = a->single.lock;

  a->single.lock = NULL;
  lk_lock_free(l);
}

static void single_acquire(sim_actor *a)
{
  enum { CHOICES = 6 };

  int64_t t = a->process->world->timeout_ms;
  const int64_t timeouts[CHOICES] = {SIM_TRY,     t / 10,      t,
                                     LK_NO_LIMIT, LK_NO_LIMIT, LK_NO_LIMIT};
  int64_t timeout = timeouts[sim_roll(&a->rng, CHOICES)];

  TRACE(a, "acquires, %d ms", (int)timeout);
  a->single.acquiring = true;
  int err = timeout == SIM_TRY
                ? lk_lock_try_until(a->single.lock, LK_NO_LIMIT, on_acquired, a)
                : lk_lock_acquire(a->single.lock, timeout, on_acquired, a);

  if (err != 0)
    a->single.acquiring = false;
}

static void single_release(sim_actor *a)
{
  const lk_lock_cb no_callback = NULL;

  TRACE(a, "releases");
  (void)lk_lock_release(a->single.lock, no_callback, NULL);
  a->single.lost = false;
}

static void cancel_or_replace(sim_actor *a)
{
  TRACE(a, "cancels or frees its lock");
  if (sim_one_in(&a->rng, 2)) {
    lk_lock_cancel(a->single.lock);
    return;
  }
  free_single_lock(a);
  make_lock(a);
}

static void single_locker_act(sim_actor *a)
{
  sim_single_state *s = &a->single;

  if (s->lost || lk_lock_count(s->lock) > 0)
    single_release(a);
  else if (s->acquiring && !a->stopping && sim_one_in(&a->rng, 4))
    cancel_or_replace(a);
  else if (!s->acquiring && !a->stopping)
    single_acquire(a);
  a->idle = a->stopping && !s->acquiring && lk_lock_count(s->lock) == 0;
  if (!a->idle)
    sim_actor_act_in(a, random_time(a));
}

static void single_locker_start(sim_actor *a)
{
  make_lock(a);
  sim_actor_act_in(a, random_time(a));
}

const sim_actor_kind sim_single_locker = {.start = single_locker_start,
                                          .act = single_locker_act,
                                          .leave = free_single_lock,
                                          .reports_idle = true};
