/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/client.h>
#include <latchkey/error.h>
#include <latchkey/nodes.h>

#include "base/acl.h"
#include "base/list.h"
#include "base/mem.h"
#include "proto/engine/lease_slot.h"
#include "recipes/call.h"
#include "recipes/error_advice.h"
#include "recipes/retry.h"

/**
 * @file
 * Reliable writes. A reliable write is retried over lost connections until its
 * outcome is known. After a lost reply, requests verify what happened. Then the
 * write completes, or it is sent again.
 */

typedef enum lk_write_kind {
  LK_WRITE_CREATE,
  LK_WRITE_SET,
  LK_WRITE_DELETE
} lk_write_kind;

typedef struct lk_lost_write {
  lk_write_kind kind;
  int flags;         /* of a create: lk_create_flags */
  int32_t version;   /* that a set or delete requires; -1: any version */
  bool sole;         /* no other client writes the node */
  int64_t seen_zxid; /* largest zxid before the lost reply; 0: no reply yet */
  int64_t lost_in_session; /* id of the session in which the reply was lost */
} lk_lost_write;

/* What the requests after the lost reply have shown. */
typedef struct lk_node_facts {
  int64_t session;       /* id of the present session */
  int read_err;          /* 0 or LK_ERR_NO_NODE */
  lk_stat stat;          /* valid if `read_err` is 0 */
  bool data_equal;       /* the node's data are those of the write */
  bool parent_unchanged; /* no child created or deleted since `seen_zxid` */
} lk_node_facts;

enum { LK_WRITE_SEND_AGAIN = 1 }; /* errors are negative */

typedef struct lk_write_verification {
  lk_client *client;
  char *path;
  lk_bytes data; /* that the write creates or sets */
  const lk_lost_write *write;
  int64_t deadline_ms; /* deadline of the write */
  lk_retry_pause pause;
  size_t outstanding;  /* requests without a reply */
  int request_err;     /* why a request was refused, or 0 */
  int transaction_err; /* why the transaction was not executed, or 0 */
  lk_node_facts node;  /* what the requests have shown */
} lk_write_verification;

typedef struct reliable_write {
  lk_client *client;
  lk_lost_write write;
  char *path;
  lk_bytes data;
  lk_acls *acl;
  int64_t deadline_ms;
  void (*done)(void); /* cast to the callback type of `write.kind`; or NULL */
  void *arg;
  lk_retry_pause pause;
  lk_write_verification verification;
} reliable_write;

/* ---- completion ---------------------------------------------------------- */

static void reliable_write_free(reliable_write *w)
{
  const lk_mem *mem = lk_client_mem(w->client);

  lk__mem_free(mem, w->acl);
  lk__mem_free(mem, w);
}

static void reliable_write_notify(const reliable_write *w, int err,
                                  const char *path, const lk_stat *stat)
{
  if (w->done == NULL)
    return;
  switch (w->write.kind) {
  case LK_WRITE_CREATE:
    ((lk_create_cb)w->done)(w->client, err, path, stat, w->arg);
    break;
  case LK_WRITE_SET: ((lk_stat_cb)w->done)(w->client, err, stat, w->arg); break;
  case LK_WRITE_DELETE: ((lk_done_cb)w->done)(w->client, err, w->arg); break;
  }
}

static void reliable_write_complete(reliable_write *w, int err,
                                    const char *path, const lk_stat *stat)
{
  reliable_write_notify(w, err, path, stat);
  reliable_write_free(w);
}

static void reliable_write_fail(reliable_write *w, int err)
{
  reliable_write_complete(w, err, NULL, NULL);
}

/* The write has not been executed so far, and cannot be sent again because of
 * `err`. */
static void reliable_write_fail_unsent(reliable_write *w, int err)
{
  reliable_write_fail(w, lk__error_of_unsent(err));
}

/* ---- the outcome, derived from the node ---------------------------------- */

/* The zxid of the node's last change is compared with `seen_zxid`, the largest
 * zxid of the replies that came before the lost one. If it is not larger, the
 * change is older than our write. A larger zxid belongs to our write or to that
 * of another client. If the write is `sole`, no other client writes the node.
 */

/* Whether the write creates an ephemeral node. */
static bool write_creates_ephemeral(const lk_lost_write *w)
{
  return w->kind == LK_WRITE_CREATE && (w->flags & LK_EPHEMERAL) != 0;
}

