/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLIENT_H
#define LK_CLIENT_H

/**
 * @file
 * A ZooKeeper client: one session, its requests and its watches.
 *
 * A client does no I/O, reads no clock and draws no random numbers; a driver
 * does that for it. The usual way to create a client is one of the library's
 * drivers: <latchkey/ev.h> for libev, or <latchkey/poll.h> for poll(2).
 * <latchkey/driver.h> is the interface for other drivers.
 *
 * This header has the life, the state and the listeners of a client. It
 * includes the requests: <latchkey/request.h>, <latchkey/multi.h>,
 * <latchkey/ensemble.h> and <latchkey/watch.h>.
 *
 * Threads: a client and its objects belong to one thread at a time.
 *
 * Callbacks: an accepted request (result 0) completes with exactly one call of
 * its `done`, never before the call that queued it has returned. The arguments
 * of a callback are borrowed until it returns. A callback may call any
 * function, lk_client_free() included: the client is freed when all callbacks
 * have returned. `done` may be NULL.
 *
 * A request may be refused: the call returns an error, and `done` is never
 * called. Any request can be refused with one of these errors:
 *   LK_ERR_BAD_PATH       not absolute, not UTF-8, with an empty, "." or ".."
 *                         component, with a trailing "/" (which a sequential
 *                         create may have), or with a character that servers
 *                         refuse: control characters, U+D800 to U+F8FF, and all
 *                         above U+FFEF;
 *   LK_ERR_BAD_ARGUMENT   a flag, a version or an option out of range;
 *   LK_ERR_TOO_BIG        the request is larger than `send_limit`;
 *   LK_ERR_TOO_MANY       `outstanding_limit` requests are outstanding;
 *   LK_ERR_UNIMPLEMENTED  in the last minute, a server of this host name and
 *                         port has rejected such a request as unknown (a name
 *                         may stand for several servers). The client does not
 *                         send it again, because servers close the connection
 *                         when they reject it. Or the server has dropped such
 *                         requests twice in a row: it has replied to later
 *                         ones, as RaftKeeper does and ZooKeeper does not;
 *   LK_ERR_NOT_READ_ONLY  a write, a multi or a sync in LK_STATE_READ_ONLY;
 *   LK_ERR_DEADLINE       its deadline or timeout has passed already;
 *   LK_ERR_NOT_CONNECTED  with LK_OFFLINE_FAIL: the client pauses between its
 *                         attempts to connect;
 *   LK_ERR_NO_MEMORY, LK_ERR_CLOSED (also after expiry, if `one_session` is
 *   set), LK_ERR_AUTH_FAILED, LK_ERR_FORKED.
 *
 * An accepted request completes with 0, with the server's error, or with
 *   LK_ERR_NOT_SENT       the request was not executed: the client lost a
 *                         connection before it had sent the request there
 *                         (without `repeat`), or was closed before it had sent
 *                         a write. Requests that are made without a connection
 *                         wait for the next one instead;
 *   LK_ERR_CONNECTION_LOSS
 *                         a read or a sync (without `repeat`) whose reply was
 *                         lost;
 *   LK_ERR_IN_DOUBT       a write whose reply was lost, or whose reply was the
 *                         server's own CONNECTION_LOSS. It may have been
 *                         executed, or may be executed later;
 *   LK_ERR_REPLY_TOO_BIG  a read whose reply is larger than `receive_limit`;
 *   LK_ERR_DEADLINE       the request's own deadline has passed. A write may
 *                         have been executed, or may be executed later;
 *   LK_ERR_UNIMPLEMENTED, LK_ERR_NOT_READ_ONLY
 *                         as above, if the request waited for a connection and
 *                         the server that was found does not support it. It is
 *                         not sent;
 *   LK_ERR_SESSION_EXPIRED
 *                         the session ended while the request waited for a
 *                         connection, so the request was not sent; or the
 *                         server replied with this error. If the connection of
 *                         a write is lost first, the write completes with
 *                         LK_ERR_IN_DOUBT at that time;
 *   LK_ERR_AUTH_FAILED, LK_ERR_CLOSED
 *                         the client ended before the reply arrived. A write
 *                         that was sent may have been executed, although the
 *                         error is not LK_ERR_IN_DOUBT.
 *
 * Timeouts and deadlines are in ms. A timeout counts from the call, and never
 * ends early. A deadline is a time on lk_client_clock(); several calls can
 * share one. If both are set, the earlier one counts. Special values:
 *
 *   value             in a struct  as an argument
 *   LK_NO_LIMIT (-1)  no limit     no limit
 *   0                 no limit     has passed
 *   other negative    has passed   has passed
 *
 * A deadline has passed as soon as the clock has reached it. A call whose
 * deadline or timeout has passed when it is made is refused with
 * LK_ERR_DEADLINE. An accepted call that sends several requests completes in
 * its callback instead, if the deadline passes before one of them.
 *
 * Options: a struct whose first member is `size` gets its own sizeof there, and
 * 0 in all options that keep their default: initialise it with
 * {.size = sizeof x}. It is copied during the call. Program and library may
 * have been compiled with different versions of the headers. If the program's
 * struct is the shorter one, the missing options count as 0. If it is the
 * longer one, the bytes that the library does not know must be 0; otherwise the
 * call is refused with LK_ERR_BAD_ARGUMENT. A struct without its size is
 * refused with LK_ERR_BAD_ARGUMENT, and the client's log names it
 * ("lk_call.size is not set") if there is a client already.
 *
 * Other structs keep their size as long as the library its soname. Some have
 * members `reserved` for later versions, which are 0. Structs that only the
 * library makes and gives by a pointer, such as lk_event, may get members at
 * their end: a program must not make one, nor an array of them.
 *
 * Order: while there is a connection, requests are sent, and complete, in the
 * order of the calls. Two kinds of requests may complete before earlier ones:
 * those whose deadline passes, and those that the server does not support.
 * Requests that are made without a connection wait for the next one. On a new
 * connection the client sends, in this order:
 *   - requests that listeners make when they are notified of
 *     LK_STATE_CONNECTED or LK_STATE_READ_ONLY;
 *   - requests with `repeat` that were made on an earlier connection and have
 *     no reply;
 *   - requests that were made without a connection.
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

/** The state of a client and its session. A program treats a value that it does
    not know as LK_STATE_SUSPENDED. */
