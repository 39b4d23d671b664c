/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RWLOCK_H
#define LK_RWLOCK_H

/**
 * @file
 * A fair, re-entrant read-write lock: Curator's InterProcessReadWriteLock on
 * the same znodes. Readers share it, a writer is alone. Who comes first is
 * served first: no reader overtakes a writer that waits, so writers do not
 * starve. It also keeps out, and is kept out by, mutexes of this library on
 * the same path (<latchkey/lock.h>); Curator's mutex knows nothing of it.
 *
 * A handle is one owner with two sides, and each side is an lk_lock: all that
 * <latchkey/lock.h> says of acquiring, holding and releasing goes for it. They
 * count by themselves and are released in any order. What is special:
 *
 *   - Who holds the write side may acquire the read side: at once, in one
 *     request (in Curator's layout; LK_ERR_DEADLOCK in others). Releasing the
 *     write side then is a downgrade: no writer comes in between. Curator up to
 *     5.4 has a bug here when it is the one who downgrades: a writer behind it
 *     gets in beside the reader (CURATOR-621).
 *   - Who holds the read side and not the write side may not acquire the write
 *     side: it would wait for itself, LK_ERR_DEADLOCK. Release, then acquire,
 *     and look again at what was read: it may have changed in between.
 *   - While one side is being acquired the other cannot be: LK_ERR_STATE. What
 *     is held already can always be acquired again.
 *
 * Tokens: a writer's grows with every grant to a writer. A reader's is of the
 * same kind but should not fence writes: a resource that has seen it would
 * refuse the writer queued before. After a downgrade the read side keeps the
 * token of the write side.
 *
 * Threads, callbacks: as the client. Every callback may free the handle.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_rwlock lk_rwlock;

/**
 * Make a handle for the lock at `path`, with the options of a lock for both
 * sides, but for a prefix (LK_ERR_BAD_ARGUMENT); on_event tells by its lk_lock
 * which side it is about. No request is sent.
 *
 * @return as lk_lock_new().
 */
LK_API int lk_rwlock_new(lk_rwlock **out, lk_client *client, const char *path,
                         const lk_lock_config *config);

/** Free both sides, each as lk_lock_free() does. NULL is fine. */
LK_API void lk_rwlock_free(lk_rwlock *rw);

/** The sides. They belong to the handle: do not free them. */
LK_API lk_lock *lk_rwlock_read(const lk_rwlock *rw);
LK_API lk_lock *lk_rwlock_write(const lk_rwlock *rw);

#ifdef __cplusplus
}
#endif
#endif
