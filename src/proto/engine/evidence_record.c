/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/evidence_record.h"

void lk__evidence_init(lk_evidence_record *r)
{
  memset(r, 0, sizeof *r);
  lk__evidence_end(r);
}

/* The samples of a connection end with it. */
static void evidence_forget_samples(lk_evidence_record *r)
{
  r->count = 0;
  r->first = 0;
  r->bucket_ms = LK_NO_EVIDENCE;
  r->resumed_ms = LK_NO_EVIDENCE;
}

void lk__evidence_end(lk_evidence_record *r)
{
  evidence_forget_samples(r);
  r->timeout_ms = 0;
  r->seen_zxid = 0; /* the next ensemble may be another one */
  for (size_t i = 0; i < LK_PROVEN_LEVELS; i++)
    r->evidence_ms[i] = LK_NO_EVIDENCE;
}

void lk__evidence_set_gap(lk_evidence_record *r, int32_t gap_ms)
{
  if (gap_ms == r->wanted_gap_ms)
    return;
  r->wanted_gap_ms = gap_ms;
  r->evidence_ms[LK_PROVEN_BY_COMMIT] = LK_NO_EVIDENCE;
  r->evidence_ms[LK_PROVEN_BY_LEADER] = LK_NO_EVIDENCE;
}

/* The session was touched at `sent_ms` or later: proven at `level`, and so at
 * all weaker ones. */
static void evidence_raise(lk_evidence_record *r, lk_evidence_level level,
                           int64_t sent_ms)
{
  for (size_t i = level; i < LK_PROVEN_LEVELS; i++) {
    if (sent_ms > r->evidence_ms[i])
      r->evidence_ms[i] = sent_ms;
  }
}

/* Each connection negotiates the timeout anew. A shorter one counts from then
 * on. A longer one never does: a leader that is elected later starts with the
 * timeout that the session was created with, and what the server before reports
 * late sets the one that it knows. */
static void evidence_adopt_timeout(lk_evidence_record *r, int32_t timeout_ms)
{
  if (r->timeout_ms == 0 || timeout_ms < r->timeout_ms)
    r->timeout_ms = timeout_ms;
}

static const lk_evidence_sample *evidence_sample(const lk_evidence_record *r,
                                                 size_t i)
{
  return &r->samples[(r->first + i) % LK_EVIDENCE_SAMPLES];
}

/* When the newest request was sent that was answered a gap before `ms`. */
static int64_t evidence_touched_before(const lk_evidence_record *r, int64_t ms)
{
  int64_t gap = r->wanted_gap_ms > 0 ? r->wanted_gap_ms : r->timeout_ms / 4;

  for (size_t i = r->count; i-- > 0;) {
    if (evidence_sample(r, i)->received_ms + gap <= ms)
      return evidence_sample(r, i)->sent_ms;
  }
  return LK_NO_EVIDENCE;
}

static bool evidence_is_better(const lk_evidence_sample *new,
                               const lk_evidence_sample *old)
{
  return new->sent_ms - old->sent_ms > new->received_ms - old->received_ms;
}

/* Two samples are kept for each 48th of the timeout: the first, which counts
 * for what is sent just a gap later, as beats are; and the best, which was sent
 * later by more than it was answered later. */
static void evidence_keep_sample(lk_evidence_record *r, int64_t sent_ms,
                                 int64_t received_ms)
{
  lk_evidence_sample new = {sent_ms, received_ms};
  lk_evidence_sample *last =
      &r->samples[(r->first + r->count - 1) % LK_EVIDENCE_SAMPLES];
  bool follows = r->count > 0 && received_ms < r->bucket_ms;

  if (follows && !evidence_is_better(&new, last))
    return;
  if (follows && r->bucket_full) {
    *last = new;
    return;
  }
  if (r->count == LK_EVIDENCE_SAMPLES) {
    r->first = (r->first + 1) % LK_EVIDENCE_SAMPLES;
    r->count--;
  }
  r->samples[(r->first + r->count) % LK_EVIDENCE_SAMPLES] = new;
  r->count++;
  r->bucket_full = follows;
  if (!follows)
    r->bucket_ms = received_ms + r->timeout_ms / LK_EVIDENCE_BUCKETS;
}

static void evidence_add_commit(lk_evidence_record *r, int64_t sent_ms)
{
  evidence_raise(r, LK_PROVEN_BY_COMMIT, evidence_touched_before(r, sent_ms));
  /* Revalidation touched the session at the leader itself, and the commit
   * proves that it led: no gap is needed. */
  evidence_raise(r, LK_PROVEN_BY_COMMIT, r->resumed_ms);
}

/* A read whose request left no later than another that was answered before
 * proves nothing more. Most replies of a busy client are such. */
static bool evidence_is_known(const lk_evidence_record *r, const lk_reply *a)
{
  return a->evidence == LK_EVIDENCE_CONTACT && a->connection == r->connection &&
         a->sent_ms <= r->evidence_ms[LK_PROVEN_BY_CONTACT];
}

static void evidence_see_zxid(lk_evidence_record *r, int64_t zxid)
{
  if (zxid > 0 && (uint64_t)zxid > r->seen_zxid)
    r->seen_zxid = (uint64_t)zxid;
}

void lk__evidence_add(lk_evidence_record *r, const lk_reply *a,
                      int32_t timeout_ms)
{
  if (a->evidence == LK_EVIDENCE_NONE)
    return;
  if (evidence_is_known(r, a)) {
    evidence_see_zxid(r, a->zxid);
    return;
  }
  if (a->connection != r->connection)
    evidence_forget_samples(r);
  if (a->evidence == LK_EVIDENCE_NEW_SESSION)
    lk__evidence_end(r);
  r->connection = a->connection;
  evidence_see_zxid(r, a->zxid);
  evidence_adopt_timeout(r, timeout_ms);
  switch (a->evidence) {
  case LK_EVIDENCE_NEW_SESSION:
    evidence_raise(r, LK_PROVEN_BY_COMMIT, a->sent_ms);
    break;
  case LK_EVIDENCE_RESUMED:
    r->resumed_ms = a->sent_ms;
    evidence_raise(r, LK_PROVEN_BY_LEADER, a->sent_ms);
    break;
  case LK_EVIDENCE_COMMIT: evidence_add_commit(r, a->sent_ms); break;
  case LK_EVIDENCE_LEADER:
    evidence_raise(r, LK_PROVEN_BY_LEADER,
                   evidence_touched_before(r, a->sent_ms));
    break;
  case LK_EVIDENCE_NONE:
  case LK_EVIDENCE_CONTACT: break;
  }
  evidence_raise(r, LK_PROVEN_BY_CONTACT, a->sent_ms);
  evidence_keep_sample(r, a->sent_ms, a->received_ms);
}
