/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SERVER_SUPPORT_H
#define LK_PROTO_ENGINE_SERVER_SUPPORT_H

/**
 * @file
 * The requests that the connected server supports. A server replies
 * UNIMPLEMENTED to a request that it does not know, and closes the connection.
 * The client does not send it such a request again for an hour.
 */

#include "proto/engine/request_queue.h"

/** The request that the connected server rejected as unknown. The server will
    close the connection. */
typedef struct lk_engine_rejected {
  int32_t op;       /**< opcode of the request; 0: no request was rejected */
  uint64_t end;     /**< lk_request.end of the request */
  int64_t until_ms; /**< when the client ends the connection at the latest */
} lk_engine_rejected;

/** Note that the connected server does not know `op`. */
void lk__request_note_unsupported(lk_client *c, int32_t op);
/** The server rejected `r` as unknown: send nothing more on this connection.
    The connection is ended when the requests before `r` have their replies, or
    after a third of the session timeout. */
void lk__request_rejected(lk_client *c, const lk_request *r);
/** When the connection is ended for this reason; LK_NEVER: no request was
    rejected. */
int64_t lk__rejected_deadline(const lk_client *c);
/** End the connection if lk__rejected_deadline() has passed at the client's
    clock. */
void lk__rejected_run(lk_client *c);
/** Whether the connected server has rejected `op` in the last hour. */
bool lk__request_is_unsupported(const lk_client *c, int32_t op);
/** Why the client does not send `op` to the connected server:
    LK_ERR_UNIMPLEMENTED or LK_ERR_NOT_READ_ONLY; 0: it does. */
int lk__request_support_error(const lk_client *c, int32_t op);

#endif
