/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_DRIVER_SHARED_H
#define LK_NET_DRIVER_SHARED_H

#include "base/heap.h"
#include "base/list.h"
#include "net/fork_check.h"
#include "net/loop.h"
#include "net/resolver.h"

/** Size of lk_driver_shared.receive_buffer. */
#define LK_RECEIVE_BUFFER_SIZE ((size_t)64 * 1024)

/** What the connections of one loop share. The driver owns it. */
typedef struct lk_driver_shared {
  lk_mem mem;
  lk_loop *loop;
  lk_fork_check *fork_check;
  lk_resolver *resolver;
  unsigned char *receive_buffer;
  size_t refs; /**< the driver's owner, each connection, each callback that
                    runs */
  void (*free)(struct lk_driver_shared *x); /**< no reference is left */

  lk_link updates; /**< connections to be updated before the loop waits */
  lk_loop_hook update_hook;
  bool updating;     /**< the hook runs */
  uint64_t round;    /**< counts the runs of the hook */
  int64_t now_ms;    /**< the clock as last read by the driver */
  lk_heap deadlines; /**< of connections */
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

/** Add `link`, which is in no list, to the updates. */
static inline void lk__driver_shared_add_update(lk_driver_shared *x,
                                                lk_link *link)
{
  lk__list_add(&x->updates, link);
  if (!x->updating)
    x->loop->type->request_hook(x->loop, &x->update_hook);
}

#endif
