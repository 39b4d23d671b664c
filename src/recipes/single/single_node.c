/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

/**
 * @file
 * A node whose name is fixed: who makes it holds, and everybody else waits
 * until it is gone. Instead of a list, the read of the node says whose it is.
 * The name says nothing, since others make nodes of the same name, also in this
 * session: ours is the one that was made by our transaction.
 */

/* ---- whose it is ------------------------------------------------------- */

/* Another attempt of this client knows it as its own. */
static bool node_is_claimed(const lk_contender *ct, uint64_t token)
{
  lk_contender *other = NULL;

  while ((other = lk__lease_next_contender(ct->lease, other)) != NULL) {
    if (other != ct && other->own.token == token &&
        strcmp(other->own.path, ct->own.path) == 0)
      return true;
  }
  return false;
}

bool lk__single_node_is_ours(const lk_contender *ct, const lk_stat *stat)
{
  uint64_t token = (uint64_t)stat->czxid;

  if (stat->ephemeral_owner != lk_client_session(lk__contender_client(ct)).id)
    return false;
  return ct->own.token != 0 ? ct->own.token == token
                            : !node_is_claimed(ct, token);
}

/* ---- another's --------------------------------------------------------- */

static int64_t single_node_random_delay_ms(const lk_contender *ct)
{
  uint32_t most = (uint32_t)ct->config->fixed->spread_ms;
  uint32_t random;

  lk_client_random(lk__contender_client(ct), &random, sizeof random);
  return most == 0 ? 0 : random % (most + 1);
}

static void single_node_notify_waiting(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING, .node = ct->own.path};

  if (ct->wait.reported_position++ == 0)
    lk__contender_notify(ct, &notice);
}

static void single_node_wait(lk_contender *ct)
{
  int32_t poll_ms = ct->config->fixed->poll_ms;

  ct->wait.node_is_foreign = true;
  ct->pause.count = 0;
  if (ct->config->once) {
    lk__contender_fail(ct, LK_ERR_BUSY);
    return;
  }
  if (poll_ms > 0) {
    lk__contender_cancel_watches(ct);
    lk__contender_start_pause(ct, poll_ms + single_node_random_delay_ms(ct));
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  } else {
    lk__contender_step(ct, LK_CONTENDER_ON_WATCHES_SET);
  }
  single_node_notify_waiting(ct);
}

/* All who wait learn it at once. Who is late by chance looks before it asks, so
 * that a release costs one write or two, not one of each. */
static void single_node_deleted(lk_contender *ct)
{
  if (ct->config->fixed->spread_ms > 0) {
    lk__contender_start_pause(ct, single_node_random_delay_ms(ct));
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  } else {
    ct->wait.node_is_foreign = false;
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  }
}

void lk__single_node_on_event(lk_contender *ct, lk_event_type type)
{
  if (ct->state != LK_CONTENDER_WAITING || type == LK_EVENT_ENDED)
    return;
  if (type == LK_EVENT_DELETED)
    single_node_deleted(ct);
  else
    lk__contender_step(
        ct, LK_CONTENDER_ON_LIST_FIRST); /* its data changed: watch again */
}

/* ---- what the read says ------------------------------------------------ */

/* Own is not there. `stat`: but another's is. */
static void single_node_judge_foreign(lk_contender *ct, int err,
                                      const lk_stat *stat)
{
  ct->own.state = LK_OWN_NONE;
  if (stat != NULL) {
    single_node_wait(ct);
  } else if (err == LK_ERR_NO_NODE) {
    ct->wait.node_is_foreign = false;
    lk__contender_step(ct, ct->state == LK_CONTENDER_LISTING_FIRST
                               ? LK_CONTENDER_ON_START
                               : LK_CONTENDER_ON_OWN_MISSING);
  } else {
    lk__contender_request_failed(ct, err);
  }
}

