/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_H
#define LK_SYNC_H

/**
 * @file
 * Blocking calls, for programs with threads. A client handle has a thread of
 * its own, which runs an event loop and sends heartbeats, independently of what
 * the callers do. It is part of every build: the thread runs libev where the
 * library has it, and poll(2) elsewhere.
 *
 * Threads: every function may be called from every thread. A function that
 * frees an object must be the last call for it.
 *
 * Callbacks are invoked on the thread of the handle, which blocks all signals.
 * While a callback runs, the session gets no heartbeats and calls do not
 * complete. So a callback must be short and must not wait for another thread. A
 * pthread mutex that a callback locks must not be held by a thread that calls a
 * function of this header. In a callback, functions that wait for a server or
 * for the thread of the handle return LK_ERR_STATE. So do the functions that
 * free clients, locks, subscriptions, candidates and members: they free
 * nothing, with a warning in the log. These work there:
 * lk_sync_client_run_on_thread(), which gives the lk_client for requests with a
 * callback; the functions lk_sync_client_... that query the client, and
 * lk_sync_client_set_hosts() and _leave_server(); the constructors of locks,
 * lk_sync_lock_release(), lk_sync_watch_free(), lk_sync_result_free(), those of
 * a lk_sync_cancel, and those that do not wait.
 *
 * Waiting: a call that waits for a server takes a `const lk_sync_call *` (NULL:
 * no options) with a deadline and a lk_sync_cancel. It returns at the latest
 *   - at the deadline, which covers connecting, queueing and waiting for the
 *     reply (LK_ERR_DEADLINE);
 *   - when it is cancelled (LK_ERR_CANCELLED);
 *   - when the handle is freed, or 1.5 s after it is closed (LK_ERR_CLOSED;
 *     LK_ERR_NOT_SENT for a write that was not sent).
 * lk_sync_client_close() has a limit of its own, 1.5 s. Other functions wait
 * for the thread of the handle only, as their comments say, and take no
 * options.
 *
 * pthread_cancel(): no function of this header is a cancellation point, not
 * even one that waits. A thread that is cancelled in a call ends at its next
 * cancellation point after the call; a lk_sync_cancel ends the call itself. The
 * cancelability type must be deferred.
 *
 * NULL: if the object is NULL, a function whose result is an error code returns
 * LK_ERR_BAD_ARGUMENT. lk_sync_client_state() returns LK_STATE_CLOSED then,
 * lk_sync_lock_get_state() LK_LOCK_IDLE, lk_sync_candidate_get_state()
 * LK_CANDIDATE_STOPPED, the functions ..._deadline() INT64_MIN, and
 * every other function NULL, false or 0. Freeing NULL does nothing. A path that
 * is NULL is LK_ERR_BAD_PATH. `out` of a request may be NULL; that of a
 * constructor may not (LK_ERR_BAD_ARGUMENT).
 *
 * Fork: a child does not have the thread of the handle. In a child all calls
 * return LK_ERR_FORKED at once, no lock is held, and nothing is sent to the
 * servers or the parent. Functions that free do nothing, since another thread
 * may have been changing the memory when the process forked; only
 * lk_sync_result_free() works. A child that is forked inside a callback must
 * call exec or _exit before the callback returns.
 */

#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/roster.h>
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

/** Options of a client handle. Set `size`; 0 selects the default. All of it is
    copied. */
typedef struct lk_sync_config {
  size_t size; /**< sizeof(lk_sync_config) */
  /** NULL: the defaults. Its allocator is called from all threads at the same
      time, and must not be a cancellation point. Its log callback is invoked on
      the thread of the handle, and by lk_sync_client_new(). */
  const lk_client_config *client;
  const lk_lease_config *lease; /**< NULL: the defaults */
  /** Invoked when the state of the session has changed; `err` as in
      lk_listener. The first state, LK_STATE_CONNECTING, is not reported. This
      callback may be invoked before lk_sync_client_new() returns. May be NULL.
   */
  void (*on_state)(lk_sync_client *c, lk_state state, int err, void *arg);
  void *arg;
  /** Options of every call that is given NULL, such as a timeout. `repeat` does
      not apply to writes, and `offline` not to calls that send several
      requests. `deadline_ms`, `cancel`, `on_event` and what belongs to it are
      refused. NULL: the defaults. */
  const struct lk_sync_call *call;
} lk_sync_config;

/**
 * Make a client and start its thread. Does not wait for a connection: calls do.
 * `config` NULL: the defaults.
 *
 * @return as lk_client_new(); also LK_ERR_SYSTEM: no thread can be made, or
 *         fewer than three descriptors are free (the log says which);
 * LK_ERR_UNIMPLEMENTED: TLS, in a build without OpenSSL. After an error `*out`
 * is NULL.
 */
LK_API int lk_sync_client_new(lk_sync_client **out,
                              const lk_sync_config *config);

