/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_EVIDENCE_H
#define LK_PROTO_ENGINE_EVIDENCE_H

/**
 * @file
 * What the replies of a session prove: until when the ensemble cannot have
 * expired it ("The lease" in doc/architecture.md). Each client keeps one record
 * from its first connection on, so that a lock that is made late finds the
 * evidence of earlier replies. The session lease (src/recipes/queue/lease.h)
 * derives deadlines from it.
 *
 * Each request restarts the session's timer, which the leader keeps. A server
 * that is not the leader reports its clients' activity to the leader in its
 * reply to the leader's next ping. Take a request j that was answered, and a
 * later request k that the leader answered on the same connection. If k was
 * sent at least one gap (the leader's ping period) after j's reply, the leader
 * had heard of j by then. So the session cannot expire earlier than one session
 * timeout after j was sent. The levels below differ in how k proves that this
 * leader still leads.
 *
 * The record keeps samples of the answered requests of one session timeout. An
 * idle client has only those of its pings. Without memory samples are dropped,
 * and some evidence is lost.
 */

#include <latchkey/client.h>

#include "base/ring.h"

/** The kind of request that k was. Evidence of one level is also evidence of
    all levels behind it. */
typedef enum lk_evidence_level {
  LK_PROVEN_BY_COMMIT,  /**< a committed transaction */
  LK_PROVEN_BY_LEADER,  /**< a sync, or the handshake of a resumed session */
  LK_PROVEN_BY_CONTACT, /**< there is no k: j was answered by any server */
  LK_PROVEN_LEVELS      /**< number of levels */
} lk_evidence_level;

/** The value of a time in lk_evidence_record for which there is no evidence. */
#define LK_NO_EVIDENCE INT64_MIN

/** A request that was answered. */
typedef struct lk_evidence_sample {
  int64_t sent_ms;
  int64_t received_ms;
} lk_evidence_sample;

typedef struct lk_evidence_record {
  int32_t wanted_gap_ms; /**< the gap; 0: a quarter of the session timeout */
  int32_t timeout_ms;   /**< the smallest session timeout that was negotiated in
                             this session; 0: none was */
  uint64_t seen_zxid;   /**< the largest zxid of a reply in this session */
  uint64_t connection;  /**< number of the connection of the samples */
  int64_t resumed_ms;   /**< when the handshake was sent that resumed the
                             session on this connection; or LK_NO_EVIDENCE */
  int64_t committed_ms; /**< when the newest request was sent on this connection
                             whose commit was added with this gap; or
                             LK_NO_EVIDENCE */
  /** By lk_evidence_level: when the newest request was sent that is proven to
      have kept the session; or LK_NO_EVIDENCE. */
  int64_t evidence_ms[LK_PROVEN_LEVELS];
  int64_t bucket_end_ms; /**< when the bucket of the newest sample ends */
  bool bucket_full;      /**< this bucket has two samples */
  lk_ring samples;       /**< lk_evidence_sample, at most LK_EVIDENCE_SAMPLES */
} lk_evidence_record;

void lk__evidence_init(lk_evidence_record *r, const lk_mem *mem);
void lk__evidence_free(lk_evidence_record *r);
/** Set the gap in ms; 0: a quarter of the session timeout. Evidence that relied
    on another gap is dropped. The samples stay, so the next commit proves as
    much again. */
void lk__evidence_set_gap(lk_evidence_record *r, int32_t gap_ms);
/** Add the reply to a request, a ping or a handshake. `timeout_ms` is the
    present session timeout. If the reply is from another connection than the
    samples, the samples are dropped; the evidence stays. */
void lk__evidence_add(lk_evidence_record *r, const lk_reply *reply,
                      int32_t timeout_ms);
/** Returns the earliest time from `from_ms` until `until_ms` at which a request
    of this connection confirms a request that was sent at `sent_ms` or later.
    `from_ms`: there is no such time. */
int64_t lk__evidence_confirmable_ms(const lk_evidence_record *r,
                                    int64_t sent_ms, int64_t from_ms,
                                    int64_t until_ms);
/** How long the newest reply that is kept has taken, in ms; 0: none is kept. */
int64_t lk__evidence_round_trip_ms(const lk_evidence_record *r);
/** The session has ended: drop all evidence. */
void lk__evidence_clear(lk_evidence_record *r);

#endif
