/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_WAITERS_H
#define LK_SUPPORT_WAITERS_H

#include <latchkey/sync.h>

#include <pthread.h>

/**
 * @file
 * Threads that make one blocking call each. Their results are checked in the
 * test's own thread, when they have ended.
 */

typedef struct waiter {
  int (*what)(void *arg);
  void *arg;
  int err;
  pthread_t thread;
} waiter;

void waiter_start(waiter *w, int (*what)(void *arg), void *arg);
/** Its result, when it has ended. */
int waiter_end(waiter *w);
/** Until so many threads are in calls of `c`, and wait as far as one can see.
 */
void waiters_inside(lk_sync_client *c, size_t count);

/** Memory of the C library's, counted, for any thread. */
typedef struct shared_mem {
  lk_mem mem;
  pthread_mutex_t mutex;
  size_t live;
  size_t count;
  size_t fail_at; /**< which allocation fails, from 1; 0: none */
} shared_mem;

void shared_mem_init(shared_mem *m);

#endif
