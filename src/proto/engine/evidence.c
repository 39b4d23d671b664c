/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/evidence.h"

enum {
  LK_EVIDENCE_BUCKETS = 48, /* spread over one session timeout */
  LK_EVIDENCE_SAMPLES = 2 * LK_EVIDENCE_BUCKETS
};

/* ---- creation ------------------------------------------------------------ */

void lk__evidence_init(lk_evidence_record *r, const lk_mem *mem)
{
  memset(r, 0, sizeof *r);
  lk__ring_init(&r->samples, mem, sizeof(lk_evidence_sample));
  lk__evidence_clear(r);
}

void lk__evidence_set_gap(lk_evidence_record *r, int32_t gap_ms)
{
  if (gap_ms == r->wanted_gap_ms)
    return;
  r->wanted_gap_ms = gap_ms;
  /* These were computed with the old gap. */
  r->evidence_ms[LK_PROVEN_BY_COMMIT] = LK_NO_EVIDENCE;
  r->evidence_ms[LK_PROVEN_BY_LEADER] = LK_NO_EVIDENCE;
  r->committed_ms = LK_NO_EVIDENCE;
}

/* ---- samples ------------------------------------------------------------- */

/* Drop the samples, which are valid for one connection only. */
static void evidence_forget_samples(lk_evidence_record *r)
{
  r->samples.count = 0;
  r->bucket_end_ms = LK_NO_EVIDENCE;
  r->resumed_ms = LK_NO_EVIDENCE;
  r->committed_ms = LK_NO_EVIDENCE;
}

/* Whether the reply to `new` took less time than the reply to `old`. */
static bool evidence_is_faster(const lk_evidence_sample *new,
                               const lk_evidence_sample *old)
{
  return new->received_ms - new->sent_ms < old->received_ms - old->sent_ms;
}

/* Drop the samples that are older than the session timeout: the deadlines that
 * they could prove have passed. */
static void evidence_drop_old_samples(lk_evidence_record *r, int64_t now)
{
  while (r->samples.count > 0) {
    const lk_evidence_sample *oldest = lk__ring_at(&r->samples, 0);

    if (oldest->received_ms >= now - r->timeout_ms)
      return;
    lk__ring_pop(&r->samples);
  }
}

/* Make room for another sample, if need be by dropping the oldest one. false:
 * there is no memory for any sample. */
static bool evidence_make_room(lk_evidence_record *r)
{
  if (r->samples.count < LK_EVIDENCE_SAMPLES && lk__ring_reserve(&r->samples))
    return true;
  if (r->samples.count == 0)
    return false;
  lk__ring_pop(&r->samples);
  return true;
}

/* Keep a sample. Time is divided into buckets of a 48th of the session timeout,
 * and each bucket keeps two samples: the first one, and the fastest of those
 * that are faster than the first. The first one serves a request that is sent
 * hardly more than one gap later, as heartbeats are. */
