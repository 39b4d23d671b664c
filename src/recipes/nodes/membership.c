/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/nodes/membership.h"

#include "base/acl.h"
#include "base/mem.h"
#include "proto/engine/lease_slot.h"
#include "recipes/call.h"
#include "recipes/create_with_czxid.h"
#include "recipes/error_advice.h"
#include "recipes/names.h"
#include "recipes/nodes/create_with_parents.h"

/*
 * A member of a group. Requests are sent only while there is a connection: what
 * a reply has shown is then true of the present session. After a lost
 * connection the member looks at the node, behind a transaction, before it
 * writes or deletes it, since another client may have made it anew.
 */

enum { ANY_VERSION = -1 };

/* After a loss or an error. A membership of the longest pause ends the
 * doubling. */
enum { FIRST_PAUSE_MS = 100, MAX_PAUSE_MS = 10 * 1000 };

#define PARTY_SUFFIX "__party__" /* of the names in kazoo's Party */

/* ---- references ---------------------------------------------------------- */

static void membership_ref(lk_membership *m)
{
  m->refs++;
}

static void membership_unref(lk_membership *m)
{
  lk_client *c = m->client;
  const lk_mem *mem = lk_client_mem(c);

  if (--m->refs > 0)
    return;
  lk__mem_free(mem, m->acl);
  lk__mem_free(mem, m->parent_acl);
  lk__mem_free(mem, m->data);
  lk__mem_free(mem, m);
  lk__client_unref(c);
}

/* ---- creation ------------------------------------------------------------ */

static void membership_step_or_retry(lk_membership *m);
static void on_client_state(lk_client *c, lk_state state, int err, void *arg);

static bool name_is_valid(const char *name)
{
  return name == NULL || (name[0] != '\0' && strchr(name, '/') == NULL);
}

/* Write the path of the node, and the directory behind it. */
static void membership_write_path(lk_membership *m, const char *dir,
                                  const char *name)
{
  char party[LK_UNIQUE_PART_MAX_LEN + sizeof PARTY_SUFFIX];
  unsigned char random[16];

  if (name == NULL) {
    lk_client_random(m->client, random, sizeof random);
    lk__name_write_unique_part(LK_IDENTITY_HEX, party, random);
    strcat(party, PARTY_SUFFIX);
    name = party;
  }
  (void)lk__write_child_path(m->path, dir, lk_text(name));
  char *behind = m->path + strlen(m->path) + 1;

  memcpy(behind, dir, strlen(dir) + 1);
  m->dir = behind;
}

/* false: no memory. */
static bool membership_copy_config(lk_membership *m,
                                   const lk_membership_config *config)
{
  m->on_event = config->on_event;
  m->arg = config->arg;
  m->parent_flags = config->persistent_parents ? LK_PERSISTENT : LK_CONTAINER;
  if (config->acl != NULL)
    m->acl = lk__acls_copy(lk_client_mem(m->client), config->acl);
  if (config->parent_acl != NULL)
    m->parent_acl = lk__acls_copy(lk_client_mem(m->client), config->parent_acl);
  return (m->acl != NULL || config->acl == NULL) &&
         (m->parent_acl != NULL || config->parent_acl == NULL) &&
         lk_membership_set_data(m, config->data) == 0;
}

/* A client that has ended already does not report that again. */
static void membership_attach(lk_membership *m)
{
  m->over = lk__client_end_err(m->client) != 0;
  if (m->over)
    return;
  m->listener = (lk_listener){
      .size = sizeof(lk_listener), .state = on_client_state, .arg = m};
  lk_client_attach(m->client, &m->listener);
  membership_ref(m); /* until membership_leave_client() */
}

int lk_membership_new(lk_membership **out, lk_client *client, const char *path,
                      const char *name, const lk_membership_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_membership_config);
  const lk_mem *mem = lk_client_mem(client);
  lk_membership_config options;

  *out = NULL;
  if (lk__client_copy_options(client, &sized, &options, config) != 0)
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0 || strcmp(path, "/") == 0 ||
      !name_is_valid(name))
    return LK_ERR_BAD_PATH;
  size_t dir_size = strlen(path) + 1; /* with the NUL, or the '/' */
  size_t name_len = name == NULL ? LK_UNIQUE_PART_MAX_LEN + sizeof PARTY_SUFFIX
                                 : strlen(name);
  lk_membership *m =
      lk__mem_new(mem, sizeof *m + dir_size + name_len + 1 + dir_size);

  if (m == NULL)
    return LK_ERR_NO_MEMORY;
  m->refs = 1;
  m->client = client;
  lk__client_ref(client);
  m->backoff = (lk_backoff){.first_ms = FIRST_PAUSE_MS, .max_ms = MAX_PAUSE_MS};
  membership_write_path(m, path, name);
  int err = membership_copy_config(m, &options) ? 0 : LK_ERR_NO_MEMORY;

  if (err == 0)
    err = lk_path_check(m->path);
  if (err != 0) {
    membership_unref(m);
    return err;
  }
  membership_attach(m);
  *out = m;
  return 0;
}

