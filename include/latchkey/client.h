/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLIENT_H
#define LK_CLIENT_H

/**
 * @file
 * A ZooKeeper client: one session, its requests and its watches.
 *
 * A client does no I/O, reads no clock and draws no random number by itself;
 * a driver does that for it. <latchkey/ev.h> is the driver for libev and the
 * usual way to get a client. The last part of this header is the contract for
 * writing another one.
 *
 * Threads: a client and all that hangs on it belong to one thread at a time.
 *
 * Callbacks: a request that was accepted (result 0) ends in exactly one call
 * of its `done`, never before the call that queued it returned. Whatever a
 * callback is handed is borrowed until it returns. A callback may do anything,
 * also free its client: that takes effect once all callbacks have returned.
 * `done` may be NULL where nobody wants to know.
 *
 * Any request can be refused on the spot, and `done` is then never called:
 *   LK_ERR_BAD_PATH       not absolute, or with an empty, "." or ".."
 *                         component, a trailing "/", a control character or
 *                         one beyond the basic plane (which servers refuse);
 *   LK_ERR_BAD_ARGUMENT   a flag, a version or an option out of range;
 *   LK_ERR_TOO_BIG        the request is larger than `send_limit`;
 *   LK_ERR_TOO_MANY       `outstanding_limit` requests are under way;
 *   LK_ERR_NO_MEMORY, LK_ERR_CLOSED (also after expiry where no new session is
 *   wanted), LK_ERR_AUTH_FAILED, LK_ERR_FORKED.
 * An accepted one ends with 0, the server's error, or
 *   LK_ERR_NOT_SENT       the connection broke first: certainly not executed;
 *   LK_ERR_LOSS           a read whose answer was lost;
 *   LK_ERR_UNKNOWN        a write whose answer was lost: it may be done;
 *   LK_ERR_TOO_BIG        a read whose answer is larger than `receive_limit`;
 *   LK_ERR_DEADLINE       the call's own timeout passed (a write may be done);
 *   LK_ERR_SESSION_EXPIRED, LK_ERR_AUTH_FAILED, LK_ERR_CLOSED (for a write
 *   already sent, these too leave open whether it was executed).
 *
 * Order: answers come in the order of the requests. Requests made while there
 * is no connection wait, and leave in order when there is one.
 */

#include <latchkey/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_client lk_client;

/* ---- life ------------------------------------------------------------- */

/** What a client tells of its session, in order. */
typedef enum lk_state {
  LK_STATE_CONNECTING,  /**< no session yet, looking for a server */
  LK_STATE_CONNECTED,   /**< requests are served */
  LK_STATE_SUSPENDED,   /**< connection lost; the session may live on */
  LK_STATE_EXPIRED,     /**< session, ephemeral nodes and watches are gone;
                             CONNECTING follows unless `one_session` is set */
  LK_STATE_AUTH_FAILED, /**< credentials refused: final */
  LK_STATE_CLOSED       /**< final */
} lk_state;

/** "connecting", "connected", …: for logs. */
LK_API const char *lk_state_text(lk_state state);

/** Identity of a session; whoever has it can resume the session. */
typedef struct lk_session {
  int64_t id; /**< opaque; shown as unsigned hex */
  unsigned char password[16];
} lk_session;

enum lk_log_level { LK_LOG_ERROR, LK_LOG_WARNING, LK_LOG_INFO, LK_LOG_DEBUG };

/** What a client needs from outside. <latchkey/ev.h> fills this in. */
typedef struct lk_hooks {
  /** Milliseconds on a clock that also runs while the machine sleeps. */
  int64_t (*now)(void *arg);
  /** Fill `len` bytes at `out` with unpredictable ones. */
  void (*random)(void *arg, void *out, size_t len);
  /** Output, deadline or wish may have changed: ask again before waiting. */
  void (*wake)(lk_client *c, void *arg);
  /** The client is freed now; do not touch it any more. May be NULL. */
  void (*freed)(lk_client *c, void *arg);
  /** Whether this is a forked child of the client's process. May be NULL. */
  bool (*forked)(void *arg);
  void *arg;
} lk_hooks;

