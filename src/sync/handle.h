/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_HANDLE_H
#define LK_SYNC_HANDLE_H

#include <latchkey/sync.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/safe_list.h"
#include "net/driver.h"

/** Work for the thread of the handle. Its memory stays until it has begun. */
typedef struct lk_task {
  lk_link link;
  void (*begin)(struct lk_task *t);
} lk_task;

struct lk_sync_client {
  /* Set before the thread starts, and constant from then on. */
  lk_mem mem;
  void (*on_state)(lk_sync_client *c, lk_state state, int err, void *arg);
  void *arg;
  lk_loop *loop;
  lk_driver driver;
  pthread_t thread;
  pthread_key_t held; /**< for each thread its first lk_thread_lock, or NULL */

  /* For all threads. */
  atomic_int state;    /**< lk_state */
  atomic_bool cancels; /**< a lk_sync_cancel was set */

  /* For all threads, under the mutex. */
  pthread_mutex_t mutex;
  pthread_cond_t left; /**< `inside` of the client or of an object became 0 */
  lk_link tasks;       /**< of lk_task, in the order in which they begin */
  size_t inside;       /**< calls that have entered and not left */
  bool freed;

  /* For the thread of the handle; when that has ended, for the thread that
     frees. */
  lk_client *client;
  lk_listener listener;
  int64_t lease_ms;           /**< lk_lease_deadline() as last published */
  lk_safe_list interruptible; /**< of lk_blocking_call */
  lk_safe_list thread_locks;  /**< of lk_thread_lock that have a lk_lock */
  bool closed;
  bool stopped; /**< the thread ends */
};

/** Whether this thread may wait for the thread of `c`: 0; LK_ERR_BAD_ARGUMENT:
    `c` is NULL; LK_ERR_FORKED; LK_ERR_STATE: it is that thread. */
int lk__sync_refusal(const lk_sync_client *c);

/** No call of sync.h is a cancellation point: functions that may wait, write or
    close are called between these two. */
static inline int lk__sync_hold_cancel(void)
{
  int cancelling;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
  return cancelling;
}

static inline void lk__sync_restore_cancel(int cancelling)
{
  pthread_setcancelstate(cancelling, NULL);
}

/** Begin a call: 0, or the error of lk__sync_refusal(), or LK_ERR_CLOSED. Until
    lk__sync_leave() the handle is not freed and the thread not cancelled.
    `cancelling` is for leaving. */
int lk__sync_enter(lk_sync_client *c, int *cancelling);
void lk__sync_leave(lk_sync_client *c, int cancelling);
/** The same for a call of an object of the client, such as a lock. `inside`
    counts the calls of that object, under the client's mutex. */
int lk__sync_enter_object(lk_sync_client *c, size_t *inside, int *cancelling);
void lk__sync_leave_object(lk_sync_client *c, size_t *inside, int cancelling);
/** Wait until all calls of that object have left. Each must be completed. */
void lk__sync_await_calls(lk_sync_client *c, const size_t *inside);

/** Have the thread of the handle begin `t`. false: the thread ends, and `t`
    never begins. */
bool lk__sync_post(lk_sync_client *c, lk_task *t);

/** The thread of the handle, until the handle is freed. `c` is a
    lk_sync_client. */
void *lk__sync_thread_main(void *c);

#endif
