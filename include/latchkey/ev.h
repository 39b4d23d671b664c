/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_H
#define LK_EV_H

/**
 * @file
 * Clients on a libev loop. One lk_ev serves all clients of a loop; thousands
 * are fine. Names are resolved off the loop.
 *
 * Threads: an lk_ev and its clients belong to the thread that runs the loop;
 * only lk_ev_wake(), lk_ev_clock() and lk_ev_forked() may be called from
 * others, as long as it exists. Callbacks must not run the loop.
 *
 * Fork: in a forked child an lk_ev and its clients are dead. Requests are
 * refused with LK_ERR_FORKED, nothing is written to the parent's connections
 * or read from them, the parent is not woken; lk_client_free() and lk_ev_free()
 * give the child's copies back. A child that wants to go on with the loop calls
 * ev_loop_fork() first, as libev demands, and finds nothing of ours on it. None
 * of this takes a system call to find out, since Linux 4.14.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop;

typedef struct lk_ev lk_ev;

/**
 * Attach to `loop`, which stays the caller's and must outlive the result.
 * Takes no reference on the loop by itself: ev_run() returns when there is
 * neither a client that is not closed nor another watcher. `mem` NULL: the C
 * library's.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_SYSTEM (no descriptors left: it needs
 *         two, or three where names are resolved without c-ares). After an
 *         error `*out` is NULL.
 */
LK_API int lk_ev_new(lk_ev **out, struct ev_loop *loop, const lk_mem *mem);

/** Free; clients that are left are freed first, as by lk_client_free(). Inside
    a callback of one of them it takes effect once all callbacks have returned.
    NULL is fine. */
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

/** Call `woken` on the loop's thread after lk_ev_wake(); NULL: nobody. */
LK_API void lk_ev_on_wake(lk_ev *ev, void (*woken)(lk_ev *ev, void *arg),
                          void *arg);

/** Wake the loop. From any thread and from signal handlers, as long as `ev`
    exists; several calls can become one. No cancellation point. Does nothing in
    a forked child. */
LK_API void lk_ev_wake(lk_ev *ev);

/** lk_client_clock() of its clients: the clock read afresh, in ms. */
LK_API int64_t lk_ev_clock(const lk_ev *ev);

/** Whether this is a forked child of the process that made `ev`. */
LK_API bool lk_ev_forked(const lk_ev *ev);

#ifdef __cplusplus
}
#endif
#endif