/**
 * End the session; the handle stays valid. Before anything is sent,
 * lk_sync_lock_ok() becomes false and holders get LK_LOCK_EVENT_LOST with
 * LK_ERR_CLOSED. Acquires return LK_ERR_CLOSED at once. Requests return within
 * 1.5 s: the reply, if it arrives; LK_ERR_NOT_SENT, if they are writes that
 * were not sent; else LK_ERR_CLOSED. Every later request or acquire returns
 * LK_ERR_CLOSED. Waits 1.5 s at most.
 *
 * @return 0: the session's ephemeral nodes no longer exist; or there was no
 *         session; or the client has given it up before (`give_up_ms`), in
 *         which case the servers may keep it for longer. As `done` of
 *         lk_client_close(): LK_ERR_NOT_SENT, LK_ERR_IN_DOUBT, LK_ERR_DEADLINE,
 *         LK_ERR_AUTH_FAILED, LK_ERR_SESSION_EXPIRED. LK_ERR_CLOSED: it is
 *         closed or closing already. LK_ERR_STATE, LK_ERR_FORKED.
 */
LK_API int lk_sync_client_close(lk_sync_client *c);

/**
 * Free; NULL is fine. Locks, subscriptions, candidates, members, watch handles
 * and cancels of `c` must have been freed before. Without
 * lk_sync_client_close() the session lives until its timeout has passed. Calls
 * that wait in other threads return LK_ERR_CLOSED (writes that were not sent:
 * LK_ERR_NOT_SENT) before this returns. No call may begin any more. The usual
 * order is: close, join the threads, free.
 *
 * @return 0; LK_ERR_STATE: nothing was freed, since this is a callback;
 *         LK_ERR_FORKED. So do the functions that free locks, subscriptions,
 *         candidates and members, and LK_ERR_CLOSED: the client is being freed.
 */
LK_API int lk_sync_client_free(lk_sync_client *c);

/** The state last reported to `on_state`. Does not wait. */
LK_API lk_state lk_sync_client_state(const lk_sync_client *c);

/**
 * Wait until the state is `state`, or has been while this call waited. It
 * returns 0 at once if it is. Recipes and requests need no such wait: they wait
 * for a connection by themselves.
 *
 * @return 0; LK_ERR_CLOSED: the client has ended in another state;
 *         LK_ERR_DEADLINE, LK_ERR_CANCELLED; LK_ERR_STATE, LK_ERR_FORKED.
 */
LK_API int lk_sync_client_wait_state(lk_sync_client *c, lk_state state,
                                     const struct lk_sync_call *call);

/** What lk_client_session(), lk_client_timeout_ms() and lk_client_zxid()
    return. These wait for the thread of the handle only; in a forked child they
    are 0.
 */
LK_API lk_session lk_sync_client_session(lk_sync_client *c);
LK_API int32_t lk_sync_client_timeout_ms(lk_sync_client *c);
LK_API int64_t lk_sync_client_zxid(lk_sync_client *c);

/** "host:port" of the server in use or tried, as lk_client_server(), and the
    address of the present connection, as lk_client_peer(): at most `size` bytes
    with the final NUL. Each waits for the thread of the handle only.
    @return 0; LK_ERR_FORKED, LK_ERR_CLOSED: `text` is "". */
LK_API int lk_sync_client_server(lk_sync_client *c, char *text, size_t size);
LK_API int lk_sync_client_peer(lk_sync_client *c, char *text, size_t size);

/** The clock of deadlines, read now, in ms. Does not wait. */
LK_API int64_t lk_sync_client_clock(const lk_sync_client *c);

/**
 * Why the last connection or attempt ended: the error, and a text of at most
 * `size` bytes with the final NUL; 0 and "" if none has, as while the first
 * attempt is waiting for a reply. It often explains LK_ERR_DEADLINE. In
 * LK_STATE_CONNECTED it does not: then the text is about an earlier connection.
 * Waits for the thread of the handle only.
 */
LK_API int lk_sync_client_last_error(lk_sync_client *c, char *text,
                                     size_t size);

/** The cause of that error, if it is LK_ERR_TLS; else LK_TLS_OTHER. Waits as
    lk_sync_client_last_error(). */
LK_API lk_tls_cause lk_sync_client_tls_cause(lk_sync_client *c);

/** Change the list of servers: lk_client_set_hosts(), with its results. Waits
    for the thread of the handle only, not for a new connection. */
LK_API int lk_sync_client_set_hosts(lk_sync_client *c, const char *hosts);

/** Leave the server in use: lk_client_leave_server(), with its results. Waits
    for the thread of the handle only. */
LK_API int lk_sync_client_leave_server(lk_sync_client *c);

/**
 * Call `what` as a callback, on the thread of the handle, and wait until it has
 * returned; in a callback call it at once. `what` may call every function of
 * <latchkey/client.h> and of the recipes for `client`, except lk_client_close()
 * and lk_client_free(). Works after lk_sync_client_close(), too.
 *
 * @return 0; LK_ERR_CLOSED: lk_sync_client_free() was called; LK_ERR_NO_MEMORY,
 *         LK_ERR_FORKED.
 */
LK_API int lk_sync_client_run_on_thread(
    lk_sync_client *c, void (*what)(lk_client *client, void *arg), void *arg);

/* ---- calls ------------------------------------------------------------ */

/** An object by which any thread ends calls of other threads. While it is set,
    every call that has it in its lk_sync_call returns LK_ERR_CANCELLED: calls
    that wait, and later ones. */
typedef struct lk_sync_cancel lk_sync_cancel;

