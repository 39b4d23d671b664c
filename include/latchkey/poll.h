/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_POLL_H
#define LK_POLL_H

/**
 * @file
 * Clients without an event loop library, on poll(2). One lk_poll serves any
 * number of clients. Resolving names does not block.
 *
 * A program has the choice of three ways to drive its clients:
 * - It calls lk_poll_run(), or lk_poll_run_once() in a loop.
 * - It has a loop with poll(2), and adds the descriptors of the lk_poll. Each
 *   turn has lk_poll_prepare(), poll() and lk_poll_dispatch(). A request that
 *   is made after lk_poll_prepare() leaves in the next turn.
 * - It has another loop, such as one with epoll(7), or one of a library. The
 *   loop watches one descriptor, lk_poll_fd(), and calls lk_poll_dispatch(p,
 *   NULL, 0) while it is readable.
 *
 * Threads: an lk_poll and its clients belong to one thread. Other threads, and
 * signal handlers, may call lk_poll_wake(), lk_poll_clock() and
 * lk_poll_forked() only, as long as the lk_poll exists. The thread must not be
 * cancelled inside a function that runs the lk_poll.
 *
 * Callbacks must not call the functions that run the lk_poll: inside a callback
 * that one of these or lk_poll_free() invokes, they do nothing and return false
 * or 0.
 *
 * Fork: a forked child cannot use an lk_poll and its clients. Requests are
 * refused with LK_ERR_FORKED. Nothing is written to the connections of the
 * parent or read from them, and the parent is not woken. lk_client_free() and
 * lk_poll_free() free the copies of the child.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pollfd; /* of <poll.h> */

typedef struct lk_poll lk_poll;

/**
 * Make one. `mem` NULL: the C library's allocator.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_SYSTEM (no descriptors are free: it needs
 *         three). After an error `*out` is NULL.
 */
LK_API int lk_poll_new(lk_poll **out, const lk_mem *mem);

/** Free it, and before it the clients that are left, as by lk_client_free().
    Inside a callback it takes effect when the function that runs the lk_poll
    returns. NULL is fine. */
LK_API void lk_poll_free(lk_poll *p);

/**
 * Make a client that lives on `p`. It starts to connect in the next turn. End
 * it with lk_client_close() and lk_client_free().
 *
 * @return as lk_client_new(); LK_ERR_FORKED in a forked child, LK_ERR_CLOSED
 *         inside lk_poll_free(), LK_ERR_UNIMPLEMENTED for TLS in a build
 *         without OpenSSL.
 */
LK_API int lk_poll_client_new(lk_client **out, lk_poll *p,
                              const lk_client_config *config);

/** Run until each client is closed or has ended for good (see lk_state), or
    until lk_poll_free(). */
LK_API void lk_poll_run(lk_poll *p);

/**
 * Send what is queued, wait for events, and handle them. It waits at most
 * `timeout_ms`; -1: until an event, a deadline, or a signal whose handler is
 * called. Without a client it does not wait.
 *
 * @return whether there is a client that is neither closed nor ended for good.
 *         false, too, if a callback has freed `p`.
 */
LK_API bool lk_poll_run_once(lk_poll *p, int timeout_ms);

/**
 * Send what is queued, and store in `fds` the descriptors that poll() has to
 * watch. Callbacks may be invoked. `*timeout_ms` is how long the program itself
 * would wait (-1: without a limit); it is lowered if `p` must be called
 * earlier. It is 0 if the last client has closed or ended for good, and
 * lk_poll_dispatch() has not returned false for that yet.
 *
 * @return the number of descriptors: up to two, and one for each connection of
 *         a client, for each server that a client probes, and for each socket
 *         of the name service. If it is larger than `room`, only `room` of them
 *         were stored: enlarge the array and call again. 0: a callback has
 *         freed `p`. It is 0 inside a callback, too, and in a forked child,
 *         where `p` still has to be freed.
 */
LK_API size_t lk_poll_prepare(lk_poll *p, struct pollfd *fds, size_t room,
                              int *timeout_ms);

/**
 * Handle the events that poll() has found, and deadlines that have passed. To
 * be called after each poll(), even if it has found none or has failed; in the
 * latter case `count` is 0. `fds` and `count`: the descriptors of
 * lk_poll_prepare(), in the same order, with their `revents`. A descriptor that
 * `p` does not watch any more, or only since lk_poll_prepare(), is ignored.
 *
 * @return as lk_poll_run_once(). If the last client ends in this call, it can
 *         still be true, and false in the next turn, which does not wait.
 */
LK_API bool lk_poll_dispatch(lk_poll *p, const struct pollfd *fds,
                             size_t count);

/**
 * One descriptor for all of `p`, which the first call makes: it is readable
 * when lk_poll_dispatch() has work, and stays so until that is done. From then
 * on lk_poll_dispatch(p, NULL, 0) handles what is due without waiting, and
 * sends what is queued; lk_poll_prepare() is not needed. The descriptor belongs
 * to `p`: lk_poll_free() closes it. Watch its level, not its edges, for reading
 * alone.
 *
 * @return the descriptor; LK_ERR_SYSTEM: no descriptors are free, it needs two;
 *         LK_ERR_FORKED. A port to a system without epoll(7) would return
 *         LK_ERR_UNIMPLEMENTED.
 */
LK_API int lk_poll_fd(lk_poll *p);

/** Call `woken` on the thread of `p` after lk_poll_wake(); NULL: no call. */
LK_API void lk_poll_on_wake(lk_poll *p, void (*woken)(lk_poll *p, void *arg),
                            void *arg);

/** End the wait, from any thread or signal handler, as long as `p` exists.
    Several calls may cause one call of `woken`. No cancellation point. Does
    nothing in a forked child. */
LK_API void lk_poll_wake(lk_poll *p);

/** lk_client_clock() of its clients: the clock, read now, in ms. */
LK_API int64_t lk_poll_clock(const lk_poll *p);

/** Whether this is a forked child of the process that made `p`. */
LK_API bool lk_poll_forked(const lk_poll *p);

#ifdef __cplusplus
}
#endif
#endif
