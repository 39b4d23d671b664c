/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_DRIVER_H
#define LK_NET_DRIVER_H

#include <latchkey/ev.h>

#include <ev.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/clock.h"
#include "net/fork_check.h"
#include "net/resolver.h"
#include "net/wakeup.h"

/** Room for what arrives: one for all clients of a loop. */
#define LK_EV_ROOM ((size_t)64 * 1024)

/** What the clients of a loop share. */
struct lk_ev {
  lk_mem mem;
  struct ev_loop *loop;
  size_t users; /**< who made it, each conn, and the turn at work */
  bool freed;   /**< by the one who made it */
  lk_fork_check *origin;
  lk_clock clock;
  lk_resolver *resolver;
  unsigned char *room;
  lk_link conns;
  lk_link dirty;
  lk_heap due;
  bool walking;     /**< the dirty ones are being settled */
  unsigned settled; /**< the iteration of the loop when they last were */
  uint64_t turn;    /**< counts these walks */
  int64_t now;      /**< when the last one began, ms */
  ev_prepare prepare;
  ev_io alarm;
  lk_wakeup bell;
  void (*woken)(lk_ev *ev, void *arg);
  void *woken_arg;
};

static inline bool lk__ev_forked(const lk_ev *ev)
{
  return lk__fork_check_in_child(ev->origin);
}

/** Freed when nobody uses it any more. */
void lk__ev_release(lk_ev *ev);

#endif
