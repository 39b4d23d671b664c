/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/single_node.h"

#include "recipes/queue/acquisition.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/queue.h"
#include "recipes/queue/recovery.h"

/**
 * @file
 * The contender for a node whose name is fixed. The client that creates the
 * node holds, and all others wait until it is deleted. There is no queue.
 * Instead of listing a queue, the contender reads the node, whose czxid and
 * session show which contender created it. Its name does not show that, since
 * other clients and other contenders of this session create a node of the same
 * name.
 */

static const lk_single_node_config *single_node_config(const lk_contender *ct)
{
  return ct->config->machine_config;
}

/* ---- whose node it is --------------------------------------------------- */

static bool single_node_is_ours(const lk_contender *ct, const lk_stat *stat)
{
  uint64_t token = (uint64_t)stat->czxid;

  if (stat->ephemeral_owner != lk_client_session(lk__contender_client(ct)).id)
    return false;
  bool token_is_known = ct->own.token != 0;

  return token_is_known ? ct->own.token == token
                        : !lk__node_is_of_other_contender(ct, token);
}

/* ---- waiting for the node of another contender -------------------------- */

static int64_t single_node_random_delay_ms(const lk_contender *ct)
{
  uint32_t largest_ms = (uint32_t)single_node_config(ct)->max_delay_ms;
  uint32_t random;

  lk_client_random(lk__contender_client(ct), &random, sizeof random);
  return largest_ms == 0 ? 0 : random % (largest_ms + 1);
}

/* There are no positions to report, so the notice is sent once. */
static void single_node_notify_waiting(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING, .node = ct->own.path};

  if (ct->wait.reported_position != 0)
    return;
  ct->wait.reported_position = 1;
  lk__contender_notify(ct, &notice);
}

static void single_node_wait(lk_contender *ct)
{
  int32_t poll_ms = single_node_config(ct)->poll_ms;

  ct->wait.node_is_foreign = true;
  lk__backoff_reset(&ct->pause.backoff);
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

/* The node that the contender waits for was deleted. All waiters are notified
 * at the same time. With a delay, each waiter pauses for a random time and then
 * reads the node before it creates. So a release costs one or two writes, not
 * one for each waiter. */
static void single_node_deleted(lk_contender *ct)
{
  if (single_node_config(ct)->max_delay_ms > 0) {
    lk__contender_start_pause(ct, single_node_random_delay_ms(ct));
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  } else {
    ct->wait.node_is_foreign = false;
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  }
}

static void on_foreign_node(lk_contender *ct, lk_event_type type)
{
  if (ct->state != LK_CONTENDER_WAITING)
    return;
  if (type == LK_EVENT_DELETED)
    single_node_deleted(ct);
  else
    /* The node's data changed, or the watch has ended: read and watch again. */
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_FIRST);
}

/* ---- what the read shows ------------------------------------------------ */

/* The own node does not exist. If `stat` is not NULL, the node exists and
 * belongs to another contender. */
static void single_node_judge_foreign(lk_contender *ct, int err,
                                      const lk_stat *stat)
{
  lk__own_node_set_missing(&ct->own);
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
  uint64_t connection = lk__contender_connection(ct);

  lk__own_node_set_found(&ct->own, (uint64_t)stat->czxid, connection);
  lk__own_node_watched(&ct->own, connection);
  lk__backoff_reset(&ct->pause.backoff);
  lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
}

