/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/lock/lock_options.h"

static void contender_predecessor_deleted(lk_contender *ct);

/* ---- reads ------------------------------------------------------------- */

static void contender_judge_if_all_read(lk_contender *ct);

static void on_predecessor_event(lk_client *c, lk_watch *w,
                                 const lk_event *event, void *arg);

/* Pred may say that it holds. Only one that excludes all others can know that
 * nobody is before it, now and later. */
static void predecessor_check_announcement(lk_contender *ct,
                                           const lk_bytes *data)
{
  lk_name n;

  if (ct->predecessors.count < 2 || !lk__is_announcement(*data) ||
      !lk__name_parse(
          ct->role->naming,
          lk_text(ct->predecessors.path[0] + strlen(ct->own.dir) + 1), &n) ||
      n.mark->family != LK_FAMILY_MUTEX)
    return;
  lk__predecessors_keep_direct(&ct->predecessors);
  lk__contender_notify_position(ct);
}

static void on_predecessor_read(lk_client *c, int err, const lk_bytes *data,
                                const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    ct->round.predecessor_err = err;
    if (err != 0)
      ct->wait.watch = NULL;
    else
      predecessor_check_announcement(ct, data);
    if (!lk__contender_fail_if_too_big(ct, err))
      contender_judge_if_all_read(ct);
  }
  lk__contender_unref(ct);
}

static int contender_watch_predecessor(lk_contender *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_predecessor_event,
                  .watch_arg = ct,
                  .watch = &ct->wait.watch};

  return lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                ct->predecessors.path[0], &call,
                                                done, ct));
}

static void on_predecessor_event(lk_client *c, lk_watch *w,
                                 const lk_event *event, void *arg)
{
  lk_contender *ct = arg;
  bool current = ct->state == LK_CONTENDER_SETTING_WATCHES ||
                 ct->state == LK_CONTENDER_WAITING ||
                 ct->state == LK_CONTENDER_READING_PREDECESSORS;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->wait.watch = NULL;
  if (current && event->type == LK_EVENT_DELETED) {
    ct->wait.predecessor_deleted = true;
    if (ct->state == LK_CONTENDER_WAITING)
      contender_predecessor_deleted(ct);
  } else if (current && event->type != LK_EVENT_ENDED) {
    /* Only its data changed (a revocation, an announcement). */
    int err = contender_watch_predecessor(ct, on_predecessor_read);

    if (err != 0)
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}

void lk__contender_own_unreadable(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_UNWATCHED};

  if (ct->own.unreadable)
    return;
  ct->own.unreadable = true;
  lk__contender_notify(ct, &notice);
}

/* A read of own shows the token of a node that was found again, and whether it
 * is this session's. */
static int own_node_take_read(lk_contender *ct, const lk_stat *stat)
{
  lk_client *c = lk__contender_client(ct);

  if (stat->ephemeral_owner != lk_client_session(c).id)
    return LK_ERR_NO_NODE;
  if (lk__name_is_shared(ct->own.identity) && ct->own.token != 0 &&
      ct->own.token != (uint64_t)stat->czxid)
    return LK_ERR_NO_NODE;
  ct->own.watched_on = lk_client_connection(c);
  ct->own.verified_on = ct->own.watched_on;
  ct->own.token = (uint64_t)stat->czxid;
  return 0;
}

void lk__contender_check_revocation(lk_contender *ct, const lk_bytes *data)
{
  static const char word[] = LK_REVOKE_MESSAGE;
  lk_notice notice = {.type = LK_NOTICE_REVOKED};

  if (ct->holding.revoked || data->at == NULL || data->len != sizeof word - 1 ||
      memcmp(data->at, word, data->len) != 0)
    return;
  ct->holding.revoked = true;
  if (lk__contender_holds(ct))
    lk__contender_notify(ct, &notice);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg);

static void on_own_read(lk_client *c, int err, const lk_bytes *data,
                        const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    if (err != 0)
      ct->own.watch = NULL;
    else
      err = own_node_take_read(ct, stat);
    ct->round.own_err = err;
    if (err == LK_ERR_NO_AUTH)
      lk__contender_own_unreadable(ct);
    if (lk__contender_holds(ct))
      lk__contender_own_checked(ct, lk__contender_check_result(ct, err));
    else
      contender_judge_if_all_read(ct);
    if (err == 0)
      lk__contender_check_revocation(ct, data);
  }
  lk__contender_unref(ct);
}

int lk__contender_read_own(lk_contender *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_own_event,
                  .watch_arg = ct,
                  .watch = &ct->own.watch};

  return lk__contender_count_request(
      ct, lk_get(lk__contender_client(ct), ct->own.path, &call, done, ct));
}

int lk__contender_watch_own(lk_contender *ct)
{
  return lk__contender_read_own(ct, on_own_read);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->own.watch = NULL;
  ct->own.watched_on = 0;
  if (lk__contender_is_single_node(ct) && ct->own.state != LK_OWN_CREATED) {
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

  ct->wait.had_predecessors = true;
  ct->wait.predecessor_deleted = false;
  ct->round.predecessor_err = 0;
  ct->round.own_err = 0;
  if (!ct->wait.watches_directory)
    err = contender_watch_predecessor(ct, on_predecessor_read);
  if (err == 0 && ct->own.watch == NULL && !ct->own.unreadable)
    err = lk__contender_watch_own(ct);
  if (err == 0 && lk__contender_has_all_replies(ct))
    contender_judge_if_all_read(ct);
  return err;
}

int lk__enter_reading_own(lk_contender *ct)
{
  ct->round.own_err = 0;
  return ct->own.watch == NULL ? lk__contender_watch_own(ct) : 0;
}

/* ---- probe ------------------------------------------------------------- */

static void on_predecessors_read(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    size_t i = ct->round.reads_replied++;

    if (i == 0 && err != 0)
      ct->wait.watch = NULL;
    ct->round.deleted[i] = err == LK_ERR_NO_NODE;
    /* Of the others it is enough that they are there. */
    if (err != LK_ERR_NO_NODE && (err != LK_ERR_NO_AUTH || i == 0) && err != 0)
      ct->round.predecessor_err = err;
    if (!lk__contender_fail_if_too_big(ct, err))
      contender_judge_if_all_read(ct);
  }
  lk__contender_unref(ct);
}