typedef enum lk_state {
  LK_STATE_CONNECTING = 0, /**< no session yet, looking for a server */
  LK_STATE_CONNECTED = 1,  /**< requests are served */
  LK_STATE_READ_ONLY = 2, /**< reads are served by a read-only server, which has
                           no quorum; only if `read_only` is set */
  LK_STATE_SUSPENDED = 3, /**< no connection; the session may still be alive */
  LK_STATE_EXPIRED = 4, /**< the session has expired, or the client has given it
                         up (`give_up_ms`: then the servers may keep it and
                         its ephemeral nodes for longer, see
                         lk_client_abandoned_session_end()). Watches have
                         ended. CONNECTING follows; CLOSED if `one_session`
                         is set or the client is closing */
  LK_STATE_AUTH_FAILED = 5, /**< the server has refused the credentials, or
                             requires some and got none; with SASL also: the
                             server has not proven that it is the right one.
                             CLOSED follows */
  /** The client has ended. Each client enters this state once, by
      lk_client_free() at the latest, and never leaves it. */
  LK_STATE_CLOSED = 6
} lk_state;

/** "connecting", "connected", …: for logs. */
LK_API const char *lk_state_text(lk_state state);

/** A session's id and password, which are enough to resume it. */
typedef struct lk_session {
  int64_t id; /**< opaque; shown as unsigned hex */
  unsigned char password[16];
} lk_session;

/** How severe a line of the log is: the smaller, the more severe. Connection
    attempts that fail have LK_LOG_INFO, with LK_ERR_TLS LK_LOG_WARNING. A
    program treats a level that it does not know as LK_LOG_DEBUG. */
typedef enum lk_log_level {
  LK_LOG_ERROR = 1,
  LK_LOG_WARNING = 2,
  LK_LOG_INFO = 3,
  LK_LOG_DEBUG = 4
} lk_log_level;

