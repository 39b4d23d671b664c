/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <stdio.h>

/* What a session does for its locks: the beat, the lease, and what is told when
 * it runs out. T / 50 is what drifting clocks cost here, 40 + 10 ms. */

enum { DRIFT = T / 100 + 10, MARGIN = T / 8 };

static scene sc;

static void begin(lk_assurance assurance)
{
  lk_lease_config c = {.size = sizeof c, .assurance = assurance};

  scene_begin(&sc, &c, NULL);
}

static void begin_held(lk_assurance assurance)
{
  begin(assurance);
  scene_hold(&sc);
}

/* ---- the beat ---------------------------------------------------------- */

START_TEST(holder_sends_a_heartbeat_each_quarter_of_the_timeout)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&sc.server, T / 4 - 1);
  ck_assert(model_said(sc.one.link, ""));
  model_run(&sc.server, 1);
  ck_assert(model_said(sc.one.link, "getData multi"));
  for (int i = 0; i < 10; i++) {
    model_run(&sc.server, T / 4 - 1);
    ck_assert(model_said(sc.one.link, ""));
    model_run(&sc.server, 1);
    ck_assert(model_said(sc.one.link, "multi"));
  }
  scene_end(&sc);
}
END_TEST

START_TEST(heartbeat_is_due_after_the_reply_to_the_last)
{
  begin_held(LK_ASSURE_QUORUM);
  sc.one.link->allow = 0;
  model_run(&sc.server, T / 4);
  ck_assert(model_said(sc.one.link, "getData multi"));
  model_run(&sc.server, 300); /* the answer takes its time */
  sc.one.link->allow = SIZE_MAX;
  model_run(&sc.server, T / 4 - 1);
  ck_assert(model_said(sc.one.link, ""));
  model_run(&sc.server, 1);
  ck_assert(model_said(sc.one.link, "multi"));
  scene_end(&sc);
}
END_TEST

/* What the lease rests on is old by then. */
START_TEST(heartbeat_answered_late_is_followed_sooner)
{
  begin_held(LK_ASSURE_QUORUM);
  sc.one.link->allow = 0;
  model_run(&sc.server, T / 4);
  ck_assert(model_said(sc.one.link, "getData multi"));
  model_run(&sc.server, T / 3);
  sc.one.link->allow = SIZE_MAX;
  model_run(&sc.server, T / 16 - 1);
  ck_assert(model_said(sc.one.link, ""));
  model_run(&sc.server, 1);
  ck_assert(model_said(sc.one.link, "multi"));
  scene_end(&sc);
}
END_TEST

START_TEST(other_assurances_send_sync_or_ping)
{
  begin_held(LK_ASSURE_SYNC);
  model_run(&sc.server, T);
  ck_assert(
      model_said(sc.one.link, "getData sync | sync | sync | getData sync"));
  scene_end(&sc);
  begin_held(LK_ASSURE_PING);
  model_run(&sc.server, T);
  ck_assert(model_said(sc.one.link, "getData | getData"));
  scene_end(&sc);
}
END_TEST

START_TEST(next_holder_checks_its_node_and_other_waiters_sync)
{
  const char *const next[] = {"multi | multi | multi | multi",
                              "sync | sync | sync | sync", ""};
  const char *const others[] = {"sync | sync | sync | sync",
                                "sync | sync | sync | sync", ""};

  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    for (int more = 0; more <= 1; more++) {
      begin((lk_assurance)a);
      scene_queue(&sc);
      if (more) {
        locker_release(&sc.a);
        model_turn(&sc.server);
        locker_release(&sc.b);
        model_create(&sc.server, LOCKS "/x-lock-0000000002");
        model_create(&sc.server, LOCKS "/x-lock-0000000003");
        ck_assert_int_eq(locker_want(&sc.b, -1), 0);
        model_turn(&sc.server);
        sc.two.link->log[0] = '\0';
      }
      model_run(&sc.server, T);
      ck_assert(model_said(sc.two.link, more ? others[a] : next[a]));
      if (more) {
        model_delete(&sc.server, LOCKS "/x-lock-0000000002");
        model_delete(&sc.server, LOCKS "/x-lock-0000000003");
      }
      scene_end(&sc);
    }
  }
}
END_TEST

START_TEST(holder_that_waited_is_watched_already)
{
  const char *const said[] = {"multi | multi", "sync | sync", ""};

  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin((lk_assurance)a);
    scene_queue(&sc);
    ck_assert_int_eq(lk_lock_release(sc.a.lock, NULL, NULL), 0);
    model_run(&sc.server, T / 2);
    ck_assert_int_eq(sc.b.acquired, 0);
    ck_assert(model_said(sc.two.link, said[a]));
    scene_end(&sc);
  }
}
END_TEST

START_TEST(idle_lock_sends_no_heartbeat)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&sc.server, T);
  ck_assert_int_eq(lk_lock_release(sc.a.lock, NULL, NULL), 0);
  model_turn(&sc.server);
  sc.one.link->log[0] = '\0';
  model_run(&sc.server, 5 * T);
  ck_assert(model_said(sc.one.link, ""));
  ck_assert(model_said(sc.two.link, ""));
  scene_end(&sc);
}
END_TEST

/* After a grant that follows a wait it is a quarter, until the beat after the
 * next. */
START_TEST(without_trouble_the_deadline_is_half_a_timeout_away)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin((lk_assurance)a);
    scene_queue(&sc);
    for (int i = 0; i < 200; i++) {
      const locker *l = i < 100 ? &sc.a : &sc.b;
      int64_t least = i < 100 || i > 150 ? T / 2 : T / 4;

      if (i == 100) {
        ck_assert_int_eq(lk_lock_release(sc.a.lock, NULL, NULL), 0);
        model_turn(&sc.server);
        ck_assert_int_eq(sc.b.acquired, 0);
      }
      model_run(&sc.server, 37);
      ck_assert_int_ge(lk_lock_deadline(l->lock),
                       sc.server.now + least - DRIFT);
      ck_assert_int_le(lk_lock_deadline(l->lock), sc.server.now + T);
    }
    ck_assert(locker_told(&sc.a, "") && locker_told(&sc.b, ""));
    scene_end(&sc);
  }
}
END_TEST

