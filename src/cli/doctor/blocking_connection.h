/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_BLOCKING_CONNECTION_H
#define LK_CLI_DOCTOR_BLOCKING_CONNECTION_H

#include <latchkey/driver.h>

/**
 * @file
 * A connection of the doctor's to one server, by TCP or TLS, for a process that
 * waits for it with a deadline and does nothing else meanwhile. Times are on
 * cli_boottime_ms().
 */

typedef struct cli_blocking_connection {
  const lk_transport_type *type;
  lk_transport *transport; /**< NULL: memory is short */
  lk_flow flow;            /**< of the last step */
} cli_blocking_connection;

typedef enum cli_connection_result {
  CLI_CONNECTION_READY,
  CLI_CONNECTION_LATE,  /**< not in time; more time may be given */
  CLI_CONNECTION_FAILED /**< transport->err, number, cause and why say why */
} cli_connection_result;

/** Make the object. False: memory is short. */
bool cli_blocking_connection_init(cli_blocking_connection *d,
                                  const lk_transport_type *type);
/** Connect, until then at most. */
cli_connection_result cli_blocking_connect(cli_blocking_connection *d,
                                           const lk_endpoint *to,
                                           int64_t until);
/** Go on with what was late. */
cli_connection_result cli_blocking_connect_continue(cli_blocking_connection *d,
                                                    int64_t until);
/** Whether TCP is connected. */
bool cli_blocking_connection_has_tcp(const cli_blocking_connection *d);

/** Send four letters. False: the connection has ended. */
bool cli_blocking_connection_send_word(cli_blocking_connection *d,
                                       const char *word, int64_t until);
/** Take what comes until the server closes the connection or pauses for a
    second. Gives its length; -1: nothing came in time. */
ssize_t cli_blocking_connection_receive(cli_blocking_connection *d,
                                        int64_t until, char *out, size_t size);

/** Close the connection. Another may follow. */
void cli_blocking_connection_close(cli_blocking_connection *d);
/** Close and free it; also after cli_blocking_connection_init() has failed. */
void cli_blocking_connection_free(cli_blocking_connection *d);

#endif
