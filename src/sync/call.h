/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CALL_H
#define LK_SYNC_CALL_H

/**
 * @file
 * The handle of a client for threads, and a call of it: a function enters the
 * handle, posts a task to the thread of the handle and waits until it
 * completes.
 */

#include <pthread.h>
#include <stdatomic.h>

#include <latchkey/sync.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/safe_list.h"
#include "base/sized_struct.h"
#include "net/driver.h"

/** The handle of a client: the client, its loop, and the thread that runs both.
    That thread is called "the thread of the handle". */
struct lk_sync_client {
  /* Set before the thread starts, and constant from then on. */
  lk_mem mem;
  void (*on_state)(lk_sync_client *c, lk_state state, int err, void *arg);
  void *arg; /**< for on_state */
  bool has_default_call;
  lk_sync_call default_call; /**< the options of calls that are given NULL */
  lk_loop *loop;
  lk_driver driver;
  pthread_t thread;

  /* For all threads. */
  atomic_int state; /**< the lk_state of `client`, as last reported */
  /** A lk_sync_cancel was set, and the thread of the handle has not yet looked
      for the calls that it interrupts. */
  atomic_bool cancel_was_set;

  /* For all threads, under the mutex. */
  pthread_mutex_t mutex;
  /** Signalled when `calls_inside` of the handle, or of one of its locks or
      subscriptions, has become 0. */
  pthread_cond_t no_call_inside;
  lk_link tasks;       /**< of lk_task, in the order in which they begin */
  size_t calls_inside; /**< calls that have entered and not left */
  bool freeing;        /**< lk_sync_client_free() has begun: no call enters */

  /* For the thread of the handle; when that has ended, for the thread that
     frees. */
  lk_client *client;
  lk_listener listener;
  int64_t lease_ms;           /**< the lk_lease_deadline() of the locks */
  lk_safe_list interruptible; /**< of lk_blocking_call */
  lk_link locks;              /**< of lk_sync_lock */
  lk_link state_waits;        /**< of lk_wait, each in a state_wait */
  bool closing;               /**< no request may be sent any more */
  bool must_stop;             /**< the loop of the thread has to end */
};

struct lk_sync_cancel {
  lk_sync_client *client;
  atomic_bool set; /**< calls with this cancel are interrupted */
};

/** Work for the thread of the handle. The memory of a task must stay until
    `begin` is called. */
typedef struct lk_task {
  lk_link link;
  void (*begin)(struct lk_task *t);
} lk_task;

/** Have the thread of the handle call `t->begin`. false: that thread is ending,
    and `t` will never begin. */
bool lk__task_post(lk_sync_client *c, lk_task *t);
/** lk__task_post() under the client's mutex. The caller wakes the driver when
    it has unlocked the mutex. */
bool lk__task_add(lk_sync_client *c, lk_task *t);
/** On the thread of the handle: begin all tasks that were posted. true: the
    handle is to be freed. */
bool lk__tasks_begin(lk_sync_client *c);

/**
 * A call that blocks its caller. The thread of the handle runs the call and
 * completes it once; the caller waits until then. As soon as the call is
 * completed the caller may free its memory.
 */
typedef struct lk_blocking_call {
  lk_task task;
  lk_sync_client *client;
  lk_sync_cancel *cancel; /**< NULL: the call cannot be cancelled */
  int64_t deadline_ms;    /**< on the client's clock; INT64_MAX: none */
  void (*begin)(struct lk_blocking_call *b);

  /* For the thread of the handle. */
  /** Complete the call early with `err`. NULL: the call cannot be interrupted,
      or is completed. */
  void (*interrupt)(struct lk_blocking_call *b, int err);
  lk_link link; /**< in lk_sync_client.interruptible */
  lk_timer timer;

  /* Under the client's mutex. */
  pthread_cond_t completed;
  bool is_completed;
  int err;
} lk_blocking_call;

/* ---- for the caller ------------------------------------------------------ */

/** Copy a struct of options, which begins with its size. If `from` is NULL all
    options are 0. Returns 0, or LK_ERR_BAD_ARGUMENT after logging the reason.
    */
int lk__sync_copy_options(lk_sync_client *c, const lk_sized_struct *type,
                          void *out, const void *from);
/** lk__sync_copy_options() for the options of a call. If `call` is NULL, `out`
    gets the client's defaults. */
int lk__sync_copy_call(lk_sync_client *c, lk_sync_call *out,
                       const lk_sync_call *call);
/** Why a call that has nothing to wait for is refused: `call` has no size or
    sets a watch, its cancel is set, or its deadline has passed; or 0. Sends
    nothing. */
int lk__sync_call_refusal(lk_sync_client *c, const lk_sync_call *call);
/** Initialise `b`. `call` was copied by lk__sync_copy_call(); NULL: the call
    has no deadline and no cancel. Returns 0, or LK_ERR_NO_MEMORY: then `b` must
    not be destroyed. */
int lk__blocking_call_init(lk_blocking_call *b, lk_sync_client *c,
                           const lk_sync_call *call);
/** lk__blocking_call_init() with the caller's own `call`, which is copied
    first. LK_ERR_BAD_ARGUMENT: its size is wrong, or it asks for a watch. */
