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
static void finish(lk_contend *ct, int err)
{
  lk_keeper *k = ct->lease;
  const lk_owner *owner = ct->owner;
  void *arg = ct->owner_arg;

  ct->owner = NULL;
  lk__contend_step(ct, LK_EV_GONE);
  if (err != 0 && !k->freed && k->config.left_behind != NULL)
    k->config.left_behind(k, ct->node, err, k->config.arg);
  if (owner != NULL)
    owner->gone(arg, err);
}

/* A request for the removal ended with an error that is not good news. */
static void trouble(lk_contend *ct, int err)
{
  if (ct->lease->freed) {
    finish(ct, 0);
    return;
  }
  switch (err) {
  case LK_ERR_NOT_SENT:
  case LK_ERR_LOSS:
  case LK_ERR_UNKNOWN:
  case LK_ERR_SESSION_EXPIRED:
  case LK_ERR_AUTH_FAILED:
  case LK_ERR_AUTH_REQUIRED:
  case LK_ERR_CLOSED:
  case LK_ERR_FORKED: break; /* the client tells what comes next */
  case LK_ERR_THROTTLED:
  case LK_ERR_SESSION_MOVED:
  case LK_ERR_NOT_READ_ONLY:
  case LK_ERR_NO_MEMORY:
  case LK_ERR_TOO_MANY: lk__contend_rest(ct, lk__contend_rest_ms(ct)); break;
  case LK_ERR_TOO_BIG:
    if (ct->too_long)
      finish(ct, err);
    ct->too_long = true; /* the connection has gone, too: see there */
    break;
  default: finish(ct, err); break;
  }
}

static void on_deleted(lk_client *c, int err, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  if (lk__contend_answered(ct)) {
    ct->deleting = false;
    if (err == 0 || err == LK_ERR_NO_NODE)
      finish(ct, 0);
    else
      trouble(ct, err);
  }
  lk__contend_unref(ct);
}

static void ask_delete(lk_contend *ct)
{
  int err = lk__contend_asked(ct, lk_delete(lk__contend_client(ct), ct->node,
                                            -1, NULL, on_deleted, ct));

  ct->deleting = err == 0;
  if (err != 0)
    trouble(ct, err);
}

static void ask_look(lk_contend *ct)
{
  int err = lk__enter_looking(ct);

  ct->looking = err == 0;
  if (err != 0)
    trouble(ct, err);
}

/* Their owners tell which of these is ours. */
static void look_closer(lk_contend *ct, const lk_bytes *names, size_t count)
{
  int err = lk__search_take(ct, names, count);

  ct->looking = true;
  if (err == 0)
    err = lk__enter_searching(ct);
  if (err != 0)
    lk__cleanup_searched(ct, err);
}

void lk__cleanup_searched(lk_contend *ct, int err)
{
  ct->looking = false;
  if (err != 0)
    trouble(ct, err);
  else
    lk__cleanup_go(ct);
}

void lk__cleanup_listed(lk_contend *ct, int err, const lk_bytes *names,
                        size_t count)
{
  lk_bytes ours = {NULL, 0};

  if (!ct->looking)
    return; /* the list that belonged to the create */
  ct->looking = false;
  if (ct->proof_err != 0) {
    trouble(ct, ct->proof_err);
    return;
  }
  if (err == 0)
    ours = lk__contend_ours(ct, names, count);
  if (err != 0 && err != LK_ERR_NO_NODE) {
    trouble(ct, err);
  } else if (ours.at != NULL && ct->unique == LK_UNIQUE_DATA) {
    look_closer(ct, names, count);
  } else if (ours.at == NULL) {
    finish(ct, 0);
  } else {
    lk__contend_adopt(ct, ours);
    lk__cleanup_go(ct);
  }
}

void lk__cleanup_read(lk_contend *ct, int err, const lk_stat *stat)
{
  if (!ct->looking)
    return; /* the read that belonged to the create */
  ct->looking = false;
  if (ct->proof_err != 0) {
    trouble(ct, ct->proof_err);
  } else if (err == LK_ERR_NO_NODE ||
             (stat != NULL && !lk__fixed_is_ours(ct, stat))) {
    finish(ct, 0);
  } else if (stat == NULL) {
    trouble(ct, err);
  } else {
    ct->own = LK_OWN_MADE;
    ct->token = (uint64_t)stat->czxid; /* nobody else here claims it now */
    ct->seen_on = lk_client_connection(lk__contend_client(ct));
    lk__cleanup_go(ct);
  }
}

static void remove_own(lk_contend *ct)
{
  if (lk__contend_doubtful(ct))
    ask_look(ct);
  else
    ask_delete(ct);
}

void lk__cleanup_go(lk_contend *ct)
{
  bool online = lk__lease_is_online(ct->lease);

  switch (ct->own) {
  case LK_OWN_NONE: finish(ct, 0); return;
  case LK_OWN_ASKED: return; /* its answer brings us back */
  case LK_OWN_MAYBE:
    if (online && !ct->looking)
      ask_look(ct);
    break;
  case LK_OWN_MADE:
    if (online && !ct->deleting && !ct->looking)
      remove_own(ct);
    break;
  }
  if (!online && ct->lease->freed)
    finish(ct, 0); /* there is nobody to come back */
}
