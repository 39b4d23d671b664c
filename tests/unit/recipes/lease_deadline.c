/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/lease_deadline.h"
#include "support/failing_mem.h"
#include "support/suite.h"

/* The lease deadline that replies of the server prove, for each assurance. */

enum {
  T = 4000,        /* the session timeout in ms */
  DEFAULT_GAP = 0, /* for begin(): the default is selected */
  GAP = T / 4      /* that default in ms */
};

static lk_evidence_record record;
static failing_mem mem;

static void begin(int32_t gap_ms)
{
  if (record.samples.mem != NULL)
    lk__evidence_free(&record);
  failing_mem_init(&mem);
  lk__evidence_init(&record, &mem.mem);
  lk__evidence_set_gap(&record, gap_ms);
}

/* A reply arrives on the first connection, to a request of time `sent_ms`. */
static void receive_reply(lk_evidence evidence, int64_t sent_ms,
                          int64_t received_ms)
{
  lk_reply reply = {.evidence = evidence,
                    .sent_ms = sent_ms,
                    .received_ms = received_ms,
                    .connection = 1};

  lk__evidence_add(&record, &reply, T);
}

/* The deadline that evidence of time `ms` proves. One hundredth of the timeout
 * and 10 ms are the allowance for drifting clocks. */
static int64_t deadline_with_timeout(int64_t ms, int32_t timeout_ms)
{
  return ms + timeout_ms - timeout_ms / 100 - 10;
}

static int64_t deadline_from(int64_t ms)
{
  return deadline_with_timeout(ms, T);
}

static void assert_deadlines(int64_t quorum, int64_t sync, int64_t ping)
{
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   quorum);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_SYNC),
                   sync);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_PING),
                   ping);
}

START_TEST(no_evidence_proves_no_lease)
{
  begin(DEFAULT_GAP);
  assert_deadlines(LK_NO_LEASE, LK_NO_LEASE, LK_NO_LEASE);
}
END_TEST

START_TEST(reply_of_a_read_only_server_is_ignored)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NONE, 100, 130);
  assert_deadlines(LK_NO_LEASE, LK_NO_LEASE, LK_NO_LEASE);
  ck_assert_uint_eq(record.samples.count, 0);
  ck_assert_uint_eq(record.connection, 0);
}
END_TEST

START_TEST(a_new_session_is_proof_by_itself)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 100, 130);
  assert_deadlines(deadline_from(100), deadline_from(100), deadline_from(100));
}
END_TEST

START_TEST(contact_is_evidence_for_ping_assurance_only)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 0, 10);
  receive_reply(LK_EVIDENCE_CONTACT, 1300, 1310);
  assert_deadlines(deadline_from(0), deadline_from(0), deadline_from(1300));
}
END_TEST

START_TEST(commit_confirms_replies_received_a_gap_before_it_was_sent)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_CONTACT, 1000, 1010);
  /* sent 1 ms less than a gap after the reply was received, and then a gap */
  receive_reply(LK_EVIDENCE_COMMIT, 1009 + GAP, 1015 + GAP);
  assert_deadlines(LK_NO_LEASE, LK_NO_LEASE, deadline_from(1009 + GAP));
  receive_reply(LK_EVIDENCE_COMMIT, 1010 + GAP, 1020 + GAP);
  assert_deadlines(deadline_from(1000), deadline_from(1000),
                   deadline_from(1010 + GAP));
}
END_TEST

START_TEST(sync_confirms_replies_for_sync_assurance_only)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_CONTACT, 1000, 1010);
  receive_reply(LK_EVIDENCE_LEADER, 1010 + GAP, 1020 + GAP);
  assert_deadlines(LK_NO_LEASE, deadline_from(1000), deadline_from(1010 + GAP));
}
END_TEST

START_TEST(heartbeats_keep_the_deadline_half_a_timeout_away)
{
  int64_t previous = 0, sent = 0;

  begin(DEFAULT_GAP);
  for (int i = 0; i < 50; i++) {
    int64_t received = sent + 20;

    receive_reply(LK_EVIDENCE_COMMIT, sent, received);
    if (i > 0) { /* the heartbeat confirms the previous one */
      ck_assert_int_eq(
          lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
          deadline_from(previous));
      ck_assert_int_ge(
          lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
          received + T / 2);
    }
    previous = sent;
    sent = received + GAP;
  }
}
END_TEST

