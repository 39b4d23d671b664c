/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/lock/lock_options.h"

static void pred_left(lk_contend *ct);

/* ---- reads ------------------------------------------------------------- */

static void complete(lk_contend *ct);

static void on_pred_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg);

/* Pred may say that it holds. Only one that excludes all others can know that
 * nobody is before it, now and later. */
static void look_for_announcement(lk_contend *ct, const lk_bytes *data)
{
  lk_name n;

  if (ct->ahead.count < 2 || !lk__is_announcement(*data) ||
      !lk__name_parse(ct->role->naming,
                      lk_text(ct->ahead.path[0] + strlen(ct->dir) + 1), &n) ||
      n.mark->family != LK_FAMILY_MUTEX)
    return;
  lk__ahead_is_pred(&ct->ahead);
  lk__contend_tell_position(ct);
}

static void on_pred(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contend_answered(ct)) {
    ct->pred_err = err;
    if (err != 0)
      ct->pred_watch = NULL;
    else
      look_for_announcement(ct, data);
    if (!lk__contend_too_big(ct, err))
      complete(ct);
  }
  lk__contend_unref(ct);
}

static int watch_pred(lk_contend *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_break = true,
                  .on_event = on_pred_event,
                  .watch_arg = ct,
                  .watch = &ct->pred_watch};

  return lk__contend_asked(
      ct, lk_get(lk__contend_client(ct), ct->ahead.path[0], &call, done, ct));
}

static void on_pred_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg)
{
  lk_contend *ct = arg;
  bool current = ct->state == LK_CONTEND_PARKING ||
                 ct->state == LK_CONTEND_WAITING ||
                 ct->state == LK_CONTEND_PROBING;

  (void)c;
  (void)w;
  lk__contend_ref(ct);
  ct->pred_watch = NULL;
  if (current && event->type == LK_EVENT_DELETED) {
    ct->pred_gone = true;
    if (ct->state == LK_CONTEND_WAITING)
      pred_left(ct);
  } else if (current && event->type != LK_EVENT_ENDED) {
    /* Only its data changed (a revocation, an announcement). */
    int err = watch_pred(ct, on_pred);

    if (err != 0)
      lk__contend_end(ct, err);
  }
  lk__contend_unref(ct);
}

void lk__contend_unwatched(lk_contend *ct)
{
  lk_news news = {.type = LK_NEWS_UNWATCHED};

  if (ct->unreadable)
    return;
  ct->unreadable = true;
  lk__contend_tell(ct, &news);
}

/* A read of own shows the token of a node that was found again, and whether it
 * is this session's. */
static int take_own(lk_contend *ct, const lk_stat *stat)
{
  lk_client *c = lk__contend_client(ct);

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

void lk__contend_seek_revocation(lk_contend *ct, const lk_bytes *data)
{
  static const char word[] = LK_REVOKE_WORD;
  lk_news news = {.type = LK_NEWS_REVOKED};

  if (ct->revoked || data->at == NULL || data->len != sizeof word - 1 ||
      memcmp(data->at, word, data->len) != 0)
    return;
  ct->revoked = true;
  if (lk__contend_holds(ct))
    lk__contend_tell(ct, &news);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg);

static void on_own(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  if (lk__contend_answered(ct)) {
    if (err != 0)
      ct->own_watch = NULL;
    else
      err = take_own(ct, stat);
    ct->own_err = err;
    if (err == LK_ERR_NO_AUTH)
      lk__contend_unwatched(ct);
    if (lk__contend_holds(ct))
      lk__contend_checked(ct, lk__contend_weigh(ct, err));
    else
      complete(ct);
    if (err == 0)
      lk__contend_seek_revocation(ct, data);
  }
  lk__contend_unref(ct);
}

int lk__contend_watch(lk_contend *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_break = true,
                  .on_event = on_own_event,
                  .watch_arg = ct,
                  .watch = &ct->own_watch};

  return lk__contend_asked(
      ct, lk_get(lk__contend_client(ct), ct->node, &call, done, ct));
}

