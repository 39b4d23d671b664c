/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_LOOP_H
#define LK_EV_LOOP_H

#include "net/loop.h"

struct ev_loop;

/** net/loop.h on a loop of libev. */
typedef struct lk_ev_loop {
  lk_loop base;
  struct ev_loop *ev;
  const bool *done; /**< of the run_once() that runs; NULL: none */
} lk_ev_loop;

/** Use `ev`, which must outlive `l`. There is nothing to be freed. */
void lk__ev_loop_attach(lk_ev_loop *l, struct ev_loop *ev);

#endif
