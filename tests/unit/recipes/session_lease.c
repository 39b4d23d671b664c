/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <stdio.h>

/* The session lease: heartbeats, the lease deadline, and the events of holders.
 */

enum {
  DRIFT = T / 100 + 10, /* how much earlier a lease ends for clock drift */
  MARGIN = T / 8        /* default of lk_lease_config.margin_ms */
};

static lock_pair lp;

static void begin(lk_assurance assurance)
{
  lk_lease_config c = {.size = sizeof c, .assurance = assurance};

  lock_pair_begin(&lp, &c, NULL);
}

static void begin_held(lk_assurance assurance)
{
  begin(assurance);
  lock_pair_hold(&lp);
}

/* ---- the heartbeat ------------------------------------------------------- */

START_TEST(holder_sends_a_heartbeat_each_quarter_of_the_timeout)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&lp.server, T / 4 - 1);
  ck_assert(model_check_log(lp.one.link, ""));
  model_run(&lp.server, 1);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  for (int i = 0; i < 10; i++) {
    model_run(&lp.server, T / 4 - 1);
    ck_assert(model_check_log(lp.one.link, ""));
    model_run(&lp.server, 1);
    ck_assert(model_check_log(lp.one.link, "multi"));
  }
  lock_pair_end(&lp);
}
END_TEST

START_TEST(heartbeat_is_due_after_the_reply_to_the_last)
{
  begin_held(LK_ASSURE_QUORUM);
  lp.one.link->allow = 0;
  model_run(&lp.server, T / 4);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  model_run(&lp.server, 300); /* the reply takes 300 ms */
  lp.one.link->allow = SIZE_MAX;
  model_run(&lp.server, T / 4 - 1);
  ck_assert(model_check_log(lp.one.link, ""));
  model_run(&lp.server, 1);
  ck_assert(model_check_log(lp.one.link, "multi"));
  lock_pair_end(&lp);
}
END_TEST

/* When the reply arrives late, the evidence is old, so the next heartbeat
 * follows sooner. */
