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

/** A request that the connected server rejected as unknown: it will close. */
typedef struct lk_engine_rejected {
  int32_t op;       /**< or 0 */
  uint64_t end;     /**< lk_request.end of that request */
  int64_t until_ms; /**< then the connection is given up */
} lk_engine_rejected;

/** The connected server does not know `op`. */
void lk__request_note_unsupported(lk_client *c, int32_t op);
/** The server rejected `r` as unknown: nothing more is sent on this connection.
    It is given up when the requests before `r` have their replies. */
void lk__request_rejected(lk_client *c, const lk_request *r);
/** When the connection is given up for that; LK_NEVER: no request was
    rejected. */
int64_t lk__rejected_deadline(const lk_client *c);
/** Give it up if that is due at the client's clock. */
void lk__rejected_run(lk_client *c);
bool lk__request_is_unsupported(const lk_client *c, int32_t op);
/** Why the connected server is not sent `op`: LK_ERR_UNIMPLEMENTED,
    LK_ERR_NOT_READ_ONLY, or 0. */
int lk__request_support_error(const lk_client *c, int32_t op);

#endif
