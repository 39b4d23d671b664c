/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_CREATE_MODE_H
#define LK_PROTO_WIRE_CREATE_MODE_H

#include <latchkey/client.h>

#include "proto/wire/path.h"

/**
 * @file
 * The kinds of nodes, and the opcode and flags that create each kind. A server
 * does not check that opcode and flags agree. Some pairs create another kind of
 * node. A createTTL whose flags are not those of a node with a TTL and whose
 * TTL is negative makes the server exit, and again at each restart.
 */

/** The flags on the wire of a node with a TTL. The flags of other nodes are
    those of lk_create_flags. */
enum { LK_FLAGS_TTL = 5, LK_FLAGS_TTL_SEQUENTIAL = 6 };

/** Whether a node without TTL can be created with these lk_create_flags. */
bool lk__create_flags_valid(int flags);

/** Whether a node can be created with these lk_create_flags and this TTL. */
bool lk__create_ttl_valid(int flags, int64_t ttl_ms);

/** The opcode of a create: createContainer if `flags` ask for a container,
    since create and create2 would create a persistent node instead; else
    `op`. */
int32_t lk__create_opcode(int32_t op, int flags);

/** The flags on the wire of a node with a TTL that is created with `flags`. */
static inline int32_t lk__create_ttl_flags(int flags)
{
  return flags == LK_SEQUENTIAL ? LK_FLAGS_TTL_SEQUENTIAL : LK_FLAGS_TTL;
}

/** What the path of a create with these lk_create_flags names. */
static inline lk_path_use lk__create_path_use(int flags)
{
  return (flags & LK_SEQUENTIAL) != 0 ? LK_PATH_BEFORE_NUMBER : LK_PATH_OF_NODE;
}

#endif