static int conclude_ephemeral_create(const lk_lost_write *w,
                                     const lk_node_facts *node)
{
  if (node->session != w->lost_in_session)
    return LK_ERR_SESSION_EXPIRED;
  else if (node->read_err == LK_ERR_NO_NODE)
    return LK_WRITE_SEND_AGAIN;
  else if (node->stat.czxid <= w->seen_zxid ||
           node->stat.ephemeral_owner != w->lost_in_session)
    return LK_ERR_NODE_EXISTS;
  else
    return 0;
}

/* A missing node may have been created by the write and then deleted by another
 * client. If `seen_zxid` is 0, the client had received no reply, and an
 * existing node may be older than the write. */
static int conclude_create(const lk_lost_write *w, const lk_node_facts *node)
{
  if (node->read_err == LK_ERR_NO_NODE && (w->sole || node->parent_unchanged))
    return LK_WRITE_SEND_AGAIN;
  else if (node->read_err == LK_ERR_NO_NODE || w->seen_zxid == 0)
    return LK_ERR_IN_DOUBT;
  else if (node->stat.czxid <= w->seen_zxid || (w->sole && !node->data_equal))
    return LK_ERR_NODE_EXISTS;
  else if (w->sole)
    return 0;
  else
    return LK_ERR_IN_DOUBT;
}

/* Whether the only change since `version` was made by another client: there was
 * one change, and the data differ from those of the write. */
static bool only_change_is_foreign(const lk_lost_write *w,
                                   const lk_node_facts *node)
{
  enum { ANY_VERSION = -1 };
  bool requires_version = w->version != ANY_VERSION;
  bool is_same_node = node->stat.czxid <= w->seen_zxid;
  bool changed_once = (uint32_t)node->stat.version == (uint32_t)w->version + 1;

  return requires_version && is_same_node && changed_once && !node->data_equal;
}

/* Whether the set was not executed. If the write is `sole`, other data or an
 * unchanged version show that as well. */
static bool set_may_be_resent(const lk_lost_write *w, const lk_node_facts *node)
{
  return node->stat.mzxid <= w->seen_zxid ||
         (w->sole && (!node->data_equal || node->stat.version == w->version));
}

static int conclude_set(const lk_lost_write *w, const lk_node_facts *node)
{
  if (node->read_err == LK_ERR_NO_NODE)
    return w->sole ? LK_ERR_NO_NODE : LK_ERR_IN_DOUBT;
  else if (set_may_be_resent(w, node))
    return LK_WRITE_SEND_AGAIN;
  else if (w->sole)
    return 0;
  else
    return only_change_is_foreign(w, node) ? LK_ERR_BAD_VERSION
                                           : LK_ERR_IN_DOUBT;
}

static int conclude_delete(const lk_lost_write *w, const lk_node_facts *node)
{
  if (node->read_err == 0 && (w->sole || node->stat.czxid <= w->seen_zxid))
    return LK_WRITE_SEND_AGAIN;
  else
    return w->sole ? 0 : LK_ERR_IN_DOUBT;
}

/* @return 0: the write was executed; LK_WRITE_SEND_AGAIN: it was not, and may
   be sent again; or the error with which it completes. */
static int write_outcome(const lk_lost_write *w, const lk_node_facts *node)
{
  switch (w->kind) {
  case LK_WRITE_CREATE:
    return write_creates_ephemeral(w) ? conclude_ephemeral_create(w, node)
                                      : conclude_create(w, node);
  case LK_WRITE_SET: return conclude_set(w, node);
  case LK_WRITE_DELETE: return conclude_delete(w, node);
  }
  return LK_ERR_STATE;
}

/* ---- the verification ---------------------------------------------------- */

/* Requests read the node after a lost reply. The first one is a transaction,
 * whose content does not matter. When it is executed, each request of the old
 * connection has been executed or will never be. That does not hold for a
 * session that the client has given up and the servers have not. In that case
 * the verification begins when the session has ended. */

static void reliable_write_send(reliable_write *w);
static void verification_begin(lk_write_verification *v);

/* The verification ends with `outcome`; see write_outcome(). At the deadline
 * the write is still in doubt. */
static void reliable_write_on_verified(lk_write_verification *v, int outcome)
{
  reliable_write *w = LK_OWNER(v, reliable_write, verification);

  if (outcome == LK_WRITE_SEND_AGAIN)
    reliable_write_send(w);
  else if (outcome != 0)
    reliable_write_fail(w,
                        outcome == LK_ERR_DEADLINE ? LK_ERR_IN_DOUBT : outcome);
  else
    reliable_write_complete(w, 0, w->path, &w->verification.node.stat);
}

