/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_H
#define LK_SYNC_H

/**
 * @file
 * One call, one result: for programs with threads. A client handle has a thread
 * of its own, which runs the loop, keeps the session alive and proves what is
 * held, whatever its callers compute meanwhile. Built where <latchkey/ev.h> is.
 *
 * Threads: every function may be called from every thread, with two limits.
 * Frees are the last call for their object. What waits must not be called from
 * a callback: it returns LK_ERR_STATE there (and frees do nothing).
 *
 * Callbacks run on the handle's own thread, which blocks all signals. While one
 * runs nothing else happens for the session: be short, do not wait for another
 * thread, and hold no mutex during a call that a callback takes as well.
 *
 * Waiting: every call that waits takes a `const lk_sync_call *`, NULL for none,
 * with a deadline and a lk_sync_cancel. It ends at the latest
 *   - at the deadline, which covers everything: connecting, queueing, waiting
 *     for an answer (LK_ERR_DEADLINE);
 *   - when it is cancelled (LK_ERR_CANCELLED);
 *   - when the handle is closed or freed (LK_ERR_CLOSED, or LK_ERR_NOT_SENT for
 *     a write that never left).
 *
 * pthread_cancel(): no function here is a cancellation point, not even one that
 * waits. A thread that is cancelled in one ends at its next cancellation point
 * behind it; use a lk_sync_cancel to end the wait itself. A thread that ends
 * while it holds a lock releases it. The cancelability type must be deferred.
 *
 * NULL: a function whose object is NULL returns LK_ERR_BAD_ARGUMENT, one
 * without errors what it gives of a closed client or of a lock that this thread
 * does not hold (a path or a side: NULL; the clock: 0), and frees do nothing. A
 * path that is NULL is LK_ERR_BAD_PATH. `out` of a request may be NULL, that of
 * a constructor not (LK_ERR_BAD_ARGUMENT).
 *
 * Fork: a child has no such thread, so the handle and its locks are dead in it:
 * calls return LK_ERR_FORKED at once, nobody holds, nothing reaches the servers
 * or the parent, and frees do nothing (the memory was perhaps being changed
 * when the process forked; it goes with exec or exit). A child that is forked
 * inside a callback must call exec or _exit before the callback returns.
 */

#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>
#include <latchkey/subscribe.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- life ------------------------------------------------------------- */

/** A client and its thread. */
typedef struct lk_sync_client lk_sync_client;

/** Options of a client handle. Set `size`, leave at 0 what should be as usual.
    All is copied. */
typedef struct lk_sync_config {
  size_t size; /**< sizeof(lk_sync_config) */
  /** NULL: as usual. Its allocator is called from all threads, at the same
      time, and must be no cancellation point. Its log callback is called from
      the handle's thread, and from lk_sync_client_new(). */
  const lk_client_config *client;
  const lk_lease_config *lease; /**< NULL: the defaults */
  /** The session's state changed; `err` as in lk_listener. A callback, perhaps
      before lk_sync_client_new() has returned. May be NULL. */
  void (*on_state)(lk_sync_client *c, lk_state state, int err, void *arg);
  void *arg;
} lk_sync_config;

/**
 * Make a client and start its thread. Does not wait for a connection: calls do.
 * `config` NULL: as usual.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_HOSTS,
 *         LK_ERR_SYSTEM (no thread, no pthread_key, or fewer than four
 *         descriptors left; the log says which), LK_ERR_UNIMPLEMENTED (TLS, in
 *         a build without OpenSSL). After an error `*out` is NULL.
 */
LK_API int lk_sync_client_new(lk_sync_client **out,
                              const lk_sync_config *config);

/**
 * End the session; the handle stays. Locks are given up first: holders are told
 * LK_LOCK_EVENT_LOST with LK_ERR_CLOSED, and lk_sync_lock_ok() is false before
 * a server hears of it. Acquires end with LK_ERR_CLOSED at once, requests
 * within 1.5 s: with their answer, if it comes before, with LK_ERR_NOT_SENT if
 * they are writes that never left, or with LK_ERR_CLOSED.
 * Every later call returns LK_ERR_CLOSED. Waits 1.5 s at most.
 *
 * @return 0: its ephemeral nodes are gone, or there was no session; else as
 *         lk_client_close():
 *         LK_ERR_NOT_SENT, LK_ERR_IN_DOUBT, LK_ERR_DEADLINE (the session lives
 *         until its timeout has passed), LK_ERR_AUTH_FAILED,
 *         LK_ERR_SESSION_EXPIRED; LK_ERR_CLOSED: closed or closing already;
 *         LK_ERR_STATE, LK_ERR_FORKED.
 */
