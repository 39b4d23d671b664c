/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "recipes/common/deadline.h"
#include "recipes/common/error_advice.h"
#include "recipes/common/memory.h"
#include "recipes/nodes/pause.h"

#include <latchkey/nodes.h>

/**
 * @file
 * Reliable writes: each is retried over lost connections until its outcome is
 * known. When a reply is lost, the node is read. Its zxid is compared with
 * `seen_zxid`, the largest zxid of the replies that came before the lost one. A
 * zxid up to `seen_zxid` proves that the change is not ours. A larger zxid
 * belongs to our write or to that of another client.
 */

typedef enum write_kind { CREATE, SET, DELETE } write_kind;

typedef struct reliable_write {
  lk_client *client;
  write_kind kind;
  char *path;
  lk_bytes data;
  lk_acls *acl;
  int flags;
  int32_t version;
  bool sole;
  int64_t end_ms;
  void (*done)(void); /* the callback type depends on `kind` */
  void *arg;
  int64_t seen_zxid; /* largest zxid before the lost reply; 0: no reply yet */
  int64_t lost_in_session; /* in which the reply was lost */
  lk_pause pause;
  bool verify_next; /* after the pause: verify; else send again */

  /* The verification: what the requests after a lost reply have shown. */
  size_t outstanding; /* its requests without a reply */
  int request_err;    /* why a request was refused, or 0 */
  int transaction_err;
  int read_err;
  lk_stat stat;          /* of the node; valid if `read_err` is 0 */
  bool data_equal;       /* the node's data are those of the write */
  bool parent_unchanged; /* no child created or deleted since `seen_zxid` */
} reliable_write;

static void reliable_write_free(reliable_write *w)
{
  const lk_mem *mem = lk_client_mem(w->client);

  lk__pause_stop(&w->pause, w->client);
  lk__give(mem, w->acl);
  lk__give(mem, w);
}

