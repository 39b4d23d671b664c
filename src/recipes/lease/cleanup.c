/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

/**
 * @file
 * What a released, cancelled or failed attempt leaves on the server: it is
 * deleted, asked for again after each break, until it is certainly gone. Where
 * names are unique, deleting twice does no harm. Where they are not, a name may
 * be another's after a break: it is looked at before it is deleted again. Where
 * the list for that is larger than the client takes, only the nodes of this
 * session are asked for (owned.c).
 */

/* Nothing of ours is left, or (`err`) it stays until the session ends. */
static void finish(lk_contender *ct, int err)
{
  lk_session_lease *k = ct->lease;
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  void *arg = ct->callbacks_arg;

  ct->callbacks = NULL;
  lk__contender_step(ct, LK_CONTENDER_ON_OWN_GONE);
  if (err != 0 && k->config.left_behind != NULL)
    k->config.left_behind(k->client, ct->own.path, err, k->config.arg);
  if (callbacks != NULL)
    callbacks->gone(arg, err);
}

/* A request for the removal ended with an error that is not good notice. */
static void trouble(lk_contender *ct, int err)
{
  if (err == LK_ERR_TOO_BIG && !ct->cleanup.too_big) {
    ct->cleanup.too_big = true; /* the connection has gone, too: see there */
    return;
  }
  switch (lk__error_cleanup_advice(lk__contender_client(ct), err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break;
  case LK_ADVICE_RETRY_LATER:
    lk__contender_start_pause(ct, lk__contender_pause_ms(ct));
    break;
  case LK_ADVICE_GIVE_UP: finish(ct, err); break;
  }
}

static void on_deleted(lk_client *c, int err, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    ct->cleanup.deleting = false;
    if (err == 0 || err == LK_ERR_NO_NODE)
      finish(ct, 0);
    else
      trouble(ct, err);
  }
  lk__contender_unref(ct);
}

static void ask_delete(lk_contender *ct)
{
  int err = lk__contender_count_request(ct, lk_delete(lk__contender_client(ct),
                                                      ct->own.path, -1, NULL,
                                                      on_deleted, ct));

  ct->cleanup.deleting = err == 0;
  if (err != 0)
    trouble(ct, err);
}

static void ask_look(lk_contender *ct)
{
  int err = lk__enter_recovering(ct);

  ct->cleanup.recovering = err == 0;
  if (err != 0)
    trouble(ct, err);
}

/* Their owners tell which of these is ours. */
static void look_closer(lk_contender *ct, const lk_bytes *names, size_t count)
{
  int err = lk__candidates_take(ct, names, count);

  ct->cleanup.recovering = true;
  if (err == 0)
    err = lk__enter_reading_candidates(ct);
  if (err != 0)
    lk__cleanup_searched(ct, err);
}

void lk__cleanup_searched(lk_contender *ct, int err)
{
  ct->cleanup.recovering = false;
  if (err != 0)
    trouble(ct, err);
  else
    lk__cleanup_go(ct);
}

void lk__cleanup_listed(lk_contender *ct, int err, const lk_bytes *names,
                        size_t count)
{
  lk_bytes ours = {NULL, 0};

  if (!ct->cleanup.recovering)
    return; /* the list that belonged to the create */
  ct->cleanup.recovering = false;
  if (ct->round.transaction_err != 0) {
    trouble(ct, ct->round.transaction_err);
    return;
  }
  if (err == 0)
    ours = lk__contender_find_own_name(ct, names, count);
  if (err != 0 && err != LK_ERR_NO_NODE) {
    trouble(ct, err);
  } else if (ours.at != NULL && ct->own.identity == LK_IDENTITY_DATA) {
    look_closer(ct, names, count);
  } else if (ours.at == NULL) {
    finish(ct, 0);
  } else {
    lk__contender_set_own_name(ct, ours);
    lk__cleanup_go(ct);
  }
}

void lk__cleanup_read(lk_contender *ct, int err, const lk_stat *stat)
{
  if (!ct->cleanup.recovering)
    return; /* the read that belonged to the create */
  ct->cleanup.recovering = false;
  if (ct->round.transaction_err != 0) {
    trouble(ct, ct->round.transaction_err);
  } else if (err == LK_ERR_NO_NODE ||
             (stat != NULL && !lk__single_node_is_ours(ct, stat))) {
    finish(ct, 0);
  } else if (stat == NULL) {
    trouble(ct, err);
  } else {
    ct->own.state = LK_OWN_CREATED;
    ct->own.token = (uint64_t)stat->czxid; /* nobody else here claims it now */
    ct->own.verified_on = lk_client_connection(lk__contender_client(ct));
    lk__cleanup_go(ct);
  }
}

static void remove_own(lk_contender *ct)
{
  if (lk__contender_own_unverified(ct))
    ask_look(ct);
  else
    ask_delete(ct);
}

void lk__cleanup_go(lk_contender *ct)
{
  bool online = lk__lease_is_online(ct->lease);

  switch (ct->own.state) {
  case LK_OWN_NONE: finish(ct, 0); return;
  case LK_OWN_REQUESTED: return; /* its answer brings us back */
  case LK_OWN_IN_DOUBT:
    if (online && !ct->cleanup.recovering)
      ask_look(ct);
    break;
  case LK_OWN_CREATED:
    if (online && !ct->cleanup.deleting && !ct->cleanup.recovering)
      remove_own(ct);
    break;
  }
}
