/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CONNECTION_H
#define LK_PROTO_ENGINE_CONNECTION_H

/**
 * @file
 * The connection of a client: its phases from the attempt to the end, and the
 * pings. session.h has the handshake.
 */

#include <latchkey/client.h>

#include "base/buf.h"
#include "base/ring.h"
#include "proto/engine/hosts.h"

/** How far the connection, or the attempt at one, has come. */
typedef enum lk_phase {
  LK_PHASE_PAUSE,      /**< the next connection attempt begins at retry_ms */
  LK_PHASE_CONNECTING, /**< the driver is asked for a transport */
  LK_PHASE_HANDSHAKE,  /**< the connect request was written to the transport */
  LK_PHASE_SASL,       /**< the server has replied, and SASL is under way */
  LK_PHASE_LIVE,       /**< the server serves requests */
  LK_PHASE_ENDED       /**< the client was closed, or has failed for good */
} lk_phase;

/** Room for an address with its port. */
enum { LK_ADDRESS_SIZE = 96 };

typedef struct lk_engine_connection {
  lk_phase phase;
  uint64_t attempt;           /**< number of the last connection attempt */
  uint64_t handshake_attempt; /**< on which the connect request was written */
  uint64_t number;            /**< of the live connection; 0: there is none */
  uint64_t count;             /**< number of connections that were live */
  bool read_only;             /**< the connected server is read-only */
  bool input_lost;            /**< the driver gave an input from inside a
                                   callback, which was dropped: reconnect */
  bool attempt_failed;        /**< the next input reports that */
  bool refused_round; /**< every server that was tried in this round closed
                           the connection during the handshake */
  int64_t refused_since_ms; /**< the first of all such attempts in a row;
                                 LK_NEVER: the last one ended otherwise */
  unsigned failed_rounds;   /**< rounds of all servers without success, in a
                                 row */
  unsigned passes;  /**< the same without the round that the loss of a live
                         connection has ended */
  int64_t retry_ms; /**< when LK_PHASE_PAUSE ends */
  int64_t attempt_began_ms;
  int64_t attempt_end_ms;
  int64_t resolved_ms;   /**< when the addresses for the attempt were known;
                              LK_NEVER: they are not */
  int64_t connecting_ms; /**< how long the last connection took to connect … */
  int64_t handshake_ms;  /**< … and how long its handshake took */
  int64_t handshake_sent_ms;
  /** When the first connect request was sent since the last live connection;
      LK_NEVER: none was. */
  int64_t oldest_handshake_ms;
  int64_t live_ms;     /**< when the handshake completed */
  int64_t received_ms; /**< when bytes last arrived, whole frames or not */
  char server[272];    /**< "host:port" of the server in use */
  char peer[LK_ADDRESS_SIZE];  /**< its address; "": not known */
  char local[LK_ADDRESS_SIZE]; /**< the client's address; "": not known */
} lk_engine_connection;

/** Why the last connection or attempt ended. */
typedef struct lk_engine_error {
  char text[512];
  int err;
  lk_tls_cause tls_cause; /**< valid if `err` is LK_ERR_TLS */
} lk_engine_error;

/** The bytes for the connection. */
typedef struct lk_engine_output {
  lk_buf bytes;
  uint64_t sent;       /**< bytes that were sent on this connection */
  uint64_t limit;      /**< the client stops sending when `sent` reaches this;
                            UINT64_MAX: no limit */
  int64_t all_sent_ms; /**< when the driver last took all of `bytes` */
  int64_t sent_ms;     /**< when bytes were last sent, or a little later */
  bool sent_unstamped; /**< bytes were sent after sent_ms; the next input sets
                            it to its own time */
} lk_engine_output;

/** Set the phase, which only this function does. */
void lk__engine_connection_enter_phase(lk_client *c, lk_phase phase);
/** Ask the driver for a transport to the server in turn. */
void lk__engine_connection_begin(lk_client *c);
/** End the connection or the attempt at one, and go on with another. */
void lk__engine_connection_end(lk_client *c, int err, const char *why);
/** The same for bytes that no server sends. `why`: what is wrong with them,
    after a valid reply to the connect request. */
void lk__engine_connection_end_bad(lk_client *c, const char *why);

/** Use the servers of `fresh`, which is consumed. */
void lk__engine_connection_set_hosts(lk_client *c, lk_hosts *fresh);
/** Begin to move to another server. LK_ERR_STATE: there is no connection, or no
    other server. */
int lk__engine_connection_leave_server(lk_client *c);
/** A request or ping has its reply. If the connection has lasted, it counts as
    working: the next pause is short, and a new round of servers begins. */
void lk__engine_connection_note_reply(lk_client *c);

/** Reset all fields whose values are valid for one connection only. */
void lk__engine_connection_reset(lk_client *c);
/** Store and log why the connection ended. `why` NULL: the error's text. */
void lk__engine_connection_note_error(lk_client *c, lk_log_level level, int err,
                                      const char *why);
/** The pings of an idle client. */
typedef struct lk_engine_pings {
  lk_ring sent_ms; /**< of int64_t: when each ping without a reply was sent */
  uint64_t end;    /**< position of the end of the newest ping in the output
                        of the connection */
  int64_t overlapping_ping_ms; /**< when a ping was last sent while another one
                               had no reply: it may have extended the session */
} lk_engine_pings;

/** When lk__pings_run() has something to do on a live connection. */
int64_t lk__pings_deadline(const lk_client *c);
/** Send a ping if that is due at the client's clock.
    @return why the connection must be ended now: LK_ERR_CONNECTION_LOSS if
    nothing was received for two thirds of the session timeout, or
    LK_ERR_NO_MEMORY; 0: it goes on. */
int lk__pings_run(lk_client *c);

#endif
