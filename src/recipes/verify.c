/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lock.h"
#include "recipes/memory.h"

/* Send `ops` behind a check of our node. What waits for a connection may be
 * overtaken: such a multi is not counted among the attempt's requests. */
static int ask(lk_lock *l, const lk_op *ops, size_t count, const lk_call *call,
               lk_multi_cb answered, lk_question **out)
{
  const lk_mem *mem = &l->keeper->mem;

  if (l->lost)
    return LK_ERR_LOST;
  if (!lk__lock_holds(l))
    return LK_ERR_NOT_HELD;
  if (count >= SIZE_MAX / sizeof *ops)
    return LK_ERR_BAD_ARGUMENT;
  lk_question *q = lk__take(mem, sizeof *q);
  lk_op *all = lk__take(mem, (count + 1) * sizeof *all);
  int err = LK_ERR_NO_MEMORY;

  if (q != NULL && all != NULL) {
    q->ct = l->ct;
    all[0] = lk_op_check(l->ct->node, -1);
    if (count > 0)
      memcpy(all + 1, ops, count * sizeof *ops);
    err = lk_multi(l->keeper->client, all, count + 1, call, answered, q);
  }
  lk__give(mem, all);
  if (err != 0) {
    lk__give(mem, q);
    return err;
  }
  lk__contend_ref(q->ct);
  *out = q;
  return 0;
}

static void forget(lk_question *q)
{
  lk_contend *ct = q->ct;

  lk__give(&ct->keeper->mem, q);
  lk__contend_unref(ct);
}

/* ---- verify ------------------------------------------------------------ */

static void on_verified(lk_client *c, int err, const lk_op_result *results,
                        size_t count, void *arg)
{
  lk_question *q = arg;
  lk_verdict v = lk__contend_verdict(err);

  (void)c;
  (void)results;
  (void)count;
  lk__contend_checked(q->ct, v);
  if (q->lock != NULL)
    lk__lock_end_verify(q->lock, v == LK_VERDICT_THERE ? 0 : LK_ERR_UNSURE);
  forget(q);
}

void lk__lock_end_verify(lk_lock *l, int err)
{
  if (l->verifying != NULL)
    l->verifying->lock = NULL;
  l->verifying = NULL;
  lk__lock_enter(l);
  lk__lock_call(l, &l->verify, err);
  lk__lock_leave(l);
}

int lk_lock_verify(lk_lock *l, lk_lock_cb done, void *arg)
{
  if (l->verifying != NULL)
    return LK_ERR_STATE;
  int err = ask(l, NULL, 0, NULL, on_verified, &l->verifying);

  if (err != 0)
    return err;
  l->verifying->lock = l;
  lk__lock_await(&l->verify, done, arg);
  l->ct->read_due_ms = lk_client_now(l->keeper->client);
  if (lk__keeper_online(l->keeper))
    lk__contend_supervise(l->ct);
  return 0;
}

/* ---- guarded ----------------------------------------------------------- */

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  lk_question *q = arg;
  int own = count > 0 ? results[0].err : LK_ERR_UNKNOWN;

  if (own == LK_ERR_NO_NODE)
    err = LK_ERR_LOST;
  lk__contend_checked(q->ct, lk__contend_verdict(own));
  if (q->done != NULL)
    q->done(c, err, count > 1 ? results + 1 : NULL, count > 0 ? count - 1 : 0,
            q->arg);
  forget(q);
}

int lk_lock_guarded(lk_lock *l, const lk_op *ops, size_t count,
                    const lk_call *call, lk_multi_cb done, void *arg)
{
  lk_question *q;
  int err = ask(l, ops, count, call, on_guarded, &q);

  if (err != 0)
    return err;
  q->done = done;
  q->arg = arg;
  return 0;
}