static void single_node_take_own(lk_contender *ct, const lk_stat *stat)
{
  uint64_t connection = lk_client_connection(lk__contender_client(ct));

  ct->own.state = LK_OWN_CREATED;
  ct->own.token = (uint64_t)stat->czxid;
  ct->own.verified_on = connection;
  ct->own.watched_on = connection;
  ct->pause.count = 0;
  lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
}

/* We have made it, and it may have gone since. */
static void single_node_judge_own(lk_contender *ct, int err,
                                  const lk_stat *stat)
{
  if (stat != NULL && lk__single_node_is_ours(ct, stat))
    single_node_take_own(ct, stat);
  else if (stat != NULL || err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else
    lk__contender_request_failed(ct, err);
}

static void single_node_judge_create(lk_contender *ct, int err,
                                     const lk_stat *stat)
{
  switch (ct->round.create_err) {
  case 0: single_node_judge_own(ct, err, stat); break;
  case LK_ERR_NODE_EXISTS:
    ct->round.parents_missing = 0;
    if (ct->config->once)
      lk__contender_fail(ct, LK_ERR_BUSY);
    else
      single_node_judge_foreign(ct, err, stat);
    break;
  case LK_ERR_NO_NODE: lk__contender_parent_missing(ct); break;
  default: lk__contender_request_failed(ct, ct->round.create_err); break;
  }
}

/* Behind a transaction: a create that is not seen now was not executed, and
 * will not be. */
static void single_node_judge_recovery(lk_contender *ct, int err,
                                       const lk_stat *stat)
{
  if (ct->round.transaction_err != 0)
    lk__contender_request_failed(ct, ct->round.transaction_err);
  else if (stat != NULL && lk__single_node_is_ours(ct, stat))
    single_node_take_own(ct, stat);
  else if (stat != NULL || err == LK_ERR_NO_NODE)
    single_node_judge_foreign(ct, err, stat);
  else
    lk__contender_request_failed(ct, err);
}

static void single_node_judge(lk_contender *ct, int err, const lk_stat *stat)
{
  switch (ct->state) {
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
    single_node_judge_create(ct, err, stat);
    break;
  case LK_CONTENDER_RECOVERING:
    single_node_judge_recovery(ct, err, stat);
    break;
  case LK_CONTENDER_LISTING_FIRST:
    single_node_judge_foreign(ct, err, stat);
    break;
  case LK_CONTENDER_LISTING: single_node_judge_own(ct, err, stat); break;
  case LK_CONTENDER_CLEANING_UP: lk__cleanup_read(ct, err, stat); break;
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_READING_CANDIDATES:
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_WAITING:
  case LK_CONTENDER_READING_PREDECESSORS:
  case LK_CONTENDER_READING_OWN:
  case LK_CONTENDER_CHECKING_OWN:
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
}

static void on_single_node_read(lk_client *c, int err, const lk_bytes *data,
                                const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    if (err != 0)
      ct->own.watch = NULL;
    if (!lk__contender_fail_if_too_big(ct, err))
      single_node_judge(ct, err, stat);
    if (err == 0 && ct->own.state == LK_OWN_CREATED)
      lk__contender_check_revocation(ct, data);
  }
  lk__contender_unref(ct);
}

/* Who polls, or does not wait, needs a watch only on its own node. */
int lk__single_node_read(lk_contender *ct)
{
  lk_client *c = lk__contender_client(ct);
  bool leaves = ct->state == LK_CONTENDER_CLEANING_UP;
  bool looks = ct->state == LK_CONTENDER_LISTING_FIRST &&
               (ct->config->once || ct->config->fixed->poll_ms > 0);

  /* The same one is watched again, or has gone. */
  if (ct->own.watch != NULL)
    lk_watch_cancel(c, ct->own.watch, false);
  ct->own.watch = NULL;
  if (leaves || looks)
    return lk__contender_count_request(
        ct, lk_get(c, ct->own.path, NULL, on_single_node_read, ct));
  return lk__contender_read_own(ct, on_single_node_read);
}
