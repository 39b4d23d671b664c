/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_advice.h"
#include "recipes/members/member_node.h"

/*
 * The node of a member. At most one request is under way, and requests are sent
 * only while there is a connection: what a reply has shown is then true of the
 * present session. After a lost connection the member looks at the node, behind
 * a transaction, before it writes or deletes it, since another client may have
 * made it anew. A subscription reports its owner and its deletion.
 */

enum { ANY_VERSION = -1 };

/* The next request, and what its reply leads to. */
static int membership_create_node(lk_membership *m);
static int membership_create_directory(lk_membership *m);
static int membership_look(lk_membership *m);
static int membership_watch(lk_membership *m);
static int membership_write_data(lk_membership *m);
static int membership_delete_node(lk_membership *m);

/* ---- steps ----------------------------------------------------------------
 */

/* The node of an earlier session is gone, or not the own one any more. */
static void membership_begin_session(lk_membership *m, int64_t session)
{
  if (m->node.session == session)
    return;
  m->node.session = session;
  m->node.may_exist = false;
  m->node.seen_on = 0;
}

static bool membership_has_seen_node(const lk_membership *m)
{
  return m->node.seen_on == lk_client_connection(m->client);
}

static int membership_leave_step(lk_membership *m)
{
  if (!m->node.may_exist)
    return 0;
  return membership_has_seen_node(m) ? membership_delete_node(m)
                                     : membership_look(m);
}

static int membership_join_step(lk_membership *m)
{
  if (m->node.may_exist && !m->joined)
    return membership_look(m);
  /* A watch without an own node is of another's node, whose end is awaited. */
  return m->node.watch == NULL ? membership_create_node(m) : 0;
}

static int membership_stay_step(lk_membership *m)
{
  int err = m->node.watch == NULL ? membership_watch(m) : 0;

  if (err != 0 || !m->data_changed)
    return err;
  return membership_has_seen_node(m) ? membership_write_data(m)
                                     : membership_look(m);
}

int lk__membership_step(lk_membership *m)
{
  if (m->busy || m->pause.running ||
      lk_client_state(m->client) != LK_STATE_CONNECTED)
    return 0;
  membership_begin_session(m, lk_client_session(m->client).id);
  if (!m->wanted)
    return membership_leave_step(m);
  return m->joined ? membership_stay_step(m) : membership_join_step(m);
}

/* A member that was freed has no client any more when nothing is left to do. */
static void membership_finish_if_done(lk_membership *m)
{
  if (m->freed && !m->busy && !m->node.may_exist)
    lk__membership_leave_client(m);
}

/* ---- pauses ---------------------------------------------------------------
 */

static bool error_ends_client(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED;
}

/* A request has failed with `err`. The end of the client is reported by the
 * listener. */
static void membership_retry(lk_membership *m, int err)
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

void lk__membership_step_or_retry(lk_membership *m)
{
  int err = m->client == NULL ? 0 : lk__membership_step(m);

  if (err != 0)
    membership_retry(m, err);
  membership_finish_if_done(m);
}

/* `err`: the client has ended, which the listener reports. A session that is
 * still expired after a pause is not followed by another. */
static void on_pause_over(void *arg, int err)
{
  lk_membership *m = arg;

  if (err != 0)
    return;
  lk__membership_ref(m);
  if (lk_client_state(m->client) == LK_STATE_EXPIRED)
    lk__membership_end(m, LK_ERR_SESSION_EXPIRED);
  lk__membership_step_or_retry(m);
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
  int64_t lasted_ms = lk_client_clock(m->client) - m->joined_ms;

  if (lasted_ms >= m->backoff.max_ms)
    lk__backoff_reset(&m->backoff);
  (void)lk__membership_pause(m);
}

/* A request has completed with `err`, which tells nothing about the node. After
 * a lost connection the next one starts the next step. */