START_TEST(heartbeat_answered_late_is_followed_sooner)
{
  begin_held(LK_ASSURE_QUORUM);
  lp.one.link->allow = 0;
  model_run(&lp.server, T / 4);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  model_run(&lp.server, T / 3);
  lp.one.link->allow = SIZE_MAX;
  model_run(&lp.server, T / 16 - 1);
  ck_assert(model_check_log(lp.one.link, ""));
  model_run(&lp.server, 1);
  ck_assert(model_check_log(lp.one.link, "multi"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(heartbeat_is_a_sync_or_a_ping_with_other_assurances)
{
  begin_held(LK_ASSURE_SYNC);
  model_run(&lp.server, T);
  ck_assert(model_check_log(lp.one.link,
                            "getData sync | sync | sync | getData sync"));
  lock_pair_end(&lp);
  begin_held(LK_ASSURE_PING);
  model_run(&lp.server, T);
  ck_assert(model_check_log(lp.one.link, "getData | getData"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(next_holder_checks_its_node_and_other_waiters_sync)
{
  const char *const logs_of_next_holder[] = {"multi | multi | multi | multi",
                                             "sync | sync | sync | sync", ""};
  const char *const logs_of_other_waiters[] = {
      "sync getData | sync | sync | sync", "sync getData | sync | sync | sync",
      "getData"};

  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    for (int has_others_before = 0; has_others_before <= 1;
         has_others_before++) {
      begin((lk_assurance)assurance);
      lock_pair_queue(&lp);
      if (has_others_before) {
        locker_release(&lp.a);
        model_turn(&lp.server);
        locker_release(&lp.b);
        model_create(&lp.server, LOCKS "/x-lock-0000000002");
        model_create(&lp.server, LOCKS "/x-lock-0000000003");
        locker_request(&lp.b);
        lp.two.link->log[0] = '\0';
      }
      model_run(&lp.server, T);
      ck_assert(model_check_log(
          lp.two.link, has_others_before ? logs_of_other_waiters[assurance]
                                         : logs_of_next_holder[assurance]));
      if (has_others_before) {
        model_delete(&lp.server, LOCKS "/x-lock-0000000002");
        model_delete(&lp.server, LOCKS "/x-lock-0000000003");
      }
      lock_pair_end(&lp);
    }
  }
}
END_TEST

/* The read of a heartbeat that fails costs no list: the next heartbeat reads
 * again. */
START_TEST(throttled_read_of_a_waiters_node_is_repeated_by_a_heartbeat)
{
  begin(LK_ASSURE_QUORUM);
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/x-lock-0000000001");
  locker_request(&lp.b);
  lp.two.link->log[0] = '\0';
  lp.two.link->answer_at = lp.two.link->requests + 2; /* behind the sync */
  lp.two.link->answer_err = LK_ERR_THROTTLED;
  model_run(&lp.server, T);
  ck_assert(model_check_log(lp.two.link,
                            "sync getData | sync getData | sync | sync"));
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_delete(&lp.server, LOCKS "/x-lock-0000000001");
  lock_pair_end(&lp);
}
END_TEST

START_TEST(holder_leaves_a_server_that_says_in_results_that_the_session_moved)
{
  begin_held(LK_ASSURE_QUORUM);
  lp.one.link->multi_err = LK_ERR_SESSION_MOVED;
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lk_client_state(lp.one.link->client), LK_STATE_SUSPENDED);
  lp.one.link->multi_err = 0;
  model_run(&lp.server, 2 * T);
  ck_assert(locker_check_events(&lp.a, "suspended\n"));
  ck_assert(lk_lock_ok(lp.a.lock));
  lock_pair_end(&lp);
}
END_TEST

/* A check that the leader has not committed proves nothing, so the lease ends.
 */
START_TEST(results_that_were_not_committed_do_not_renew_the_lease)
{
  begin_held(LK_ASSURE_QUORUM);
  lp.one.link->multi_err = LK_ERR_SYSTEM;
  model_run(&lp.server, T);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  lp.one.link->multi_err = 0;
  model_run(&lp.server, T);
  ck_assert(locker_check_events(&lp.a, "held\n"));
  lock_pair_end(&lp);
}
END_TEST

/* A waiter with two predecessors watches its node from the next heartbeat on.
 */
START_TEST(lost_place_is_reported_within_half_a_timeout)
{
  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    for (int64_t wait_ms = 0; wait_ms < 2 * T; wait_ms += T / 32) {
      begin((lk_assurance)assurance);
      model_create(&lp.server, LOCKS "/x-lock-0000000000");
      model_create(&lp.server, LOCKS "/x-lock-0000000001");
      ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
      model_run(&lp.server, wait_ms);
      ck_assert(locker_check_events(&lp.b, "waiting 2 0000000000\n"));
      model_delete(&lp.server, lk_lock_node(lp.b.lock));
      model_run(&lp.server, T / 2);
      ck_assert(locker_check_events(
          &lp.b, "place lost NO_NODE\nwaiting 2 0000000000\n"));
      model_delete(&lp.server, LOCKS "/x-lock-0000000000");
      model_delete(&lp.server, LOCKS "/x-lock-0000000001");
      lock_pair_end(&lp);
    }
  }
}
END_TEST

START_TEST(holder_that_waited_reads_its_node_no_more)
{
  const char *const expected_logs[] = {"multi | multi", "sync | sync", ""};

  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    begin((lk_assurance)assurance);
    lock_pair_queue(&lp);
    ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
    model_run(&lp.server, T / 2);
    ck_assert_int_eq(lp.b.acquired, 0);
    ck_assert(model_check_log(lp.two.link, expected_logs[assurance]));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(idle_lock_sends_no_heartbeat)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&lp.server, T);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  model_turn(&lp.server);
  lp.one.link->log[0] = '\0';
  model_run(&lp.server, 5 * T);
  ck_assert(model_check_log(lp.one.link, ""));
  ck_assert(model_check_log(lp.two.link, ""));
  lock_pair_end(&lp);
}
END_TEST

/* After a grant that follows a wait, the deadline is only a quarter of the
 * timeout away, until the second heartbeat. */
START_TEST(without_faults_the_deadline_is_half_a_timeout_away)
{
  enum {
    STEP_MS = 37,
    STEPS = 200,
    HANDOFF_STEP = 100,          /* a releases, and b is granted */
    SECOND_HEARTBEAT_STEP = 150, /* b has sent it by then */
  };

  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    begin((lk_assurance)assurance);
    lock_pair_queue(&lp);
    for (int i = 0; i < STEPS; i++) {
      const locker *holder = i < HANDOFF_STEP ? &lp.a : &lp.b;
      bool was_granted_lately = i >= HANDOFF_STEP && i <= SECOND_HEARTBEAT_STEP;
      int64_t least = was_granted_lately ? T / 4 : T / 2;

      if (i == HANDOFF_STEP) {
        ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
        model_turn(&lp.server);
        ck_assert_int_eq(lp.b.acquired, 0);
      }
      model_run(&lp.server, STEP_MS);
      ck_assert_int_ge(lk_lock_deadline(holder->lock),
                       lp.server.now + least - DRIFT);
      ck_assert_int_le(lk_lock_deadline(holder->lock), lp.server.now + T);
    }
    ck_assert(locker_check_events(&lp.a, "") && locker_check_events(&lp.b, ""));
    lock_pair_end(&lp);
  }
}
END_TEST

/* A grant of an idle session rests on old pings. Its deadline is half a timeout
 * away after two heartbeats as well. */
START_TEST(a_grant_after_long_idleness_is_never_unsure)
{
  for (int i = 0; i < 60; i++) {
    begin(LK_ASSURE_QUORUM);
    model_run(&lp.server, 5 * T + i * 31);
    locker_request(&lp.a);
    ck_assert_int_eq(lp.a.acquired, 0);
    ck_assert(model_check_log(lp.one.link, "create2 getChildren2"));
    model_run(&lp.server, 2 * T);
    ck_assert(locker_check_events(&lp.a, ""));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(grant_on_old_evidence_sends_a_heartbeat_sooner)
{
  /* The newest reply is 10 ms too new to prove a lease. The lease rests on the
   * reply before it, which is T / 3 older. */
  begin(LK_ASSURE_QUORUM);
  model_run(&lp.server, T / 3 + T / 4 - 10);
  lock_pair_hold(&lp);
  model_run(&lp.server, T / 16 - 1);
  ck_assert(model_check_log(lp.one.link, ""));
  model_run(&lp.server, 1);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  model_run(&lp.server, 2 * T);
  ck_assert(locker_check_events(&lp.a, ""));
  lock_pair_end(&lp);
}
END_TEST

/* The reply to the first ping comes `ms` after the ping, and a lock is granted
 * a sixteenth of the timeout later. Its lease rests on the handshake, a third
 * of the timeout before the ping. Returns the time of the reply. */
static int64_t hold_after_a_slow_ping(int64_t ms)
{
  begin(LK_ASSURE_QUORUM);
  lp.one.link->allow = 0;
  model_run(&lp.server, T / 3 + ms);
  lp.one.link->allow = SIZE_MAX;
  model_turn(&lp.server);
  int64_t replied_ms = lp.server.now;

  model_run(&lp.server, T / 16);
  lock_pair_hold(&lp);
  return replied_ms;
}

static void run_until(int64_t ms)
{
  model_run(&lp.server, ms - lp.server.now);
}

/* When the first heartbeat is due: a quarter of the timeout before the holder
 * would become unsure. */
static int64_t first_heartbeat_due(void)
{
  return lk_lock_deadline(lp.a.lock) - MARGIN - T / 4;
}

/* The reply takes nearly a quarter of the timeout. So a heartbeat that proves
 * nothing new would be followed by the next one too late. */
START_TEST(heartbeat_waits_until_it_can_confirm_the_newest_reply)
{
  int64_t replied_ms = hold_after_a_slow_ping(150);
  int64_t due_ms = first_heartbeat_due();

  ck_assert_int_lt(due_ms, replied_ms + T / 4);
  run_until(replied_ms + T / 4 - 1);
  ck_assert(model_check_log(lp.one.link, ""));
  lp.one.link->allow = 0;
  run_until(replied_ms + T / 4);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  model_run(&lp.server, T / 4 - 100);
  lp.one.link->allow = SIZE_MAX;
  model_run(&lp.server, T);
  ck_assert(locker_check_events(&lp.a, ""));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(heartbeat_does_not_wait_long_to_confirm_the_newest_reply)
{
  int64_t replied_ms = hold_after_a_slow_ping(150 + T / 16);
  int64_t due_ms = first_heartbeat_due();

  ck_assert_int_lt(due_ms + T / 16, replied_ms + T / 4);
  run_until(due_ms - 1);
  ck_assert(model_check_log(lp.one.link, ""));
  run_until(due_ms);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(many_nodes_are_checked_in_several_multis)
{
  enum { LOCK_COUNT = 150, DELETED = 100 };

  lk_lock *locks[LOCK_COUNT];
  char path[32];

  begin(LK_ASSURE_QUORUM);
  for (int i = 0; i < LOCK_COUNT; i++) {
    snprintf(path, sizeof path, "/locks/n%d", i);
    model_create(&lp.server, path);
    ck_assert_int_eq(lk_lock_new(&locks[i], lp.one.link->client, path, NULL),
                     0);
    ck_assert_int_eq(lk_lock_acquire(locks[i], LK_NO_LIMIT, NULL, NULL), 0);
  }
  model_run(&lp.server, T / 4);
  lp.one.link->log[0] = '\0';
  model_run(&lp.server, T / 4);
  ck_assert(model_check_log(lp.one.link, "multi multi multi"));
  /* a deleted node is found in any of the multis */
  model_drop_watches(lp.one.link); /* so that no event reports the deletion */
  model_delete(&lp.server, lk_lock_node(locks[DELETED]));
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lk_lock_get_state(locks[DELETED]), LK_LOCK_LOST);
  /* the nodes behind the deleted one are checked again at once */
  ck_assert(
      model_check_log(lp.one.link, "multi multi multi | multi multi multi"));
  for (int i = 0; i < LOCK_COUNT; i++) {
    ck_assert_int_eq(lk_lock_get_state(locks[i]),
                     i == DELETED ? LK_LOCK_LOST : LK_LOCK_HELD);
    lk_lock_free(locks[i]);
  }
  lock_pair_end(&lp);
}
END_TEST

START_TEST(throttled_heartbeat_is_repeated_soon)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&lp.server, T);
  lp.one.link->throttle_at = lp.one.link->requests + 1;
  lp.one.link->log[0] = '\0';
  model_run(&lp.server, T / 4);
  ck_assert(model_check_log(lp.one.link, "multi"));
  model_run(&lp.server, T / 20);
  ck_assert(model_check_log(lp.one.link, "multi"));
  model_run(&lp.server, T);
  ck_assert(locker_check_events(&lp.a, ""));
  lock_pair_end(&lp);
}
END_TEST

/* ---- unsure, held, lost ------------------------------------------------ */

/* The server reads nothing until a is unsure, and then continues. */
static void let_server_pause_until_unsure(void)
{
  lp.one.link->frozen = true;
  int64_t deadline = lk_lock_deadline(lp.a.lock);

  model_run(&lp.server, deadline - MARGIN - lp.server.now - 1);
  ck_assert(locker_check_events(&lp.a, ""));
  model_run(&lp.server, 1);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_UNSURE);
  /* unsure is reported before the lease deadline */
  ck_assert(!lk_lock_ok(lp.a.lock));
  ck_assert_int_gt(lk_lock_deadline(lp.a.lock), lp.server.now);
  lp.one.link->frozen = false;
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "held\n"));
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_HELD);
  ck_assert(lk_lock_ok(lp.a.lock));
}

