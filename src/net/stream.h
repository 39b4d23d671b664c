/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_STREAM_H
#define LK_NET_STREAM_H

#include <latchkey/client.h>

#include "net/address.h"
#include "net/loop.h"

/** A transport, and the watcher of its descriptor. Zero it, and set
    `io.on_events`. */
typedef struct lk_stream {
  lk_loop *loop;
  const lk_transport_type *type;
  lk_transport *transport; /**< NULL: not initialised */
  lk_loop_io io;
} lk_stream;

/** Where a stream connects to; see lk_endpoint. */
typedef struct lk_stream_target {
  const lk_address *address;
  uint16_t port;
  const char *host;
  const lk_tls_config *tls;
} lk_stream_target;

/** false: no memory. */
bool lk__stream_init(lk_stream *s, lk_loop *loop, const lk_transport_type *type,
                     const lk_mem *mem);
/** Begin to connect. Results as those of lk_transport_type.open(). */
lk_flow lk__stream_connect(lk_stream *s, const lk_stream_target *to);
/** Watch for what a step has to wait for that returned `flow`; false: for
    nothing. */
bool lk__stream_await(lk_stream *s, lk_flow flow);
/** Whether bytes can be received that the descriptor does not announce. */
bool lk__stream_has_more(const lk_stream *s);
/** Close the transport, if it is open, and watch nothing. */
void lk__stream_close(lk_stream *s);
/** Free a closed stream; also one that was not initialised. */
void lk__stream_free(lk_stream *s, const lk_mem *mem);

#endif
