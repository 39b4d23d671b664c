/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_QUORUM_PROBE_H
#define LK_PROTO_ENGINE_QUORUM_PROBE_H

/**
 * @file
 * The search for a server with a quorum while the client is connected to a
 * read-only server. Each server is asked "isro" in turn. After such a round the
 * client pauses before it begins the next one; the pauses grow.
 */

#include <latchkey/driver.h>

typedef struct lk_engine_probe {
  uint64_t number;      /**< number of the probe under way; 0: there is none */
  uint64_t last_number; /**< number of the last probe */
  size_t asked;         /**< servers asked in this round */
  int64_t due_ms;       /**< when the probe under way times out, or the next
                             round begins; LK_NEVER: no search is under way */
  int64_t pause_ms;     /**< the pause after this round */
} lk_engine_probe;

/** Begin a search: the first round follows after a short pause. */
void lk__probe_begin(lk_client *c);
/** End the search, if there is one. */
void lk__probe_stop(lk_client *c);
/** Begin the next round, or give up the probe under way, which is due at
    `due_ms`. */
void lk__probe_run(lk_client *c);

/** The server that the driver should ask, see lk_client_want_probe(). */
lk_want lk__probe_want(const lk_client *c);
/** The server under probe has no quorum: go on with the next one. */
void lk__probe_next_server(lk_client *c);
/** The server under probe has a quorum: it becomes the server in turn. Its name
    may have several addresses, some of them of read-only servers, which are not
    accepted until all addresses were tried. */
void lk__probe_select(lk_client *c);

#endif