static void membership_request_failed(lk_membership *m, int err)
{
  lk_advice advice = lk__error_advice(m->client, err);

  if (advice != LK_ADVICE_AWAIT_CONNECTION)
    membership_retry(m, err);
}

/* ---- what is learned of the node ------------------------------------------
 */

/* There is no node of this name. */
static void membership_node_missing(lk_membership *m)
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
  int err = m->node.watch == NULL ? membership_watch(m) : 0;

  if (err != 0) {
    membership_retry(m, err);
    return;
  }
  m->node.name_taken = true;
  lk__membership_notify(
      m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_NAME_TAKEN});
}

static void membership_node_seen(lk_membership *m, const lk_stat *stat)
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

  if (!m->busy && !equal)
    m->data_changed = true;
}

/* On a read-only server the client has no session to compare with. */
static void membership_watch_reports(lk_membership *m, int err,
                                     const lk_bytes *data, const lk_stat *stat)
{
  bool is_read_only = lk_client_state(m->client) == LK_STATE_READ_ONLY;

  if (err == LK_ERR_NO_NODE) {
    membership_node_missing(m);
  } else if (err == 0 && m->joined && stat->czxid == m->node.czxid) {
    membership_compare_data(m, data);
  } else if (err != 0 || is_read_only) {
    if (m->joined)
      return;
    lk__membership_stop_watch(m);
    membership_retry(m, err == 0 ? LK_ERR_NOT_READ_ONLY : err);
  } else {
    membership_node_seen(m, stat);
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
  lk__membership_step_or_retry(m);
  lk__membership_unref(m);
}

static int membership_watch(lk_membership *m)
{
  return lk_subscribe_data(&m->node.watch, m->client, m->path, NULL, on_node,
                           m);
}

/* ---- requests -------------------------------------------------------------
 */

/* Note that a request was sent, unless it was refused with `err`. Returns
 * `err`. */
static int membership_note_request(lk_membership *m, int err)
{
  if (err != 0)
    return err;
  m->busy = true;
  lk__membership_ref(m);
  return 0;
}

/* The reply to a request has come. Returns whether it is of use: not after the
 * client has ended, nor after a session that has expired meanwhile. */
static bool membership_begin_reply(lk_membership *m)
{
  m->busy = false;
  return m->client != NULL &&
         lk_client_session(m->client).id == m->node.session;
}

static void membership_end_reply(lk_membership *m)
{
  lk__membership_step_or_retry(m);
  lk__membership_unref(m);
}

/* Whether a write that completed with `err` may have been executed. */
static bool may_be_executed(const lk_client *c, int err)
{
  lk_outcome outcome = lk__error_meaning(err).outcome;

  return lk__error_is_loss_behind_server(c, err) ||
         outcome == LK_OUTCOME_IN_DOUBT || outcome == LK_OUTCOME_ABANDONED;
}

static lk_bytes membership_data(const lk_membership *m)
{
  return lk_bytes_of(m->data_len == 0 ? "" : m->data, m->data_len);
}

/* A node of this name may be the own one, if a resumed session has it. */
static void membership_create_failed(lk_membership *m, int err)
{
  m->node.may_exist =
      err == LK_ERR_NODE_EXISTS || may_be_executed(m->client, err);
  if (err == LK_ERR_NO_NODE)
    err = m->wanted ? membership_create_directory(m) : 0;
  if (err != 0 && err != LK_ERR_NODE_EXISTS)
    membership_request_failed(m, err);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)path;
  if (membership_begin_reply(m)) {
    if (err != 0) {
      m->data_changed = true;
      membership_create_failed(m, err);
    } else {
      m->node.seen_on = lk_client_connection(m->client);
      if (m->wanted)
        lk__membership_joined(m, stat->czxid);
    }
  }
  membership_end_reply(m);
}

static int membership_create_node(lk_membership *m)
{
  int err = membership_note_request(
      m, lk_create2(m->client, m->path, membership_data(m), m->acl,
                    LK_EPHEMERAL, NULL, on_created, m));

  if (err != 0)
    return err;
  m->data_changed = false;
  m->node.may_exist = true;
  m->node.seen_on = 0;
  return 0;
}