START_TEST(silent_server_makes_a_lock_unsure_and_a_reply_makes_it_held)
{
  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_SYNC;
       assurance++) {
    begin_held((lk_assurance)assurance);
    model_run(&lp.server, T);
    ck_assert_int_eq(lk_lock_deadline(lp.a.lock),
                     lp.server.now + T * 3 / 4 - DRIFT);
    lp.one.link->log[0] = '\0';
    let_server_pause_until_unsure();
    /* no other read is needed if a check of the own node is outstanding */
    ck_assert(model_check_log(lp.one.link, assurance == LK_ASSURE_QUORUM
                                               ? "multi"
                                               : "sync | getData"));
    /* the replies that were held back arrive */
    model_run(&lp.server, T);
    lp.a.events[0] = '\0';
    model_run(&lp.server, 2 * T);
    ck_assert(locker_check_events(&lp.a, ""));
    let_server_pause_until_unsure(); /* the second time is reported as well */
    lock_pair_end(&lp);
  }
}
END_TEST

/* With sync assurance, the evidence for the lease does not show whether the own
 * node exists. */
START_TEST(replies_to_syncs_alone_do_not_make_a_lock_held_again)
{
  begin_held(LK_ASSURE_SYNC);
  model_run(&lp.server, T);
  lp.one.link->frozen = true;
  model_drop_watches(lp.one.link);
  model_delete(&lp.server, lk_lock_node(lp.a.lock));
  model_run(&lp.server, T * 3 / 4 - DRIFT - MARGIN);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  lp.one.link->frozen = false;
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
  lock_pair_end(&lp);
}
END_TEST

/* The own node is read as soon as the lock is unsure. The evidence for the
 * lease arrives with the next heartbeat. */