/** Options of a client. Set `size`, leave at 0 what should be as usual. */
typedef struct lk_client_config {
  size_t size; /**< sizeof(lk_client_config) */
  /** "host[:port]{,host[:port]}[/chroot]", IPv6 literals in brackets, port
      2181 where none is given. Copied. NULL: "127.0.0.1:2181". */
  const char *hosts;
  int32_t session_timeout_ms; /**< wanted; the server decides. 0: 30,000 */
  /** Give the session up as expired after so long without an answer, even if
      no server can be asked. 0: 4/3 of the negotiated timeout; -1: never. */
  int32_t give_up_ms;
  bool one_session;         /**< expiry is final: no new session after it */
  size_t send_limit;        /**< largest request, bytes. 0: 1,048,575, which is
                                 the usual limit of servers */
  size_t receive_limit;     /**< largest answer, bytes. 0: 16 MiB */
  size_t outstanding_limit; /**< requests accepted and not ended. 0: 65,536 */
  const lk_session *resume; /**< a session to go on with, or NULL. Copied */
  const lk_mem *mem;        /**< NULL: the C library's. Copied */
  /** Told what happens; `text` is one line without an end. May be NULL. */
  void (*log)(void *arg, int level, int err, const char *text);
  void *log_arg;
} lk_client_config;

/**
 * Make a client on `hooks` (copied; see the end of this header). Programs on
 * libev call lk_ev_client_new() instead.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_BAD_ARGUMENT, or LK_ERR_BAD_HOSTS: then
 *         lk_hosts_check() says what is wrong with the text.
 */
LK_API int lk_client_new(lk_client **out, const lk_client_config *config,
                         const lk_hooks *hooks);

/**
 * Say what is wrong with a connect string: 0 and an empty text if nothing is.
 * Writes at most `size` bytes with the final NUL.
 */
LK_API int lk_hosts_check(const char *hosts, char *text, size_t size);

/** Whether requests take `path`: 0 or LK_ERR_BAD_PATH. */
LK_API int lk_path_check(const char *path);

/** Ends lk_client_close(). `err` as there. */
typedef void (*lk_close_cb)(lk_client *c, int err, void *arg);

/**
 * End the session: all requests under way are sent, then closeSession; its
 * ephemeral nodes are gone when `done` gets 0. Waits 1.5 s at most. Whatever
 * is then unanswered ends with LK_ERR_CLOSED. New requests are refused with
 * LK_ERR_CLOSED at once. Does not free the client.
 *
 * `done`'s err: 0; LK_ERR_NOT_SENT, LK_ERR_UNKNOWN or LK_ERR_DEADLINE: the
 * session lives until its timeout has passed, unless the server got the word;
 * LK_ERR_AUTH_FAILED: the same, and it was refused; LK_ERR_SESSION_EXPIRED: it
 * was gone already.
 *
 * @return 0; LK_ERR_CLOSED: closed or closing already, `done` is not called.
 */
LK_API int lk_client_close(lk_client *c, lk_close_cb done, void *arg);

/**
 * Free the client; NULL is fine. The connection is dropped and the session
 * lives until its timeout has passed. Requests under way end with
 * LK_ERR_CLOSED, and listeners are told LK_STATE_CLOSED, before this returns
 * (inside a callback: once all callbacks have returned).
 */
LK_API void lk_client_free(lk_client *c);

/* ---- facts ------------------------------------------------------------ */

LK_API lk_state lk_client_state(const lk_client *c);
/** Negotiated session timeout in ms; before the first answer the wanted one. */
LK_API int32_t lk_client_timeout_ms(const lk_client *c);
/** Session id and password; id 0 while there is none. */
LK_API lk_session lk_client_session(const lk_client *c);
/** Number of the present connection, counting from 1; 0: not connected. */
LK_API uint64_t lk_client_connection(const lk_client *c);
/** "host:port" of the server in use or tried; valid until the next input. */
LK_API const char *lk_client_server(const lk_client *c);
/** The chroot, "" if none. Valid as long as the client. */
LK_API const char *lk_client_chroot(const lk_client *c);
/** Why the last connection or attempt ended: error, and text, valid until the
    next input; "" if none has. */
LK_API int lk_client_trouble(const lk_client *c, const char **text);
/** The clock as read at the last input (older is safer), in ms. */
LK_API int64_t lk_client_now(const lk_client *c);
/** The clock read afresh, in ms. */
LK_API int64_t lk_client_clock(const lk_client *c);
LK_API void lk_client_random(lk_client *c, void *out, size_t len);
/** The allocator, for code that lives with the client. */
LK_API const lk_mem *lk_client_mem(const lk_client *c);
/** Hand a line to the client's log. */
LK_API void lk_client_log(const lk_client *c, int level, int err,
                          const char *text);

/* ---- listeners and timers --------------------------------------------- */

