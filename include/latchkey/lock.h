/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LOCK_H
#define LK_LOCK_H

/**
 * @file
 * A fair, re-entrant, exclusive lock: Curator's InterProcessMutex on the same
 * znodes. Contenders queue as ephemeral sequential children of the lock's
 * path, which is created on demand (see lk_layout); the lowest number holds.
 *
 * A handle is one owner, and creates one contender node, its "own node". The
 * handle that holds may acquire again: that counts up, and sends no request.
 * Any other handle, also of this process, queues.
 *
 * A holder has:
 *   - a fencing token, which grows with every grant. The resource that the lock
 *     protects should refuse a token smaller than the largest it has seen;
 *   - the lease deadline, until which no other client holds, under the
 *     assumptions of <latchkey/lease.h>;
 *   - events: UNSURE shortly before the deadline, RENEWED if the lease is
 *     renewed after that, and LOST, once, if the lock is lost before it is
 *     released. A lost lock is never acquired again without a call of
 *     lk_lock_acquire().
 *
 * When the session expires, a holder gets LOST. A waiter gets PLACE_LOST and
 * queues anew in the next session, within the same timeout; with fail_on_expiry
 * its acquire ends instead. When the client is closed or freed, or its
 * authentication fails, holders get LOST and acquires end, with the client's
 * error; the handle must still be freed. lk_client_close() reports this before
 * it returns, since another client may hold as soon as a server has executed
 * closeSession.
 *
 * A resumed session (`resume` in lk_client_config) keeps the nodes of the
 * client that had it before. The locks of that client stay held, and its
 * contender nodes stay in their queues, until the session ends or the nodes are
 * deleted. No handle of the new client owns them; its acquires queue behind
 * them. Resume only a session whose former client has ended: otherwise the two
 * take the connection from each other, and if the new client closes the
 * session, the locks of the other one pass to other clients before their
 * deadline.
 *
 * Threads and callbacks: as for the client. Every callback may free the handle.
 */

#include <latchkey/lease.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_lock lk_lock;

/** A program treats a value that it does not know as LK_LOCK_UNSURE. */
typedef enum lk_lock_state {
  LK_LOCK_IDLE = 0,
  LK_LOCK_ACQUIRING = 1,
  LK_LOCK_HELD = 2,
  LK_LOCK_UNSURE = 3, /**< perhaps lost: the lease ends soon or has ended, or
                       the connection is lost (`unsure_when_suspended`) */
  LK_LOCK_LOST = 4    /**< lost; lk_lock_release() or lk_lock_reset() makes the
                       handle idle */
} lk_lock_state;

/** "idle", "acquiring", …: for logs. */
LK_API const char *lk_lock_state_text(lk_lock_state state);

/** The events for on_event. A program ignores an event of a type that it does
    not know. */
typedef enum lk_lock_event_type {
  /** Acquiring: the position in the queue is known or has changed. `position`:
      the number of predecessors (1: the next to hold). `node`: the node of the
      first predecessor, which is a holder; only a reader may have a writer as
      its first predecessor that is still waiting itself. */
  LK_LOCK_EVENT_WAITING = 0,
  /** Acquiring: the own node does not exist any more; the handle queues anew,
      at the end. `err`: LK_ERR_NO_NODE (another client deleted the node) or
      LK_ERR_SESSION_EXPIRED. With several predecessors, a deletion is noticed
      within half a session timeout; with one, at once. */
  LK_LOCK_EVENT_PLACE_LOST = 1,
  /** Holding: the connection is lost; the lease lasts until `deadline_ms`. */
  LK_LOCK_EVENT_SUSPENDED = 2,
  /** Holding: the state is LK_LOCK_UNSURE now. The lease ends in
      lk_lease_config.margin_ms (after a pause of the process it may have
      ended); or, with `unsure_when_suspended`, the connection is lost. Begin
      nothing new with the resource, and stop using it before `deadline_ms`. */
  LK_LOCK_EVENT_UNSURE = 3,
  /** Holding: after UNSURE the lease was renewed, and the state is LK_LOCK_HELD
      again. The grant itself has no event: see `done` of lk_lock_acquire(). */
  LK_LOCK_EVENT_RENEWED = 4,
  /** The lock is lost. `err`: LK_ERR_NO_NODE (another client deleted the own
      node), LK_ERR_SESSION_EXPIRED, LK_ERR_CLOSED, LK_ERR_AUTH_FAILED. Without
      a connection it comes only when the client gives up the session
      (lk_client_config.give_up_ms), and another client may hold long before: so
      stop at UNSURE, or set an lk_timer to `deadline_ms`. A process that was
      paused for that long gets UNSURE, SUSPENDED and LOST at once, with a
      `deadline_ms` that has passed; after a shorter pause, LOST comes with the
      next connection. */
  LK_LOCK_EVENT_LOST = 5,
  /** The directory also has `node`, of another kind of lock or another layout.
      Its owner perhaps does not wait for this lock. Examples are a node of
      Curator's read-write lock in the directory of a mutex, the directory
      "leases" of a semaphore, and a sequential node of any other program.
      Reported once for each handle. */
  LK_LOCK_EVENT_MIXED_QUEUE = 6,
  /** The access list of the own node forbids to read it, so it is not watched:
      its deletion by another client is noticed only by the next heartbeat.
      Reported once for each handle. */
  LK_LOCK_EVENT_UNWATCHED = 7,
  /** Holding: another client asks for the release (see LK_REVOKE_MESSAGE). The
      lock is still held; the holder decides whether it releases. Reported once
      for each grant: with `revocable` at once, without it up to half the
      session timeout late. */
  LK_LOCK_EVENT_REVOKED = 8
} lk_lock_event_type;