LK_API int lk_sync_client_close(lk_sync_client *c);

/**
 * Free; NULL is fine. Locks, subscriptions, watch handles and cancels of `c`
 * must have been freed before. Without lk_sync_client_close() the session lives
 * until its timeout has passed. Calls that wait in other threads end with
 * LK_ERR_CLOSED (writes that never left: LK_ERR_NOT_SENT), and have left when
 * this returns; none may begin any more, and no thread that has held a lock of
 * `c` may end meanwhile. The usual order: close, join the threads, free.
 */
LK_API void lk_sync_client_free(lk_sync_client *c);

/** What was told last. Does not wait. */
LK_API lk_state lk_sync_client_state(const lk_sync_client *c);

/** The clock of deadlines, read now, in ms. Does not wait. */
LK_API int64_t lk_sync_client_clock(const lk_sync_client *c);

/**
 * Why the last connection or attempt ended: the error, and a text of at most
 * `size` bytes with the final NUL; 0 and "" if none has. Waits for the handle's
 * thread alone. What to say after an LK_ERR_DEADLINE.
 */
LK_API int lk_sync_client_last_error(lk_sync_client *c, char *text,
                                     size_t size);

/** What kind of failure that was, if it was LK_ERR_TLS; else LK_TLS_OTHER, also
    for a closed client. Waits as lk_sync_client_last_error(). */
LK_API lk_tls_cause lk_sync_client_tls_cause(lk_sync_client *c);

/** Other servers from now on: lk_client_set_hosts(), with its results, or
    LK_ERR_STATE. Waits for the handle's thread alone, not for a move. */
LK_API int lk_sync_client_set_hosts(lk_sync_client *c, const char *hosts);

/**
 * Call `what` as a callback, and wait until it has returned. There the whole
 * asynchronous library may be used with `client`, but that must not be
 * closed or freed. Works until lk_sync_client_free(), also after a close.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_CLOSED, LK_ERR_STATE, LK_ERR_FORKED.
 */
LK_API int lk_sync_client_run(lk_sync_client *c,
                              void (*what)(lk_client *client, void *arg),
                              void *arg);

/* ---- calls ------------------------------------------------------------ */

/** Ends calls: once set it ends every call that was given it, those that wait
    and those to come, until it is cleared. */
typedef struct lk_sync_cancel lk_sync_cancel;

/** @return 0, LK_ERR_NO_MEMORY, LK_ERR_FORKED. After an error `*out` is NULL.
 */
LK_API int lk_sync_cancel_new(lk_sync_cancel **out, lk_sync_client *c);
/** Does not wait, also works in callbacks, that of the log included, and in
    signal handlers. */
LK_API void lk_sync_cancel_set(lk_sync_cancel *x);
LK_API void lk_sync_cancel_clear(lk_sync_cancel *x);
/** Free, when no call has it any more. NULL is fine. */
LK_API void lk_sync_cancel_free(lk_sync_cancel *x);

/** A watch that was asked for with a handle; see lk_sync_call. */
typedef struct lk_sync_watch lk_sync_watch;

/**
 * Options of one call; NULL stands for none. Set `size`.
 *
 * lk_sync_exists(), lk_sync_get(), lk_sync_get_children() and
 * lk_sync_get_config() may set a watch: give `on_event`. It stands when the
 * call returned 0 (lk_sync_exists(): also LK_ERR_NO_NODE, then waiting for the
 * creation) and is called once: with the event, or with LK_EVENT_ENDED when it
 * is void; perhaps before the call that set it has returned. One that
 * lk_sync_add_watch() set is called for each event, LK_EVENT_ENDED being the
 * last.
 */
