/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/holding.h"

#include "recipes/queue/acquisition.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/heartbeat.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/lease_deadline.h"
#include "recipes/queue/own_node.h"

/* ---- the grant ----------------------------------------------------------- */

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

static void holder_make_watch_due(lk_contender *ct)
{
  ct->holding.watch_due_ms = lk_client_input_ms(lk__contender_client(ct));
}

static void holder_begin(lk_contender *ct)
{
  lk_session_lease *lease = ct->lease;

  lk__contender_cancel_wait_watch(ct);
  ct->holding.proven = true;
  ct->holding.awaits_lease = false;
  /* The first heartbeat at this time or later watches the own node. */
  ct->holding.watch_due_ms =
      lk_client_input_ms(lease->client) + lk__lease_timeout_ms(lease) / 4;
  ct->holding.read_due_ms =
      lk_client_input_ms(lease->client) + lk_client_timeout_ms(lease->client);
  lk__lease_watch_deadline(lease);
  int64_t heartbeat_due_ms = lk__heartbeat_after_grant(lease);

  if (heartbeat_due_ms < ct->holding.watch_due_ms)
    ct->holding.watch_due_ms = heartbeat_due_ms;
  if (ct->config->revocable) {
    holder_make_watch_due(ct);
    lk__contender_supervise_own(ct);
  }
}

static void holder_notify_revoked(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};

  lk__contender_notify(ct, &notice);
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
  if (lk__contender_holds(ct))
    holder_begin(ct);
  if (lk__contender_holds(ct) && ct->callbacks != NULL)
    ct->callbacks->granted(ct->callbacks_arg);
  /* The revocation came while the contender waited. granted() may have released
   * the lock. */
  if (lk__contender_holds(ct) && ct->holding.revoked)
    holder_notify_revoked(ct);
}

/* ---- READING_OWN --------------------------------------------------------- */

static int contender_enter_reading_own(lk_contender *ct)
{
  ct->round.own_err = 0;
  /* The read that sets the watch is under way. If it had completed, the token
   * would be known and the node verified: a watch ends with its connection. */
  if (ct->own.watch != NULL)
    return 0;
  return lk__contender_watch_own(ct);
}

static void contender_judge_own_read(lk_contender *ct)
{
  if (ct->round.own_err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (ct->round.own_err != 0)
    lk__contender_request_failed(ct, ct->round.own_err);
  else
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
}

const lk_contender_rules lk__rules_reading_own = {
    .next = {LK_ON(GRANT, HELD), LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON(LIST_NEEDED, LISTING), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_reading_own,
    .reads_done = contender_judge_own_read};

/* ---- CHECKING_OWN -------------------------------------------------------- */

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

static int contender_enter_checking_own(lk_contender *ct)
{
  return lk__contender_check_own(ct, on_own_checked);
}

const lk_contender_rules lk__rules_checking_own = {
    .next = {LK_ON(GRANT, HELD), LK_ON(LIST_NEEDED, LISTING),
             LK_ON(TOKEN_NEEDED, READING_OWN), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_checking_own};

/* ---- the lease ----------------------------------------------------------- */

int64_t lk__contender_deadline(const lk_contender *ct)
{
  return lk__contender_holds(ct) ? lk__lease_deadline(ct->lease) : LK_NO_LEASE;
}

/* Send a request that can prove the own node. If no heartbeat is sent, one is
 * under way, which may not check the own node. */
static void holder_prove_own(lk_contender *ct)
{
  bool heartbeat_sent = lk__heartbeat_now(ct->lease);

  if (!heartbeat_sent && lk__lease_is_online(ct->lease))
    lk__contender_supervise_own(ct);
}

static void holder_set_unsure(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_UNSURE,
                      .deadline_ms = lk__contender_deadline(ct)};

  ct->holding.proven = false;
  holder_make_watch_due(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_LEASE_ENDING);
  holder_prove_own(ct);
  lk__contender_notify(ct, &notice);
}

static void holder_notify_lease_proven(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_LEASE_PROVEN,
                      .deadline_ms = lk__contender_deadline(ct)};

  ct->holding.awaits_lease = false;
  lk__contender_notify(ct, &notice);
}

static void holder_set_sure(lk_contender *ct)
{
  lk__contender_step(ct, LK_CONTENDER_ON_LEASE_PROVEN);
  lk__lease_watch_deadline(ct->lease);
  holder_notify_lease_proven(ct);
}

void lk__contender_review_lease(lk_contender *ct)
{
  lk_session_lease *lease = ct->lease;
  bool online = lk__lease_is_online(lease);
  bool lease_ending = lk_client_clock(lease->client) >=
                      lk__lease_unsure_ms(lease, lk__contender_deadline(ct));

  if (ct->state == LK_CONTENDER_HELD &&
      (lease_ending || (!online && ct->config->unsure_when_suspended)))
    holder_set_unsure(ct);
  else if (ct->state == LK_CONTENDER_UNSURE && !lease_ending && online &&
           ct->holding.proven)
    holder_set_sure(ct);
}

void lk__contender_await_lease(lk_contender *ct)
{
  ct->holding.awaits_lease = true;
  lk__lease_await(ct->lease);
}

void lk__contender_lease_renewed(lk_contender *ct)
{
  if (ct->holding.awaits_lease && ct->state == LK_CONTENDER_HELD)
    holder_notify_lease_proven(ct);
}

void lk__holder_suspend(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_SUSPENDED,
                      .deadline_ms = lk__contender_deadline(ct)};

  ct->holding.proven = false;
  holder_make_watch_due(ct);
  lk__contender_notify(ct, &notice);
  lk__contender_review_lease(ct);
}