int lk__blocking_call_init_from(lk_blocking_call *b, lk_sync_client *c,
                                const lk_sync_call *call);
/** Run `begin` on the thread of the handle and wait until the call is
    completed. Only between lk__sync_enter() and lk__sync_leave(). */
int lk__blocking_call_wait(lk_blocking_call *b,
                           void (*begin)(lk_blocking_call *b));
void lk__blocking_call_destroy(lk_blocking_call *b);
/** Make a call that cannot be interrupted: enter the handle, initialise `b`,
    wait and leave. */
int lk__blocking_call_do(lk_blocking_call *b, lk_sync_client *c,
                         void (*begin)(lk_blocking_call *b));

/* ---- for the thread of the handle ---------------------------------------- */

/** Returns 0 if the call may begin now; else LK_ERR_CLOSED, LK_ERR_CANCELLED or
    LK_ERR_DEADLINE. */
int lk__blocking_call_refusal(const lk_blocking_call *b);
/** The present time on the clock of deadlines. */
static inline int64_t lk__blocking_call_clock(const lk_blocking_call *b)
{
  return lk_client_clock(b->client->client);
}
/** From now on a cancel interrupts the call. */
void lk__blocking_call_allow_interrupt(lk_blocking_call *b,
                                       void (*interrupt)(lk_blocking_call *b,
                                                         int err));
/** From now on the deadline interrupts the call. Not for requests of the
    client, which completes them at their deadline itself. */
void lk__blocking_call_start_timer(lk_blocking_call *b);
/** Complete the call with `err` and wake its caller. */
void lk__blocking_call_complete(lk_blocking_call *b, int err);
static inline bool lk__blocking_call_is_interruptible(const lk_blocking_call *b)
{
  return b->interrupt != NULL;
}
/** Interrupt all calls whose cancel is set. */
void lk__blocking_calls_interrupt_cancelled(lk_sync_client *c);

/**
 * A call that waits for an event of an object, such as a subscription. The
 * object has a list of these calls, for the thread of the handle.
 */
typedef struct lk_wait {
  lk_blocking_call call;
  lk_link
      link; /**< in the list of the object, once lk__wait_add() was called */
} lk_wait;

/** For the caller: enter `c` and its object, run `begin` on the thread of the
    handle, wait until the call is completed, and leave. `object_calls`: see
    lk__sync_enter_object(). Returns an error of that function or of
    lk__blocking_call_init_from(), or the one that the call is completed
    with. */
int lk__wait_do(lk_wait *w, lk_sync_client *c, size_t *object_calls,
                const lk_sync_call *call, void (*begin)(lk_blocking_call *b));

/* ---- for the thread of the handle ---------------------------------------- */

/** Add the call to the end of the list. From then on its cancel and its
    deadline end it. */
void lk__wait_add(lk_wait *w, lk_link *list);
/** Remove the call from the list and complete it with `err`. The caller may
    then free it. */
void lk__wait_end(lk_wait *w, int err);

/** Returns 0 if this thread may wait for the thread of `c`.
    LK_ERR_BAD_ARGUMENT: `c` is NULL. LK_ERR_FORKED: this is a child process.
    LK_ERR_STATE: this is the thread of `c`. */
int lk__sync_refusal(const lk_sync_client *c);

/** The result of a free: `err`. A free in a callback (LK_ERR_STATE) frees
    nothing, which is logged with the name of the function. */
int lk__sync_free_result(const lk_sync_client *c, int err,
                         const char *function);

/** The number of this thread in the process. Unlike a pthread_t it is not used
    again when the thread has ended. */
uint64_t lk__sync_thread(void);

/** Disable the cancellation of this thread and return its previous state, for
    lk__sync_restore_cancel(). No call of latchkey/sync.h is a cancellation
    point, so functions that may wait, write or close are called between these
    two. */
static inline int lk__sync_disable_cancel(void)
{
  int cancel_state;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  return cancel_state;
}

static inline void lk__sync_restore_cancel(int cancel_state)
{
  pthread_setcancelstate(cancel_state, NULL);
}

/** Begin a call. Returns 0, the error of lk__sync_refusal(), or LK_ERR_CLOSED.
    After success, until lk__sync_leave(), the handle is not freed and this
    thread is not cancelled. `cancel_state` is to be passed to lk__sync_leave().
    */
int lk__sync_enter(lk_sync_client *c, int *cancel_state);
void lk__sync_leave(lk_sync_client *c, int cancel_state);
/** lk__sync_enter() and lk__sync_leave() for a call of an object of the client,
    such as a lock. `object_calls` is the number of calls inside that object,
    under the client's mutex. NULL: there is no object. */
int lk__sync_enter_object(lk_sync_client *c, size_t *object_calls,
                          int *cancel_state);
void lk__sync_leave_object(lk_sync_client *c, size_t *object_calls,
                           int cancel_state);
/** Wait until all calls of an object have left. The caller has completed each
    of them before, so that none of them blocks. */
void lk__sync_await_calls(lk_sync_client *c, const size_t *object_calls);

#endif