/* A grant that rests on an idle connection's pings gets there, too. */
START_TEST(a_grant_after_long_idleness_is_never_unsure)
{
  for (int i = 0; i < 60; i++) {
    begin(LK_ASSURE_QUORUM);
    model_run(&sc.server, 5 * T + i * 31);
    ck_assert_int_eq(locker_want(&sc.a, -1), 0);
    model_turn(&sc.server);
    ck_assert_int_eq(sc.a.acquired, 0);
    ck_assert(model_said(sc.one.link, "create2 getChildren2"));
    model_run(&sc.server, 2 * T);
    ck_assert(locker_told(&sc.a, ""));
    scene_end(&sc);
  }
}
END_TEST

START_TEST(grant_on_old_evidence_sends_a_heartbeat_sooner)
{
  /* the newest answer is just too new to prove anything, the one before is as
   * old as answers get */
  begin(LK_ASSURE_QUORUM);
  model_run(&sc.server, T / 3 + T / 4 - 10);
  scene_hold(&sc);
  model_run(&sc.server, T / 16 - 1);
  ck_assert(model_said(sc.one.link, ""));
  model_run(&sc.server, 1);
  ck_assert(model_said(sc.one.link, "getData multi"));
  model_run(&sc.server, 2 * T);
  ck_assert(locker_told(&sc.a, ""));
  scene_end(&sc);
}
END_TEST

START_TEST(many_nodes_are_checked_in_several_multis)
{
  lk_lock *locks[150];
  char path[32];

  begin(LK_ASSURE_QUORUM);
  for (int i = 0; i < 150; i++) {
    snprintf(path, sizeof path, "/locks/n%d", i);
    model_create(&sc.server, path);
    ck_assert_int_eq(lk_lock_new(&locks[i], sc.one.link->client, path, NULL),
                     0);
    ck_assert_int_eq(lk_lock_acquire(locks[i], -1, NULL, NULL), 0);
  }
  model_run(&sc.server, T / 4);
  sc.one.link->log[0] = '\0';
  model_run(&sc.server, T / 4);
  ck_assert(model_said(sc.one.link, "multi multi multi"));
  /* one that is gone is found, wherever it stands */
  model_drop_watches(sc.one.link); /* and no watch tells of it first */
  model_delete(&sc.server, lk_lock_node(locks[100]));
  model_run(&sc.server, T / 4);
  ck_assert_int_eq(lk_lock_get_state(locks[100]), LK_LOCK_LOST);
  /* those behind it are checked again at once */
  ck_assert(model_said(sc.one.link, "multi multi multi | multi multi multi"));
  for (int i = 0; i < 150; i++) {
    ck_assert_int_eq(lk_lock_get_state(locks[i]),
                     i == 100 ? LK_LOCK_LOST : LK_LOCK_HELD);
    lk_lock_free(locks[i]);
  }
  scene_end(&sc);
}
END_TEST

START_TEST(throttled_heartbeat_is_repeated_soon)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&sc.server, T);
  sc.one.link->throttle_at = sc.one.link->requests + 1;
  sc.one.link->log[0] = '\0';
  model_run(&sc.server, T / 4);
  ck_assert(model_said(sc.one.link, "multi"));
  model_run(&sc.server, T / 20);
  ck_assert(model_said(sc.one.link, "multi"));
  model_run(&sc.server, T);
  ck_assert(locker_told(&sc.a, ""));
  scene_end(&sc);
}
END_TEST

/* ---- unsure, held, lost ------------------------------------------------ */

/* The server falls silent until a is unsure, and then goes on. */
static void fall_silent(void)
{
  sc.one.link->frozen = true;
  int64_t deadline = lk_lock_deadline(sc.a.lock);

  model_run(&sc.server, deadline - MARGIN - sc.server.now - 1);
  ck_assert(locker_told(&sc.a, ""));
  model_run(&sc.server, 1);
  ck_assert(locker_told(&sc.a, "unsure\n"));
  ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_UNSURE);
  ck_assert(lk_lock_ok(sc.a.lock)); /* the lease has not run out yet */
  sc.one.link->frozen = false;
  model_turn(&sc.server);
  ck_assert(locker_told(&sc.a, "held\n"));
  ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_HELD);
  ck_assert(lk_lock_ok(sc.a.lock));
}

START_TEST(silent_server_makes_unsure_and_a_reply_held_again)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_SYNC; a++) {
    begin_held((lk_assurance)a);
    model_run(&sc.server, T);
    ck_assert_int_eq(lk_lock_deadline(sc.a.lock),
                     sc.server.now + T * 3 / 4 - DRIFT);
    sc.one.link->log[0] = '\0';
    fall_silent();
    /* a check under way is proof of own as well */
    ck_assert(model_said(sc.one.link,
                         a == LK_ASSURE_QUORUM ? "multi" : "sync | getData"));
    /* the stall is worked off */
    model_run(&sc.server, T);
    sc.a.told[0] = '\0';
    model_run(&sc.server, 2 * T);
    ck_assert(locker_told(&sc.a, ""));
    fall_silent(); /* and it is told again */
    scene_end(&sc);
  }
}
END_TEST

