/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLIENT_H
#define LK_CLIENT_H

/**
 * @file
 * A ZooKeeper client: one session, its requests and its watches.
 *
 * A client does no I/O, reads no clock and draws no random number by itself;
 * a driver does that for it. <latchkey/ev.h> is the driver for libev and the
 * usual way to get a client. <latchkey/driver.h> is the contract for writing
 * another one.
 *
 * This header has what a client is and tells; it includes what can be asked of
 * one: <latchkey/request.h>, <latchkey/multi.h>, <latchkey/ensemble.h> and
 * <latchkey/watch.h>.
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
 *   LK_ERR_UNIMPLEMENTED  the server in use, or one of its name and port, said
 *                         within the last hour that it does not know such
 *                         requests, which costs the connection. A request that
 *                         waits for a connection and meets such a server ends
 *                         with this error, too, without being sent;
 *   LK_ERR_NOT_READ_ONLY  a write, a multi or a sync in LK_STATE_READ_ONLY.
 *                         Here, too, what waits ends so without being sent;
 *   LK_ERR_NO_MEMORY, LK_ERR_CLOSED (also after expiry where no new session is
 *   wanted), LK_ERR_AUTH_FAILED, LK_ERR_FORKED.
 * An accepted one ends with 0, the server's error, or
 *   LK_ERR_NOT_SENT       the connection broke or, for a write, the client was
 *                         closed first: certainly not executed;
 *   LK_ERR_CONNECTION_LOSS           a read whose answer was lost;
 *   LK_ERR_IN_DOUBT       a write whose reply was lost, or whose reply was the
 *                         server's own CONNECTION_LOSS: it may be executed;
 *   LK_ERR_TOO_BIG        a read whose answer is larger than `receive_limit`;
 *   LK_ERR_DEADLINE       the call's own deadline passed (a write may be done);
 *   LK_ERR_SESSION_EXPIRED, LK_ERR_AUTH_FAILED, LK_ERR_CLOSED (for a write
 *   already sent, these too leave open whether it was executed).
 *
 * Timeouts, in ms. `timeout_ms` is counted from the call, and rounded up.
 * `deadline_ms` is a time on the client's clock, lk_client_clock(): a program
 * that counts down computes it once and hands it to each of its calls. Where a
 * call has both, the earlier one ends it. LK_NO_LIMIT (-1) is no limit
 * everywhere. In a struct of options 0 is the default, no limit; as the
 * argument of an acquire 0 tries once. Every other negative timeout, and a
 * deadline that is not later than the clock, has passed already: the call is
 * accepted, sends nothing, and ends with LK_ERR_DEADLINE in the next turn.
 *
 * Options: a struct whose first member is `size` gets its own sizeof there, and
 * 0 in all options that are to have their default: initialise it with
 * {.size = sizeof x}. It is read during the call only, and copied. The headers
 * that a program was compiled with may be older or newer than the library:
 * options behind the end of a shorter struct are 0, and a longer one is refused
 * only if a byte beyond those that the library knows is not 0. A struct whose
 * size was forgotten is refused with LK_ERR_BAD_ARGUMENT, and the client's log
 * names it ("lk_call.size is not set"), where there is a client already.
 *
 * Order: answers come in the order of the requests, but LK_ERR_UNIMPLEMENTED
 * may come ahead of answers to earlier ones. Requests made while there is no
 * connection wait, and leave in order when there is one.
 */

#include <latchkey/driver.h>
#include <latchkey/ensemble.h>
#include <latchkey/multi.h>
#include <latchkey/request.h>
#include <latchkey/sasl.h>
#include <latchkey/tls.h>
#include <latchkey/watch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- life ------------------------------------------------------------- */

