/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/names.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/direct_handoff.h"
#include "recipes/queue/own_node_watch.h"
#include "recipes/queue/place_lost.h"
#include "recipes/queue/predecessor_watch.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/request_errors.h"

enum { DIRECT = 0 }; /* the index of the direct predecessor */

/* ---- reads -------------------------------------------------------------- */

static void on_predecessor_event(lk_client *c, lk_watch *w,
                                 const lk_event *event, void *arg);

static bool direct_predecessor_is_mutex(const lk_contender *ct)
{
  const char *name =
      ct->predecessors.path[DIRECT] + strlen(ct->own.dir) + strlen("/");
  lk_name direct;

  return lk__name_parse(ct->role->format, lk_text(name), &direct) &&
         direct.kind->family == LK_FAMILY_MUTEX;
}

/* If the direct predecessor announces that it holds the lock, it is the only
 * predecessor left. This is true for a mutex alone: a holder of another kind
 * may have other contenders before it. */
static void predecessor_check_announcement(lk_contender *ct,
                                           const lk_bytes *data)
{
  if (ct->predecessors.count < 2 || !lk__is_announcement(*data) ||
      !direct_predecessor_is_mutex(ct))
    return;
  lk__predecessors_keep_direct(&ct->predecessors);
  /* If the request is refused, a list precedes the grant. */
  (void)lk__contender_ensure_own_watch(ct);
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
      lk__contender_cancel_wait_watch(ct); /* a read that fails sets none */
    else
      predecessor_check_announcement(ct, data);
    if (!lk__contender_fail_if_too_big(ct, err))
      lk__contender_continue_if_all_read(ct);
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
                                                ct->predecessors.path[DIRECT],
                                                &call, done, ct));
}

int lk__predecessors_watch_direct(lk_contender *ct)
{
  return contender_watch_predecessor(ct, on_predecessor_read);
}

/* In READING_PREDECESSORS. The replies come in the order of the paths. */
static void on_one_of_few_read(lk_client *c, int err, const lk_bytes *data,
                               const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    size_t i = ct->round.reads_replied++;
    bool is_direct = i == DIRECT;
    /* LK_ERR_NO_AUTH shows that the node exists, which is enough for all but
     * the direct predecessor: that one must be watched. */
    bool read_suffices = err == 0 || err == LK_ERR_NO_NODE ||
                         (err == LK_ERR_NO_AUTH && !is_direct);

    if (is_direct && err != 0)
      lk__contender_cancel_wait_watch(ct); /* a read that fails sets none */
    ct->round.deleted[i] = err == LK_ERR_NO_NODE;
    if (!read_suffices)
      ct->round.predecessor_err = err;
    if (!lk__contender_fail_if_too_big(ct, err))
      lk__contender_continue_if_all_read(ct);
  }
  lk__contender_unref(ct);
}

/* ---- the direct predecessor was deleted --------------------------------- */