static void evidence_keep_sample(lk_evidence_record *r, int64_t sent_ms,
                                 int64_t received_ms)
{
  lk_evidence_sample new = {sent_ms, received_ms};
  bool in_newest_bucket =
      r->samples.count > 0 && received_ms < r->bucket_end_ms;

  if (in_newest_bucket) {
    lk_evidence_sample *last = lk__ring_at(&r->samples, r->samples.count - 1);

    if (!evidence_is_faster(&new, last))
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
  r->bucket_full = in_newest_bucket; /* it holds two samples then */
  if (!in_newest_bucket)
    r->bucket_end_ms = received_ms + r->timeout_ms / LK_EVIDENCE_BUCKETS;
}

/* ---- proofs -------------------------------------------------------------- */

/* It is proven at `level`, and so at all weaker levels, which have larger
 * numbers, that the session's timer was restarted at `sent_ms` or later. */
static void evidence_raise(lk_evidence_record *r, lk_evidence_level level,
                           int64_t sent_ms)
{
  for (size_t i = level; i < LK_PROVEN_LEVELS; i++) {
    if (sent_ms > r->evidence_ms[i])
      r->evidence_ms[i] = sent_ms;
  }
}

/* Each connection negotiates the session timeout anew. A shorter one is used
 * from then on. A longer one is never used, since the leader may go back to an
 * earlier, shorter one in two cases: a new leader starts with the timeout with
 * which the session was created, and a late report of the previous server sets
 * the timeout of the previous connection. */
static void evidence_adopt_timeout(lk_evidence_record *r, int32_t timeout_ms)
{
  if (r->timeout_ms == 0 || timeout_ms < r->timeout_ms)
    r->timeout_ms = timeout_ms;
}

static int64_t evidence_gap(const lk_evidence_record *r)
{
  return r->wanted_gap_ms > 0 ? r->wanted_gap_ms : r->timeout_ms / 4;
}

/* Returns when the newest request was sent whose reply came at least a gap
 * before `ms`. A leader that answers a later request, sent at `ms`, has heard
 * of this earlier one; see the header. */
static int64_t evidence_known_to_leader(const lk_evidence_record *r, int64_t ms)
{
  int64_t gap = evidence_gap(r);

  for (size_t i = r->samples.count; i-- > 0;) {
    const lk_evidence_sample *sample = lk__ring_at(&r->samples, i);

    if (sample->received_ms + gap <= ms)
      return sample->sent_ms;
  }
  return LK_NO_EVIDENCE;
}

static void evidence_add_commit(lk_evidence_record *r, int64_t sent_ms)
{
  r->committed_ms = sent_ms;
  evidence_raise(r, LK_PROVEN_BY_COMMIT, evidence_known_to_leader(r, sent_ms));
  /* When a session is resumed, the leader itself restarts the session's timer.
   * A commit proves that the leader that did so still leads: no gap is needed.
   */
  evidence_raise(r, LK_PROVEN_BY_COMMIT, r->resumed_ms);
}

/* Add the evidence of a reply that needed the leader. */
static void evidence_add_proof(lk_evidence_record *r, const lk_reply *reply)
{
  switch (reply->evidence) {
  case LK_EVIDENCE_NEW_SESSION:
    evidence_raise(r, LK_PROVEN_BY_COMMIT, reply->sent_ms);
    break;
  case LK_EVIDENCE_RESUMED:
    r->resumed_ms = reply->sent_ms;
    evidence_raise(r, LK_PROVEN_BY_LEADER, reply->sent_ms);
    break;
  case LK_EVIDENCE_COMMIT: evidence_add_commit(r, reply->sent_ms); break;
  case LK_EVIDENCE_LEADER:
    evidence_raise(r, LK_PROVEN_BY_LEADER,
                   evidence_known_to_leader(r, reply->sent_ms));
    break;
  case LK_EVIDENCE_NONE:
  case LK_EVIDENCE_CONTACT: break;
  }
}

/* ---- replies ------------------------------------------------------------- */

/* The fast path, for most replies of a busy client: a read proves nothing new
 * if a request sent at the same time or later already has its reply, and a
 * write if that request was a write. */
static bool evidence_is_known(const lk_evidence_record *r,
                              const lk_reply *reply)
{
  if (reply->connection != r->connection)
    return false;
  if (reply->evidence == LK_EVIDENCE_COMMIT)
    return reply->sent_ms <= r->committed_ms;
  return reply->evidence == LK_EVIDENCE_CONTACT &&
         reply->sent_ms <= r->evidence_ms[LK_PROVEN_BY_CONTACT];
}

static void evidence_see_zxid(lk_evidence_record *r, int64_t zxid)
{
  if (zxid > 0 && (uint64_t)zxid > r->seen_zxid)
    r->seen_zxid = (uint64_t)zxid;
}

void lk__evidence_add(lk_evidence_record *r, const lk_reply *reply,
                      int32_t timeout_ms)
{
  if (reply->evidence == LK_EVIDENCE_NONE)
    return;
  if (evidence_is_known(r, reply)) {
    evidence_see_zxid(r, reply->zxid);
    return;
  }
  if (reply->connection != r->connection)
    evidence_forget_samples(r);
  if (reply->evidence == LK_EVIDENCE_NEW_SESSION)
    lk__evidence_clear(r);
  r->connection = reply->connection;
  evidence_see_zxid(r, reply->zxid);
  evidence_adopt_timeout(r, timeout_ms);
  if (reply->evidence != LK_EVIDENCE_CONTACT)
    evidence_add_proof(r, reply);
  evidence_raise(r, LK_PROVEN_BY_CONTACT, reply->sent_ms);
  evidence_keep_sample(r, reply->sent_ms, reply->received_ms);
}

/* ---- queries ------------------------------------------------------------- */

/* The samples are in the order of their requests and of their replies. So the
 * first one that suffices is confirmed first. */
int64_t lk__evidence_confirmable_ms(const lk_evidence_record *r,
                                    int64_t sent_ms, int64_t from_ms,
                                    int64_t until_ms)
{
  for (size_t i = 0; i < r->samples.count; i++) {
    const lk_evidence_sample *sample = lk__ring_at(&r->samples, i);
    int64_t at_ms = sample->received_ms + evidence_gap(r);

    if (sample->sent_ms >= sent_ms)
      return at_ms > from_ms && at_ms <= until_ms ? at_ms : from_ms;
  }
  return from_ms;
}

int64_t lk__evidence_round_trip_ms(const lk_evidence_record *r)
{
  if (r->samples.count == 0)
    return 0;
  const lk_evidence_sample *newest =
      lk__ring_at(&r->samples, r->samples.count - 1);

  return newest->received_ms - newest->sent_ms;
}

/* ---- the end ------------------------------------------------------------- */

void lk__evidence_clear(lk_evidence_record *r)
{
  evidence_forget_samples(r);
  r->timeout_ms = 0;
  r->seen_zxid = 0; /* the next session may be of another ensemble */
  for (size_t i = 0; i < LK_PROVEN_LEVELS; i++)
    r->evidence_ms[i] = LK_NO_EVIDENCE;
}

void lk__evidence_free(lk_evidence_record *r)
{
  lk__ring_free(&r->samples);
}
