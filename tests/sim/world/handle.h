/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_HANDLE_H
#define LK_SIM_WORLD_HANDLE_H

#include "sim/model/rng.h"
#include "sim/world/facts.h"

/**
 * The API of a lock, as actors call it: each call and each callback is told to
 * the checker, and then the actor may do what it likes.
 */

/** What an actor can be called back with. */
typedef enum sim_callback {
  SIM_CALLBACK_ACQUIRED, /**< an acquire ended with `err` */
  SIM_CALLBACK_EVENT,    /**< `event` */
  SIM_CALLBACK_RELEASED, /**< a release ended with `err` */
  SIM_CALLBACK_VERIFIED, /**< a verify did */
  SIM_CALLBACK_WRITTEN   /**< a guarded write did */
} sim_callback;

typedef void (*sim_on_callback)(sim_handle *h, int news, int err,
                                const lk_lock_event *event);

/** A handle for some of the world's locks; of a read-write lock the writers'
    side, with the other. `lease`: its session lease. `options`: of these the
   booleans. */
sim_handle *sim_handle_new(sim_process *p, const char *name,
                           const sim_lock_request *wanted,
                           lk_session_lease *lease,
                           const lk_lock_config *options,
                           sim_on_callback on_callback, void *arg);
/** The result is that of the call. */
int sim_handle_acquire(sim_handle *h, int64_t timeout_ms);
void sim_handle_cancel(sim_handle *h);
int sim_handle_release(sim_handle *h, bool with_callback);
int sim_handle_verify(sim_handle *h);
/** Write to a node that all share. */
int sim_handle_write(sim_handle *h);
/** lk_lock_free() of it, and of its other side; void for their actor. */
void sim_handle_free(sim_handle *h);

#endif
