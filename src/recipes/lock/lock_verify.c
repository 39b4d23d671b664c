/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lock/lock_callbacks.h"
#include "recipes/queue/holding.h"

/* A check of each own node, and `ops` behind them; NULL: no memory. */
static lk_op *lock_multi_operations(const lk_acquisition *a, const lk_mem *mem,
                                    const lk_op *ops, size_t count)
{
  lk_op *all = lk__mem_new(mem, (a->count + count) * sizeof *all);

  if (all == NULL)
    return NULL;
  for (size_t i = 0; i < a->count; i++)
    all[i] = lk_op_check(a->parts[i]->own.path, -1);
  if (count > 0)
    memcpy(all + a->count, ops, count * sizeof *ops);
  return all;
}

/* Send `ops` behind checks of the own nodes. A request that waits for a
 * connection may be overtaken, so it is not counted among the requests of the
 * contenders. */
static int lock_multi_send(lk_lock *l, const lk_op *ops, size_t count,
                           const lk_call *call, lk_multi_cb on_reply,
                           lk_lock_multi **out)
{
  const lk_mem *mem = &l->lease->mem;
  lk_acquisition *a = l->acquisition;

  if (l->lost)
    return LK_ERR_LOST;
  if (!lk__lock_holds(l))
    return LK_ERR_NOT_HELD;
  if (count >= SIZE_MAX / sizeof *ops - a->count)
    return LK_ERR_BAD_ARGUMENT;
  lk_lock_multi *q = lk__mem_new(mem, sizeof *q);
  lk_op *all = lock_multi_operations(a, mem, ops, count);
  int err = LK_ERR_NO_MEMORY;

  if (q != NULL && all != NULL) {
    q->acquisition = a;
    err = lk_multi(l->lease->client, all, a->count + count, call, on_reply, q);
  }
  lk__mem_free(mem, all);
  if (err != 0) {
    lk__mem_free(mem, q);
    return err;
  }
  a->kind->ref(a);
  *out = q;
  return 0;
}

static void lock_multi_free(lk_lock_multi *q)
{
  lk_acquisition *a = q->acquisition;

  lk__mem_free(&a->parts[0]->lease->mem, q);
  a->kind->unref(a);
}

/* The result of the check of own node `i`. */
static int part_error(size_t i, int err, const lk_op_result *results,
                      size_t count)
{
  return i < count ? results[i].err : err;
}

/* Pass each result to its contender. LK_CHECK_EXISTS: all own nodes exist. */
static lk_check_result lock_multi_judge(lk_lock_multi *q, int err,
                                        const lk_op_result *results,
                                        size_t count)
{
  lk_acquisition *a = q->acquisition;
  lk_check_result all = LK_CHECK_EXISTS;

  for (size_t i = 0; i < a->count; i++) {
    lk_check_result v = lk__contender_check_result(
        a->parts[i], part_error(i, err, results, count));

    if (all == LK_CHECK_EXISTS || v == LK_CHECK_MISSING)
      all = v;
  }
  for (size_t i = 0; i < a->count; i++)
    lk__contender_own_checked(
        a->parts[i], lk__contender_check_result(
                         a->parts[i], part_error(i, err, results, count)));
  return all;
}

/* ---- verify ------------------------------------------------------------ */

static void on_verified(lk_client *c, int err, const lk_op_result *results,
                        size_t count, void *arg)
{
  lk_lock_multi *q = arg;

  (void)c;
  lk_check_result v = lock_multi_judge(q, err, results, count);

  if (q->lock != NULL)
    lk__lock_complete_verify(q->lock, v == LK_CHECK_EXISTS ? 0 : LK_ERR_UNSURE);
  lock_multi_free(q);
}

static void lock_supervise(lk_lock *l)
{
  lk_acquisition *a = l->acquisition;

  for (size_t i = 0; i < a->count; i++) {
    a->parts[i]->holding.watch_due_ms = lk_client_input_ms(l->lease->client);
    if (lk__lease_is_online(l->lease))
      lk__contender_supervise_own(a->parts[i]);
  }
}

int lk_lock_verify(lk_lock *l, lk_lock_cb done, void *arg)
{
  if (l->verifying != NULL)
    return LK_ERR_STATE;
  int err = lock_multi_send(l, NULL, 0, NULL, on_verified, &l->verifying);

  if (err != 0)
    return err;
  l->verifying->lock = l;
  lk__completion_set(&l->verify, done, arg);
  lock_supervise(l);
  return 0;
}

/* ---- guarded ----------------------------------------------------------- */

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  lk_lock_multi *q = arg;
  size_t own = q->acquisition->count;

  if (lock_multi_judge(q, count > 0 ? err : LK_ERR_IN_DOUBT, results, count) ==
      LK_CHECK_MISSING)
    err = LK_ERR_LOST;
  if (q->done != NULL)
    q->done(c, err, count > own ? results + own : NULL,
            count > own ? count - own : 0, q->arg);
  lock_multi_free(q);
}

int lk_lock_guarded_multi(lk_lock *l, const lk_op *ops, size_t count,
                          const lk_call *call, lk_multi_cb done, void *arg)
{
  lk_lock_multi *q;
  int err = lock_multi_send(l, ops, count, call, on_guarded, &q);

  if (err != 0)
    return err;
  q->done = done;
  q->arg = arg;
  return 0;
}
