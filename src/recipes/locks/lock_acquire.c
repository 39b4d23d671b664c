/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "base/timeout.h"
#include "recipes/locks/lock.h"
#include "recipes/queue/holding.h"

/**
 * @file
 * The calls of a user that make requests: acquire, release, verify and guarded
 * multi.
 */

/* How long lk_lock_release() waits for the delete of the node. The same value
 * as the limit of lk_client_close(). */
enum { RELEASE_MS = 1500 };

enum { ANY_VERSION = -1 };

/* ---- acquire ------------------------------------------------------------- */

static void lock_complete_in_next_turn(lk_lock *l)
{
  lk__lock_start_timer(l, &l->timers.next_turn, 0);
}

static int lock_reenter(lk_lock *l, lk_lock_cb done, void *arg)
{
  if (l->not_reentrant)
    return LK_ERR_DEADLOCK;
  l->count++;
  l->acquire_reenters = true;
  lk__completion_set(&l->acquire, done, arg);
  lock_complete_in_next_turn(l);
  return 0;
}

/* `once`: complete with LK_ERR_BUSY instead of waiting for others. */
static int lock_begin_acquire(lk_lock *l, bool once, int64_t deadline_ms,
                              lk_lock_cb done, void *arg)
{
  l->options.contender.once = once;
  l->acquisition = l->source.make(l, &lk__lock_callbacks);
  if (l->acquisition == NULL)
    return LK_ERR_NO_MEMORY;
  l->start_err = 0;
  /* An acquisition that fails while it begins is reported by the return value:
   * `acquire` is not set yet, so its callback is not invoked. */
  l->acquisition->kind->begin(l->acquisition);
  if (l->start_err != 0)
    return l->start_err;
  l->acquire_reenters = false;
  lk__completion_set(&l->acquire, done, arg);
  if (deadline_ms != INT64_MAX)
    lk_timer_start(l->lease->client, &l->timers.acquire, deadline_ms);
  return 0;
}

/* Why this handle cannot acquire now. 0: the client exists and is not closed.
 */
static int lock_acquire_refusal(const lk_lock *l)
{
  if (l->freeing)
    return LK_ERR_CLOSED;
  int err = lk__client_refusal(l->lease->client);

  if (err != 0)
    return err;
  if (l->lost || l->acquire.pending ||
      (l->acquisition != NULL && !lk__lock_holds(l)))
    return LK_ERR_STATE;
  bool is_side_to_acquire = l->partner != NULL && !lk__lock_holds(l);

  return is_side_to_acquire ? lk__rwlock_side_refusal(l) : 0;
}

/* If the deadline has passed, a lock that is held already is acquired again all
 * the same, since this takes no time. */
static int lock_acquire(lk_lock *l, int64_t now, int64_t deadline_ms, bool once,
                        lk_lock_cb done, void *arg)
{
  int err = lock_acquire_refusal(l);

  if (err != 0)
    return err;
  if (lk__lock_holds(l))
    return lock_reenter(l, done, arg);
  return deadline_ms <= now
             ? LK_ERR_DEADLINE
             : lock_begin_acquire(l, once, deadline_ms, done, arg);
}

int lk_lock_acquire(lk_lock *l, int64_t timeout_ms, lk_lock_cb done, void *arg)
{
  int64_t now = lk_client_clock(l->lease->client);
  const bool once = false;

  return lock_acquire(l, now, lk__timeout_after(now, timeout_ms), once, done,
                      arg);
}

int lk_lock_acquire_until(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                          void *arg)
{
  int64_t now = lk_client_clock(l->lease->client);
  const bool once = false;

  return lock_acquire(l, now, lk__timeout_until(now, deadline_ms), once, done,
                      arg);
}

int lk_lock_try_until(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                      void *arg)
{
  int64_t now = lk_client_clock(l->lease->client);
  const bool once = true;

  return lock_acquire(l, now, lk__timeout_until(now, deadline_ms), once, done,
                      arg);
}

