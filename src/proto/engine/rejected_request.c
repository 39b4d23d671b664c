/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/rejected_request.h"

#include "proto/engine/client.h"
#include "proto/engine/server_support.h"
#include "proto/wire/opcode.h"

#include <stdio.h>

void lk__request_rejected(lk_client *c, const lk_request *r)
{
  lk__request_note_unsupported(c, r->op);
  if (c->rejected.op != 0)
    return;
  /* Send nothing more, not even the bytes that are in the output already: the
   * server closes the connection, so a write sent now would be in doubt. */
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
  /* lk__requests_have_replies(c, end - 1) means that all requests before the
   * rejected one have their replies. The rejected request itself, whose last
   * byte is at `end`, may still be in the ring and must not count. */
  bool earlier_have_replies = lk__requests_have_replies(c, c->rejected.end - 1);

  return earlier_have_replies ? c->now : c->rejected.until_ms;
}

void lk__rejected_text(const lk_client *c, char *out, size_t size)
{
  snprintf(out, size, "does not know %s",
           lk__opcode_info(c->rejected.op)->name);
}
