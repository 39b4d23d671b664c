/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_WIRE_H
#define LK_LIVE_CLIENT_WIRE_H

/**
 * @file
 * What lies between a client and its server, on the loop of the test: it knows
 * frames, and breaks at the one that is wanted.
 */

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct wire wire;

/** Lead whoever calls to the server at `to`, "127.1.2.3:2181". Failures end
    the test. */
wire *wire_new(struct ev_loop *loop, const char *to);
void wire_free(wire *w);

/** Where to call, "127.0.0.1:4711". */
const char *wire_address(const wire *w);

/** Break at the next request with this opcode: before the server has it, or,
    `answered`, after that, before the client has the answer. */
void wire_break_at(wire *w, int32_t op, bool answered);

/** Whether the last wire_break_at() has come true. */
bool wire_has_broken(const wire *w);

/** From now on give requests with the opcode `op` another one, which no server
    knows; 0: none. */
void wire_disguise(wire *w, int32_t op);

/** Break all connections; who calls then reaches nobody until wire_mend(). */
void wire_break(wire *w);
void wire_mend(wire *w);

#endif
