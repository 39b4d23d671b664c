/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* A bug for the test of --shrink, in place of the file in the library: a lease
 * ends a session timeout too late. */
#define lk__lease_deadline_by_evidence true_deadline
#include "recipes/queue/lease_deadline.c"
#undef lk__lease_deadline_by_evidence

int64_t lk__lease_deadline_by_evidence(const lk_evidence_record *r,
                                       lk_assurance assurance);

int64_t lk__lease_deadline_by_evidence(const lk_evidence_record *r,
                                       lk_assurance assurance)
{
  int64_t deadline_ms = true_deadline(r, assurance);

  return deadline_ms == LK_NO_LEASE ? LK_NO_LEASE : deadline_ms + r->timeout_ms;
}