typedef struct lk_sync_call {
  size_t size;        /**< sizeof(lk_sync_call) */
  int64_t timeout_ms; /**< LK_ERR_DEADLINE after so long; 0: never. See
                           "Timeouts" in <latchkey/client.h> */
  bool repeat; /**< reads and sync: ask again after a lost connection. For
                    writes: LK_ERR_BAD_ARGUMENT. Locks do so by themselves */
  lk_sync_cancel *cancel; /**< or NULL. A write that was cancelled may be done,
                               and one that waits for a connection may still
                               leave, until its deadline */
  bool until_disconnect;  /**< the watch ends when the connection does */
  /** A callback; NULL: no watch. `event` is borrowed until it returns. */
  void (*on_event)(lk_sync_client *c, const lk_event *event, void *arg);
  void *watch_arg;
  /** Gets a handle, to be freed with lk_sync_watch_free(), or NULL if no watch
      stands. Itself NULL: nobody will end the watch early. */
  lk_sync_watch **watch;
  int64_t deadline_ms; /**< LK_ERR_DEADLINE at this time on
                            lk_sync_client_clock(); 0: never */
} lk_sync_call;

/** Drop a watch that has not been called its last, on the server too, and free
    its handle. When this returns the callback has returned or is never called.
   The callback itself may do this. NULL is fine. */
LK_API void lk_sync_watch_free(lk_sync_watch *w);

/** What a call brought, copied, in one block of memory; the caller's, until
    lk_sync_result_free(). */
typedef struct lk_sync_result {
  lk_stat stat;     /**< create: of the new node; get, children, get_acl */
  const char *path; /**< create: as made, with its sequence number */
  lk_bytes data;    /**< get, get_config, reconfig. A NUL follows, which is not
                       counted */
  const lk_bytes *names; /**< children, list, ephemerals (paths): `count`, in no
                              order, a NUL after each */
  const lk_acls *acl;    /**< get_acl. A NUL after each text */
  const lk_identity *ids; /**< who_am_i: `count`. A NUL after each text */
  const lk_read_result
      *reads; /**< multi_read: `count`. A NUL after each text */
  const lk_op_result *results; /**< multi: `count` */
  size_t count;
  int64_t zxid; /**< create, multi: of the transaction */
} lk_sync_result;

/** NULL is fine. Also after its client is gone, and in a forked child. */
LK_API void lk_sync_result_free(lk_sync_result *r);

/* ---- requests --------------------------------------------------------- */

/*
 * As their namesakes in <latchkey/client.h>, which say what each does and what
 * each is refused with; both kinds of errors are returned. `out` may be NULL;
 * it gets a result, or NULL where there is none, which is so after an error.
 * Also: LK_ERR_CANCELLED, LK_ERR_STATE (called from a callback), and
 * LK_ERR_BAD_ARGUMENT for a `call` without its size.
 * LK_ERR_NO_MEMORY: no write was done; a read brought more than there is room
 * for. A call that was cancelled or whose deadline passed may have been done.
 */

/** lk_create2(): gives path and stat. LK_CONTAINER is among the flags. */
LK_API int lk_sync_create(lk_sync_client *c, lk_sync_result **out,
                          const char *path, lk_bytes data, const lk_acls *acl,
                          int flags, const lk_sync_call *call);
LK_API int lk_sync_delete(lk_sync_client *c, const char *path, int32_t version,
                          const lk_sync_call *call);
/** `out` is filled in when 0 is returned. */
LK_API int lk_sync_exists(lk_sync_client *c, lk_stat *out, const char *path,
                          const lk_sync_call *call);
/** Gives data and stat. */
LK_API int lk_sync_get(lk_sync_client *c, lk_sync_result **out,
                       const char *path, const lk_sync_call *call);
/** `out` is filled in when 0 is returned. */
LK_API int lk_sync_set(lk_sync_client *c, lk_stat *out, const char *path,
                       lk_bytes data, int32_t version,
                       const lk_sync_call *call);
/** Gives names and stat. */
LK_API int lk_sync_get_children(lk_sync_client *c, lk_sync_result **out,
                                const char *path, const lk_sync_call *call);
