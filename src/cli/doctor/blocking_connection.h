/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_BLOCKING_CONNECTION_H
#define LK_CLI_DOCTOR_BLOCKING_CONNECTION_H

#include <latchkey/driver.h>

/**
 * @file
 * A blocking connection by TCP or TLS to one server, for a process that does
 * nothing else meanwhile. Deadlines (`until`) are on cli_boottime_ms().
 */

typedef struct cli_blocking_connection {
  const lk_transport_type *type;
  lk_transport *transport; /**< NULL: out of memory */
  lk_flow flow;            /**< result of the last call of the transport */
} cli_blocking_connection;

typedef enum cli_connection_result {
  CLI_CONNECTION_READY,
  CLI_CONNECTION_LATE,  /**< cli_blocking_connect_continue() may follow */
  CLI_CONNECTION_FAILED /**< see transport->err, cause and why */
} cli_connection_result;

/** Allocates the transport. Returns false if out of memory. */
bool cli_blocking_connection_init(cli_blocking_connection *c,
                                  const lk_transport_type *type);
/** Connects, and waits for that until `until`. */
cli_connection_result cli_blocking_connect(cli_blocking_connection *c,
                                           const lk_endpoint *to,
                                           int64_t until);
/** Continues after CLI_CONNECTION_LATE. */
cli_connection_result cli_blocking_connect_continue(cli_blocking_connection *c,
                                                    int64_t until);
/** Whether TCP is connected, also if the TLS handshake has not ended. */
bool cli_blocking_connection_has_tcp(const cli_blocking_connection *c);

/** Sends a four-letter word. Returns false if the connection has ended. */
bool cli_blocking_connection_send_word(cli_blocking_connection *c,
                                       const char *word, int64_t until);
/** Receives until the server closes the connection or pauses for a second.
    Returns the length; 0: the connection ended or failed before the first
    byte; -1: nothing was received in time. */
ssize_t cli_blocking_connection_receive(cli_blocking_connection *c,
                                        int64_t until, char *out, size_t size);

/** Closes the connection. Another connect may follow. */
void cli_blocking_connection_close(cli_blocking_connection *c);
/** Closes and frees the connection; also after a failed
    cli_blocking_connection_init(). */
void cli_blocking_connection_free(cli_blocking_connection *c);

#endif
