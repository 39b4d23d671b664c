/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RWLOCK_H
#define LK_RWLOCK_H

/**
 * @file
 * A fair, re-entrant read-write lock: Curator's InterProcessReadWriteLock on
 * the same znodes. Readers share it; a writer excludes all others. Locks are
 * granted in the order in which they were requested: no reader overtakes a
 * waiting writer, so writers do not starve. Mutexes of this library on the same
 * path exclude it, and it excludes them (<latchkey/lock.h>); Curator's mutex
 * ignores it.
 *
 * A handle is one owner with two sides. Each side is an lk_lock, which is
 * acquired, held and released as <latchkey/lock.h> says. Each side has its own
 * count, and they are released in any order. In addition:
 *
 *   - The holder of the write side may acquire the read side, and is granted it
 *     at once, in one request (Curator's layout; LK_ERR_DEADLOCK in others).
 *     Releasing the write side then is a downgrade: no writer holds in between.
 *     A downgrade by Curator up to 5.4 has a bug: it lets in a writer that
 *     waits behind it, while the reader holds (CURATOR-621).
 *   - The holder of the read side alone gets LK_ERR_DEADLOCK when it acquires
 *     the write side, since it would wait for its own read node. Release the
 *     read side, acquire the write side, and read again what may have changed.
 *   - While one side is being acquired, an acquire of the other is refused with
 *     LK_ERR_STATE, unless that side is held already.
 *
 * Tokens: a writer's grows with every grant to a writer. Do not fence writes
 * with a reader's token: a resource that has seen it would refuse a writer that
 * was queued before the reader. After a downgrade the read side keeps the token
 * of the write side.
 *
 * Threads and callbacks: as for the client. Every callback may free the handle.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_rwlock lk_rwlock;

/**
 * Make a handle for the lock at `path`. `config` applies to both sides; a
 * prefix is refused with LK_ERR_BAD_ARGUMENT. on_event gets the lk_lock of the
 * side that it is about. No request is sent.
 *
 * @return as lk_lock_new().
 */
LK_API int lk_rwlock_new(lk_rwlock **out, lk_client *client, const char *path,
                         const lk_lock_config *config);

/** Make another handle for the same lock, with the same options but for the
    callback: lk_lock_clone(). */
LK_API int lk_rwlock_clone(lk_rwlock **out, const lk_rwlock *rw,
                           lk_lock_event_cb on_event, void *arg);

/** Free both sides, each as lk_lock_free() does. NULL is allowed. */
LK_API void lk_rwlock_free(lk_rwlock *rw);

/** The sides. The handle owns them: do not free them. */
LK_API lk_lock *lk_rwlock_read_side(const lk_rwlock *rw);
LK_API lk_lock *lk_rwlock_write_side(const lk_rwlock *rw);

#ifdef __cplusplus
}
#endif
#endif
