/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_LEASE_SLOT_H
#define LK_PROTO_ENGINE_LEASE_SLOT_H

/**
 * @file
 * The session lease of a client, which the engine stores as a pointer with the
 * function that frees it. This is the only private header of the engine that
 * recipes include.
 */

#include "base/sized_struct.h"
#include "proto/engine/evidence.h"

typedef struct lk_session_lease lk_session_lease;

typedef struct lk_engine_lease {
  lk_session_lease *object; /**< NULL: there is none */
  void (*free)(lk_session_lease *lease);
  bool has_holder; /**< see lk__client_note_holder() */
} lk_engine_lease;

/** The evidence of the client's session; the pointer is valid as long as the
    client. */
const lk_evidence_record *lk__client_evidence(const lk_client *c);
/** See lk__evidence_set_gap(). */
void lk__client_set_evidence_gap(lk_client *c, int32_t gap_ms);

/** The session lease of the client; NULL: it has none yet. */
lk_session_lease *lk__client_lease(const lk_client *c);

/** Store `lease` in a client that has none. It is part of the client, which
    calls `free_lease` before it frees itself. */
void lk__client_set_lease(lk_client *c, lk_session_lease *lease,
                          void (*free_lease)(lk_session_lease *lease));

/** References of the objects that live on the client. After lk_client_free() it
    remains, ended and without its buffers, until the last one is given back. */
void lk__client_ref(lk_client *c);
void lk__client_unref(lk_client *c);

/** Whether this process is a forked child of the one that made the client. */
bool lk__client_is_forked(const lk_client *c);

/** Why the client accepts no requests any more: LK_ERR_CLOSED, also if it is
    closing, LK_ERR_AUTH_FAILED or LK_ERR_SESSION_EXPIRED; 0: it accepts
    some. */
int lk__client_end_err(const lk_client *c);
/** Why every new request is refused: LK_ERR_FORKED, LK_ERR_CLOSED or
    LK_ERR_AUTH_FAILED; 0: requests are accepted. */
int lk__client_refusal(const lk_client *c);

/** Copy the caller's options `from`, a struct that begins with its size, to
    `out`. If `from` is NULL, all options in `out` are 0. Returns 0, or
    LK_ERR_BAD_ARGUMENT if the struct is not valid; the reason is logged. */
int lk__client_copy_options(const lk_client *c, const lk_sized_struct *what,
                            void *out, const void *from);

/** A holder will be unsure at `needed_ms`, and a reply can prevent that. To be
    called repeatedly while the time is near. The client leaves a server that
    has not replied for long, if there is another one; see server_leave.h. */
void lk__client_need_reply(lk_client *c, int64_t needed_ms);

/** Whether the session holds a lock. The first attempts after a loss of the
    connection of a holder follow each other quickly; see
    LK_HOLDER_PAUSE_DOUBLINGS. */
void lk__client_note_holder(lk_client *c, bool has_holder);

/** Attach a listener that is notified before all others, so that locks are in
    their new state when the program's own listeners are notified. */
void lk__client_attach_first(lk_client *c, lk_listener *l);

#endif