START_TEST(busy_session_needs_no_heartbeat)
{
  enum { EVERY_MS = 7, REPLY_MS = 3, LAST_MS = 1000 * EVERY_MS };

  begin(DEFAULT_GAP);
  for (int64_t t = 0; t <= LAST_MS; t += EVERY_MS)
    receive_reply(LK_EVIDENCE_COMMIT, t, t + REPLY_MS);
  /* one sample is kept in each 48th of the timeout */
  ck_assert_int_ge(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(LAST_MS - GAP - T / 48 - EVERY_MS - REPLY_MS));
  ck_assert_int_le(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(LAST_MS - GAP));
}
END_TEST

START_TEST(a_resume_is_proof_for_sync_and_with_a_commit_for_quorum)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_RESUMED, 500, 510);
  assert_deadlines(LK_NO_LEASE, deadline_from(500), deadline_from(500));
  /* after a resume, the commit need not be a gap later */
  receive_reply(LK_EVIDENCE_COMMIT, 511, 520);
  assert_deadlines(deadline_from(500), deadline_from(500), deadline_from(511));
}
END_TEST

START_TEST(replies_of_another_connection_are_not_combined)
{
  lk_reply reply = {.evidence = LK_EVIDENCE_COMMIT,
                    .sent_ms = 1010 + GAP,
                    .received_ms = 1020 + GAP,
                    .connection = 2};

  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_RESUMED, 1000, 1010);
  lk__evidence_add(&record, &reply, T);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   LK_NO_LEASE);
}
END_TEST

START_TEST(lease_outlives_the_connection_but_not_the_session)
{
  lk_reply reply = {.evidence = LK_EVIDENCE_CONTACT, .connection = 2};

  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 0, 10);
  lk__evidence_add(&record, &reply, T);
  assert_deadlines(deadline_from(0), deadline_from(0), deadline_from(0));
  lk__evidence_clear(&record);
  assert_deadlines(LK_NO_LEASE, LK_NO_LEASE, LK_NO_LEASE);
}
END_TEST

START_TEST(older_message_never_shortens_the_deadline)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 1000, 1010);
  receive_reply(LK_EVIDENCE_CONTACT, 900, 1020);
  assert_deadlines(deadline_from(1000), deadline_from(1000),
                   deadline_from(1000));
}
END_TEST

START_TEST(shorter_timeout_shortens_the_deadlines)
{
  lk_reply reply = {.evidence = LK_EVIDENCE_RESUMED,
                    .sent_ms = 1000,
                    .received_ms = 1010,
                    .connection = 2};

  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 900, 910);
  lk__evidence_add(&record, &reply, 2000);
  /* evidence from before the resume still counts from when it was sent */
  assert_deadlines(deadline_with_timeout(900, 2000),
                   deadline_with_timeout(1000, 2000),
                   deadline_with_timeout(1000, 2000));
}
END_TEST

/* A new leader may know only the timeout that the session was created with. */
START_TEST(longer_timeout_does_not_extend_earlier_evidence)
{
  lk_reply reply = {.evidence = LK_EVIDENCE_RESUMED,
                    .sent_ms = 1000,
                    .received_ms = 1010,
                    .connection = 2};

  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 900, 910);
  lk__evidence_add(&record, &reply, 2000);
  reply.connection = 3;
  reply.sent_ms = 1100;
  lk__evidence_add(&record, &reply, 8000);
  assert_deadlines(deadline_with_timeout(900, 2000),
                   deadline_with_timeout(1100, 2000),
                   deadline_with_timeout(1100, 2000));
  reply.connection = 4;
  reply.sent_ms = 1200;
  reply.evidence = LK_EVIDENCE_NEW_SESSION;
  lk__evidence_add(&record, &reply, 8000);
  assert_deadlines(deadline_with_timeout(1200, 8000),
                   deadline_with_timeout(1200, 8000),
                   deadline_with_timeout(1200, 8000));
}
END_TEST

START_TEST(the_gap_can_be_chosen)
{
  enum { CHOSEN_GAP = 300 };

  begin(CHOSEN_GAP);
  receive_reply(LK_EVIDENCE_CONTACT, 1000, 1010);
  receive_reply(LK_EVIDENCE_COMMIT, 1009 + CHOSEN_GAP, 1311);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   LK_NO_LEASE);
  receive_reply(LK_EVIDENCE_COMMIT, 1010 + CHOSEN_GAP, 1312);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(1000));
}
END_TEST

/* All replies are kept as samples, so they are used with the new gap as
 * well. */
/* When a heartbeat that is due at `due_ms` is sent if it can wait for 100 ms.
 */
static int64_t sent_when_due(lk_assurance assurance, int64_t due_ms)
{
  return lk__lease_deadline_renewal_ms(&record, assurance, due_ms,
                                       due_ms + 100);
}

