/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_WAIT_H
#define LK_SYNC_WAIT_H

#include "base/list.h"
#include "sync/blocking_call.h"

/**
 * A call that waits for an event of an object, such as a subscription. The
 * object has a list of these calls, for the thread of the handle.
 */
typedef struct lk_wait {
  lk_blocking_call call;
  lk_link
      link; /**< in the list of the object, once lk__wait_add() was called */
} lk_wait;

/** For the caller: enter `c` and its object, run `begin` on the thread of the
    handle, wait until the call is completed, and leave. `object_calls`: see
    lk__sync_enter_object(). Returns an error of that function or of
    lk__blocking_call_init_from(), or the one that the call is completed
    with. */
int lk__wait_do(lk_wait *w, lk_sync_client *c, size_t *object_calls,
                const lk_sync_call *call, void (*begin)(lk_blocking_call *b));

/* ---- for the thread of the handle ---------------------------------------- */

static inline lk_wait *lk__wait_of(lk_blocking_call *b)
{
  return LK_OWNER(b, lk_wait, call);
}

/** Add the call to the end of the list. From then on its cancel and its
    deadline end it. */
void lk__wait_add(lk_wait *w, lk_link *list);
/** Remove the call from the list and complete it with `err`. The caller may
    then free it. */
void lk__wait_end(lk_wait *w, int err);

#endif
