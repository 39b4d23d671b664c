/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_DRIVER_H
#define LK_NET_DRIVER_H

#include <latchkey/client.h>

#include "net/clock.h"
#include "net/driver_shared.h"
#include "net/wakeup.h"

/**
 * The clients of a loop. <latchkey/ev.h> says what its functions do; a driver
 * for another kind of loop needs an implementation of net/loop.h alone.
 */
typedef struct lk_driver {
  /** Called after lk__driver_free(), once no callback of a client runs any
      more: the memory of the driver may be freed. NULL: not called. */
  void (*on_free)(struct lk_driver *d);
  /** Called on the loop's thread after lk__driver_wake(). NULL: not called. */
  void (*on_wake)(struct lk_driver *d);

  lk_driver_shared shared;
  bool freed; /**< by its owner */
  lk_link connections;
  lk_clock clock;
  lk_loop_io alarm; /**< of the clock */
  lk_wakeup wakeup;
} lk_driver;

/** Prepare `d`, whose first two members are set and the rest are zeros. 0,
    LK_ERR_NO_MEMORY, LK_ERR_SYSTEM. `loop` must outlive it. */
int lk__driver_init(lk_driver *d, lk_loop *loop, const lk_mem *mem);
/** Frees the clients that are left. Does nothing if lk__driver_init() has
   failed or `d` is all zeros. */
void lk__driver_free(lk_driver *d);
/** As lk_ev_client_new(). */
int lk__driver_client_new(lk_client **out, lk_driver *d,
                          const lk_client_config *config);

/* From any thread. */

/** Also from signal handlers. */
void lk__driver_wake(lk_driver *d);
static inline int64_t lk__driver_clock(const lk_driver *d)
{
  return lk__clock_now(&d->clock);
}
static inline bool lk__driver_in_child(const lk_driver *d)
{
  return lk__driver_shared_in_child(&d->shared);
}

#endif
