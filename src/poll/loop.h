/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_POLL_LOOP_H
#define LK_POLL_LOOP_H

#include "base/heap.h"
#include "base/list.h"
#include "net/loop.h"
#include "poll/epoll.h"

struct pollfd;

/**
 * A lk_loop that waits with poll(2). Each of its turns has three parts:
 * lk__poll_loop_prepare() calls the hooks, the owner waits for the descriptors
 * `fds`, and lk__poll_loop_dispatch() calls the watchers whose events have come
 * and the timers that are due.
 */
typedef struct lk_poll_loop {
  lk_loop base;
  lk_mem mem;
  struct pollfd *fds;    /**< the watched descriptors: `count` of
                              `capacity` */
  lk_loop_io **watchers; /**< the watcher of each of `fds` */
  size_t count;
  size_t capacity;
  lk_link ready;        /**< watchers to be called, the urgent ones first */
  lk_link due_hooks;    /**< hooks to be called before the loop waits */
  lk_link called_hooks; /**< hooks that were called in this turn */
  lk_heap timers;       /**< by the time in ns at which they are due */
  uint64_t turn;        /**< how often lk__poll_loop_prepare() has ended */
  size_t refs;          /**< above 0: keep the loop running */
  lk_epoll epoll;       /**< see lk_poll_fd() */
  /** Sets the timer of `epoll` to the next work. NULL: it is not open. A
      pointer for the reason of lk_epoll_type. */
  void (*set_epoll_timer)(struct lk_poll_loop *l);
  bool in_callbacks; /**< callbacks may be running; the timer of the epoll is
                          set when they have returned */
} lk_poll_loop;

/** Make a loop of its own, for src/sync and the command. Returns 0 or
    LK_ERR_NO_MEMORY. `mem` is copied. */
int lk__poll_loop_new(lk_loop **out, const lk_mem *mem);
/** Run a loop of lk__poll_loop_new() until `*done`, or until nothing keeps it
    running. A hook, or a watcher that it has fed, may set `*done`, too. */
void lk__poll_loop_run(lk_loop *l, const bool *done);
/** Free a loop of lk__poll_loop_new(). NULL is fine. */
void lk__poll_loop_free(lk_loop *l);

/** Prepare `l`, which is all zeros. `mem` is copied. Returns 0 or
    LK_ERR_NO_MEMORY; in both cases lk__poll_loop_reset() may follow. */
int lk__poll_loop_init(lk_poll_loop *l, const lk_mem *mem);
/** Free what the loop has allocated. */
void lk__poll_loop_reset(lk_poll_loop *l);

/** Call the hooks, and the watchers that they feed. Returns for how many
    milliseconds the loop may wait; -1: no limit. */
int lk__poll_loop_prepare(lk_poll_loop *l);
/** Call watchers and timers. `fds`: the first `count` of `l->fds`, or a copy,
    after poll(). Descriptors that were watched only after
    lk__poll_loop_prepare() are left for the next turn. */
void lk__poll_loop_dispatch(lk_poll_loop *l, const struct pollfd *fds,
                            size_t count);
/** Open the epoll, if it is not open yet, and let it watch all descriptors.
    Returns 0 or LK_ERR_SYSTEM. */
int lk__poll_loop_open_epoll(lk_poll_loop *l);
/** Callbacks may run between these two. */
void lk__poll_loop_begin_turn(lk_poll_loop *l);
void lk__poll_loop_end_turn(lk_poll_loop *l);
/** Wait for the descriptors for at most `timeout_ms`, or -1, and dispatch. */
void lk__poll_loop_wait(lk_poll_loop *l, int timeout_ms);

#endif
