/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/cleanup.h"

#include "recipes/error_advice.h"
#include "recipes/queue/acquisition.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/recovery.h"

/**
 * @file
 * Cleanup: the own node of a released, cancelled or failed contender is
 * deleted. The delete is repeated on each new connection until the node is
 * known not to exist. Where names are not unique, another client's node may
 * have the name after a connection loss, so the own node is recovered before
 * each repeated delete. If the list for the recovery is larger than the client
 * accepts, only the nodes of this session are listed (recovery.c).
 */

/* End the cleanup. `err` 0: the own node does not exist. Otherwise the own node
 * could not be deleted and remains until the session ends. */
static void cleanup_finish(lk_contender *ct, int err)
{
  lk_session_lease *lease = ct->lease;
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  void *arg = ct->callbacks_arg;

  ct->callbacks = NULL;
  lk__contender_step(ct, LK_CONTENDER_ON_GONE_FOR_GOOD);
  if (err != 0 && lease->config.left_behind != NULL)
    lease->config.left_behind(lease->client, ct->own.path, err,
                              lease->config.arg);
  if (callbacks != NULL)
    callbacks->gone(arg, err);
}

/* A delete, or a request of the recovery, completed with an error. */
static void cleanup_failed(lk_contender *ct, int err)
{
  if (err == LK_ERR_REPLY_TOO_BIG && !ct->cleanup.too_big) {
    /* A reply that is too big breaks the connection. The cleanup continues on
     * the next connection, and lists only the nodes of this session. */
    ct->cleanup.too_big = true;
    return;
  }
  switch (lk__error_cleanup_advice(lk__contender_client(ct), err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break;
  case LK_ADVICE_RETRY_LATER: lk__contender_start_backoff(ct); break;
  case LK_ADVICE_GIVE_UP: cleanup_finish(ct, err); break;
  }
}

/* The delete may have been executed, or be executed later. Where names are
 * shared, the name can be that of another client's node by now, so the own node
 * is recovered before the next delete. */
static void cleanup_delete_failed(lk_contender *ct, int err)
{
  if (lk__error_meaning(err).outcome != LK_OUTCOME_NOT_DONE)
    ct->own.verified_on = 0;
  cleanup_failed(ct, err);
}

static void cleanup_on_deleted(lk_client *c, int err, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    ct->cleanup.deleting = false;
    if (err == 0 || err == LK_ERR_NO_NODE)
      cleanup_finish(ct, 0);
    else
      cleanup_delete_failed(ct, err);
  }
  lk__contender_unref(ct);
}

static void cleanup_send_delete(lk_contender *ct)
{
  enum { ANY_VERSION = -1 };
  int err = lk__contender_count_request(
      ct, lk_delete(lk__contender_client(ct), ct->own.path, ANY_VERSION,
                    LK_NO_OPTIONS, cleanup_on_deleted, ct));

  ct->cleanup.deleting = err == 0;
  if (err != 0)
    cleanup_failed(ct, err);
}

/* The list that was requested with the create may still be under way, and would
 * be taken for that of the recovery. */
static void cleanup_send_recovery(lk_contender *ct)
{
  lk__contender_ignore_replies(ct);
  int err = lk__recovery_begin(ct);

  ct->cleanup.recovering = err == 0;
  if (err != 0)
    cleanup_failed(ct, err);
}

void lk__cleanup_recovered(lk_contender *ct, lk_recovered result, int err)
{
  ct->cleanup.recovering = false;
  switch (result) {
  case LK_RECOVERED_MISSING: cleanup_finish(ct, 0); break;
  case LK_RECOVERED_FOUND: lk__cleanup_continue(ct); break;
  case LK_RECOVERED_POSSIBLE_NODES:
  case LK_RECOVERED_FAILED: cleanup_failed(ct, err); break;
  }
}

static void cleanup_delete_or_recover(lk_contender *ct)
{
  if (lk__own_node_needs_verification(&ct->own, lk__contender_connection(ct)))
    cleanup_send_recovery(ct);
  else
    cleanup_send_delete(ct);
}

void lk__cleanup_continue(lk_contender *ct)
{
  bool online = lk__lease_is_online(ct->lease);

  switch (ct->own.state) {
  case LK_OWN_NONE: cleanup_finish(ct, 0); return;
  case LK_OWN_REQUESTED: return; /* its reply continues the cleanup */
  case LK_OWN_IN_DOUBT:
    if (online && !ct->cleanup.recovering)
      cleanup_send_recovery(ct);
    break;
  case LK_OWN_CREATED:
    if (online && !ct->cleanup.deleting && !ct->cleanup.recovering)
      cleanup_delete_or_recover(ct);
    break;
  }
}

static int contender_enter_cleaning_up(lk_contender *ct)
{
  lk__cleanup_continue(ct);
  return 0;
}

static void cleanup_take_list(lk_contender *ct, int err, const lk_bytes *names,
                              size_t count)
{
  /* Without a recovery, this is the list that was requested with the create,
   * which the cleanup does not need. */
  if (ct->cleanup.recovering)
    lk__recovery_take_list(ct, err, names, count);
}

/* A connection loss (PAUSE) does not leave the state: the cleanup continues on
 * the next connection. */
const lk_contender_rules lk__rules_cleaning_up = {
    .next = {LK_ON(PAUSE, STAY), LK_ON(GONE_FOR_GOOD, FINISHED)},
    .need = LK_LEASE_CLEANUP,
    .enter = contender_enter_cleaning_up,
    .resume = lk__cleanup_continue,
    .listed = cleanup_take_list,
    .restart = lk__cleanup_continue};

/* ---- FINISHED ----------------------------------------------------------- */

static int contender_enter_finished(lk_contender *ct)
{
  lk__own_node_set_missing(&ct->own);
  lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  lk_timer_stop(ct->lease->client, &ct->pause.timer);
  lk__lease_remove_user(ct->lease, ct);
  lk__contender_unref(ct); /* the reference until FINISHED */
  return 0;
}

/* GONE_FOR_GOOD may be reported again: requests that were under way when the
 * session lease was freed complete later. */
const lk_contender_rules lk__rules_finished = {
    .next = {LK_ON(GONE_FOR_GOOD, STAY)}, .enter = contender_enter_finished};
