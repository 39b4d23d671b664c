/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_advice.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/requests.h"

/**
 * @file
 * What a released, cancelled or failed attempt leaves on the server: it is
 * deleted, asked for again after each break, until it is certainly gone. Where
 * names are unique, deleting twice does no harm. Where they are not, a name may
 * be another's after a break: it is looked at before it is deleted again. Where
 * the list for that is larger than the client takes, only the nodes of this
 * session are listed (recovery_by_session.c).
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
  int err = lk__recovery_begin(ct);

  ct->cleanup.recovering = err == 0;
  if (err != 0)
    trouble(ct, err);
}

void lk__cleanup_recovered(lk_contender *ct, lk_recovered result, int err)
{
  ct->cleanup.recovering = false;
  switch (result) {
  case LK_RECOVERED_ABSENT: finish(ct, 0); break;
  case LK_RECOVERED_FOUND: lk__cleanup_go(ct); break;
  case LK_RECOVERED_CANDIDATES:
  case LK_RECOVERED_FAILED: trouble(ct, err); break;
  }
}

static void remove_own(lk_contender *ct)
{
  if (lk__own_node_is_unverified(&ct->own, lk__contender_connection(ct)))
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

static int enter_cleaning_up(lk_contender *ct, lk_contender_state from)
{
  (void)from;
  lk__cleanup_go(ct);
  return 0;
}

/* PAUSE: it continues when the next connection stands. */
const lk_contender_rules lk__rules_cleaning_up = {
    .next = {LK_ON(PAUSE, STAY), LK_ON(OWN_GONE, FINISHED)},
    .enter = enter_cleaning_up};