LK_API int lk_sync_sync(lk_sync_client *c, const char *path,
                        const lk_sync_call *call);
/** Gives results, also with the error of a part, if the server said which. */
LK_API int lk_sync_multi(lk_sync_client *c, lk_sync_result **out,
                         const lk_op *ops, size_t count,
                         const lk_sync_call *call);
/** lk_create_ttl(): gives path and stat. */
LK_API int lk_sync_create_ttl(lk_sync_client *c, lk_sync_result **out,
                              const char *path, lk_bytes data,
                              const lk_acls *acl, int flags, int64_t ttl_ms,
                              const lk_sync_call *call);
/** `out` is filled in when 0 is returned. */
LK_API int lk_sync_count(lk_sync_client *c, int32_t *out, const char *path,
                         const lk_sync_call *call);
/** Gives names, which are paths. */
LK_API int lk_sync_ephemerals(lk_sync_client *c, lk_sync_result **out,
                              const char *prefix, const lk_sync_call *call);
/** Gives acl and stat. */
LK_API int lk_sync_get_acl(lk_sync_client *c, lk_sync_result **out,
                           const char *path, const lk_sync_call *call);
/** `out` is filled in when 0 is returned. */
LK_API int lk_sync_set_acl(lk_sync_client *c, lk_stat *out, const char *path,
                           const lk_acls *acl, int32_t version,
                           const lk_sync_call *call);
/** Gives reads. */
LK_API int lk_sync_multi_read(lk_sync_client *c, lk_sync_result **out,
                              const lk_read *reads, size_t count,
                              const lk_sync_call *call);
/** Gives ids. */
LK_API int lk_sync_who_am_i(lk_sync_client *c, lk_sync_result **out,
                            const lk_sync_call *call);
/** Gives data and stat. */
LK_API int lk_sync_get_config(lk_sync_client *c, lk_sync_result **out,
                              const lk_sync_call *call);
/** Gives data and stat. */
LK_API int lk_sync_reconfig(lk_sync_client *c, lk_sync_result **out,
                            const lk_reconfiguration *change,
                            const lk_sync_call *call);
/** `call` has `on_event`, and perhaps `watch`. */
LK_API int lk_sync_add_watch(lk_sync_client *c, const char *path,
                             lk_watch_mode mode, const lk_sync_call *call);
/** An identity whose call was cut short is added all the same. */
LK_API int lk_sync_add_auth(lk_sync_client *c, const char *scheme,
                            lk_bytes auth, const lk_sync_call *call);

/* ---- subscriptions ---------------------------------------------------- */

/**
 * The subscriptions of <latchkey/subscribe.h>, for threads: news wait until
 * they are taken, the newest alone. So a thread may be as slow as it likes;
 * what it takes is how things stood when they changed last.
 */
typedef struct lk_sync_subscription lk_sync_subscription;

/** Subscribe to the children, or to the data, of the node at `path`, which need
    not exist. `config` NULL: as usual. All is copied. Waits for the handle's
    thread alone.
    @return 0; what lk_subscribe_children() returns; LK_ERR_STATE. After an
            error `*out` is NULL. */
LK_API int lk_sync_subscribe_children(lk_sync_subscription **out,
                                      lk_sync_client *c, const char *path,
                                      const lk_subscription_config *config);
LK_API int lk_sync_subscribe_data(lk_sync_subscription **out, lk_sync_client *c,
                                  const char *path,
                                  const lk_subscription_config *config);

/**
 * Wait for news and take them: at first for the state, then for the next one
 * that differs. Each is taken once, if several threads wait by the one that has
 * waited longest. `call->repeat` is of no effect.
 *
 * @return what is told: 0 (`out` gets names or data, and stat); LK_ERR_NO_NODE:
 *         there is no such node; LK_ERR_NO_AUTH and others: it cannot be read,
 *         and goes on trying; LK_ERR_NO_MEMORY: no room for it, the next call
 *         reads again; LK_ERR_CLOSED, LK_ERR_SESSION_EXPIRED (one_session),
 *         LK_ERR_AUTH_FAILED: it is over, and each call says so.
 *         Or nothing was told: LK_ERR_DEADLINE, LK_ERR_CANCELLED, LK_ERR_STATE,
 *         LK_ERR_BAD_ARGUMENT, LK_ERR_FORKED.
 */
