/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_PORT_CHECK_H
#define LK_CLI_DOCTOR_PORT_CHECK_H

/**
 * @file
 * A check of a server's port without a session: resolves the name, connects, by
 * TLS if that is selected, and sends four-letter words. It uses the lookups and
 * transports of the client, so that it sees what the client sees.
 */

#include <latchkey/driver.h>
#include <latchkey/tls.h>

#include "net/resolver.h"
#include "net/watched_transport.h"

/* A connection by TCP or TLS to one address, on which a four-letter word is
   sent. */

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

/** The last stage that was reached. */
typedef enum cli_port_stage {
  CLI_PORT_RESOLVING,     /**< the name is being resolved */
  CLI_PORT_NOT_RESOLVED,  /**< `text`: why the name has no address */
  CLI_PORT_CONNECTING,    /**< a connection to `address` is being opened */
  CLI_PORT_NOT_CONNECTED, /**< `text`: why the last connection failed */
  CLI_PORT_TLS_HANDSHAKE, /**< TCP is connected; the TLS handshake has not
                           ended */
  CLI_PORT_TLS_FAILED,    /**< `text` and `cause`: why TLS failed */
  CLI_PORT_SILENT,  /**< connected, and no reply to the four-letter word */
  CLI_PORT_HUNG_UP, /**< connected, and the server closed the connection */
  CLI_PORT_REPLIED  /**< `text`: the reply */
} cli_port_stage;

typedef struct cli_port_result {
  cli_port_stage stage;
  int64_t lookup_ms;    /**< how long the lookup of the name took */
  bool no_ipv4_answer;  /**< no name server replies to queries for … */
  bool no_ipv6_answer;  /**< … while it replies to others */
  size_t len;           /**< of `text`, which has no NUL */
  bool wrong_transport; /**< the port speaks TLS although plain TCP is selected,
                           or the reverse */
  bool has_connection;  /**< TLS is selected, and `connection` is known */
  lk_tls_cause cause;   /**< for CLI_PORT_TLS_FAILED */
  lk_tls_connection connection;       /**< version, cipher and certificates */
  char address[LK_ADDRESS_TEXT_SIZE]; /**< with the port; "": none yet */
  char text[2048];                    /**< see cli_port_stage; `len` bytes */
} cli_port_result;

/** What follows when it is known whether the port speaks the other
    transport. */
typedef enum cli_port_next {
  CLI_PORT_WAIT,      /**< the first connection goes on */
  CLI_PORT_FINISH,    /**< the result is complete */
  CLI_PORT_TAKE_REPLY /**< the reply on the first connection is the result */
} cli_port_next;

/** The check of the port of a cli_server_check. */
typedef struct cli_port_check {
  cli_port_result result;

  const char *host;
  uint16_t port;
  const lk_tls_config *tls;   /**< NULL: plain TCP */
  int64_t began_ms, until_ms; /**< on cli_boottime_ms() */
  lk_loop *loop;              /**< NULL: the check has ended */
  lk_resolver *resolver;
  lk_lookup lookup;
  lk_address *addresses;
  size_t count, index;            /**< of `addresses`; the one in use */
  const char *const *word;        /**< the four-letter word to send */
  cli_port_connection connection; /**< by the selected transport */
  cli_port_connection other;      /**< by the other one */
  bool other_is_open;
  cli_port_next next;
  lk_loop_timer timer; /**< for an address, or for the other transport */
} cli_port_check;

/** Begins a check that plans its steps for `patience_ms`. `tls` NULL: plain
    TCP; it and `host` are borrowed. The caller zeroes `check` first.
    cli_server_check_on_port_checked() is invoked once, from the loop or before
    this returns. */
void cli_port_check_begin(cli_port_check *check, const char *host,
                          uint16_t port, const lk_tls_config *tls,
                          int64_t patience_ms, lk_loop *loop,
                          lk_resolver *resolver);
/** Ends the check at any stage. Does nothing if the check has ended. */
void cli_port_check_end(cli_port_check *check);

#endif
