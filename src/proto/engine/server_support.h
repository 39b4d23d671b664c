/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SERVER_SUPPORT_H
#define LK_PROTO_ENGINE_SERVER_SUPPORT_H

/**
 * @file
 * The requests that the connected server supports. A server replies
 * UNIMPLEMENTED to a request that it does not know, and closes the connection.
 * The client does not send it such a request again for an hour.
 */

#include <latchkey/client.h>

/** Note that the connected server does not know `op`. */
void lk__request_note_unsupported(lk_client *c, int32_t op);
/** Whether the connected server has rejected `op` in the last hour. */
bool lk__request_is_unsupported(const lk_client *c, int32_t op);
/** Why the client does not send `op` to the connected server:
    LK_ERR_UNIMPLEMENTED or LK_ERR_NOT_READ_ONLY; 0: it does. */
int lk__request_support_error(const lk_client *c, int32_t op);

#endif