/* With sync the proof of the lease says nothing of the node. */
START_TEST(evidence_alone_does_not_make_held)
{
  begin_held(LK_ASSURE_SYNC);
  model_run(&sc.server, T);
  sc.one.link->frozen = true;
  model_drop_watches(sc.one.link);
  model_delete(&sc.server, lk_lock_node(sc.a.lock));
  model_run(&sc.server, T * 3 / 4 - DRIFT - MARGIN);
  ck_assert(locker_told(&sc.a, "unsure\n"));
  sc.one.link->frozen = false;
  model_turn(&sc.server);
  ck_assert(locker_told(&sc.a, "lost NO_NODE\n"));
  scene_end(&sc);
}
END_TEST

/* Own was seen at once, and the proof of the lease comes a beat later. */
START_TEST(sync_makes_an_unsure_lock_held_again)
{
  begin_held(LK_ASSURE_SYNC);
  model_run(&sc.server, 2 * T + T / 4 - 100);
  lk_lease_set_margin(sc.one.link->client, T * 5 / 8);
  model_turn(&sc.server);
  ck_assert(locker_told(&sc.a, "unsure\n"));
  model_run(&sc.server, T / 4 - 1);
  ck_assert(locker_told(&sc.a, ""));
  model_run(&sc.server, 1);
  ck_assert(locker_told(&sc.a, "held\n"));
  scene_end(&sc);
}
END_TEST

START_TEST(with_ping_assurance_a_read_of_the_own_node_is_proof)
{
  lk_lease_config c = {
      .size = sizeof c, .assurance = LK_ASSURE_PING, .margin_ms = T * 2 / 3};

  scene_begin(&sc, &c, NULL);
  scene_hold(&sc);
  model_run(&sc.server, T * 3 / 8);
  ck_assert(locker_told(&sc.a, ""));
  model_run(&sc.server, T / 8);
  ck_assert(locker_told(&sc.a, "unsure\nheld\n"));
  scene_end(&sc);
}
END_TEST

START_TEST(lock_with_an_unreadable_node_becomes_held_again)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin_held((lk_assurance)a);
    model_deny(&sc.server, model_child(&sc.server, LOCKS, 0), LK_PERM_READ);
    model_run(&sc.server, T / 2);
    ck_assert(locker_told(&sc.a, "unwatched\n"));
    sc.server.down = true;
    model_drop(sc.one.link);
    model_run(&sc.server, T);
    ck_assert(locker_told(&sc.a, "suspended\nunsure\n"));
    sc.server.down = false;
    model_run(&sc.server, T / 10);
    ck_assert(locker_told(&sc.a, "held\n"));
    sc.server.down = true;
    model_drop(sc.one.link);
    model_delete(&sc.server, model_child(&sc.server, LOCKS, 0));
    sc.server.down = false;
    model_run(&sc.server, T / 10);
    ck_assert(locker_told(&sc.a, "suspended\nlost NO_NODE\n"));
    scene_end(&sc);
  }
}
END_TEST

/* Servers keep back the event of a node that cannot be read. */
START_TEST(heartbeat_detects_a_deletion_without_an_event)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    for (int known = 0; known <= 1; known++) {
      begin_held((lk_assurance)a);
      model_run(&sc.server, known ? 0 : T / 2); /* it is watched by then */
      model_deny(&sc.server, model_child(&sc.server, LOCKS, 0), LK_PERM_READ);
      model_run(&sc.server, known ? T / 2 : 0);
      ck_assert(locker_told(&sc.a, known ? "unwatched\n" : ""));
      model_delete(&sc.server, model_child(&sc.server, LOCKS, 0));
      model_run(&sc.server, T + T / 4);
      ck_assert(locker_told(&sc.a, "lost NO_NODE\n"));
      scene_end(&sc);
    }
  }
}
END_TEST

START_TEST(node_that_may_not_be_read_any_more_is_reported_by_the_heartbeat)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin_held((lk_assurance)a);
    model_run(&sc.server, T / 2);
    model_deny(&sc.server, model_child(&sc.server, LOCKS, 0), LK_PERM_READ);
    model_run(&sc.server, 3 * T);
    ck_assert(locker_told(&sc.a, "unwatched\n"));
    scene_end(&sc);
  }
}
END_TEST

START_TEST(unsure_holder_without_a_node_does_not_become_held)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin_held((lk_assurance)a);
    model_run(&sc.server, T);
    sc.server.down = true;
    model_drop(sc.one.link);
    model_run(&sc.server, T);
    ck_assert(locker_told(&sc.a, "suspended\nunsure\n"));
    model_delete(&sc.server, model_child(&sc.server, LOCKS, 0));
    sc.server.down = false;
    model_run(&sc.server, T / 10);
    ck_assert(locker_told(&sc.a, "lost NO_NODE\n"));
    scene_end(&sc);
  }
}
END_TEST

START_TEST(suspended_is_reported_and_the_deadline_stays)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin_held((lk_assurance)a);
    model_run(&sc.server, T);
    sc.server.down = true;
    int64_t deadline = lk_lock_deadline(sc.a.lock);

    model_drop(sc.one.link);
    ck_assert(locker_told(&sc.a, "suspended\n"));
    ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_HELD);
    ck_assert_int_eq(lk_lock_deadline(sc.a.lock), deadline);
    model_run(&sc.server, deadline - MARGIN - sc.server.now - 1);
    ck_assert(locker_told(&sc.a, ""));
    model_run(&sc.server, 1);
    ck_assert(locker_told(&sc.a, "unsure\n"));
    model_run(&sc.server, MARGIN - 1);
    ck_assert(lk_lock_ok(sc.a.lock));
    model_run(&sc.server, 1);
    ck_assert(!lk_lock_ok(sc.a.lock));
    ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_UNSURE);
    sc.server.down = false;
    model_run(&sc.server, T / 10);
    ck_assert(locker_told(&sc.a, "held\n"));
    ck_assert(lk_lock_ok(sc.a.lock));
    scene_end(&sc);
  }
}
END_TEST

