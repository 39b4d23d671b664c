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
  lk_ring sent_ms; /**< of int64_t: when each ping without a reply was sent */
  uint64_t end;    /**< position of the end of the newest ping in the output
                        of the connection */
  int64_t overlapping_ping_ms; /**< when a ping was last sent while another one
                               had no reply: it may have extended the session */
} lk_engine_pings;

/** When lk__pings_run() has something to do on a live connection. */
int64_t lk__pings_deadline(const lk_client *c);
/** Send a ping if that is due at the client's clock.
    @return why the connection must be ended now: LK_ERR_CONNECTION_LOSS if
    nothing was received for two thirds of the session timeout, or
    LK_ERR_NO_MEMORY; 0: it goes on. */
int lk__pings_run(lk_client *c);

#endif