/** What a client tells of its session, in order. */
typedef enum lk_state {
  LK_STATE_CONNECTING, /**< no session yet, looking for a server */
  LK_STATE_CONNECTED,  /**< requests are served */
  LK_STATE_READ_ONLY,  /**< reads are served, by a server without a quorum; only
                            where `read_only` is set */
  LK_STATE_SUSPENDED,  /**< connection lost or left; the session may live on */
  LK_STATE_EXPIRED,    /**< session, ephemeral nodes and watches are gone;
                            CONNECTING follows unless `one_session` is set */
  LK_STATE_AUTH_FAILED, /**< credentials refused, or wanted: final. With SASL
                             also where the server is not authentic */
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
  /** Milliseconds, more than 0, on a clock that also runs while the machine
      sleeps. */
  int64_t (*now)(void *arg);
  /** Fill `len` bytes at `out` with unpredictable ones. */
  void (*random)(void *arg, void *out, size_t len);
  /** Output, deadline or wish may have changed: ask again before waiting. Not
      called inside a callback, but once behind the last. <latchkey/driver.h>
      says what it may call. */
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
  /** "[tls://]host[:port]{,host[:port]}[/chroot]", IPv6 literals in brackets.
      Without a port: 2181, with TLS 2281. Copied. NULL: "127.0.0.1". */
  const char *hosts;
  int32_t session_timeout_ms; /**< wanted; the server decides. 0: 30,000 */
  /** Give the session up as expired after so long without an answer, even if
      no server can be asked. 0: 4/3 of the negotiated timeout;
      LK_NO_LIMIT: never. */
  int32_t give_up_ms;
  bool one_session; /**< expiry is final: no new session after it */
  /**
   * Where no session is at stake, a server will do that has lost its quorum and
   * serves reads alone (it needs readonlymode.enabled, and localSessionsEnabled
   * to give sessions then). That is told as LK_STATE_READ_ONLY. What it answers
   * may be old, or never have come to be, and proves nothing
   * (LK_EVIDENCE_NONE): no lock is granted by it.
   *
   * Meanwhile the others are asked whether they have a quorum: each once in a
   * round, the first round after 200 ms, then after pauses that double up to a
   * minute, less up to half by chance. The client moves to one that has, as
   * lk_client_set_hosts() says; it tells LK_STATE_SUSPENDED and then
   * LK_STATE_CONNECTED, with a session of its own. Such a server drops its
   * clients by itself when it finds its quorum again.
   *
   * What it gives is no session: it cannot be resumed, nor expire, and
   * lk_client_session() has none. Watches and identities outlast the change;
   * but a one-shot watch that was set there fires on the next connection,
   * whether anything has changed or not, unless it waits for a node that is
   * still missing: look again. The client does not go on with a server that has
   * less than it was shown, until all have refused it for half of the session
   * timeout; then it forgets what it was shown.
   *
   * A session that a server with a quorum gave is never taken to one without,
   * who would call it expired though it lives. So a client that has one is
   * suspended until it finds a quorum again or gives the session up
   * (`give_up_ms`); after that it takes what it finds.
   */
  bool read_only;
  size_t send_limit;        /**< largest request, bytes. 0: 1,048,575, which is
                                 the usual limit of servers */
  size_t receive_limit;     /**< largest answer, bytes. 0: 16 MiB */
  size_t outstanding_limit; /**< requests accepted and not ended. 0: 65,536 */
  const lk_session *resume; /**< a session to go on with, or NULL. Copied. Its
                                 ephemeral nodes stay; see lock.h */
  const lk_mem *mem;        /**< NULL: the C library's. Copied */
  /** Told what happens; `text` is one line without an end. May be NULL. Unlike
      other callbacks it comes in the middle of the client's work: it must not
      call any function of this client. */
  void (*log)(void *arg, int level, int err, const char *text);
  void *log_arg;
  /** What to trust and to show in TLS. Copied, see <latchkey/tls.h>. NULL: the
      defaults where `hosts` begins with "tls://"; else no TLS. */
  const lk_tls_config *tls;
  /** Prove by SASL who the client is, on each connection. Copied, see
      <latchkey/sasl.h>. NULL: no SASL. */
  const lk_sasl_config *sasl;
} lk_client_config;

/**
 * Make a client on `hooks` (copied; see <latchkey/driver.h>). Programs on
 * libev call lk_ev_client_new() instead.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_BAD_ARGUMENT, or LK_ERR_BAD_HOSTS: then
 *         lk_hosts_check() says what is wrong with the text. Of `sasl`:
 *         LK_ERR_UNIMPLEMENTED (no libgsasl), LK_ERR_SYSTEM (a password cannot
 *         be read: errno, and the log). After an error `*out` is NULL. Files of
 *         `tls` are not read yet: see lk_tls_check().
 */