/** "waiting", "place lost", …: for logs. */
LK_API const char *lk_lock_event_text(lk_lock_event_type type);

/**
 * The data that request the release of a lock, as in Curator's revocation:
 * write them with lk_set() and version -1 to the holder's node, which a WAITING
 * event or a list names. LK_ERR_NO_NODE: the lock has been released already.
 * The holder decides whether it releases.
 */
#define LK_REVOKE_MESSAGE "__REVOKE__"

typedef struct lk_lock_event {
  lk_lock_event_type type;
  int err;
  size_t position;     /**< WAITING; 0 with <latchkey/single.h>, which has no
                            queue */
  const char *node;    /**< WAITING, MIXED_QUEUE: a full path; borrowed */
  int64_t deadline_ms; /**< SUSPENDED, UNSURE, RENEWED: lease deadline on
                            lk_client_clock() */
} lk_lock_event;

typedef void (*lk_lock_event_cb)(lk_lock *l, const lk_lock_event *event,
                                 void *arg);

/**
 * How the nodes of a queue are named. All programs that are to exclude one
 * another use the same layout. Two more things depend on it:
 *   - The directory (the node at the lock's path) and its ancestors are created
 *     if they are missing. In Curator's layout they become containers, which
 *     servers delete when they are empty; with `persistent_parents`, and at
 *     servers before 3.5.1, persistent nodes. In the other layouts they always
 *     become persistent nodes.
 *   - In Curator's layout the holder of the write side of a read-write lock may
 *     acquire the read side, too. In the other layouts that acquire ends with
 *     LK_ERR_DEADLOCK.
 * Other values are refused with LK_ERR_BAD_ARGUMENT.
 */
typedef enum lk_layout {
  /** "_c_UUID-lock-N", "_c_UUID-__READ__N", "_c_UUID-__WRIT__N". */
  LK_LAYOUT_CURATOR = 0,
  /**
   * kazoo's Lock and WriteLock "HEX__lock__N" and ReadLock "HEX__rlock__N",
   * where HEX is 32 digits. A mutex of this library counts as a writer: it
   * excludes readers, and readers exclude it. The Lock of kazoo itself does not
   * wait for readers. The ReadLock of kazoo (2.8) also waits for writers that
   * have queued behind it. They wait for it as well, which is a deadlock: give
   * the ReadLock a timeout.
   */
  LK_LAYOUT_KAZOO = 1,
  /**
   * The plain recipe of hand-written programs, whose names have no unique part:
   * for a mutex `prefix` and the number, for a read-write lock "r-N" and "w-N".
   * Contenders are nodes with exactly such a name, with or without "UUID-" in
   * front. The data of the own node are `data`, a space and a UUID, by which
   * the client recognises the node after the reply to its create was lost. In
   * all other cases it identifies its node by the name alone. So do not delete
   * the directory while it is in use: a new directory counts from 0 again, and
   * the node of another contender may get the name of the holder's node.
   */
  LK_LAYOUT_NATIVE = 2,
  /** The same, with "UUID-" in front of the names of own nodes, and no UUID in
      their data. Use it only if all contenders use this library: other programs
      may take the UUID for the number, and order the queue wrongly. It is safer
      than LK_LAYOUT_NATIVE, because a node never gets the name of another. */
  LK_LAYOUT_NATIVE_UUID = 3,
  /** Curator's LeaderLatch: "_c_UUID-latch-N". For mutexes only, which exclude
      each other and no other kind of lock; the constructors of other kinds
      refuse it with LK_ERR_BAD_ARGUMENT. See <latchkey/leader.h>. */
  LK_LAYOUT_LATCH = 4
} lk_layout;

