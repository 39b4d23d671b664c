/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LOCK_H
#define LK_LOCK_H

/**
 * @file
 * A fair, re-entrant, exclusive lock: Curator's InterProcessMutex on the same
 * znodes. Contenders queue as ephemeral sequential children of the lock's
 * path, which is a container made on demand; the lowest number holds.
 *
 * A handle is one owner. Acquiring again with the handle that holds counts up
 * and costs nothing; another handle, also of this process, queues behind.
 *
 * What a holder knows:
 *   - the fencing token: grows with every grant; whoever the lock protects
 *     should refuse a smaller token than the largest it has seen;
 *   - the lease deadline (<latchkey/lease.h>): until then nobody else holds;
 *   - events: UNSURE before the deadline passes without news, HELD when the
 *     news came after all, LOST once, at the end. A lost lock is never
 *     acquired again behind its holder's back.
 *
 * When the session expires a holder is told LOST; who waits is told PLACE_LOST
 * and queues anew in the next session, within the same timeout (fail_on_expiry:
 * the acquire ends). When the client is closed, freed or refused for good,
 * holders are told LOST and acquires end, with the client's error; the handle
 * is still to be freed. lk_client_close() does so before it returns: another
 * client may hold as soon as a server has executed closeSession.
 *
 * A resumed session (`resume` in lk_client_config) keeps the nodes of the
 * client that had it before. The locks of that client stay held, and its places
 * in queues stay, until the session ends or the nodes are deleted: no
 * handle of the new client owns them. Its own acquires queue behind them.
 *
 * Threads, callbacks: as the client. Every callback may free the handle.
 */

#include <latchkey/lease.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_lock lk_lock;

typedef enum lk_lock_state {
  LK_LOCK_IDLE,
  LK_LOCK_ACQUIRING,
  LK_LOCK_HELD,
  LK_LOCK_UNSURE, /**< held as far as is known, but the lease runs out */
  LK_LOCK_LOST    /**< until lk_lock_release() */
} lk_lock_state;

/** What on_event is told. */
typedef enum lk_lock_event_type {
  /** Acquiring: the place in the queue is known or has changed: `position`
      (1: the next to hold) and `holder`, the node of the lowest contender. */
  LK_LOCK_EVENT_WAITING,
  /** Acquiring: our node is gone (deleted by somebody, or the session expired);
      the attempt starts anew at the end of the queue. `err` says which. */
  LK_LOCK_EVENT_PLACE_LOST,
  /** Holding: the connection broke; `deadline_ms` is what remains certain. */
  LK_LOCK_EVENT_SUSPENDED,
  /** Holding: `margin_ms` are left, or none at all after a pause. Stop. */
  LK_LOCK_EVENT_UNSURE,
  /** Holding: proven again after UNSURE. */
  LK_LOCK_EVENT_HELD,
  /** The lock is gone; `err`: LK_ERR_NO_NODE (somebody deleted our node),
      LK_ERR_SESSION_EXPIRED, LK_ERR_CLOSED, LK_ERR_AUTH_FAILED. */
  LK_LOCK_EVENT_LOST,
  /** The queue also holds `node` of another kind of lock or layout, which may
      not wait for us (Curator's read-write lock beside its mutex, a semaphore's
      "leases", any sequential node of another program). Told once. */
  LK_LOCK_EVENT_MIXED_QUEUE,
  /** Our node cannot be read (its access list): a deletion by somebody else
      will be noticed late, by the beat. Told once. */
  LK_LOCK_EVENT_UNWATCHED,
  /** Holding: somebody asks us to let go; see LK_REVOKE_MESSAGE. Told once a
      grant; without `revocable` perhaps a quarter of the session timeout late.
   */
  LK_LOCK_EVENT_REVOKED
} lk_lock_event_type;

/**
 * What Curator's revocation writes into the node of a holder who is asked to
 * let go: lk_set() it with version -1 to a node that a WAITING event or a list
 * names (LK_ERR_NO_NODE: it has let go already). A holder should then release,
 * and need not. Those behind it are not disturbed.
 */
#define LK_REVOKE_MESSAGE "__REVOKE__"

/** What a holder with `announce` writes behind its data. */
#define LK_ANNOUNCEMENT "__HEAD__"

