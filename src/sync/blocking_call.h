/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_BLOCKING_CALL_H
#define LK_SYNC_BLOCKING_CALL_H

#include "base/sized.h"
#include "sync/client.h"

struct lk_sync_cancel {
  lk_sync_client *client;
  atomic_bool set;
};

/**
 * What one caller waits for, and the handle's thread does. It ends once; its
 * memory may be gone as soon as it has.
 */
typedef struct lk_blocking_call {
  lk_task task;
  lk_sync_client *client;
  lk_sync_cancel *cancel;
  int64_t deadline_ms; /**< on the client's clock; INT64_MAX: none */
  void (*begin)(struct lk_blocking_call *e);

  /* Of the handle's thread. */
  void (*cut)(struct lk_blocking_call *e, int err); /**< end it early */
  lk_link link; /**< in lk_sync_client.errands */
  lk_timer timer;

  /* Under the client's mutex. */
  pthread_cond_t end;
  bool ended;
  int err;
} lk_blocking_call;

/* ---- for the caller ------------------------------------------------------ */

/** Copy a caller's struct, which begins with its size; `from` NULL: all its
    options are 0. LK_ERR_BAD_ARGUMENT: the client's log says why. */
int lk__sync_copy_options(lk_sync_client *c, const lk_sized *what, void *out,
                          const void *from);
/** The same for the options of a call. */
int lk__sync_copy_call(lk_sync_client *c, lk_sync_call *out,
                       const lk_sync_call *call);
/** Prepare one; `call` was copied; NULL: without end. 0, LK_ERR_BAD_ARGUMENT,
    NO_MEMORY: then there is nothing to be destroyed. */
int lk__blocking_call_init(lk_blocking_call *e, lk_sync_client *c,
                           const lk_sync_call *call);
/** The same with the caller's own options, which may not ask for a watch. */
int lk__blocking_call_init_from(lk_blocking_call *e, lk_sync_client *c,
                                const lk_sync_call *call);
/** Have it begun and wait until it has ended. Within a call, lk__sync_enter().
 */
int lk__blocking_call_wait(lk_blocking_call *e,
                           void (*begin)(lk_blocking_call *e));
void lk__blocking_call_destroy(lk_blocking_call *e);
/** A call that is only this, and cannot be cut short. */
int lk__blocking_call_do(lk_blocking_call *e, lk_sync_client *c,
                         void (*begin)(lk_blocking_call *e));

/* ---- for the handle's thread --------------------------------------------- */

/** Why it need not begin at `now`: 0, LK_ERR_CLOSED, CANCELLED, DEADLINE. */
int lk__blocking_call_refusal(const lk_blocking_call *e, int64_t now);
/** The clock of deadlines, read now. */
static inline int64_t lk__blocking_call_clock(const lk_blocking_call *e)
{
  return lk_client_clock(e->client->client);
}
/** It can be cut short by a cancel from now on. */
void lk__blocking_call_allow_interrupt(lk_blocking_call *e,
                                       void (*cut)(lk_blocking_call *e,
                                                   int err));
/** And by its deadline, which nobody else sees to. */
void lk__blocking_call_start_timer(lk_blocking_call *e);
void lk__blocking_call_complete(lk_blocking_call *e, int err);
static inline bool lk__blocking_call_is_interruptible(const lk_blocking_call *e)
{
  return e->cut != NULL;
}
/** Cut short those whose cancel is set. */
void lk__blocking_calls_cancel(lk_sync_client *c);

#endif