static void reliable_write_notify(const reliable_write *w, int err,
                                  const char *path, const lk_stat *stat)
{
  if (w->done == NULL)
    return;
  switch (w->kind) {
  case CREATE:
    ((lk_create_cb)w->done)(w->client, err, path, stat, w->arg);
    break;
  case SET: ((lk_stat_cb)w->done)(w->client, err, stat, w->arg); break;
  case DELETE: ((lk_done_cb)w->done)(w->client, err, w->arg); break;
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

static bool creates_ephemeral(const reliable_write *w)
{
  return w->kind == CREATE && (w->flags & LK_EPHEMERAL) != 0;
}

static void reliable_write_verify(reliable_write *w);
static void reliable_write_send(reliable_write *w);

/* ---- pause ------------------------------------------------------------- */

static void reliable_write_on_pause_over(void *arg, int err)
{
  reliable_write *w = arg;

  if (err != 0)
    reliable_write_fail(w, err);
  else if (w->verify_next)
    reliable_write_verify(w);
  else
    reliable_write_send(w);
}

static void reliable_write_pause(reliable_write *w, bool verify_next)
{
  w->verify_next = verify_next;
  lk__pause_start(&w->pause, w->client, w->end_ms, reliable_write_on_pause_over,
                  w);
}

/* Servers may still execute the writes of a session that the client has given
 * up. true: a pause until that session's end was started. */
static bool await_abandoned_session_end(reliable_write *w)
{
  int64_t now = lk_client_clock(w->client);
  int64_t session_end = lk_client_abandoned_session_end(w->client);

  if (now >= session_end || now >= w->end_ms)
    return false;
  w->verify_next = true;
  lk__pause_until(&w->pause, w->client,
                  session_end < w->end_ms ? session_end : w->end_ms,
                  reliable_write_on_pause_over, w);
  return true;
}

/* ---- the write --------------------------------------------------------- */

static void record_seen_zxid(reliable_write *w)
{
  int64_t zxid = lk_client_zxid(w->client);

  w->seen_zxid = zxid > w->seen_zxid ? zxid : w->seen_zxid;
}

/* The reply was lost between client and server, or the server reports a loss
 * (then lk_client_reply() is set). In the first case the server sent all
 * replies that were received before the lost one. */
static void reliable_write_reply_lost(reliable_write *w, int err)
{
  if (err == LK_ERR_IN_DOUBT &&
      !lk__error_is_loss_behind_server(w->client, err))
    record_seen_zxid(w);
  w->lost_in_session = lk_client_session(w->client).id;
  if (creates_ephemeral(w) && err == LK_ERR_SESSION_EXPIRED)
    reliable_write_fail(w, err);
  else if (w->kind == CREATE && (w->flags & LK_SEQUENTIAL) != 0)
    reliable_write_fail(w, LK_ERR_IN_DOUBT);
  else
    reliable_write_verify(w);
}

static void reliable_write_replied(reliable_write *w, int err, const char *path,
                                   const lk_stat *stat)
{
  if (err == LK_ERR_NOT_SENT)
    reliable_write_send(w);
  else if (lk__error_meaning(err).outcome == LK_OUTCOME_IN_DOUBT)
    reliable_write_reply_lost(w, err);
  else if (lk__error_advice(w->client, err) == LK_ADVICE_RETRY_LATER)
    reliable_write_pause(w, false);
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

/* A client without any reply has no zxid to compare with. The reply to this
 * read comes before that of the write and supplies one. */
static void request_first_zxid(reliable_write *w, const lk_call *call)
{
  if (lk_client_zxid(w->client) == 0)
    (void)lk_exists(w->client, "/", call, NULL, NULL);
}

static int reliable_write_request(reliable_write *w)
{
  lk_client *c = w->client;
  lk_call call = lk__call_until(w->end_ms);

  record_seen_zxid(w);
  request_first_zxid(w, &call);
  switch (w->kind) {
  case CREATE:
    return lk_create2(c, w->path, w->data, w->acl, w->flags, &call,
                      reliable_write_on_created, w);
  case SET:
    return lk_set(c, w->path, w->data, w->version, &call, reliable_write_on_set,
                  w);
  case DELETE:
    return lk_delete(c, w->path, w->version, &call, reliable_write_on_deleted,
                     w);
  }
  return LK_ERR_STATE;
}

static void reliable_write_send(reliable_write *w)
{
  int err = reliable_write_request(w);

  if (lk__error_advice(w->client, err) == LK_ADVICE_RETRY_LATER)
    reliable_write_pause(w, false);
  else if (err != 0)
    reliable_write_fail(w, err);
}

/* ---- outcome ----------------------------------------------------------- */

static void conclude_ephemeral_create(reliable_write *w)
{
  if (lk_client_session(w->client).id != w->lost_in_session)
    reliable_write_fail(w, LK_ERR_SESSION_EXPIRED);
  else if (w->read_err == LK_ERR_NO_NODE)
    reliable_write_send(w);
  else if (w->stat.czxid <= w->seen_zxid ||
           w->stat.ephemeral_owner != w->lost_in_session)
    reliable_write_fail(w, LK_ERR_NODE_EXISTS);
  else
    reliable_write_complete(w, 0, w->path, &w->stat);
}

/* A missing node may have been created and deleted again. Without `seen_zxid`
 * an existing node may be older than the write. */
static void conclude_create(reliable_write *w)
{
  if (w->read_err == LK_ERR_NO_NODE && (w->sole || w->parent_unchanged))
    reliable_write_send(w);
  else if (w->read_err == LK_ERR_NO_NODE || w->seen_zxid == 0)
    reliable_write_fail(w, LK_ERR_IN_DOUBT);
  else if (w->stat.czxid <= w->seen_zxid || (w->sole && !w->data_equal))
    reliable_write_fail(w, LK_ERR_NODE_EXISTS);
  else if (w->sole)
    reliable_write_complete(w, 0, w->path, &w->stat);
  else
    reliable_write_fail(w, LK_ERR_IN_DOUBT);
}

/* `version` was followed by one change, whose data differ from ours. */
static bool only_change_is_foreign(const reliable_write *w)
{
  return w->version != -1 && w->stat.czxid <= w->seen_zxid && !w->data_equal &&
         (uint32_t)w->stat.version == (uint32_t)w->version + 1;
}

static bool set_may_be_resent(const reliable_write *w)
{
  return w->stat.mzxid <= w->seen_zxid ||
         (w->sole && (!w->data_equal || w->stat.version == w->version));
}

static void conclude_set(reliable_write *w)
{
  if (w->read_err == LK_ERR_NO_NODE)
    reliable_write_fail(w, w->sole ? LK_ERR_NO_NODE : LK_ERR_IN_DOUBT);
  else if (set_may_be_resent(w))
    reliable_write_send(w);
  else if (w->sole)
    reliable_write_complete(w, 0, NULL, &w->stat);
  else
    reliable_write_fail(w, only_change_is_foreign(w) ? LK_ERR_BAD_VERSION
                                                     : LK_ERR_IN_DOUBT);
}

static void conclude_delete(reliable_write *w)
{
  if (w->read_err == 0 && (w->sole || w->stat.czxid <= w->seen_zxid))
    reliable_write_send(w);
  else
    reliable_write_fail(w, w->sole ? 0 : LK_ERR_IN_DOUBT);
}

static void reliable_write_conclude(reliable_write *w)
{
  switch (w->kind) {
  case CREATE:
    if (creates_ephemeral(w))
      conclude_ephemeral_create(w);
    else
      conclude_create(w);
    break;
  case SET: conclude_set(w); break;
  case DELETE: conclude_delete(w); break;
  }
}

/* ---- verification ------------------------------------------------------ */

/* Servers ordered the transaction behind the write: it was executed or refused
 * there. */
static bool transaction_was_ordered(int err)
{
  lk_outcome outcome = lk__error_meaning(err).outcome;

  return outcome == LK_OUTCOME_EXECUTED || outcome == LK_OUTCOME_REFUSED;
}

static int verification_error(const reliable_write *w)
{
  if (w->request_err != 0)
    return w->request_err;
  return w->transaction_err != 0 ? w->transaction_err : w->read_err;
}

static void verification_done(reliable_write *w)
{
  bool known = w->read_err == 0 || w->read_err == LK_ERR_NO_NODE;

  if (w->request_err == 0 && w->transaction_err == 0 && known) {
    reliable_write_conclude(w);
    return;
  }
  int err = verification_error(w);

  switch (lk__error_advice(w->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: reliable_write_verify(w); break;
  case LK_ADVICE_RETRY_LATER: reliable_write_pause(w, true); break;
  case LK_ADVICE_GIVE_UP:
    reliable_write_fail(w, err == LK_ERR_NO_AUTH ? LK_ERR_IN_DOUBT : err);
    break;
  }
}

static void verification_replied(reliable_write *w)
{
  if (--w->outstanding == 0)
    verification_done(w);
}

static void verification_on_transaction(lk_client *c, int err,
                                        const lk_op_result *results,
                                        size_t count, void *arg)
{
  reliable_write *w = arg;

  (void)c;
  (void)results;
  (void)count;
  w->transaction_err = transaction_was_ordered(err) ? 0 : err;
  verification_replied(w);
}

static void verification_on_node(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg)
{
  reliable_write *w = arg;

  (void)c;
  w->read_err = err;
  if (err == 0) {
    w->stat = *stat;
    w->data_equal =
        data->len == w->data.len &&
        (data->len == 0 || memcmp(data->at, w->data.at, data->len) == 0);
  }
  verification_replied(w);
}

static void verification_on_parent(lk_client *c, int err, const lk_stat *stat,
                                   void *arg)
{
  reliable_write *w = arg;

  (void)c;
  w->parent_unchanged = err == 0 && stat->pzxid <= w->seen_zxid;
  verification_replied(w);
}

static int verification_read_parent(reliable_write *w, const lk_call *call)
{
  char *slash = strrchr(w->path, '/');
  char *cut = slash == w->path ? slash + 1 : slash;
  char kept = *cut;

  *cut = '\0';
  int err = lk_exists(w->client, w->path, call, verification_on_parent, w);

  *cut = kept;
  return err;
}

static int verification_request(reliable_write *w)
{
  lk_op check = lk_op_check("/", -1);
  lk_call call = lk__call_until(w->end_ms);
  int err =
      lk_multi(w->client, &check, 1, &call, verification_on_transaction, w);

  if (err != 0)
    return err;
  w->outstanding++;
  if (w->kind == CREATE && !w->sole) {
    err = verification_read_parent(w, &call);
    w->outstanding += err == 0;
  }
  if (err == 0) {
    err = lk_get(w->client, w->path, &call, verification_on_node, w);
    w->outstanding += err == 0;
  }
  return err;
}

/* A transaction goes first; its content does not matter. When it is executed,
 * all proposals of the old connection were executed, or never will be. The
 * exception is a session that only the client has given up. */
static void reliable_write_verify(reliable_write *w)
{
  if (await_abandoned_session_end(w))
    return;
  w->parent_unchanged = false;
  w->request_err = verification_request(w);
  if (w->outstanding == 0)
    verification_done(w);
}

/* ---- calls ------------------------------------------------------------- */

/* Path and data are copied into the same allocation. */
static reliable_write *reliable_write_new(lk_client *c, const char *path,
                                          lk_bytes data)
{
  size_t path_size = strlen(path) + 1;

  if (data.len > SIZE_MAX - sizeof(reliable_write) - path_size)
    return NULL;
  reliable_write *w =
      lk__take(lk_client_mem(c), sizeof *w + path_size + data.len);

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
  return w;
}

static int reliable_write_begin(lk_client *c, const reliable_write *options,
                                const char *path, lk_bytes data,
                                const lk_acls *acl, const lk_call *call)
{
  lk_call timing;
  int err = lk__call_options_take(c, &timing, call);

  if (err != 0)
    return err;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  reliable_write *w = reliable_write_new(c, path, data);

  if (w == NULL)
    return LK_ERR_NO_MEMORY;
  w->kind = options->kind;
  w->flags = options->flags;
  w->version = options->version;
  w->sole = options->sole;
  w->done = options->done;
  w->arg = options->arg;
  w->end_ms = lk__call_deadline(c, &timing);
  if (acl != NULL)
    w->acl = lk__acls_copy(lk_client_mem(c), acl);
  err = acl != NULL && w->acl == NULL ? LK_ERR_NO_MEMORY
                                      : reliable_write_request(w);

  if (err != 0)
    reliable_write_free(w);
  return err;
}

int lk_create_reliable(lk_client *c, const char *path, lk_bytes data,
                       const lk_acls *acl, int flags, bool sole,
                       const lk_call *call, lk_create_cb done, void *arg)
{
  const reliable_write options = {.kind = CREATE,
                                  .flags = flags,
                                  .sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  return reliable_write_begin(c, &options, path, data, acl, call);
}

int lk_set_reliable(lk_client *c, const char *path, lk_bytes data,
                    int32_t version, bool sole, const lk_call *call,
                    lk_stat_cb done, void *arg)
{
  const reliable_write options = {.kind = SET,
                                  .version = version,
                                  .sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  return reliable_write_begin(c, &options, path, data, NULL, call);
}

int lk_delete_reliable(lk_client *c, const char *path, int32_t version,
                       bool sole, const lk_call *call, lk_done_cb done,
                       void *arg)
{
  const reliable_write options = {.kind = DELETE,
                                  .version = version,
                                  .sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  return reliable_write_begin(c, &options, path, lk_bytes_of(NULL, 0), NULL,
                              call);
}
