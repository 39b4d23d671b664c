/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_LEASE_DEADLINE_H
#define LK_RECIPES_QUEUE_LEASE_DEADLINE_H

/**
 * @file
 * The computation of the lease deadline, and of the time at which a heartbeat
 * moves it.
 */

#include <latchkey/lease.h>

#include "proto/engine/lease_slot.h"

/** A lease deadline that has always passed. */
#define LK_NO_LEASE INT64_MIN

/** Return the time until which the session certainly lives. `assurance` selects
    the replies that count as evidence. The deadline is the time at which the
    request of the newest such reply was sent, plus the smallest timeout of the
    session, less an allowance for clocks that run at different speeds.
    LK_NO_LEASE: there is no evidence. */
int64_t lk__lease_deadline_by_evidence(const lk_evidence_record *r,
                                       lk_assurance assurance);

/** Return when to send a heartbeat that is due at `from_ms` and can wait until
    `until_ms`: the earliest time at which it moves the deadline by an eighth of
    the session timeout or more. `from_ms`: there is no such time. */
int64_t lk__lease_deadline_renewal_ms(const lk_evidence_record *r,
                                      lk_assurance assurance, int64_t from_ms,
                                      int64_t until_ms);

#endif
