/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/call.h"
#include "recipes/error_advice.h"
#include "recipes/nodes/write_verification.h"

static void verification_begin(lk_write_verification *v);

/* ---- pause ------------------------------------------------------------- */

static void verification_on_pause_over(void *arg, int err)
{
  lk_write_verification *v = arg;

  if (err != 0)
    v->done(v->arg, err);
  else
    verification_begin(v);
}

static void verification_pause(lk_write_verification *v)
{
  lk__retry_pause_start(&v->pause, v->client, v->deadline_ms,
                        verification_on_pause_over, v);
}

/* Servers may still execute the writes of a session that the client has given
 * up, until that session has ended. false: no pause is needed. */
static bool verification_pause_until_session_end(lk_write_verification *v)
{
  int64_t now = lk_client_clock(v->client);
  int64_t session_end = lk_client_abandoned_session_end(v->client);
  int64_t pause_end =
      session_end < v->deadline_ms ? session_end : v->deadline_ms;

  if (now >= session_end || now >= v->deadline_ms)
    return false;
  lk__retry_pause_until(&v->pause, v->client, pause_end,
                        verification_on_pause_over, v);
  return true;
}

/* ---- result ------------------------------------------------------------ */

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
    v->done(v->arg, err);
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
    v->done(v->arg, lk__write_outcome(v->write, &v->node));
}

static void verification_replied(lk_write_verification *v)
{
  if (--v->outstanding == 0)
    verification_judge(v);
}

/* ---- requests ---------------------------------------------------------- */

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

void lk__write_verification_start(lk_write_verification *v, int64_t deadline_ms)
{
  v->deadline_ms = deadline_ms;
  verification_begin(v);
}
