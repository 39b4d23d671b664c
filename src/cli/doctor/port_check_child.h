/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_PORT_CHECK_CHILD_H
#define LK_CLI_DOCTOR_PORT_CHECK_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <latchkey/tls.h>

/**
 * @file
 * The child process of a port check (port_check.h), and the messages that it
 * writes to its parent.
 */

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

/** A message from the child. It is not longer than PIPE_BUF, so write() passes
   it to the pipe in one piece. */
typedef struct cli_port_result {
  cli_port_stage stage;
  size_t len; /**< of `text`, which has no NUL */
  bool wrong_transport; /**< the port speaks TLS although plain TCP is selected,
                           or the reverse */
  bool has_connection;  /**< TLS is selected, and `connection` is known */
  lk_tls_cause cause;           /**< for CLI_PORT_TLS_FAILED */
  lk_tls_connection connection; /**< version, cipher and certificates */
  char address[80];             /**< numeric, with the port; "": none yet */
  char text[2048];              /**< see cli_port_stage; `len` bytes */
} cli_port_result;

/** Checks the port until `until` (on cli_boottime_ms()), writes a message to
    `fd` at each stage, and exits. `tls` NULL: plain TCP. The child is killed
    when its parent ends. */
_Noreturn void cli_port_check_child(const char *host, uint16_t port,
                                    const lk_tls_config *tls, int64_t until,
                                    int fd);

#endif
