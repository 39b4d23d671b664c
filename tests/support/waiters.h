/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_WAITERS_H
#define LK_SUPPORT_WAITERS_H

#include <latchkey/sync.h>

#include <pthread.h>
#include <stdbool.h>

/**
 * @file
 * Threads that make one blocking call each. The test's own thread checks their
 * results after they have ended.
 */

typedef struct waiter {
  int (*call)(void *arg);
  void *arg;
  int err; /**< what `call` has returned */
  pthread_t thread;
} waiter;

/** Start a thread that calls `call`. */
void waiter_start(waiter *w, int (*call)(void *arg), void *arg);
/** Wait until the thread has ended. Returns what `call` returned. */
int waiter_end(waiter *w);
/** Let the thread stand still for 0.3 s in a signal handler, from now on. */
void waiter_stand_still(waiter *w);
/** Whether a thread stands still. */
bool waiter_stands_still(void);
/** Wait until `count` threads are inside calls of `c`, and the client's thread
    has taken all their requests. */
void waiters_inside(lk_sync_client *c, size_t count);

/** An allocator that counts blocks of malloc(), for use on any thread. */
typedef struct shared_mem {
  lk_mem mem;
  pthread_mutex_t mutex;
  size_t live;    /**< blocks that are not freed yet */
  size_t count;   /**< allocations so far */
  size_t fail_at; /**< the number of the allocation that fails, counted from 1;
                       0: none fails */
} shared_mem;

void shared_mem_init(shared_mem *m);

#endif