LK_API int lk_client_new(lk_client **out, const lk_client_config *config,
                         const lk_hooks *hooks);

/**
 * Say what is wrong with a connect string: 0 and an empty text if nothing is.
 * Writes at most `size` bytes with the final NUL.
 */
LK_API int lk_hosts_check(const char *hosts, char *text, size_t size);

/**
 * Hand out each server of a connect string, in the order of the text: its name
 * or address, without brackets, borrowed until `each` returns, and its port.
 *
 * @return 0; LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY: `each` was not called.
 */
LK_API int lk_hosts_each(const char *hosts,
                         void (*each)(const char *host, uint16_t port,
                                      void *arg),
                         void *arg);

/**
 * Use the servers of this connect string from now on, in place of those known
 * so far. It may repeat the chroot and "tls://", but not change them: a client
 * with TLS keeps it, also where the text does not say so. The session stays, and
 * so mostly does the connection: a client moves to another server only if its
 * own is not listed any more, or if the list has grown, with the probability
 * that spreads many clients evenly over all servers.
 *
 * It moves at the first moment when it waits for no answer, and tells
 * LK_STATE_SUSPENDED with error 0; no request ends because of that. If there is
 * no such moment for a sixth of the session timeout, it sends no more, and
 * moves when all that was sent has been answered, but after a third of the
 * timeout in any case: what was not sent ends with LK_ERR_NOT_SENT, and what is
 * unanswered then as after a broken connection.
 *
 * @return 0; else nothing has changed: LK_ERR_BAD_HOSTS (lk_hosts_check() says
 *         why), LK_ERR_BAD_ARGUMENT (another chroot, or "tls://" for a client
 *         without TLS), LK_ERR_NO_MEMORY,
 *         LK_ERR_CLOSED (also while closing), LK_ERR_AUTH_FAILED,
 *         LK_ERR_FORKED.
 */
LK_API int lk_client_set_hosts(lk_client *c, const char *hosts);

/** Whether requests take `path`: 0 or LK_ERR_BAD_PATH. */
LK_API int lk_path_check(const char *path);

/** Ends lk_client_close(). `err` as there. */
typedef void (*lk_close_cb)(lk_client *c, int err, void *arg);

/**
 * End the session: all requests under way are sent, then closeSession; its
 * ephemeral nodes are gone when `done` gets 0. Waits 1.5 s at most. Whatever
 * is then unanswered ends with LK_ERR_CLOSED, and a write that never left with
 * LK_ERR_NOT_SENT. New requests are refused with
 * LK_ERR_CLOSED at once. Before it returns, holders of locks are notified of
 * the loss, and acquires end. Does not free the client.
 *
 * `done`'s err: 0, also where there is no session; LK_ERR_NOT_SENT,
 * LK_ERR_IN_DOUBT or LK_ERR_DEADLINE: the session lives until its timeout has
 * passed, unless the server got the word; LK_ERR_AUTH_FAILED: the same, and it
 * was refused; LK_ERR_SESSION_EXPIRED: it was gone already.
 *
 * @return 0; LK_ERR_CLOSED: closed or closing already; LK_ERR_FORKED: in a
 * child of the client's process, which cannot end the session. `done` is not
 *         called then.
 */
LK_API int lk_client_close(lk_client *c, lk_close_cb done, void *arg);

/**
 * Free the client; NULL is fine. The connection is dropped and the session
 * lives until its timeout has passed. Requests under way end with
 * LK_ERR_CLOSED (writes that never left: LK_ERR_NOT_SENT), and listeners are
 * told LK_STATE_CLOSED, before this returns (inside a callback: once all
 * callbacks have returned).
 */
LK_API void lk_client_free(lk_client *c);

/* ---- facts ------------------------------------------------------------ */

LK_API lk_state lk_client_state(const lk_client *c);
/** Negotiated session timeout in ms; before the first answer the wanted one. */
LK_API int32_t lk_client_timeout_ms(const lk_client *c);
/** Session id and password; id 0 while there is none, as in
    LK_STATE_READ_ONLY. */
