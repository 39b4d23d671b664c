/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_PORT_CONNECTION_H
#define LK_CLI_DOCTOR_PORT_CONNECTION_H

#include <latchkey/driver.h>

#include "net/watched_transport.h"

/**
 * @file
 * A connection by TCP or TLS to one address, on which a four-letter word is
 * sent.
 */

typedef enum cli_port_event {
  CLI_PORT_CONNECTED, /**< with TLS if used; the word is sent now */
  CLI_PORT_FAILED,    /**< not connected: see transport.object */
  CLI_PORT_REPLY      /**< the reply is in `text`, or the connection has ended
                           without one; see transport.object if `failed` */
} cli_port_event;

typedef struct cli_port_connection {
  /** May close the connection. */
  void (*on_event)(struct cli_port_connection *c, cli_port_event event);
  lk_watched_transport transport;
  lk_loop_timer reply_timer; /**< ends a reply */
  const char *word;          /**< NULL: nothing is sent */
  size_t sent;               /**< bytes of `word` */
  bool connected;
  bool failed; /**< receiving has failed */
  size_t len;  /**< of `text` */
  char text[2048];
} cli_port_connection;

/** Connects, and sends `word`. The caller zeroes `c` and sets `on_event`, which
    may be invoked before this returns. false: out of memory. */
bool cli_port_connection_open(cli_port_connection *c, lk_loop *loop,
                              const lk_transport_type *type,
                              const lk_transport_target *to, const char *word);
/** Closes and frees it, at any stage. Another open may follow. */
void cli_port_connection_close(cli_port_connection *c);

#endif
