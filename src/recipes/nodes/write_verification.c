/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/error_meaning.h"
#include "recipes/common/deadline.h"
#include "recipes/nodes/write_verification.h"

/* Servers ordered the transaction behind the write: it was executed or refused
 * there. */
static bool transaction_was_ordered(int err)
{
  lk_outcome outcome = lk__error_meaning(err).outcome;

  return outcome == LK_OUTCOME_EXECUTED || outcome == LK_OUTCOME_REFUSED;
}

static int verification_error(const lk_write_verification *v)
{
  if (v->request_err != 0)
    return v->request_err;
  return v->transaction_err != 0 ? v->transaction_err : v->node.read_err;
}

static void verification_done(lk_write_verification *v)
{
  bool known = v->node.read_err == 0 || v->node.read_err == LK_ERR_NO_NODE;

  v->node.session = lk_client_session(v->client).id;
  v->done(v->arg, v->request_err == 0 && v->transaction_err == 0 && known
                      ? 0
                      : verification_error(v));
}

static void verification_replied(lk_write_verification *v)
{
  if (--v->outstanding == 0)
    verification_done(v);
}

static void verification_on_transaction(lk_client *c, int err,
                                        const lk_op_result *results,
                                        size_t count, void *arg)
{
  lk_write_verification *v = arg;

  (void)c;
  (void)results;
  (void)count;
  v->transaction_err = transaction_was_ordered(err) ? 0 : err;
  verification_replied(v);
}

static void verification_on_node(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg)
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

static void verification_on_parent(lk_client *c, int err, const lk_stat *stat,
                                   void *arg)
{
  lk_write_verification *v = arg;

  (void)c;
  v->node.parent_unchanged = err == 0 && stat->pzxid <= v->seen_zxid;
  verification_replied(v);
}

static int verification_read_parent(lk_write_verification *v,
                                    const lk_call *call)
{
  char *slash = strrchr(v->path, '/');
  char *cut = slash == v->path ? slash + 1 : slash;
  char kept = *cut;

  *cut = '\0';
  int err = lk_exists(v->client, v->path, call, verification_on_parent, v);

  *cut = kept;
  return err;
}

static int verification_request(lk_write_verification *v, int64_t end_ms)
{
  lk_op check = lk_op_check("/", -1);
  lk_call call = lk__call_until(end_ms);
  int err =
      lk_multi(v->client, &check, 1, &call, verification_on_transaction, v);

  if (err != 0)
    return err;
  v->outstanding++;
  if (v->with_parent) {
    err = verification_read_parent(v, &call);
    v->outstanding += err == 0;
  }
  if (err == 0) {
    err = lk_get(v->client, v->path, &call, verification_on_node, v);
    v->outstanding += err == 0;
  }
  return err;
}

void lk__write_verification_start(lk_write_verification *v, int64_t end_ms)
{
  v->node.parent_unchanged = false;
  v->request_err = verification_request(v, end_ms);
  if (v->outstanding == 0)
    verification_done(v);
}