/** How much an answer proves about the session; see lk_answer. */
typedef enum lk_proof {
  LK_PROOF_CONTACT,     /**< a server answered: ping, read, refused write */
  LK_PROOF_LEADER,      /**< it went to the leader: sync */
  LK_PROOF_COMMIT,      /**< a quorum committed it: a write, a multi */
  LK_PROOF_RESUMED,     /**< handshake that resumed the session */
  LK_PROOF_NEW_SESSION  /**< handshake that created it (a committed write) */
} lk_proof;

/** What is known of an answered request. */
typedef struct lk_answer {
  lk_proof proof;
  int err;             /**< of the reply's header */
  int64_t zxid;        /**< of the reply's header; a write's own zxid */
  int64_t sent_ms;     /**< when it was queued for sending, or earlier */
  int64_t answered_ms; /**< when the answer was read, or earlier */
  uint64_t connection; /**< lk_client_connection() it was sent on */
} lk_answer;

/** The answer that is being delivered; NULL outside a request's callback or
    when the request ended without an answer. */
LK_API const lk_answer *lk_client_answer(const lk_client *c);

/**
 * Somebody who wants to know. Memory is the listener's own; it stays where it
 * is from attach to detach. All members but `arg` may be NULL.
 */
typedef struct lk_listener {
  /** The state changed. What a listener requests while it is told of
      LK_STATE_CONNECTED leaves before all requests that were waiting.
      `err`: why, for SUSPENDED, EXPIRED, AUTH_FAILED; else 0. */
  void (*state)(lk_client *c, lk_state state, int err, void *arg);
  /** Any request, ping or handshake was answered; before its callback. */
  void (*answer)(lk_client *c, const lk_answer *answer, void *arg);
  void *arg;
  struct lk_listener *next; /**< the client's */
  struct lk_listener *prev; /**< the client's */
} lk_listener;

/** Attach and detach, at any time, also while being told. Told in the order
    of attaching; one that is attached while others are told is told of what
    comes next. When a client is freed its listeners are detached. */
LK_API void lk_client_attach(lk_client *c, lk_listener *l);
LK_API void lk_client_detach(lk_client *c, lk_listener *l);

/**
 * A timer on the client's clock. Memory is the owner's; zero it first. It
 * must be stopped before its memory goes. It fires once, before bytes that
 * were waiting meanwhile are looked at. Cannot fail. Freeing the client stops
 * it silently.
 */
typedef struct lk_timer {
  void (*fire)(lk_client *c, void *arg);
  void *arg;
  lk_heap_node node; /**< the client's */
} lk_timer;

/** Start, or move, `t` to fire at `at_ms` on the client's clock. */
LK_API void lk_timer_start(lk_client *c, lk_timer *t, int64_t at_ms);
LK_API void lk_timer_stop(lk_client *c, lk_timer *t);

/* ---- watches ---------------------------------------------------------- */

typedef struct lk_watch lk_watch;

/** What a watch reports; the first four are ZooKeeper's event types. */
typedef enum lk_event_type {
  LK_EVENT_CREATED = 1,
  LK_EVENT_DELETED = 2,
  LK_EVENT_CHANGED = 3,  /**< the node's data */
  LK_EVENT_CHILDREN = 4, /**< a child came or went */
  LK_EVENT_ENDED = 0     /**< the watch is void without an event; see err */
} lk_event_type;

typedef struct lk_event {
  lk_event_type type;
  lk_bytes path; /**< without the chroot; NUL-terminated as well */
  int err; /**< LK_EVENT_ENDED: LK_ERR_LOSS (an until-break watch lost its
                connection), LK_ERR_SESSION_EXPIRED, LK_ERR_CLOSED,
                LK_ERR_AUTH_FAILED. Else 0 */
} lk_event;

/** Called once for a one-shot watch; the handle is invalid when it returns. */
typedef void (*lk_watch_cb)(lk_client *c, lk_watch *w, const lk_event *event,
                            void *arg);

/**
 * Drop a watch; it is not called again and the handle is invalid. When
 * nobody else here watches the same thing and `on_server` is set, the server
 * is told as well (fire and forget), so that no watch is left behind there.
 */
LK_API void lk_watch_cancel(lk_client *c, lk_watch *w, bool on_server);

/* ---- requests --------------------------------------------------------- */

