/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_CREATE_MODE_H
#define LK_PROTO_WIRE_CREATE_MODE_H

#include <latchkey/client.h>

/**
 * @file
 * The kinds of nodes, and the opcode and flags that create each. A server does
 * not check that the two agree: some pairs create another kind of node, and
 * one, createTTL of a node without TTL with a negative one, ends the server and
 * each of its restarts.
 */

/** The flags of a node with a TTL on the wire; others have those of
    lk_create_flags. */
enum { LK_FLAGS_TTL = 5, LK_FLAGS_TTL_SEQUENTIAL = 6 };

/** Whether a node without TTL can be made with these lk_create_flags. */
bool lk__create_flags_valid(int flags);

/** Whether a node can be made with these lk_create_flags and that TTL. */
bool lk__create_ttl_valid(int flags, int64_t ttl_ms);

/** The opcode for `flags` where `op` would make a node that is no container:
    the plain ones would make a plain node of it. */
int32_t lk__create_opcode(int32_t op, int flags);

static inline int32_t lk__create_ttl_flags(int flags)
{
  return flags == LK_SEQUENTIAL ? LK_FLAGS_TTL_SEQUENTIAL : LK_FLAGS_TTL;
}

static inline bool lk__create_sequential(int flags)
{
  return (flags & LK_SEQUENTIAL) != 0;
}

#endif