static void verification_on_pause_over(void *arg, int err)
{
  lk_write_verification *v = arg;

  if (err != 0)
    reliable_write_on_verified(v, err);
  else
    verification_begin(v);
}

static void verification_pause(lk_write_verification *v)
{
  lk__retry_pause_start(&v->pause, v->client, v->deadline_ms,
                        verification_on_pause_over, v);
}

/* Servers may still execute the writes of a session that the client has given
 * up, until that session has ended. false: no pause is needed. A client that
 * has ended runs no timer, and refuses the requests of the verification. */
static bool verification_pause_until_session_end(lk_write_verification *v)
{
  int64_t now = lk_client_clock(v->client);
  int64_t session_end = lk_client_abandoned_session_end(v->client);
  int64_t pause_end =
      session_end < v->deadline_ms ? session_end : v->deadline_ms;

  if (now >= session_end || now >= v->deadline_ms ||
      lk__client_end_err(v->client) != 0)
    return false;
  lk__retry_pause_until(&v->pause, v->client, pause_end,
                        verification_on_pause_over, v);
  return true;
}

/* The error of the verification. 0: `v->node` holds the state of the node. */
static int verification_error(const lk_write_verification *v)
{
  if (v->request_err != 0)
    return v->request_err;
  if (v->transaction_err != 0)
    return v->transaction_err;
  return v->node.read_err == LK_ERR_NO_NODE ? 0 : v->node.read_err;
}