START_TEST(a_short_break_is_no_reason_to_be_unsure)
{
  const char *const said[] = {"getData multi", "getData sync", "getData"};

  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin_held((lk_assurance)a);
    model_run(&sc.server, T);
    sc.one.link->log[0] = '\0';
    model_drop(sc.one.link);
    model_run(&sc.server, T / 10);
    ck_assert(model_said(sc.one.link, said[a]));
    model_run(&sc.server, 2 * T);
    ck_assert(locker_told(&sc.a, "suspended\n"));
    scene_end(&sc);
  }
}
END_TEST

START_TEST(lock_can_become_unsure_as_soon_as_the_connection_breaks)
{
  lk_lock_config c = {.size = sizeof c, .unsure_when_suspended = true};

  scene_begin(&sc, NULL, &c);
  scene_hold(&sc);
  model_run(&sc.server, T);
  model_drop(sc.one.link);
  ck_assert(locker_told(&sc.a, "suspended\nunsure\n"));
  model_run(&sc.server, T / 10);
  ck_assert(locker_told(&sc.a, "held\n"));
  model_run(&sc.server, T);
  fall_silent(); /* the next time counts as well */
  scene_end(&sc);
}
END_TEST

/* The timer for the lease as it was has gone by while it was unsure. */
START_TEST(deadline_timer_runs_again_when_the_lock_is_held_again)
{
  lk_lock_config c = {.size = sizeof c, .unsure_when_suspended = true};

  scene_begin(&sc, NULL, &c);
  scene_hold(&sc);
  model_run(&sc.server, T - DRIFT - MARGIN - 150);
  sc.server.down = true;
  model_drop(sc.one.link);
  model_run(&sc.server, 200);
  sc.server.down = false;
  model_run(&sc.server, T / 10);
  ck_assert(locker_told(&sc.a, "suspended\nunsure\nheld\n"));
  model_run(&sc.server, T);
  fall_silent();
  scene_end(&sc);
}
END_TEST

START_TEST(node_deleted_during_a_break_is_a_loss)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    begin_held((lk_assurance)a);
    model_run(&sc.server, T);
    sc.server.down = true;
    model_drop(sc.one.link);
    model_delete(&sc.server, model_child(&sc.server, LOCKS, 0));
    model_run(&sc.server, T / 10);
    ck_assert(locker_told(&sc.a, "suspended\n"));
    sc.server.down = false;
    model_run(&sc.server, T / 10);
    ck_assert(locker_told(&sc.a, "lost NO_NODE\n"));
    scene_end(&sc);
  }
}
END_TEST

START_TEST(long_break_makes_unsure_and_then_lost)
{
  begin_held(LK_ASSURE_QUORUM);
  sc.server.down = true;
  model_drop(sc.one.link);
  model_run(&sc.server, T);
  ck_assert(locker_told(&sc.a, "suspended\nunsure\n"));
  model_run(&sc.server, T); /* the client gives the session up */
  ck_assert(locker_told(&sc.a, "lost SESSION_EXPIRED\n"));
  ck_assert_int_eq(lk_lease_deadline(sc.one.link->client), INT64_MIN);
  ck_assert_int_eq(lk_lock_release(sc.a.lock, NULL, NULL), LK_ERR_LOST);
  model_expire(&sc.server, sc.one.link->last_session);
  sc.server.down = false;
  scene_end(&sc);
}
END_TEST

/* The process was stopped: what it is asked first it answers by the clock. */
START_TEST(lock_is_unsure_after_a_pause_of_the_process)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&sc.server, T);
  ck_assert(lk_lock_ok(sc.a.lock));
  sc.server.now += T;
  ck_assert(!lk_lock_ok(sc.a.lock));
  model_turn(&sc.server);
  ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_UNSURE);
  model_run(&sc.server, T);
  ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_HELD);
  scene_end(&sc);
}
END_TEST

START_TEST(stale_event_after_a_pause_grants_nothing)
{
  begin(LK_ASSURE_QUORUM);
  scene_queue(&sc);
  sc.two.link->allow = 0;
  ck_assert_int_eq(lk_lock_release(sc.a.lock, NULL, NULL), 0);
  model_turn(&sc.server);
  sc.server.now += T;
  sc.two.link->allow = SIZE_MAX;
  model_deliver(sc.two.link);
  ck_assert_int_eq(sc.b.acquired, NOT_YET);
  model_run(&sc.server, T / 2);
  ck_assert_int_eq(sc.b.acquired, 0);
  ck_assert(lk_lock_ok(sc.b.lock));
  scene_end(&sc);
}
END_TEST

static void take_long(lk_client *c, int err, void *arg)
{
  (void)c;
  ck_assert_int_eq(err, 0);
  ((model_server *)arg)->now += T;
}

START_TEST(slow_callback_delays_the_grant_until_new_evidence)
{
  begin(LK_ASSURE_QUORUM);
  sc.two.link->allow = 0;
  ck_assert_int_eq(
      lk_sync(sc.two.link->client, "/", NULL, take_long, &sc.server), 0);
  ck_assert_int_eq(locker_want(&sc.b, -1), 0);
  model_turn(&sc.server);
  sc.two.link->allow = SIZE_MAX;
  model_deliver(sc.two.link); /* the list comes with the sync's answer */
  ck_assert_int_eq(sc.b.acquired, NOT_YET);
  model_run(&sc.server, T / 2);
  ck_assert_int_eq(sc.b.acquired, 0);
  ck_assert(lk_lock_ok(sc.b.lock));
  scene_end(&sc);
}
END_TEST

/* ---- grants ------------------------------------------------------------ */

