/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/lock/lock_options.h"

static void pred_left(lk_contender *ct);

/* ---- reads ------------------------------------------------------------- */

static void complete(lk_contender *ct);

static void on_pred_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg);

/* Pred may say that it holds. Only one that excludes all others can know that
 * nobody is before it, now and later. */
static void look_for_announcement(lk_contender *ct, const lk_bytes *data)
{
  lk_name n;

  if (ct->ahead.count < 2 || !lk__is_announcement(*data) ||
      !lk__name_parse(ct->role->naming,
                      lk_text(ct->ahead.path[0] + strlen(ct->dir) + 1), &n) ||
      n.mark->family != LK_FAMILY_MUTEX)
    return;
  lk__predecessors_keep_direct(&ct->ahead);
  lk__contender_notify_position(ct);
}

static void on_pred(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    ct->pred_err = err;
    if (err != 0)
      ct->pred_watch = NULL;
    else
      look_for_announcement(ct, data);
    if (!lk__contender_fail_if_too_big(ct, err))
      complete(ct);
  }
  lk__contender_unref(ct);
}

static int watch_pred(lk_contender *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_break = true,
                  .on_event = on_pred_event,
                  .watch_arg = ct,
                  .watch = &ct->pred_watch};

  return lk__contender_count_request(
      ct, lk_get(lk__contender_client(ct), ct->ahead.path[0], &call, done, ct));
}

static void on_pred_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg)
{
  lk_contender *ct = arg;
  bool current = ct->state == LK_CONTENDER_SETTING_WATCHES ||
                 ct->state == LK_CONTENDER_WAITING ||
                 ct->state == LK_CONTENDER_READING_PREDECESSORS;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->pred_watch = NULL;
  if (current && event->type == LK_EVENT_DELETED) {
    ct->pred_gone = true;
    if (ct->state == LK_CONTENDER_WAITING)
      pred_left(ct);
  } else if (current && event->type != LK_EVENT_ENDED) {
    /* Only its data changed (a revocation, an announcement). */
    int err = watch_pred(ct, on_pred);

    if (err != 0)
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}

void lk__contender_own_unreadable(lk_contender *ct)
{
  lk_notice news = {.type = LK_NOTICE_UNWATCHED};

  if (ct->unreadable)
    return;
  ct->unreadable = true;
  lk__contender_notify(ct, &news);
}

/* A read of own shows the token of a node that was found again, and whether it
 * is this session's. */
static int take_own(lk_contender *ct, const lk_stat *stat)
{
  lk_client *c = lk__contender_client(ct);

  if (stat->ephemeral_owner != lk_client_session(c).id)
    return LK_ERR_NO_NODE;
  if (lk__name_is_shared(ct->unique) && ct->token != 0 &&
      ct->token != (uint64_t)stat->czxid)
    return LK_ERR_NO_NODE;
  ct->watched_on = lk_client_connection(c);
  ct->seen_on = ct->watched_on;
  ct->token = (uint64_t)stat->czxid;
  return 0;
}

void lk__contender_check_revocation(lk_contender *ct, const lk_bytes *data)
{
  static const char word[] = LK_REVOKE_MESSAGE;
  lk_notice news = {.type = LK_NOTICE_REVOKED};

  if (ct->revoked || data->at == NULL || data->len != sizeof word - 1 ||
      memcmp(data->at, word, data->len) != 0)
    return;
  ct->revoked = true;
  if (lk__contender_holds(ct))
    lk__contender_notify(ct, &news);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg);

static void on_own(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    if (err != 0)
      ct->own_watch = NULL;
    else
      err = take_own(ct, stat);
    ct->own_err = err;
    if (err == LK_ERR_NO_AUTH)
      lk__contender_own_unreadable(ct);
    if (lk__contender_holds(ct))
      lk__contender_own_checked(ct, lk__contender_check_result(ct, err));
    else
      complete(ct);
    if (err == 0)
      lk__contender_check_revocation(ct, data);
  }
  lk__contender_unref(ct);
}

int lk__contender_read_own(lk_contender *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_break = true,
                  .on_event = on_own_event,
                  .watch_arg = ct,
                  .watch = &ct->own_watch};

  return lk__contender_count_request(
      ct, lk_get(lk__contender_client(ct), ct->node, &call, done, ct));
}

int lk__contender_watch_own(lk_contender *ct)
{
  return lk__contender_read_own(ct, on_own);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->own_watch = NULL;
  ct->watched_on = 0;
  if (lk__contender_is_single_node(ct) && ct->own != LK_OWN_CREATED) {
    lk__single_node_on_event(ct, event->type);
  } else if (event->type == LK_EVENT_DELETED) {
    if (lk__contender_holds(ct))
      lk__contender_lose(ct, LK_ERR_NO_NODE);
    else
      lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  } else if (event->type != LK_EVENT_ENDED) {
    int err = lk__contender_watch_own(ct);

    /* A holder is watched again by the next beat. */
    if (err != 0 && !lk__contender_holds(ct))
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}

/* ---- park -------------------------------------------------------------- */

int lk__enter_setting_watches(lk_contender *ct)
{
  int err = 0;

  ct->waited = true;
  ct->pred_gone = false;
  ct->pred_err = 0;
  ct->own_err = 0;
  if (!ct->by_children)
    err = watch_pred(ct, on_pred);
  if (err == 0 && ct->own_watch == NULL && !ct->unreadable)
    err = lk__contender_watch_own(ct);
  if (err == 0 && lk__contender_has_all_replies(ct))
    complete(ct);
  return err;
}

int lk__enter_reading_own(lk_contender *ct)
{
  ct->own_err = 0;
  return ct->own_watch == NULL ? lk__contender_watch_own(ct) : 0;
}

/* ---- probe ------------------------------------------------------------- */

static void on_probed(lk_client *c, int err, const lk_bytes *data,
                      const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    size_t i = ct->probe_at++;

    if (i == 0 && err != 0)
      ct->pred_watch = NULL;
    ct->probe_gone[i] = err == LK_ERR_NO_NODE;
    /* Of the others it is enough that they are there. */
    if (err != LK_ERR_NO_NODE && (err != LK_ERR_NO_AUTH || i == 0) && err != 0)
      ct->pred_err = err;
    if (!lk__contender_fail_if_too_big(ct, err))
      complete(ct);
  }
  lk__contender_unref(ct);
}