/* ---- events for the caller ----------------------------------------------- */

/* Report an event, unless the caller has freed the member. */
static void membership_notify(lk_membership *m, lk_membership_event event)
{
  if (m->on_event != NULL && !m->freed)
    m->on_event(m, &event, m->arg);
}

/* The node is this session's. */
static void membership_joined(lk_membership *m, int64_t czxid)
{
  m->joined = true;
  m->node.czxid = czxid;
  m->node.name_taken = false;
  m->undisturbed_since_ms = lk_client_clock(m->client);
  m->node.directory_made = false;
  membership_notify(m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_JOINED,
                                             .zxid = czxid});
}

/* The node is not this session's any more, because of `err`. */
static void membership_left(lk_membership *m, int err)
{
  if (!m->joined)
    return;
  m->joined = false;
  membership_notify(
      m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_LEFT, .err = err});
}

/* ---- pauses and retries -------------------------------------------------- */

/* `err`: the client has ended, which the listener reports. */
static void on_pause_over(void *arg, int err)
{
  lk_membership *m = arg;

  if (err != 0)
    return;
  membership_ref(m);
  membership_step_or_retry(m);
  membership_unref(m);
}

/* Pause before the next request. Returns the length of the pause. */
static int64_t membership_pause(lk_membership *m)
{
  int64_t ms = lk__backoff_draw(&m->backoff, m->client);

  if (!m->pause.running)
    lk__retry_pause_until(&m->pause, m->client, lk_client_clock(m->client) + ms,
                          on_pause_over, m);
  return ms;
}

/* Pause after a loss of the node or of its data. A long time without a loss
 * ends the doubling of pauses. */
static void membership_pause_after_loss(lk_membership *m)
{
  int64_t now = lk_client_clock(m->client);

  if (m->pause.running)
    return;
  if (now - m->undisturbed_since_ms >= m->backoff.max_ms)
    lk__backoff_reset(&m->backoff);
  m->undisturbed_since_ms = now;
  (void)membership_pause(m);
}

static bool error_ends_client(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED;
}

/* A request has failed with `err`, which is reported; the next one follows
 * after a pause. The end of the client is reported by the listener. */
static void membership_retry(lk_membership *m, int err)
{
  if (m->over || error_ends_client(err))
    return;
  int64_t ms = membership_pause(m);

  if (m->wanted)
    membership_notify(
        m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_RETRYING,
                                 .err = err,
                                 .retry_ms = ms});
}

/* A request has completed with `err`, which tells nothing about the node. After
 * a lost connection the next connection starts the next step. */
static void membership_request_failed(lk_membership *m, int err)
{
  lk_advice advice = lk__error_advice(m->client, err);

  if (advice != LK_ADVICE_AWAIT_CONNECTION)
    membership_retry(m, err);
}

/* ---- the node ------------------------------------------------------------ */

/* A subscription reports the owner, the data and the deletion of the node. */

static int membership_watch(lk_membership *m);

/* End the subscription to the node. */
static void membership_stop_watch(lk_membership *m)
{
  lk_subscription_free(m->node.watch);
  m->node.watch = NULL;
  m->node.name_taken = false;
}

/* A request or the subscription has shown that there is no node of this name.
 */
static void membership_node_missing(lk_membership *m)
{
  m->node.may_exist = false;
  membership_stop_watch(m);
  if (m->joined)
    membership_pause_after_loss(m);
  membership_left(m, LK_ERR_NO_NODE);
}

/* The node is this session's. */
static void membership_node_own(lk_membership *m, int64_t czxid)
{
  m->node.may_exist = true;
  m->node.seen_on = lk_client_connection(m->client);
  if (!m->wanted || (m->joined && m->node.czxid == czxid))
    return;
  if (m->joined)
    membership_pause_after_loss(m);
  membership_left(m, LK_ERR_NO_NODE);
  m->data_changed = true;
  if (!m->over && m->wanted)
    membership_joined(m, czxid);
}