START_TEST(next_holder_is_granted_by_the_deletion_alone_after_any_time)
{
  begin(LK_ASSURE_QUORUM);
  scene_queue(&sc);
  model_run(&sc.server, 3 * T + 100);
  sc.two.link->log[0] = '\0';
  sc.two.link->frozen = true; /* nothing more will be answered */
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  ck_assert(model_said(sc.two.link, ""));
  ck_assert_int_eq(lk_lock_deadline(sc.b.lock),
                   lk_lease_deadline(sc.two.link->client));
  ck_assert_int_ge(lk_lock_deadline(sc.b.lock), sc.server.now + T / 2 - DRIFT);
  sc.two.link->frozen = false;
  scene_end(&sc);
}
END_TEST

/* b waits behind two, who then leave together. */
static void wait_behind_two(int64_t ms)
{
  model_create(&sc.server, LOCKS "/x-lock-0000000000");
  model_create(&sc.server, LOCKS "/x-lock-0000000001");
  ck_assert_int_eq(locker_want(&sc.b, -1), 0);
  model_run(&sc.server, ms);
  sc.two.link->log[0] = '\0';
  model_delete(&sc.server, LOCKS "/x-lock-0000000000");
  model_delete(&sc.server, LOCKS "/x-lock-0000000001");
}

START_TEST(grant_on_old_evidence_sends_a_check_first)
{
  begin(LK_ASSURE_QUORUM);
  wait_behind_two(3 * T + 100);
  ck_assert_int_lt(lk_lease_deadline(sc.two.link->client), sc.server.now);
  sc.two.link->allow = 0;
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, NOT_YET);
  sc.two.link->allow = SIZE_MAX;
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  ck_assert(model_said(sc.two.link, "getData | multi getChildren2"));
  ck_assert_int_ge(lk_lock_deadline(sc.b.lock), sc.server.now + T / 4);
  scene_end(&sc);
}
END_TEST

/* With less than that a check leaves with the list. With little more the first
 * beat follows at once. */
START_TEST(a_grant_needs_a_quarter_of_the_timeout)
{
  for (int late = 0; late <= 1; late++) {
    begin(LK_ASSURE_QUORUM);
    model_run(&sc.server, 3 * T);
    wait_behind_two(1);
    int64_t left = lk_lease_deadline(sc.two.link->client) - sc.server.now;

    model_turn(&sc.server);
    scene_end(&sc);
    begin(LK_ASSURE_QUORUM);
    model_run(&sc.server, 3 * T);
    wait_behind_two(1 + left - T / 4 + late);
    model_turn(&sc.server);
    ck_assert_int_eq(sc.b.acquired, 0);
    ck_assert(model_said(sc.two.link, late ? "getData | multi getChildren2"
                                           : "getData | multi"));
    scene_end(&sc);
  }
}
END_TEST

/* The deadline of the session that waits lies between two readings of the
 * clock. */
START_TEST(lease_that_ends_between_two_clock_readings_blocks_no_waiter)
{
  lk_lease_config c = {.size = sizeof c, .gap_ms = T / 2};

  for (int early = -6; early < 20; early++) {
    scene_begin(&sc, &c, NULL);
    model_run(&sc.server, 20 * T + 700);
    scene_queue(&sc);
    int64_t until = lk_lease_deadline(sc.two.link->client) - T / 4;

    locker_release(&sc.a);
    sc.two.link->allow = 0;
    model_turn(&sc.server);
    if (until > sc.server.now)
      sc.server.now = until - early;
    sc.server.hurry = 1; /* time passes whenever the clock is read */
    sc.two.link->allow = SIZE_MAX;
    model_deliver(sc.two.link);
    sc.server.hurry = 0;
    model_run(&sc.server, T);
    ck_assert_int_eq(sc.b.acquired, 0);
    scene_end(&sc);
  }
}
END_TEST

/* ---- shorter sessions --------------------------------------------------- */

/* A server that was restarted with another maxSessionTimeout. */
START_TEST(shorter_session_timeout_shortens_the_lease)
{
  begin(LK_ASSURE_QUORUM);
  sc.server.expires = true;
  scene_queue(&sc);
  model_run(&sc.server, 50);
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  sc.server.max_timeout_ms = T / 4;
  model_drop(sc.two.link);
  model_run(&sc.server, T / 16);
  ck_assert_int_eq(lk_client_timeout_ms(sc.two.link->client), T / 4);
  ck_assert_int_le(lk_lock_deadline(sc.b.lock), sc.server.now + T / 4);
  sc.a.acquired = NOT_YET;
  ck_assert_int_eq(locker_want(&sc.a, -1), 0);
  for (int i = 0; i < T && sc.a.acquired == NOT_YET; i++) {
    sc.two.link->frozen = true; /* also after it has connected anew */
    model_run(&sc.server, 1);
  }
  ck_assert_int_eq(sc.a.acquired, 0);
  ck_assert(!lk_lock_ok(sc.b.lock));
  ck_assert(strstr(sc.b.told, "unsure\n") != NULL);
  sc.two.link->frozen = false;
  scene_end(&sc);
}
END_TEST

START_TEST(holder_with_a_shorter_session_timeout_is_notified_in_time)
{
  begin_held(LK_ASSURE_QUORUM);
  sc.server.max_timeout_ms = T / 4;
  model_drop(sc.one.link);
  model_run(&sc.server, T / 32);
  ck_assert_int_eq(lk_client_timeout_ms(sc.one.link->client), T / 4);
  sc.one.link->frozen = true;
  int64_t left = lk_lock_deadline(sc.a.lock) - sc.server.now;

  ck_assert_int_le(left, T / 4);
  sc.a.told[0] = '\0';
  model_run(&sc.server, left - T / 4 / 8 - 1);
  ck_assert(locker_told(&sc.a, "suspended\n"));
  model_run(&sc.server, 1);
  ck_assert(locker_told(&sc.a, "unsure\n"));
  sc.one.link->frozen = false;
  scene_end(&sc);
}
END_TEST

