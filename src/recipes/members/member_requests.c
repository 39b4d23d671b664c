/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/error_advice.h"
#include "recipes/members/member_node.h"
#include "recipes/members/member_requests.h"

/* The requests for the node of a member, and their replies. At most one is
 * under way. */

enum { ANY_VERSION = -1 };

static int membership_create_directory(lk_membership *m);

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
  m->step(m);
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
  if (err == LK_ERR_NO_NODE && !m->node.directory_made)
    err = m->wanted ? membership_create_directory(m) : 0;
  m->node.directory_made = false;
  if (err != 0 && err != LK_ERR_NODE_EXISTS)
    lk__membership_request_failed(m, err);
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

int lk__membership_create_node(lk_membership *m)
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
      lk__membership_request_failed(m, err);
    else
      m->node.directory_made = true;
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

  return membership_note_request(
      m, lk_create_with_parents(m->client, m->dir, lk_bytes_of("", 0), acl,
                                m->parent_flags, &parents, NULL,
                                on_directory_created, m));
}

/* A transaction orders the look behind all earlier writes of this session. */
static void on_transaction(lk_client *c, int err, const lk_op_result *results,
                           size_t count, void *arg)
{
  lk_membership *m = arg;

  (void)err;
  (void)results;
  (void)count;
  m->ordered = lk__transaction_was_ordered(c);
  lk__membership_unref(m);
}

static void on_looked(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  if (membership_begin_reply(m)) {
    if (err == LK_ERR_NO_NODE && m->ordered)
      lk__membership_node_missing(m);
    else if (err == 0)
      lk__membership_node_seen(m, stat);
    else
      lk__membership_request_failed(m, err == LK_ERR_NO_NODE ? LK_ERR_THROTTLED
                                                             : err);
  }
  membership_end_reply(m);
}

int lk__membership_look(lk_membership *m)
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
      lk__membership_node_missing(m);
    else if (err != 0)
      lk__membership_request_failed(m, err);
  }
  membership_end_reply(m);
}

int lk__membership_write_data(lk_membership *m)
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
    lk__membership_retry(m, err);
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

int lk__membership_delete_node(lk_membership *m)
{
  return membership_note_request(
      m, lk_delete(m->client, m->path, ANY_VERSION, NULL, on_deleted, m));
}