START_TEST(heartbeat_waits_until_the_newest_reply_is_a_gap_old)
{
  enum { DUE = 1310 + GAP };

  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 0, 10);
  receive_reply(LK_EVIDENCE_CONTACT, 1300, 1310);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, DUE - 101), DUE - 101);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, DUE - 100), DUE);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_SYNC, DUE - 1), DUE);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_PING, DUE - 1), DUE - 1);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, DUE + 1), DUE + 1);
  receive_reply(LK_EVIDENCE_COMMIT, DUE, DUE + 20);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(1300));
}
END_TEST

START_TEST(heartbeat_waits_only_to_move_the_deadline_by_an_eighth)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 0, 10);
  receive_reply(LK_EVIDENCE_CONTACT, T / 8 - 1, 600);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, 599 + GAP), 599 + GAP);
  receive_reply(LK_EVIDENCE_CONTACT, T / 8, 650);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, 649 + GAP), 649 + GAP);
  receive_reply(LK_EVIDENCE_CONTACT, T / 8 + 100, 700);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, 699 + GAP), 700 + GAP);
}
END_TEST

START_TEST(heartbeat_does_not_wait_without_evidence_or_after_a_resume)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_RESUMED, 1000, 1010);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, 1009 + GAP), 1009 + GAP);
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 0, 10);
  receive_reply(LK_EVIDENCE_RESUMED, 1000, 1010);
  ck_assert_int_eq(sent_when_due(LK_ASSURE_QUORUM, 1009 + GAP), 1009 + GAP);
}
END_TEST

START_TEST(another_gap_begins_anew_with_the_next_commit)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 100, 110);
  receive_reply(LK_EVIDENCE_CONTACT, 1000, 1010);
  receive_reply(LK_EVIDENCE_COMMIT, 1010 + GAP, 1020 + GAP);
  lk__evidence_set_gap(&record, 2 * GAP);
  assert_deadlines(LK_NO_LEASE, LK_NO_LEASE, deadline_from(1010 + GAP));
  receive_reply(LK_EVIDENCE_COMMIT, 1009 + 2 * GAP, 1011 + 2 * GAP);
  assert_deadlines(deadline_from(100), deadline_from(100),
                   deadline_from(1009 + 2 * GAP));
  receive_reply(LK_EVIDENCE_COMMIT, 1010 + 2 * GAP, 1020 + 2 * GAP);
  assert_deadlines(deadline_from(1000), deadline_from(1000),
                   deadline_from(1010 + 2 * GAP));
  lk__evidence_set_gap(&record,
                       2 * GAP); /* the same gap again changes nothing */
  assert_deadlines(deadline_from(1000), deadline_from(1000),
                   deadline_from(1010 + 2 * GAP));
}
END_TEST

/* Writes that are sent in one go have the same time and prove the same. */
START_TEST(commit_counts_once_for_each_time_gap_and_connection)
{
  lk_reply other = {.evidence = LK_EVIDENCE_COMMIT,
                    .sent_ms = 1010 + GAP,
                    .received_ms = 1020 + GAP,
                    .connection = 2};

  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_CONTACT, 1000, 1010);
  receive_reply(LK_EVIDENCE_COMMIT, 1010 + GAP, 1020 + GAP);
  ck_assert_uint_eq(record.samples.count, 2);
  receive_reply(LK_EVIDENCE_COMMIT, 1010 + GAP, 1019 + GAP);
  ck_assert_uint_eq(record.samples.count, 2);
  lk__evidence_set_gap(&record, GAP - 1);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   LK_NO_LEASE);
  receive_reply(LK_EVIDENCE_COMMIT, 1010 + GAP, 1020 + GAP);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(1000));
  lk__evidence_add(&record, &other, T);
  ck_assert_uint_eq(record.samples.count, 1);
  lk__evidence_add(&record, &other, T);
  ck_assert_uint_eq(record.samples.count, 1);
  other.connection = 3;
  other.evidence = LK_EVIDENCE_CONTACT;
  other.sent_ms = GAP;
  lk__evidence_add(&record, &other, T);
  other.evidence = LK_EVIDENCE_COMMIT;
  lk__evidence_add(&record, &other, T);
  ck_assert_int_eq(record.committed_ms, GAP);
}
END_TEST

START_TEST(the_largest_zxid_is_known_until_the_session_ends)
{
  lk_reply reply = {
      .evidence = LK_EVIDENCE_CONTACT, .zxid = 7, .connection = 1};

  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 0, 10);
  lk__evidence_add(&record, &reply, T);
  reply.zxid = 5;
  lk__evidence_add(&record, &reply, T);
  reply.evidence = LK_EVIDENCE_NONE; /* of a read-only server: is ignored */
  reply.zxid = 9;
  lk__evidence_add(&record, &reply, T);
  ck_assert_uint_eq(record.seen_zxid, 7);
  lk__evidence_clear(&record);
  ck_assert_uint_eq(record.seen_zxid, 0);
}
END_TEST

