/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DIAL_H
#define LK_CLI_DIAL_H

#include <latchkey/driver.h>

/**
 * @file
 * A connection of the doctor's to one server, by TCP or TLS, for a process that
 * waits for it with a deadline and does nothing else meanwhile. Times are on
 * cli_guard_clock().
 */

typedef struct cli_dial {
  const lk_transport_type *type;
  lk_transport *transport; /**< NULL: memory is short */
  lk_flow flow;            /**< of the last step */
} cli_dial;

typedef enum cli_dialed {
  CLI_DIAL_DONE,
  CLI_DIAL_LATE,  /**< not in time; more time may be given */
  CLI_DIAL_FAILED /**< transport->err, number, cause and why say why */
} cli_dialed;

/** Make the object. False: memory is short. */
bool cli_dial_init(cli_dial *d, const lk_transport_type *type);
/** Connect, until then at most. */
cli_dialed cli_dial_connect(cli_dial *d, const lk_endpoint *to, int64_t until);
/** Go on with what was late. */
cli_dialed cli_dial_go_on(cli_dial *d, int64_t until);
/** Whether TCP is connected. */
bool cli_dial_reached(const cli_dial *d);

/** Send four letters. False: the connection has ended. */
bool cli_dial_send_word(cli_dial *d, const char *word, int64_t until);
/** Take what comes until the server closes the connection or pauses for a
    second. Gives its length; -1: nothing came in time. */
ssize_t cli_dial_receive(cli_dial *d, int64_t until, char *out, size_t size);

/** Close the connection. Another may follow. */
void cli_dial_close(cli_dial *d);
/** Close and free it; also after cli_dial_init() has failed. */
void cli_dial_free(cli_dial *d);

#endif