int lk__contend_watch_own(lk_contend *ct)
{
  return lk__contend_watch(ct, on_own);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  (void)w;
  lk__contend_ref(ct);
  ct->own_watch = NULL;
  ct->watched_on = 0;
  if (lk__contend_is_fixed(ct) && ct->own != LK_OWN_MADE) {
    lk__fixed_event(ct, event->type);
  } else if (event->type == LK_EVENT_DELETED) {
    if (lk__contend_holds(ct))
      lk__contend_lost(ct, LK_ERR_NO_NODE);
    else
      lk__contend_absent(ct, LK_ERR_NO_NODE);
  } else if (event->type != LK_EVENT_ENDED) {
    int err = lk__contend_watch_own(ct);

    /* A holder is watched again by the next beat. */
    if (err != 0 && !lk__contend_holds(ct))
      lk__contend_end(ct, err);
  }
  lk__contend_unref(ct);
}

/* ---- park -------------------------------------------------------------- */

int lk__enter_parking(lk_contend *ct)
{
  int err = 0;

  ct->waited = true;
  ct->pred_gone = false;
  ct->pred_err = 0;
  ct->own_err = 0;
  if (!ct->by_children)
    err = watch_pred(ct, on_pred);
  if (err == 0 && ct->own_watch == NULL && !ct->unreadable)
    err = lk__contend_watch_own(ct);
  if (err == 0 && lk__contend_quiet(ct))
    complete(ct);
  return err;
}

int lk__enter_reading(lk_contend *ct)
{
  ct->own_err = 0;
  return ct->own_watch == NULL ? lk__contend_watch_own(ct) : 0;
}

/* ---- probe ------------------------------------------------------------- */

static void on_probed(lk_client *c, int err, const lk_bytes *data,
                      const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contend_answered(ct)) {
    size_t i = ct->probe_at++;

    if (i == 0 && err != 0)
      ct->pred_watch = NULL;
    ct->probe_gone[i] = err == LK_ERR_NO_NODE;
    /* Of the others it is enough that they are there. */
    if (err != LK_ERR_NO_NODE && (err != LK_ERR_NO_AUTH || i == 0) && err != 0)
      ct->pred_err = err;
    if (!lk__contend_too_big(ct, err))
      complete(ct);
  }
  lk__contend_unref(ct);
}

int lk__enter_probing(lk_contend *ct)
{
  int err;

  ct->pred_gone = false;
  ct->pred_err = 0;
  ct->own_err = 0;
  ct->probe_at = 0;
  memset(ct->probe_gone, 0, sizeof ct->probe_gone);
  err = watch_pred(ct, on_probed);
  for (size_t i = 1; i < ct->ahead.kept && err == 0; i++)
    err = lk__contend_asked(ct, lk_get(lk__contend_client(ct),
                                       ct->ahead.path[i], NULL, on_probed, ct));
  return err;
}

/* ---- what the answers mean --------------------------------------------- */

/* Nobody is left of those who were ahead: rule H. */
static void none_left(lk_contend *ct)
{
  lk_client *c = lk__contend_client(ct);
  int64_t now = lk_client_clock(c);
  uint64_t connection = lk_client_connection(c);
  lk_handoff h = {
      .ahead = ct->ahead.count,
      .same_connection = connection != 0 && connection == ct->ahead.connection,
      .own_watched = ct->own_watch != NULL && ct->watched_on == connection,
      .exclusive = ct->role->exclusive,
      .writ_ahead = ct->ahead.writ_ahead,
      .in_range = ct->ahead.in_range,
      .leased = lk__contend_is_leased(ct, now)};

  if (lk__may_grant_on_deletion(&h))
    lk__contend_first(ct, now);
  else
    lk__contend_step(ct, LK_EV_AGAIN);
}

