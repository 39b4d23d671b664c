/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_HANDLE_H
#define LK_SIM_WORLD_HANDLE_H

#include "sim/model/rng.h"
#include "sim/world/facts.h"

/**
 * The lock API as actors use it. Each call and each callback is reported to the
 * checker; after a callback the actor's own callback is invoked.
 */

/** The callback of a lock that was invoked. */
typedef enum sim_callback {
  SIM_CALLBACK_ACQUIRED, /**< an acquire completed with `err` */
  SIM_CALLBACK_EVENT,    /**< `event` */
  SIM_CALLBACK_RELEASED, /**< a release completed with `err` */
  SIM_CALLBACK_VERIFIED, /**< a verify completed with `err` */
  SIM_CALLBACK_WRITTEN   /**< a guarded write completed with `err` */
} sim_callback;

typedef void (*sim_on_callback)(sim_handle *h, int callback, int err,
                                const lk_lock_event *event);

/** Make a lock and its handle. For a read-write lock both sides are made, and
    the write side is returned. Of `options` only the flags, the layout and
    max_queue are used. */
sim_handle *sim_handle_new(sim_process *p, const char *name,
                           const sim_lock_request *wanted,
                           lk_session_lease *lease,
                           const lk_lock_config *options,
                           sim_on_callback on_callback, void *arg);
/** These return the result of the call. */
int sim_handle_acquire(sim_handle *h, int64_t timeout_ms);
void sim_handle_cancel(sim_handle *h);
int sim_handle_release(sim_handle *h, bool with_callback);
int sim_handle_verify(sim_handle *h);
/** A guarded write to a node that all actors write to. */
int sim_handle_write(sim_handle *h);
/** Cancel and release everything, and keep the handle. */
void sim_handle_reset(sim_handle *h);
/** Free the lock, also the other side. The actor must not use the handles any
    more. */
void sim_handle_free(sim_handle *h);

#endif