/**
 * Options of one request; NULL stands for none. Set `size`.
 *
 * A watch may be set by lk_exists(), lk_get() and lk_children(): give
 * `on_event`. It stands when the request ends with 0 (lk_exists(): also with
 * LK_ERR_NO_NODE, then waiting for the creation). If the request ends any
 * other way, the handle is invalid from the time `done` is called, and
 * `on_event` is never called.
 */
typedef struct lk_call {
  size_t size;          /**< sizeof(lk_call) */
  int64_t timeout_ms;   /**< end with LK_ERR_DEADLINE after so long; 0: never */
  bool repeat;          /**< reads and sync: ask again after a lost connection.
                             For writes: LK_ERR_BAD_ARGUMENT */
  bool until_break;     /**< the watch ends when the connection does; others
                             are registered again on the next one */
  lk_watch_cb on_event; /**< NULL: no watch */
  void *watch_arg;
  lk_watch **watch; /**< gets the handle, before the call returns; or NULL */
} lk_call;

/** `create` flags. */
enum lk_create_flags {
  LK_PERSISTENT = 0,
  LK_EPHEMERAL = 1,
  LK_SEQUENTIAL = 2, /**< may be added to the two above */
  LK_CONTAINER = 4   /**< goes when its last child has gone; since 3.5.1 */
};

/** Ends requests without a result. */
typedef void (*lk_done_cb)(lk_client *c, int err, void *arg);
/** `path`: as made, with its sequence number, without chroot, NUL-terminated;
    NULL unless err is 0. `stat` NULL with lk_create() of plain nodes. */
typedef void (*lk_create_cb)(lk_client *c, int err, const char *path,
                             const lk_stat *stat, void *arg);
/** `stat` NULL unless err is 0. */
typedef void (*lk_stat_cb)(lk_client *c, int err, const lk_stat *stat,
                           void *arg);
/** `data` and `stat` NULL unless err is 0. */
typedef void (*lk_get_cb)(lk_client *c, int err, const lk_bytes *data,
                          const lk_stat *stat, void *arg);
/** `names` without path, in no order; not NUL-terminated. */
typedef void (*lk_children_cb)(lk_client *c, int err, const lk_bytes *names,
                               size_t count, const lk_stat *stat, void *arg);

/**
 * Make a node. `acl` NULL: lk_acl_open. lk_create2() also gives the Stat.
 * Errors: NO_NODE (no parent), NODE_EXISTS, NO_AUTH (CREATE on the parent),
 * INVALID_ACL, NO_CHILDREN_FOR_EPHEMERALS, QUOTA_EXCEEDED; UNIMPLEMENTED for
 * containers at a server before 3.5.1.
 * A create that ends with LK_ERR_UNKNOWN can be settled by a unique name.
 */
LK_API int lk_create(lk_client *c, const char *path, lk_bytes data,
                     const lk_acls *acl, int flags, const lk_call *call,
                     lk_create_cb done, void *arg);
LK_API int lk_create2(lk_client *c, const char *path, lk_bytes data,
                      const lk_acls *acl, int flags, const lk_call *call,
                      lk_create_cb done, void *arg);

/** Delete a node that has `version` (-1: any). NO_NODE, BAD_VERSION,
    NOT_EMPTY, NO_AUTH (DELETE on the parent). */
LK_API int lk_delete(lk_client *c, const char *path, int32_t version,
                     const lk_call *call, lk_done_cb done, void *arg);

/** Stat of a node, or LK_ERR_NO_NODE. May watch both. NO_AUTH from servers
    3.8.4 and 3.9.2 on (READ on the node). */
LK_API int lk_exists(lk_client *c, const char *path, const lk_call *call,
                     lk_stat_cb done, void *arg);

/** Data and Stat of a node. NO_NODE (leaves no watch), NO_AUTH (READ). */
LK_API int lk_get(lk_client *c, const char *path, const lk_call *call,
                  lk_get_cb done, void *arg);

/** Replace the data of a node that has `version` (-1: any). NO_NODE,
    BAD_VERSION, NO_AUTH (WRITE), QUOTA_EXCEEDED. */
LK_API int lk_set(lk_client *c, const char *path, lk_bytes data,
                  int32_t version, const lk_call *call, lk_stat_cb done,
                  void *arg);

/** Names of the children and Stat of a node. NO_NODE, NO_AUTH (READ). */
LK_API int lk_children(lk_client *c, const char *path, const lk_call *call,
                       lk_children_cb done, void *arg);

/** When it ends with 0, what was committed before it is visible on this
    connection. Not a quorum operation (ZOOKEEPER-1675). */