typedef struct lk_lock_event {
  lk_lock_event_type type;
  int err;
  size_t position;     /**< WAITING; 0: there is no queue */
  const char *node;    /**< WAITING, MIXED_QUEUE: a full path; borrowed */
  int64_t deadline_ms; /**< SUSPENDED, UNSURE, HELD: on lk_client_clock() */
} lk_lock_event;

/**
 * How the nodes of a queue are named. Who is to exclude one another uses the
 * same. Of all but Curator's the directory stays when it is empty, and who
 * holds the write side of a read-write lock cannot take its read side too
 * (LK_ERR_DEADLOCK): the others there would not know what that means.
 */
typedef enum lk_layout {
  /** "_c_UUID-lock-N", "_c_UUID-__READ__N", "_c_UUID-__WRIT__N". */
  LK_LAYOUT_CURATOR,
  /**
   * kazoo's Lock and WriteLock "HEX__lock__N" and ReadLock "HEX__rlock__N",
   * where HEX is 32 digits. A mutex is a writer: it keeps readers out, and they
   * it. kazoo's Lock does not wait for readers, kazoo's or ours; its ReadLock
   * (2.8) also waits for writers behind it, which wait for it: give it a
   * timeout.
   */
  LK_LAYOUT_KAZOO,
  /**
   * Names without a unique part, as many programs make by hand: for a mutex
   * `prefix` and the number, for a read-write lock "r-N" and "w-N". Contenders
   * are nodes with exactly such a name, with or without "UUID-" in front.
   * A UUID stands in the node instead, behind `data` and a blank, so that we
   * know it again when the answer to the create was lost. As numbers start
   * anew with the directory, nobody should delete that while it is in use: who
   * held before could take another's node for its own.
   */
  LK_LAYOUT_NATIVE,
  /** The same with "UUID-" in front of our names, which is better where all
      who contend are ours: others may take the UUID for the number. */
  LK_LAYOUT_NATIVE_UUID
} lk_layout;

/** Options of a lock. Set `size`, leave at 0 what should be as usual. All is
    copied. */
typedef struct lk_lock_config {
  size_t size;   /**< sizeof(lk_lock_config) */
  lk_bytes data; /**< kept in our node for people to read; default empty. Not
                      LK_REVOKE_MESSAGE, and not ending with LK_ANNOUNCEMENT */
  const lk_acls *acl;        /**< of our node; NULL: open. All contenders need
                                  READ; and READ, CREATE and DELETE on the
                                  directory */
  const lk_acls *parent_acl; /**< of directories made; NULL: as `acl` */
  bool persistent_parents;   /**< make plain nodes, not containers, where kazoo
                                  shares the path */
  bool unsure_when_suspended; /**< UNSURE as soon as the connection breaks */
  bool revocable; /**< learn at once when asked to let go: one more read for
                       each grant */
  bool fail_on_expiry; /**< end an attempt whose session expires with
                            LK_ERR_SESSION_EXPIRED instead of queueing anew */
  /** End an attempt that finds more than so many ahead of it, holders among
      them, with LK_ERR_QUEUE_FULL. 0: it waits behind however many. */
  size_t max_queue;
  /** Where an attempt may be turned away (timeout 0, max_queue), list the queue
      first, and make no node only to take it back. It costs one more round trip
      where the lock is free, and saves two writes where it is not: for locks
      that are mostly found held. Of no effect in semaphores and multi-locks. */
  bool peek;
  /** For queues of a thousand and more, where all users are of this library and
      set it: a holder that has waited says in its node that it is the first, so
      that the one behind need not list the queue to know. That is one write for
      each grant after a wait; the grant does not wait for it. It reaches the
      contender behind if the lock is held for some round trips. Contenders and
      holder need WRITE on their own nodes. Of no effect in semaphores and
      read-write locks; in Curator's layout only. */
  bool announce;
  /** Handles of one client for one path (in one layout, with one prefix) with
      this option queue among themselves behind one node, in order: many owners
      in one process cost the server as much as one, and handing on to the next
      costs nothing. After 16 such handoffs in a row the node goes to the end of
      the queue, so that others get their turn. All of these handles have the
      options of the first of them. Tokens: see lk_lock_handoffs(). For mutexes
      only: others refuse it with LK_ERR_BAD_ARGUMENT. */
  bool local_queue;
  lk_layout layout; /**< semaphores: Curator's or kazoo's */
  const char *prefix; /**< of a native mutex, nothing else; NULL: "seq-". It may
                           be empty, and is neither "r-" nor "w-"; without '/' */
  void (*on_event)(lk_lock *l, const lk_lock_event *event, void *arg);
  void *arg;
} lk_lock_config;

