/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_STEP_H
#define LK_RECIPES_QUEUE_CONTENDER_STEP_H

/**
 * @file
 * The steps of a contender from one state to the next. All steps are taken by
 * one function, lk__contender_step(). Stopping and failing are steps that any
 * state may take.
 */

#include "recipes/queue/contender.h"

/** The state that follows `state` after `ev`; LK_CONTENDER_NO_STEP: `ev` must
    not occur in `state`. */
lk_contender_state lk__contender_next_state(const lk_contender_machine *m,
                                            lk_contender_state state,
                                            lk_contender_event ev);

/** Take the step that the rules have for `ev`, and begin the new state. An
    event without a step is a bug: a debug build aborts, other builds log it and
    call lk__contender_restart(). */
void lk__contender_step(lk_contender *ct, lk_contender_event ev);

/** After an event without a step: ask the server again. A waiter lists the
    queue, a holder verifies its node, and a cleanup sends its next request. */
void lk__contender_restart(lk_contender *ct);

/** Cancel or release. No callback is invoked any more, except `gone` if
    `report_gone` is set. */
void lk__contender_stop(lk_contender *ct, bool report_gone);
/** Report the error to the owner, and clean up. */
void lk__contender_fail(lk_contender *ct, int err);

/** The type of lk_session_lease.observer, for tests. `on_step` is called when
    `ct->state` is the new state and its `enter` has not been called yet. */
typedef struct lk_contender_observer {
  void (*on_step)(void *arg, const lk_contender *ct, lk_contender_event ev,
                  lk_contender_state from);
  void *arg;
} lk_contender_observer;

#endif