/* ---- one lease per client ---------------------------------------------- */

/* A client that has made no lock yet. */
static party plain;

static void begin_plain(void)
{
  lk_client_config config = {
      .size = sizeof config, .session_timeout_ms = T, .mem = &plain.mem.mem};

  begin(LK_ASSURE_QUORUM);
  failing_mem_init(&plain.mem);
  plain.link = model_client(&sc.server, &config);
  model_turn(&sc.server);
}

static void end_plain(void)
{
  party_leave(&plain);
  model_expire(&sc.server, plain.link->last_session);
  scene_end(&sc);
}

/* Its replies prove as much as if the lock had been there. */
START_TEST(lock_made_after_a_minute_of_traffic_is_granted_without_a_check)
{
  lk_lock *l;

  for (int busy = 0; busy <= 1; busy++) {
    begin_plain();
    for (int i = 0; i < 60; i++) {
      if (busy)
        lk_get(plain.link->client, LOCKS, NULL, NULL, NULL);
      model_run(&sc.server, 1000);
    }
    plain.link->log[0] = '\0';
    ck_assert_int_eq(lk_lock_new(&l, plain.link->client, LOCKS, NULL), 0);
    ck_assert_int_eq(lk_lock_acquire(l, -1, NULL, NULL), 0);
    model_turn(&sc.server);
    ck_assert_int_eq(lk_lock_get_state(l), LK_LOCK_HELD);
    ck_assert(lk_lock_ok(l));
    ck_assert(model_said(plain.link, "create2 getChildren2"));
    lk_lock_free(l);
    end_plain();
  }
}
END_TEST

START_TEST(deadline_is_known_without_a_lock)
{
  begin_plain();
  ck_assert_int_gt(lk_lease_deadline(plain.link->client), sc.server.now);
  ck_assert_uint_eq(lk_lease_pending_cleanups(plain.link->client), 0);
  model_expire(&sc.server, plain.link->last_session);
  sc.server.down = true;
  model_drop(plain.link);
  sc.server.down = false;
  model_turn(&sc.server);
  ck_assert_int_eq(lk_client_close(plain.link->client, NULL, NULL), 0);
  ck_assert_int_eq(lk_lease_deadline(plain.link->client), INT64_MIN);
  end_plain();
}
END_TEST

START_TEST(options_are_chosen_once)
{
  lk_lease_config sync = {.size = sizeof sync, .assurance = LK_ASSURE_SYNC};
  lk_lease_config other = {.size = sizeof other};
  lk_client *c;

  begin_plain();
  c = plain.link->client;
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
  end_plain();
}
END_TEST

