/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_LEASE_DEADLINE_H
#define LK_RECIPES_LEASE_LEASE_DEADLINE_H

/**
 * @file
 * The lease deadline, from evidence and assurance.
 */

#include "proto/engine/lease_slot.h"

#include <latchkey/lease.h>

#define LK_NO_LEASE INT64_MIN

/** The lease deadline: until then the evidence that `assurance` asks for proves
    that the session lives. It is the time at which that request was sent, plus
    the smallest timeout of the session, less the drift of two clocks.
    LK_NO_LEASE: there is no evidence. */
int64_t lk__evidence_deadline(const lk_evidence_record *r,
                              lk_assurance assurance);

#endif