/** Whether a child of a lock's directory, called `name`, queues there, for a
    mutex or a read-write lock with this layout and prefix: its number, the
    lowest of which holds, and whether it is a reader. */
LK_API bool lk_layout_contends(lk_layout layout, const char *prefix,
                               lk_bytes name, int64_t *number, bool *shared);

/**
 * Make a handle for the lock at `path` (absolute, copied). No request is sent.
 * Free it before `client`; <latchkey/lease.h> says what happens otherwise.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_BAD_PATH ("/" too), LK_ERR_BAD_ARGUMENT.
 *         After an error `*out` is NULL.
 */
LK_API int lk_lock_new(lk_lock **out, lk_client *client, const char *path,
                       const lk_lock_config *config);

/** Free. A lock that is held is released, without waiting, whatever its count;
    an acquire under way ends with LK_ERR_CLOSED first. NULL is fine. */
LK_API void lk_lock_free(lk_lock *l);

/** What lk_lock_free() does, and the handle stays, as if made anew. Also for a
    side of a read-write lock; the other side keeps what it has. */
LK_API void lk_lock_reset(lk_lock *l);

/** Ends an acquire, a release or a verify. */
typedef void (*lk_lock_cb)(lk_lock *l, int err, void *arg);

/**
 * Acquire. `timeout_ms`: LK_NO_LIMIT waits for ever; 0 takes the lock only if
 * it is free, and asks the server once; every other negative one has passed
 * already, as "Timeouts" in <latchkey/client.h> says. An acquire may be made
 * while there is no connection, or only one to a server without a quorum: it
 * begins when there is one, for which a timeout of 0 waits as long as it takes.
 * All of it is one deadline: connecting, queueing, starting anew. What this
 * handle holds already is acquired again whatever the timeout.
 *
 * `done` gets 0: it is held, see lk_lock_token(); or
 *   LK_ERR_BUSY (timeout 0), LK_ERR_QUEUE_FULL (max_queue), LK_ERR_DEADLINE,
 *     LK_ERR_CANCELLED: our node, if there was one, is deleted in the
 *     background;
 *   LK_ERR_NO_AUTH: no CREATE or READ on the directory, no CREATE where it is
 *     to be made, or, after a broken connection, no READ on our own node;
 *   LK_ERR_NO_NODE: the directory vanished ten times in a row, or our node
 *     three times;
 *   LK_ERR_TOO_BIG: the list of the queue is larger than the client's
 *     `receive_limit`; our node is deleted in the background, too (by a server
 *     before 3.6 perhaps not: see left_behind of lk_lease_config);
 *   LK_ERR_SEQ_UNSAFE; LK_ERR_SESSION_EXPIRED (see fail_on_expiry);
 *   LK_ERR_INVALID_ACL, LK_ERR_NO_CHILDREN_FOR_EPHEMERALS,
 *   LK_ERR_QUOTA_EXCEEDED and whatever else the server says of a create;
 *   LK_ERR_AUTH_FAILED, LK_ERR_CLOSED, LK_ERR_NO_MEMORY, LK_ERR_TOO_MANY;
 *   LK_ERR_LOST: acquired again, but lost before `done` could be called.
 *
 * @return 0: `done` is called exactly once, and not before this returned;
 *         LK_ERR_STATE: this handle is acquiring already, or its lock is lost
 *         and not yet released; LK_ERR_BAD_ARGUMENT; LK_ERR_NO_MEMORY and what
 *         else lk_create2() is refused with, such as LK_ERR_TOO_BIG (the data),
 *         LK_ERR_CLOSED, LK_ERR_AUTH_FAILED, LK_ERR_FORKED.
 */
LK_API int lk_lock_acquire(lk_lock *l, int64_t timeout_ms, lk_lock_cb done,
                           void *arg);

/** The same with a deadline on lk_client_clock(), or LK_NO_LIMIT: for a program
    that counts down. One that is not later than the clock has passed, 0 too: it
    waits for nothing and asks no server. */
