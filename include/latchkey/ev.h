/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_H
#define LK_EV_H

/**
 * @file
 * Clients on a libev loop. One lk_ev serves all clients of a loop, thousands if
 * need be. Resolving names does not block the loop. These functions are in a
 * library of their own, liblatchkey-ev.
 *
 * Threads: an lk_ev and its clients belong to the thread that runs the loop.
 * Other threads may call lk_ev_wake(), lk_ev_clock() and lk_ev_forked() only,
 * as long as the lk_ev exists. Callbacks must not run the loop.
 *
 * Fork: a forked child cannot use an lk_ev and its clients. Requests are
 * refused with LK_ERR_FORKED. Nothing is written to the connections of the
 * parent or read from them, and the parent is not woken. lk_client_free() and
 * lk_ev_free() free the copies of the child. A child that goes on with the loop
 * calls ev_loop_fork() first, as libev demands; no watcher of the library is
 * left on it then. Since Linux 4.14 these checks cost no system call.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop;

typedef struct lk_ev lk_ev;

/**
 * Attach to `loop`, which stays the caller's and must outlive the result.
 * A client keeps ev_run() running until it is closed or in
 * LK_STATE_AUTH_FAILED; the result itself does not. `mem` NULL: the C
 * library's.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_SYSTEM (no descriptors are free: it
 *         needs three). After an error `*out` is NULL.
 */
LK_API int lk_ev_new(lk_ev **out, struct ev_loop *loop, const lk_mem *mem);

/** Free it, and before it the clients that are left, as by lk_client_free().
    Inside a callback of a client it takes effect when all callbacks have
    returned. NULL is fine. */
LK_API void lk_ev_free(lk_ev *ev);

/**
 * Make a client that lives on `ev`. It starts to connect in the next turn of
 * the loop. End it with lk_client_close() and lk_client_free().
 *
 * @return as lk_client_new(); LK_ERR_FORKED in a forked child, LK_ERR_CLOSED
 *         inside lk_ev_free(), LK_ERR_UNIMPLEMENTED for TLS in a build without
 *         OpenSSL.
 */
LK_API int lk_ev_client_new(lk_client **out, lk_ev *ev,
                            const lk_client_config *config);

/** Call `woken` on the thread of the loop after lk_ev_wake(); NULL: no call. */
LK_API void lk_ev_on_wake(lk_ev *ev, void (*woken)(lk_ev *ev, void *arg),
                          void *arg);

/** Wake the loop, from any thread or signal handler, as long as `ev` exists.
    Several calls may cause one call of `woken`. No cancellation point. Does
    nothing in a forked child. */
LK_API void lk_ev_wake(lk_ev *ev);

/** lk_client_clock() of its clients: the clock, read now, in ms. */
LK_API int64_t lk_ev_clock(const lk_ev *ev);

/** Whether this is a forked child of the process that made `ev`. */
LK_API bool lk_ev_forked(const lk_ev *ev);

#ifdef __cplusplus
}
#endif
#endif
