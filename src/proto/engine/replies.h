/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REPLIES_H
#define LK_PROTO_ENGINE_REPLIES_H

#include <latchkey/types.h>

/** Take a frame that arrived after the handshake. */
void lk__reply_take(lk_client *c, lk_bytes frame);

#endif