/* ---- the own node -------------------------------------------------------- */

void lk__contender_own_checked(lk_contender *ct, lk_check_result result)
{
  if (!lk__contender_holds(ct) || result == LK_CHECK_UNKNOWN)
    return;
  if (result == LK_CHECK_MISSING) {
    lk__contender_lose(ct, LK_ERR_NO_NODE);
    return;
  }
  ct->holding.proven = true;
  lk__contender_review_lease(ct);
}

static void on_own_read_without_watch(lk_client *c, int err,
                                      const lk_bytes *data, const lk_stat *stat,
                                      void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    if (err == LK_ERR_NO_AUTH)
      lk__contender_own_unreadable(ct);
    lk__contender_own_checked(ct, lk__contender_check_result(ct, err));
  }
  lk__contender_unref(ct);
}

/* If a request is refused, the next heartbeat calls this function again. A
 * watch does not report the deletion of a node that may not be read any more.
 * So if heartbeats do not check the own node, it is also read once in a session
 * timeout. */
void lk__contender_supervise_own(lk_contender *ct)
{
  lk_client *c = lk__contender_client(ct);
  int64_t now = lk_client_input_ms(c);
  bool heartbeats_check_node = ct->lease->config.assurance == LK_ASSURE_QUORUM;

  if (ct->own.watch == NULL && !ct->own.unreadable &&
      now >= ct->holding.watch_due_ms) {
    (void)lk__contender_watch_own(ct);
  } else if (!heartbeats_check_node &&
             (!ct->holding.proven || now >= ct->holding.read_due_ms)) {
    ct->holding.read_due_ms = now + lk_client_timeout_ms(c);
    (void)lk__contender_count_request(
        ct,
        lk_get(c, ct->own.path, LK_NO_OPTIONS, on_own_read_without_watch, ct));
  }
}

/* ---- HELD, UNSURE -------------------------------------------------------- */

static void holder_verify(lk_contender *ct)
{
  ct->holding.proven = false;
  holder_make_watch_due(ct);
  holder_prove_own(ct);
}

const lk_contender_rules lk__rules_held = {
    .next = {LK_ON(LEASE_ENDING, UNSURE), LK_ON(STOP, CLEANING_UP),
             LK_ON(GONE_FOR_GOOD, FINISHED)},
    .need = LK_LEASE_HELD,
    .restart = holder_verify};

const lk_contender_rules lk__rules_unsure = {
    .next = {LK_ON(LEASE_PROVEN, HELD), LK_ON(STOP, CLEANING_UP),
             LK_ON(GONE_FOR_GOOD, FINISHED)},
    .need = LK_LEASE_UNSURE,
    .restart = holder_verify};

/* ---- the loss ------------------------------------------------------------ */

void lk__contender_lose(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  void *arg = ct->callbacks_arg;

  ct->callbacks = NULL;
  lk__contender_ignore_replies(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_GONE_FOR_GOOD);
  if (callbacks != NULL)
    callbacks->lost(arg, err);
}