int lk_lock_try(lk_lock *l, lk_lock_cb done, void *arg)
{
  int err = lock_acquire_refusal(l);
  const bool once = true;

  if (err != 0)
    return err;
  if (lk__lock_holds(l))
    return lock_reenter(l, done, arg);
  if (!lk__lease_is_online(l->lease))
    return LK_ERR_NOT_CONNECTED;
  err = lock_begin_acquire(l, once, INT64_MAX, done, arg);
  if (err == 0)
    lk_client_attach(l->lease->client, &l->try_listener);
  return err;
}

void lk_lock_cancel(lk_lock *l)
{
  if (!l->acquire.pending)
    return;
  if (!lk__lock_holds(l)) {
    lk__lock_give_up(l, LK_ERR_CANCELLED);
    return;
  }
  lk__lock_enter(l);
  /* The pending acquire has already been counted. The release undoes that, and
   * needs no callback. */
  (void)lk_lock_release(l, NULL, NULL);
  lk__lock_complete_reentry(l, LK_ERR_CANCELLED);
  lk__lock_leave(l);
}

/* ---- release ------------------------------------------------------------- */

static void lock_release_last(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                              void *arg)
{
  lk_acquisition *a = lk__lock_detach_acquisition(l);

  lk__lock_enter(l);
  l->count = 0;
  if (done == NULL) {
    lk__lock_stop_acquisition(a);
  } else {
    lk__completion_set(&l->release, done, arg);
    l->released = a;
    if (deadline_ms != INT64_MAX)
      lk_timer_start(l->lease->client, &l->timers.release, deadline_ms);
    lk__lock_stop_acquisition_and_report(a);
  }
  lk__lock_complete_verify(l, LK_ERR_NOT_HELD);
  lk__lock_complete_without_reply(l, LK_ERR_CANCELLED);
  lk__lock_leave(l);
}

static void lock_count_down(lk_lock *l, lk_lock_cb done, void *arg)
{
  l->count--;
  if (done != NULL) {
    lk__completion_set(&l->release, done, arg);
    lock_complete_in_next_turn(l);
  }
}

/* Returns 0, or why this handle cannot release now. With 0 the client exists
 * and is not closed. `notifies`: the user has passed a callback. */
static int lock_begin_release(lk_lock *l, bool notifies)
{
  if (lk__lock_is_forked(l))
    return LK_ERR_FORKED;
  /* A release of a lost lock reports the loss. Then the user can acquire the
   * lock again. */
  if (l->lost) {
    l->lost = false;
    l->count = 0;
    return LK_ERR_LOST;
  }
  if (!lk__lock_holds(l))
    return LK_ERR_NOT_HELD;
  return notifies && l->release.pending ? LK_ERR_STATE : 0;
}

static void lock_release(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                         void *arg)
{
  if (l->count == 1)
    lock_release_last(l, deadline_ms, done, arg);
  else
    lock_count_down(l, done, arg);
}

int lk_lock_release(lk_lock *l, lk_lock_cb done, void *arg)
{
  int err = lock_begin_release(l, done != NULL);

  if (err != 0)
    return err;
  int64_t now = lk_client_clock(l->lease->client);

  lock_release(l, lk__timeout_after(now, RELEASE_MS), done, arg);
  return 0;
}

int lk_lock_release_until(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                          void *arg)
{
  int err = lock_begin_release(l, done != NULL);

  if (err != 0)
    return err;
  int64_t now = lk_client_clock(l->lease->client);

  lock_release(l, lk__timeout_until(now, deadline_ms), done, arg);
  return 0;
}

/* ---- multis that check the own nodes ------------------------------------- */

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

/* ---- verify -------------------------------------------------------------- */

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

/* ---- guarded multi ------------------------------------------------------- */

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  lk_lock_multi *multi = arg;
  size_t check_count = multi->acquisition->count;
  bool has_caller_results = count > check_count;
  /* If there are no results at all, `err` need not be the error of a check. So
   * it says nothing about the own nodes. */
  int check_err = count > 0 ? err : LK_ERR_IN_DOUBT;

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
  return 0;
}