/* Other predecessors may have been deleted before the direct one. */
static void contender_direct_predecessor_deleted(lk_contender *ct)
{
  lk__predecessors_remove(&ct->predecessors, DIRECT);
  if (ct->predecessors.count == 0)
    lk__direct_handoff_try(ct);
  else if (lk__predecessors_are_worth_reading(&ct->predecessors))
    lk__contender_step(ct, LK_CONTENDER_ON_FEW_LEFT);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

static void on_predecessor_event(lk_client *c, lk_watch *w,
                                 const lk_event *event, void *arg)
{
  lk_contender *ct = arg;
  bool is_waiting = lk__contender_waits(ct);

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->wait.watch = NULL;
  if (is_waiting && event->type == LK_EVENT_DELETED) {
    ct->wait.predecessor_deleted = true;
    /* While reads are under way, the last reply continues the contender. */
    if (ct->state == LK_CONTENDER_WAITING)
      contender_direct_predecessor_deleted(ct);
  } else if (is_waiting && event->type != LK_EVENT_ENDED) {
    /* Only the data changed, by a revocation or an announcement. After an
     * announcement the deletion grants the lock if the own node is watched. */
    int err = contender_watch_predecessor(ct, on_predecessor_read);

    if (err == 0)
      (void)lk__contender_ensure_own_watch(ct);
    else
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}

/* ---- all reads completed ------------------------------------------------ */

static void contender_judge_predecessors(lk_contender *ct)
{
  bool direct_deleted =
      ct->wait.predecessor_deleted || ct->round.deleted[DIRECT];

  ct->round.deleted[DIRECT] = direct_deleted;
  /* From the end, since a removal moves the paths behind it. */
  for (size_t i = ct->predecessors.kept; i-- > 0;) {
    if (ct->round.deleted[i])
      lk__predecessors_remove(&ct->predecessors, i);
  }
  if (ct->predecessors.count == 0) {
    lk__direct_handoff_try(ct);
    return;
  }
  lk__contender_step(ct, direct_deleted ? LK_CONTENDER_ON_PREDECESSORS
                                        : LK_CONTENDER_ON_WATCHES_SET);
  lk__contender_notify_position(ct);
}

static void contender_judge_watches(lk_contender *ct)
{
  bool watch_has_ended = ct->wait.watch == NULL;
  bool directory_changed = ct->wait.watches_directory && watch_has_ended;
  bool limit_changed = ct->wait.watches_directory && ct->wait.limit_changed;

  if (directory_changed || limit_changed)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else if (!ct->wait.watches_directory && ct->wait.predecessor_deleted)
    contender_direct_predecessor_deleted(ct);
  else if (ct->state == LK_CONTENDER_SETTING_WATCHES)
    lk__contender_step(ct, LK_CONTENDER_ON_WATCHES_SET);
}

/* A watch on a node that cannot be read does not report its deletion, so the
 * directory is watched instead. */
static void contender_watch_directory(lk_contender *ct)
{
  lk_client_log(
      lk__contender_client(ct), LK_LOG_WARNING, LK_ERR_NO_AUTH,
      "the direct predecessor cannot be read: watching the whole queue");
  ct->wait.watches_directory = true;
  lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

void lk__predecessors_judge(lk_contender *ct)
{
  bool read_several = ct->state == LK_CONTENDER_READING_PREDECESSORS;
  /* The next heartbeat reads the own node again. */
  bool own_read_may_fail = ct->state == LK_CONTENDER_WAITING;

  if (ct->round.predecessor_err == LK_ERR_NO_NODE) {
    ct->wait.predecessor_deleted = true;
    ct->round.predecessor_err = 0;
  }
  if (ct->round.own_err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (ct->round.own_err != 0 && ct->round.own_err != LK_ERR_NO_AUTH &&
           !own_read_may_fail)
    lk__contender_request_failed(ct, ct->round.own_err);
  else if (ct->round.predecessor_err == LK_ERR_NO_AUTH)
    contender_watch_directory(ct);
  else if (ct->round.predecessor_err != 0)
    lk__contender_request_failed(ct, ct->round.predecessor_err);
  else if (read_several)
    contender_judge_predecessors(ct);
  else
    contender_judge_watches(ct);
}

/* ---- READING_PREDECESSORS ----------------------------------------------- */

static int contender_enter_reading_predecessors(lk_contender *ct,
                                                lk_contender_state from)
{
  int err;

  (void)from;
  ct->wait.predecessor_deleted = false;
  ct->round.predecessor_err = 0;
  ct->round.own_err = 0;
  ct->round.reads_replied = 0;
  memset(ct->round.deleted, 0, sizeof ct->round.deleted);
  err = contender_watch_predecessor(ct, on_one_of_few_read);
  for (size_t i = DIRECT + 1; i < ct->predecessors.kept && err == 0; i++)
    err = lk__contender_count_request(
        ct, lk_get(lk__contender_client(ct), ct->predecessors.path[i],
                   LK_NO_OPTIONS, on_one_of_few_read, ct));
  /* If none is left, the grant needs no list. */
  return err != 0 ? err : lk__contender_ensure_own_watch(ct);
}

const lk_contender_rules lk__rules_reading_predecessors = {
    .next = {LK_ON(WATCHES_SET, WAITING), LK_ON(PREDECESSORS, SETTING_WATCHES),
             LK_ON(LIST_NEEDED, LISTING), LK_ON(GRANT, HELD),
             LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_reading_predecessors,
    .reads_done = lk__predecessors_judge};
