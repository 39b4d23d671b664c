/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_EVIDENCE_H
#define LK_RECIPES_LEASE_EVIDENCE_H

#include <latchkey/keeper.h>

/**
 * @file
 * From answers to a deadline ("The lease" in doc/architecture.md). A server
 * restarts a session's timer with each request, but one that is not the leader
 * reports it only with its answer to the leader's next ping. So a request j
 * that was answered counts from when it was sent, once a request k, sent a gap
 * (the leader's ping period) after j's answer, was answered by the leader on
 * the same connection. Whether k's answer shows a leader that still leads is
 * what the assurances differ in.
 */

enum {
  LK_EVIDENCE_BUCKETS = 48, /**< spread over one session timeout */
  LK_EVIDENCE_SAMPLES = 2 * LK_EVIDENCE_BUCKETS,
  LK_EVIDENCE_LEVELS = LK_ASSURE_PING + 1
};

#define LK_NO_LEASE INT64_MIN

/** A request that was answered. */
typedef struct lk_evidence_sample {
  int64_t sent_ms;
  int64_t received_ms;
} lk_evidence_sample;

typedef struct lk_evidence_record {
  int32_t wanted_gap_ms; /**< 0: a quarter of the session timeout */
  int32_t timeout_ms;    /**< the smallest that was negotiated in this session;
                              0: none was */
  uint64_t connection;   /**< which the samples are from */
  int64_t resumed_ms;    /**< when the handshake was sent that resumed the
                              session on it; or LK_NO_LEASE */
  /** By lk_assurance: when the newest request was sent that proves that the
      session lived; or LK_NO_LEASE. That of a weaker one is never earlier. */
  int64_t evidence_ms[LK_EVIDENCE_LEVELS];
  int64_t bucket_ms; /**< when the newest samples' share of time ends */
  bool bucket_full;  /**< it has two */
  size_t first;      /**< oldest sample */
  size_t count;
  lk_evidence_sample samples[LK_EVIDENCE_SAMPLES];
} lk_evidence_record;

void lk__evidence_init(lk_evidence_record *l, int32_t gap_ms);
/** A request, a ping or a handshake was answered. `timeout_ms` is the session
    timeout now. On another connection the evidence stays, and ages. */
void lk__evidence_add(lk_evidence_record *l, const lk_reply *a,
                      int32_t timeout_ms);
/** Until when the evidence of `level` proves that the session lives: when it
    was sent, plus the smallest timeout of the session, less what two clocks may
    differ by. LK_NO_LEASE: there is no evidence. */
int64_t lk__evidence_deadline(const lk_evidence_record *l, lk_assurance level);
/** The session is over. */
void lk__evidence_end(lk_evidence_record *l);

#endif
