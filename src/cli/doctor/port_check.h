/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_PORT_CHECK_H
#define LK_CLI_DOCTOR_PORT_CHECK_H

#include <sys/types.h>

#include <latchkey/tls.h>

#include "cli/output/text.h"
#include "net/loop.h"

/**
 * @file
 * A check of a server's port without a session: resolves the name, connects, by
 * TLS if that is selected, and sends a four-letter word. A child process does
 * it, as resolving a name can block without limit; it is killed at the
 * deadline.
 */

/** The last stage that was reached. */
typedef enum cli_port_stage {
  CLI_PORT_RESOLVING,     /**< the name is being resolved */
  CLI_PORT_NOT_RESOLVED,  /**< `text`: why the name has no address */
  CLI_PORT_CONNECTING,    /**< `address` is being connected to */
  CLI_PORT_NOT_CONNECTED, /**< `text`: why no address can be connected to */
  CLI_PORT_TLS_HANDSHAKE, /**< TCP is connected, and the TLS handshake does not
                           * end
                           */
  CLI_PORT_TLS_FAILED,    /**< `text`: why TLS failed; and see `cause` */
  CLI_PORT_SILENT,  /**< connected, and no reply to the four-letter word */
  CLI_PORT_HUNG_UP, /**< connected, and the server closed the connection */
  CLI_PORT_REPLIED  /**< `text`: the reply */
} cli_port_stage;

/** A message from the child; not longer than PIPE_BUF, so that it is written in
    one piece. */
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
               void *arg); /**< invoked once, from the loop */
  void *arg;
  cli_port_result result; /**< the last message */
  pid_t pid;
  lk_loop *loop; /**< NULL: the check has ended */
  lk_loop_io io;
} cli_port_check;

/** Checks the port for at most `patience_ms`; `tls` NULL: plain TCP. The caller
    zeroes `k` and sets `over` first. Returns 0 or an errno. */
int cli_port_check_begin(cli_port_check *k, const char *host, uint16_t port,
                         const lk_tls_config *tls, int64_t patience_ms,
                         lk_loop *loop);
/** Ends the check at any stage. */
void cli_port_check_end(cli_port_check *k);

#endif