/* The node is of another session. */
static void membership_node_foreign(lk_membership *m)
{
  m->node.may_exist = false;
  membership_left(m, LK_ERR_NO_NODE);
  if (m->over || m->node.name_taken || !m->wanted)
    return;
  int err = m->node.watch == NULL ? membership_watch(m) : 0;

  if (err != 0) {
    membership_retry(m, err);
    return;
  }
  m->node.name_taken = true;
  membership_notify(
      m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_NAME_TAKEN});
}

/* A request or the subscription has shown the node. */
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

  if (m->busy || equal)
    return;
  m->data_changed = true;
  membership_pause_after_loss(m);
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
    membership_stop_watch(m);
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
  membership_ref(m);
  membership_watch_reports(m, err, data, stat);
  membership_step_or_retry(m);
  membership_unref(m);
}

/* Subscribe to the node. Returns 0, or an error. */
static int membership_watch(lk_membership *m)
{
  return lk_subscribe_data(&m->node.watch, m->client, m->path, NULL, on_node,
                           m);
}

/* ---- requests ------------------------------------------------------------ */

/* The requests for the node. At most one is under way. Each function that sends
 * one returns 0, or why the request was refused. After the reply,
 * membership_step_or_retry() is called. */

/* Note that a request was sent, unless it was refused with `err`. Returns
 * `err`. */
static int membership_note_request(lk_membership *m, int err)
{
  if (err != 0)
    return err;
  m->busy = true;
  membership_ref(m);
  return 0;
}

/* The reply to a request has come. Returns whether it is of use: not after the
 * client has ended, nor after a session that has expired meanwhile. */
static bool membership_begin_reply(lk_membership *m)
{
  m->busy = false;
  return !m->over && lk_client_session(m->client).id == m->node.session;
}

static void membership_end_reply(lk_membership *m)
{
  membership_step_or_retry(m);
  membership_unref(m);
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
    else
      m->node.directory_made = true;
  }
  membership_end_reply(m);
}

static int membership_create_directory(lk_membership *m)
{
  const lk_acls *acl = m->parent_acl == NULL ? m->acl : m->parent_acl;
  int err = lk__create_directories(m->client, m->dir, acl, m->parent_flags,
                                   on_directory_created, m);

  /* The client knows from an earlier request that the server has no containers,
   * and refuses to send the create. */
  if (err == LK_ERR_UNIMPLEMENTED && m->parent_flags == LK_CONTAINER) {
    m->parent_flags = LK_PERSISTENT;
    err = lk__create_directories(m->client, m->dir, acl, m->parent_flags,
                                 on_directory_created, m);
  }
  return membership_note_request(m, err);
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
    membership_request_failed(m, err);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  lk_membership *m = arg;

  (void)path;
  if (membership_begin_reply(m)) {
    if (err != 0) {
      m->data_changed = true;
      membership_create_failed(m, err);
    } else {
      m->node.seen_on = lk_client_connection(m->client);
      if (m->wanted)
        membership_joined(m, lk__created_czxid(c, err, stat));
    }
  }
  membership_end_reply(m);
}

