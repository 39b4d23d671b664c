/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CALL_ENTRY_H
#define LK_SYNC_CALL_ENTRY_H

#include "sync/handle.h"

/** Whether this thread may wait for the thread of `c`: 0; LK_ERR_BAD_ARGUMENT:
    `c` is NULL; LK_ERR_FORKED; LK_ERR_STATE: it is that thread. */
int lk__sync_refusal(const lk_sync_client *c);

/** No call of sync.h is a cancellation point: functions that may wait, write or
    close are called between these two. */
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

/** Begin a call: 0, or the error of lk__sync_refusal(), or LK_ERR_CLOSED. Until
    lk__sync_leave() the handle is not freed and the thread not cancelled.
    `cancel_state` is for leaving. */
int lk__sync_enter(lk_sync_client *c, int *cancel_state);
void lk__sync_leave(lk_sync_client *c, int cancel_state);
/** The same for a call of an object of the client, such as a lock. `inside`
    counts the calls of that object, under the client's mutex. */
int lk__sync_enter_object(lk_sync_client *c, size_t *inside, int *cancel_state);
void lk__sync_leave_object(lk_sync_client *c, size_t *inside, int cancel_state);
/** Wait until all calls of that object have left. Before, each has to be
    completed, so that none of them waits. */
void lk__sync_await_calls(lk_sync_client *c, const size_t *inside);

#endif
