/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_DRIVER_SHARED_H
#define LK_NET_DRIVER_SHARED_H

#include "base/heap.h"
#include "base/list.h"
#include "net/clock.h"
#include "net/fork_check.h"
#include "net/loop.h"
#include "net/resolver.h"

/** Size of lk_driver_shared.receive_buffer. */
#define LK_RECEIVE_BUFFER_SIZE ((size_t)64 * 1024)

/** What the connections of one loop share. The driver owns it. */
typedef struct lk_driver_shared {
  lk_mem mem;
  lk_loop *loop;
  const lk_clock *clock;
  lk_fork_check *fork_check;
  lk_resolver *resolver;
  unsigned char *receive_buffer;
  size_t refs; /**< one for the owner of the driver, one for each connection and
                    one for each running callback; 0: not initialised */
  void (*free)(struct lk_driver_shared *x); /**< called when `refs` becomes 0 */

  lk_link updates; /**< connections to be updated before the loop waits */
  lk_loop_hook update_hook;
  bool updating;     /**< `update_hook` is running */
  uint64_t round;    /**< how many times `update_hook` has run */
  int64_t now_ms;    /**< the time at which the driver last read its clock */
  lk_heap deadlines; /**< the lk_connection.deadline of each connection */
} lk_driver_shared;

static inline bool lk__driver_shared_in_child(const lk_driver_shared *x)
{
  return lk__fork_check_in_child(x->fork_check);
}

static inline void lk__driver_shared_unref(lk_driver_shared *x)
{
  if (--x->refs == 0)
    x->free(x);
}

/** Add `link` to the updates. It must not be in a list. */
static inline void lk__driver_shared_add_update(lk_driver_shared *x,
                                                lk_link *link)
{
  lk__list_add(&x->updates, link);
  if (!x->updating)
    x->loop->type->request_hook(x->loop, &x->update_hook);
}

#endif
