/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SESSION_H
#define LK_PROTO_ENGINE_SESSION_H

/**
 * @file
 * A session, which connections have in common. A handshake begins or resumes
 * it. It ends in one of three ways: it expires, a server refuses the client's
 * credentials, or the program calls lk_client_close(). Refusal and close end
 * the client, too; expiry does so if lk_client_config.one_session is set or the
 * client is closing. A client that ends enters LK_STATE_CLOSED, once.
 * closeSession is sent behind all other requests, and its reply has a time
 * limit.
 */

#include <latchkey/client.h>

#include "proto/wire/handshake_frames.h"

typedef struct lk_engine_session {
  lk_state state;      /**< the state that was last reported to listeners */
  int final_err;       /**< why the client has ended, in LK_PHASE_ENDED; else
                            0 */
  lk_session identity; /**< id 0: there is no session */
  int32_t timeout_ms;  /**< the negotiated timeout; without a session, the one
                            that is asked for */
  int64_t last_zxid;   /**< the largest zxid of a reply; those of events do not
                            count */
  int32_t last_xid;    /**< of the newest request that was sent */
  int64_t proven_ms;   /**< when the newest request with a reply was sent */
  int64_t abandoned_end_ms; /**< lk_client_abandoned_session_end() */
} lk_engine_session;

/** The state of lk_client_close(). */
typedef struct lk_engine_close {
  bool begun;       /**< lk_client_close() was called */
  bool sent;        /**< closeSession is the last request in requests.sent */
  bool lost;        /**< closeSession was sent on a connection that broke */
  int64_t end_ms;   /**< when the client ends without a reply */
  lk_close_cb done; /**< NULL: none, or it was called */
  void *arg;
} lk_engine_close;

/** The transport is connected: send the connect request. */
void lk__session_send_handshake(lk_client *c);
/** Decode the first frame of a connection into `*welcome`. @return false: the
    server does not serve the session, and the connection was ended. */
bool lk__session_take_handshake(lk_client *c, lk_bytes frame,
                                lk_handshake *welcome);
/** Handshake and SASL have succeeded: enter LK_PHASE_LIVE, report it, and send
    the waiting requests. */
void lk__session_establish(lk_client *c, const lk_handshake *h);

/** Queue closeSession behind all other requests. @return false: no memory. */
bool lk__close_send(lk_client *c);
/** The result of lk_client_close() if closeSession gets no reply: `unanswered`
    if it was sent on this connection; LK_ERR_IN_DOUBT if it was sent on an
    earlier one; LK_ERR_NOT_SENT if it was not sent; 0 if there is no
    session. */
int lk__close_outcome(const lk_client *c, int unanswered);
/** Whether the close, which has begun, must end the client now: it has nothing
    to wait for, or `end_ms` has passed at the client's clock. */
bool lk__close_is_due(const lk_client *c);

/** The session has expired: begin a new one, unless that is not wanted. */
void lk__session_expire(lk_client *c, const char *why);
/** When lk__session_give_up() is due, since the client has had no connection
    for long. LK_NEVER: there is a connection, or no session. */
int64_t lk__session_give_up_at(const lk_client *c);
/** Report the session as expired although no server has said so. */
void lk__session_give_up(lk_client *c);
/** The server refuses the credentials or requires some: end the client for
    good. `why` is a line for the log; NULL: the error's text. */
void lk__session_refused(lk_client *c, int err, const char *why);
/** closeSession has its reply or will get none: end the client for good, and
    complete lk_client_close() with `err`. */
void lk__session_closed(lk_client *c, int err);

#endif