static void on_directory_created(lk_client *c, int err, const char *path,
                                 const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)path;
  (void)stat;
  if (membership_begin_reply(m)) {
    if (err == LK_ERR_UNIMPLEMENTED && m->parent_flags == LK_CONTAINER)
      m->parent_flags = LK_PERSISTENT; /* the server has no containers */
    else if (err != 0 && err != LK_ERR_NODE_EXISTS)
      membership_request_failed(m, err);
  }
  membership_end_reply(m);
}

static int membership_create_directory(lk_membership *m)
{
  const lk_acls *acl = m->parent_acl == NULL ? m->acl : m->parent_acl;
  const lk_parents_config parents = {.size = sizeof parents,
                                     .containers =
                                         m->parent_flags == LK_CONTAINER,
                                     .acl = acl};

  m->path[m->dir_len] = '\0';
  int err = lk_create_with_parents(m->client, m->path, lk_bytes_of("", 0), acl,
                                   m->parent_flags, &parents, NULL,
                                   on_directory_created, m);

  m->path[m->dir_len] = '/';
  return membership_note_request(m, err);
}

/* A transaction orders the look behind all earlier writes of this session. */
static void on_transaction(lk_client *c, int err, const lk_op_result *results,
                           size_t count, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)results;
  m->ordered = err == 0 || count > 0;
  lk__membership_unref(m);
}

static void on_looked(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  if (membership_begin_reply(m)) {
    if (err == LK_ERR_NO_NODE && m->ordered)
      membership_node_missing(m);
    else if (err == 0)
      membership_node_seen(m, stat);
    else
      membership_request_failed(m,
                                err == LK_ERR_NO_NODE ? LK_ERR_THROTTLED : err);
  }
  membership_end_reply(m);
}

static int membership_look(lk_membership *m)
{
  const lk_op check = lk_op_check("/", ANY_VERSION);

  m->ordered = false;
  int err = lk_multi(m->client, &check, 1, NULL, on_transaction, m);

  if (err != 0)
    return err;
  lk__membership_ref(m);
  return membership_note_request(
      m, lk_exists(m->client, m->path, NULL, on_looked, m));
}

static void on_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)stat;
  if (err != 0)
    m->data_changed = true;
  if (membership_begin_reply(m)) {
    if (err == LK_ERR_NO_NODE)
      membership_node_missing(m);
    else if (err != 0)
      membership_request_failed(m, err);
  }
  membership_end_reply(m);
}

static int membership_write_data(lk_membership *m)
{
  int err =
      membership_note_request(m, lk_set(m->client, m->path, membership_data(m),
                                        ANY_VERSION, NULL, on_set, m));

  if (err == 0)
    m->data_changed = false;
  return err;
}

/* A delete that is refused for good leaves the node to the session. */
static void membership_delete_failed(lk_membership *m, int err)
{
  lk_advice advice = lk__error_cleanup_advice(m->client, err);

  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (advice == LK_ADVICE_RETRY_LATER || may_be_executed(m->client, err)) {
    membership_retry(m, err);
    return;
  }
  lk_client_log(m->client, LK_LOG_WARNING, err,
                "the node of a member that has left cannot be deleted: it "
                "stays until the session ends");
  m->node.may_exist = false;
}

static void on_deleted(lk_client *c, int err, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  if (membership_begin_reply(m)) {
    m->node.seen_on = 0;
    if (err == 0 || err == LK_ERR_NO_NODE)
      m->node.may_exist = false;
    else
      membership_delete_failed(m, err);
  }
  membership_end_reply(m);
}

static int membership_delete_node(lk_membership *m)
{
  return membership_note_request(
      m, lk_delete(m->client, m->path, ANY_VERSION, NULL, on_deleted, m));
}
