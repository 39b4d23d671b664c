/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REQUEST_COMPLETION_H
#define LK_PROTO_ENGINE_REQUEST_COMPLETION_H

#include "proto/engine/request_queue.h"
#include "proto/wire/reply_body.h"

/** Invoke the callback of `r`. `body` is read only if `err` is 0. */
void lk__request_complete(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body);

#endif
