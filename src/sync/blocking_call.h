/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_BLOCKING_CALL_H
#define LK_SYNC_BLOCKING_CALL_H

#include "base/sized_struct.h"
#include "sync/cancel.h"
#include "sync/task.h"

/**
 * A call that blocks its caller. The thread of the handle runs the call and
 * completes it once; the caller waits until then. As soon as the call is
 * completed the caller may free its memory.
 */
typedef struct lk_blocking_call {
  lk_task task;
  lk_sync_client *client;
  lk_sync_cancel *cancel; /**< NULL: the call cannot be cancelled */
  int64_t deadline_ms;    /**< on the client's clock; INT64_MAX: none */
  void (*begin)(struct lk_blocking_call *b);

  /* For the thread of the handle. */
  /** Complete the call early with `err`. NULL: the call cannot be interrupted,
      or is completed. */
  void (*interrupt)(struct lk_blocking_call *b, int err);
  lk_link link; /**< in lk_sync_client.interruptible */
  lk_timer timer;

  /* Under the client's mutex. */
  pthread_cond_t completed;
  bool is_completed;
  int err;
} lk_blocking_call;

/* ---- for the caller ------------------------------------------------------ */

/** Copy a struct of options, which begins with its size. If `from` is NULL all
    options are 0. Returns 0, or LK_ERR_BAD_ARGUMENT after logging the reason.
    */
int lk__sync_copy_options(lk_sync_client *c, const lk_sized_struct *type,
                          void *out, const void *from);
/** lk__sync_copy_options() for the options of a call. */
int lk__sync_copy_call(lk_sync_client *c, lk_sync_call *out,
                       const lk_sync_call *call);
/** Why a call that has nothing to wait for is refused: `call` has no size or
    sets a watch, its cancel is set, or its deadline has passed; or 0. Sends
    nothing. */
int lk__sync_call_refusal(lk_sync_client *c, const lk_sync_call *call);
/** Initialise `b`. `call` was copied by lk__sync_copy_call(); NULL: the call
    has no deadline and no cancel. Returns 0, or LK_ERR_NO_MEMORY: then `b` must
    not be destroyed. */
int lk__blocking_call_init(lk_blocking_call *b, lk_sync_client *c,
                           const lk_sync_call *call);
/** lk__blocking_call_init() with the caller's own `call`, which is copied
    first. LK_ERR_BAD_ARGUMENT: its size is wrong, or it asks for a watch. */
int lk__blocking_call_init_from(lk_blocking_call *b, lk_sync_client *c,
                                const lk_sync_call *call);
/** Run `begin` on the thread of the handle and wait until the call is
    completed. Only between lk__sync_enter() and lk__sync_leave(). */
int lk__blocking_call_wait(lk_blocking_call *b,
                           void (*begin)(lk_blocking_call *b));
void lk__blocking_call_destroy(lk_blocking_call *b);
/** Make a call that cannot be interrupted: enter the handle, initialise `b`,
    wait and leave. */
int lk__blocking_call_do(lk_blocking_call *b, lk_sync_client *c,
                         void (*begin)(lk_blocking_call *b));

/* ---- for the thread of the handle ---------------------------------------- */

/** Returns 0 if the call may begin now; else LK_ERR_CLOSED, LK_ERR_CANCELLED or
    LK_ERR_DEADLINE. */
int lk__blocking_call_refusal(const lk_blocking_call *b);
/** The present time on the clock of deadlines. */
static inline int64_t lk__blocking_call_clock(const lk_blocking_call *b)
{
  return lk_client_clock(b->client->client);
}
/** From now on a cancel interrupts the call. */
void lk__blocking_call_allow_interrupt(lk_blocking_call *b,
                                       void (*interrupt)(lk_blocking_call *b,
                                                         int err));
/** From now on the deadline interrupts the call. Not for requests of the
    client, which completes them at their deadline itself. */
void lk__blocking_call_start_timer(lk_blocking_call *b);
/** Complete the call with `err` and wake its caller. */
void lk__blocking_call_complete(lk_blocking_call *b, int err);
static inline bool lk__blocking_call_is_interruptible(const lk_blocking_call *b)
{
  return b->interrupt != NULL;
}
/** Interrupt all calls whose cancel is set. */
void lk__blocking_calls_interrupt_cancelled(lk_sync_client *c);

#endif
