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

/** The handle of a client: the client, its loop, and the thread that runs both.
    That thread is called "the thread of the handle". */
struct lk_sync_client {
  /* Set before the thread starts, and constant from then on. */
  lk_mem mem;
  void (*on_state)(lk_sync_client *c, lk_state state, int err, void *arg);
  void *arg; /**< for on_state */
  lk_loop *loop;
  lk_driver driver;
  pthread_t thread;
  /** The value of each thread: the first lk_lock_owner of the thread's list, or
      NULL. */
  pthread_key_t owners_key;

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
  int64_t lease_ms;           /**< the lk_lease_deadline() of the lock owners */
  lk_safe_list interruptible; /**< of lk_blocking_call */
  lk_safe_list lock_owners;   /**< of lk_lock_owner that have a lk_lock */
  bool closing;               /**< no request may be sent any more */
  bool must_stop;             /**< the loop of the thread has to end */
};

#endif