/* Pred is gone. Who else was ahead may be gone as well. */
static void pred_left(lk_contend *ct)
{
  lk__ahead_drop(&ct->ahead, 0);
  if (ct->ahead.count == 0)
    none_left(ct);
  else if (ct->ahead.count <= LK_PROBES)
    lk__contend_step(ct, LK_EV_LEFT);
  else
    lk__contend_step(ct, LK_EV_AGAIN);
}

static void judge_probed(lk_contend *ct)
{
  bool pred_left_too = ct->pred_gone || ct->probe_gone[0];

  ct->probe_gone[0] = pred_left_too;
  for (size_t i = ct->ahead.kept; i-- > 0;) {
    if (ct->probe_gone[i])
      lk__ahead_drop(&ct->ahead, i);
  }
  if (ct->ahead.count == 0) {
    none_left(ct);
    return;
  }
  lk__contend_step(ct, pred_left_too ? LK_EV_BEHIND : LK_EV_PARKED);
  lk__contend_tell_position(ct);
}

static void judge_parked(lk_contend *ct)
{
  if (ct->by_children && (ct->pred_watch == NULL || ct->recount))
    lk__contend_step(ct, LK_EV_AGAIN); /* it has fired, or another counts */
  else if (!ct->by_children && ct->pred_gone)
    pred_left(ct);
  else if (ct->state == LK_CONTEND_PARKING)
    lk__contend_step(ct, LK_EV_PARKED);
}

/* A pred that cannot be read is no use: not even its deletion would be told. */
static void watch_children(lk_contend *ct)
{
  lk_client_log(lk__contend_client(ct), LK_LOG_WARNING, LK_ERR_NO_AUTH,
                "a contender ahead cannot be read: watching the whole queue");
  ct->by_children = true;
  lk__contend_step(ct, LK_EV_AGAIN);
}

/* All reads were answered. */
static void judge_reads(lk_contend *ct)
{
  bool probing = ct->state == LK_CONTEND_PROBING;

  if (ct->pred_err == LK_ERR_NO_NODE) {
    ct->pred_gone = true;
    ct->pred_err = 0;
  }
  if (ct->own_err == LK_ERR_NO_NODE)
    lk__contend_absent(ct, LK_ERR_NO_NODE);
  else if (ct->own_err != 0 && ct->own_err != LK_ERR_NO_AUTH)
    lk__contend_trouble(ct, ct->own_err);
  else if (ct->pred_err == LK_ERR_NO_AUTH)
    watch_children(ct);
  else if (ct->pred_err != 0)
    lk__contend_trouble(ct, ct->pred_err);
  else if (probing)
    judge_probed(ct);
  else
    judge_parked(ct);
}

static void judge_token(lk_contend *ct)
{
  if (ct->own_err == LK_ERR_NO_NODE)
    lk__contend_absent(ct, LK_ERR_NO_NODE);
  else if (ct->own_err != 0)
    lk__contend_trouble(ct, ct->own_err);
  else
    lk__contend_first(ct, lk_client_clock(lk__contend_client(ct)));
}

/* A read was answered: if it was the last of its batch, go on. */
static void complete(lk_contend *ct)
{
  if (!lk__contend_quiet(ct))
    return;
  switch (ct->state) {
  case LK_CONTEND_PARKING:
  case LK_CONTEND_WAITING:
  case LK_CONTEND_PROBING: judge_reads(ct); break;
  case LK_CONTEND_READING: judge_token(ct); break;
  case LK_CONTEND_NO_STEP:
  case LK_CONTEND_IDLE:
  case LK_CONTEND_PAUSED:
  case LK_CONTEND_PEEKING:
  case LK_CONTEND_CREATING:
  case LK_CONTEND_PARENTS:
  case LK_CONTEND_LOOKING:
  case LK_CONTEND_SEARCHING:
  case LK_CONTEND_LISTING:
  case LK_CONTEND_CHECKING:
  case LK_CONTEND_HELD:
  case LK_CONTEND_UNSURE:
  case LK_CONTEND_LEAVING:
  case LK_CONTEND_OVER:
  case LK_CONTEND_NSTATES: break;
  }
}