START_TEST(sync_makes_an_unsure_lock_held_again)
{
  begin_held(LK_ASSURE_SYNC);
  model_run(&lp.server, 2 * T + T / 4 - 100);
  /* so large a margin that the lock is unsure before the next heartbeat */
  lk_lease_set_margin(lp.one.link->client, T * 5 / 8);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  model_run(&lp.server, T / 4 - 1);
  ck_assert(locker_check_events(&lp.a, ""));
  model_run(&lp.server, 1);
  ck_assert(locker_check_events(&lp.a, "held\n"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(with_ping_assurance_a_read_of_the_own_node_is_proof)
{
  lk_lease_config c = {
      .size = sizeof c, .assurance = LK_ASSURE_PING, .margin_ms = T * 2 / 3};

  lock_pair_begin(&lp, &c, NULL);
  lock_pair_hold(&lp);
  model_run(&lp.server, T * 3 / 8);
  ck_assert(locker_check_events(&lp.a, ""));
  model_run(&lp.server, T / 8);
  ck_assert(locker_check_events(&lp.a, "unsure\nheld\n"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(lock_with_an_unreadable_node_becomes_held_again_or_lost)
{
  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    begin_held((lk_assurance)assurance);
    model_deny(&lp.server, model_child(&lp.server, LOCKS, 0), LK_PERM_READ);
    model_run(&lp.server, T / 2);
    ck_assert(locker_check_events(&lp.a, "unwatched\n"));
    lp.server.down = true;
    model_drop(lp.one.link);
    model_run(&lp.server, T);
    ck_assert(locker_check_events(&lp.a, "suspended\nunsure\n"));
    lp.server.down = false;
    model_run(&lp.server, T / 10);
    ck_assert(locker_check_events(&lp.a, "held\n"));
    lp.server.down = true;
    model_drop(lp.one.link);
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
    lp.server.down = false;
    model_run(&lp.server, T / 10);
    ck_assert(locker_check_events(&lp.a, "suspended\nlost NO_NODE\n"));
    lock_pair_end(&lp);
  }
}
END_TEST

/* Servers send no event for a node that may not be read. */
START_TEST(heartbeat_detects_a_deletion_without_an_event)
{
  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    for (int unreadable_at_first_read = 0; unreadable_at_first_read <= 1;
         unreadable_at_first_read++) {
      begin_held((lk_assurance)assurance);
      if (!unreadable_at_first_read)
        model_run(&lp.server, T / 2); /* the own node is watched by then */
      model_deny(&lp.server, model_child(&lp.server, LOCKS, 0), LK_PERM_READ);
      if (unreadable_at_first_read)
        model_run(&lp.server, T / 2);
      ck_assert(locker_check_events(
          &lp.a, unreadable_at_first_read ? "unwatched\n" : ""));
      model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
      model_run(&lp.server, T + T / 4);
      ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
      lock_pair_end(&lp);
    }
  }
}
END_TEST

START_TEST(heartbeat_reports_once_that_the_node_is_not_readable_any_more)
{
  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    begin_held((lk_assurance)assurance);
    model_run(&lp.server, T / 2);
    model_deny(&lp.server, model_child(&lp.server, LOCKS, 0), LK_PERM_READ);
    model_run(&lp.server, 3 * T);
    ck_assert(locker_check_events(&lp.a, "unwatched\n"));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(suspended_is_reported_and_the_deadline_stays)
{
  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    begin_held((lk_assurance)assurance);
    model_run(&lp.server, T);
    lp.server.down = true;
    int64_t deadline = lk_lock_deadline(lp.a.lock);

    model_drop(lp.one.link);
    ck_assert(locker_check_events(&lp.a, "suspended\n"));
    ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_HELD);
    ck_assert_int_eq(lk_lock_deadline(lp.a.lock), deadline);
    model_run(&lp.server, deadline - MARGIN - lp.server.now - 1);
    ck_assert(locker_check_events(&lp.a, ""));
    model_run(&lp.server, 1);
    ck_assert(locker_check_events(&lp.a, "unsure\n"));
    ck_assert(!lk_lock_ok(lp.a.lock));
    model_run(&lp.server, MARGIN);
    ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_UNSURE);
    lp.server.down = false;
    model_run(&lp.server, T / 10);
    ck_assert(locker_check_events(&lp.a, "held\n"));
    ck_assert(lk_lock_ok(lp.a.lock));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(a_short_break_is_no_reason_to_be_unsure)
{
  const char *const expected_logs[] = {"getData multi", "getData sync",
                                       "getData"};

  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    begin_held((lk_assurance)assurance);
    model_run(&lp.server, T);
    lp.one.link->log[0] = '\0';
    model_drop(lp.one.link);
    model_run(&lp.server, T / 10);
    ck_assert(model_check_log(lp.one.link, expected_logs[assurance]));
    model_run(&lp.server, 2 * T);
    ck_assert(locker_check_events(&lp.a, "suspended\n"));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(lock_can_become_unsure_as_soon_as_the_connection_breaks)
{
  lk_lock_config c = {.size = sizeof c, .unsure_when_suspended = true};

  lock_pair_begin(&lp, NULL, &c);
  lock_pair_hold(&lp);
  model_run(&lp.server, T);
  model_drop(lp.one.link);
  ck_assert(locker_check_events(&lp.a, "suspended\nunsure\n"));
  model_run(&lp.server, T / 10);
  ck_assert(locker_check_events(&lp.a, "held\n"));
  model_run(&lp.server, T);
  let_server_pause_until_unsure(); /* the second time is reported as well */
  lock_pair_end(&lp);
}
END_TEST

/* The timer for the old deadline expires while the lock is unsure. */
START_TEST(deadline_timer_runs_again_when_the_lock_is_held_again)
{
  lk_lock_config c = {.size = sizeof c, .unsure_when_suspended = true};

  lock_pair_begin(&lp, NULL, &c);
  lock_pair_hold(&lp);
  model_run(&lp.server, T - DRIFT - MARGIN - 150);
  lp.server.down = true;
  model_drop(lp.one.link);
  model_run(&lp.server, 200);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert(locker_check_events(&lp.a, "suspended\nunsure\nheld\n"));
  model_run(&lp.server, T);
  let_server_pause_until_unsure();
  lock_pair_end(&lp);
}
END_TEST

/* The lock is unsure at the end of a long break, and does not become held. */
START_TEST(node_deleted_during_a_break_is_a_loss)
{
  for (int assurance = LK_ASSURE_QUORUM; assurance <= LK_ASSURE_PING;
       assurance++) {
    for (int is_long = 0; is_long <= 1; is_long++) {
      begin_held((lk_assurance)assurance);
      model_run(&lp.server, T);
      lp.server.down = true;
      model_drop(lp.one.link);
      model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
      model_run(&lp.server, is_long ? T : T / 10);
      ck_assert(locker_check_events(&lp.a, is_long ? "suspended\nunsure\n"
                                                   : "suspended\n"));
      lp.server.down = false;
      model_run(&lp.server, T / 10);
      ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
      lock_pair_end(&lp);
    }
  }
}
END_TEST

START_TEST(long_break_makes_a_lock_unsure_and_then_lost)
{
  begin_held(LK_ASSURE_QUORUM);
  lp.server.down = true;
  model_drop(lp.one.link);
  model_run(&lp.server, T);
  ck_assert(locker_check_events(&lp.a, "suspended\nunsure\n"));
  model_run(&lp.server, T); /* the session timeout has passed */
  ck_assert(locker_check_events(&lp.a, "lost SESSION_EXPIRED\n"));
  ck_assert_int_eq(lk_lease_deadline(lp.one.link->client), INT64_MIN);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), LK_ERR_LOST);
  model_expire(&lp.server, lp.one.link->last_session);
  lp.server.down = false;
  lock_pair_end(&lp);
}
END_TEST

/* The process was stopped for longer than its lease. Replies that it reads
 * afterwards renew the lease. */
START_TEST(lock_is_unsure_after_a_pause_of_the_process)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&lp.server, T);
  ck_assert(lk_lock_ok(lp.a.lock));
  lp.server.now += T; /* nothing runs meanwhile */
  ck_assert(!lk_lock_ok(lp.a.lock));
  model_turn(&lp.server);
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_UNSURE);
  model_run(&lp.server, T);
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_HELD);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(stale_event_after_a_pause_grants_nothing)
{
  begin(LK_ASSURE_QUORUM);
  lock_pair_queue(&lp);
  lp.two.link->allow = 0;
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  model_turn(&lp.server);
  lp.server.now += T;
  lp.two.link->allow = SIZE_MAX;
  model_deliver(lp.two.link);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_run(&lp.server, T / 2);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(lk_lock_ok(lp.b.lock));
  lock_pair_end(&lp);
}
END_TEST

