/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

static lk_assurance assurance(const lk_contend *ct)
{
  return ct->lease->config.assurance;
}

int64_t lk__contend_deadline(const lk_contend *ct)
{
  return lk__contend_holds(ct) ? lk__lease_deadline(ct->lease) : LK_NO_LEASE;
}

/* ---- check ------------------------------------------------------------- */

lk_verdict lk__contend_verdict(int err)
{
  switch (err) {
  case 0:
  case LK_ERR_BAD_VERSION:
  case LK_ERR_NO_AUTH: return LK_VERDICT_THERE;
  case LK_ERR_NO_NODE: return LK_VERDICT_MISSING;
  default: return LK_VERDICT_UNKNOWN;
  }
}

lk_verdict lk__contend_weigh(const lk_contend *ct, int err)
{
  lk_verdict v = lk__contend_verdict(err);
  bool watched = ct->own_watch != NULL &&
                 ct->watched_on == lk_client_connection(lk__contend_client(ct));
  bool sure = lk__contend_is_fixed(ct) ? watched : !lk__contend_doubtful(ct);

  return v == LK_VERDICT_THERE && !sure ? LK_VERDICT_UNKNOWN : v;
}

void lk__contend_checked(lk_contend *ct, lk_verdict v)
{
  if (!lk__contend_holds(ct) || v == LK_VERDICT_UNKNOWN)
    return;
  if (v == LK_VERDICT_MISSING) {
    lk__contend_lost(ct, LK_ERR_NO_NODE);
    return;
  }
  ct->proven = true;
  lk__contend_review(ct);
}

/* Before the grant: own is there; is the lease renewed as well? */
static void judge_check(lk_contend *ct, int err, int64_t now_ms)
{
  switch (lk__contend_verdict(err)) {
  case LK_VERDICT_UNKNOWN: lk__contend_trouble(ct, err); break;
  case LK_VERDICT_MISSING: lk__contend_absent(ct, err); break;
  case LK_VERDICT_THERE:
    ct->checked = true;
    lk__contend_first(ct, now_ms);
    break;
  }
}

static void on_checked(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  lk_contend *ct = arg;

  (void)results;
  (void)count;
  if (lk__contend_answered(ct) && ct->state == LK_CONTEND_CHECKING)
    judge_check(ct, err, lk_client_clock(c));
  lk__contend_unref(ct);
}

int lk__contend_check(lk_contend *ct, lk_multi_cb done)
{
  lk_op check = lk_op_check(ct->node, -1);

  return lk__contend_asked(
      ct, lk_multi(lk__contend_client(ct), &check, 1, NULL, done, ct));
}

int lk__enter_checking(lk_contend *ct)
{
  return lk__contend_check(ct, on_checked);
}

/* ---- announcement ------------------------------------------------------- */

static void on_announced(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contend_answered(ct)) {
    lk__heartbeat_put_off(ct->lease);
    lk__contend_checked(ct, lk__contend_verdict(err));
  }
  lk__contend_unref(ct);
}

/* Over what was there from the start only: somebody's request to let go is not
 * written over. */
static int announce(lk_contend *ct)
{
  return lk__contend_asked(ct, lk_set(lk__contend_client(ct), ct->node,
                                      ct->config->announcement, 0, NULL,
                                      on_announced, ct));
}

/* ---- grant ------------------------------------------------------------- */

/* It was asked for while we waited. */
static void tell_revoked(lk_contend *ct)
{
  lk_news news = {.type = LK_NEWS_REVOKED};

  lk__contend_tell(ct, &news);
}

bool lk__contend_is_leased(const lk_contend *ct, int64_t now_ms)
{
  return ct->config->passing || lk__lease_may_grant(ct->lease, now_ms);
}

/* The lease is too old for a grant, and a check renews it. If one was answered
 * just now, all that is known is too recent for it to prove; that takes a
 * gap. */
static void renew_lease(lk_contend *ct)
{
  if (!ct->checked) {
    lk__contend_step(ct, LK_EV_STALE);
    return;
  }
  ct->checked = false;
  lk__contend_rest(ct, lk__lease_gap_ms(ct->lease) + 1);
  lk__contend_step(ct, LK_EV_HALT);
}

void lk__contend_first(lk_contend *ct, int64_t now_ms)
{
  if (ct->token == 0 || lk__contend_doubtful(ct)) {
    lk__contend_step(ct, LK_EV_UNREAD);
    return;
  }
  if (!lk__contend_is_leased(ct, now_ms)) {
    renew_lease(ct);
    return;
  }
  lk__contend_step(ct, LK_EV_FIRST);
  if (lk__contend_holds(ct) && ct->owner != NULL)
    ct->owner->granted(ct->owner_arg);
  if (lk__contend_holds(ct) && ct->revoked)
    tell_revoked(ct);
}