START_TEST(newest_reply_of_a_burst_counts_after_a_stall)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_CONTACT, 0, 3000); /* the reply arrives after 3 s */
  receive_reply(LK_EVIDENCE_CONTACT, 2990, 3002);
  receive_reply(LK_EVIDENCE_COMMIT, 3002 + GAP, 3010 + GAP);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(2990));
}
END_TEST

START_TEST(reply_that_follows_at_once_does_not_replace_the_sample)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_CONTACT, 100, 107);
  /* newer, but received too late to be confirmed by the first commit */
  receive_reply(LK_EVIDENCE_CONTACT, 107, 112);
  receive_reply(LK_EVIDENCE_COMMIT, 107 + GAP, 115 + GAP);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(100));
  receive_reply(LK_EVIDENCE_COMMIT, 112 + GAP, 120 + GAP);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(107));
}
END_TEST

START_TEST(slow_reply_does_not_replace_a_quick_one_as_the_sample)
{
  begin(DEFAULT_GAP);
  receive_reply(LK_EVIDENCE_NEW_SESSION, 0, 10);
  receive_reply(LK_EVIDENCE_CONTACT, 100, 110);
  receive_reply(LK_EVIDENCE_CONTACT, 109, 111);
  receive_reply(LK_EVIDENCE_CONTACT, 110, 140); /* received much later */
  receive_reply(LK_EVIDENCE_COMMIT, 111 + GAP, 120 + GAP);
  ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(109));
}
END_TEST

START_TEST(samples_reach_back_over_a_slow_answer)
{
  begin(DEFAULT_GAP);
  for (int64_t t = 0; t < 20000; t += 10)
    receive_reply(LK_EVIDENCE_CONTACT, t, t + 5);
  /* the commit was sent 2.5 s ago, so it confirms replies that are 3.5 s old */
  receive_reply(LK_EVIDENCE_COMMIT, 17500, 20000);
  ck_assert_int_ge(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(17500 - GAP - T / 48 - 20));
  ck_assert_int_le(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                   deadline_from(17500 - GAP));
}
END_TEST

START_TEST(an_idle_session_keeps_few_samples)
{
  begin(DEFAULT_GAP);
  for (int64_t t = 0; t < 100 * T; t += T / 3)
    receive_reply(LK_EVIDENCE_CONTACT, t, t + 5);
  ck_assert_uint_eq(mem.count, 1); /* allocations */
  ck_assert_uint_le(mem.held, 8 * sizeof(lk_evidence_sample));
}
END_TEST

START_TEST(without_memory_evidence_is_lost_and_none_is_invented)
{
  for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
    begin(DEFAULT_GAP);
    /* With 2, there is memory for 8 samples. At one sample in a 48th of the
     * timeout, they reach back 0.7 s. */
    mem.fail_at = fail_at;
    mem.for_good = true;
    for (int64_t t = 0; t < 20000; t += 10) {
      receive_reply(LK_EVIDENCE_CONTACT, t, t + 5);
      ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_PING),
                       deadline_from(t));
    }
    receive_reply(LK_EVIDENCE_COMMIT, 20000, 20005);
    ck_assert(failing_mem_failed(&mem));
    ck_assert_int_eq(lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
                     LK_NO_LEASE);
    receive_reply(LK_EVIDENCE_COMMIT, 20005 + GAP, 20010 + GAP);
    if (fail_at == 1)
      assert_deadlines(LK_NO_LEASE, LK_NO_LEASE, deadline_from(20005 + GAP));
    else
      ck_assert_int_ge(
          lk__lease_deadline_by_evidence(&record, LK_ASSURE_QUORUM),
          deadline_from(20000 - T / 48));
  }
}
END_TEST

SUITE("lease_deadline", no_evidence_proves_no_lease,
      an_idle_session_keeps_few_samples,
      without_memory_evidence_is_lost_and_none_is_invented,
      slow_reply_does_not_replace_a_quick_one_as_the_sample,
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
      heartbeat_waits_until_the_newest_reply_is_a_gap_old,
      heartbeat_waits_only_to_move_the_deadline_by_an_eighth,
      heartbeat_does_not_wait_without_evidence_or_after_a_resume,
      another_gap_begins_anew_with_the_next_commit,
      commit_counts_once_for_each_time_gap_and_connection,
      the_largest_zxid_is_known_until_the_session_ends,
      newest_reply_of_a_burst_counts_after_a_stall,
      reply_that_follows_at_once_does_not_replace_the_sample,
      samples_reach_back_over_a_slow_answer)
