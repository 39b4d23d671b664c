/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"

const lk_evidence_record *lk__client_evidence(const lk_client *c)
{
  return &c->evidence;
}

void lk__client_set_evidence_gap(lk_client *c, int32_t gap_ms)
{
  lk__evidence_set_gap(&c->evidence, gap_ms);
}

lk_session_lease *lk__client_lease(const lk_client *c)
{
  return c->lease.object;
}

void lk__client_set_lease(lk_client *c, lk_session_lease *lease,
                          void (*free_lease)(lk_session_lease *lease))
{
  c->lease = (lk_engine_lease){lease, free_lease, false};
}

void lk__client_note_holder(lk_client *c, bool has_holder)
{
  c->lease.has_holder = has_holder;
}

void lk__client_need_reply(lk_client *c, int64_t needed_ms)
{
  lk__silence_suspect(c, needed_ms);
}
