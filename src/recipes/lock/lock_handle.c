/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lock/lock_callbacks.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"

/* ---- timers -------------------------------------------------------------- */

void lk__lock_start_timer(lk_lock *l, lk_timer *t, int64_t in_ms)
{
  lk_session_lease *lease = l->lease;

  lk__lease_start_timer(lease, t, lk_client_clock(lease->client) + in_ms);
}

void lk__lock_stop_timer(lk_lock *l, lk_timer *t)
{
  lk__lease_stop_timer(l->lease, t);
}

static void on_next_turn(lk_client *c, void *arg)
{
  lk_lock *l = arg;

  (void)c;
  lk__lock_enter(l);
  lk__lock_complete_without_reply(l, 0);
  lk__lock_leave(l);
}

/* ---- the acquisition ----------------------------------------------------- */

bool lk__lock_holds(const lk_lock *l)
{
  return l->acquisition != NULL && lk__acquisition_holds(l->acquisition);
}

bool lk__lock_is_forked(const lk_lock *l)
{
  return !l->lease->life.detached && lk__client_is_forked(l->lease->client);
}

lk_acquisition *lk__lock_detach_acquisition(lk_lock *l)
{
  lk_acquisition *a = l->acquisition;

  l->acquisition = NULL;
  lk__lock_stop_timer(l, &l->timers.acquire);
  return a;
}

void lk__lock_stop_acquisition(lk_acquisition *a)
{
  const bool report_gone = false;

  a->kind->stop(a, report_gone);
}

void lk__lock_stop_acquisition_and_report(lk_acquisition *a)
{
  const bool report_gone = true;

  a->kind->stop(a, report_gone);
}

void lk__lock_give_up(lk_lock *l, int err)
{
  lk_acquisition *a = lk__lock_detach_acquisition(l);

  lk__lock_enter(l);
  l->acquire_is_late = false;
  if (a != NULL)
    lk__lock_stop_acquisition(a);
  lk__lock_complete(l, &l->acquire, err);
  lk__lock_leave(l);
}

static void on_acquire_timeout(lk_client *c, void *arg)
{
  (void)c;
  lk__lock_give_up(arg, LK_ERR_DEADLINE);
}

/* The released acquisition continues its cleanup by itself, and does not invoke
 * a callback any more. */
static void lock_forget_released(lk_lock *l)
{
  if (l->released != NULL)
    l->released->kind->remove_callbacks(l->released);
  l->released = NULL;
  lk__lock_stop_timer(l, &l->timers.release);
}

static void on_release_timeout(lk_client *c, void *arg)
{
  lk_lock *l = arg;

  (void)c;
  lk__lock_enter(l);
  lock_forget_released(l);
  lk__lock_complete(l, &l->release, LK_ERR_DEADLINE);
  lk__lock_leave(l);
}

lk_acquisition *
lk__lock_make_contender(lk_lock *l, const lk_acquisition_callbacks *callbacks)
{
  lk_contender *ct =
      lk__contender_new(l->lease, &l->options.contender, callbacks, l);

  return ct == NULL ? NULL : &ct->acquisition;
}

/* ---- creation and destruction -------------------------------------------- */

int lk__lock_make(lk_lock **out, lk_client *c, const char *path,
                  const lk_lock_config *config, lk_multilock_side side)
{
  *out = NULL;
  /* Only a mutex can have a local queue. lk_lock_new() adds it afterwards. */
  if (config->local_queue)
    return LK_ERR_BAD_ARGUMENT;
  int err = lk__lock_options_check(path, config);

  if (err != 0)
    return err;
  if (!lk__layout_has_side(lk__layout_rules(config->layout), side))
    return LK_ERR_BAD_ARGUMENT;
  lk_session_lease *lease = lk__lease_of(c);
  lk_lock *l = lease == NULL ? NULL : lk__mem_new(&lease->mem, sizeof *l);

  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  l->lease = lease;
  lk__lease_ref(lease);
  l->timers.acquire = (lk_timer){.fire = on_acquire_timeout, .arg = l};
  l->timers.release = (lk_timer){.fire = on_release_timeout, .arg = l};
  l->timers.next_turn = (lk_timer){.fire = on_next_turn, .arg = l};
  l->source.make = lk__lock_make_contender;
  l->on_event = config->on_event;
  l->arg = config->arg;
  if (!lk__lock_options_init(&l->options, &lease->mem, path, config, side)) {
    lk__lock_destroy(l);
    return LK_ERR_NO_MEMORY;
  }
  *out = l;
  return 0;
}

static void lock_complete_ended(lk_lock *l)
{
  lk__lock_complete(l, &l->ended_acquire, LK_ERR_CLOSED);
  lk__lock_complete(l, &l->ended_release, LK_ERR_CLOSED);
}

/* Cancel and release everything. The callbacks of the ended calls are invoked
 * last: a call that one of them begins is not completed here. One of them can
 * free the lock; then the others are invoked before lk_lock_free() returns. */
static void lock_cancel_all(lk_lock *l)
{
  lock_complete_ended(l); /* those of a reset that has called this callback */

  lk_acquisition *a = lk__lock_detach_acquisition(l);

  l->ended_acquire = l->acquire;
  l->ended_release = l->release;
  lk__lock_stop_timer(l, &l->timers.next_turn);
  l->acquire.pending = false;
  l->release.pending = false;
  l->acquire_is_late = false;
  l->lost = false;
  l->count = 0;
  lock_forget_released(l);
  if (a != NULL)
    lk__lock_stop_acquisition(a);
  lk__lock_complete_verify(l, LK_ERR_CLOSED);
  lock_complete_ended(l);
}

void lk_lock_reset(lk_lock *l)
{
  if (l->freeing)
    return;
  lk__lock_enter(l);
  lock_cancel_all(l);
  lk__lock_leave(l);
}

void lk_lock_free(lk_lock *l)
{
  if (l == NULL || l->freeing)
    return;
  lk__lock_enter(l);
  l->freeing = true;
  lock_cancel_all(l);
  lk__lock_leave(l);
}