/** Options of a lock. Set `size`; 0 selects the default of every other option.
    All is copied. */
typedef struct lk_lock_config {
  size_t size;   /**< sizeof(lk_lock_config) */
  lk_bytes data; /**< data of the own node, for people to read; default empty.
                      Not LK_REVOKE_MESSAGE */
  const lk_acls *acl; /**< of the own node; NULL: open. All contenders need
                           READ on it; and READ, CREATE and DELETE on the
                           directory */
  const lk_acls *parent_acl;  /**< of created directories; NULL: `acl` */
  bool persistent_parents;    /**< Curator's layout: create directories as
                                   persistent nodes, not as containers. For paths
                                   that are shared with kazoo */
  bool unsure_when_suspended; /**< UNSURE as soon as the connection is lost,
                                 also if the client leaves a silent server */
  bool revocable;      /**< report LK_LOCK_EVENT_REVOKED at once, at the cost of
                            one more read for each grant. Every lock reports
                            it, but without this option late */
  bool fail_on_expiry; /**< end an acquire whose session expires with
                            LK_ERR_SESSION_EXPIRED instead of queueing anew */
  /** End an acquire with more predecessors than this, holders among them, with
      LK_ERR_QUEUE_FULL. 0: any number. */
  size_t max_queue;
  /** In a try, and with max_queue, list the queue before a node is created.
      This costs one round trip if the lock is free, and saves two writes if it
      is not: for locks that are mostly held. No effect in semaphores and
      multi-locks. */
  bool peek;
  lk_layout layout;   /**< semaphores: Curator's or kazoo's */
  const char *prefix; /**< of a mutex with a native layout only; NULL: "seq-".
                         It may be empty; "r-", "w-" and '/' are refused */
  lk_lock_event_cb on_event;
  void *arg;
} lk_lock_config;

/** Whether the child `name` of a lock's directory is a contender node of a
    mutex or a read-write lock with this layout and prefix. If so, `number` is
    its sequence number, by which the queue is ordered, and `shared` is true for
    a reader. */
LK_API bool lk_layout_contends(lk_layout layout, const char *prefix,
                               lk_bytes name, int64_t *number, bool *shared);

/**
 * Make a handle for the lock at `path` (absolute, copied). No request is sent.
 * It may be freed before `client` or after it.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_BAD_PATH ("/", too, except with a native
 *         layout and a prefix that is not empty), LK_ERR_BAD_ARGUMENT.
 *         After an error `*out` is NULL.
 */
LK_API int lk_lock_new(lk_lock **out, lk_client *client, const char *path,
                       const lk_lock_config *config);

/**
 * Make another handle for the same lock, which is another owner: of the same
 * kind, for the same client, and with the same options but for the callback. No
 * request is sent.
 *
 * @return 0; LK_ERR_BAD_ARGUMENT: `l` is a side of a read-write lock, see
 *         lk_rwlock_clone(); LK_ERR_NO_MEMORY. After an error
 *         `*out` is NULL.
 */
LK_API int lk_lock_clone(lk_lock **out, const lk_lock *l,
                         lk_lock_event_cb on_event, void *arg);

/** Free the handle. A held lock is released, even if it was acquired several
    times, without waiting for the reply; an acquire under way ends with
    LK_ERR_CLOSED first. NULL is allowed. */
LK_API void lk_lock_free(lk_lock *l);

/** Do what lk_lock_free() does, and keep the handle, as if it were new. For one
    side of a read-write lock, too; the other side is not changed. */
LK_API void lk_lock_reset(lk_lock *l);

/** Completes an acquire, a release or a verify. */
typedef void (*lk_lock_cb)(lk_lock *l, int err, void *arg);

