/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_QUORUM_PROBE_H
#define LK_PROTO_ENGINE_QUORUM_PROBE_H

/**
 * @file
 * The search for a server with a quorum, while the client is connected to a
 * read-only server: each server is asked "isro" in turn, then all rest for ever
 * longer pauses.
 */

#include <latchkey/driver.h>

typedef struct lk_engine_probe {
  uint64_t number;      /**< of the probe under way, or 0 */
  uint64_t last_number; /**< of the last probe */
  size_t asked;         /**< servers asked in this round */
  int64_t due_ms;       /**< when the probe under way times out, or the next
                             round begins; or LK_NEVER */
  int64_t pause_ms;     /**< after this round */
} lk_engine_probe;

/** Begin a first round. */
void lk__probe_begin(lk_client *c);
void lk__probe_stop(lk_client *c);
/** Do what is due at the client's clock. */
void lk__probe_run(lk_client *c);

/** What the driver should ask, see lk_client_want_probe(). */
lk_want lk__probe_want(const lk_client *c);
/** The server under probe has no quorum: go on with the next one. */
void lk__probe_next_server(lk_client *c);
/** It has one: it becomes the server in turn. Its name may have several
    addresses: until all were tried, those of read-only servers are not
    accepted. */
void lk__probe_select(lk_client *c);

#endif
