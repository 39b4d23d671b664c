/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/conditions.h"
#include "sim/world/coverage.h"
#include "sim/world/leases.h"
#include "sim/world/lock_mix.h"
#include "sim/world/lock_styles.h"
#include "sim/world/scenario.h"

/*
 * A locker has one lock, or both sides of a read-write lock. It does a random
 * operation at random times, also in callbacks. T is the session timeout.
 */

enum {
  CALL_DEPTH_MAX = 4, /* operations within callbacks of operations */
  REENTRY_MAX = 4,
  MAX_QUEUE = 2, /* largest max_queue in style "brief" */
  ANY_VERSION = -1
};

static void locker_on_callback(sim_handle *h, int callback, int err,
                               const lk_lock_event *e);

static sim_world *world_of(const sim_actor *a)
{
  return a->process->world;
}

static int64_t random_between(sim_actor *a, int64_t least, int64_t most)
{
  return sim_between(&a->rng, least, most);
}

/* ---- handle ------------------------------------------------------------- */

/* Uses a random generator of its own, so that styles do not change the other
 * draws of a seed. */
static void apply_style(sim_actor *a, sim_kind kind)
{
  const sim_lock_style *style = world_of(a)->style;
  sim_rng r = sim_rng_fork(&a->rng, 'h');
  lk_lock_config *config = &a->lock_config;

  config->layout = style->layout;
  if (kind != SIM_RWLOCK)
    config->prefix = style->prefix;
  if (style->short_queue)
    config->max_queue = sim_roll(&r, MAX_QUEUE + 1);
}

static void make_handle(sim_actor *a)
{
  sim_world *w = world_of(a);

  if (sim_one_in(&a->rng, 4))
    a->lock_index = sim_roll(&a->rng, (uint32_t)w->nqueues);
  a->lock_config =
      (lk_lock_config){.unsure_when_suspended = sim_one_in(&a->rng, 6),
                       .fail_on_expiry = sim_one_in(&a->rng, 6),
                       .persistent_parents = sim_one_in(&a->rng, 10),
                       .peek = sim_one_in(&a->rng, 4)};
  if (!sim_has_only_mutexes(w))
    a->lock_config.revocable = sim_one_in(&a->rng, 2);
  /* In these scenarios no holder may be unsure after a broken connection. */
  if (w->scenario->calm || w->scenario->one_silent)
    a->lock_config.unsure_when_suspended = false;
  sim_lock_request wanted = sim_random_lock_request(w, &a->rng, a->lock_index);

  apply_style(a, wanted.kind);
  a->handle =
      sim_handle_new(a->process, a->name, &wanted, sim_lease_get(a->process),
                     &a->lock_config, locker_on_callback, a);
}

static void free_handle(sim_actor *a)
{
  sim_handle *h = a->handle;

  a->handle = NULL; /* callbacks of the old handle are ignored from now on */
  if (h == NULL)
    return;
  sim_handle_free(h);
}

/* May be called in a callback of the old handle. */
static void replace_handle(sim_actor *a)
{
  free_handle(a);
  if (sim_process_runs(a->process))
    make_handle(a);
}

/* The choice has a random generator of its own, as in apply_style(). */
static bool prefers_reset(const sim_actor *a)
{
  sim_rng r = sim_rng_fork(&a->rng, 'z');

  return sim_one_in(&r, 3);
}

static void replace_or_reset_handle(sim_actor *a, sim_handle *h)
{
  if (prefers_reset(a))
    sim_handle_reset(h);
  else
    replace_handle(a);
}

/* ---- choice of an acquire ----------------------------------------------- */

/* A timeout of an acquire in milliseconds. */
static int64_t random_timeout(sim_actor *a)
{
  int32_t t = world_of(a)->timeout_ms;

  switch (sim_roll(&a->rng, 10)) {
  case 0: return SIM_TRY;
  case 1: return random_between(a, 1, 10);
  case 2: return random_between(a, 1, t / 4);
  case 3:
  case 4: return random_between(a, t / 4, 3 * t);
  case 5: return 20 * (int64_t)t;
  default: return LK_NO_LIMIT;
  }
}

/* The duration of a hold in microseconds: mostly short, sometimes several
 * heartbeats long. */
static int64_t random_hold(sim_actor *a)
{
  int64_t t = sim_actor_T_us(a);

  if (world_of(a)->scenario->churn)
    return random_between(a, 0, t / 40);
  if (world_of(a)->scenario->hold && !sim_one_in(&a->rng, 3))
    return random_between(a, t / 2, 4 * t);
  switch (sim_roll(&a->rng, 8)) {
  case 0: return random_between(a, t / 4, 2 * t);
  case 1:
  case 2: return random_between(a, t / 8, t / 2);
  case 3: return 0;
  default: return random_between(a, 0, t / 8);
  }
}

