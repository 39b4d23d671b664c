/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_OWNERS_H
#define LK_SYNC_LOCK_OWNERS_H

#include "sync/lock_owner.h"

/* ---- of one thread ------------------------------------------------------- */

/** The lock owner of `l` in this thread, or NULL. */
lk_lock_owner *lk__lock_owner_find(const lk_sync_lock *l);
/** Make a lock owner of `l` for this thread. NULL: no memory. */
lk_lock_owner *lk__lock_owner_new(lk_sync_lock *l);
/** Remove a lock owner from this thread. The thread of the handle releases the
    lock and frees the lock owner. */
void lk__lock_owner_release(lk_lock_owner *owner);
/** Remove a lock owner from this thread and free it. The thread of the handle
    must have removed it before. */
void lk__lock_owner_delete(lk_lock_owner *owner);
/** The destructor of lk_sync_client.owners_key: releases what an ending thread
    holds. `first`: the first lock owner of the thread's list. */
void lk__lock_owners_thread_ended(void *first);

/* ---- of the handle, for its thread --------------------------------------- */

/** Remove a lock owner from lk_sync_client.lock_owners. To be called before its
    call is completed, since its thread may free it after that. */
void lk__lock_owner_remove(lk_lock_owner *owner);
/** Call lk__lock_owner_publish() for each lock owner that holds. */
void lk__lock_owners_publish(lk_sync_client *c);
/** The client is being closed: all locks are lost. */
void lk__lock_owners_close(lk_sync_client *c);
/** The thread of the handle has ended: free the lock owners that are left. */
void lk__lock_owners_free(lk_sync_client *c);

#endif
