/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/error_advice.h"
#include "recipes/members/member_node.h"

/*
 * What is known of the node of a member, and what follows from it. A
 * subscription reports the owner, the data and the deletion of the node.
 */

/* ---- pauses -------------------------------------------------------------- */

static bool error_ends_client(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED;
}

/* A request has failed with `err`. The end of the client is reported by the
 * listener. */
void lk__membership_retry(lk_membership *m, int err)
{
  if (m->client == NULL || error_ends_client(err))
    return;
  int64_t ms = lk__membership_pause(m);

  if (m->wanted)
    lk__membership_notify(
        m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_RETRYING,
                                 .err = err,
                                 .retry_ms = ms});
}

/* `err`: the client has ended, which the listener reports. */
static void on_pause_over(void *arg, int err)
{
  lk_membership *m = arg;

  if (err != 0)
    return;
  lk__membership_ref(m);
  m->step(m);
  lk__membership_unref(m);
}

int64_t lk__membership_pause(lk_membership *m)
{
  int64_t ms = lk__backoff_draw(&m->backoff, m->client);

  if (!m->pause.running)
    lk__retry_pause_until(&m->pause, m->client, lk_client_clock(m->client) + ms,
                          on_pause_over, m);
  return ms;
}

void lk__membership_pause_after_loss(lk_membership *m)
{
  int64_t now = lk_client_clock(m->client);

  if (m->pause.running)
    return;
  if (now - m->undisturbed_since_ms >= m->backoff.max_ms)
    lk__backoff_reset(&m->backoff);
  m->undisturbed_since_ms = now;
  (void)lk__membership_pause(m);
}

/* A request has completed with `err`, which tells nothing about the node. After
 * a lost connection the next one starts the next step. */
void lk__membership_request_failed(lk_membership *m, int err)
{
  lk_advice advice = lk__error_advice(m->client, err);

  if (advice != LK_ADVICE_AWAIT_CONNECTION)
    lk__membership_retry(m, err);
}

/* ---- what is learned of the node ----------------------------------------- */

/* There is no node of this name. */
void lk__membership_node_missing(lk_membership *m)
{
  m->node.may_exist = false;
  lk__membership_stop_watch(m);
  if (m->joined)
    lk__membership_pause_after_loss(m);
  lk__membership_left(m, LK_ERR_NO_NODE);
}

/* The node is this session's. */
static void membership_node_own(lk_membership *m, int64_t czxid)
{
  m->node.may_exist = true;
  m->node.seen_on = lk_client_connection(m->client);
  if (!m->wanted || (m->joined && m->node.czxid == czxid))
    return;
  if (m->joined)
    lk__membership_pause_after_loss(m);
  lk__membership_left(m, LK_ERR_NO_NODE);
  m->data_changed = true;
  if (m->client != NULL && m->wanted)
    lk__membership_joined(m, czxid);
}

/* The node is of another session. */
static void membership_node_foreign(lk_membership *m)
{
  m->node.may_exist = false;
  lk__membership_left(m, LK_ERR_NO_NODE);
  if (m->client == NULL || m->node.name_taken || !m->wanted)
    return;
  int err = m->node.watch == NULL ? lk__membership_watch(m) : 0;

  if (err != 0) {
    lk__membership_retry(m, err);
    return;
  }
  m->node.name_taken = true;
  lk__membership_notify(
      m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_NAME_TAKEN});
}

void lk__membership_node_seen(lk_membership *m, const lk_stat *stat)
{
  if (stat->ephemeral_owner == lk_client_session(m->client).id)
    membership_node_own(m, stat->czxid);
  else
    membership_node_foreign(m);
}

/* The own node has these data. Others' are replaced: another member of this
 * name can have written them, before it has noticed the end of its own node. A
 * report that comes during a request may be older than the request. */
static void membership_compare_data(lk_membership *m, const lk_bytes *data)
{
  bool equal = data->len == m->data_len &&
               (data->len == 0 || memcmp(data->at, m->data, data->len) == 0);

  if (m->busy || equal)
    return;
  m->data_changed = true;
  lk__membership_pause_after_loss(m);
}

/* On a read-only server the client has no session to compare with. */
static void membership_watch_reports(lk_membership *m, int err,
                                     const lk_bytes *data, const lk_stat *stat)
{
  bool is_read_only = lk_client_state(m->client) == LK_STATE_READ_ONLY;

  if (err == LK_ERR_NO_NODE) {
    lk__membership_node_missing(m);
  } else if (err == 0 && m->joined && stat->czxid == m->node.czxid) {
    membership_compare_data(m, data);
  } else if (err != 0 || is_read_only) {
    if (m->joined)
      return;
    lk__membership_stop_watch(m);
    lk__membership_retry(m, err == 0 ? LK_ERR_NOT_READ_ONLY : err);
  } else {
    lk__membership_node_seen(m, stat);
  }
}

static void on_node(lk_subscription *s, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)s;
  if (error_ends_client(err) || err == LK_ERR_SESSION_EXPIRED)
    return; /* the listener reports it */
  lk__membership_ref(m);
  membership_watch_reports(m, err, data, stat);
  m->step(m);
  lk__membership_unref(m);
}

int lk__membership_watch(lk_membership *m)
{
  return lk_subscribe_data(&m->node.watch, m->client, m->path, NULL, on_node,
                           m);
}
