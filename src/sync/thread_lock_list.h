/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_THREAD_LOCK_LIST_H
#define LK_SYNC_THREAD_LOCK_LIST_H

#include "sync/thread_lock.h"

/* ---- of one thread ------------------------------------------------------- */

/** The thread lock of `l` in this thread, or NULL. */
lk_thread_lock *lk__thread_lock_find(const lk_sync_lock *l);
/** Make one for this thread; NULL: no memory. */
lk_thread_lock *lk__thread_lock_new(lk_sync_lock *l);
/** Remove it from this thread, and have the lock released. It is freed by the
    thread of the handle. */
void lk__thread_lock_release(lk_thread_lock *h);
/** Remove it from this thread and free it. The thread of the handle must not
    have it any more. */
void lk__thread_lock_delete(lk_thread_lock *h);
/** The destructor of lk_sync_client.held: releases what an ending thread
    holds. `first` of its list. */
void lk__thread_locks_thread_ended(void *first);

/* ---- of the handle, for its thread --------------------------------------- */

/** Remove it from lk_sync_client.thread_locks; before its call is completed,
    after which its thread may free it. */
void lk__thread_lock_remove(lk_thread_lock *h);
/** lk__thread_lock_publish() for all that are held. */
void lk__thread_locks_publish(lk_sync_client *c);
/** All locks are lost, since the client is closed. */
void lk__thread_locks_close(lk_sync_client *c);
/** When the thread of the handle has ended: free the rest. */
void lk__thread_locks_free(lk_sync_client *c);

#endif