LK_API int lk_sync_subscription_next(lk_sync_subscription *s,
                                     lk_sync_result **out,
                                     const lk_sync_call *call);

/** End and free it, and what nobody has taken. Threads that wait for it get
    LK_ERR_CLOSED; no call may begin any more. NULL is fine. */
LK_API void lk_sync_subscription_free(lk_sync_subscription *s);

/* ---- nodes ------------------------------------------------------------ */

/* As their namesakes in <latchkey/nodes.h>, otherwise as the requests above.
   `call->repeat` is refused by lk_sync_create_with_parents() alone. */

LK_API int lk_sync_create_with_parents(lk_sync_client *c, lk_sync_result **out,
                                       const char *path, lk_bytes data,
                                       const lk_acls *acl, int flags,
                                       const lk_parents_config *parents,
                                       const lk_sync_call *call);
/** `deleted`, if it is not NULL, gets how many nodes are known to be deleted,
    whatever is returned. Nothing more is asked to go once this has returned:
    what is under way then, 256 nodes at most, may still go. */
LK_API int lk_sync_delete_recursive(lk_sync_client *c, size_t *deleted,
                                    const char *path, const lk_sync_call *call);
LK_API int lk_sync_create_reliable(lk_sync_client *c, lk_sync_result **out,
                                   const char *path, lk_bytes data,
                                   const lk_acls *acl, int flags, bool sole,
                                   const lk_sync_call *call);
/** `out` is filled in when 0 is returned. */
LK_API int lk_sync_set_reliable(lk_sync_client *c, lk_stat *out,
                                const char *path, lk_bytes data,
                                int32_t version, bool sole,
                                const lk_sync_call *call);
LK_API int lk_sync_delete_reliable(lk_sync_client *c, const char *path,
                                   int32_t version, bool sole,
                                   const lk_sync_call *call);

/* ---- locks ------------------------------------------------------------ */

/**
 * The locks of <latchkey/lock.h> and its kin, for threads: the owner is the
 * thread that acquired. It may acquire again, which costs nothing; another
 * thread queues behind it with a node of its own, as another process does. Use
 * one object for one path, from as many threads as you like.
 *
 * A thread that ends while it holds, by whatever way, releases: as a process
 * does. Whoever gets the thread's id next is a stranger. The main thread ends
 * with its process.
 */
typedef struct lk_sync_lock lk_sync_lock;

/** Options of a lock. Set `size`, leave at 0 what should be as usual. All is
    copied. */
typedef struct lk_sync_lock_config {
  size_t size;   /**< sizeof(lk_sync_lock_config) */
  lk_bytes data; /**< as in lk_lock_config, like those below */
  const lk_acls *acl;
  const lk_acls *parent_acl;
  bool persistent_parents;
  bool unsure_when_suspended;
  bool fail_on_expiry;
  bool revocable;
  size_t max_queue;
  bool peek;
  bool announce;
  bool local_queue; /**< mutexes: the threads that wait share one node */
  lk_layout layout;
  const char *prefix;
  /** What lk_lock_config.on_event is told, for all threads. `token` says whose
      grant it is about; 0: of somebody who waits. A callback. */
  void (*on_event)(lk_sync_lock *l, const lk_lock_event *event, uint64_t token,
                   void *arg);
  void *arg;
} lk_sync_lock_config;

/** Make a mutex for `path` (absolute, copied). No request is sent. `config`
    NULL: as usual. Waits for the handle's thread alone, like those below.
    @return 0, LK_ERR_NO_MEMORY, LK_ERR_BAD_PATH ("/" too),
            LK_ERR_BAD_ARGUMENT, LK_ERR_FORKED. After an error `*out` is NULL.
 */
LK_API int lk_sync_lock_new(lk_sync_lock **out, lk_sync_client *c,
                            const char *path,
                            const lk_sync_lock_config *config);

/**
 * Make a semaphore: <latchkey/semaphore.h>. Each thread that acquires holds
 * `take` permits, once: acquiring again while it holds them is refused with
 * LK_ERR_DEADLOCK. All is copied.
 * @return as lk_sync_lock_new(); what lk_semaphore_new() returns.
 */
