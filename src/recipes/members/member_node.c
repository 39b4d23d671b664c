/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/members/member_node.h"

/*
 * The node of a member. It is created, then watched by a subscription to its
 * data. Where a node of its name exists, the subscription tells whose it is,
 * and when it is deleted.
 */

/* ---- pauses -------------------------------------------------------------- */

/* A request has failed with `err`. */
static void membership_retry(lk_membership *m, int err)
{
  if (m->client == NULL || !m->wanted)
    return;
  int64_t ms = lk__membership_pause(m);

  lk__membership_notify(
      m, (lk_membership_event){
             .type = LK_MEMBERSHIP_EVENT_RETRYING, .err = err, .retry_ms = ms});
}

void lk__membership_step_or_retry(lk_membership *m)
{
  int err = lk__membership_step(m);

  if (err != 0)
    membership_retry(m, err);
}

/* The delete of the own node was refused before. It is not needed if the member
 * joins again: then the node is found to be its own. */
static void membership_delete_again(lk_membership *m)
{
  m->delete_due = false;
  if (!m->wanted)
    lk__membership_delete_node(m);
  if (m->freed && !m->delete_due)
    lk__membership_leave_client(m);
  lk__membership_unref(m);
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
  if (m->delete_due)
    membership_delete_again(m);
  if (m->client != NULL)
    lk__membership_step_or_retry(m);
  lk__membership_unref(m);
}

int64_t lk__membership_pause(lk_membership *m)
{
  int64_t now = lk_client_clock(m->client);

  if (m->joined && now - m->joined_ms >= m->backoff.max_ms)
    lk__backoff_reset(&m->backoff);
  int64_t ms = lk__backoff_draw(&m->backoff, m->client);

  if (!m->pause.running)
    lk__retry_pause_until(&m->pause, m->client, now + ms, on_pause_over, m);
  return ms;
}

/* ---- the node ------------------------------------------------------------ */

/* There is no node of this name. */
static void membership_node_missing(lk_membership *m)
{
  lk__membership_forget_node(m);
  if (m->joined)
    (void)lk__membership_pause(m);
  lk__membership_left(m, LK_ERR_NO_NODE);
  if (m->client != NULL)
    lk__membership_step_or_retry(m);
}

/* The node is of another session. */
static void membership_node_foreign(lk_membership *m)
{
  lk__membership_left(m, LK_ERR_NO_NODE);
  if (m->name_taken || !m->wanted)
    return;
  m->name_taken = true;
  lk__membership_notify(
      m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_NAME_TAKEN});
}

/* The node is of this session, and the member did not know that. */
static void membership_node_own(lk_membership *m, int64_t czxid)
{
  m->data_changed = true;
  lk__membership_joined(m, czxid);
  if (m->client != NULL)
    lk__membership_step_or_retry(m);
}

/* The owner of the node is not known. */
static void membership_node_unknown(lk_membership *m, int err)
{
  lk__membership_forget_node(m);
  membership_retry(m, err);
}

static void on_node(lk_subscription *s, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)s;
  (void)data;
  lk__membership_ref(m);
  if (err == LK_ERR_NO_NODE)
    membership_node_missing(m);
  else if (err != 0 && !m->joined)
    membership_node_unknown(m, err);
  else if (err == 0 && !(m->joined && stat->czxid == m->czxid)) {
    /* On a read-only server the client does not know its session. */
    if (lk_client_state(m->client) == LK_STATE_READ_ONLY)
      membership_node_unknown(m, LK_ERR_NOT_READ_ONLY);
    else if (stat->ephemeral_owner == lk_client_session(m->client).id)
      membership_node_own(m, stat->czxid);
    else
      membership_node_foreign(m);
  }
  lk__membership_unref(m);
}

/* ---- requests ------------------------------------------------------------ */

/* A request has completed, and its results have been used. */
static void membership_request_done(lk_membership *m)
{
  if (m->freed && !m->creating && !m->delete_due)
    lk__membership_leave_client(m);
  lk__membership_unref(m);
}

/* The client goes on with an accepted delete when the member is freed. */
void lk__membership_delete_node(lk_membership *m)
{
  const bool sole = true;
  int err = lk_delete_reliable(m->client, m->path, -1, sole, NULL, NULL, NULL);

  if (err == 0 || err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED)
    return;
  m->delete_due = true;
  lk__membership_ref(m);
  (void)lk__membership_pause(m);
}

static lk_bytes membership_data(const lk_membership *m)
{
  return lk_bytes_of(m->data_len == 0 ? "" : m->data, m->data_len);
}

static void on_directory_created(lk_client *c, int err, const char *path,
                                 const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)path;
  (void)stat;
  m->creating = false;
  if (err == LK_ERR_UNIMPLEMENTED && m->parent_flags == LK_CONTAINER) {
    m->parent_flags = LK_PERSISTENT; /* the server has no containers */
    err = 0;
  }
  if (m->client != NULL) {
    if (err == 0 || err == LK_ERR_NODE_EXISTS)
      lk__membership_step_or_retry(m);
    else
      membership_retry(m, err);
  }
  membership_request_done(m);
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
  if (err != 0)
    return err;
  m->creating = true;
  lk__membership_ref(m);
  return 0;
}

static int membership_watch_node(lk_membership *m)
{
  return lk_subscribe_data(&m->node, m->client, m->path, NULL, on_node, m);
}

static void membership_created(lk_membership *m, const lk_stat *stat)
{
  if (!m->wanted) {
    lk__membership_delete_node(m);
    return;
  }
  lk__membership_joined(m, stat->czxid);
  if (m->client != NULL)
    lk__membership_step_or_retry(m);
}

static void membership_create_failed(lk_membership *m, int err)
{
  if (!m->wanted)
    return;
  if (err == LK_ERR_NODE_EXISTS)
    err = membership_watch_node(m);
  else if (err == LK_ERR_NO_NODE)
    err = membership_create_directory(m);
  if (err != 0)
    membership_retry(m, err);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)path;
  m->creating = false;
  if (m->client != NULL) {
    if (err == 0)
      membership_created(m, stat);
    else
      membership_create_failed(m, err);
  }
  membership_request_done(m);
}

static int membership_create_node(lk_membership *m)
{
  const bool sole = false;
  int err = lk_create_reliable(m->client, m->path, membership_data(m), m->acl,
                               LK_EPHEMERAL, sole, NULL, on_created, m);

  if (err != 0)
    return err;
  m->creating = true;
  m->data_changed = false;
  lk__membership_ref(m);
  return 0;
}

static void on_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)stat;
  m->setting = false;
  if (err != 0)
    m->data_changed = true;
  if (m->client != NULL && m->joined) {
    if (err == 0)
      lk__membership_step_or_retry(m);
    else
      membership_retry(m, err);
  }
  membership_request_done(m);
}

static int membership_write_data(lk_membership *m)
{
  const bool sole = true;
  int err = lk_set_reliable(m->client, m->path, membership_data(m), -1, sole,
                            NULL, on_set, m);

  if (err != 0)
    return err;
  m->setting = true;
  m->data_changed = false;
  lk__membership_ref(m);
  return 0;
}

int lk__membership_step(lk_membership *m)
{
  if (!m->wanted || m->creating || m->pause.running)
    return 0;
  if (!m->joined)
    return m->node == NULL ? membership_create_node(m) : 0;
  int err = m->node == NULL ? membership_watch_node(m) : 0;

  if (err != 0)
    return err;
  return m->data_changed && !m->setting ? membership_write_data(m) : 0;
}