/** The functions that a client needs of its driver. Set `size`. */
typedef struct lk_hooks {
  size_t size; /**< sizeof(lk_hooks) */
  /** Milliseconds, more than 0, on a clock that also runs while the machine
      sleeps. */
  int64_t (*now)(void *arg);
  /** Fill `len` bytes at `out` with unpredictable values. */
  void (*random)(void *arg, void *out, size_t len);
  /** Output, deadline or wanted connection may have changed: ask for them
      before waiting. Called when the last callback has returned.
      <latchkey/driver.h> lists the functions that it may call. */
  void (*wake)(lk_client *c, void *arg);
  /** The client was freed; no other hook is called any more. May be NULL. */
  void (*freed)(lk_client *c, void *arg);
  /** Whether this is a forked child of the client's process. May be NULL. */
  bool (*forked)(void *arg);
  void *arg;
} lk_hooks;

/** Options of a client. Set `size`; 0 selects the default. */
typedef struct lk_client_config {
  size_t size; /**< sizeof(lk_client_config) */
  /** "[tls://]host[:port]{,host[:port]}[/chroot]", IPv6 literals in brackets.
      Without a port: 2181, with TLS 2281. Copied. NULL: "127.0.0.1". The
      library's own drivers look up names by getaddrinfo(), on threads. */
  const char *hosts;
  /** Requested; the server decides. 0: 30,000. While the client looks for a
      server, it tries every server once in each round, and these attempts share
      two thirds of this time. In the first round a server that cannot be
      reached delays the client by a second, and one that accepts the connection
      and does not reply by an eighth of this time, at least a second. */
  int32_t session_timeout_ms;
  /** While there is no connection: give up the session as expired after this
      many ms without a reply, before a server has said so. 0: 4/3 of the
      negotiated timeout; LK_NO_LIMIT: never. */
  int32_t give_up_ms;
  bool one_session; /**< an expiry ends the client: LK_STATE_CLOSED follows */
  /** Try the servers in the order of `hosts`. Without it the order is random,
      so that many clients spread over the servers. When a connection is lost,
      the next server in the list follows. lk_client_set_hosts() does not
      balance the load: the client stays if its server is in the new list, and
      begins with the first one otherwise. The addresses of a name are tried in
      random order in any case. */
  bool in_order;
  /**
   * Accept a read-only server while the client has no session. Such a server
   * has lost its quorum and serves only reads. It must run with
   * readonlymode.enabled and, to accept clients without a session, with
   * localSessionsEnabled. The state is then LK_STATE_READ_ONLY. The replies may
   * be old, or show transactions that were never committed, and prove nothing
   * (LK_EVIDENCE_NONE): no lock is granted by them.
   *
   * While it is connected to such a server, the client probes all servers for
   * a quorum, one after the other, in rounds. Before each round it pauses: for
   * 200 ms before the first, for twice as long before each later one, at most
   * for a minute. Each of these pauses is shortened at random by up to half.
   * When a probe finds a server with a quorum, the client moves to it as
   * lk_client_set_hosts() describes: LK_STATE_SUSPENDED, then
   * LK_STATE_CONNECTED with a new session. A read-only server that finds its
   * quorum drops its clients by itself.
   *
   * A read-only connection has no session: lk_client_session() is empty, and
   * nothing can be resumed or expire. Watches, and identities that were added
   * by lk_add_auth(), stay when the client moves. A one-shot watch that was set
   * on the read-only server fires on the next connection even if nothing has
   * changed: read the node again then. Only a watch for the creation of a node
   * does not fire while the node is missing.
   *
   * Servers refuse a client that has seen a larger zxid than they have, and a
   * read-only server may have shown such a zxid. The client therefore forgets
   * the zxid if it has no session and all servers have refused it for half of
   * the requested session timeout.
   *
   * A session from a server with a quorum is never taken to a read-only server,
   * which would call it expired although it is alive. A client with a session
   * is suspended until it finds a quorum or gives up the session
   * (`give_up_ms`); after that it accepts a read-only server.
   */
  bool read_only;
  size_t send_limit;    /**< largest request, bytes. 0: 1,048,575, which is
                             the default limit of servers */
  size_t receive_limit; /**< largest reply, bytes. 0: 16 MiB */
  size_t
      outstanding_limit; /**< requests accepted and not completed. 0: 65,536 */
  const lk_session *resume; /**< a session to resume; NULL or with id 0: none.
                                 Copied. Its ephemeral nodes stay; see lock.h.
                                 Its former client must have ended */
  const lk_mem *mem;        /**< NULL: the C library's. Copied */
  lk_log_level log_level;   /**< the least severe level that is logged; other
                                 lines are not formatted. 0: LK_LOG_INFO */
  /** Log callback; `text` is one line without a newline, which says what has
      happened and why. `err` is the error that it is about, or 0. May be NULL.
      Unlike other callbacks it is invoked while the client is changing: it must
      not call any function of this client. */
  void (*log)(void *arg, lk_log_level level, int err, const char *text);
  void *log_arg;
  /** Options of TLS. Copied, see <latchkey/tls.h>. NULL: the defaults if
      `hosts` begins with "tls://", else no TLS. */
  const lk_tls_config *tls;
  /** Authenticate by SASL on each connection. Copied, see <latchkey/sasl.h>.
      NULL: no SASL. */
  const lk_sasl_config *sasl;
} lk_client_config;