static void verification_failed(lk_write_verification *v, int err)
{
  switch (lk__error_advice(v->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    verification_begin(v); /* the client sends the requests once connected */
    break;
  case LK_ADVICE_RETRY_LATER: verification_pause(v); break;
  case LK_ADVICE_GIVE_UP:
    if (err == LK_ERR_NO_AUTH) /* the node may not be read */
      err = LK_ERR_IN_DOUBT;
    reliable_write_on_verified(v, err);
    break;
  }
}

static void verification_judge(lk_write_verification *v)
{
  int err = verification_error(v);

  v->node.session = lk_client_session(v->client).id;
  if (err != 0)
    verification_failed(v, err);
  else
    reliable_write_on_verified(v, write_outcome(v->write, &v->node));
}

static void verification_replied(lk_write_verification *v)
{
  if (--v->outstanding == 0)
    verification_judge(v);
}

/* ---- requests of the verification ---------------------------------------- */

static void verification_on_transaction(lk_client *c, int err,
                                        const lk_op_result *results,
                                        size_t count, void *arg)
{
  lk_write_verification *v = arg;

  (void)results;
  (void)count;
  v->transaction_err = lk__transaction_was_ordered(c) ? 0 : err;
  verification_replied(v);
}

static void verification_on_node_read(lk_client *c, int err,
                                      const lk_bytes *data, const lk_stat *stat,
                                      void *arg)
{
  lk_write_verification *v = arg;

  (void)c;
  v->node.read_err = err;
  if (err == 0) {
    v->node.stat = *stat;
    v->node.data_equal =
        data->len == v->data.len &&
        (data->len == 0 || memcmp(data->at, v->data.at, data->len) == 0);
  }
  verification_replied(v);
}

static void verification_on_parent_read(lk_client *c, int err,
                                        const lk_stat *stat, void *arg)
{
  lk_write_verification *v = arg;

  (void)c;
  v->node.parent_unchanged = err == 0 && stat->pzxid <= v->write->seen_zxid;
  verification_replied(v);
}

/* A missing node was never created if its parent has not changed. If the write
 * is `sole`, that is known without the parent: no other client deletes it. */
static bool parent_is_needed(const lk_lost_write *write)
{
  return write->kind == LK_WRITE_CREATE && !write->sole;
}

/* `v->path` is cut behind the parent's name while the request is made. */
static int verification_read_parent(lk_write_verification *v,
                                    const lk_call *call)
{
  char *last_slash = strrchr(v->path, '/');
  bool parent_is_root = last_slash == v->path;
  char *parent_end = parent_is_root ? last_slash + 1 : last_slash;
  char kept = *parent_end;

  *parent_end = '\0';
  int err = lk_exists(v->client, v->path, call, verification_on_parent_read, v);

  *parent_end = kept;
  return err;
}

/* The transaction changes nothing: what matters is when it is executed. */
static int verification_request(lk_write_verification *v)
{
  enum { ANY_VERSION = -1 };
  lk_op check = lk_op_check("/", ANY_VERSION);
  lk_call call = lk__call_until(v->deadline_ms);
  int err =
      lk_multi(v->client, &check, 1, &call, verification_on_transaction, v);

  if (err != 0)
    return err;
  v->outstanding++;
  if (parent_is_needed(v->write)) {
    err = verification_read_parent(v, &call);
    if (err != 0)
      return err;
    v->outstanding++;
  }
  err = lk_get(v->client, v->path, &call, verification_on_node_read, v);
  if (err == 0)
    v->outstanding++;
  return err;
}

static void verification_begin(lk_write_verification *v)
{
  if (verification_pause_until_session_end(v))
    return;
  v->node.parent_unchanged = false;
  v->request_err = verification_request(v);
  if (v->outstanding == 0)
    verification_judge(v);
}

/* Verify the write until its outcome is known. Lost connections and refusals
   of busy servers lead to retries. reliable_write_on_verified() is called once;
   it is called before this function returns if no request can be sent. If the
   outcome is 0, `node` holds what was read. */
static void write_verification_start(lk_write_verification *v,
                                     int64_t deadline_ms)
{
  v->deadline_ms = deadline_ms;
  verification_begin(v);
}

/* ---- requests of the write ----------------------------------------------- */

static void reliable_write_on_pause_over(void *arg, int err)
{
  reliable_write *w = arg;

  if (err != 0)
    reliable_write_fail_unsent(w, err);
  else
    reliable_write_send(w);
}

static void reliable_write_pause(reliable_write *w)
{
  lk__retry_pause_start(&w->pause, w->client, w->deadline_ms,
                        reliable_write_on_pause_over, w);
}

/* Keep the largest zxid that the client has received. */
static void record_seen_zxid(reliable_write *w)
{
  int64_t zxid = lk_client_zxid(w->client);

  if (zxid > w->write.seen_zxid)
    w->write.seen_zxid = zxid;
}

/* The outcome of the write is unknown, for one of two reasons. If the client
 * lost its connection, all replies received until now came before the lost one,
 * so their zxids are older than the write. If the server reports that it lost
 * its connection to the leader, zxids received now may be newer than the write,
 * and none is recorded. */
static void reliable_write_reply_lost(reliable_write *w, int err)
{
  if (err == LK_ERR_IN_DOUBT &&
      !lk__error_is_loss_behind_server(w->client, err))
    record_seen_zxid(w);
  w->write.lost_in_session = lk_client_session(w->client).id;
  if (write_creates_ephemeral(&w->write) && err == LK_ERR_SESSION_EXPIRED)
    reliable_write_fail(w, err);
  else if (w->write.kind == LK_WRITE_CREATE &&
           (w->write.flags & LK_SEQUENTIAL) != 0)
    /* The server chose the name, so the client cannot read the node. */
    reliable_write_fail(w, LK_ERR_IN_DOUBT);
  else
    write_verification_start(&w->verification, w->deadline_ms);
}

static void reliable_write_replied(reliable_write *w, int err, const char *path,
                                   const lk_stat *stat)
{
  if (err == LK_ERR_NOT_SENT)
    reliable_write_send(w);
  else if (lk__error_meaning(err).outcome == LK_OUTCOME_IN_DOUBT)
    reliable_write_reply_lost(w, err);
  else if (lk__error_advice(w->client, err) == LK_ADVICE_RETRY_LATER)
    reliable_write_pause(w);
  else
    reliable_write_complete(w, err, path, stat);
}

static void reliable_write_on_created(lk_client *c, int err, const char *path,
                                      const lk_stat *stat, void *arg)
{
  (void)c;
  reliable_write_replied(arg, err, path, stat);
}

static void reliable_write_on_set(lk_client *c, int err, const lk_stat *stat,
                                  void *arg)
{
  (void)c;
  reliable_write_replied(arg, err, NULL, stat);
}

static void reliable_write_on_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  reliable_write_replied(arg, err, NULL, NULL);
}

/* A client that has received no reply yet knows no zxid to compare with. This
 * read supplies one, since its reply comes before that of the write. The client
 * keeps the zxid of each reply, so no callback is needed. */
