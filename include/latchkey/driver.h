/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DRIVER_H
#define LK_DRIVER_H

/**
 * @file
 * The interface between a client and its driver, and two transports, TCP and
 * TLS, that a driver can use. Part of <latchkey/client.h>.
 */

#include <latchkey/tls.h>
#include <latchkey/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The connection that a client wants.
 *
 * The driver reports what has happened by these functions, the inputs:
 * lk_client_resolved(), _connected(), _failed(), _failed_tls(), _received(),
 * _probed() and _tick(). It calls them from its loop. After each input, and
 * after each call of the hook `wake`, it calls lk_client_want(),
 * lk_client_pending() and lk_client_deadline(), and acts on the results before
 * it waits.
 *
 * A new client wants no connection before its first lk_client_tick(), which is
 * due at once. `wake` is not called for it.
 *
 * During every input a callback may free the client; lk_hooks.freed is called
 * then, before the input returns. It is not called if lk_client_new() fails.
 * The other functions of this header invoke no callback.
 *
 * A driver must not call an input inside a callback of the client. If it does,
 * the input is lost, and the client drops the connection that the input was
 * about when the callback has returned.
 *
 * `attempt` numbers the connection attempts. An input for another attempt than
 * the present one is ignored, so late inputs do no harm. If lk_client_want()
 * gives another number than before, the driver closes its connection, and opens
 * a new one unless the number is 0. After lk_client_failed() the client never
 * wants the same attempt again: it wants 0 or another one.
 *
 * A lookup may be under way when its attempt ends. The driver cancels it, or
 * drops its result, which must not replace the addresses of a later lookup.
 *
 * The client calls the hook `wake` when all its callbacks have returned. It is
 * enough if `wake` makes the loop ask the client before it waits. Inside `wake`
 * a driver may also call lk_client_want(), _want_probe(), _pending(), _sent()
 * and _deadline(), and for an attempt that is not connected yet
 * lk_client_resolved(), _connected(), _failed() and _failed_tls(). Other inputs
 * have to wait until the call that woke the driver has returned.
 * lk_client_free() is allowed: it takes effect at the end of the input that is
 * running, or, if the program's own call woke the driver, of the next input,
 * which is due at once.
 */
typedef struct lk_want {
  size_t size;      /**< sizeof(lk_want), of the library */
  uint64_t attempt; /**< 0: no connection is wanted, close the present one */
  const char *host; /**< name or IP address, without brackets; valid until the
                         next input or lk_client_set_hosts() */
  uint16_t port;
  uint32_t address_index; /**< among the addresses of the name; if it is 0,
                               resolve the name again, else use the list of
                               the last lookup. Less than its length */
  int64_t tcp_ms;         /**< how long TCP may take to connect to one address:
                               for drivers that try several addresses of a name
                               in one attempt. 0: not connecting */
} lk_want;

/** The connection that the client wants now. Valid until the next call for this
    client. */
LK_API const lk_want *lk_client_want(lk_client *c);
/** The name was resolved to `count` (> 0) addresses; they are tried in turn,
    each with an attempt of its own. The deadline of the attempt moves: each
    address has its share of the time. Not needed for IP addresses.
 */
LK_API void lk_client_resolved(lk_client *c, uint64_t attempt, uint32_t count);
/** The addresses of the connection that lk_client_connected() is about to
    report, as "127.0.0.1:2181" or "[::1]:2181". Copied. Needed only for
    lk_client_peer(), lk_client_local() and mechanisms of SASL. It is no input,
    and may be called inside `wake`, too. NULL: not known. */
LK_API void lk_client_note_addresses(lk_client *c, uint64_t attempt,
                                     const char *local, const char *peer);
/** The transport of the attempt is connected; TLS has done its handshake. */
LK_API void lk_client_connected(lk_client *c, uint64_t attempt);
/** The attempt has failed. `err`: LK_ERR_RESOLVE, LK_ERR_CONNECT or LK_ERR_TLS;
    after lk_client_connected() LK_ERR_CONNECTION_LOSS, or 0 if the server has
    closed the connection without an error. Before the server has replied, both
    count as LK_ERR_REFUSED. `why`: a line for the log, or NULL.
 */
LK_API void lk_client_failed(lk_client *c, uint64_t attempt, int err,
                             const char *why);
/** The same with LK_ERR_TLS and its cause, lk_transport.cause. */
LK_API void lk_client_failed_tls(lk_client *c, uint64_t attempt,
                                 lk_tls_cause cause, const char *why);
/** Returns a buffer into which the driver may receive the next bytes of a long
    reply, which saves one copy. `*size` gets its size. The buffer is never
    longer than the missing part of the reply, nor than the part that the client
    already has: so a false length field allocates little. NULL: the buffer
    would be shorter than `least`, or there is no memory. The driver then
    receives into its own memory, which is always allowed. After bytes were
    received into the buffer, the next call for this client must be
    lk_client_received(). */
LK_API void *lk_client_receive_buffer(lk_client *c, uint64_t attempt,
                                      size_t least, size_t *size);
/** Bytes have arrived, in lk_client_receive_buffer() or in other memory.
    Deadlines that have passed are handled first. */
LK_API void lk_client_received(lk_client *c, uint64_t attempt,
                               const void *bytes, size_t len);
/** The bytes to send on the connected transport, valid until the next call for
    this client, lk_client_sent() included: ask again for the rest that the
    transport has not taken. If there are none, `len` is 0. */
LK_API lk_bytes lk_client_pending(lk_client *c);
/** The transport has taken the first `len` bytes of lk_client_pending(). Call
    it before lk_client_received() gets bytes that arrived later: a reply to a
    request that was not sent is a protocol error. */
