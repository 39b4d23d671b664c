/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_LEASE_SLOT_H
#define LK_PROTO_ENGINE_LEASE_SLOT_H

/**
 * @file
 * The place on a client for its session lease: the only private header of the
 * engine that recipes include. The engine knows the session lease as a pointer
 * and the function that frees it.
 */

#include "proto/engine/evidence_record.h"

typedef struct lk_session_lease lk_session_lease;

typedef struct lk_engine_lease {
  lk_session_lease *object; /**< or NULL */
  void (*free)(lk_session_lease *lease);
} lk_engine_lease;

/** The evidence of the client's session; valid as long as the client. */
const lk_evidence_record *lk__client_evidence(const lk_client *c);
/** See lk__evidence_set_gap(). */
void lk__client_set_evidence_gap(lk_client *c, int32_t gap_ms);

/** The session lease of the client; NULL: it has none yet. */
lk_session_lease *lk__client_lease(const lk_client *c);

/** Keep `lease` with a client that has none. `free_lease` is called once, when
    the client is freed: after all of its callbacks, before its memory goes. */
void lk__client_set_lease(lk_client *c, lk_session_lease *lease,
                          void (*free_lease)(lk_session_lease *lease));

/** Attach a listener that is notified before those that are attached already.
    Locks are in their new state before a program's own listeners look. */
void lk__client_attach_first(lk_client *c, lk_listener *l);

#endif