void lk__enter_held(lk_contend *ct)
{
  lk_keeper *k = ct->lease;

  if (ct->pred_watch != NULL)
    lk_watch_cancel(k->client, ct->pred_watch, true);
  ct->pred_watch = NULL;
  ct->proven = true;
  ct->awaits = false;
  ct->read_due_ms = lk_client_now(k->client) + lk__lease_timeout_ms(k) / 4;
  ct->look_due_ms = lk_client_now(k->client) + lk_client_timeout_ms(k->client);
  lk__lease_watch_deadline(k, ct);
  lk__heartbeat_granted(ct);
  /* Refused: those behind it list the queue. */
  if (ct->waited && ct->config->announcement.at != NULL)
    (void)announce(ct);
  if (ct->config->revocable) {
    ct->read_due_ms = lk_client_now(k->client);
    lk__contend_supervise(ct);
  }
}

void lk__contend_lost(lk_contend *ct, int err)
{
  const lk_owner *owner = ct->owner;
  void *arg = ct->owner_arg;

  ct->owner = NULL;
  lk__contend_outdate(ct);
  lk__contend_step(ct, LK_EV_GONE);
  if (owner != NULL)
    owner->lost(arg, err);
}

/* ---- supervision ------------------------------------------------------- */

static void doubt(lk_contend *ct)
{
  lk_news news = {.type = LK_NEWS_UNSURE,
                  .deadline_ms = lk__contend_deadline(ct)};

  ct->proven = false;
  ct->read_due_ms = lk_client_now(lk__contend_client(ct));
  lk__contend_step(ct, LK_EV_DOUBT);
  if (!lk__heartbeat_now(ct->lease) && lk__lease_is_online(ct->lease))
    lk__contend_supervise(ct); /* the beat under way may not ask for own */
  lk__contend_tell(ct, &news);
}

static void tell_proven(lk_contend *ct)
{
  lk_news news = {.type = LK_NEWS_PROVEN,
                  .deadline_ms = lk__contend_deadline(ct)};

  ct->awaits = false;
  lk__contend_tell(ct, &news);
}

static void prove(lk_contend *ct)
{
  lk__contend_step(ct, LK_EV_PROVEN);
  lk__lease_watch_deadline(ct->lease, ct);
  tell_proven(ct);
}

void lk__contend_await(lk_contend *ct)
{
  ct->awaits = true;
  ct->lease->awaited = true;
  (void)lk__heartbeat_now(ct->lease);
}

void lk__contend_stop_await(lk_contend *ct)
{
  if (ct->awaits && ct->state == LK_CONTEND_HELD)
    tell_proven(ct);
}

void lk__contend_review(lk_contend *ct)
{
  lk_keeper *k = ct->lease;
  bool online = lk__lease_is_online(k);
  bool late = lk_client_clock(k->client) >=
              lk__lease_unsure_ms(k, lk__contend_deadline(ct));

  if (ct->state == LK_CONTEND_HELD &&
      (late || (!online && ct->config->unsure_when_suspended)))
    doubt(ct);
  else if (ct->state == LK_CONTEND_UNSURE && !late && online && ct->proven)
    prove(ct);
}

static void on_seen(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contend_answered(ct)) {
    if (err == LK_ERR_NO_AUTH)
      lk__contend_unwatched(ct);
    lk__contend_checked(ct, lk__contend_weigh(ct, err));
  }
  lk__contend_unref(ct);
}

/* What is refused is asked for again by the next beat. A watch alone does not
 * tell of a node that may not be read any more: where no multi checks own, it
 * is looked at once in a session timeout. */
void lk__contend_supervise(lk_contend *ct)
{
  lk_client *c = lk__contend_client(ct);
  int64_t now = lk_client_now(c);

  if (ct->own_watch == NULL && !ct->unreadable && now >= ct->read_due_ms) {
    (void)lk__contend_watch_own(ct);
  } else if (assurance(ct) != LK_ASSURE_QUORUM &&
             (!ct->proven || now >= ct->look_due_ms)) {
    ct->look_due_ms = now + lk_client_timeout_ms(c);
    (void)lk__contend_asked(ct, lk_get(c, ct->node, NULL, on_seen, ct));
  }
}