LK_API int lk_lock_acquire_until(lk_lock *l, int64_t deadline_ms,
                                 lk_lock_cb done, void *arg);

/** End an acquire with LK_ERR_CANCELLED, before this returns; otherwise
    nothing. A cancelled attempt never holds. One that acquires again and has
    not been told yet is taken back. */
LK_API void lk_lock_cancel(lk_lock *l);

/**
 * Count down, and release at 0. `done` NULL: the delete is sent and nobody
 * waits; what must be finished before others hold has to be finished before
 * this call. Otherwise `done` gets 0 when the node is gone (also with its
 * session); LK_ERR_DEADLINE: it was not known to be gone after 1.5 s, and is
 * deleted in the background; LK_ERR_NO_AUTH: it stays until the session ends;
 * LK_ERR_CLOSED: the client was freed first. Whatever `done` gets, the lock is
 * released. The handle may be used for the next acquire at once; freeing it
 * ends `done` with LK_ERR_CLOSED.
 * When only the count goes down, `done` gets 0 in the next turn.
 *
 * @return 0; LK_ERR_NOT_HELD; LK_ERR_LOST: it was lost (now the handle is idle,
 *         `done` is not called); LK_ERR_STATE: `done` of the release before
 *         has not been called yet, and this one wants to be called, too.
 */
LK_API int lk_lock_release(lk_lock *l, lk_lock_cb done, void *arg);

/** The same, where `done` waits until a deadline on lk_client_clock() instead.
    LK_NO_LIMIT: until the node is gone; a server that does not answer makes
    that as long as the session lasts. Where the deadline is not later than the
    clock, the delete is sent all the same, and `done` gets LK_ERR_DEADLINE in
    the next turn. */
LK_API int lk_lock_release_until(lk_lock *l, int64_t deadline_ms,
                                 lk_lock_cb done, void *arg);

LK_API lk_lock_state lk_lock_get_state(const lk_lock *l);

/** Whether the lock is held and, by the clock read now, the lease deadline has
    not passed. Ask right before acting. */
LK_API bool lk_lock_ok(const lk_lock *l);

/** Lease deadline in ms on lk_client_clock(); INT64_MIN: not held. */
LK_API int64_t lk_lock_deadline(const lk_lock *l);

/** The fencing token: the zxid that created our node. 0: not held. */
LK_API uint64_t lk_lock_token(const lk_lock *l);

/** With local_queue: how many of this process have held by the same node
    before. Then token and turn together grow with every grant: compare the
    token first. 0: the first, or not held, or no local_queue. */
LK_API uint64_t lk_lock_handoffs(const lk_lock *l);

/** The path of our node, or NULL while there is none; until the next event.
    With local_queue: while it is held. */
LK_API const char *lk_lock_node(const lk_lock *l);

/** The path the handle was made for. */
LK_API const char *lk_lock_path(const lk_lock *l);

/** How often this handle has acquired and not released. */
LK_API size_t lk_lock_count(const lk_lock *l);

/**
 * Ask a quorum now whether we hold; renews the lease. Supervision begins with
 * it, at the latest: our node is watched, and its deletion told at once.
 * Otherwise the first beat begins it, a quarter of the session timeout after
 * the grant. `done` gets 0;
 * LK_ERR_LOST (told as an event first); LK_ERR_UNSURE: the connection broke, or
 * the server is overloaded: nothing is known; LK_ERR_NOT_HELD: released
 * meanwhile; LK_ERR_CLOSED: freed meanwhile.
 * @return 0, LK_ERR_NOT_HELD, LK_ERR_LOST, LK_ERR_STATE (one is under way),
 *         and what lk_multi() returns.
 */
LK_API int lk_lock_verify(lk_lock *l, lk_lock_cb done, void *arg);

/**
 * lk_multi() of `ops` that is executed only while we hold: exact, without a
 * token. `done` gets LK_ERR_LOST if we do not, then nothing was done; the
 * results are those of `ops`. Its client argument is the lock's.
 * @return as lk_multi(), LK_ERR_NOT_HELD, LK_ERR_LOST.
 */
LK_API int lk_lock_guarded(lk_lock *l, const lk_op *ops, size_t count,
                           const lk_call *call, lk_multi_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
