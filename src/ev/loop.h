/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_LOOP_H
#define LK_EV_LOOP_H

#include "net/loop.h"

struct ev_loop;

/** A lk_loop that uses a loop of libev. */
typedef struct lk_ev_loop {
  lk_loop base;
  struct ev_loop *ev;
} lk_ev_loop;

/** Have `l` use `ev`, which must outlive `l`. `l` need not be freed. */
void lk__ev_loop_attach(lk_ev_loop *l, struct ev_loop *ev);

#endif
