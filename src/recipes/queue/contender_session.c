/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender_session.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/own_node_watch.h"
#include "recipes/queue/place_lost.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/waiting.h"

/* ---- connection and session --------------------------------------------- */

void lk__contender_resume(lk_contender *ct)
{
  const lk_contender_rules *rules = lk__contender_rules(ct);

  if (rules->resume != NULL)
    rules->resume(ct);
}

static void contender_suspend(lk_contender *ct)
{
  if (lk__contender_holds(ct))
    lk__holder_suspend(ct);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

static void contender_session_expired(lk_contender *ct)
{
  bool had_place = ct->own.state == LK_OWN_CREATED;
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST,
                      .err = LK_ERR_SESSION_EXPIRED};

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  lk__contender_forget_own(ct);
  if (ct->state == LK_CONTENDER_CLEANING_UP) {
    lk__cleanup_continue(ct);
    return;
  }
  if (ct->config->fail_on_expiry) {
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  lk__contender_prepare_create(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  if (had_place)
    lk__contender_notify(ct, &notice);
}

static void contender_client_closed(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  bool was_stopped = ct->state == LK_CONTENDER_CLEANING_UP;

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, err);
    return;
  }
  ct->callbacks = NULL;
  lk__contender_ignore_replies(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_OWN_GONE);
  if (callbacks != NULL && was_stopped)
    callbacks->gone(ct->callbacks_arg, err);
  else if (callbacks != NULL)
    callbacks->ended(ct->callbacks_arg, err);
}

/* Whether the contender waits for a grant, but no reply and no event can come
 * that would continue it. This is a bug, for which debug builds look. */
static bool contender_is_stuck(const lk_contender *ct)
{
  switch (ct->state) {
  case LK_CONTENDER_LISTING_FIRST:
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
  case LK_CONTENDER_RECOVERING:
  case LK_CONTENDER_READING_CANDIDATES:
  case LK_CONTENDER_LISTING:
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_READING_PREDECESSORS:
  case LK_CONTENDER_READING_OWN:
  case LK_CONTENDER_CHECKING_OWN: return lk__contender_has_all_replies(ct);
  case LK_CONTENDER_WAITING:
    return lk__contender_has_all_replies(ct) && !ct->machine->has_watch(ct);
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
  case LK_CONTENDER_CLEANING_UP:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
  return false;
}

/* ---- functions of lk_lease_user_kind ------------------------------------ */

static lk_contender *contender_of_user(lk_lease_user *u)
{
  return LK_OWNER(u, lk_contender, lease_user);
}

static void user_ref(lk_lease_user *u)
{
  lk__contender_ref(contender_of_user(u));
}

static void user_unref(lk_lease_user *u)
{
  lk__contender_unref(contender_of_user(u));
}

static void user_connected(lk_lease_user *u)
{
  lk__contender_resume(contender_of_user(u));
}

static void user_suspended(lk_lease_user *u)
{
  contender_suspend(contender_of_user(u));
}

static void user_expired(lk_lease_user *u)
{
  contender_session_expired(contender_of_user(u));
}

static void user_no_new_session(lk_lease_user *u)
{
  lk_contender *ct = contender_of_user(u);

  /* The expiry has paused each contender that was not granted. */
  if (ct->state == LK_CONTENDER_PAUSED)
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
}

static void user_closed(lk_lease_user *u, int err)
{
  contender_client_closed(contender_of_user(u), err);
}

static void user_review(lk_lease_user *u)
{
  lk__contender_review_lease(contender_of_user(u));
}

static void user_renewed(lk_lease_user *u)
{
  lk__contender_lease_renewed(contender_of_user(u));
}

static void user_supervise(lk_lease_user *u)
{
  lk_contender *ct = contender_of_user(u);

  if (lk__contender_holds(ct))
    lk__contender_supervise_own(ct);
  else
    lk__waiter_supervise_own(ct);
}

static void user_checked(lk_lease_user *u, int err)
{
  lk_contender *ct = contender_of_user(u);

  if (err == LK_ERR_NO_AUTH)
    lk__contender_own_unreadable(ct);
  lk__contender_own_checked(ct, lk__contender_check_result(ct, err));
}

static bool user_is_next(lk_lease_user *u)
{
  const lk_contender *ct = contender_of_user(u);

  return lk__contender_waits(ct) && ct->predecessors.count == 1 &&
         !ct->role->is_permit && !ct->config->needs_no_lease &&
         !lk__contender_is_single_node(ct);
}

static const char *user_node(lk_lease_user *u, bool *unreadable)
{
  const lk_contender *ct = contender_of_user(u);

  *unreadable = ct->own.unreadable;
  return ct->own.path;
}

static bool user_is_stuck(lk_lease_user *u)
{
  return contender_is_stuck(contender_of_user(u));
}

const lk_lease_user_kind lk__contender_lease_user = {
    .ref = user_ref,
    .unref = user_unref,
    .connected = user_connected,
    .suspended = user_suspended,
    .expired = user_expired,
    .no_new_session = user_no_new_session,
    .closed = user_closed,
    .review = user_review,
    .renewed = user_renewed,
    .supervise = user_supervise,
    .checked = user_checked,
    .is_next = user_is_next,
    .node = user_node,
    .is_stuck = user_is_stuck};
