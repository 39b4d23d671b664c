/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_WATCHED_TRANSPORT_H
#define LK_NET_WATCHED_TRANSPORT_H

#include <latchkey/client.h>

#include "net/address.h"
#include "net/loop.h"

/** A transport and the watcher of its descriptor. The user fills it with zeros
    and sets `io.on_events` before lk__watched_transport_init(). */
typedef struct lk_watched_transport {
  lk_loop *loop;
  const lk_transport_type *type;
  lk_transport *object; /**< NULL: not initialised */
  lk_loop_io io;
} lk_watched_transport;

/** The server that a transport connects to; see lk_endpoint. */
typedef struct lk_transport_target {
  const lk_address *address;
  uint16_t port;
  const char *host;
  const lk_tls_config *tls;
} lk_transport_target;

/** Make the transport. false: no memory. */
bool lk__watched_transport_init(lk_watched_transport *s, lk_loop *loop,
                                const lk_transport_type *type,
                                const lk_mem *mem);
/** Begin to connect. Returns what lk_transport_type.open() returns. */
lk_flow lk__watched_transport_connect(lk_watched_transport *s,
                                      const lk_transport_target *to);
/** Watch the descriptor for the event that a step of the transport waits for.
    `flow` is what the step returned. false: the step does not wait. */
bool lk__watched_transport_watch_for(lk_watched_transport *s, lk_flow flow);
/** Whether the transport has bytes ready that it has read from the descriptor
    already. */
static inline bool lk__watched_transport_has_more(const lk_watched_transport *s)
{
  return s->type->has_more != NULL && s->type->has_more(s->object);
}
/** Whether TCP is connected, also if the TLS handshake has not ended. */
bool lk__watched_transport_has_tcp(const lk_watched_transport *s);
/** Stop watching, and close the transport if it is open. */
void lk__watched_transport_close(lk_watched_transport *s);
/** Free a transport that is closed or was never initialised. */
void lk__watched_transport_free(lk_watched_transport *s, const lk_mem *mem);

#endif