static int64_t random_pause(sim_actor *a)
{
  int64_t t = sim_actor_T_us(a);

  if (world_of(a)->scenario->churn)
    return random_between(a, 0, t / 20);
  return random_between(a, 0, sim_one_in(&a->rng, 4) ? 2 * t : t / 4);
}

static void locker_acquire(sim_actor *a, sim_handle *h)
{
  (void)sim_handle_acquire(h, random_timeout(a));
}

static void locker_release(sim_actor *a, sim_handle *h)
{
  bool with_callback = sim_one_in(&a->rng, 2);

  (void)sim_handle_release(h, with_callback);
}

/* ---- operations --------------------------------------------------------- */

static void change_margin(sim_actor *a)
{
  sim_process *p = a->process;

  p->margin_set_us = world_of(a)->agenda.now_us;
  (void)lk_lease_set_margin(
      p->client, (int32_t)random_between(a, 1, world_of(a)->shortest_ms / 6));
}

/* Mostly acquires. Operations that need a held lock are called in vain. */
static void act_idle(sim_actor *a, sim_handle *h)
{
  if (sim_has_condition(world_of(a), SIM_LIMITS) && sim_one_in(&a->rng, 8))
    change_margin(a);
  switch (sim_roll(&a->rng, 24)) {
  case 0: locker_release(a, h); break;
  case 1: sim_handle_cancel(h); break;
  case 2: (void)sim_handle_verify(h); break;
  case 3: (void)sim_handle_write(h); break;
  case 4:
  case 5: replace_or_reset_handle(a, h); break;
  default: locker_acquire(a, h); break;
  }
}

static void cancel_once_or_twice(sim_actor *a, sim_handle *h)
{
  sim_handle_cancel(h);
  if (h->lock != NULL && !h->freeing && sim_one_in(&a->rng, 3))
    sim_handle_cancel(h);
}

/* Mostly does nothing, so that the acquire goes on. */
static void act_waiting(sim_actor *a, sim_handle *h)
{
  switch (sim_roll(&a->rng, 16)) {
  case 0: locker_release(a, h); break;
  case 1: locker_acquire(a, h); break;
  case 2: (void)sim_handle_verify(h); break;
  case 3: replace_or_reset_handle(a, h); break;
  case 4:
  case 5: cancel_once_or_twice(a, h); break;
  default: break;
  }
}

static void act_holding(sim_actor *a, sim_handle *h)
{
  bool hold_is_over = world_of(a)->agenda.now_us >= a->until_us;

  /* a holder that stays does other things more often */
  switch (sim_roll(&a->rng, hold_is_over ? 60 : 20)) {
  case 0: (void)sim_handle_verify(h); break;
  case 1: (void)sim_handle_write(h); break;
  case 2:
    if (h->count < REENTRY_MAX)
      locker_acquire(a, h);
    break;
  case 3: sim_handle_cancel(h); break;
  case 4: replace_or_reset_handle(a, h); break;
  case 5: locker_release(a, h); break;
  default:
    if (hold_is_over)
      locker_release(a, h);
    break;
  }
}

/* After a release or a reset the lock can be acquired again. */
static void act_lost(sim_actor *a, sim_handle *h)
{
  if (prefers_reset(a))
    sim_handle_reset(h);
  else
    locker_release(a, h);
}

/* The faults are over: releases, and mostly lets an acquire go on. */
static void act_stopping(sim_actor *a, sim_handle *h)
{
  if (h->count > 0)
    locker_release(a, h);
  else if (h->acquiring && sim_one_in(&a->rng, 8))
    cancel_once_or_twice(a, h);
}

static void act_on_handle(sim_actor *a, sim_handle *h)
{
  if (a->stopping)
    act_stopping(a, h);
  else if (h->lost)
    act_lost(a, h);
  else if (h->count > 0)
    act_holding(a, h);
  else if (h->acquiring)
    act_waiting(a, h);
  else
    act_idle(a, h);
}

static bool is_busy(const sim_handle *h)
{
  return h->acquiring || h->count > 0;
}

/* A random side of a read-write lock; while stopping, the side that is still in
 * use. */
static sim_handle *random_side(sim_actor *a)
{
  sim_handle *h = a->handle;

  if (h->other == NULL)
    return h;
  if (a->stopping && is_busy(h) != is_busy(h->other))
    return is_busy(h) ? h : h->other;
  return sim_one_in(&a->rng, 2) ? h : h->other;
}

/* Does nothing if too many calls are on the stack: each call can invoke
 * callbacks that call this again. */
static void act_on_random_side(sim_actor *a)
{
  if (a->handle == NULL || a->call_depth == CALL_DEPTH_MAX)
    return;
  a->call_depth++;
  act_on_handle(a, random_side(a));
  a->call_depth--;
}

/* The time in microseconds until the next operation of a side; INT64_MAX: there
 * is none. */
