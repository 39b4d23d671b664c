/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/keeper.h"
#include "recipes/memory.h"

static void pred_left(lk_contend *ct);

/* ---- who is ahead ------------------------------------------------------ */

static const char *put_path(lk_contend *ct, char **at, lk_bytes name)
{
  size_t dir_len = strlen(ct->dir);
  char *path = *at;

  memcpy(path, ct->dir, dir_len);
  path[dir_len] = '/';
  memcpy(path + dir_len + 1, name.at, name.len);
  path[dir_len + 1 + name.len] = '\0';
  *at += dir_len + name.len + 2;
  return path;
}

/* Names are kept only where they will be probed: of a long queue, pred. */
bool lk__ahead_keep(lk_contend *ct, const lk_place *p)
{
  lk_ahead *a = &ct->ahead;
  size_t kept = p->ahead > LK_NEAREST ? 1 : p->near_count;
  size_t room = strlen(ct->dir) + 2;
  size_t size = room + p->head.name.len;

  for (size_t i = 0; i < kept; i++)
    size += room + p->near[i].name.len;
  if (p->ahead > 0 && size > a->cap) {
    char *block = ct->keeper->mem.resize(ct->keeper->mem.arg, a->block, size);

    if (block == NULL)
      return false;
    a->block = block;
    a->cap = size;
  }
  char *at = a->block;

  a->count = p->ahead;
  a->kept = kept;
  a->writ_ahead = p->writ_ahead;
  a->in_range = p->in_range;
  a->connection = lk_client_connection(lk__contend_client(ct));
  for (size_t i = 0; i < kept; i++)
    a->path[i] = put_path(ct, &at, p->near[i].name);
  a->head = kept > 0 ? put_path(ct, &at, p->head.name) : NULL;
  return true;
}

void lk__ahead_drop(lk_ahead *a, size_t i)
{
  a->count--;
  a->kept--;
  for (; i < a->kept; i++)
    a->path[i] = a->path[i + 1];
  if (a->count <= LK_PROBES && a->kept > 0)
    a->head = a->path[a->kept - 1];
}

static void warn_limit(lk_contend *ct, int64_t suffix)
{
  lk_news news = {.type = LK_NEWS_NEAR_LIMIT};

  if (suffix >= LK_SUFFIX_WARN)
    lk__contend_tell(ct, &news);
}

static void tell_stranger(lk_contend *ct, lk_bytes name)
{
  size_t size = strlen(ct->dir) + 2 + name.len;
  lk_news news = {.type = LK_NEWS_MIXED};
  char *path = lk__take(&ct->keeper->mem, size);
  char *at = path;

  if (path == NULL)
    return; /* the next list shows it again */
  news.node = put_path(ct, &at, name);
  lk__contend_tell(ct, &news);
  lk__give(&ct->keeper->mem, path);
}

static void take_place(lk_contend *ct, const lk_place *p)
{
  if (p->ahead == 0) {
    lk__contend_first(ct);
  } else if (ct->config->once) {
    lk__contend_end(ct, LK_ERR_BUSY);
  } else {
    lk__contend_step(ct, LK_EV_BEHIND);
    lk__contend_tell_position(ct);
  }
}

void lk__contend_placed(lk_contend *ct, const lk_bytes *names, size_t count)
{
  int64_t *scratch = lk__keeper_scratch(ct->keeper, count);
  lk_contend_state state = ct->state;
  lk_place p;

  if (scratch == NULL) {
    lk__contend_end(ct, LK_ERR_NO_MEMORY);
    return;
  }
  lk__place_find(&p, ct->role, lk_text(ct->node + strlen(ct->dir) + 1), names,
                 count, scratch);
  ct->rests = 0;
  if (!p.found) {
    lk__contend_absent(ct, LK_ERR_NO_NODE);
  } else if (p.unsafe) {
    lk__contend_end(ct, LK_ERR_SEQ_UNSAFE);
  } else if (!lk__ahead_keep(ct, &p)) {
    lk__contend_end(ct, LK_ERR_NO_MEMORY);
  } else {
    warn_limit(ct, p.suffix);
    if (p.stranger.at != NULL)
      tell_stranger(ct, p.stranger);
    if (ct->state == state)
      take_place(ct, &p);
  }
}

/* ---- reads ------------------------------------------------------------- */

static void complete(lk_contend *ct);

static void on_pred_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg);

static void on_pred(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contend_answered(ct)) {
    ct->pred_err = err;
    if (err != 0)
      ct->pred_watch = NULL;
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
  ct->watched_on = lk_client_connection(c);
  ct->token = (uint64_t)stat->czxid;
  return 0;
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg);

static void on_own(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  (void)data;
  if (lk__contend_answered(ct)) {
    if (err != 0)
      ct->own_watch = NULL;
    else
      err = take_own(ct, stat);
    ct->own_err = err;
    if (err == LK_ERR_NO_AUTH)
      lk__contend_unwatched(ct);
    if (lk__contend_holds(ct))
      lk__contend_checked(ct, lk__contend_verdict(err));
    else
      complete(ct);
  }
  lk__contend_unref(ct);
}

int lk__contend_watch_own(lk_contend *ct)
{
  lk_call call = {.size = sizeof call,
                  .until_break = true,
                  .on_event = on_own_event,
                  .watch_arg = ct,
                  .watch = &ct->own_watch};

  return lk__contend_asked(
      ct, lk_get(lk__contend_client(ct), ct->node, &call, on_own, ct));
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
  if (event->type == LK_EVENT_DELETED) {
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
  uint64_t connection = lk_client_connection(c);
  lk_handoff h = {
      .ahead = ct->ahead.count,
      .same_connection = connection != 0 && connection == ct->ahead.connection,
      .own_watched = ct->own_watch != NULL && ct->watched_on == connection,
      .exclusive = ct->role->exclusive,
      .writ_ahead = ct->ahead.writ_ahead,
      .in_range = ct->ahead.in_range,
      .leased = lk_client_clock(c) < lk__keeper_grant_until(ct->keeper)};

  if (lk__may_grant_on_deletion(&h))
    lk__contend_first(ct);
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
  if (ct->by_children && ct->pred_watch == NULL)
    lk__contend_step(ct, LK_EV_AGAIN); /* it has fired */
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
    lk__contend_first(ct);
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
  case LK_CONTEND_CREATING:
  case LK_CONTEND_PARENTS:
  case LK_CONTEND_LOOKING:
  case LK_CONTEND_LISTING:
  case LK_CONTEND_CHECKING:
  case LK_CONTEND_HELD:
  case LK_CONTEND_UNSURE:
  case LK_CONTEND_LEAVING:
  case LK_CONTEND_OVER:
  case LK_CONTEND_NSTATES: break;
  }
}
