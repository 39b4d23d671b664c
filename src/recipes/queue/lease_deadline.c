/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/lease_deadline.h"

/* How far the clocks of client and servers may drift apart in one session
 * timeout, as stated in latchkey/lease.h. */
enum { DRIFT_PERCENT = 1, DRIFT_MS = 10 };

static lk_evidence_level needed_level(lk_assurance assurance)
{
  switch (assurance) {
  case LK_ASSURE_SYNC: return LK_PROVEN_BY_LEADER;
  case LK_ASSURE_PING: return LK_PROVEN_BY_CONTACT;
  case LK_ASSURE_QUORUM: break;
  }
  return LK_PROVEN_BY_COMMIT;
}

int64_t lk__lease_deadline_by_evidence(const lk_evidence_record *r,
                                       lk_assurance assurance)
{
  int64_t sent_ms = r->evidence_ms[needed_level(assurance)];

  if (sent_ms == LK_NO_EVIDENCE)
    return LK_NO_LEASE;
  return sent_ms + r->timeout_ms -
         (int64_t)r->timeout_ms * DRIFT_PERCENT / 100 - DRIFT_MS;
}

int64_t lk__lease_deadline_renewal_ms(const lk_evidence_record *r,
                                      lk_assurance assurance, int64_t from_ms,
                                      int64_t until_ms)
{
  int64_t proven_ms = r->evidence_ms[needed_level(assurance)];
  int64_t wanted_ms = proven_ms + r->timeout_ms / 8;
  bool is_confirmed_later = assurance != LK_ASSURE_PING;
  bool resume_suffices =
      assurance == LK_ASSURE_QUORUM && r->resumed_ms >= wanted_ms;

  if (proven_ms == LK_NO_EVIDENCE || !is_confirmed_later || resume_suffices)
    return from_ms;
  return lk__evidence_confirmable_ms(r, wanted_ms, from_ms, until_ms);
}