static int64_t time_to_next_operation(sim_actor *a, const sim_handle *h)
{
  int64_t t = sim_actor_T_us(a);
  int64_t now = world_of(a)->agenda.now_us;

  if (a->stopping && h->count > 0)
    return random_between(a, 0, t / 16);
  if (a->stopping)
    return h->acquiring ? t : INT64_MAX;
  if (h->count > 0 && !h->lost && now < a->until_us)
    return random_between(a, 0, a->until_us - now);
  if (h->count > 0 || !h->acquiring)
    return random_pause(a);
  return random_between(a, t / 16, 2 * t);
}

static void schedule_next(sim_actor *a)
{
  const sim_handle *h = a->handle;

  if (h == NULL)
    return;
  int64_t us = time_to_next_operation(a, h);

  if (h->other != NULL) {
    int64_t us_of_other_side = time_to_next_operation(a, h->other);

    if (us_of_other_side < us)
      us = us_of_other_side;
  }
  if (us < INT64_MAX)
    sim_actor_act_in(a, us);
}

static void locker_act(sim_actor *a)
{
  if (a->handle == NULL && !a->stopping)
    make_handle(a);
  act_on_random_side(a);
  if (sim_process_runs(a->process))
    schedule_next(a);
}

/* ---- callbacks ---------------------------------------------------------- */

/* The process frees or closes its client, and starts again later. */
static void free_or_close_client(sim_actor *a)
{
  sim_process *p = a->process;
  int64_t restart_after_us = sim_between(&a->rng, 0, 2 * sim_actor_T_us(a));

  if (sim_has_condition(p->world, SIM_CLOSES) && !sim_one_in(&a->rng, 3)) {
    if (sim_process_close(p, restart_after_us))
      sim_coverage_fault(SIM_FAULT_CLOSE);
    return;
  }
  sim_process_free_client(p);
  sim_process_start_in(p, restart_after_us);
}

/* In one of this many callbacks the process frees or closes its client. */
static uint32_t callbacks_per_end_of_client(const sim_actor *a)
{
  return sim_has_condition(world_of(a), SIM_CLOSES) ? 20 : 60;
}

/* Half of the holders act when they are unsure: they release. In scenarios with
 * long holds it is one of six. */
static bool acts_in_callback(sim_actor *a, int callback, const lk_lock_event *e)
{
  if (callback == SIM_CALLBACK_EVENT && e->type == LK_LOCK_EVENT_UNSURE)
    return sim_one_in(&a->rng, world_of(a)->scenario->hold ? 6 : 2);
  return sim_one_in(&a->rng, 6);
}

/* A waiter sometimes revokes its predecessor, whose node the event names. */
static void maybe_revoke(sim_actor *a, const lk_lock_event *e)
{
  if (e->type != LK_LOCK_EVENT_WAITING || e->node == NULL ||
      sim_has_only_mutexes(world_of(a)) || !sim_one_in(&a->rng, 4))
    return;
  (void)lk_set(a->process->client, e->node, lk_text(LK_REVOKE_MESSAGE),
               ANY_VERSION, NULL, NULL, NULL);
}

static void locker_on_callback(sim_handle *h, int callback, int err,
                               const lk_lock_event *e)
{
  sim_actor *a = h->arg;

  bool is_replaced =
      a->handle == NULL || (a->handle != h && a->handle->other != h);

  if (is_replaced)
    return;
  if (world_of(a)->scenario->faults[SIM_FAULT_PAUSE] > 0 && !a->stopping &&
      sim_one_in(&a->rng, 100))
    sim_process_spend_in_callback(a->process,
                                  random_between(a, 0, sim_actor_T_us(a)));
  if (callback == SIM_CALLBACK_EVENT)
    maybe_revoke(a, e);
  if (callback == SIM_CALLBACK_ACQUIRED && err == 0 && !h->is_reentry)
    a->until_us = world_of(a)->agenda.now_us + random_hold(a);
  if (acts_in_callback(a, callback, e)) {
    if (callback == SIM_CALLBACK_EVENT && e->type == LK_LOCK_EVENT_UNSURE &&
        !a->stopping)
      locker_release(a, h);
    else if (sim_one_in(&a->rng, 10))
      replace_or_reset_handle(a, h);
    else if (sim_one_in(&a->rng, callbacks_per_end_of_client(a)) &&
             !world_of(a)->faults_over)
      free_or_close_client(a);
    else
      act_on_random_side(a);
  }
  if (sim_process_runs(a->process))
    schedule_next(a);
}

/* ---- setup and end ------------------------------------------------------ */

static void locker_start(sim_actor *a)
{
  a->lock_index = sim_roll(&a->rng, (uint32_t)world_of(a)->nqueues);
  a->call_depth = 0;
  if (!sim_has_condition(world_of(a), SIM_LATE_LEASE) || sim_one_in(&a->rng, 2))
    make_handle(a);
  sim_actor_act_in(a, random_pause(a));
}

const sim_actor_kind sim_locker = {
    .start = locker_start, .act = locker_act, .leave = free_handle};
