/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/server_support.h"

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"

#include <stdio.h>

/* How long a server is not sent a request that it does not know. */
enum { UNSUPPORTED_FOR_MS = 60 * 60 * 1000 };

/* The bit of `op` in lk_unsupported.opcodes, which has 64 bits: there are fewer
 * opcodes. */
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

void lk__request_rejected(lk_client *c, const lk_request *r)
{
  lk__request_note_unsupported(c, r->op);
  if (c->rejected.op != 0)
    return;
  /* Send nothing more: the server closes the connection, so a write sent now
   * would be in doubt. What is in the output is not counted as sent. */
  c->rejected.op = r->op;
  c->rejected.end = r->end;
  c->rejected.until_ms = c->now + c->session.timeout_ms / 3;
  if (c->output.limit > c->output.sent)
    c->output.limit = c->output.sent;
  lk__client_wake(c);
}

int64_t lk__rejected_deadline(const lk_client *c)
{
  if (c->rejected.op == 0)
    return LK_NEVER;
  /* lk__requests_answered(c, end - 1) means that all requests before the
   * rejected one have their replies. The rejected request itself, whose last
   * byte is at `end`, may still be in the ring and must not count. */
  return lk__requests_answered(c, c->rejected.end - 1) ? c->now
                                                       : c->rejected.until_ms;
}

void lk__rejected_run(lk_client *c)
{
  char why[64];

  if (c->now < lk__rejected_deadline(c))
    return;
  snprintf(why, sizeof why, "does not know %s",
           lk__opcode_info(c->rejected.op)->name);
  lk__session_break(c, LK_ERR_UNIMPLEMENTED, why);
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
