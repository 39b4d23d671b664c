/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/lease_deadline.h"
#include "support/failing_mem.h"
#include "support/suite.h"

/* With a timeout of 4 s the gap is 1 s. The deadline is 50 ms earlier than T
 * after the evidence, as the allowance for drifting clocks. */
enum { T = 4000, GAP = T / 4, DRIFT = T / 100 + 10 };

static lk_evidence_record l;
static failing_mem mem;

static void start(int32_t gap_ms)
{
  if (l.samples.mem != NULL)
    lk__evidence_free(&l);
  failing_mem_init(&mem);
  lk__evidence_init(&l, &mem.mem);
  lk__evidence_set_gap(&l, gap_ms);
}

static void answer(lk_evidence proof, int64_t sent_ms, int64_t received_ms)
{
  lk_reply a = {.evidence = proof,
                .sent_ms = sent_ms,
                .received_ms = received_ms,
                .connection = 1};

  lk__evidence_add(&l, &a, T);
}

/* The deadline that evidence of time `ms` proves. */
static int64_t from(int64_t ms)
{
  return ms + T - DRIFT;
}

static void assert_until(int64_t quorum, int64_t sync, int64_t ping)
{
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), quorum);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_SYNC), sync);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_PING), ping);
}

START_TEST(no_evidence_proves_no_lease)
{
  start(0);
  assert_until(LK_NO_LEASE, LK_NO_LEASE, LK_NO_LEASE);
}
END_TEST

START_TEST(reply_of_a_read_only_server_is_ignored)
{
  start(0);
  answer(LK_EVIDENCE_NONE, 100, 130);
  assert_until(LK_NO_LEASE, LK_NO_LEASE, LK_NO_LEASE);
  ck_assert_uint_eq(l.samples.count, 0);
  ck_assert_uint_eq(l.connection, 0);
}
END_TEST

START_TEST(a_new_session_is_proof_by_itself)
{
  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 100, 130);
  assert_until(from(100), from(100), from(100));
}
END_TEST

START_TEST(contact_is_evidence_for_ping_assurance_only)
{
  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 0, 10);
  answer(LK_EVIDENCE_CONTACT, 1300, 1310);
  assert_until(from(0), from(0), from(1300));
}
END_TEST

START_TEST(commit_confirms_replies_received_a_gap_before_it_was_sent)
{
  start(0);
  answer(LK_EVIDENCE_CONTACT, 1000, 1010);
  answer(LK_EVIDENCE_COMMIT, 1009 + GAP, 1015 + GAP);
  assert_until(LK_NO_LEASE, LK_NO_LEASE, from(1009 + GAP));
  answer(LK_EVIDENCE_COMMIT, 1010 + GAP, 1020 + GAP);
  assert_until(from(1000), from(1000), from(1010 + GAP));
}
END_TEST

START_TEST(sync_confirms_replies_for_sync_assurance_only)
{
  start(0);
  answer(LK_EVIDENCE_CONTACT, 1000, 1010);
  answer(LK_EVIDENCE_LEADER, 1010 + GAP, 1020 + GAP);
  assert_until(LK_NO_LEASE, from(1000), from(1010 + GAP));
}
END_TEST

START_TEST(heartbeats_keep_the_deadline_half_a_timeout_away)
{
  int64_t now = 0;

  start(0);
  for (int i = 0; i < 50; i++) {
    int64_t answered = now + 20;

    answer(LK_EVIDENCE_COMMIT, now, answered);
    if (i > 0) {
      ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM),
                       from(now - GAP - 20));
      ck_assert_int_ge(lk__evidence_deadline(&l, LK_ASSURE_QUORUM),
                       answered + T / 2);
    }
    now = answered + GAP;
  }
}
END_TEST

START_TEST(busy_session_needs_no_heartbeat)
{
  start(0);
  for (int64_t t = 0; t <= 20000; t += 7)
    answer(LK_EVIDENCE_COMMIT, t, t + 3);
  /* one sample is kept in each 48th of the timeout */
  ck_assert_int_ge(lk__evidence_deadline(&l, LK_ASSURE_QUORUM),
                   from(19999 - GAP - T / 48 - 10));
  ck_assert_int_le(lk__evidence_deadline(&l, LK_ASSURE_QUORUM),
                   from(19999 - GAP));
}
END_TEST

START_TEST(a_resume_is_proof_for_sync_and_with_a_commit_for_quorum)
{
  start(0);
  answer(LK_EVIDENCE_RESUMED, 500, 510);
  assert_until(LK_NO_LEASE, from(500), from(500));
  answer(LK_EVIDENCE_COMMIT, 511,
         520); /* after a resume, the commit need not be a gap later */
  assert_until(from(500), from(500), from(511));
}
END_TEST

