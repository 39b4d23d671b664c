/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_DRIVER_H
#define LK_NET_DRIVER_H

#include <latchkey/client.h>

#include "net/alarm.h"
#include "net/driver_shared.h"
#include "net/wakeup.h"

/**
 * The clients of a loop. <latchkey/ev.h> documents what the functions here do.
 * They work with any loop that implements net/loop.h.
 */
typedef struct lk_driver {
  /** Called after lk__driver_free(), once no callback of a client runs any
      more: the memory of the driver may be freed. NULL: not called. */
  void (*on_free)(struct lk_driver *d);
  /** Called on the loop's thread after lk__driver_wake(). NULL: not called. */
  void (*on_wake)(struct lk_driver *d);

  lk_driver_shared shared;
  bool freeing;        /**< lk__driver_free() was called */
  lk_link connections; /**< the lk_connection of each client */
  lk_clock clock;
  lk_alarm alarm;   /**< on `clock`, for the earliest deadline */
  lk_wakeup wakeup; /**< for lk__driver_wake() */
} lk_driver;

/** Prepare `d`. The caller has set on_free and on_wake, and zeroed the rest.
    `loop` must outlive the driver. Returns 0, LK_ERR_NO_MEMORY or
    LK_ERR_SYSTEM. */
int lk__driver_init(lk_driver *d, lk_loop *loop, const lk_mem *mem);
/** Free the clients that are left, and then the driver. Does nothing if
    lk__driver_init() has failed or `d` is all zeros. */
void lk__driver_free(lk_driver *d);
/** See lk_ev_client_new(). */
int lk__driver_client_new(lk_client **out, lk_driver *d,
                          const lk_client_config *config);

/* The following may be called from any thread. */

/** May also be called from signal handlers. */
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
