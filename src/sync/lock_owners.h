/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_OWNERS_H
#define LK_SYNC_LOCK_OWNERS_H

#include "sync/lock_owner.h"

/* ---- of one thread ------------------------------------------------------- */

/** The lock owner of `l` in this thread, or NULL. */
lk_lock_owner *lk__lock_owner_find(const lk_sync_lock *l);
/** Make one for this thread; NULL: no memory. */
lk_lock_owner *lk__lock_owner_new(lk_sync_lock *l);
/** Remove it from this thread, and have the lock released. It is freed by the
    thread of the handle. */
void lk__lock_owner_release(lk_lock_owner *owner);
/** Remove it from this thread and free it. The thread of the handle must not
    have it any more. */
void lk__lock_owner_delete(lk_lock_owner *owner);
/** The destructor of lk_sync_client.owners_key: releases what an ending thread
    holds. `first` of its list. */
void lk__lock_owners_thread_ended(void *first);

/* ---- of the handle, for its thread --------------------------------------- */

/** Remove it from lk_sync_client.lock_owners; before its call is completed,
    after which its thread may free it. */
void lk__lock_owner_remove(lk_lock_owner *owner);
/** lk__lock_owner_publish() for all that are held. */
void lk__lock_owners_publish(lk_sync_client *c);
/** All locks are lost, since the client is closed. */
void lk__lock_owners_close(lk_sync_client *c);
/** When the thread of the handle has ended: free the rest. */
void lk__lock_owners_free(lk_sync_client *c);

#endif
