/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_HANDSHAKE_FRAMES_H
#define LK_PROTO_WIRE_HANDSHAKE_FRAMES_H

#include <latchkey/client.h>

/** The result of the connect request. */
typedef enum lk_welcome {
  LK_WELCOME_SESSION,   /**< the session asked for, or a new one */
  LK_WELCOME_EXPIRED,   /**< there is no such session (any more) */
  LK_WELCOME_READ_ONLY, /**< a server without a quorum, and none was meant:
                             try another */
  LK_WELCOME_BAD        /**< not a connect response */
} lk_welcome;

typedef struct lk_handshake {
  int64_t last_zxid;
  int32_t timeout_ms;
  lk_session session; /**< id 0: a new one */
  bool read_only;     /**< a server without a quorum is meant, too; then: it
                           has none, and the session is worth nothing elsewhere
                       */
} lk_handshake;

enum { LK_HANDSHAKE_LEN = 49 }; /* bytes of the whole request */

/** Write the connect request, LK_HANDSHAKE_LEN bytes, at `buf`. */
void lk__handshake_encode(const lk_handshake *h, void *buf);

/** Judge the first frame of a connection, given what was sent. On
    LK_WELCOME_SESSION, `h` has the session and the negotiated timeout. */
lk_welcome lk__handshake_decode(lk_handshake *h, lk_bytes frame);

#endif