START_TEST(the_first_lock_chooses_the_defaults)
{
  lk_lease_config sync = {.size = sizeof sync, .assurance = LK_ASSURE_SYNC};
  lk_lock *l;

  begin_plain();
  ck_assert_int_eq(lk_lock_new(&l, plain.link->client, "bad", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_ptr_null(l);
  ck_assert_int_eq(lk_lock_new(&l, plain.link->client, LOCKS, NULL), 0);
  lk_lock_free(l);
  ck_assert_int_eq(lk_lease_configure(plain.link->client, &sync), LK_ERR_STATE);
  ck_assert_int_eq(lk_lease_configure(plain.link->client, NULL), 0);
  end_plain();
  begin_plain(); /* a lock that could not be made chooses nothing */
  ck_assert_int_eq(lk_lock_new(&l, plain.link->client, "bad", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_lease_configure(plain.link->client, &sync), 0);
  end_plain();
}
END_TEST

START_TEST(without_memory_for_a_session_lease_no_lock_is_made)
{
  lk_lock *l;

  begin_plain();
  plain.mem.count = 0;
  plain.mem.fail_at = 1;
  ck_assert_int_eq(lk_lock_new(&l, plain.link->client, LOCKS, NULL),
                   LK_ERR_NO_MEMORY);
  ck_assert_ptr_null(l);
  plain.mem.count = 0;
  ck_assert_int_eq(lk_lease_configure(plain.link->client, NULL),
                   LK_ERR_NO_MEMORY);
  plain.mem.count = 0;
  ck_assert_int_eq(lk_lease_set_margin(plain.link->client, 1),
                   LK_ERR_NO_MEMORY);
  plain.mem.fail_at = 0;
  ck_assert_int_eq(lk_lock_new(&l, plain.link->client, LOCKS, NULL), 0);
  lk_lock_free(l);
  end_plain();
}
END_TEST

static void see_the_loss(lk_client *c, lk_state state, int err, void *arg)
{
  (void)c;
  (void)err;
  if (state == LK_STATE_EXPIRED) {
    *(int *)arg = (int)lk_lock_get_state(sc.a.lock);
  }
}

/* However late the session lease is made. */
START_TEST(locks_are_notified_of_an_expiry_before_earlier_listeners)
{
  int seen = -1;
  lk_listener listener = {.state = see_the_loss, .arg = &seen};
  lk_lock_config config = {.size = sizeof config};

  begin_plain();
  lk_client_attach(plain.link->client, &listener);
  locker_free(&sc.a);
  locker_init(&sc.a, &plain, &config);
  ck_assert_int_eq(locker_want(&sc.a, -1), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_HELD);
  sc.server.down = true;
  model_drop(plain.link);
  model_expire(&sc.server, plain.link->last_session);
  sc.server.down = false;
  model_run(&sc.server, T / 10);
  ck_assert_int_eq(seen, LK_LOCK_LOST);
  lk_client_detach(plain.link->client, &listener);
  locker_free(&sc.a);
  end_plain();
}
END_TEST

static lk_lock *last_made;

static void make_lock_and_free_client(lk_client *c, int err, void *arg)
{
  (void)err;
  (void)arg;
  ck_assert_int_eq(lk_lock_new(&last_made, c, LOCKS, NULL), 0);
  ck_assert_int_eq(lk_lease_set_margin(c, 1), 0);
  lk_client_free(c);
}

START_TEST(lock_created_on_a_closed_client_outlives_it)
{
  begin_plain();
  ck_assert_int_eq(
      lk_client_close(plain.link->client, make_lock_and_free_client, NULL), 0);
  model_turn(&sc.server);
  ck_assert_ptr_null(plain.link->client);
  ck_assert_int_eq(lk_lock_acquire(last_made, -1, NULL, NULL), LK_ERR_CLOSED);
  ck_assert(!lk_lock_ok(last_made));
  ck_assert_int_eq(lk_lock_deadline(last_made), INT64_MIN);
  lk_lock_free(last_made);
  end_plain();
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
  locker_free(&sc.a);
  lk_client_free(c);
}

/* A timer that is started on a closed client is never stopped. */
START_TEST(margin_changed_while_the_client_closes_starts_no_timer)
{
  begin(LK_ASSURE_QUORUM);
  scene_hold(&sc);
  sc.a.react = change_margin_at_the_end;
  ck_assert_int_eq(lk_client_close(sc.one.link->client, free_all, NULL), 0);
  model_turn(&sc.server);
  ck_assert(locker_told(&sc.a, "lost CLOSED\n"));
  ck_assert_ptr_null(sc.one.link->client);
  scene_end(&sc);
}
END_TEST

/* A release without a limit ends when the client is CLOSED already. */
START_TEST(margin_changed_on_a_closed_client_starts_no_timer)
{
  begin(LK_ASSURE_QUORUM);
  scene_hold(&sc);
  sc.a.react = change_margin_at_the_end;
  sc.one.link->frozen = true;
  ck_assert_int_eq(
      lk_lock_release_until(sc.a.lock, LK_NO_LIMIT, on_released, &sc.a), 0);
  ck_assert_int_eq(lk_client_close(sc.one.link->client, free_all, NULL), 0);
  model_run(&sc.server, T / 2);
  ck_assert_int_ne(sc.a.released, NOT_YET);
  ck_assert_ptr_null(sc.one.link->client);
  model_expire(&sc.server, sc.one.link->last_session);
  scene_end(&sc);
}
END_TEST

START_TEST(the_margin_can_be_changed_while_held)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&sc.server, T);
  lk_lease_set_margin(sc.one.link->client, T / 2);
  sc.one.link->frozen = true;
  int64_t deadline = lk_lock_deadline(sc.a.lock);

  model_run(&sc.server, deadline - T / 2 - sc.server.now - 1);
  ck_assert(locker_told(&sc.a, ""));
  model_run(&sc.server, 1);
  ck_assert(locker_told(&sc.a, "unsure\n"));
  sc.one.link->frozen = false;
  model_turn(&sc.server);
  sc.a.told[0] = '\0';
  lk_lease_set_margin(sc.one.link->client, MARGIN);
  model_turn(&sc.server);
  ck_assert(locker_told(&sc.a, "held\n"));
  model_run(&sc.server, T);
  /* so large a one leaves no time to be sure, and proof is asked for at once */
  sc.a.told[0] = '\0';
  sc.one.link->log[0] = '\0';
  lk_lease_set_margin(sc.one.link->client, T);
  model_turn(&sc.server);
  ck_assert(locker_told(&sc.a, "unsure\n"));
  ck_assert(model_said(sc.one.link, "multi"));
  scene_end(&sc);
}
END_TEST

/* ---- verify and guarded ------------------------------------------------ */

START_TEST(a_verify_proves_and_renews)
{
  begin_held(LK_ASSURE_QUORUM);
  model_run(&sc.server, T / 4 - 10);
  int64_t before = lk_lock_deadline(sc.a.lock);

  sc.one.link->log[0] = '\0';
  ck_assert_int_eq(locker_verify(&sc.a), 0);
  ck_assert_int_eq(lk_lock_verify(sc.a.lock, NULL, NULL), LK_ERR_STATE);
  ck_assert_int_eq(sc.a.verified, NOT_YET);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.a.verified, 0);
  ck_assert(model_said(sc.one.link, "multi getData"));
  ck_assert_int_ge(lk_lock_deadline(sc.a.lock), before);
  /* from now on its node is watched */
  model_delete(&sc.server, lk_lock_node(sc.a.lock));
  model_turn(&sc.server);
  ck_assert(locker_told(&sc.a, "lost NO_NODE\n"));
  scene_end(&sc);
}
END_TEST

START_TEST(verify_without_a_connection_has_no_result)
{
  begin_held(LK_ASSURE_QUORUM);
  sc.one.link->cut_at = sc.one.link->requests + 1;
  sc.one.link->cut_after = true;
  ck_assert_int_eq(locker_verify(&sc.a), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.a.verified, LK_ERR_UNSURE);
  scene_end(&sc);
}
END_TEST

START_TEST(verify_ends_with_the_release_and_with_the_handle)
{
  begin_held(LK_ASSURE_QUORUM);
  ck_assert_int_eq(locker_verify(&sc.a), 0);
  ck_assert_int_eq(lk_lock_release(sc.a.lock, NULL, NULL), 0);
  ck_assert_int_eq(sc.a.verified, LK_ERR_NOT_HELD);
  model_turn(&sc.server);
  scene_hold(&sc);
  ck_assert_int_eq(locker_verify(&sc.a), 0);
  locker *l = &sc.a;

  lk_lock_free(l->lock);
  ck_assert_int_eq(l->verified, LK_ERR_CLOSED);
  l->lock = NULL;
  scene_end(&sc);
}
END_TEST

