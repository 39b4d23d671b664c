/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/evidence.h"

enum { DRIFT_PERCENT = 1, DRIFT_MS = 10 };

void lk__evidence_init(lk_evidence_record *l, int32_t gap_ms)
{
  memset(l, 0, sizeof *l);
  l->wanted_gap_ms = gap_ms;
  lk__evidence_end(l);
}

/* The samples of a connection end with it. */
static void forget(lk_evidence_record *l)
{
  l->count = 0;
  l->first = 0;
  l->bucket_ms = LK_NO_LEASE;
  l->resumed_ms = LK_NO_LEASE;
}

void lk__evidence_end(lk_evidence_record *l)
{
  forget(l);
  l->timeout_ms = 0;
  for (size_t i = 0; i < LK_EVIDENCE_LEVELS; i++)
    l->evidence_ms[i] = LK_NO_LEASE;
}

/* Two clocks may differ in speed. */
int64_t lk__evidence_deadline(const lk_evidence_record *l, lk_assurance level)
{
  if (l->evidence_ms[level] == LK_NO_LEASE)
    return LK_NO_LEASE;
  return l->evidence_ms[level] + l->timeout_ms -
         (int64_t)l->timeout_ms * DRIFT_PERCENT / 100 - DRIFT_MS;
}

/* The session was touched at `sent_ms` or later: proven at `level`, and so at
 * all weaker ones. */
static void raise(lk_evidence_record *l, lk_assurance level, int64_t sent_ms)
{
  for (size_t i = level; i < LK_EVIDENCE_LEVELS; i++) {
    if (sent_ms > l->evidence_ms[i])
      l->evidence_ms[i] = sent_ms;
  }
}

/* Each connection negotiates the timeout anew. A shorter one counts from then
 * on. A longer one never does: a leader that is elected later starts with the
 * timeout that the session was created with, and what the server before reports
 * late sets the one that it knows. */
static void adopt_timeout(lk_evidence_record *l, int32_t timeout_ms)
{
  if (l->timeout_ms == 0 || timeout_ms < l->timeout_ms)
    l->timeout_ms = timeout_ms;
}

static const lk_evidence_sample *sample(const lk_evidence_record *l, size_t i)
{
  return &l->samples[(l->first + i) % LK_EVIDENCE_SAMPLES];
}

/* When the newest request was sent that was answered a gap before `ms`. */
static int64_t touched_before(const lk_evidence_record *l, int64_t ms)
{
  int64_t gap = l->wanted_gap_ms > 0 ? l->wanted_gap_ms : l->timeout_ms / 4;

  for (size_t i = l->count; i-- > 0;) {
    if (sample(l, i)->received_ms + gap <= ms)
      return sample(l, i)->sent_ms;
  }
  return LK_NO_LEASE;
}

static bool is_better(const lk_evidence_sample *new,
                      const lk_evidence_sample *old)
{
  return new->sent_ms - old->sent_ms > new->received_ms - old->received_ms;
}

/* Two samples are kept for each 48th of the timeout: the first, which counts
 * for what is sent just a gap later, as beats are; and the best, which was sent
 * later by more than it was answered later. */
static void remember(lk_evidence_record *l, int64_t sent_ms,
                     int64_t received_ms)
{
  lk_evidence_sample new = {sent_ms, received_ms};
  lk_evidence_sample *last =
      &l->samples[(l->first + l->count - 1) % LK_EVIDENCE_SAMPLES];
  bool follows = l->count > 0 && received_ms < l->bucket_ms;

  if (follows && !is_better(&new, last))
    return;
  if (follows && l->bucket_full) {
    *last = new;
    return;
  }
  if (l->count == LK_EVIDENCE_SAMPLES) {
    l->first = (l->first + 1) % LK_EVIDENCE_SAMPLES;
    l->count--;
  }
  l->samples[(l->first + l->count) % LK_EVIDENCE_SAMPLES] = new;
  l->count++;
  l->bucket_full = follows;
  if (!follows)
    l->bucket_ms = received_ms + l->timeout_ms / LK_EVIDENCE_BUCKETS;
}

static void commit(lk_evidence_record *l, int64_t sent_ms)
{
  raise(l, LK_ASSURE_QUORUM, touched_before(l, sent_ms));
  /* Revalidation touched the session at the leader itself, and the commit
   * proves that it led: no gap is needed. */
  raise(l, LK_ASSURE_QUORUM, l->resumed_ms);
}

void lk__evidence_add(lk_evidence_record *l, const lk_reply *a,
                      int32_t timeout_ms)
{
  if (a->proof == LK_EVIDENCE_NONE)
    return;
  if (a->connection != l->connection)
    forget(l);
  if (a->proof == LK_EVIDENCE_NEW_SESSION)
    lk__evidence_end(l);
  l->connection = a->connection;
  adopt_timeout(l, timeout_ms);
  switch (a->proof) {
  case LK_EVIDENCE_NEW_SESSION: raise(l, LK_ASSURE_QUORUM, a->sent_ms); break;
  case LK_EVIDENCE_RESUMED:
    l->resumed_ms = a->sent_ms;
    raise(l, LK_ASSURE_SYNC, a->sent_ms);
    break;
  case LK_EVIDENCE_COMMIT: commit(l, a->sent_ms); break;
  case LK_EVIDENCE_LEADER:
    raise(l, LK_ASSURE_SYNC, touched_before(l, a->sent_ms));
    break;
  case LK_EVIDENCE_NONE:
  case LK_EVIDENCE_CONTACT: break;
  }
  raise(l, LK_ASSURE_PING, a->sent_ms);
  remember(l, a->sent_ms, a->received_ms);
}
