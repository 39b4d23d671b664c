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
  void *arg;
  lk_loop *loop;
  lk_driver driver;
  pthread_t thread;
  /** For each thread its first lk_lock_owner, or NULL. */
  pthread_key_t owners_key;

  /* For all threads. */
  atomic_int state;    /**< the lk_state of `client`, as last reported */
  atomic_bool cancels; /**< a lk_sync_cancel was set */

  /* For all threads, under the mutex. */
  pthread_mutex_t mutex;
  pthread_cond_t calls_left; /**< an `inside` of it or of its locks became 0 */
  lk_link tasks; /**< of lk_task, in the order in which they begin */
  size_t inside; /**< calls that have entered and not left */
  bool freed;    /**< no call may enter any more */

  /* For the thread of the handle; when that has ended, for the thread that
     frees. */
  lk_client *client;
  lk_listener listener;
  int64_t lease_ms;           /**< lk_lease_deadline() as last published */
  lk_safe_list interruptible; /**< of lk_blocking_call */
  lk_safe_list lock_owners;   /**< of lk_lock_owner that have a lk_lock */
  bool closed;                /**< no request may be sent any more */
  bool stopped;               /**< the thread ends */
};

#endif