/* The own node was created, and may have been deleted since then. */
static void single_node_judge_own(lk_contender *ct, int err,
                                  const lk_stat *stat)
{
  if (stat != NULL && single_node_is_ours(ct, stat))
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

/* The reply to the create was lost. A transaction was sent ahead of the read.
 * If the transaction was executed and the read does not show our node, our
 * create was not executed and will never be. `*err` is the error of the read;
 * for LK_RECOVERED_FAILED it is set to the reason. */
static lk_recovered single_node_judge_recovery(lk_contender *ct, int *err,
                                               const lk_stat *stat)
{
  if (ct->round.transaction_err != 0) {
    *err = ct->round.transaction_err;
    return LK_RECOVERED_FAILED;
  }
  if (stat != NULL && single_node_is_ours(ct, stat))
    return LK_RECOVERED_FOUND;
  return stat != NULL || *err == LK_ERR_NO_NODE ? LK_RECOVERED_MISSING
                                                : LK_RECOVERED_FAILED;
}

static void single_node_judge_recovering(lk_contender *ct, int err,
                                         const lk_stat *stat)
{
  switch (single_node_judge_recovery(ct, &err, stat)) {
  case LK_RECOVERED_FOUND: single_node_take_own(ct, stat); break;
  case LK_RECOVERED_MISSING: single_node_judge_foreign(ct, err, stat); break;
  case LK_RECOVERED_POSSIBLE_NODES:
  case LK_RECOVERED_FAILED: lk__contender_request_failed(ct, err); break;
  }
}

/* In the state CLEANING_UP. */
static void single_node_judge_cleanup(lk_contender *ct, int err,
                                      const lk_stat *stat)
{
  if (!ct->cleanup.recovering)
    return; /* the reply is to the read that was sent with the create */
  lk_recovered result = single_node_judge_recovery(ct, &err, stat);

  if (result == LK_RECOVERED_FOUND)
    lk__own_node_set_found(&ct->own, (uint64_t)stat->czxid,
                           lk__contender_connection(ct));
  lk__cleanup_recovered(ct, result, err);
}

static void single_node_judge(lk_contender *ct, int err, const lk_stat *stat)
{
  switch (ct->state) {
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
    single_node_judge_create(ct, err, stat);
    break;
  case LK_CONTENDER_RECOVERING:
    single_node_judge_recovering(ct, err, stat);
    break;
  case LK_CONTENDER_LISTING_FIRST:
    single_node_judge_foreign(ct, err, stat);
    break;
  case LK_CONTENDER_LISTING: single_node_judge_own(ct, err, stat); break;
  case LK_CONTENDER_CLEANING_UP:
    single_node_judge_cleanup(ct, err, stat);
    break;
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_READING_POSSIBLE_NODES:
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
      ct->own.watch = NULL; /* a read that fails sets no watch */
    if (!lk__contender_fail_if_too_big(ct, err))
      single_node_judge(ct, err, stat);
    if (err == 0 && ct->own.state == LK_OWN_CREATED)
      lk__contender_note_revocation(ct, data);
  }
  lk__contender_unref(ct);
}

/* Reads the node, with a watch if one is needed. A contender that polls, or
 * does not wait, needs no watch on the node of another contender. */
static int single_node_send_read(lk_contender *ct)
{
  lk_client *c = lk__contender_client(ct);
  bool cleans_up = ct->state == LK_CONTENDER_CLEANING_UP;
  bool needs_no_watch =
      ct->state == LK_CONTENDER_LISTING_FIRST &&
      (ct->config->once || single_node_config(ct)->poll_ms > 0);

  /* The server keeps the watch, because the same node is watched again or is
   * about to be deleted. */
  lk_watch_cancel(c, ct->own.watch);
  ct->own.watch = NULL;
  if (cleans_up || needs_no_watch)
    return lk__contender_count_request(
        ct, lk_get(c, ct->own.path, LK_NO_OPTIONS, on_single_node_read, ct));
  return lk__contender_read_own(ct, on_single_node_read);
}

/* ---- states ------------------------------------------------------------- */

static const lk_contender_rules reading_first = {
    .next = {LK_ON(START, CREATING), LK_ON(WATCHES_SET, WAITING),
             LK_ON_ANY_BEFORE_GRANT},
    .enter = lk__contender_enter_listing_first};

#define STEPS_OF_CREATING_SINGLE                                     \
  {                                                                  \
    LK_ON(NO_PARENT, CREATING_PARENTS), LK_ON(WATCHES_SET, WAITING), \
        LK_ON(GRANT, HELD), LK_ON(CHECK_NEEDED, CHECKING_OWN),       \
        LK_ON_ANY_IN_QUEUE                                           \
  }

static const lk_contender_rules creating = {
    .next = STEPS_OF_CREATING_SINGLE, .enter = lk__contender_enter_creating};

static const lk_contender_rules creating_parents = {
    .next = STEPS_OF_CREATING_SINGLE,
    .enter = lk__contender_enter_creating_parents};

static const lk_contender_rules recovering = {
    .next = {LK_ON(WATCHES_SET, WAITING), LK_ON(GRANT, HELD),
             LK_ON(CHECK_NEEDED, CHECKING_OWN), LK_ON_ANY_IN_QUEUE},
    .enter = lk__contender_enter_recovering};

/* For the state LISTING: after a lost connection the own node is read again. */
static const lk_contender_rules reading_again = {
    .next = {LK_ON(GRANT, HELD), LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON_ANY_IN_QUEUE},
    .enter = lk__contender_enter_listing};

/* There is no own node that the lease keeps. But the server may answer pings
 * alone: then no event comes, and the heartbeat gets no reply. */
static const lk_contender_rules waiting = {
    .next = {LK_ON(LIST_FIRST, LISTING_FIRST), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING};

/* Whether the contender reads the node before it creates: it does if it has
 * seen the node of another contender, or if `max_queue` or `peek` require it.
 */
static bool single_node_reads_first(const lk_contender *ct)
{
  return ct->wait.node_is_foreign || lk__max_queue_needs_peek(ct);
}

/* Whether the success of a check proves that the own node exists. The check
 * also succeeds for a node that the next holder has created. But with a watch
 * on the own node, its deletion is reported before the reply to the check. */
static bool single_node_check_proves_own(const lk_contender *ct)
{
  return ct->own.watch != NULL &&
         ct->own.watched_on == lk__contender_connection(ct);
}

static bool single_node_has_watch(const lk_contender *ct)
{
  return ct->own.watch != NULL;
}

const lk_contender_machine lk__single_node_machine = {
    .states = {[LK_CONTENDER_IDLE] = &lk__rules_idle,
               [LK_CONTENDER_PAUSED] = &lk__rules_paused,
               [LK_CONTENDER_LISTING_FIRST] = &reading_first,
               [LK_CONTENDER_CREATING] = &creating,
               [LK_CONTENDER_CREATING_PARENTS] = &creating_parents,
               [LK_CONTENDER_RECOVERING] = &recovering,
               [LK_CONTENDER_LISTING] = &reading_again,
               [LK_CONTENDER_WAITING] = &waiting,
               [LK_CONTENDER_READING_OWN] = &lk__rules_reading_own,
               [LK_CONTENDER_CHECKING_OWN] = &lk__rules_checking_own,
               [LK_CONTENDER_HELD] = &lk__rules_held,
               [LK_CONTENDER_UNSURE] = &lk__rules_unsure,
               [LK_CONTENDER_CLEANING_UP] = &lk__rules_cleaning_up,
               [LK_CONTENDER_FINISHED] = &lk__rules_finished},
    .reads_first = single_node_reads_first,
    .request_view = single_node_send_read,
    .check_proves_own = single_node_check_proves_own,
    .has_watch = single_node_has_watch,
    .on_foreign_node = on_foreign_node};
