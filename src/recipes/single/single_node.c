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
static bool is_claimed(const lk_contend *ct, uint64_t token)
{
  lk_contend *other = NULL;

  while ((other = lk__lease_next_of_all(ct->lease, other)) != NULL) {
    if (other != ct && other->token == token &&
        strcmp(other->node, ct->node) == 0)
      return true;
  }
  return false;
}

bool lk__fixed_is_ours(const lk_contend *ct, const lk_stat *stat)
{
  uint64_t token = (uint64_t)stat->czxid;

  if (stat->ephemeral_owner != lk_client_session(lk__contend_client(ct)).id)
    return false;
  return ct->token != 0 ? ct->token == token : !is_claimed(ct, token);
}

/* ---- another's --------------------------------------------------------- */

static int64_t spread(const lk_contend *ct)
{
  uint32_t most = (uint32_t)ct->config->fixed->spread_ms;
  uint32_t random;

  lk_client_random(lk__contend_client(ct), &random, sizeof random);
  return most == 0 ? 0 : random % (most + 1);
}

static void tell_waiting(lk_contend *ct)
{
  lk_news news = {.type = LK_NEWS_WAITING, .node = ct->node};

  if (ct->told_position++ == 0)
    lk__contend_tell(ct, &news);
}

static void wait_for_it(lk_contend *ct)
{
  int32_t poll_ms = ct->config->fixed->poll_ms;

  ct->occupied = true;
  ct->rests = 0;
  if (ct->config->once) {
    lk__contend_end(ct, LK_ERR_BUSY);
    return;
  }
  if (poll_ms > 0) {
    lk__contend_drop_watches(ct);
    lk__contend_rest(ct, poll_ms + spread(ct));
    lk__contend_step(ct, LK_EV_HALT);
  } else {
    lk__contend_step(ct, LK_EV_PARKED);
  }
  tell_waiting(ct);
}

/* All who wait learn it at once. Who is late by chance looks before it asks, so
 * that a release costs one write or two, not one of each. */
static void gone(lk_contend *ct)
{
  if (ct->config->fixed->spread_ms > 0) {
    lk__contend_rest(ct, spread(ct));
    lk__contend_step(ct, LK_EV_HALT);
  } else {
    ct->occupied = false;
    lk__contend_step(ct, LK_EV_ABSENT);
  }
}

void lk__fixed_event(lk_contend *ct, lk_event_type type)
{
  if (ct->state != LK_CONTEND_WAITING || type == LK_EVENT_ENDED)
    return;
  if (type == LK_EVENT_DELETED)
    gone(ct);
  else
    lk__contend_step(ct, LK_EV_PEEK); /* its data changed: watch again */
}

/* ---- what the read says ------------------------------------------------ */

/* Own is not there. `stat`: but another's is. */
static void judge_others(lk_contend *ct, int err, const lk_stat *stat)
{
  ct->own = LK_OWN_NONE;
  if (stat != NULL) {
    wait_for_it(ct);
  } else if (err == LK_ERR_NO_NODE) {
    ct->occupied = false;
    lk__contend_step(ct, ct->state == LK_CONTEND_PEEKING ? LK_EV_NEW
                                                         : LK_EV_ABSENT);
  } else {
    lk__contend_trouble(ct, err);
  }
}

static void judge_ours(lk_contend *ct, const lk_stat *stat)
{
  uint64_t connection = lk_client_connection(lk__contend_client(ct));

  ct->own = LK_OWN_MADE;
  ct->token = (uint64_t)stat->czxid;
  ct->seen_on = connection;
  ct->watched_on = connection;
  ct->rests = 0;
  lk__contend_first(ct, lk_client_clock(lk__contend_client(ct)));
}

/* We have made it, and it may have gone since. */
static void judge_made(lk_contend *ct, int err, const lk_stat *stat)
{
  if (stat != NULL && lk__fixed_is_ours(ct, stat))
    judge_ours(ct, stat);
  else if (stat != NULL || err == LK_ERR_NO_NODE)
    lk__contend_absent(ct, LK_ERR_NO_NODE);
  else
    lk__contend_trouble(ct, err);
}

static void judge_created(lk_contend *ct, int err, const lk_stat *stat)
{
  switch (ct->create_err) {
  case 0: judge_made(ct, err, stat); break;
  case LK_ERR_NODE_EXISTS:
    ct->parents = 0;
    if (ct->config->once)
      lk__contend_end(ct, LK_ERR_BUSY);
    else
      judge_others(ct, err, stat);
    break;
  case LK_ERR_NO_NODE: lk__contend_no_parent(ct); break;
  default: lk__contend_trouble(ct, ct->create_err); break;
  }
}

/* Behind a transaction: a create that is not seen now was not executed, and
 * will not be. */
static void judge_looked(lk_contend *ct, int err, const lk_stat *stat)
{
  if (ct->proof_err != 0)
    lk__contend_trouble(ct, ct->proof_err);
  else if (stat != NULL && lk__fixed_is_ours(ct, stat))
    judge_ours(ct, stat);
  else if (stat != NULL || err == LK_ERR_NO_NODE)
    judge_others(ct, err, stat);
  else
    lk__contend_trouble(ct, err);
}

static void judge(lk_contend *ct, int err, const lk_stat *stat)
{
  switch (ct->state) {
  case LK_CONTEND_CREATING:
  case LK_CONTEND_PARENTS: judge_created(ct, err, stat); break;
  case LK_CONTEND_LOOKING: judge_looked(ct, err, stat); break;
  case LK_CONTEND_PEEKING: judge_others(ct, err, stat); break;
  case LK_CONTEND_LISTING: judge_made(ct, err, stat); break;
  case LK_CONTEND_LEAVING: lk__cleanup_read(ct, err, stat); break;
  case LK_CONTEND_NO_STEP:
  case LK_CONTEND_IDLE:
  case LK_CONTEND_PAUSED:
  case LK_CONTEND_SEARCHING:
  case LK_CONTEND_PARKING:
  case LK_CONTEND_WAITING:
  case LK_CONTEND_PROBING:
  case LK_CONTEND_READING:
  case LK_CONTEND_CHECKING:
  case LK_CONTEND_HELD:
  case LK_CONTEND_UNSURE:
  case LK_CONTEND_OVER:
  case LK_CONTEND_NSTATES: break;
  }
}

static void on_read(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_contend *ct = arg;

  (void)c;
  if (lk__contend_answered(ct)) {
    if (err != 0)
      ct->own_watch = NULL;
    if (!lk__contend_too_big(ct, err))
      judge(ct, err, stat);
    if (err == 0 && ct->own == LK_OWN_MADE)
      lk__contend_seek_revocation(ct, data);
  }
  lk__contend_unref(ct);
}

/* Who polls, or does not wait, needs a watch only on its own node. */
int lk__fixed_ask(lk_contend *ct)
{
  lk_client *c = lk__contend_client(ct);
  bool leaves = ct->state == LK_CONTEND_LEAVING;
  bool looks = ct->state == LK_CONTEND_PEEKING &&
               (ct->config->once || ct->config->fixed->poll_ms > 0);

  /* The same one is watched again, or has gone. */
  if (ct->own_watch != NULL)
    lk_watch_cancel(c, ct->own_watch, false);
  ct->own_watch = NULL;
  if (leaves || looks)
    return lk__contend_asked(ct, lk_get(c, ct->node, NULL, on_read, ct));
  return lk__contend_watch(ct, on_read);
}