/**
 * Acquire. `timeout_ms`: LK_NO_LIMIT (-1) waits for ever; a timeout above 0
 * covers everything: connecting, queueing, and queueing anew. 0 and other
 * negative timeouts have passed already, see "Timeouts" in <latchkey/client.h>.
 * A handle that holds acquires again, regardless of the timeout.
 *
 * `done` gets 0: the lock is held, see lk_lock_token(); or
 *   LK_ERR_QUEUE_FULL (max_queue), LK_ERR_DEADLINE, LK_ERR_CANCELLED: the own
 *     node, if it was created, is deleted in the background;
 *   LK_ERR_NO_AUTH: no CREATE or READ permission on the directory, no CREATE
 *     permission where the directory is to be created, or, after a lost
 *     connection, no READ permission on the own node;
 *   LK_ERR_NO_NODE: other clients deleted the directory ten times in a row, or
 *     the own node three times;
 *   LK_ERR_REPLY_TOO_BIG: the list of the queue is larger than the client's
 *     `receive_limit`. The own node is deleted in the background; with servers
 *     before 3.6 it may stay, see left_behind of lk_lease_config;
 *   LK_ERR_TOO_BIG: the directory does not exist, and its path has more than
 *     1,400 bytes and so many parents that their creates exceed 1 MiB; see
 *     lk_create_with_parents();
 *   LK_ERR_SEQ_UNSAFE: the sequence numbers of the directory are near 2^31,
 *     where they wrap around: drain the queue and delete the directory;
 *   LK_ERR_SESSION_EXPIRED (see fail_on_expiry);
 *   LK_ERR_EPHEMERAL_ON_LOCAL_SESSION: the servers have localSessionsEnabled,
 *     and not localSessionsUpgradingEnabled;
 *   LK_ERR_INVALID_ACL, LK_ERR_NO_CHILDREN_FOR_EPHEMERALS,
 *   LK_ERR_QUOTA_EXCEEDED and other errors of a create;
 *   LK_ERR_AUTH_FAILED, LK_ERR_CLOSED, LK_ERR_NO_MEMORY, LK_ERR_TOO_MANY;
 *   LK_ERR_LOST: acquired again, but lost before `done` was called.
 *
 * @return 0: `done` is called exactly once, after this function has returned;
 *         LK_ERR_STATE: this handle is acquiring already, or its lock is lost
 *         and was not released since; LK_ERR_DEADLINE: the timeout has passed
 *         already, and this handle does not hold; LK_ERR_BAD_ARGUMENT; and what
 *         lk_create2() returns: LK_ERR_NO_MEMORY, LK_ERR_TOO_BIG (the data),
 *         LK_ERR_CLOSED, LK_ERR_AUTH_FAILED, LK_ERR_FORKED and others.
 */
LK_API int lk_lock_acquire(lk_lock *l, int64_t timeout_ms, lk_lock_cb done,
                           void *arg);

/** The same with a deadline on lk_client_clock(), or LK_NO_LIMIT. */
LK_API int lk_lock_acquire_until(lk_lock *l, int64_t deadline_ms,
                                 lk_lock_cb done, void *arg);

/**
 * Acquire the lock if it is free, and wait neither for others nor for a
 * connection. `done` gets what it gets from lk_lock_acquire(); or LK_ERR_BUSY,
 * or LK_ERR_NOT_CONNECTED: the connection was lost before the lock was granted.
 * After both the own node, if it was created, is deleted in the background. If
 * the server falls silent, LK_ERR_NOT_CONNECTED comes when the client gives it
 * up. A handle that holds acquires again, without a connection, too.
 *
 * @return as lk_lock_acquire(); LK_ERR_NOT_CONNECTED: there is no connection to
 *         a server with a quorum (the state is not LK_STATE_CONNECTED).
 */
LK_API int lk_lock_try(lk_lock *l, lk_lock_cb done, void *arg);

/** The same, but it waits for a connection, and goes on with the next one if
    the connection is lost. `done` gets LK_ERR_DEADLINE instead of
    LK_ERR_NOT_CONNECTED. */
LK_API int lk_lock_try_until(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                             void *arg);

/** End an acquire under way with LK_ERR_CANCELLED, before this returns; without
    one, do nothing. A cancelled acquire never holds. If the handle held the
    lock before that acquire, it still holds, with the count that it had. */
LK_API void lk_lock_cancel(lk_lock *l);