START_TEST(replies_of_another_connection_are_not_combined)
{
  lk_reply a = {.evidence = LK_EVIDENCE_COMMIT,
                .sent_ms = 1010 + GAP,
                .received_ms = 1020 + GAP,
                .connection = 2};

  start(0);
  answer(LK_EVIDENCE_RESUMED, 1000, 1010);
  lk__evidence_add(&l, &a, T);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), LK_NO_LEASE);
}
END_TEST

START_TEST(lease_outlives_the_connection_but_not_the_session)
{
  lk_reply a = {.evidence = LK_EVIDENCE_CONTACT, .connection = 2};

  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 0, 10);
  lk__evidence_add(&l, &a, T);
  assert_until(from(0), from(0), from(0));
  lk__evidence_end(&l);
  assert_until(LK_NO_LEASE, LK_NO_LEASE, LK_NO_LEASE);
}
END_TEST

START_TEST(older_message_never_shortens_the_deadline)
{
  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 1000, 1010);
  answer(LK_EVIDENCE_CONTACT, 900, 1020);
  assert_until(from(1000), from(1000), from(1000));
}
END_TEST

START_TEST(shorter_timeout_shortens_the_deadlines)
{
  lk_reply a = {.evidence = LK_EVIDENCE_RESUMED,
                .sent_ms = 1000,
                .received_ms = 1010,
                .connection = 2};

  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 900, 910);
  lk__evidence_add(&l, &a, 2000);
  /* evidence from before the resume still counts from when it was sent */
  assert_until(900 + 2000 - 30, 1000 + 2000 - 30, 1000 + 2000 - 30);
}
END_TEST

/* A new leader may know only the timeout that the session was created with. */
START_TEST(longer_timeout_does_not_extend_earlier_evidence)
{
  lk_reply a = {.evidence = LK_EVIDENCE_RESUMED,
                .sent_ms = 1000,
                .received_ms = 1010,
                .connection = 2};

  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 900, 910);
  lk__evidence_add(&l, &a, 2000);
  a.connection = 3;
  a.sent_ms = 1100;
  lk__evidence_add(&l, &a, 8000);
  assert_until(900 + 2000 - 30, 1100 + 2000 - 30, 1100 + 2000 - 30);
  a.connection = 4;
  a.sent_ms = 1200;
  a.evidence = LK_EVIDENCE_NEW_SESSION;
  lk__evidence_add(&l, &a, 8000);
  assert_until(1200 + 8000 - 90, 1200 + 8000 - 90, 1200 + 8000 - 90);
}
END_TEST

START_TEST(the_gap_can_be_chosen)
{
  start(300);
  answer(LK_EVIDENCE_CONTACT, 1000, 1010);
  answer(LK_EVIDENCE_COMMIT, 1309, 1311);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), LK_NO_LEASE);
  answer(LK_EVIDENCE_COMMIT, 1310, 1312);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), from(1000));
}
END_TEST

/* All replies are kept as samples, so they are used with the new gap as
 * well. */
START_TEST(another_gap_begins_anew_with_the_next_commit)
{
  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 100, 110);
  answer(LK_EVIDENCE_CONTACT, 1000, 1010);
  answer(LK_EVIDENCE_COMMIT, 1010 + GAP, 1020 + GAP);
  lk__evidence_set_gap(&l, 2 * GAP);
  assert_until(LK_NO_LEASE, LK_NO_LEASE, from(1010 + GAP));
  answer(LK_EVIDENCE_COMMIT, 1009 + 2 * GAP, 1011 + 2 * GAP);
  assert_until(from(100), from(100), from(1009 + 2 * GAP));
  answer(LK_EVIDENCE_COMMIT, 1010 + 2 * GAP, 1020 + 2 * GAP);
  assert_until(from(1000), from(1000), from(1010 + 2 * GAP));
  lk__evidence_set_gap(&l, 2 * GAP); /* the same gap again changes nothing */
  assert_until(from(1000), from(1000), from(1010 + 2 * GAP));
}
END_TEST

START_TEST(the_largest_zxid_is_known_until_the_session_ends)
{
  lk_reply a = {.evidence = LK_EVIDENCE_CONTACT, .zxid = 7, .connection = 1};

  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 0, 10);
  lk__evidence_add(&l, &a, T);
  a.zxid = 5;
  lk__evidence_add(&l, &a, T);
  a.evidence = LK_EVIDENCE_NONE;
  a.zxid = 9;
  lk__evidence_add(&l, &a, T);
  ck_assert_uint_eq(l.seen_zxid, 7);
  lk__evidence_end(&l);
  ck_assert_uint_eq(l.seen_zxid, 0);
}
END_TEST

