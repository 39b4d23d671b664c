/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SESSION_H
#define LK_PROTO_ENGINE_SESSION_H

/**
 * @file
 * The session of a client, and the phases of its connection.
 */

#include <latchkey/client.h>

#include "base/buf.h"
#include "proto/engine/hosts.h"
#include "proto/wire/handshake_frames.h"

/** How far the connection, or the attempt at one, has come. */
typedef enum lk_phase {
  LK_PHASE_PAUSE,      /**< no transport wanted before retry_ms */
  LK_PHASE_CONNECTING, /**< a transport is wanted */
  LK_PHASE_HANDSHAKE,  /**< connected; the connect request was written */
  LK_PHASE_SASL,       /**< it has its reply; nothing but SASL is sent */
  LK_PHASE_LIVE,       /**< requests are served */
  LK_PHASE_ENDED       /**< closed, or failed for good */
} lk_phase;

typedef struct lk_engine_session {
  lk_state state;      /**< as listeners know it */
  int final_err;       /**< why requests are refused for good; or 0 */
  lk_session identity; /**< id 0: there is no session */
  int32_t timeout_ms;  /**< negotiated; before that, the wanted one */
  int64_t last_zxid;   /**< of replies only */
  int32_t last_xid;
  int64_t proven_ms; /**< when the newest request with a reply was sent */
  int64_t abandoned_end_ms; /**< lk_client_abandoned_session_end() */
} lk_engine_session;

typedef struct lk_engine_connection {
  lk_phase phase;
  uint64_t attempt;           /**< number of the last connection attempt */
  uint64_t handshake_attempt; /**< on which the connect request was written */
  uint64_t number;            /**< of the live connection, or 0 */
  uint64_t count;             /**< connections that were live */
  bool read_only;             /**< the server has no quorum */
  bool input_lost;            /**< an input came inside a callback: reconnect */
  bool refused_round;         /**< every server in this round has hung up */
  unsigned failed_rounds;     /**< over all servers, in a row */
  int64_t retry_ms;           /**< when LK_PHASE_PAUSE ends */
  int64_t attempt_began_ms;
  int64_t attempt_end_ms;
  int64_t handshake_sent_ms;
  int64_t live_ms;     /**< when the handshake completed */
  int64_t received_ms; /**< when bytes last arrived, whole frames or not */
  char server[272];    /**< "host:port" in use or tried */
} lk_engine_connection;

/** Why the last connection or attempt ended. */
typedef struct lk_engine_error {
  char text[512];
  int err;
  lk_tls_cause tls_cause; /**< where `err` is LK_ERR_TLS */
} lk_engine_error;

/** The bytes for the connection. */
typedef struct lk_engine_output {
  lk_buf bytes;
  uint64_t sent; /**< bytes of this connection that the system has taken */
  uint64_t
      limit; /**< bytes beyond this one are not sent; UINT64_MAX: all are */
  int64_t empty_ms;    /**< when all was sent last */
  int64_t sent_ms;     /**< when bytes were sent last, or a little later */
  bool sent_unstamped; /**< bytes were sent since, and the clock not yet read */
} lk_engine_output;

/** Enter a phase. Nothing else sets it. */
void lk__session_enter_phase(lk_client *c, lk_phase phase);
/** Want a transport to the server in turn. */
void lk__session_connect(lk_client *c);
/** The transport is connected: send the connect request. */
void lk__session_send_handshake(lk_client *c);
/** Take the first frame of a connection. @return whether the server serves the
    session; `welcome` gets its reply. */
bool lk__session_take_handshake(lk_client *c, lk_bytes frame,
                                lk_handshake *welcome);
/** Handshake and SASL are done: serve requests. */
void lk__session_establish(lk_client *c, const lk_handshake *h);
/** End the connection or the attempt at one, and go on with another. */
void lk__session_break(lk_client *c, int err, const char *why);

/** Use the servers of `fresh`, which is consumed. */
void lk__session_set_hosts(lk_client *c, lk_hosts *fresh);
/** A request or ping has its reply: if the connection has lasted, the next
    pause is short, and a new round of servers begins. */
void lk__session_answered(lk_client *c);

/** The session has expired: begin a new one, unless that is not wanted. */
void lk__session_expire(lk_client *c, const char *why);
/** When lk__session_give_up() is due: no server has replied for long, and none
    is connected. Or LK_NEVER. */
int64_t lk__session_give_up_at(const lk_client *c);
/** Report the session expired, without word from a server. */
void lk__session_give_up(lk_client *c);
/** The server refuses the credentials or requires some: end for good. `why`: a
    line for the log, or NULL. */
void lk__session_refused(lk_client *c, int err, const char *why);
/** closeSession has its reply, or gets none: end for good, and complete
    lk_client_close() with `err`. */
void lk__session_closed(lk_client *c, int err);

/* Between the files of the session: */

/** Reset everything that does not outlive a connection. */
void lk__session_drop_connection(lk_client *c);
/** Keep and log why the connection ended. `why` NULL: the error's text. */
void lk__session_note_error(lk_client *c, int level, int err, const char *why);
/** There is no session any more, or not yet. */
void lk__session_clear_identity(lk_client *c);

#endif