/**
 * Count down, and release at 0: the delete of the own node is sent at once.
 * Finish all work on the resource before this call. `done` NULL: no callback.
 * Otherwise `done` gets 0 when the node no longer exists, because of this
 * delete or because the session ended, or when the client has given up the
 * session (`give_up_ms`): then the servers may keep the node for longer, see
 * lk_client_abandoned_session_end(). So 0 does not prove that the lock was held
 * until now: lk_lock_ok() before the release does. LK_ERR_DEADLINE: the delete
 * was not confirmed within 1.5 s and goes on in the background; LK_ERR_NO_AUTH:
 * the node stays until the session ends; LK_ERR_CLOSED: the client or the
 * handle was freed before one of these. Whatever `done` gets, the lock is
 * released. The next acquire may follow at once. If the count does not reach 0,
 * `done` gets 0 in the next turn of the loop.
 *
 * @return 0; LK_ERR_NOT_HELD; LK_ERR_LOST: the lock was lost; the handle is
 *         idle now, and `done` is not called; LK_ERR_STATE: `done` of the
 *         previous release has not been called yet, and this one has a `done`,
 *         too; LK_ERR_FORKED.
 */
LK_API int lk_lock_release(lk_lock *l, lk_lock_cb done, void *arg);

/** The same, with a deadline on lk_client_clock() instead of 1.5 s.
    LK_NO_LIMIT: `done` is called when the node is deleted, at the latest when
    the session ends or is given up. If the deadline is not later than the
    clock, the delete is sent, and `done` gets LK_ERR_DEADLINE in the next turn
    of the loop. */
LK_API int lk_lock_release_until(lk_lock *l, int64_t deadline_ms,
                                 lk_lock_cb done, void *arg);

/** In a forked child no lock is held: this is LK_LOCK_IDLE, the functions below
    answer for a lock that is not held, and acquire and release return
    LK_ERR_FORKED. */
LK_API lk_lock_state lk_lock_get_state(const lk_lock *l);

/** Whether the lock is held for certain: it is not unsure, and the lease
    deadline has not passed, by the clock read now. Call it right before each
    use of the resource. A holder whose lock is unsure can finish what it has
    begun until the deadline, while lk_lock_deadline() > lk_client_clock(). It
    does not ask the servers: if an operator deletes the own node, it is true
    until the event LK_LOCK_EVENT_LOST; lk_lock_verify() says how late that may
    be. */
LK_API bool lk_lock_ok(const lk_lock *l);

/** Lease deadline in ms on lk_client_clock(); INT64_MIN: not held. */
LK_API int64_t lk_lock_deadline(const lk_lock *l);

/** The fencing token: the zxid that created the own node. 0: not held. */
LK_API uint64_t lk_lock_token(const lk_lock *l);

/** The path of the own node, or NULL if there is none; valid until the next
    event. */
LK_API const char *lk_lock_node(const lk_lock *l);

/** The path of the lock, as given to lk_lock_new(). */
LK_API const char *lk_lock_path(const lk_lock *l);

/** How many acquires of this handle have not been released. */
LK_API size_t lk_lock_count(const lk_lock *l);

/**
 * Check with a quorum that the own node exists, which renews the lease. From
 * then on the node is watched, and its deletion is reported at once; without
 * this call a heartbeat sets the watch, up to half the session timeout after
 * the grant. `done` may be NULL; it gets 0: held; LK_ERR_LOST,
 * after the LOST event; LK_ERR_UNSURE: the connection was lost, or the server
 * is overloaded; LK_ERR_NOT_HELD: released meanwhile; LK_ERR_CLOSED: freed
 * meanwhile.
 * @return 0, LK_ERR_NOT_HELD, LK_ERR_LOST, LK_ERR_STATE (one is under way),
 *         and what lk_multi() returns.
 */
LK_API int lk_lock_verify(lk_lock *l, lk_lock_cb done, void *arg);

/**
 * Send `ops` as a transaction that the server executes only while the lock is
 * held: it begins with a check of the own node. `done` gets LK_ERR_LOST if the
 * node does not exist; then no operation was executed. results[i] belongs to
 * ops[i]; the check has no result.
 * @return as lk_multi(), LK_ERR_NOT_HELD, LK_ERR_LOST.
 */
LK_API int lk_lock_guarded_multi(lk_lock *l, const lk_op *ops, size_t count,
                                 const lk_call *call, lk_multi_cb done,
                                 void *arg);

#ifdef __cplusplus
}
#endif
#endif