/** @return 0, LK_ERR_NO_MEMORY, LK_ERR_FORKED. After an error `*out` is NULL.
 */
LK_API int lk_sync_cancel_new(lk_sync_cancel **out, lk_sync_client *c);
/** Does not wait. May also be called from callbacks (also that of the log) and
    from signal handlers; `errno` stays as it is. */
LK_API void lk_sync_cancel_set(lk_sync_cancel *x);
LK_API void lk_sync_cancel_clear(lk_sync_cancel *x);
/** Free it. No call that has it may be under way. NULL is fine. */
LK_API void lk_sync_cancel_free(lk_sync_cancel *x);

/** The handle of a watch; see lk_sync_call. */
typedef struct lk_sync_watch lk_sync_watch;

/**
 * Options of one call; NULL stands for lk_sync_config.call. Set `size`.
 *
 * lk_sync_exists(), lk_sync_get(), lk_sync_get_children() and
 * lk_sync_get_config() may set a watch: give `on_event`. The watch is set when
 * the call returns 0 (lk_sync_exists(): also LK_ERR_NO_NODE, for the creation).
 * `on_event` is invoked once: with the event, or with LK_EVENT_ENDED if the
 * watch ends without one. That may be before the call returns. With
 * lk_sync_add_watch(), `on_event` is invoked for each event; LK_EVENT_ENDED is
 * the last.
 */
typedef struct lk_sync_call {
  size_t size;        /**< sizeof(lk_sync_call) */
  int64_t timeout_ms; /**< LK_ERR_DEADLINE after this; 0: never. See
                           "Timeouts" in <latchkey/client.h> */
  bool repeat; /**< reads and sync: send again after a lost connection. Writes
                    with it get LK_ERR_BAD_ARGUMENT. Locks ignore it: they
                    always send again */
  lk_sync_cancel *cancel; /**< or NULL. A write that was cancelled may have been
                               executed, or may be executed later. If it waits
                               for a connection, it is not sent any more, unless
                               the call sends several requests */
  bool until_disconnect;  /**< the watch ends when the connection does */
  lk_offline offline;     /**< as in lk_call. Locks and waits for events ignore
                               it */
  /** Invoked with the events of the watch; `event` is borrowed until it
      returns. NULL: no watch is set. */
  void (*on_event)(lk_sync_client *c, const lk_event *event, void *arg);
  void *watch_arg;
  /** `*watch` gets a handle, to be freed with lk_sync_watch_free(), or NULL if
      no watch is set. If `watch` is NULL, the watch cannot be removed early. */
  lk_sync_watch **watch;
  int64_t deadline_ms; /**< LK_ERR_DEADLINE at this time on
                            lk_sync_client_clock(); 0: never */
} lk_sync_call;

/** Remove the watch, also from the server, and free its handle. After this
    returns, the callback neither runs nor is invoked again. The callback itself
    may call this. NULL is fine. */
LK_API void lk_sync_watch_free(lk_sync_watch *w);

/** The result of a call, copied into one block of memory, which the caller
    frees with lk_sync_result_free(). */
typedef struct lk_sync_result {
  lk_stat stat;     /**< create: of the new node; get, children, get_acl */
  const char *path; /**< create: as made, with its sequence number */
  lk_bytes data;    /**< get, get_config, reconfig. A NUL follows, which is not
                       counted */
  const lk_bytes *names;  /**< get_children, subscription_next; ephemerals:
                               paths. `count`, in no order, a NUL after each */
  const lk_acls *acl;     /**< get_acl. A NUL after each text */
  const lk_identity *ids; /**< who_am_i: `count`. A NUL after each text */
  const lk_read_result
      *reads; /**< multi_read: `count`. A NUL after each text */
  const lk_op_result *results; /**< multi: `count` */
  size_t count;
  int64_t zxid;                   /**< create, multi: of the transaction */
  const lk_roster_entry *entries; /**< roster_get, subscription_next: `count`. A
                                       NUL after each text */
} lk_sync_result;

/** NULL is fine. May be called after its client was freed, and in a forked
    child. */
LK_API void lk_sync_result_free(lk_sync_result *r);

/* ---- requests --------------------------------------------------------- */

/*
 * Each does what its namesake in <latchkey/client.h> does. The errors that
 * refuse the request and those of its completion are both returned. `out` may
 * be NULL; it gets the result, or NULL after an error. Further errors:
 * LK_ERR_CANCELLED; LK_ERR_STATE: called from a callback; LK_ERR_BAD_ARGUMENT:
 * `call` without its size; LK_ERR_NO_MEMORY: a write was not executed, since
 * its result is allocated before it is sent; or there is no memory for the
 * result of a read. If a call was cancelled or its deadline passed, the write
 * may have been executed, or may be executed later.
 */

/** lk_create2(): gives path and stat. `flags` may contain LK_CONTAINER. */
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
/** lk_server_sync(), ZooKeeper's request of that name, as a blocking call. */
LK_API int lk_sync_server_sync(lk_sync_client *c, const char *path,
                               const lk_sync_call *call);
/** Gives results; also after an error, if the reply names the operation that
    failed. */
LK_API int lk_sync_multi(lk_sync_client *c, lk_sync_result **out,
                         const lk_op *ops, size_t count,
                         const lk_sync_call *call);
