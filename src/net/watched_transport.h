/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_WATCHED_TRANSPORT_H
#define LK_NET_WATCHED_TRANSPORT_H

#include <latchkey/client.h>

#include "net/address.h"
#include "net/loop.h"

/** A transport, and the watcher of its descriptor. Zero it, and set
    `io.on_events`. */
typedef struct lk_watched_transport {
  lk_loop *loop;
  const lk_transport_type *type;
  lk_transport *object; /**< NULL: not initialised */
  lk_loop_io io;
} lk_watched_transport;

/** Where a transport connects to; see lk_endpoint. */
typedef struct lk_transport_target {
  const lk_address *address;
  uint16_t port;
  const char *host;
  const lk_tls_config *tls;
} lk_transport_target;

/** false: no memory. */
bool lk__watched_transport_init(lk_watched_transport *s, lk_loop *loop,
                                const lk_transport_type *type,
                                const lk_mem *mem);
/** Begin to connect. Results as those of lk_transport_type.open(). */
lk_flow lk__watched_transport_connect(lk_watched_transport *s,
                                      const lk_transport_target *to);
/** Watch the descriptor for what a step that returned `flow` waits for. false:
    it waits for nothing. */
bool lk__watched_transport_watch_for(lk_watched_transport *s, lk_flow flow);
/** Whether the transport holds received bytes: they can be received although
   the descriptor is not readable. */
bool lk__watched_transport_has_more(const lk_watched_transport *s);
/** Close the transport, if it is open, and watch nothing. */
void lk__watched_transport_close(lk_watched_transport *s);
/** Free a closed transport; also one that was not initialised. */
void lk__watched_transport_free(lk_watched_transport *s, const lk_mem *mem);

#endif
