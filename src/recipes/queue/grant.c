/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/grant.h"
#include "recipes/queue/own_node_check.h"
#include "recipes/queue/own_node_watch.h"
#include "recipes/queue/place_lost.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/request_errors.h"
#include "recipes/queue/retry_backoff.h"

static void holder_notify_revoked(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};

  lk__contender_notify(ct, &notice);
}

bool lk__contender_lease_suffices(const lk_contender *ct, int64_t now_ms)
{
  return ct->config->needs_no_lease || lk__lease_may_grant(ct->lease, now_ms);
}

/* The lease is too short for a grant: check the own node. A check renews the
 * lease by an earlier request, whose reply came at least one gap before the
 * check was sent; see proto/engine/evidence.h. If a check has just
 * completed, there was no such request that is recent enough. After a pause of
 * one gap there is one: the check that has completed. */
static void contender_renew_lease(lk_contender *ct)
{
  if (!ct->round.checked) {
    lk__contender_step(ct, LK_CONTENDER_ON_CHECK_NEEDED);
    return;
  }
  int64_t longer_than_gap_ms = lk__lease_gap_ms(ct->lease) + 1;

  ct->round.checked = false;
  lk__contender_start_pause(ct, longer_than_gap_ms);
  lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

void lk__contender_try_grant(lk_contender *ct, int64_t now_ms)
{
  /* The last list was compared with the limit as it was before. */
  if (ct->wait.limit_changed) {
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
    return;
  }
  /* Reading the own node brings the token, and verifies the node. */
  if (ct->own.token == 0 ||
      lk__own_node_needs_verification(&ct->own, lk__contender_connection(ct))) {
    lk__contender_step(ct, LK_CONTENDER_ON_TOKEN_NEEDED);
    return;
  }
  if (!lk__contender_lease_suffices(ct, now_ms)) {
    contender_renew_lease(ct);
    return;
  }
  lk__contender_step(ct, LK_CONTENDER_ON_GRANT);
  if (lk__contender_holds(ct) && ct->callbacks != NULL)
    ct->callbacks->granted(ct->callbacks_arg);
  /* The revocation came while the contender waited. granted() may have released
   * the lock. */
  if (lk__contender_holds(ct) && ct->holding.revoked)
    holder_notify_revoked(ct);
}

/* ---- CHECKING_OWN ------------------------------------------------------- */

static void contender_judge_check(lk_contender *ct, int err, int64_t now_ms)
{
  switch (lk__check_result_of(err)) {
  case LK_CHECK_UNKNOWN: lk__contender_request_failed(ct, err); break;
  case LK_CHECK_MISSING: lk__contender_own_missing(ct, err); break;
  case LK_CHECK_EXISTS:
    ct->round.checked = true;
    lk__contender_try_grant(ct, now_ms);
    break;
  }
}

static void on_own_checked(lk_client *c, int err, const lk_op_result *results,
                           size_t count, void *arg)
{
  lk_contender *ct = arg;

  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct) && ct->state == LK_CONTENDER_CHECKING_OWN)
    contender_judge_check(ct, err, lk_client_clock(c));
  lk__contender_unref(ct);
}

static int contender_enter_checking_own(lk_contender *ct,
                                        lk_contender_state from)
{
  (void)from;
  return lk__contender_check_own(ct, on_own_checked);
}

const lk_contender_rules lk__rules_checking_own = {
    .next = {LK_ON(GRANT, HELD), LK_ON(LIST_NEEDED, LISTING),
             LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_checking_own};

/* ---- READING_OWN -------------------------------------------------------- */

static void contender_judge_own_read(lk_contender *ct)
{
  if (ct->round.own_err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (ct->round.own_err != 0)
    lk__contender_request_failed(ct, ct->round.own_err);
  else
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
}

static int contender_enter_reading_own(lk_contender *ct,
                                       lk_contender_state from)
{
  (void)from;
  ct->round.own_err = 0;
  /* The read that sets the watch is under way. If it had completed, the token
   * would be known and the node verified: a watch ends with its connection. */
  if (ct->own.watch != NULL)
    return 0;
  return lk__contender_watch_own(ct);
}

const lk_contender_rules lk__rules_reading_own = {
    .next = {LK_ON(GRANT, HELD), LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON(LIST_NEEDED, LISTING), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_reading_own,
    .reads_done = contender_judge_own_read};