/* A callback that returns only after T. */
static void delay_callback(lk_client *c, int err, void *arg)
{
  model_server *server = arg;

  (void)c;
  ck_assert_int_eq(err, 0);
  server->now += T;
}

START_TEST(slow_callback_delays_the_grant_until_new_evidence)
{
  begin(LK_ASSURE_QUORUM);
  lp.two.link->allow = 0;
  ck_assert_int_eq(lk_server_sync(lp.two.link->client, "/", NULL,
                                  delay_callback, &lp.server),
                   0);
  locker_request(&lp.b);
  lp.two.link->allow = SIZE_MAX;
  /* the reply to the list arrives with the reply to the sync */
  model_deliver(lp.two.link);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_run(&lp.server, T / 2);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(lk_lock_ok(lp.b.lock));
  lock_pair_end(&lp);
}
END_TEST

/* ---- grants ------------------------------------------------------------ */

START_TEST(next_holder_is_granted_by_the_deletion_alone_after_any_time)
{
  begin(LK_ASSURE_QUORUM);
  lock_pair_queue(&lp);
  model_run(&lp.server, 3 * T + 100);
  lp.two.link->log[0] = '\0';
  lp.two.link->frozen = true; /* nothing more will be answered */
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(model_check_log(lp.two.link, ""));
  ck_assert_int_eq(lk_lock_deadline(lp.b.lock),
                   lk_lease_deadline(lp.two.link->client));
  ck_assert_int_ge(lk_lock_deadline(lp.b.lock), lp.server.now + T / 2 - DRIFT);
  lp.two.link->frozen = false;
  lock_pair_end(&lp);
}
END_TEST

/* b waits for `ms` behind two contenders, which are then deleted together. */
static void wait_behind_two(int64_t ms)
{
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/x-lock-0000000001");
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_run(&lp.server, ms);
  lp.two.link->log[0] = '\0';
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_delete(&lp.server, LOCKS "/x-lock-0000000001");
}

/* With less than a quarter left, a check of the own node is sent with the list.
 * With exactly a quarter, the first heartbeat follows the grant at once. The
 * first of two equal runs measures how much is left. */
START_TEST(a_grant_needs_a_quarter_of_the_timeout)
{
  for (int late = 0; late <= 1; late++) {
    begin(LK_ASSURE_QUORUM);
    model_run(&lp.server, 3 * T);
    wait_behind_two(1);
    int64_t left = lk_lease_deadline(lp.two.link->client) - lp.server.now;

    model_turn(&lp.server);
    lock_pair_end(&lp);
    begin(LK_ASSURE_QUORUM);
    model_run(&lp.server, 3 * T);
    wait_behind_two(1 + left - T / 4 + late);
    model_turn(&lp.server);
    ck_assert_int_eq(lp.b.acquired, 0);
    ck_assert(model_check_log(lp.two.link, late ? "multi getChildren2"
                                                : "getChildren2 | multi"));
    lock_pair_end(&lp);
  }
}
END_TEST

/* The time at which b's lease gets too short for a grant lies between two
 * readings of the clock. */
START_TEST(lease_that_ends_between_two_clock_readings_blocks_no_waiter)
{
  lk_lease_config c = {.size = sizeof c, .gap_ms = T / 2};

  for (int early_ms = -6; early_ms < 20; early_ms++) {
    lock_pair_begin(&lp, &c, NULL);
    model_run(&lp.server, 20 * T + 700);
    lock_pair_queue(&lp);
    int64_t latest_grant = lk_lease_deadline(lp.two.link->client) - T / 4;

    locker_release(&lp.a);
    lp.two.link->allow = 0;
    model_turn(&lp.server);
    if (latest_grant > lp.server.now)
      lp.server.now = latest_grant - early_ms;
    lp.server.clock_step_ms = 1; /* time passes whenever the clock is read */
    lp.two.link->allow = SIZE_MAX;
    model_deliver(lp.two.link);
    lp.server.clock_step_ms = 0;
    model_run(&lp.server, T);
    ck_assert_int_eq(lp.b.acquired, 0);
    lock_pair_end(&lp);
  }
}
END_TEST

/* ---- shorter sessions --------------------------------------------------- */

/* A restarted server has another maxSessionTimeout. */
START_TEST(shorter_session_timeout_shortens_the_lease)
{
  begin(LK_ASSURE_QUORUM);
  lp.server.expires = true;
  lock_pair_queue(&lp);
  model_run(&lp.server, 50);
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lp.server.max_timeout_ms = T / 4;
  model_drop(lp.two.link);
  model_run(&lp.server, T / 16);
  ck_assert_int_eq(lk_client_timeout_ms(lp.two.link->client), T / 4);
  ck_assert_int_le(lk_lock_deadline(lp.b.lock), lp.server.now + T / 4);
  lp.a.acquired = NOT_YET;
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  for (int i = 0; i < T && lp.a.acquired == NOT_YET; i++) {
    lp.two.link->frozen = true; /* also a connection made meanwhile */
    model_run(&lp.server, 1);
  }
  ck_assert_int_eq(lp.a.acquired, 0);
  ck_assert(!lk_lock_ok(lp.b.lock));
  ck_assert(strstr(lp.b.events, "unsure\n") != NULL);
  lp.two.link->frozen = false;
  lock_pair_end(&lp);
}
END_TEST

START_TEST(holder_with_a_shorter_session_timeout_is_notified_in_time)
{
  begin_held(LK_ASSURE_QUORUM);
  lp.server.max_timeout_ms = T / 4;
  model_drop(lp.one.link);
  model_run(&lp.server, T / 32);
  ck_assert_int_eq(lk_client_timeout_ms(lp.one.link->client), T / 4);
  lp.one.link->frozen = true;
  int64_t left = lk_lock_deadline(lp.a.lock) - lp.server.now;
  int64_t margin_ms = T / 4 / 8; /* an eighth of the shorter timeout */

  ck_assert_int_le(left, T / 4);
  lp.a.events[0] = '\0';
  model_run(&lp.server, left - margin_ms - 1);
  ck_assert(locker_check_events(&lp.a, "suspended\n"));
  model_run(&lp.server, 1);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  lp.one.link->frozen = false;
  lock_pair_end(&lp);
}
END_TEST