/** lk_create_ttl(): gives path and stat. */
LK_API int lk_sync_create_ttl(lk_sync_client *c, lk_sync_result **out,
                              const char *path, lk_bytes data,
                              const lk_acls *acl, int flags, int64_t ttl_ms,
                              const lk_sync_call *call);
/** `out` is filled in when 0 is returned. */
LK_API int lk_sync_count_descendants(lk_sync_client *c, int32_t *out,
                                     const char *path,
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
/** `call->on_event` must be set; `call->watch` may be. */
LK_API int lk_sync_add_watch(lk_sync_client *c, const char *path,
                             lk_watch_mode mode, const lk_sync_call *call);
/** If the call is cancelled or its deadline passes, the identity is added
    all the same. */
LK_API int lk_sync_add_auth(lk_sync_client *c, const char *scheme,
                            lk_bytes auth, const lk_sync_call *call);

/* ---- subscriptions ---------------------------------------------------- */

/**
 * The subscriptions of <latchkey/subscribe.h>, for threads: the newest state is
 * kept until a thread takes it. A slow thread misses states in between, and
 * gets the newest.
 */
typedef struct lk_sync_subscription lk_sync_subscription;

/** Subscribe to the children, or to the data, of the node at `path`, which need
    not exist. `config` NULL: the defaults. All is copied. Waits for the
    thread of the handle only.
    @return 0; what lk_subscribe_children() returns; LK_ERR_STATE. After an
            error `*out` is NULL. */
LK_API int lk_sync_subscribe_children(lk_sync_subscription **out,
                                      lk_sync_client *c, const char *path,
                                      const lk_subscription_config *config);
LK_API int lk_sync_subscribe_data(lk_sync_subscription **out, lk_sync_client *c,
                                  const char *path,
                                  const lk_subscription_config *config);

/** Subscribe to the roster of the node at `path`: lk_roster_subscribe(). A
    state has `entries`. Otherwise as the two above. */
LK_API int lk_sync_subscribe_roster(lk_sync_subscription **out,
                                    lk_sync_client *c, const char *path,
                                    const lk_roster_config *config);

/**
 * Wait for a state and take it: first the present one, then each later one that
 * differs from the one before. Each state is taken once. If several threads
 * wait, the one that has waited longest gets it. `call->repeat` has no effect.
 *
 * @return a state: 0 (`out` gets names or data, and stat, or entries);
 *         LK_ERR_NO_NODE: no such node; LK_ERR_NO_AUTH and others: the node
 *         cannot be read, and the subscription retries; LK_ERR_NO_MEMORY: the
 *         next call reads again; LK_ERR_CLOSED, LK_ERR_SESSION_EXPIRED
 *         (one_session, or while closing), LK_ERR_AUTH_FAILED: the subscription
 *         has ended, and each call returns this.
 *         No state: LK_ERR_DEADLINE, LK_ERR_CANCELLED, LK_ERR_STATE,
 *         LK_ERR_BAD_ARGUMENT, LK_ERR_FORKED.
 */
LK_API int lk_sync_subscription_next(lk_sync_subscription *s,
                                     lk_sync_result **out,
                                     const lk_sync_call *call);

/** End and free it. Threads that wait for it get LK_ERR_CLOSED. No call for it
    may begin any more. NULL is fine. */
LK_API int lk_sync_subscription_free(lk_sync_subscription *s);

/** Read the roster of the node at `path` once: lk_roster_get(). Gives
    `entries`: the members of a group, or the candidates of an election, of
    which the first leads. `call->repeat` has no effect: the reads are repeated.
    @return as `done` of lk_roster_get(); what lk_roster_get() returns. */
LK_API int lk_sync_roster_get(lk_sync_client *c, lk_sync_result **out,
                              const char *path, const lk_roster_config *config,
                              const lk_sync_call *call);

/* ---- nodes ------------------------------------------------------------ */

/* Each does what its namesake in <latchkey/nodes.h> does; otherwise as the
   requests above. `call->repeat` is refused only by
   lk_sync_create_with_parents(). */

LK_API int lk_sync_create_with_parents(lk_sync_client *c, lk_sync_result **out,
                                       const char *path, lk_bytes data,
                                       const lk_acls *acl, int flags,
                                       const lk_parents_config *parents,
                                       const lk_sync_call *call);
/** `deleted`, if it is not NULL, gets the number of nodes that are known to be
    deleted, also after an error. After this returned no further delete is sent;
    deletes that are outstanding, 256 at most, may still be executed. */
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
 * The locks of <latchkey/lock.h> and the other recipes, for threads. A handle
 * is one owner, as there, and belongs to no thread: each thread may call its
 * functions, and each may release what another one has acquired.
 *
 * Threads that are to exclude each other use a handle each:
 * lk_sync_lock_clone(). Each handle has a place of its own in the queue, as
 * another process does. Two threads with one handle would hold together.
 * Therefore a second acquire counts only if the thread that made the first one
 * makes it; of any other thread it is refused with LK_ERR_STATE.
 *
 * The end of a thread releases nothing: see pthread_cleanup_push() for a thread
 * that may be cancelled. When main() returns, the process ends without a
 * release: call lk_sync_client_close() before, or the locks are free only when
 * the session timeout has passed.
 */
typedef struct lk_sync_lock lk_sync_lock;

/** Invoked with the events of lk_lock_config.on_event, on the thread of the
    handle. */
typedef void (*lk_sync_lock_event_cb)(lk_sync_lock *l,
                                      const lk_lock_event *event, void *arg);

/** Make a mutex for `path` (absolute, copied). No request is sent. `config`
    NULL: the defaults; its own `on_event` must be NULL. `on_event` may be NULL.
    This and the other constructors wait for the thread of the handle only, and
    may be called in a callback.
    @return as lk_lock_new(); LK_ERR_FORKED; LK_ERR_CLOSED: the client is being
            freed. After an error `*out` is NULL. */
LK_API int lk_sync_lock_new(lk_sync_lock **out, lk_sync_client *c,
                            const char *path, const lk_lock_config *config,
                            lk_sync_lock_event_cb on_event, void *arg);

/**
 * Make a semaphore: <latchkey/semaphore.h>. A handle that holds permits and
 * acquires again gets LK_ERR_DEADLOCK. All is copied.
 * @return as lk_sync_lock_new(); what lk_semaphore_new() returns.
 */
LK_API int lk_sync_semaphore_new(lk_sync_lock **out, lk_sync_client *c,
                                 const char *path, const lk_lock_config *config,
                                 const lk_semaphore_config *options,
                                 lk_sync_lock_event_cb on_event, void *arg);

/**
 * Make a multi-lock: <latchkey/multilock.h>. All is copied.
 * @return as lk_sync_lock_new(); what lk_multilock_new() returns.
 */
LK_API int lk_sync_multilock_new(lk_sync_lock **out, lk_sync_client *c,
                                 const lk_multilock_part *parts, size_t count,
                                 const lk_lock_config *config,
                                 const lk_multilock_config *options,
                                 lk_sync_lock_event_cb on_event, void *arg);

/**
 * Make the lock of a single node: <latchkey/single.h>.
 * @return as lk_sync_lock_new(); what lk_single_new() returns.
 */
LK_API int lk_sync_single_new(lk_sync_lock **out, lk_sync_client *c,
                              const char *path, const lk_lock_config *config,
                              const lk_single_config *options,
                              lk_sync_lock_event_cb on_event, void *arg);

/** Make another handle for the same lock: lk_lock_clone(). It has the
    `on_event` of `l`, with `arg` of its own.
    @return as lk_sync_lock_new(); LK_ERR_BAD_ARGUMENT also for a side of a
            read-write lock; LK_ERR_CLOSED also if `l` was freed meanwhile. */
LK_API int lk_sync_lock_clone(lk_sync_lock **out, lk_sync_lock *l, void *arg);

/** The token for the part at `path`; see lk_multilock_token(). 0 also in a
    callback and in a forked child. Waits for the thread of the handle only. */
LK_API uint64_t lk_sync_multilock_token(lk_sync_lock *l, const char *path);

/**
 * A read-write lock, <latchkey/rwlock.h>: one owner with two sides, each with
 * all the calls below. A handle that holds the write side and acquires the read
 * side is granted it at once in Curator's layout, and gets LK_ERR_DEADLOCK in
 * others. A handle that holds the read side alone and acquires the write side
 * gets LK_ERR_DEADLOCK in every layout. Acquires are counted per side, and the
 * sides may be released in any order. An acquire of one side is refused with
 * LK_ERR_STATE while another thread acquires, has acquired or releases the
 * other side, or a candidate has it.
 */
typedef struct lk_sync_rwlock lk_sync_rwlock;

/** `on_event` gets the side as its lock. No request is sent.
    @return as lk_sync_lock_new(). */
LK_API int lk_sync_rwlock_new(lk_sync_rwlock **out, lk_sync_client *c,
                              const char *path, const lk_lock_config *config,
                              lk_sync_lock_event_cb on_event, void *arg);

/** Make another handle for the same lock, as lk_sync_lock_clone() does. */
LK_API int lk_sync_rwlock_clone(lk_sync_rwlock **out, lk_sync_rwlock *rw,
                                void *arg);

/** Free both sides, each as lk_sync_lock_free() does. NULL is fine. */
LK_API int lk_sync_rwlock_free(lk_sync_rwlock *rw);

/** The sides. They belong to the read-write lock: do not free them. */
LK_API lk_sync_lock *lk_sync_rwlock_read_side(lk_sync_rwlock *rw);
LK_API lk_sync_lock *lk_sync_rwlock_write_side(lk_sync_rwlock *rw);

/**
 * Acquire the read side and release the write side, so that no other owner
 * writes in between: Curator's layout only. If the acquire fails, the write
 * side stays held (LK_ERR_DEADLOCK in other layouts). In any thread; the read
 * side then counts as acquired by the thread that acquired the write side.
 * @return as lk_sync_lock_acquire(); LK_ERR_NOT_HELD: the write side is not
 *         held, or another thread has released it meanwhile; LK_ERR_LOST: it
 *         or the read side was lost. After both neither side is held any more.
 */
LK_API int lk_sync_rwlock_downgrade(lk_sync_rwlock *rw,
                                    const lk_sync_call *call);

/** Free; NULL is fine. A thread that waits for it gets LK_ERR_CLOSED. A held
    lock is released, without waiting for a server. No call for it may begin any
    more. */
LK_API int lk_sync_lock_free(lk_sync_lock *l);

/**
 * Acquire. If this thread has acquired it already, its count grows, and no
 * request is sent; a `call` that is cancelled or whose deadline has passed is
 * refused nevertheless.
 *
 * @return 0: it is held, see lk_sync_lock_token(); the errors of
 *         lk_lock_acquire() and of its `done`; LK_ERR_STATE: another thread
 *         waits for it, has acquired it or is releasing it, or a candidate has
 *         it, or one of these has the other side;
 *         LK_ERR_LOST: what this thread acquired was lost, and must be released
 *         before it is acquired again;
 *         LK_ERR_CANCELLED, LK_ERR_DEADLINE: the own node, if there is one, is
 *         being deleted;
 *         LK_ERR_FORKED.
 */
LK_API int lk_sync_lock_acquire(lk_sync_lock *l, const lk_sync_call *call);

/** The same only if the lock is free; else LK_ERR_BUSY. It waits for a
    connection until the limit of `call`. If `call` is NULL, it does not wait:
    LK_ERR_NOT_CONNECTED, also if the connection is lost meanwhile. */
LK_API int lk_sync_lock_try(lk_sync_lock *l, const lk_sync_call *call);

/**
 * Decrement the count of acquires, and release the lock at 0. In any thread,
 * also in one that is being cancelled, and in a callback. Does not wait for the
 * delete. Work that other owners must not overlap has to be finished before
 * this call.
 *
 * @return 0; LK_ERR_NOT_HELD; LK_ERR_LOST: it was lost; now it may be acquired
 *         again; LK_ERR_FORKED.
 */
LK_API int lk_sync_lock_release(lk_sync_lock *l);

/** The same; if the count is 0 now, wait until the node is deleted. It also
    returns 0 when the client gives up the session; see lk_lock_release().
    @return as lk_sync_lock_release(). The lock is also released after
            LK_ERR_NO_AUTH: the node stays until the session ends; and
            LK_ERR_DEADLINE, LK_ERR_CANCELLED, LK_ERR_CLOSED: the node is being
            deleted, or the count was decremented. It is not released after
            LK_ERR_STATE, LK_ERR_BAD_ARGUMENT and LK_ERR_NO_MEMORY. */
LK_API int lk_sync_lock_release_wait(lk_sync_lock *l, const lk_sync_call *call);

/**
 * Verify with a quorum that it is held: lk_lock_verify().
 * @return 0; LK_ERR_LOST; LK_ERR_UNSURE: not known; LK_ERR_NOT_HELD;
 *         LK_ERR_DEADLINE, LK_ERR_CANCELLED, LK_ERR_CLOSED; LK_ERR_STATE:
 *         another verify is outstanding, perhaps one that was cancelled; and
 *         what lk_multi() returns.
 */
LK_API int lk_sync_lock_verify(lk_sync_lock *l, const lk_sync_call *call);

/**
 * Wait while the lock is unsure: until it is held for certain, or not held any
 * more. For use while lk_sync_lock_ok() is false; it does not acquire. It
 * returns at once if either is known already.
 *
 * @return 0: lk_sync_lock_ok() is true again; LK_ERR_LOST, LK_ERR_NOT_HELD;
 *         LK_ERR_DEADLINE, LK_ERR_CANCELLED: it is still unsure;
 *         LK_ERR_CLOSED: the client was closed, or the lock freed;
 *         LK_ERR_STATE, LK_ERR_FORKED, LK_ERR_BAD_ARGUMENT.
 */
LK_API int lk_sync_lock_wait_certain(lk_sync_lock *l, const lk_sync_call *call);

/** lk_sync_multi() of `ops` that is executed only while the lock is held, in
    the same grant: lk_lock_guarded_multi(). Returns also LK_ERR_NOT_HELD, and
    LK_ERR_LOST: no operation was executed. As after each error of a
    transaction, `*out` may have the results of its operations. */
LK_API int lk_sync_lock_guarded_multi(lk_sync_lock *l, lk_sync_result **out,
                                      const lk_op *ops, size_t count,
                                      const lk_sync_call *call);

/* The functions below read memory and the clock, and do not wait. In a forked
   child no lock is held. */

/** lk_lock_ok(): whether the lock is held for certain. Call it right before
    each action that the lock protects. */
LK_API bool lk_sync_lock_ok(const lk_sync_lock *l);

/** The lease deadline on lk_sync_client_clock(); INT64_MIN: not held. */
LK_API int64_t lk_sync_lock_deadline(const lk_sync_lock *l);

/** The fencing token; 0: not held. */
LK_API uint64_t lk_sync_lock_token(const lk_sync_lock *l);

LK_API lk_lock_state lk_sync_lock_get_state(const lk_sync_lock *l);

/** The number of acquires that were not released. */
LK_API size_t lk_sync_lock_count(const lk_sync_lock *l);

/**
 * A descriptor for poll() in any thread: readable while the lock is not held
 * for certain: it is unsure, lost, or not held. To wait until it is certain
 * again, use lk_sync_lock_wait_certain(). The first call makes the descriptor,
 * and lk_sync_lock_free() closes it: stop polling before. Do not read from it.
 *
 * @return the descriptor; LK_ERR_FORKED, LK_ERR_SYSTEM (no descriptors left).
 */
LK_API int lk_sync_lock_fd(lk_sync_lock *l);

/** The path that the lock was made with; of a multi-lock that of the part that
    it acquires first. */
LK_API const char *lk_sync_lock_path(const lk_sync_lock *l);

/* ---- leader election ----------------------------------------------------- */

/**
 * A candidate of an election: <latchkey/leader.h>. It belongs to no thread: any
 * thread may start it, wait for its election and look whether it leads. A
 * leader works like this, until another thread calls
 * lk_sync_candidate_resign(), which ends both loops:
 *
 *     while (lk_sync_candidate_wait_elected(c, NULL) == 0) {
 *       uint64_t term = lk_sync_candidate_term(c);
 *
 *       while (lk_sync_candidate_ok(c) && lk_sync_candidate_term(c) == term)
 *         do_one_step(term);
 *     }
 *
 * If a step fails although the candidate leads, the next wait returns at once,
 * in the same term: pause, or resign, so that another candidate leads.
 */
typedef struct lk_sync_candidate lk_sync_candidate;

/** Options of a candidate. Set `size`; 0 selects the default. */
typedef struct lk_sync_candidate_config {
  size_t size;      /**< sizeof(lk_sync_candidate_config) */
  int32_t pause_ms; /**< as in lk_candidate_config, like the next */
  int32_t max_pause_ms;
  /** Invoked with each event; for an event that ends a wait, before the wait
      returns. */
  void (*on_event)(lk_sync_candidate *c, const lk_candidate_event *event,
                   void *arg);
  void *arg;
} lk_sync_candidate_config;

/** Make a candidate: lk_election_new(). All is copied; `on_event` of `lock` is
    invoked on the thread of the handle. Waits for that thread only.
    @return as lk_election_new(); LK_ERR_FORKED, LK_ERR_STATE (in a callback).
            After an error `*out` is NULL. */
LK_API int lk_sync_election_new(lk_sync_candidate **out, lk_sync_client *client,
                                const char *path, lk_layout layout,
                                const lk_lock_config *lock,
                                const lk_sync_candidate_config *config);

/** Make a candidate for a lock of any kind, which must be idle, and so must the
    other side of a read-write lock: lk_candidate_new(). It uses the lock until
    it is freed: an acquire, also of the other side, gets LK_ERR_STATE. The
    lock's on_event gets the events that lk_candidate_event_type does not have,
    such as the position in the queue. Free the candidate before `lock`.
    `config` NULL selects the defaults. Waits for the thread of the handle only.
    @return as lk_candidate_new(); LK_ERR_FORKED, LK_ERR_STATE (also in a
            callback), LK_ERR_CLOSED. After an error `*out` is NULL. */
LK_API int lk_sync_candidate_new(lk_sync_candidate **out, lk_sync_lock *lock,
                                 const lk_sync_candidate_config *config);

/** Free; NULL is fine. The candidate resigns, without an event. Threads in
    lk_sync_candidate_wait_elected() get LK_ERR_CLOSED, those in
    lk_sync_candidate_wait_unsure() 0; a transaction that was sent is not
    awaited. No other call for it may be under way, and none may begin. */
LK_API int lk_sync_candidate_free(lk_sync_candidate *c);

/** Take part: lk_candidate_start(). Waits for the thread of the handle only.
    @return as lk_candidate_start(); LK_ERR_STATE, LK_ERR_FORKED. */
LK_API int lk_sync_candidate_start(lk_sync_candidate *c);

/** Take part no more: lk_candidate_resign(). No thread may still do work of the
    leader. lk_sync_candidate_start() or lk_sync_candidate_wait_elected() may
    follow at once, and takes part from the end of the queue. Waits for the
    thread of the handle only.
    @return 0, LK_ERR_CLOSED, LK_ERR_STATE, LK_ERR_FORKED. */
LK_API int lk_sync_candidate_resign(lk_sync_candidate *c);

/** Take part, and wait until the candidate leads for certain. While acquires
    fail (LK_CANDIDATE_EVENT_RETRYING, as with LK_ERR_NO_AUTH), it waits on.
    @return 0: lk_sync_candidate_ok() is true; what lk_candidate_start()
            returns; LK_ERR_DEADLINE, and LK_ERR_CANCELLED by the
            lk_sync_cancel: it still takes part, unless the call was over before
            it began; LK_ERR_CANCELLED: another thread has resigned;
            LK_ERR_CLOSED, LK_ERR_AUTH_FAILED: the client has ended, or the
            candidate was freed; LK_ERR_STATE, LK_ERR_FORKED,
            LK_ERR_BAD_ARGUMENT. */
LK_API int lk_sync_candidate_wait_elected(lk_sync_candidate *c,
                                          const lk_sync_call *call);

/** Wait until the candidate does not lead for certain any more: its lease is
    unsure, or it is deposed, or has resigned. For a thread that stops the work
    of others; it returns at once if the candidate does not lead. With a timeout
    it is a pause of the leader that ends early with its term.
    @return 0; LK_ERR_DEADLINE: it still leads; LK_ERR_CANCELLED: by the
            lk_sync_cancel; LK_ERR_CLOSED, LK_ERR_STATE, LK_ERR_FORKED,
            LK_ERR_BAD_ARGUMENT. */
LK_API int lk_sync_candidate_wait_unsure(lk_sync_candidate *c,
                                         const lk_sync_call *call);

/** lk_sync_multi() of `ops` that is executed only while the candidate leads in
    `term`: lk_lock_guarded_multi(). Give the term in which the work was begun,
    since another one may have begun meanwhile. For the lock of a single node,
    see the limits in <latchkey/single.h>. After LK_ERR_IN_DOUBT it may be
    executed later in the same term, behind writes that follow: give the
    operations versions where that matters. Returns also LK_ERR_LOST: the term
    has ended, and no operation was executed; LK_ERR_NOT_HELD: `term` is 0;
    LK_ERR_CLOSED: the candidate was freed before the transaction was sent. */
LK_API int lk_sync_candidate_guarded_multi(lk_sync_candidate *c,
                                           lk_sync_result **out, uint64_t term,
                                           const lk_op *ops, size_t count,
                                           const lk_sync_call *call);

/* The functions below read memory and the clock, and do not wait. */

/** lk_candidate_ok(): whether the candidate leads for certain. Call it right
    before each action of the leader. */
LK_API bool lk_sync_candidate_ok(const lk_sync_candidate *c);

/** The lease deadline on lk_sync_client_clock(); INT64_MIN: it does not lead.
 */
LK_API int64_t lk_sync_candidate_deadline(const lk_sync_candidate *c);

/** The term; 0: it does not lead. */
LK_API uint64_t lk_sync_candidate_term(const lk_sync_candidate *c);

LK_API lk_candidate_state
lk_sync_candidate_get_state(const lk_sync_candidate *c);

/* ---- membership ---------------------------------------------------------- */

/**
 * A member of a group: <latchkey/member.h>. It belongs to no thread.
 * lk_sync_roster_get() and lk_sync_subscribe_roster() read the members.
 */
typedef struct lk_sync_membership lk_sync_membership;

/** Options of a member. Set `size`; 0 selects the default. All is copied. */
typedef struct lk_sync_membership_config {
  size_t size;   /**< sizeof(lk_sync_membership_config) */
  lk_bytes data; /**< as in lk_membership_config, like those below */
  const lk_acls *acl;
  const lk_acls *parent_acl;
  bool persistent_parents;
  /** Invoked with each event, on the thread of the handle; for an event that
      ends a wait, before the wait returns. */
  void (*on_event)(lk_sync_membership *m, const lk_membership_event *event,
                   void *arg);
  void *arg;
} lk_sync_membership_config;

/** Make a member: lk_membership_new(). All is copied. Waits for the thread of
    the handle only.
    @return as lk_membership_new(); LK_ERR_FORKED, LK_ERR_STATE (in a callback),
            LK_ERR_CLOSED. After an error `*out` is NULL. */
LK_API int lk_sync_membership_new(lk_sync_membership **out, lk_sync_client *c,
                                  const char *path, const char *name,
                                  const lk_sync_membership_config *config);

/** Free; NULL is fine. The member leaves, without an event. Threads in
    lk_sync_membership_join() get LK_ERR_CLOSED. No other call for it may be
    under way, and none may begin. */
LK_API int lk_sync_membership_free(lk_sync_membership *m);

/**
 * Join, and wait until the member has joined. It joins again by itself after a
 * loss, until lk_sync_membership_leave().
 *
 * @return 0; what lk_membership_join() returns: it has not joined, and does not
 *         try again; the error of LK_MEMBERSHIP_EVENT_RETRYING, such as
 *         LK_ERR_NO_AUTH: it tries again; LK_ERR_DEADLINE, for example because
 *         the name is taken, and LK_ERR_CANCELLED by the lk_sync_cancel: it
 *         tries again, unless the call was over before it began;
 *         LK_ERR_CANCELLED: another thread has called
 *         lk_sync_membership_leave(); LK_ERR_CLOSED: the member was freed;
 *         LK_ERR_STATE, LK_ERR_FORKED, LK_ERR_BAD_ARGUMENT.
 */
LK_API int lk_sync_membership_join(lk_sync_membership *m,
                                   const lk_sync_call *call);

/** Leave: lk_membership_leave(). Waits for the thread of the handle only.
    @return 0, also after lk_sync_client_close(); LK_ERR_CLOSED: the client is
            being freed; LK_ERR_STATE, LK_ERR_FORKED, LK_ERR_BAD_ARGUMENT. */
LK_API int lk_sync_membership_leave(lk_sync_membership *m);

/** Replace the data: lk_membership_set_data(). Waits for the thread of the
    handle only, and not for the write.
    @return as lk_membership_set_data(); as lk_sync_membership_leave(). */
LK_API int lk_sync_membership_set_data(lk_sync_membership *m, lk_bytes data);

/** Whether the member has joined, as far as the client knows:
    lk_membership_has_joined(). In a forked child it has not. */
LK_API bool lk_sync_membership_has_joined(const lk_sync_membership *m);

/** The path of the node. */
LK_API const char *lk_sync_membership_path(const lk_sync_membership *m);

#ifdef __cplusplus
}
#endif
#endif