/**
 * Create a client that uses `hooks` (copied; see <latchkey/driver.h>). Programs
 * that use a driver of the library call lk_ev_client_new() or
 * lk_poll_client_new() instead.
 *
 * @return 0; LK_ERR_NO_MEMORY; LK_ERR_BAD_ARGUMENT; LK_ERR_BAD_HOSTS:
 *         lk_hosts_check() gives the reason. With `sasl` also
 *         LK_ERR_UNIMPLEMENTED: the library was built without libgsasl;
 *         LK_ERR_SYSTEM: a password cannot be read, see errno and the log.
 *         After an error `*out` is NULL. Files of `tls` are not read yet: see
 *         lk_tls_check().
 */
LK_API int lk_client_new(lk_client **out, const lk_client_config *config,
                         const lk_hooks *hooks);

/**
 * Check a connect string. `text` gets the reason why it is invalid, at most
 * `size` bytes with the final NUL, or an empty string.
 *
 * @return 0, LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY.
 */
LK_API int lk_hosts_check(const char *hosts, char *text, size_t size);

/**
 * Call `each` for each server of a connect string, in order: with its name or
 * address, without brackets and borrowed until `each` returns, and its port.
 *
 * @return 0; LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY: `each` was not called.
 */
LK_API int lk_hosts_each(const char *hosts,
                         void (*each)(const char *host, uint16_t port,
                                      void *arg),
                         void *arg);

/**
 * Replace the servers of the client. `hosts` may repeat the chroot and
 * "tls://", but not change them: a client with TLS keeps it even if the text
 * does not name it. The session stays. The client moves to another server if
 * its own is no longer listed. If its own is listed and the list has grown, it
 * moves with the probability that spreads many clients evenly over all servers.
 * Otherwise the connection stays, too.
 *
 * A move is reported as LK_STATE_SUSPENDED with error 0. The client, with a
 * session timeout T, moves
 *   - at the first moment when no reply is outstanding. No request completes
 *     because of this move;
 *   - if there is no such moment within T / 6: as soon as all requests that
 *     were made by then have their replies. Requests that are made after T / 6
 *     are not sent on the old connection, and complete with LK_ERR_NOT_SENT at
 *     the move;
 *   - at T / 3 in any case. Then all outstanding requests complete as after a
 *     lost connection.
 * In each case, requests with `repeat` are sent on the next connection instead.
 *
 * @return 0; else nothing has changed: LK_ERR_BAD_HOSTS (lk_hosts_check() gives
 *         the reason), LK_ERR_BAD_ARGUMENT (another chroot, or "tls://" for a
 *         client without TLS), LK_ERR_NO_MEMORY, LK_ERR_CLOSED (also while
 *         closing), LK_ERR_AUTH_FAILED, LK_ERR_FORKED.
 */