/* ---- one lease per client ---------------------------------------------- */

/* A client that has made no lock yet. */
static test_client new_client;

static void begin_with_new_client(void)
{
  lk_client_config config = {.size = sizeof config,
                             .session_timeout_ms = T,
                             .mem = &new_client.mem.mem};

  begin(LK_ASSURE_QUORUM);
  failing_mem_init(&new_client.mem);
  new_client.link = model_client(&lp.server, &config);
  model_turn(&lp.server);
}

static void end_with_new_client(void)
{
  test_client_free(&new_client);
  model_expire(&lp.server, new_client.link->last_session);
  lock_pair_end(&lp);
}

/* Replies from before the first lock are evidence, too. */
START_TEST(lock_made_after_a_minute_of_traffic_is_granted_without_a_check)
{
  lk_lock *l;

  for (int busy = 0; busy <= 1; busy++) {
    begin_with_new_client();
    for (int i = 0; i < 60; i++) {
      if (busy)
        lk_get(new_client.link->client, LOCKS, NULL, NULL, NULL);
      model_run(&lp.server, 1000);
    }
    new_client.link->log[0] = '\0';
    ck_assert_int_eq(lk_lock_new(&l, new_client.link->client, LOCKS, NULL), 0);
    ck_assert_int_eq(lk_lock_acquire(l, LK_NO_LIMIT, NULL, NULL), 0);
    model_turn(&lp.server);
    ck_assert_int_eq(lk_lock_get_state(l), LK_LOCK_HELD);
    ck_assert(lk_lock_ok(l));
    ck_assert(model_check_log(new_client.link, "create2 getChildren2"));
    lk_lock_free(l);
    end_with_new_client();
  }
}
END_TEST

START_TEST(deadline_is_known_without_a_lock)
{
  begin_with_new_client();
  ck_assert_int_gt(lk_lease_deadline(new_client.link->client), lp.server.now);
  ck_assert_uint_eq(lk_lease_pending_cleanups(new_client.link->client), 0);
  model_expire(&lp.server, new_client.link->last_session);
  lp.server.down = true;
  model_drop(new_client.link);
  lp.server.down = false;
  model_turn(&lp.server);
  ck_assert_int_eq(lk_client_close(new_client.link->client, NULL, NULL), 0);
  ck_assert_int_eq(lk_lease_deadline(new_client.link->client), INT64_MIN);
  end_with_new_client();
}
END_TEST

START_TEST(lease_options_cannot_be_changed)
{
  lk_lease_config sync = {.size = sizeof sync, .assurance = LK_ASSURE_SYNC};
  lk_lease_config other = {.size = sizeof other};
  lk_client *c;

  begin_with_new_client();
  c = new_client.link->client;
  ck_assert_int_eq(lk_lease_configure(c, &sync), 0);
  ck_assert_int_eq(lk_lease_configure(c, &sync), 0);
  ck_assert_int_eq(lk_lease_configure(c, NULL), LK_ERR_STATE);
  other.assurance = LK_ASSURE_SYNC;
  other.margin_ms = 100;
  ck_assert_int_eq(lk_lease_configure(c, &other), LK_ERR_STATE);
  ck_assert_int_eq(lk_lease_set_margin(c, 100), 0);
  ck_assert_int_eq(lk_lease_configure(c, &other), LK_ERR_STATE);
  ck_assert_int_eq(lk_lease_configure(c, &sync), 0);
  other.gap_ms = -1;
  ck_assert_int_eq(lk_lease_configure(c, &other), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_lease_set_margin(c, -1), LK_ERR_BAD_ARGUMENT);
  end_with_new_client();
}
END_TEST

