/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_LEASE_DEADLINE_H
#define LK_RECIPES_LEASE_LEASE_DEADLINE_H

/**
 * @file
 * The computation of the lease deadline.
 */

#include "proto/engine/lease_slot.h"

#include <latchkey/lease.h>

/** A lease deadline that has always passed. */
#define LK_NO_LEASE INT64_MIN

/** Return the time until which the session certainly lives. `assurance` selects
    the replies that count as evidence. The deadline is the time at which the
    request of the newest such reply was sent, plus the smallest timeout of the
    session, less an allowance for clocks that run at different speeds.
    LK_NO_LEASE: there is no evidence. */
int64_t lk__evidence_deadline(const lk_evidence_record *r,
                              lk_assurance assurance);

#endif