int lk__enter_reading_predecessors(lk_contender *ct)
{
  int err;

  ct->wait.predecessor_deleted = false;
  ct->round.predecessor_err = 0;
  ct->round.own_err = 0;
  ct->round.reads_replied = 0;
  memset(ct->round.deleted, 0, sizeof ct->round.deleted);
  err = contender_watch_predecessor(ct, on_predecessors_read);
  for (size_t i = 1; i < ct->predecessors.kept && err == 0; i++)
    err = lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                 ct->predecessors.path[i], NULL,
                                                 on_predecessors_read, ct));
  return err;
}

/* ---- what the answers mean --------------------------------------------- */

/* Nobody is left of those who were ahead: rule H. */
static void contender_no_predecessor_left(lk_contender *ct)
{
  lk_client *c = lk__contender_client(ct);
  int64_t now = lk_client_clock(c);
  uint64_t connection = lk_client_connection(c);
  lk_handoff h = {.ahead = ct->predecessors.count,
                  .same_connection = connection != 0 &&
                                     connection == ct->predecessors.connection,
                  .own_watched =
                      ct->own.watch != NULL && ct->own.watched_on == connection,
                  .exclusive = ct->role->exclusive,
                  .writ_ahead = ct->predecessors.writ_ahead,
                  .in_range = ct->predecessors.in_range,
                  .leased = lk__contender_lease_suffices(ct, now)};

  if (lk__may_grant_on_deletion(&h))
    lk__contender_try_grant(ct, now);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

/* Pred is gone. Who else was ahead may be gone as well. */
static void contender_predecessor_deleted(lk_contender *ct)
{
  lk__predecessors_remove(&ct->predecessors, 0);
  if (ct->predecessors.count == 0)
    contender_no_predecessor_left(ct);
  else if (ct->predecessors.count <= LK_MAX_PREDECESSOR_READS)
    lk__contender_step(ct, LK_CONTENDER_ON_FEW_LEFT);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

static void contender_judge_predecessors(lk_contender *ct)
{
  bool pred_left_too = ct->wait.predecessor_deleted || ct->round.deleted[0];

  ct->round.deleted[0] = pred_left_too;
  for (size_t i = ct->predecessors.kept; i-- > 0;) {
    if (ct->round.deleted[i])
      lk__predecessors_remove(&ct->predecessors, i);
  }
  if (ct->predecessors.count == 0) {
    contender_no_predecessor_left(ct);
    return;
  }
  lk__contender_step(ct, pred_left_too ? LK_CONTENDER_ON_PREDECESSORS
                                       : LK_CONTENDER_ON_WATCHES_SET);
  lk__contender_notify_position(ct);
}

static void contender_judge_watches(lk_contender *ct)
{
  if (ct->wait.watches_directory &&
      (ct->wait.watch == NULL || ct->wait.limit_changed))
    lk__contender_step(
        ct, LK_CONTENDER_ON_LIST_NEEDED); /* it has fired, or another counts */
  else if (!ct->wait.watches_directory && ct->wait.predecessor_deleted)
    contender_predecessor_deleted(ct);
  else if (ct->state == LK_CONTENDER_SETTING_WATCHES)
    lk__contender_step(ct, LK_CONTENDER_ON_WATCHES_SET);
}

/* A pred that cannot be read is no use: not even its deletion would be told. */
static void contender_watch_directory(lk_contender *ct)
{
  lk_client_log(lk__contender_client(ct), LK_LOG_WARNING, LK_ERR_NO_AUTH,
                "a contender ahead cannot be read: watching the whole queue");
  ct->wait.watches_directory = true;
  lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

/* All reads were answered. */
static void contender_judge_reads(lk_contender *ct)
{
  bool probing = ct->state == LK_CONTENDER_READING_PREDECESSORS;

  if (ct->round.predecessor_err == LK_ERR_NO_NODE) {
    ct->wait.predecessor_deleted = true;
    ct->round.predecessor_err = 0;
  }
  if (ct->round.own_err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (ct->round.own_err != 0 && ct->round.own_err != LK_ERR_NO_AUTH)
    lk__contender_request_failed(ct, ct->round.own_err);
  else if (ct->round.predecessor_err == LK_ERR_NO_AUTH)
    contender_watch_directory(ct);
  else if (ct->round.predecessor_err != 0)
    lk__contender_request_failed(ct, ct->round.predecessor_err);
  else if (probing)
    contender_judge_predecessors(ct);
  else
    contender_judge_watches(ct);
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

/* A read was answered: if it was the last of its batch, go on. */
static void contender_judge_if_all_read(lk_contender *ct)
{
  if (!lk__contender_has_all_replies(ct))
    return;
  switch (ct->state) {
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_WAITING:
  case LK_CONTENDER_READING_PREDECESSORS: contender_judge_reads(ct); break;
  case LK_CONTENDER_READING_OWN: contender_judge_own_read(ct); break;
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
