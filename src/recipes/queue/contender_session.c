/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/own_watch.h"

/**
 * @file
 * A contender as a user of the session lease: what it needs the lease for in
 * each state, and what it does when the session lease notifies it.
 */

static lk_contender *contender_of_user(lk_lease_user *u)
{
  return LK_OWNER(u, lk_contender, lease_user);
}

/* A waiter for a single node has no own node, and its create renews the lease.
 */
lk_lease_need lk__contender_lease_need(const lk_contender *ct)
{
  switch (ct->state) {
  case LK_CONTENDER_LISTING:
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_WAITING:
  case LK_CONTENDER_READING_PREDECESSORS:
  case LK_CONTENDER_READING_OWN:
  case LK_CONTENDER_CHECKING_OWN:
    return lk__contender_is_single_node(ct) ? LK_LEASE_NOT_NEEDED
                                            : LK_LEASE_WAITING;
  case LK_CONTENDER_HELD: return LK_LEASE_HELD;
  case LK_CONTENDER_UNSURE: return LK_LEASE_UNSURE;
  case LK_CONTENDER_CLEANING_UP: return LK_LEASE_CLEANUP;
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_LISTING_FIRST:
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
  case LK_CONTENDER_RECOVERING:
  case LK_CONTENDER_READING_CANDIDATES:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
  return LK_LEASE_NOT_NEEDED;
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
  lk__contender_suspend(contender_of_user(u));
}

static void user_expired(lk_lease_user *u)
{
  lk__contender_session_expired(contender_of_user(u));
}

static void user_no_new_session(lk_lease_user *u)
{
  lk_contender *ct = contender_of_user(u);

  if (ct->state == LK_CONTENDER_PAUSED)
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
}

static void user_closed(lk_lease_user *u, int err)
{
  lk__contender_client_closed(contender_of_user(u), err);
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
  lk__contender_supervise_own(contender_of_user(u));
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

  return ct->state >= LK_CONTENDER_SETTING_WATCHES &&
         ct->state <= LK_CONTENDER_READING_PREDECESSORS &&
         ct->predecessors.count == 1 && !ct->role->counts &&
         !ct->config->passing && !lk__contender_is_single_node(ct);
}

static const char *user_node(lk_lease_user *u, bool *unreadable)
{
  const lk_contender *ct = contender_of_user(u);

  *unreadable = ct->own.unreadable;
  return ct->own.path;
}

static bool user_is_stuck(lk_lease_user *u)
{
  return lk__contender_is_stuck(contender_of_user(u));
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

lk_contender *lk__contender_next_of_client(const lk_contender *ct,
                                           const lk_contender *after)
{
  lk_lease_user *u =
      lk__lease_next_user(ct->lease, after == NULL ? NULL : &after->lease_user);

  return u == NULL ? NULL : contender_of_user(u);
}