static int membership_create_node(lk_membership *m)
{
  int err = membership_note_request(
      m, lk__create_with_czxid(m->client, m->path, membership_data(m), m->acl,
                               LK_EPHEMERAL, on_created, m));

  if (err != 0)
    return err;
  m->data_changed = false;
  m->node.may_exist = true;
  m->node.seen_on = 0;
  return 0;
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
  membership_unref(m);
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

/* Find out whether the node exists, and whose it is. */
static int membership_look(lk_membership *m)
{
  const lk_op check = lk_op_check("/", ANY_VERSION);

  m->ordered = false;
  int err = lk_multi(m->client, &check, 1, NULL, on_transaction, m);

  if (err != 0)
    return err;
  membership_ref(m);
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

/* Write the data, or delete the node, which must be the own one. */
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

/* ---- the next request ---------------------------------------------------- */

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

/* Send the next request, if one is due. Returns 0, or why it was refused. */
static int membership_step(lk_membership *m)
{
  if (m->busy || m->pause.running ||
      lk_client_state(m->client) != LK_STATE_CONNECTED)
    return 0;
  membership_begin_session(m, lk_client_session(m->client).id);
  if (!m->wanted)
    return membership_leave_step(m);
  return m->joined ? membership_stay_step(m) : membership_join_step(m);
}

/* The callbacks of requests under way still come. */
static void membership_leave_client(lk_membership *m)
{
  if (m->over)
    return;
  lk__retry_pause_stop(&m->pause, m->client);
  membership_stop_watch(m);
  lk_client_detach(m->client, &m->listener);
  m->over = true;
  membership_unref(m);
}

/* A member that was freed leaves its client when nothing is left to do. */
static void membership_finish_if_done(lk_membership *m)
{
  if (m->freed && !m->busy && !m->node.may_exist)
    membership_leave_client(m);
}

/* Send the next request, if one is due. A request that was refused is sent
 * again after a pause. */
static void membership_step_or_retry(lk_membership *m)
{
  int err = m->over ? 0 : membership_step(m);

  if (err != 0)
    membership_retry(m, err);
  membership_finish_if_done(m);
}

/* ---- the client ---------------------------------------------------------- */

/* The client has ended. */
static void membership_end(lk_membership *m)
{
  int err = lk__client_end_err(m->client);
  bool wanted = m->wanted;

  m->wanted = false;
  membership_leave_client(m);
  membership_left(m, err);
  if (wanted)
    membership_notify(m, (lk_membership_event){
                             .type = LK_MEMBERSHIP_EVENT_ENDED, .err = err});
}

/* The node is gone with its session. */
static void membership_expired(lk_membership *m)
{
  membership_stop_watch(m);
  m->node.may_exist = false;
  if (m->wanted)
    membership_pause_after_loss(m);
  membership_left(m, LK_ERR_SESSION_EXPIRED);
  membership_step_or_retry(m);
}

static void on_client_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)err;
  membership_ref(m);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED:
  case LK_STATE_AUTH_FAILED:
  case LK_STATE_READ_ONLY: break;
  case LK_STATE_CONNECTED: membership_step_or_retry(m); break;
  case LK_STATE_EXPIRED: membership_expired(m); break;
  case LK_STATE_CLOSED: membership_end(m); break;
  }
  membership_unref(m);
}

/* ---- calls --------------------------------------------------------------- */

static bool membership_is_forked(const lk_membership *m)
{
  return lk__client_is_forked(m->client);
}

int lk_membership_join(lk_membership *m)
{
  if (m->over)
    return lk__client_end_err(m->client);
  if (membership_is_forked(m))
    return LK_ERR_FORKED;
  if (m->wanted)
    return 0;
  m->wanted = true;
  int err = membership_step(m);

  if (err != 0)
    m->wanted = false;
  return err;
}

void lk_membership_leave(lk_membership *m)
{
  if (!m->wanted)
    return;
  m->wanted = false;
  membership_ref(m);
  lk__retry_pause_stop(&m->pause, m->client);
  membership_step_or_retry(m); /* the delete is sent first */
  membership_stop_watch(m);
  membership_left(m, 0);
  membership_unref(m);
}

int lk_membership_set_data(lk_membership *m, lk_bytes data)
{
  void *copy = NULL;

  if (membership_is_forked(m))
    return LK_ERR_FORKED;
  if (data.len > 0) {
    copy = lk__mem_new(lk_client_mem(m->client), data.len);
    if (copy == NULL)
      return LK_ERR_NO_MEMORY;
    memcpy(copy, data.at, data.len);
  }
  lk__mem_free(lk_client_mem(m->client), m->data);
  m->data = copy;
  m->data_len = data.len;
  m->data_changed = true;
  if (m->joined) {
    membership_ref(m);
    membership_step_or_retry(m);
    membership_unref(m);
  }
  return 0;
}

/* ---- queries ------------------------------------------------------------- */

bool lk_membership_has_joined(const lk_membership *m)
{
  return m->joined && !membership_is_forked(m);
}

const char *lk_membership_path(const lk_membership *m)
{
  return m->path;
}

const char *lk_membership_event_text(lk_membership_event_type type)
{
  switch (type) {
  case LK_MEMBERSHIP_EVENT_JOINED: return "joined";
  case LK_MEMBERSHIP_EVENT_LEFT: return "left";
  case LK_MEMBERSHIP_EVENT_NAME_TAKEN: return "name taken";
  case LK_MEMBERSHIP_EVENT_RETRYING: return "retrying";
  case LK_MEMBERSHIP_EVENT_ENDED: return "ended";
  }
  return "unknown event";
}

/* ---- end ----------------------------------------------------------------- */

void lk_membership_free(lk_membership *m)
{
  if (m == NULL || m->freed)
    return;
  m->freed = true;
  lk_membership_leave(m);
  membership_step_or_retry(m);
  membership_unref(m);
}