LK_API void lk_client_sent(lk_client *c, uint64_t attempt, size_t len);

/**
 * The probe that a client wants. A client with `read_only` that is connected to
 * a read-only server probes all servers for a quorum. For each probe the driver
 * makes a connection of its own to any address of the name, sends LK_PROBE,
 * reads until the server closes it, and passes the bytes to lk_client_probed();
 * no bytes if that fails. `attempt` numbers the probe; 0: none is wanted, close
 * the connection of the last one.
 *
 * A driver calls this together with lk_client_want(). If it never does, a
 * client stays at a read-only server until that drops the connection. Valid
 * until the next call for this client.
 */
LK_API const lk_want *lk_client_want_probe(lk_client *c);
#define LK_PROBE "isro"
/** The reply to a probe; ignored if `probe` is not the present one. A reply
    longer than LK_PROBE_ROOM may be cut. */
LK_API void lk_client_probed(lk_client *c, uint64_t probe, const void *reply,
                             size_t len);
enum { LK_PROBE_ROOM = 16 };

/** When lk_client_tick() is due, in ms on the clock of lk_hooks.now; INT64_MAX:
    never. */
LK_API int64_t lk_client_deadline(const lk_client *c);
/** Do what is due by now. */
LK_API void lk_client_tick(lk_client *c);

/* ---- transports --------------------------------------------------------- */

/**
 * How the bytes of a connection reach a server. The library has two transports,
 * which any loop can use; a driver may bring its own. They set TCP_NODELAY, as
 * any transport should: requests are small, and would wait for
 * acknowledgements.
 *
 * No function blocks on the network, or runs for long while the server keeps
 * sending. A function that could not finish names the state of the descriptor
 * for which to wait before the next call. The descriptor may be in that state
 * already: watch its level, not its edges. A driver treats a value that it does
 * not know as LK_FLOW_FAILED.
 *
 * Threads: an lk_transport belongs to one thread at a time.
 */
typedef enum lk_flow {
  LK_FLOW_DONE = 0,  /**< finished */
  LK_FLOW_READ = 1,  /**< call again when the descriptor is readable */
  LK_FLOW_WRITE = 2, /**< call again when it is writable */
  LK_FLOW_END = 3,   /**< the server has closed the connection; not of send() */
  LK_FLOW_FAILED = 4, /**< see `err` and `why`. Only close() and
                       lk_tls_inspect() may follow; after send() also recv(),
                       since replies may have arrived before the failure */
} lk_flow;

/** The first member of each transport's object. New members may follow `why`.
 */
typedef struct lk_transport {
  int fd;             /**< -1 while closed */
  int err;            /**< after LK_FLOW_FAILED, for lk_client_failed() */
  int sys_errno;      /**< the errno that caused `err`; 0: none */
  lk_tls_cause cause; /**< after LK_ERR_TLS: what kind of failure it was */
  char why[384];      /**< after LK_FLOW_FAILED: a line for people */
} lk_transport;

struct sockaddr;

/** The server that a transport connects to. Borrowed during open(). Set
    `size`. */
typedef struct lk_endpoint {
  size_t size;                    /**< sizeof(lk_endpoint) */
  const struct sockaddr *address; /**< IPv4 or IPv6, with the port */
  unsigned address_len;
  const char *host;         /**< lk_want.host, which a certificate must name */
  const lk_tls_config *tls; /**< lk_client_tls() */
} lk_endpoint;

/** A kind of transport. All functions but `has_more` and `end` are set. */
typedef struct lk_transport_type {
  size_t size; /**< sizeof(lk_transport_type), of the library */
  /** The size of the transport's object, whose first member is an
      lk_transport. The driver allocates the object, sets it to zeros, and `fd`
      to -1. */
  size_t object_size;
  /** Begin to connect. Results as those of handshake(). If `size` of `to` is
      not set, it fails. */
  lk_flow (*open)(lk_transport *t, const lk_endpoint *to);
  /** Go on connecting. LK_FLOW_DONE: call lk_client_connected(). */
  lk_flow (*handshake)(lk_transport *t);
  /** Send what the system takes now. `done`: how many bytes it took, whatever
      the result. The rest must be offered again, and may be longer by then. */
  lk_flow (*send)(lk_transport *t, const void *bytes, size_t len, size_t *done);
  /** LK_FLOW_DONE: `got` bytes (> 0) were received. */
  lk_flow (*recv)(lk_transport *t, void *room, size_t size, size_t *got);
  /** Whether recv() has more to give without the descriptor becoming readable;
      ask after recv(), and if so call it before waiting. NULL: never. */
  bool (*has_more)(const lk_transport *t);
  /** Close the descriptor. Sends nothing, so that a forked child can close its
      copy of a connection. open() may follow. */
  void (*close)(lk_transport *t);
  /** Free the memory that the object has allocated. The driver calls it once,
      after close(), before it frees the object itself. NULL: the object
      allocates none. */
  void (*end)(lk_transport *t);
} lk_transport_type;

/** Plain TCP. */
LK_API const lk_transport_type *lk_transport_tcp(void);

/** TLS on TCP, as <latchkey/tls.h> says. NULL: the library was built without
    OpenSSL. */
LK_API const lk_transport_type *lk_transport_tls(void);

/** The transport that `c` asks for. NULL: TLS, which this build lacks. */
LK_API const lk_transport_type *lk_transport_of(const lk_client *c);

#ifdef __cplusplus
}
#endif
#endif
