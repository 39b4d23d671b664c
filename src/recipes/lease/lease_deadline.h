/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_LEASE_DEADLINE_H
#define LK_RECIPES_LEASE_LEASE_DEADLINE_H

#include "proto/engine/lease_slot.h"

#include <latchkey/lease.h>

#define LK_NO_LEASE INT64_MIN

/** Until when the evidence that `assurance` asks for proves that the session
    lives: when it was sent, plus the smallest timeout of the session, less what
    two clocks may differ by. LK_NO_LEASE: there is no evidence. */
int64_t lk__evidence_deadline(const lk_evidence_record *r,
                              lk_assurance assurance);

#endif