START_TEST(first_lock_selects_the_default_options)
{
  lk_lease_config sync = {.size = sizeof sync, .assurance = LK_ASSURE_SYNC};
  lk_lock *l;

  begin_with_new_client();
  ck_assert_int_eq(lk_lock_new(&l, new_client.link->client, "bad", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_ptr_null(l);
  ck_assert_int_eq(lk_lock_new(&l, new_client.link->client, LOCKS, NULL), 0);
  lk_lock_free(l);
  ck_assert_int_eq(lk_lease_configure(new_client.link->client, &sync),
                   LK_ERR_STATE);
  ck_assert_int_eq(lk_lease_configure(new_client.link->client, NULL), 0);
  end_with_new_client();
  /* a lock that could not be made does not select the defaults */
  begin_with_new_client();
  ck_assert_int_eq(lk_lock_new(&l, new_client.link->client, "bad", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_lease_configure(new_client.link->client, &sync), 0);
  end_with_new_client();
}
END_TEST

START_TEST(without_memory_for_a_session_lease_no_lock_is_made)
{
  lk_lock *l;

  begin_with_new_client();
  new_client.mem.count = 0;
  new_client.mem.fail_at = 1;
  ck_assert_int_eq(lk_lock_new(&l, new_client.link->client, LOCKS, NULL),
                   LK_ERR_NO_MEMORY);
  ck_assert_ptr_null(l);
  new_client.mem.count = 0;
  ck_assert_int_eq(lk_lease_configure(new_client.link->client, NULL),
                   LK_ERR_NO_MEMORY);
  new_client.mem.count = 0;
  ck_assert_int_eq(lk_lease_set_margin(new_client.link->client, 1),
                   LK_ERR_NO_MEMORY);
  new_client.mem.fail_at = 0;
  ck_assert_int_eq(lk_lock_new(&l, new_client.link->client, LOCKS, NULL), 0);
  lk_lock_free(l);
  end_with_new_client();
}
END_TEST

static void record_lock_state_on_expiry(lk_client *c, lk_state state, int err,
                                        void *arg)
{
  (void)c;
  (void)err;
  if (state == LK_STATE_EXPIRED)
    *(int *)arg = (int)lk_lock_get_state(lp.a.lock);
}

/* The session lease, which notifies the locks, is made after the listener. */
START_TEST(locks_are_notified_of_an_expiry_before_earlier_listeners)
{
  int state_at_expiry = -1;
  lk_listener listener = {.size = sizeof listener,
                          .state = record_lock_state_on_expiry,
                          .arg = &state_at_expiry};
  lk_lock_config config = {.size = sizeof config};

  begin_with_new_client();
  lk_client_attach(new_client.link->client, &listener);
  locker_free(&lp.a);
  locker_init(&lp.a, &new_client, &config);
  locker_request(&lp.a);
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_HELD);
  lp.server.down = true;
  model_drop(new_client.link);
  model_expire(&lp.server, new_client.link->last_session);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(state_at_expiry, LK_LOCK_LOST);
  lk_client_detach(new_client.link->client, &listener);
  locker_free(&lp.a);
  end_with_new_client();
}
END_TEST

static lk_lock *lock_of_closed_client;

static void make_lock_and_free_client(lk_client *c, int err, void *arg)
{
  (void)err;
  (void)arg;
  ck_assert_int_eq(lk_lock_new(&lock_of_closed_client, c, LOCKS, NULL), 0);
  ck_assert_int_eq(lk_lease_set_margin(c, 1), 0);
  lk_client_free(c);
}

START_TEST(lock_created_on_a_closed_client_outlives_it)
{
  begin_with_new_client();
  ck_assert_int_eq(
      lk_client_close(new_client.link->client, make_lock_and_free_client, NULL),
      0);
  model_turn(&lp.server);
  ck_assert_ptr_null(new_client.link->client);
  ck_assert_int_eq(
      lk_lock_acquire(lock_of_closed_client, LK_NO_LIMIT, NULL, NULL),
      LK_ERR_CLOSED);
  ck_assert(!lk_lock_ok(lock_of_closed_client));
  ck_assert_int_eq(lk_lock_deadline(lock_of_closed_client), INT64_MIN);
  lk_lock_free(lock_of_closed_client);
  end_with_new_client();
}
END_TEST

static void change_margin_at_the_end(locker *l, const char *what)
{
  if (strcmp(what, "lost CLOSED") == 0 || strcmp(what, "released") == 0)
    lk_lease_set_margin(l->p->link->client, 1);
}

static void on_released(lk_lock *lock, int err, void *arg)
{
  locker *l = arg;

  (void)lock;
  l->released = err;
  l->react(l, "released");
}

static void free_all(lk_client *c, int err, void *arg)
{
  (void)err;
  (void)arg;
  ck_assert_int_eq(lk_client_deadline(c), INT64_MAX); /* no timer runs */
  locker_free(&lp.a);
  lk_client_free(c);
}

/* Nothing would stop a timer that is started on a closed client. */
START_TEST(margin_changed_while_the_client_closes_starts_no_timer)
{
  begin(LK_ASSURE_QUORUM);
  lock_pair_hold(&lp);
  lp.a.react = change_margin_at_the_end;
  ck_assert_int_eq(lk_client_close(lp.one.link->client, free_all, NULL), 0);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "lost CLOSED\n"));
  ck_assert_ptr_null(lp.one.link->client);
  lock_pair_end(&lp);
}
END_TEST

/* The callback of a release may be invoked when the client is closed
 * already. */
START_TEST(margin_changed_on_a_closed_client_starts_no_timer)
{
  begin(LK_ASSURE_QUORUM);
  lock_pair_hold(&lp);
  lp.a.react = change_margin_at_the_end;
  lp.one.link->frozen = true;
  ck_assert_int_eq(
      lk_lock_release_until(lp.a.lock, LK_NO_LIMIT, on_released, &lp.a), 0);
  ck_assert_int_eq(lk_client_close(lp.one.link->client, free_all, NULL), 0);
  model_run(&lp.server, T / 2);
  ck_assert_int_ne(lp.a.released, NOT_YET);
  ck_assert_ptr_null(lp.one.link->client);
  model_expire(&lp.server, lp.one.link->last_session);
  lock_pair_end(&lp);
}
END_TEST

/* From the loss of a connection to the next attempt. */
static int64_t reconnect_pause_ms(const test_client *p)
{
  return lk_client_deadline(p->link->client) - lp.server.now;
}

START_TEST(holder_tries_to_reconnect_before_those_that_hold_nothing)
{
  begin(LK_ASSURE_QUORUM);
  lock_pair_queue(&lp);
  model_drop(lp.one.link);
  model_drop(lp.two.link);
  ck_assert_int_le(reconnect_pause_ms(&lp.one), T / 1000);
  ck_assert_int_ge(reconnect_pause_ms(&lp.two), T / 80);
  model_run(&lp.server, T / 10);
  locker_release(&lp.a);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.released, 0);
  model_drop(lp.one.link);
  ck_assert_int_ge(reconnect_pause_ms(&lp.one), T / 80);
  lp.a.events[0] = lp.b.events[0] = '\0';
  lock_pair_end(&lp);
}
END_TEST

START_TEST(margin_can_be_changed_while_a_lock_is_held)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&lp.server, T);
  lk_lease_set_margin(lp.one.link->client, T / 2);
  lp.one.link->frozen = true;
  int64_t deadline = lk_lock_deadline(lp.a.lock);

  model_run(&lp.server, deadline - T / 2 - lp.server.now - 1);
  ck_assert(locker_check_events(&lp.a, ""));
  model_run(&lp.server, 1);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  lp.one.link->frozen = false;
  model_turn(&lp.server);
  lp.a.events[0] = '\0';
  lk_lease_set_margin(lp.one.link->client, MARGIN);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "held\n"));
  model_run(&lp.server, T);
  /* this margin is so large that the lock is unsure, and a heartbeat is sent at
   * once */
  lp.a.events[0] = '\0';
  lp.one.link->log[0] = '\0';
  lk_lease_set_margin(lp.one.link->client, T);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  ck_assert(model_check_log(lp.one.link, "multi"));
  lock_pair_end(&lp);
}
END_TEST

/* ---- verify and guarded ------------------------------------------------ */

START_TEST(verify_renews_the_lease_and_watches_the_node)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&lp.server, T / 4 - 10);
  int64_t before = lk_lock_deadline(lp.a.lock);

  lp.one.link->log[0] = '\0';
  ck_assert_int_eq(locker_verify(&lp.a), 0);
  ck_assert_int_eq(lk_lock_verify(lp.a.lock, NULL, NULL), LK_ERR_STATE);
  ck_assert_int_eq(lp.a.verified, NOT_YET);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.verified, 0);
  ck_assert(model_check_log(lp.one.link, "multi getData"));
  ck_assert_int_ge(lk_lock_deadline(lp.a.lock), before);
  /* the verify has set a watch on the node */
  model_delete(&lp.server, lk_lock_node(lp.a.lock));
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
  lock_pair_end(&lp);
}
END_TEST