LK_API int lk_sync_semaphore_new(lk_sync_lock **out, lk_sync_client *c,
                                 const char *path,
                                 const lk_sync_lock_config *config,
                                 const lk_semaphore_config *options);

/**
 * Make a lock of several: <latchkey/multilock.h>. All is copied.
 * @return as lk_sync_lock_new(); what lk_multilock_new() returns.
 */
LK_API int lk_sync_multilock_new(lk_sync_lock **out, lk_sync_client *c,
                                 const lk_multilock_member *members,
                                 size_t count,
                                 const lk_sync_lock_config *config,
                                 const lk_multilock_config *options);

/**
 * Make the lock of a single node: <latchkey/single.h>.
 * @return as lk_sync_lock_new(); what lk_single_new() returns.
 */
LK_API int lk_sync_single_new(lk_sync_lock **out, lk_sync_client *c,
                              const char *path,
                              const lk_sync_lock_config *config,
                              const lk_single_config *options);

/** Of what this thread holds, the token for the member at `path`; see
    lk_multilock_token(). 0 also where it is called from a callback or in a
    forked child. Waits for the handle's thread alone. */
LK_API uint64_t lk_sync_multilock_token(lk_sync_lock *l, const char *path);

/**
 * A read-write lock, <latchkey/rwlock.h>: two locks, each with all the calls
 * below. A thread that holds the write side may acquire the read side at once;
 * one that holds the read side alone and acquires the write side gets
 * LK_ERR_DEADLOCK. The sides count by themselves and are released in any order.
 */
typedef struct lk_sync_rwlock lk_sync_rwlock;

/** `on_event` of `config` is told which side it is about. No request is sent.
    @return as lk_sync_lock_new(). */
LK_API int lk_sync_rwlock_new(lk_sync_rwlock **out, lk_sync_client *c,
                              const char *path,
                              const lk_sync_lock_config *config);

/** Free both sides, each as lk_sync_lock_free() does. NULL is fine. */
LK_API void lk_sync_rwlock_free(lk_sync_rwlock *rw);

/** The sides. They belong to the read-write lock: do not free them. */
LK_API lk_sync_lock *lk_sync_rwlock_read(lk_sync_rwlock *rw);
LK_API lk_sync_lock *lk_sync_rwlock_write(lk_sync_rwlock *rw);

/**
 * Acquire the read side and release the write side: nobody writes in between.
 * After an error of the acquire the write side is as it was.
 * @return as lk_sync_lock_acquire(); LK_ERR_NOT_HELD: this thread does not hold
 *         the write side; LK_ERR_LOST: it was lost, and now neither is held.
 */
LK_API int lk_sync_rwlock_downgrade(lk_sync_rwlock *rw,
                                    const lk_sync_call *call);

/** Free; NULL is fine. Threads that wait for it get LK_ERR_CLOSED; what is held
    is released, without waiting for a server. No call may begin any more. */
LK_API void lk_sync_lock_free(lk_sync_lock *l);

/**
 * Acquire, for this thread.
 *
 * @return 0: it is held, see lk_sync_lock_token(); what `done` of
 *         lk_lock_acquire() gets and what that is refused with; LK_ERR_LOST:
 *         this thread has lost it, and must release before it acquires again;
 *         LK_ERR_CANCELLED, LK_ERR_DEADLINE: our node, if there was one, is
 *         deleted in the background; LK_ERR_STATE, LK_ERR_FORKED.
 */
LK_API int lk_sync_lock_acquire(lk_sync_lock *l, const lk_sync_call *call);

/** The same only if nobody else contends; else LK_ERR_BUSY. Waits for a
    connection, if there is none: give a deadline. */
LK_API int lk_sync_lock_try(lk_sync_lock *l, const lk_sync_call *call);

/**
 * Count down, and release at 0: the delete will be sent, nobody waits. What
 * must be finished before others hold has to be finished before this call. A
 * thread that is being cancelled releases all the same.
 *
 * @return 0; LK_ERR_NOT_HELD: not by this thread; LK_ERR_LOST: it was lost, now
 *         this thread may acquire again; LK_ERR_FORKED.
 */