LK_API int lk_client_set_hosts(lk_client *c, const char *hosts);

/**
 * Leave the server in use for another one, as before it is shut down. The
 * client moves as lk_client_set_hosts() describes; the session stays. It tries
 * the server again if no other one accepts it.
 *
 * @return 0; LK_ERR_STATE: there is no connection, or neither another server
 *         nor another address; LK_ERR_CLOSED, LK_ERR_AUTH_FAILED,
 *         LK_ERR_FORKED.
 */
LK_API int lk_client_leave_server(lk_client *c);

/** Check whether requests accept `path`. @return 0 or LK_ERR_BAD_PATH. */
LK_API int lk_path_check(const char *path);

/** Completes lk_client_close(). `err` as described there. */
typedef void (*lk_close_cb)(lk_client *c, int err, void *arg);

/**
 * Close the session: outstanding requests are sent, then closeSession; a client
 * without a connection connects for that. `done` is called, and LK_STATE_CLOSED
 * reported, when the server has replied, at the latest after 1.5 s. Then
 * requests without a reply complete with LK_ERR_CLOSED, and writes that
 * were not sent with LK_ERR_NOT_SENT. New requests are refused with
 * LK_ERR_CLOSED. Before this returns, holders of locks are notified of the
 * loss, and acquires end. Watches may get events until the client has ended,
 * also of its own ephemeral nodes. Does not free the client.
 *
 * `done` gets
 *   0: the session is closed and its ephemeral nodes no longer exist, or there
 *     was no session. A session that the client has given up before
 *     (`give_up_ms`) counts as none, although the servers may keep it;
 *   LK_ERR_NOT_SENT: closeSession was not sent; the session lives until its
 *     timeout has passed;
 *   LK_ERR_IN_DOUBT, LK_ERR_DEADLINE: there is no reply; the session is closed,
 *     or lives until its timeout has passed;
 *   LK_ERR_AUTH_FAILED: the server has refused the client; the session lives
 *     until its timeout has passed;
 *   LK_ERR_SESSION_EXPIRED: the session has expired meanwhile, or the client
 *     has given it up.
 * The timeout of a session passes only while the servers have a quorum, and
 * begins anew when they elect a leader.
 *
 * @return 0; LK_ERR_CLOSED: closing already, or the client has ended;
 *         LK_ERR_FORKED: in a child of the client's process, which cannot close
 *         the session. After an error `done` is not called.
 */
LK_API int lk_client_close(lk_client *c, lk_close_cb done, void *arg);

/**
 * Free the client; NULL is allowed. The connection is closed; the session stays
 * alive until its timeout has passed. Before this returns (inside a callback:
 * when all callbacks have returned), outstanding requests complete with
 * LK_ERR_CLOSED (writes that were not sent: LK_ERR_NOT_SENT), listeners get
 * LK_STATE_CLOSED unless they got it before, objects that live on the client
 * end, and lk_hooks.freed is called. After that no callback, no hook and no log
 * function is called.
 *
 * Locks, candidates, members, subscriptions and rosters may be freed before
 * their client or after it, in any order. Without any of them the memory is
 * given back before this returns. Otherwise an ended client is left, without
 * its buffers, until the last of them is freed through the client's lk_mem,
 * which must work until then. Its pointer stays valid as long, and it answers:
 *
 *   a request,                        LK_ERR_CLOSED (LK_ERR_AUTH_FAILED if the
 *   lk_client_set_hosts()             client has ended with that)
 *   lk_client_close()                 LK_ERR_CLOSED
 *   a call of an object, such as      as after any other end of the client
 *   lk_lock_acquire()
 *   lk_client_state()                 LK_STATE_CLOSED
 *   lk_client_clock()                 the last reading, which is
 *                                     lk_client_input_ms()
 *   lk_client_random()                zeros
 *   lk_client_chroot()                ""
 *   lk_client_tls(), _reply()         NULL
 *   other queries                     what they returned at the end
 *   lk_watch_remove()                 LK_ERR_STATE
 *   lk_timer_start(), lk_client_log(), lk_watch_cancel(),
 *   attach and detach                 do nothing
 */
