/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_BLOCKING_CALL_H
#define LK_SYNC_BLOCKING_CALL_H

#include "base/sized_struct.h"
#include "sync/cancel.h"
#include "sync/task.h"

/**
 * A call that waits: the thread of the handle runs it, and the caller waits
 * until it is completed, once. Its memory may be freed as soon as it is.
 */
typedef struct lk_blocking_call {
  lk_task task;
  lk_sync_client *client;
  lk_sync_cancel *cancel;
  int64_t deadline_ms; /**< on the client's clock; INT64_MAX: none */
  void (*begin)(struct lk_blocking_call *e);

  /* For the thread of the handle. */
  /** Complete it early; NULL: it cannot be interrupted, or is completed. */
  void (*interrupt)(struct lk_blocking_call *e, int err);
  lk_link link; /**< in lk_sync_client.interruptible */
  lk_timer timer;

  /* Under the client's mutex. */
  pthread_cond_t completed;
  bool is_completed;
  int err;
} lk_blocking_call;

/* ---- for the caller ------------------------------------------------------ */

/** Copy a struct of options, which begins with its size; `from` NULL: all are
    0. LK_ERR_BAD_ARGUMENT: the log of the client says why. */
int lk__sync_copy_options(lk_sync_client *c, const lk_sized_struct *what,
                          void *out, const void *from);
/** The same for the options of a call. */
int lk__sync_copy_call(lk_sync_client *c, lk_sync_call *out,
                       const lk_sync_call *call);
/** `call` was copied by lk__sync_copy_call(); NULL: no deadline, no cancel. 0;
    LK_ERR_NO_MEMORY: there is nothing to be destroyed. */
int lk__blocking_call_init(lk_blocking_call *e, lk_sync_client *c,
                           const lk_sync_call *call);
/** The same with the options as the caller gave them, which may not set a
    watch: also LK_ERR_BAD_ARGUMENT. */
int lk__blocking_call_init_from(lk_blocking_call *e, lk_sync_client *c,
                                const lk_sync_call *call);
/** Run `begin` on the thread of the handle and wait until the call is
    completed. Only between lk__sync_enter() and lk__sync_leave(). */
int lk__blocking_call_wait(lk_blocking_call *e,
                           void (*begin)(lk_blocking_call *e));
void lk__blocking_call_destroy(lk_blocking_call *e);
/** The whole of a call that cannot be interrupted: enter, initialise, wait,
    leave. */
int lk__blocking_call_do(lk_blocking_call *e, lk_sync_client *c,
                         void (*begin)(lk_blocking_call *e));

/* ---- for the thread of the handle ---------------------------------------- */

/** Whether it may begin at `now`: 0, LK_ERR_CLOSED, LK_ERR_CANCELLED,
    LK_ERR_DEADLINE. */
int lk__blocking_call_refusal(const lk_blocking_call *e, int64_t now);
/** The clock of deadlines, read now. */
static inline int64_t lk__blocking_call_clock(const lk_blocking_call *e)
{
  return lk_client_clock(e->client->client);
}
/** From now on a cancel interrupts it. */
void lk__blocking_call_allow_interrupt(lk_blocking_call *e,
                                       void (*interrupt)(lk_blocking_call *e,
                                                         int err));
/** From now on its deadline interrupts it. Not for requests, whose deadline the
    client keeps. */
void lk__blocking_call_start_timer(lk_blocking_call *e);
void lk__blocking_call_complete(lk_blocking_call *e, int err);
static inline bool lk__blocking_call_is_interruptible(const lk_blocking_call *e)
{
  return e->interrupt != NULL;
}
/** Interrupt those whose cancel is set. */
void lk__blocking_calls_cancel(lk_sync_client *c);

#endif