enum { ANY_VERSION = -1 };

typedef struct outcome {
  int err;
  size_t count;
  int first_err; /* that of the first operation, or NOT_YET */
} outcome;

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  outcome *o = arg;

  ck_assert_ptr_eq(c, lp.one.link->client);
  ck_assert_int_eq(o->err, NOT_YET);
  o->err = err;
  o->count = count;
  o->first_err = count > 0 ? results[0].err : NOT_YET;
}

START_TEST(guarded_write_is_executed_only_while_the_own_node_exists)
{
  outcome o = {.err = NOT_YET};
  lk_op ops[] = {lk_op_set("/locks", lk_text("1"), ANY_VERSION),
                 lk_op_create("/made", lk_bytes_of("", 0), NULL, 0)};

  begin(LK_ASSURE_QUORUM);
  ck_assert_int_eq(
      lk_lock_guarded_multi(lp.a.lock, ops, 2, NULL, on_guarded, &o),
      LK_ERR_NOT_HELD);
  lock_pair_hold(&lp);
  ck_assert_int_eq(
      lk_lock_guarded_multi(lp.a.lock, ops, 2, NULL, on_guarded, &o), 0);
  model_turn(&lp.server);
  ck_assert(o.err == 0 && o.count == 2 && o.first_err == 0);
  ck_assert_ptr_nonnull(model_node(&lp.server, "/made"));
  /* an error of the caller's operation is not an error of the lock */
  o.err = NOT_YET;
  ck_assert_int_eq(
      lk_lock_guarded_multi(lp.a.lock, ops + 1, 1, NULL, on_guarded, &o), 0);
  model_turn(&lp.server);
  ck_assert(o.err == LK_ERR_NODE_EXISTS && o.count == 1 &&
            o.first_err == LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_HELD);
  /* without the own node nothing is executed */
  o.err = NOT_YET;
  model_delete(&lp.server, "/made");
  model_delete(&lp.server, lk_lock_node(lp.a.lock));
  ck_assert_int_eq(
      lk_lock_guarded_multi(lp.a.lock, ops, 2, NULL, on_guarded, &o), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(o.err, LK_ERR_LOST);
  ck_assert_ptr_null(model_node(&lp.server, "/made"));
  ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
  ck_assert_int_eq(
      lk_lock_guarded_multi(lp.a.lock, ops, 2, NULL, on_guarded, &o),
      LK_ERR_LOST);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(guarded_write_completes_after_its_lock_is_freed)
{
  outcome o = {.err = NOT_YET};
  lk_op op = lk_op_set("/locks", lk_text("1"), ANY_VERSION);

  begin_held(LK_ASSURE_QUORUM);
  ck_assert_int_eq(
      lk_lock_guarded_multi(lp.a.lock, &op, 1, NULL, on_guarded, &o), 0);
  locker_free(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(o.err, 0);
  lock_pair_end(&lp);
}
END_TEST

SUITE("session_lease", holder_sends_a_heartbeat_each_quarter_of_the_timeout,
      heartbeat_answered_late_is_followed_sooner,
      heartbeat_is_due_after_the_reply_to_the_last,
      heartbeat_is_a_sync_or_a_ping_with_other_assurances,
      next_holder_checks_its_node_and_other_waiters_sync,
      throttled_read_of_a_waiters_node_is_repeated_by_a_heartbeat,
      holder_leaves_a_server_that_says_in_results_that_the_session_moved,
      results_that_were_not_committed_do_not_renew_the_lease,
      lost_place_is_reported_within_half_a_timeout,
      holder_that_waited_reads_its_node_no_more, idle_lock_sends_no_heartbeat,
      without_faults_the_deadline_is_half_a_timeout_away,
      a_grant_after_long_idleness_is_never_unsure,
      grant_on_old_evidence_sends_a_heartbeat_sooner,
      heartbeat_waits_until_it_can_confirm_the_newest_reply,
      heartbeat_does_not_wait_long_to_confirm_the_newest_reply,
      many_nodes_are_checked_in_several_multis,
      throttled_heartbeat_is_repeated_soon,
      silent_server_makes_a_lock_unsure_and_a_reply_makes_it_held,
      replies_to_syncs_alone_do_not_make_a_lock_held_again,
      sync_makes_an_unsure_lock_held_again,
      with_ping_assurance_a_read_of_the_own_node_is_proof,
      lock_with_an_unreadable_node_becomes_held_again_or_lost,
      heartbeat_detects_a_deletion_without_an_event,
      heartbeat_reports_once_that_the_node_is_not_readable_any_more,
      suspended_is_reported_and_the_deadline_stays,
      a_short_break_is_no_reason_to_be_unsure,
      lock_can_become_unsure_as_soon_as_the_connection_breaks,
      deadline_timer_runs_again_when_the_lock_is_held_again,
      node_deleted_during_a_break_is_a_loss,
      long_break_makes_a_lock_unsure_and_then_lost,
      lock_is_unsure_after_a_pause_of_the_process,
      stale_event_after_a_pause_grants_nothing,
      slow_callback_delays_the_grant_until_new_evidence,
      next_holder_is_granted_by_the_deletion_alone_after_any_time,
      a_grant_needs_a_quarter_of_the_timeout,
      lease_that_ends_between_two_clock_readings_blocks_no_waiter,
      shorter_session_timeout_shortens_the_lease,
      holder_with_a_shorter_session_timeout_is_notified_in_time,
      lock_made_after_a_minute_of_traffic_is_granted_without_a_check,
      deadline_is_known_without_a_lock, lease_options_cannot_be_changed,
      first_lock_selects_the_default_options,
      without_memory_for_a_session_lease_no_lock_is_made,
      locks_are_notified_of_an_expiry_before_earlier_listeners,
      lock_created_on_a_closed_client_outlives_it,
      margin_changed_while_the_client_closes_starts_no_timer,
      margin_changed_on_a_closed_client_starts_no_timer,
      holder_tries_to_reconnect_before_those_that_hold_nothing,
      margin_can_be_changed_while_a_lock_is_held,
      verify_renews_the_lease_and_watches_the_node,
      guarded_write_is_executed_only_while_the_own_node_exists,
      guarded_write_completes_after_its_lock_is_freed)
