/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_HANDSHAKE_FRAMES_H
#define LK_PROTO_WIRE_HANDSHAKE_FRAMES_H

#include <latchkey/client.h>

/** The result of the connect request. */
typedef enum lk_welcome {
  LK_WELCOME_SESSION,   /**< the server serves the requested session, or a new
                             one */
  LK_WELCOME_EXPIRED,   /**< the session has expired; or the server refuses a
                             new one */
  LK_WELCOME_READ_ONLY, /**< the server is read-only, which the request did not
                             permit: try another server */
  LK_WELCOME_BAD        /**< the reply is malformed */
} lk_welcome;

/** The values of a connect request, which the reply replaces. */
typedef struct lk_handshake {
  int64_t last_zxid;  /**< only in the request */
  int32_t timeout_ms; /**< requested; then negotiated */
  lk_session session; /**< requested, id 0: a new one; then the session that
                           the server serves */
  bool read_only;     /**< whether a read-only server is accepted; then whether
                           the server is read-only, whose session is unknown
                           to other servers */
} lk_handshake;

/** Bytes of the whole connect request, with its length field. */
enum { LK_HANDSHAKE_LEN = 49 };

/** Write the connect request, LK_HANDSHAKE_LEN bytes, at `buf`. */
void lk__handshake_encode(const lk_handshake *h, void *buf);

/** Decode the first frame of a connection. `h` has the values of the request;
    on LK_WELCOME_SESSION it gets those of the reply. */
lk_welcome lk__handshake_decode(lk_handshake *h, lk_bytes frame);

#endif