int lk__enter_reading_predecessors(lk_contender *ct)
{
  int err;

  ct->pred_gone = false;
  ct->pred_err = 0;
  ct->own_err = 0;
  ct->probe_at = 0;
  memset(ct->probe_gone, 0, sizeof ct->probe_gone);
  err = watch_pred(ct, on_probed);
  for (size_t i = 1; i < ct->ahead.kept && err == 0; i++)
    err = lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                 ct->ahead.path[i], NULL,
                                                 on_probed, ct));
  return err;
}

/* ---- what the answers mean --------------------------------------------- */

/* Nobody is left of those who were ahead: rule H. */
static void none_left(lk_contender *ct)
{
  lk_client *c = lk__contender_client(ct);
  int64_t now = lk_client_clock(c);
  uint64_t connection = lk_client_connection(c);
  lk_handoff h = {
      .ahead = ct->ahead.count,
      .same_connection = connection != 0 && connection == ct->ahead.connection,
      .own_watched = ct->own_watch != NULL && ct->watched_on == connection,
      .exclusive = ct->role->exclusive,
      .writ_ahead = ct->ahead.writ_ahead,
      .in_range = ct->ahead.in_range,
      .leased = lk__contender_lease_suffices(ct, now)};

  if (lk__may_grant_on_deletion(&h))
    lk__contender_try_grant(ct, now);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

/* Pred is gone. Who else was ahead may be gone as well. */
static void pred_left(lk_contender *ct)
{
  lk__predecessors_remove(&ct->ahead, 0);
  if (ct->ahead.count == 0)
    none_left(ct);
  else if (ct->ahead.count <= LK_MAX_PREDECESSOR_READS)
    lk__contender_step(ct, LK_CONTENDER_ON_FEW_LEFT);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

static void judge_probed(lk_contender *ct)
{
  bool pred_left_too = ct->pred_gone || ct->probe_gone[0];

  ct->probe_gone[0] = pred_left_too;
  for (size_t i = ct->ahead.kept; i-- > 0;) {
    if (ct->probe_gone[i])
      lk__predecessors_remove(&ct->ahead, i);
  }
  if (ct->ahead.count == 0) {
    none_left(ct);
    return;
  }
  lk__contender_step(ct, pred_left_too ? LK_CONTENDER_ON_PREDECESSORS
                                       : LK_CONTENDER_ON_WATCHES_SET);
  lk__contender_notify_position(ct);
}

static void judge_parked(lk_contender *ct)
{
  if (ct->by_children && (ct->pred_watch == NULL || ct->recount))
    lk__contender_step(
        ct, LK_CONTENDER_ON_LIST_NEEDED); /* it has fired, or another counts */
  else if (!ct->by_children && ct->pred_gone)
    pred_left(ct);
  else if (ct->state == LK_CONTENDER_SETTING_WATCHES)
    lk__contender_step(ct, LK_CONTENDER_ON_WATCHES_SET);
}

/* A pred that cannot be read is no use: not even its deletion would be told. */
static void watch_children(lk_contender *ct)
{
  lk_client_log(lk__contender_client(ct), LK_LOG_WARNING, LK_ERR_NO_AUTH,
                "a contender ahead cannot be read: watching the whole queue");
  ct->by_children = true;
  lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

/* All reads were answered. */
static void judge_reads(lk_contender *ct)
{
  bool probing = ct->state == LK_CONTENDER_READING_PREDECESSORS;

  if (ct->pred_err == LK_ERR_NO_NODE) {
    ct->pred_gone = true;
    ct->pred_err = 0;
  }
  if (ct->own_err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (ct->own_err != 0 && ct->own_err != LK_ERR_NO_AUTH)
    lk__contender_request_failed(ct, ct->own_err);
  else if (ct->pred_err == LK_ERR_NO_AUTH)
    watch_children(ct);
  else if (ct->pred_err != 0)
    lk__contender_request_failed(ct, ct->pred_err);
  else if (probing)
    judge_probed(ct);
  else
    judge_parked(ct);
}

static void judge_token(lk_contender *ct)
{
  if (ct->own_err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (ct->own_err != 0)
    lk__contender_request_failed(ct, ct->own_err);
  else
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
}

/* A read was answered: if it was the last of its batch, go on. */
static void complete(lk_contender *ct)
{
  if (!lk__contender_has_all_replies(ct))
    return;
  switch (ct->state) {
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_WAITING:
  case LK_CONTENDER_READING_PREDECESSORS: judge_reads(ct); break;
  case LK_CONTENDER_READING_OWN: judge_token(ct); break;
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_LISTING_FIRST:
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
  case LK_CONTENDER_RECOVERING:
  case LK_CONTENDER_READING_CANDIDATES:
  case LK_CONTENDER_LISTING:
  case LK_CONTENDER_CHECKING_OWN:
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
  case LK_CONTENDER_CLEANING_UP:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
}
