/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_STEP_H
#define LK_RECIPES_QUEUE_CONTENDER_STEP_H

/**
 * @file
 * One function takes a step and begins the new state. Stopping and failing are
 * steps that any state may take.
 */

#include "recipes/queue/contender.h"

/** The state that `ev` leads to; LK_CONTENDER_NO_STEP: none. */
lk_contender_state lk__contender_next_state(const lk_contender_machine *m,
                                            lk_contender_state state,
                                            lk_contender_event ev);

/** Take the step that the rules have for `ev`, and begin the new state. An
   event without a step is a bug: a debug build aborts, others log it and call
    lk__contender_restart(). */
void lk__contender_step(lk_contender *ct, lk_contender_event ev);

/** Continue from what a server says, after an event without a step: a waiter
    lists anew, a holder verifies, a contender that cleans up does so again. */
void lk__contender_restart(lk_contender *ct);

/** Cancel or release. No callback is invoked any more, except `gone` if
    `notify` is set. */
void lk__contender_stop(lk_contender *ct, bool notify);
/** Report the error to the owner, and clean up. */
void lk__contender_fail(lk_contender *ct, int err);

/** lk_session_lease.observer: for tests. `on_step` is called when `ct` has its
    new state, and has not begun it yet. */
typedef struct lk_contender_observer {
  void (*on_step)(void *arg, const lk_contender *ct, lk_contender_event ev,
                  lk_contender_state from);
  void *arg;
} lk_contender_observer;

#endif