LK_API int lk_sync_lock_release(lk_sync_lock *l);

/** The same, and wait until the node is gone; when only the count goes down,
    there is nothing to wait for. Whatever is returned, the lock is released.
    @return as lk_sync_lock_release(); LK_ERR_NO_AUTH: the node stays until the
            session ends; LK_ERR_DEADLINE, LK_ERR_CANCELLED, LK_ERR_CLOSED: it
            is being deleted; LK_ERR_STATE and LK_ERR_BAD_ARGUMENT (nothing was
            done). */
LK_API int lk_sync_lock_release_wait(lk_sync_lock *l, const lk_sync_call *call);

/**
 * Ask a quorum now whether this thread holds: lk_lock_verify().
 * @return 0; LK_ERR_LOST; LK_ERR_UNSURE: nothing is known; LK_ERR_NOT_HELD;
 *         LK_ERR_DEADLINE, LK_ERR_CANCELLED, LK_ERR_CLOSED; LK_ERR_STATE: one
 *         that was cut short is still under way; and what lk_multi() returns.
 */
LK_API int lk_sync_lock_verify(lk_sync_lock *l, const lk_sync_call *call);

/**
 * Wait until this thread holds for certain, or has lost the lock: what to do
 * while lk_sync_lock_ok() says no. Returns at once where that is known already.
 *
 * @return 0: lk_sync_lock_ok() says yes again; LK_ERR_LOST, LK_ERR_NOT_HELD;
 *         LK_ERR_DEADLINE and LK_ERR_CANCELLED: it is unsure still;
 *         LK_ERR_CLOSED: the client was closed, or the lock freed;
 *         LK_ERR_STATE, LK_ERR_FORKED, LK_ERR_BAD_ARGUMENT.
 */
LK_API int lk_sync_lock_wait(lk_sync_lock *l, const lk_sync_call *call);

/** lk_sync_multi() of `ops` that is executed only while this thread holds:
    lk_lock_guarded(). LK_ERR_LOST: nothing was done. LK_ERR_NOT_HELD. */
LK_API int lk_sync_lock_guarded(lk_sync_lock *l, lk_sync_result **out,
                                const lk_op *ops, size_t count,
                                const lk_sync_call *call);

/* What follows is about this thread, does not wait, and asks nobody: a read of
   memory and of the clock. In a forked child nobody holds. */

/** Whether this thread holds for certain: the lease deadline has not passed by
    the clock read now, and neither UNSURE nor LOST was decided. Ask right
    before acting. */
LK_API bool lk_sync_lock_ok(const lk_sync_lock *l);

/** The lease deadline on lk_sync_client_clock(); INT64_MIN: not held. */
LK_API int64_t lk_sync_lock_deadline(const lk_sync_lock *l);

/** The fencing token; 0: not held. */
LK_API uint64_t lk_sync_lock_token(const lk_sync_lock *l);

/** With local_queue: lk_lock_handoffs(). */
LK_API uint64_t lk_sync_lock_turn(const lk_sync_lock *l);

/** LK_LOCK_IDLE, LK_LOCK_HELD, LK_LOCK_UNSURE or LK_LOCK_LOST. */
LK_API lk_lock_state lk_sync_lock_get_state(const lk_sync_lock *l);

/** How often this thread has acquired and not released. */
LK_API size_t lk_sync_lock_count(const lk_sync_lock *l);

/**
 * A descriptor for poll() and its like in any thread: readable while what this
 * thread holds is unsure or lost. It says when a doubt begins; to wait for the
 * end of one there is lk_sync_lock_wait(). Made when first asked for, one for each
 * grant, and closed by the release: stop polling before. Do not read from it.
 *
 * @return the descriptor; LK_ERR_NOT_HELD, LK_ERR_FORKED, LK_ERR_SYSTEM (no
 *         descriptors left).
 */
LK_API int lk_sync_lock_fd(lk_sync_lock *l);

/** The path the lock was made for. */
LK_API const char *lk_sync_lock_path(const lk_sync_lock *l);

#ifdef __cplusplus
}
#endif
#endif