LK_API void lk_client_free(lk_client *c);

/* ---- queries ---------------------------------------------------------- */

LK_API lk_state lk_client_state(const lk_client *c);
/** Negotiated session timeout in ms; before the first connection the requested
    one. */
LK_API int32_t lk_client_timeout_ms(const lk_client *c);
/** Session id and password; id 0 while there is none, as in
    LK_STATE_READ_ONLY. */
LK_API lk_session lk_client_session(const lk_client *c);
/** The number of the present connection, a counter that begins with 1; 0: not
    connected. */
LK_API uint64_t lk_client_connection(const lk_client *c);
/** The largest zxid of any reply: transactions from now on have larger ones.
    0: no reply has come, or none since the session expired. */
LK_API int64_t lk_client_zxid(const lk_client *c);
/** The time on lk_client_clock(), in ms, by which the servers have ended every
    session that the client gave up (`give_up_ms`): 1.5 session timeouts after
    the client last sent bytes in it. Until then they may execute writes of that
    session. This holds if the servers have had a leader all that time. Without
    a quorum no session ends, and a new leader gives each its full timeout
    again. INT64_MIN: no session was given up. */
LK_API int64_t lk_client_abandoned_session_end(const lk_client *c);
/** "host:port" of the server in use or tried. Valid until the program returns
    to the driver's loop, or calls lk_client_set_hosts(). */
LK_API const char *lk_client_server(const lk_client *c);
/** Address and port of the server of the present connection, such as
    "127.0.0.1:2181" or "[::1]:2181", and those of the client's end. ""
    without a connection, or if the driver does not tell. Valid as
    lk_client_server(). */
LK_API const char *lk_client_peer(const lk_client *c);
LK_API const char *lk_client_local(const lk_client *c);
/** The options of TLS for the transport; NULL: plain TCP. Valid as long as the
    client. */
LK_API const lk_tls_config *lk_client_tls(const lk_client *c);
/** The chroot, "" if none. Valid as long as the client. */
LK_API const char *lk_client_chroot(const lk_client *c);
/** Why the last connection or connection attempt ended: the error, and a text
    that is valid until the program returns to the driver's loop; 0 and "" if
    none has ended. It stays when the next connection is established, and is
    then no reason of what fails later. */
LK_API int lk_client_last_error(const lk_client *c, const char **text);
/** The kind of failure if that error is LK_ERR_TLS; else LK_TLS_OTHER. */
LK_API lk_tls_cause lk_client_tls_cause(const lk_client *c);
/** When the driver last reported an input, in ms: the clock as it was read
    then. Never later than lk_client_clock(). */
LK_API int64_t lk_client_input_ms(const lk_client *c);
/** The time now, in ms: the hook `now` is called. */
LK_API int64_t lk_client_clock(const lk_client *c);
LK_API void lk_client_random(lk_client *c, void *out, size_t len);
/** The allocator of the client; valid as long as the client. */
LK_API const lk_mem *lk_client_mem(const lk_client *c);
/** Write a line to the client's log, if its `log_level` has it. */
LK_API void lk_client_log(const lk_client *c, lk_log_level level, int err,
                          const char *text);

/* ---- listeners and timers --------------------------------------------- */

/** Evidence about the session that a reply gives. A program treats a value that
    it does not know as LK_EVIDENCE_NONE. */
typedef enum lk_evidence {
  LK_EVIDENCE_NONE = 0,    /**< the reply of a read-only server */
  LK_EVIDENCE_CONTACT = 1, /**< the reply of a server to a ping or a read, and
                            each other reply with an error */
  LK_EVIDENCE_LEADER = 2,  /**< the leader replied: sync */
  LK_EVIDENCE_COMMIT = 3,  /**< a quorum committed it: a write; or a multi, also
                            one that failed with LK_ERR_NO_NODE, LK_ERR_NO_AUTH,
                            LK_ERR_BAD_VERSION, LK_ERR_NODE_EXISTS or
                            LK_ERR_NOT_EMPTY in its results: then its error was
                            committed */
  LK_EVIDENCE_RESUMED = 4, /**< handshake that resumed the session */
  /** Handshake that created it (a committed write). */
  LK_EVIDENCE_NEW_SESSION = 5
} lk_evidence;

