/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_PORT_CHECK_H
#define LK_CLI_DOCTOR_PORT_CHECK_H

#include <ev.h>
#include <sys/types.h>

#include <latchkey/tls.h>

#include "cli/output/text.h"

/**
 * @file
 * Knocking at a server's door, before any session: look its name up, connect,
 * by TLS if that is selected, ask a four-letter word. A child process does it,
 * which is killed when it takes too long: looking up a name can wait for ever.
 */

/** How far it went. */
typedef enum cli_port_stage {
  CLI_PORT_RESOLVING,     /**< the name is being looked up */
  CLI_PORT_NOT_RESOLVED,  /**< `text`: why the name has no address */
  CLI_PORT_CONNECTING,    /**< `address` is being connected to */
  CLI_PORT_NOT_CONNECTED, /**< `text`: why no address can be connected to */
  CLI_PORT_TLS_HANDSHAKE, /**< TCP is connected, and the TLS handshake does not
                           * end
                           */
  CLI_PORT_TLS_FAILED,    /**< `text`: why TLS failed; and see `cause` */
  CLI_PORT_SILENT,        /**< connected and asked, and nothing came */
  CLI_PORT_HUNG_UP,       /**< connected and asked, and it hung up */
  CLI_PORT_REPLIED        /**< `text`: what it said */
} cli_port_stage;

/** What the child has to tell; small enough to be written in one piece. */
typedef struct cli_port_result {
  cli_port_stage stage;
  size_t len; /**< of `text`, which has no NUL */
  bool other; /**< the port speaks TLS where TCP was tried, or the reverse */
  bool tls;   /**< `connection` is known */
  lk_tls_cause cause;
  lk_tls_connection connection;
  char address[80];
  char text[2048];
} cli_port_result;

typedef struct cli_port_check {
  void (*over)(struct cli_port_check *k,
               void *arg); /**< told once, by the loop */
  void *arg;
  cli_port_result result; /**< the last */
  pid_t pid;
  struct ev_loop *loop; /**< NULL: it is over */
  ev_io watcher;
} cli_port_check;

/** Knock at `host` for `patience_ms` at most; `tls` NULL: by plain TCP. Zero it
    and set `over` first. 0, or an errno. */
int cli_port_check_begin(cli_port_check *k, const char *host, uint16_t port,
                         const lk_tls_config *tls, int64_t patience_ms,
                         struct ev_loop *loop);
/** End it, however far it went. */
void cli_port_check_end(cli_port_check *k);

#endif
