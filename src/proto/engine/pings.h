/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_PINGS_H
#define LK_PROTO_ENGINE_PINGS_H

/**
 * @file
 * Pings of an idle client, and the end of a connection on which nothing was
 * received.
 */

#include <latchkey/client.h>

#include "base/ring.h"

typedef struct lk_engine_pings {
  lk_ring sent_ms;     /**< int64_t: of those without a reply */
  uint64_t end;        /**< where the newest one ends in the output */
  int64_t extended_ms; /**< when the newest ping was sent that followed another
                            one without a reply: it may have kept the session */
} lk_engine_pings;

/** When lk__pings_run() has something to do on a live connection. */
int64_t lk__pings_deadline(const lk_client *c);
/** Send a ping, or give up a silent connection, if that is due at the client's
    clock. */
void lk__pings_run(lk_client *c);

#endif