/** A reply, without its body. */
typedef struct lk_reply {
  lk_evidence evidence;
  int err;             /**< of the reply's header */
  int64_t zxid;        /**< of the reply's header; a write's own zxid */
  int64_t sent_ms;     /**< a lower bound of the time when the request was sent:
                            lk_client_input_ms() when it was queued */
  int64_t received_ms; /**< a lower bound of the time when the reply was read:
                            the clock is read once for all replies of an
                            input */
  uint64_t connection; /**< lk_client_connection() it was sent on */
} lk_reply;

/** The reply that is being delivered; NULL outside of a request's callback, or
    if the request completes without a reply. */
LK_API const lk_reply *lk_client_reply(const lk_client *c);

/**
 * A listener of a client. The memory is the caller's and must not move, nor
 * `reply` become or cease to be NULL, from attach to detach. Set `size`. All
 * functions may be NULL. A listener without `reply` costs nothing at a reply.
 */
typedef struct lk_listener {
  size_t size; /**< sizeof(lk_listener) */
  /** The state has changed; attaching reports no state. Requests that a
      listener makes when `state` is LK_STATE_CONNECTED or LK_STATE_READ_ONLY
      are the first ones that are sent on the new connection. `err`: the reason
      of LK_STATE_SUSPENDED (0: the client moves to another server),
      LK_STATE_EXPIRED and LK_STATE_AUTH_FAILED, and that of the LK_STATE_CLOSED
      which follows one of the last two; else 0. When a session or the client
      ends, listeners are notified first, then requests complete, and then
      watches end. */
  void (*state)(lk_client *c, lk_state state, int err, void *arg);
  /** A connection attempt has failed; the client goes on trying. The loss of a
      connection is reported by `state` instead. `err` and `why` are those of
      lk_client_last_error(): `why` begins with the server, says all that is
      known, and is valid until this returns. It is called in the next input of
      the driver, which is due at once. Of several attempts that fail in the
      hook `wake`, the last one is reported. */
  void (*attempt)(lk_client *c, int err, const char *why, void *arg);
  /** The reply to a request, ping or handshake; before its callback. */
  void (*reply)(lk_client *c, const lk_reply *reply, void *arg);
  /** lk_client_close() was called, and has not returned. End everything that
      depends on the session: the server may execute closeSession long before
      the client reads the reply. */
  void (*closing)(lk_client *c, void *arg);
  void *arg;
  lk_link in_list[2]; /**< the client's */
} lk_listener;

/** Attach and detach, at any time, also inside of a listener. Listeners are
    notified in the order of attaching; one that is attached during a
    notification gets only later ones. Freeing a client detaches its listeners.
    Detaching a listener that is not attached does nothing while the client
    exists; zero a listener that may be detached before it was ever attached.
    Attaching a listener twice is an error of the caller.

    @return 0; else it is not attached: LK_ERR_CLOSED: in LK_STATE_CLOSED;
            LK_ERR_BAD_ARGUMENT: `size` is not set, or the listener has a
            function that is newer than the library. */
LK_API int lk_client_attach(lk_client *c, lk_listener *l);
LK_API void lk_client_detach(lk_client *c, lk_listener *l);

/**
 * A timer on the client's clock. The memory is the caller's; zero it first, and
 * stop the timer before freeing it. It fires once. If it is due and bytes have
 * arrived as well, it fires before these are processed. Starting a timer cannot
 * fail. LK_STATE_CLOSED stops all timers without firing them; after that,
 * starting one does nothing.
 */
typedef struct lk_timer {
  void (*fire)(lk_client *c, void *arg);
  void *arg;
  lk_heap_node node; /**< the client's */
  void *reserved[2];
} lk_timer;

/** Start, or move, `t` to fire at `at_ms` on the client's clock. */
LK_API void lk_timer_start(lk_client *c, lk_timer *t, int64_t at_ms);
LK_API void lk_timer_stop(lk_client *c, lk_timer *t);

#ifdef __cplusplus
}
#endif
#endif