static void request_first_zxid(reliable_write *w, const lk_call *call)
{
  const lk_stat_cb no_callback = NULL;

  if (lk_client_zxid(w->client) == 0)
    (void)lk_exists(w->client, "/", call, no_callback, NULL);
}

static int reliable_write_request(reliable_write *w)
{
  lk_client *c = w->client;
  lk_call call = lk__call_until(w->deadline_ms);

  record_seen_zxid(w);
  request_first_zxid(w, &call);
  switch (w->write.kind) {
  case LK_WRITE_CREATE:
    return lk_create2(c, w->path, w->data, w->acl, w->write.flags, &call,
                      reliable_write_on_created, w);
  case LK_WRITE_SET:
    return lk_set(c, w->path, w->data, w->write.version, &call,
                  reliable_write_on_set, w);
  case LK_WRITE_DELETE:
    return lk_delete(c, w->path, w->write.version, &call,
                     reliable_write_on_deleted, w);
  }
  return LK_ERR_STATE;
}

static void reliable_write_send(reliable_write *w)
{
  int err = reliable_write_request(w);

  if (lk__error_advice(w->client, err) == LK_ADVICE_RETRY_LATER)
    reliable_write_pause(w);
  else if (err != 0)
    reliable_write_fail_unsent(w, err);
}

/* ---- calls --------------------------------------------------------------- */

static const lk_acls *const no_acl = NULL;

/* Path and data are copied into the allocation of the struct. NULL: no memory.
 */
static reliable_write *reliable_write_new(lk_client *c, const char *path,
                                          lk_bytes data)
{
  size_t path_size = strlen(path) + 1;

  if (data.len > SIZE_MAX - sizeof(reliable_write) - path_size)
    return NULL;
  reliable_write *w =
      lk__mem_new(lk_client_mem(c), sizeof *w + path_size + data.len);

  if (w == NULL)
    return NULL;
  w->client = c;
  w->path = (char *)(w + 1);
  memcpy(w->path, path, path_size);
  w->data = data;
  if (data.at != NULL)
    w->data.at = w->path + path_size;
  if (data.len > 0)
    memcpy(w->path + path_size, data.at, data.len);
  w->verification = (lk_write_verification){
      .client = c, .path = w->path, .data = w->data, .write = &w->write};
  return w;
}

/* Only `write`, `done` and `arg` of `options` are used. */
static int reliable_write_begin(lk_client *c, const reliable_write *options,
                                const char *path, lk_bytes data,
                                const lk_acls *acl, const lk_call *call)
{
  lk_call timing;
  int err = lk__call_options_copy(c, &timing, call);

  if (err != 0)
    return err;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  reliable_write *w = reliable_write_new(c, path, data);

  if (w == NULL)
    return LK_ERR_NO_MEMORY;
  w->write = options->write;
  w->done = options->done;
  w->arg = options->arg;
  w->deadline_ms = lk__call_deadline(c, &timing);
  if (acl != NULL) {
    w->acl = lk__acls_copy(lk_client_mem(c), acl);
    if (w->acl == NULL)
      err = LK_ERR_NO_MEMORY;
  }
  if (err == 0)
    err = reliable_write_request(w);
  if (err != 0)
    reliable_write_free(w);
  return err;
}

int lk_create_reliable(lk_client *c, const char *path, lk_bytes data,
                       const lk_acls *acl, int flags, bool sole,
                       const lk_call *call, lk_create_cb done, void *arg)
{
  const reliable_write options = {.write.kind = LK_WRITE_CREATE,
                                  .write.flags = flags,
                                  .write.sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  return reliable_write_begin(c, &options, path, data, acl, call);
}

int lk_set_reliable(lk_client *c, const char *path, lk_bytes data,
                    int32_t version, bool sole, const lk_call *call,
                    lk_stat_cb done, void *arg)
{
  const reliable_write options = {.write.kind = LK_WRITE_SET,
                                  .write.version = version,
                                  .write.sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  return reliable_write_begin(c, &options, path, data, no_acl, call);
}

int lk_delete_reliable(lk_client *c, const char *path, int32_t version,
                       bool sole, const lk_call *call, lk_done_cb done,
                       void *arg)
{
  const reliable_write options = {.write.kind = LK_WRITE_DELETE,
                                  .write.version = version,
                                  .write.sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  const lk_bytes no_data = {0};

  return reliable_write_begin(c, &options, path, no_data, no_acl, call);
}