START_TEST(newest_reply_of_a_burst_counts_after_a_stall)
{
  start(0);
  answer(LK_EVIDENCE_CONTACT, 0, 3000); /* the reply arrives after 3 s */
  answer(LK_EVIDENCE_CONTACT, 2990, 3002);
  answer(LK_EVIDENCE_COMMIT, 3002 + GAP, 3010 + GAP);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), from(2990));
}
END_TEST

START_TEST(reply_that_follows_at_once_does_not_replace_the_sample)
{
  start(0);
  answer(LK_EVIDENCE_CONTACT, 100, 107);
  answer(LK_EVIDENCE_CONTACT, 107, 112); /* newer, but received too late to be
                                            confirmed by the next commit */
  answer(LK_EVIDENCE_COMMIT, 107 + GAP, 115 + GAP);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), from(100));
  answer(LK_EVIDENCE_COMMIT, 112 + GAP, 120 + GAP);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), from(107));
}
END_TEST

START_TEST(worse_replies_do_not_replace_the_best_later_sample)
{
  start(0);
  answer(LK_EVIDENCE_NEW_SESSION, 0, 10);
  answer(LK_EVIDENCE_CONTACT, 100, 110);
  answer(LK_EVIDENCE_CONTACT, 109, 111);
  answer(LK_EVIDENCE_CONTACT, 110, 140); /* received much later */
  answer(LK_EVIDENCE_COMMIT, 111 + GAP, 120 + GAP);
  ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), from(109));
}
END_TEST

START_TEST(samples_reach_back_over_a_slow_answer)
{
  start(0);
  for (int64_t t = 0; t < 20000; t += 10)
    answer(LK_EVIDENCE_CONTACT, t, t + 5);
  /* the commit was sent 2.5 s ago, so it confirms replies that are 3.5 s old */
  answer(LK_EVIDENCE_COMMIT, 17500, 20000);
  ck_assert_int_ge(lk__evidence_deadline(&l, LK_ASSURE_QUORUM),
                   from(17500 - GAP - T / 48 - 20));
  ck_assert_int_le(lk__evidence_deadline(&l, LK_ASSURE_QUORUM),
                   from(17500 - GAP));
}
END_TEST

START_TEST(an_idle_session_keeps_few_samples)
{
  start(0);
  for (int64_t t = 0; t < 100 * T; t += T / 3)
    answer(LK_EVIDENCE_CONTACT, t, t + 5);
  ck_assert_uint_eq(mem.count, 1);
  ck_assert_uint_le(mem.held, 8 * sizeof(lk_evidence_sample));
}
END_TEST

START_TEST(without_memory_evidence_is_lost_and_none_is_invented)
{
  for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
    start(0);
    mem.fail_at =
        fail_at; /* with 2, there is memory for 8 samples, which are 0.7 s */
    mem.for_good = true;
    for (int64_t t = 0; t < 20000; t += 10) {
      answer(LK_EVIDENCE_CONTACT, t, t + 5);
      ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_PING), from(t));
    }
    answer(LK_EVIDENCE_COMMIT, 20000, 20005);
    ck_assert(failing_mem_failed(&mem));
    ck_assert_int_eq(lk__evidence_deadline(&l, LK_ASSURE_QUORUM), LK_NO_LEASE);
    answer(LK_EVIDENCE_COMMIT, 20005 + GAP, 20010 + GAP);
    if (fail_at == 1)
      assert_until(LK_NO_LEASE, LK_NO_LEASE, from(20005 + GAP));
    else
      ck_assert_int_ge(lk__evidence_deadline(&l, LK_ASSURE_QUORUM),
                       from(20000 - T / 48));
  }
}
END_TEST

SUITE("lease_deadline", no_evidence_proves_no_lease,
      an_idle_session_keeps_few_samples,
      without_memory_evidence_is_lost_and_none_is_invented,
      worse_replies_do_not_replace_the_best_later_sample,
      reply_of_a_read_only_server_is_ignored, a_new_session_is_proof_by_itself,
      contact_is_evidence_for_ping_assurance_only,
      commit_confirms_replies_received_a_gap_before_it_was_sent,
      sync_confirms_replies_for_sync_assurance_only,
      heartbeats_keep_the_deadline_half_a_timeout_away,
      busy_session_needs_no_heartbeat,
      a_resume_is_proof_for_sync_and_with_a_commit_for_quorum,
      replies_of_another_connection_are_not_combined,
      lease_outlives_the_connection_but_not_the_session,
      older_message_never_shortens_the_deadline,
      shorter_timeout_shortens_the_deadlines,
      longer_timeout_does_not_extend_earlier_evidence, the_gap_can_be_chosen,
      another_gap_begins_anew_with_the_next_commit,
      the_largest_zxid_is_known_until_the_session_ends,
      newest_reply_of_a_burst_counts_after_a_stall,
      reply_that_follows_at_once_does_not_replace_the_sample,
      samples_reach_back_over_a_slow_answer)
