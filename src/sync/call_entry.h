/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CALL_ENTRY_H
#define LK_SYNC_CALL_ENTRY_H

#include "sync/handle.h"

/** Returns 0 if this thread may wait for the thread of `c`.
    LK_ERR_BAD_ARGUMENT: `c` is NULL. LK_ERR_FORKED: this is a child process.
    LK_ERR_STATE: this is the thread of `c`. */
int lk__sync_refusal(const lk_sync_client *c);

/** Disable the cancellation of this thread and return its previous state, for
    lk__sync_restore_cancel(). No call of latchkey/sync.h is a cancellation
    point, so functions that may wait, write or close are called between these
    two. */
static inline int lk__sync_disable_cancel(void)
{
  int cancel_state;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  return cancel_state;
}

static inline void lk__sync_restore_cancel(int cancel_state)
{
  pthread_setcancelstate(cancel_state, NULL);
}

/** Begin a call. Returns 0, the error of lk__sync_refusal(), or LK_ERR_CLOSED.
    After success, until lk__sync_leave(), the handle is not freed and this
    thread is not cancelled. `cancel_state` is to be passed to lk__sync_leave().
    */
int lk__sync_enter(lk_sync_client *c, int *cancel_state);
void lk__sync_leave(lk_sync_client *c, int cancel_state);
/** lk__sync_enter() and lk__sync_leave() for a call of an object of the client,
    such as a lock. `object_calls` is the number of calls inside that object,
    under the client's mutex. NULL: there is no object. */
int lk__sync_enter_object(lk_sync_client *c, size_t *object_calls,
                          int *cancel_state);
void lk__sync_leave_object(lk_sync_client *c, size_t *object_calls,
                           int cancel_state);
/** Wait until all calls of an object have left. The caller has completed each
    of them before, so that none of them blocks. */
void lk__sync_await_calls(lk_sync_client *c, const size_t *object_calls);

#endif
