/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lock/lock_callbacks.h"
#include "recipes/queue/holding.h"

enum { ANY_VERSION = -1 };

/* Returns an allocated array of operations: a check of each own node, and `ops`
 * behind the checks. NULL: no memory. */
static lk_op *lock_multi_operations(const lk_acquisition *a, const lk_mem *mem,
                                    const lk_op *ops, size_t count)
{
  lk_op *operations = lk__mem_new(mem, (a->count + count) * sizeof *operations);

  if (operations == NULL)
    return NULL;
  for (size_t i = 0; i < a->count; i++)
    operations[i] = lk_op_check(a->parts[i]->own.path, ANY_VERSION);
  if (count > 0)
    memcpy(operations + a->count, ops, count * sizeof *ops);
  return operations;
}

/* Send a multi of a check of each own node and `ops`. Without a connection the
 * multi waits, and requests that contenders make when they are notified of the
 * next connection are sent before it. So lk__contender_count_request() does not
 * count the multi, since the count relies on the order of the requests. */
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
    return LK_ERR_BAD_ARGUMENT; /* no array can have so many operations */
  lk_lock_multi *multi = lk__mem_new(mem, sizeof *multi);
  lk_op *operations = lock_multi_operations(a, mem, ops, count);
  int err = LK_ERR_NO_MEMORY;

  if (multi != NULL && operations != NULL) {
    multi->acquisition = a;
    err = lk_multi(l->lease->client, operations, a->count + count, call,
                   on_reply, multi);
  }
  lk__mem_free(mem, operations);
  if (err != 0) {
    lk__mem_free(mem, multi);
    return err;
  }
  a->kind->ref(a);
  *out = multi;
  return 0;
}

static void lock_multi_free(lk_lock_multi *multi)
{
  lk_acquisition *a = multi->acquisition;

  lk__mem_free(&a->parts[0]->lease->mem, multi);
  a->kind->unref(a);
}

/* The error of the check of own node `i`; `err` if there are no results. */
static int check_error(size_t i, int err, const lk_op_result *results,
                       size_t count)
{
  return i < count ? results[i].err : err;
}

/* Pass the result of each check to its contender. Returns LK_CHECK_MISSING if
 * one of the own nodes is missing, LK_CHECK_EXISTS if all exist, and otherwise
 * LK_CHECK_UNKNOWN. The first loop determines the result before any is passed
 * on, since callbacks may change the contenders then. */
static lk_check_result lock_multi_report_checks(lk_lock_multi *multi, int err,
                                                const lk_op_result *results,
                                                size_t count)
{
  lk_acquisition *a = multi->acquisition;
  lk_check_result worst = LK_CHECK_EXISTS;

  for (size_t i = 0; i < a->count; i++) {
    lk_check_result result = lk__contender_check_result(
        a->parts[i], check_error(i, err, results, count));

    if (worst == LK_CHECK_EXISTS || result == LK_CHECK_MISSING)
      worst = result;
  }
  for (size_t i = 0; i < a->count; i++)
    lk__contender_own_checked(
        a->parts[i], lk__contender_check_result(
                         a->parts[i], check_error(i, err, results, count)));
  return worst;
}

/* ---- verify ------------------------------------------------------------ */

static void on_verified(lk_client *c, int err, const lk_op_result *results,
                        size_t count, void *arg)
{
  lk_lock_multi *multi = arg;

  (void)c;
  lk_check_result result = lock_multi_report_checks(multi, err, results, count);

  /* If a node is missing, the lock was lost, which completed the verify. */
  if (multi->lock != NULL)
    lk__lock_complete_verify(multi->lock,
                             result == LK_CHECK_EXISTS ? 0 : LK_ERR_UNSURE);
  lock_multi_free(multi);
}

/* Let the watch of each own node be set now, and not only with the next
 * heartbeat. Without a connection it is set on the next one. */
static void lock_supervise_own_nodes(lk_lock *l)
{
  lk_acquisition *a = l->acquisition;
  int64_t now = lk_client_input_ms(l->lease->client);

  for (size_t i = 0; i < a->count; i++) {
    a->parts[i]->holding.watch_due_ms = now;
    if (lk__lease_is_online(l->lease))
      lk__contender_supervise_own(a->parts[i]);
  }
}

int lk_lock_verify(lk_lock *l, lk_lock_cb done, void *arg)
{
  if (l->verifying != NULL)
    return LK_ERR_STATE;
  const lk_op *no_operations = NULL;
  int err = lock_multi_send(l, no_operations, 0, LK_NO_OPTIONS, on_verified,
                            &l->verifying);

  if (err != 0)
    return err;
  l->verifying->lock = l;
  lk__completion_set(&l->verify, done, arg);
  lock_supervise_own_nodes(l);
  return 0;
}

/* ---- guarded ----------------------------------------------------------- */

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  lk_lock_multi *multi = arg;
  size_t check_count = multi->acquisition->count;
  bool has_caller_results = count > check_count;
  /* If there are no results at all, `err` need not be the error of a check. So
   * it says nothing about the own nodes. */
  int check_err = count > 0 ? err : LK_ERR_IN_DOUBT;

  if (count > 0)
    multi->acquisition->parts[0]->holding.unanswered_multis--;

  if (lock_multi_report_checks(multi, check_err, results, count) ==
      LK_CHECK_MISSING)
    err = LK_ERR_LOST;
  if (multi->done != NULL)
    multi->done(c, err, has_caller_results ? results + check_count : NULL,
                has_caller_results ? count - check_count : 0, multi->arg);
  lock_multi_free(multi);
}

int lk_lock_guarded_multi(lk_lock *l, const lk_op *ops, size_t count,
                          const lk_call *call, lk_multi_cb done, void *arg)
{
  lk_lock_multi *multi;
  int err = lock_multi_send(l, ops, count, call, on_guarded, &multi);

  if (err != 0)
    return err;
  multi->done = done;
  multi->arg = arg;
  multi->acquisition->parts[0]->holding.unanswered_multis++;
  return 0;
}
