/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/lock/lock_options.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/handoff.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/own_watch.h"
#include "recipes/queue/requests.h"
#include "recipes/queue/waiting.h"

static void contender_predecessor_deleted(lk_contender *ct);

/* ---- reads of predecessors ---------------------------------------------- */

static void on_predecessor_event(lk_client *c, lk_watch *w,
                                 const lk_event *event, void *arg);

/* The direct predecessor may announce that it holds. Only a mutex can know that
 * no other contender precedes it, now and later. */
static void predecessor_check_announcement(lk_contender *ct,
                                           const lk_bytes *data)
{
  lk_name n;

  if (ct->predecessors.count < 2 || !lk__is_announcement(*data) ||
      !lk__name_parse(
          ct->role->format,
          lk_text(ct->predecessors.path[0] + strlen(ct->own.dir) + 1), &n) ||
      n.kind->family != LK_FAMILY_MUTEX)
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
      lk__contender_judge_if_all_read(ct);
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
    /* Only its data changed: a revocation, an announcement. */
    int err = contender_watch_predecessor(ct, on_predecessor_read);

    if (err != 0)
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}

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
    /* Of the others it suffices that they exist. */
    if (err != LK_ERR_NO_NODE && (err != LK_ERR_NO_AUTH || i == 0) && err != 0)
      ct->round.predecessor_err = err;
    if (!lk__contender_fail_if_too_big(ct, err))
      lk__contender_judge_if_all_read(ct);
  }
  lk__contender_unref(ct);
}

/* ---- decisions ---------------------------------------------------------- */

/* No predecessors are left: rule H. */
static void contender_no_predecessor_left(lk_contender *ct)
{
  lk_client *c = lk__contender_client(ct);
  int64_t now = lk_client_clock(c);
  uint64_t connection = lk_client_connection(c);
  lk_handoff h = {.predecessors = ct->predecessors.count,
                  .same_connection = connection != 0 &&
                                     connection == ct->predecessors.connection,
                  .own_watched =
                      ct->own.watch != NULL && ct->own.watched_on == connection,
                  .exclusive = ct->role->exclusive,
                  .has_rw_writer = ct->predecessors.has_rw_writer,
                  .in_range = ct->predecessors.in_range,
                  .leased = lk__contender_lease_suffices(ct, now)};

  if (lk__handoff_is_proven(&h))
    lk__contender_try_grant(ct, now);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

/* The direct predecessor was deleted. Others may be deleted as well. */
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
    lk__contender_step(ct,
                       LK_CONTENDER_ON_LIST_NEEDED); /* the watch has fired, or
                                                        the limit has changed */
  else if (!ct->wait.watches_directory && ct->wait.predecessor_deleted)
    contender_predecessor_deleted(ct);
  else if (ct->state == LK_CONTENDER_SETTING_WATCHES)
    lk__contender_step(ct, LK_CONTENDER_ON_WATCHES_SET);
}

/* The deletion of a node that cannot be read is not reported. */
static void contender_watch_directory(lk_contender *ct)
{
  lk_client_log(lk__contender_client(ct), LK_LOG_WARNING, LK_ERR_NO_AUTH,
                "a contender ahead cannot be read: watching the whole queue");
  ct->wait.watches_directory = true;
  lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

/* All reads completed. */
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

void lk__contender_judge_if_all_read(lk_contender *ct)
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

/* ---- SETTING_WATCHES, WAITING, READING_PREDECESSORS, READING_OWN -------- */

static int contender_enter_setting_watches(lk_contender *ct,
                                           lk_contender_state from)
{
  int err = 0;

  (void)from;
  ct->wait.had_predecessors = true;
  ct->wait.predecessor_deleted = false;
  ct->round.predecessor_err = 0;
  ct->round.own_err = 0;
  if (!ct->wait.watches_directory)
    err = contender_watch_predecessor(ct, on_predecessor_read);
  if (err == 0 && ct->own.watch == NULL && !ct->own.unreadable)
    err = lk__contender_watch_own(ct);
  if (err == 0 && lk__contender_has_all_replies(ct))
    lk__contender_judge_if_all_read(ct);
  return err;
}

const lk_contender_rules lk__rules_setting_watches = {
    .next = {LK_ON(WATCHES_SET, WAITING), LK_ON(FEW_LEFT, READING_PREDECESSORS),
             LK_ON(LIST_NEEDED, LISTING), LK_ON(GRANT, HELD),
             LK_ON_ANY_IN_QUEUE},
    .enter = contender_enter_setting_watches};

const lk_contender_rules lk__rules_waiting = {
    .next = {LK_ON(FEW_LEFT, READING_PREDECESSORS), LK_ON(LIST_NEEDED, LISTING),
             LK_ON(GRANT, HELD), LK_ON_ANY_IN_QUEUE}};

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
  err = contender_watch_predecessor(ct, on_predecessors_read);
  for (size_t i = 1; i < ct->predecessors.kept && err == 0; i++)
    err = lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                 ct->predecessors.path[i], NULL,
                                                 on_predecessors_read, ct));
  return err;
}

const lk_contender_rules lk__rules_reading_predecessors = {
    .next = {LK_ON(WATCHES_SET, WAITING), LK_ON(PREDECESSORS, SETTING_WATCHES),
             LK_ON(LIST_NEEDED, LISTING), LK_ON(GRANT, HELD),
             LK_ON_ANY_IN_QUEUE},
    .enter = contender_enter_reading_predecessors};

static int contender_enter_reading_own(lk_contender *ct,
                                       lk_contender_state from)
{
  (void)from;
  ct->round.own_err = 0;
  return ct->own.watch == NULL ? lk__contender_watch_own(ct) : 0;
}

const lk_contender_rules lk__rules_reading_own = {
    .next = {LK_ON(GRANT, HELD), LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON_ANY_IN_QUEUE},
    .enter = contender_enter_reading_own};
