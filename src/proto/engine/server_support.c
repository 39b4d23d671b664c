/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/server_support.h"

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"

/* How long the client does not send a server a request that this server does
 * not know. */
enum { UNSUPPORTED_FOR_MS = 60 * 60 * 1000 };

/* The index of the bit for `op` in lk_unsupported.opcodes, whose 64 bits are
 * enough for all opcodes. */
static unsigned opcode_index(int32_t op)
{
  return (unsigned)(lk__opcode_info(op) - lk__opcodes);
}

void lk__request_note_unsupported(lk_client *c, int32_t op)
{
  lk__client_logf(c, LK_LOG_INFO, LK_ERR_UNIMPLEMENTED, "%s: does not know %s",
                  c->connection.server, lk__opcode_info(op)->name);
  lk__hosts_mark_unsupported(&c->hosts, opcode_index(op),
                             c->now + UNSUPPORTED_FOR_MS);
}

bool lk__request_is_unsupported(const lk_client *c, int32_t op)
{
  /* The fast path: most servers support everything. */
  return c->hosts.unsupported.opcodes != 0 &&
         lk__hosts_lack_support(&c->hosts, opcode_index(op), c->now);
}

/* A read-only server replies to a write at once, before it has replied to
 * earlier reads. The client could not assign replies out of order, so it
 * refuses the write itself. */
int lk__request_support_error(const lk_client *c, int32_t op)
{
  if (c->connection.read_only && !lk__opcode_info(op)->served_read_only)
    return LK_ERR_NOT_READ_ONLY;
  return lk__request_is_unsupported(c, op) ? LK_ERR_UNIMPLEMENTED : 0;
}
