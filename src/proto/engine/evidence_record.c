/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/evidence_record.h"

void lk__evidence_init(lk_evidence_record *r, const lk_mem *mem)
{
  memset(r, 0, sizeof *r);
  lk__ring_init(&r->samples, mem, sizeof(lk_evidence_sample));
  lk__evidence_end(r);
}

void lk__evidence_free(lk_evidence_record *r)
{
  lk__ring_free(&r->samples);
}

/* The samples of a connection end with it. */
static void evidence_forget_samples(lk_evidence_record *r)
{
  r->samples.count = 0;
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

/* When the newest request was sent that was answered a gap before `ms`. */
static int64_t evidence_touched_before(const lk_evidence_record *r, int64_t ms)
{
  int64_t gap = r->wanted_gap_ms > 0 ? r->wanted_gap_ms : r->timeout_ms / 4;

  for (size_t i = r->samples.count; i-- > 0;) {
    const lk_evidence_sample *sample = lk__ring_at(&r->samples, i);

    if (sample->received_ms + gap <= ms)
      return sample->sent_ms;
  }
  return LK_NO_EVIDENCE;
}

static bool evidence_is_better(const lk_evidence_sample *new,
                               const lk_evidence_sample *old)
{
  return new->sent_ms - old->sent_ms > new->received_ms - old->received_ms;
}

/* A sample that is older than the session timeout proves nothing that has not
 * ended already. */
static void evidence_drop_old_samples(lk_evidence_record *r, int64_t now)
{
  const lk_evidence_sample *oldest;

  while (r->samples.count > 0 &&
         (oldest = lk__ring_at(&r->samples, 0))->received_ms <
             now - r->timeout_ms)
    lk__ring_pop(&r->samples);
}

/* Where there is no room for another sample the oldest goes. */
static bool evidence_make_room(lk_evidence_record *r)
{
  if (r->samples.count < LK_EVIDENCE_SAMPLES && lk__ring_reserve(&r->samples))
    return true;
  if (r->samples.count == 0)
    return false;
  lk__ring_pop(&r->samples);
  return true;
}

/* Two samples are kept for each 48th of the timeout: the first, which counts
 * for what is sent just a gap later, as heartbeats are; and the best, which was
 * sent later by more than it was answered later. */
static void evidence_keep_sample(lk_evidence_record *r, int64_t sent_ms,
                                 int64_t received_ms)
{
  lk_evidence_sample new = {sent_ms, received_ms};
  bool follows = r->samples.count > 0 && received_ms < r->bucket_ms;

  if (follows) {
    lk_evidence_sample *last = lk__ring_at(&r->samples, r->samples.count - 1);

    if (!evidence_is_better(&new, last))
      return;
    if (r->bucket_full) {
      *last = new;
      return;
    }
  }
  evidence_drop_old_samples(r, received_ms);
  if (!evidence_make_room(r))
    return;
  *(lk_evidence_sample *)lk__ring_push(&r->samples) = new;
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

/* The reply shows a leader that leads, or led. */
static void evidence_add_proof(lk_evidence_record *r, const lk_reply *a)
{
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
  if (a->evidence != LK_EVIDENCE_CONTACT)
    evidence_add_proof(r, a);
  evidence_raise(r, LK_PROVEN_BY_CONTACT, a->sent_ms);
  evidence_keep_sample(r, a->sent_ms, a->received_ms);
}