typedef struct outcome {
  int err;
  size_t count;
  int first;
} outcome;

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  outcome *o = arg;

  ck_assert_ptr_eq(c, sc.one.link->client);
  ck_assert_int_eq(o->err, NOT_YET);
  o->err = err;
  o->count = count;
  o->first = count > 0 ? results[0].err : NOT_YET;
}

START_TEST(a_guarded_write_happens_only_while_held)
{
  outcome o = {.err = NOT_YET};
  lk_op ops[] = {lk_op_set("/locks", lk_text("1"), -1),
                 lk_op_create("/made", lk_bytes_of("", 0), NULL, 0)};

  begin(LK_ASSURE_QUORUM);
  ck_assert_int_eq(
      lk_lock_guarded_multi(sc.a.lock, ops, 2, NULL, on_guarded, &o),
      LK_ERR_NOT_HELD);
  scene_hold(&sc);
  ck_assert_int_eq(
      lk_lock_guarded_multi(sc.a.lock, ops, 2, NULL, on_guarded, &o), 0);
  model_turn(&sc.server);
  ck_assert(o.err == 0 && o.count == 2 && o.first == 0);
  ck_assert_ptr_nonnull(model_node(&sc.server, "/made"));
  /* its own errors are its own */
  o.err = NOT_YET;
  ck_assert_int_eq(
      lk_lock_guarded_multi(sc.a.lock, ops + 1, 1, NULL, on_guarded, &o), 0);
  model_turn(&sc.server);
  ck_assert(o.err == LK_ERR_NODE_EXISTS && o.count == 1 &&
            o.first == LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(lk_lock_get_state(sc.a.lock), LK_LOCK_HELD);
  /* and without our node nothing is done */
  o.err = NOT_YET;
  model_delete(&sc.server, "/made");
  model_delete(&sc.server, lk_lock_node(sc.a.lock));
  ck_assert_int_eq(
      lk_lock_guarded_multi(sc.a.lock, ops, 2, NULL, on_guarded, &o), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(o.err, LK_ERR_LOST);
  ck_assert_ptr_null(model_node(&sc.server, "/made"));
  ck_assert(locker_told(&sc.a, "lost NO_NODE\n"));
  ck_assert_int_eq(
      lk_lock_guarded_multi(sc.a.lock, ops, 2, NULL, on_guarded, &o),
      LK_ERR_LOST);
  scene_end(&sc);
}
END_TEST

START_TEST(a_guarded_write_outlives_its_lock)
{
  outcome o = {.err = NOT_YET};
  lk_op op = lk_op_set("/locks", lk_text("1"), -1);

  begin_held(LK_ASSURE_QUORUM);
  ck_assert_int_eq(
      lk_lock_guarded_multi(sc.a.lock, &op, 1, NULL, on_guarded, &o), 0);
  locker_free(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(o.err, 0);
  scene_end(&sc);
}
END_TEST

SUITE("session_lease", holder_sends_a_heartbeat_each_quarter_of_the_timeout,
      heartbeat_answered_late_is_followed_sooner,
      heartbeat_is_due_after_the_reply_to_the_last,
      other_assurances_send_sync_or_ping,
      next_holder_checks_its_node_and_other_waiters_sync,
      holder_that_waited_is_watched_already, idle_lock_sends_no_heartbeat,
      without_trouble_the_deadline_is_half_a_timeout_away,
      a_grant_after_long_idleness_is_never_unsure,
      grant_on_old_evidence_sends_a_heartbeat_sooner,
      many_nodes_are_checked_in_several_multis,
      throttled_heartbeat_is_repeated_soon,
      silent_server_makes_unsure_and_a_reply_held_again,
      evidence_alone_does_not_make_held, sync_makes_an_unsure_lock_held_again,
      with_ping_assurance_a_read_of_the_own_node_is_proof,
      lock_with_an_unreadable_node_becomes_held_again,
      heartbeat_detects_a_deletion_without_an_event,
      node_that_may_not_be_read_any_more_is_reported_by_the_heartbeat,
      unsure_holder_without_a_node_does_not_become_held,
      suspended_is_reported_and_the_deadline_stays,
      a_short_break_is_no_reason_to_be_unsure,
      lock_can_become_unsure_as_soon_as_the_connection_breaks,
      deadline_timer_runs_again_when_the_lock_is_held_again,
      node_deleted_during_a_break_is_a_loss,
      long_break_makes_unsure_and_then_lost,
      lock_is_unsure_after_a_pause_of_the_process,
      stale_event_after_a_pause_grants_nothing,
      slow_callback_delays_the_grant_until_new_evidence,
      next_holder_is_granted_by_the_deletion_alone_after_any_time,
      grant_on_old_evidence_sends_a_check_first,
      a_grant_needs_a_quarter_of_the_timeout,
      lease_that_ends_between_two_clock_readings_blocks_no_waiter,
      shorter_session_timeout_shortens_the_lease,
      holder_with_a_shorter_session_timeout_is_notified_in_time,
      lock_made_after_a_minute_of_traffic_is_granted_without_a_check,
      deadline_is_known_without_a_lock, options_are_chosen_once,
      the_first_lock_chooses_the_defaults,
      without_memory_for_a_session_lease_no_lock_is_made,
      locks_are_notified_of_an_expiry_before_earlier_listeners,
      lock_created_on_a_closed_client_outlives_it,
      margin_changed_while_the_client_closes_starts_no_timer,
      margin_changed_on_a_closed_client_starts_no_timer,
      the_margin_can_be_changed_while_held, a_verify_proves_and_renews,
      verify_without_a_connection_has_no_result,
      verify_ends_with_the_release_and_with_the_handle,
      a_guarded_write_happens_only_while_held,
      a_guarded_write_outlives_its_lock)
