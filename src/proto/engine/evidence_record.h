/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_EVIDENCE_RECORD_H
#define LK_PROTO_ENGINE_EVIDENCE_RECORD_H

#include "base/ring.h"

#include <latchkey/client.h>

/**
 * @file
 * What the replies of a session prove: until when the ensemble cannot have
 * expired it ("The lease" in doc/architecture.md). Each client keeps one record
 * from its first connection on, so that a lock that is made late finds the
 * evidence of earlier replies. The session lease (src/recipes/lease) derives
 * deadlines from it.
 *
 * A server restarts the session's timer with each request. A server that is not
 * the leader reports that with its reply to the leader's next ping. So a
 * request j that was answered counts from the moment it was sent, once a
 * request k was answered by the leader on the same connection, and k was sent
 * at least a gap (the leader's ping period) after j's reply. The levels differ
 * in whether k's reply shows a leader that still leads.
 *
 * Requests that were answered are kept for one session timeout: the memory for
 * them grows with the number that the timeout needs. An idle client keeps the
 * few of its pings. Without memory samples are lost, and with them evidence.
 */

enum {
  LK_EVIDENCE_BUCKETS = 48, /**< spread over one session timeout */
  LK_EVIDENCE_SAMPLES = 2 * LK_EVIDENCE_BUCKETS
};

/** What k was. Evidence of a level is evidence of all levels behind it. */
typedef enum lk_evidence_level {
  LK_PROVEN_BY_COMMIT,  /**< a committed transaction */
  LK_PROVEN_BY_LEADER,  /**< a sync, or the handshake of a resumed session */
  LK_PROVEN_BY_CONTACT, /**< none: j alone counts */
  LK_PROVEN_LEVELS
} lk_evidence_level;

#define LK_NO_EVIDENCE INT64_MIN

/** A request that was answered. */
typedef struct lk_evidence_sample {
  int64_t sent_ms;
  int64_t received_ms;
} lk_evidence_sample;

typedef struct lk_evidence_record {
  int32_t wanted_gap_ms; /**< 0: a quarter of the session timeout */
  int32_t timeout_ms;    /**< the smallest that was negotiated in this session;
                              0: none was */
  uint64_t seen_zxid;    /**< the largest of any reply in this session */
  uint64_t connection;   /**< which the samples are from */
  int64_t resumed_ms;    /**< when the handshake was sent that resumed the
                              session on it; or LK_NO_EVIDENCE */
  /** By lk_evidence_level: when the newest request was sent that is proven to
      have kept the session; or LK_NO_EVIDENCE. */
  int64_t evidence_ms[LK_PROVEN_LEVELS];
  int64_t bucket_ms; /**< when the newest samples' share of time ends */
  bool bucket_full;  /**< it has two */
  lk_ring samples;   /**< lk_evidence_sample, at most LK_EVIDENCE_SAMPLES */
} lk_evidence_record;

void lk__evidence_init(lk_evidence_record *r, const lk_mem *mem);
void lk__evidence_free(lk_evidence_record *r);
/** Use another gap in ms; 0: a quarter of the session timeout. If it differs
    from the one before, what was proven by a gap begins anew. The samples stay,
    so that the next commit is enough. */
void lk__evidence_set_gap(lk_evidence_record *r, int32_t gap_ms);
/** A request, a ping or a handshake was answered. `timeout_ms` is the session
    timeout now. On another connection the evidence stays, and ages. */
void lk__evidence_add(lk_evidence_record *r, const lk_reply *a,
                      int32_t timeout_ms);
/** The session is over. */
void lk__evidence_end(lk_evidence_record *r);

#endif
