/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_WIRE_H
#define LK_LIVE_CLIENT_WIRE_H

/**
 * @file
 * A proxy between a client and its server, on the loop of the test. It parses
 * frames, and closes the connection at a selected one.
 */

#include <stdbool.h>
#include <stdint.h>

typedef struct wire wire;

/** Forward connections to the server at `to`, "127.1.2.3:2181". Failures end
    the test. */
wire *wire_new(const char *to);
void wire_free(wire *w);

/** The address of the proxy, "127.0.0.1:4711". */
const char *wire_address(const wire *w);

/** What is lost when the wire closes a connection. */
typedef enum lost_message {
  LOSE_REQUEST, /**< the request: the server does not receive it */
  LOSE_REPLY    /**< its reply: the server has executed the request */
} lost_message;

/** Close the connection at the next request with this opcode, instead of
    forwarding the message `lost`. */
void wire_break_at_request(wire *w, int32_t op, lost_message lost);

/** Whether the last wire_break_at_request() has closed a connection. */
bool wire_has_broken(const wire *w);

/** From now on replace the opcode `op` of requests by an opcode that no server
    knows; 0: replace none. */
void wire_replace_opcode(wire *w, int32_t op);

/** Close all connections; the wire accepts no new ones until wire_mend(). */
void wire_break(wire *w);
void wire_mend(wire *w);

#endif