LK_API int lk_sync(lk_client *c, const char *path, const lk_call *call,
                   lk_done_cb done, void *arg);

/** Parts of a multi. */
enum lk_op_type {
  LK_OP_CREATE = 1,
  LK_OP_DELETE = 2,
  LK_OP_SET = 5,
  LK_OP_CHECK = 13,
  LK_OP_CREATE2 = 15
};

/** One part of a multi; fill it with one of the functions below. */
typedef struct lk_op {
  int32_t type;    /**< enum lk_op_type */
  int32_t flags;   /**< creates: enum lk_create_flags */
  int32_t version; /**< delete, set, check: expected one, -1 any */
  const char *path;
  lk_bytes data;
  const lk_acls *acl; /**< NULL: lk_acl_open */
} lk_op;

LK_API lk_op lk_op_create(const char *path, lk_bytes data, const lk_acls *acl,
                          int flags);
LK_API lk_op lk_op_delete(const char *path, int32_t version);
LK_API lk_op lk_op_set(const char *path, lk_bytes data, int32_t version);
LK_API lk_op lk_op_check(const char *path, int32_t version);

/** What became of one part. */
typedef struct lk_op_result {
  int32_t type; /**< as the server labels it, -1 for an error; servers before
                     3.7.2 and 3.8.2 answer create2 as a plain create */
  int err;      /**< 0; the culprit's error; RUNTIME_INCONSISTENCY after it */
  const char *path;    /**< creates: as made, NUL-terminated; else NULL */
  const lk_stat *stat; /**< where the server sends one; else NULL */
} lk_op_result;

/** `err` is the first real error of the parts; `results` NULL and count 0 if
    the server answered none. lk_client_answer()->zxid is the zxid of all. */
typedef void (*lk_multi_cb)(lk_client *c, int err, const lk_op_result *results,
                            size_t count, void *arg);

/** All of `ops` or none, in order, under one zxid. Copied. */
LK_API int lk_multi(lk_client *c, const lk_op *ops, size_t count,
                    const lk_call *call, lk_multi_cb done, void *arg);

/**
 * Add an identity to this client, on every connection from now on, ahead of
 * all requests. A wrong digest password is not an error, only another
 * identity. `done` is called once, when a server has answered it first;
 * LK_ERR_AUTH_FAILED is final for the client. Copied.
 */
LK_API int lk_add_auth(lk_client *c, const char *scheme, lk_bytes auth,
                       lk_done_cb done, void *arg);

/* ---- for drivers ------------------------------------------------------ */

/**
 * A driver gives a client a transport and calls what follows. It asks for the
 * wish, the output and the deadline after each input and whenever `wake` was
 * called, and sees to them before it waits.
 *
 * `attempt` numbers the connections wished for; an input that names another
 * attempt than the present wish is ignored, so late news do no harm. Every
 * input can end in lk_hooks.freed.
 */
typedef struct lk_want {
  uint64_t attempt; /**< 0: no transport, close what there is */
  const char *host; /**< name or literal, no brackets; until the next input */
  uint16_t port;
  uint32_t address; /**< which address of the name; at 0 resolve it anew */
} lk_want;

LK_API void lk_client_want(lk_client *c, lk_want *out);
/** The name was resolved to `count` (> 0) addresses; they are tried in turn,
    each by an attempt of its own. A driver for literals need not call it. */
LK_API void lk_client_resolved(lk_client *c, uint64_t attempt, uint32_t count);
LK_API void lk_client_connected(lk_client *c, uint64_t attempt);
/** The attempt is over: LK_ERR_RESOLVE, LK_ERR_CONNECT, or LK_ERR_LOSS for one
    that was connected (0: the peer closed). `why` for people, or NULL. */
LK_API void lk_client_failed(lk_client *c, uint64_t attempt, int err,
                             const char *why);
/** Bytes came. Deadlines that passed meanwhile are seen to first. */
LK_API void lk_client_received(lk_client *c, uint64_t attempt,
                               const void *bytes, size_t len);
/** Bytes to send on the connected transport; until the next call. */
LK_API lk_bytes lk_client_pending(lk_client *c);
/** The first `len` of them were handed to the system. */
LK_API void lk_client_sent(lk_client *c, uint64_t attempt, size_t len);
/** When lk_client_tick() is due, in ms on the hook's clock; INT64_MAX: never */
LK_API int64_t lk_client_deadline(const lk_client *c);
LK_API void lk_client_tick(lk_client *c);

#ifdef __cplusplus
}
#endif
#endif