LK_API lk_session lk_client_session(const lk_client *c);
/** Number of the present connection, counting from 1; 0: not connected. */
LK_API uint64_t lk_client_connection(const lk_client *c);
/** The largest zxid that an answer has brought: what is executed from now on
    has a larger one. 0: none has, also anew after the session expired. */
LK_API int64_t lk_client_zxid(const lk_client *c);
/** Until when, in ms on lk_client_clock(), a session that the client gave up by
    itself (`give_up_ms`) may live on at the servers, which until then may still
    execute its writes: one and a half session timeouts after the last bytes that
    left the client. INT64_MIN: no session was given up. */
LK_API int64_t lk_client_abandoned_session_end(const lk_client *c);
/** "host:port" of the server in use or tried; valid until the next input. */
LK_API const char *lk_client_server(const lk_client *c);
/** What its transport has to do in TLS; NULL: plain TCP. Valid as long as the
    client. */
LK_API const lk_tls_config *lk_client_tls(const lk_client *c);
/** The chroot, "" if none. Valid as long as the client. */
LK_API const char *lk_client_chroot(const lk_client *c);
/** Why the last connection or attempt ended: error, and text, valid until the
    next input; "" if none has. */
LK_API int lk_client_last_error(const lk_client *c, const char **text);
/** What kind of failure that was, after LK_ERR_TLS; else LK_TLS_OTHER. */
LK_API lk_tls_cause lk_client_tls_cause(const lk_client *c);
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

/** How much an answer proves about the session; see lk_reply. */
typedef enum lk_evidence {
  LK_EVIDENCE_NONE,       /**< a server without a quorum answered */
  LK_EVIDENCE_CONTACT,    /**< a server answered: ping, read, refused write */
  LK_EVIDENCE_LEADER,     /**< it went to the leader: sync */
  LK_EVIDENCE_COMMIT,     /**< a quorum committed it: a write, a multi */
  LK_EVIDENCE_RESUMED,    /**< handshake that resumed the session */
  LK_EVIDENCE_NEW_SESSION /**< handshake that created it (a committed write) */
} lk_evidence;

/** What is known of an answered request. */
typedef struct lk_reply {
  lk_evidence proof;
  int err;             /**< of the reply's header */
  int64_t zxid;        /**< of the reply's header; a write's own zxid */
  int64_t sent_ms;     /**< when it was queued for sending, or earlier */
  int64_t received_ms; /**< when the answer was read, or earlier */
  uint64_t connection; /**< lk_client_connection() it was sent on */
} lk_reply;

/** The answer that is being delivered; NULL outside a request's callback or
    when the request ended without an answer. */
LK_API const lk_reply *lk_client_reply(const lk_client *c);

/**
 * Somebody who wants to know. Memory is the listener's own; it stays where it
 * is from attach to detach. All members but `arg` may be NULL.
 */
typedef struct lk_listener {
  /** The state changed. What a listener requests while it is told of
      LK_STATE_CONNECTED or READ_ONLY leaves before all requests that were
      waiting.
      `err`: why, for SUSPENDED (0: it moves to another server), EXPIRED and
      AUTH_FAILED; else 0. */
  void (*state)(lk_client *c, lk_state state, int err, void *arg);
  /** Any request, ping or handshake was answered; before its callback. */
  void (*reply)(lk_client *c, const lk_reply *reply, void *arg);
  /** lk_client_close() was called, and has not returned. closeSession may be
      executed before its reply is read, so what needs the session is over. */
  void (*closing)(lk_client *c, void *arg);
  void *arg;
  struct lk_listener *next; /**< the client's */
  struct lk_listener *prev; /**< the client's */
} lk_listener;

/** Attach and detach, at any time, also while being told. Told in the order
    of attaching; one that is attached while others are told is told of what
    comes next. When a client is freed its listeners are detached. Detaching one
    that was detached already does nothing, while the client lives; zero a
    listener that may be detached before it was ever attached. Attaching one
    twice is an error of the caller. */
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

#ifdef __cplusplus
}
#endif
#endif
