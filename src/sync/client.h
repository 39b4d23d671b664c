/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CLIENT_H
#define LK_SYNC_CLIENT_H

#include <latchkey/sync.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/walk.h"
#include "net/driver.h"

/** Something to be done on the handle's thread. It stays until it has begun. */
typedef struct lk_task {
  lk_link link;
  void (*begin)(struct lk_task *t);
} lk_task;

struct lk_sync_client {
  /* Set before the thread starts. */
  lk_mem mem;
  void (*on_state)(lk_sync_client *c, lk_state state, int err, void *arg);
  void *arg;
  lk_loop *loop;
  lk_driver driver;
  pthread_t thread;
  pthread_key_t held; /**< of each thread its first lk_holder, or NULL */

  /* Of all threads. */
  atomic_int state;    /**< lk_state */
  atomic_bool cancels; /**< a lk_sync_cancel was set */

  /* Of all threads, under the mutex. */
  pthread_mutex_t mutex;
  pthread_cond_t left; /**< nobody is inside any more */
  lk_link tasks;       /**< to be begun, in order */
  size_t inside;       /**< calls under way */
  bool freed;

  /* Of the handle's thread; once that has ended, of who frees. */
  lk_client *client;
  lk_listener listener;
  int64_t lease_ms;     /**< as last seen */
  lk_safe_list errands; /**< those that can be cut short */
  lk_safe_list holders; /**< those that have a lk_lock */
  bool closed;
  bool stopped; /**< the thread ends */
};

/** Why this thread may not wait for that of `c`: 0, LK_ERR_BAD_ARGUMENT (it is
    NULL), FORKED, STATE. */
int lk__sync_refusal(const lk_sync_client *c);

/** No call is a cancellation point: what may wait, write or close is between
    these two. */
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

/** A call begins: 0, or why not, also LK_ERR_CLOSED. Until it leaves, the
   handle stays and the thread is not cancelled. `cancelling` is for leaving. */
int lk__sync_enter(lk_sync_client *c, int *cancelling);
void lk__sync_leave(lk_sync_client *c, int cancelling);
/** The same for a call of an object of the client: `inside` counts the calls of
    that object, under the client's mutex. */
int lk__sync_enter_object(lk_sync_client *c, size_t *inside, int *cancelling);
void lk__sync_leave_object(lk_sync_client *c, size_t *inside, int cancelling);
/** Wait until all calls of that object have left; each must have been ended. */
void lk__sync_await_calls(lk_sync_client *c, const size_t *inside);

/** Have it begun by the handle's thread. false: that ends, it never will. */
bool lk__sync_post(lk_sync_client *c, lk_task *t);

/** What the handle's thread does until the handle is freed. */
void *lk__sync_thread_main(void *c);

#endif
