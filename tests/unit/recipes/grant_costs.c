/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The cost of a grant: the requests that the client sends until the grant, and
 * in how many writes. It is counted from the call, or from the deletion of the
 * predecessor. Each write is one round trip.
 */

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/semaphore.h>

enum {
  STEP = 37, /* ms by which time advances; T and its parts are no multiples of
                it */
  SHORT = T / 8, /* ms; after this wait the evidence of the create is still
                    young enough */
  LONG = 3 * T + 100
};

static lock_pair lp;
static char sent[512]; /* requests of the granted client until the grant */

static void note_grant(locker *l, const char *what)
{
  if (strcmp(what, "acquired") != 0)
    return;
  ck_assert_uint_lt(strlen(l->p->link->log), sizeof sent);
  strcpy(sent, l->p->link->log);
}

static void begin(lk_assurance assurance)
{
  lk_lease_config c = {.size = sizeof c, .assurance = assurance};

  lock_pair_begin(&lp, &c, NULL);
  lp.a.react = note_grant;
  lp.b.react = note_grant;
}

/* Forget the requests that were sent so far. */
static void count_from_here(void)
{
  strcpy(sent, "no grant");
  lp.one.link->log[0] = '\0';
  lp.two.link->log[0] = '\0';
}

/* Checks that the client of `l` is granted and has sent these requests for it;
 * " | " separates two writes. With quorum assurance, a quarter of the timeout
 * must be left. */
static void expect_grant(const locker *l, lk_assurance assurance,
                         const char *requests)
{
  ck_assert_int_eq(l->acquired, 0);
  ck_assert_str_eq(sent, requests);
  if (assurance == LK_ASSURE_QUORUM)
    ck_assert_int_ge(lk_lock_deadline(l->lock), lp.server.now + T / 4);
}

/* ---- a free lock --------------------------------------------------------- */

static void acquire_after(lk_assurance assurance, int64_t idle_ms)
{
  begin(assurance);
  model_run(&lp.server, idle_ms);
  count_from_here();
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  expect_grant(&lp.a, assurance, "create2 getChildren2");
  ck_assert(model_check_log(lp.one.link, "create2 getChildren2"));
  lock_pair_end(&lp);
}

START_TEST(uncontended_acquire_of_an_idle_session_is_one_write)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    for (int64_t idle_ms = 0; idle_ms < 2 * T; idle_ms += STEP)
      acquire_after((lk_assurance)a, idle_ms);
  }
}
END_TEST

/* A session with regular requests: the client sends no pings. */
START_TEST(uncontended_acquire_of_a_live_session_is_one_write)
{
  for (int64_t pause_ms = STEP; pause_ms < T / 3; pause_ms += STEP) {
    begin(LK_ASSURE_QUORUM);
    for (int64_t ms = 0; ms < 2 * T; ms += pause_ms) {
      ck_assert_int_eq(
          lk_exists(lp.one.link->client, "/locks", NULL, NULL, NULL), 0);
      model_run(&lp.server, pause_ms);
    }
    count_from_here();
    ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
    model_turn(&lp.server);
    expect_grant(&lp.a, LK_ASSURE_QUORUM, "create2 getChildren2");
    lock_pair_end(&lp);
  }
}
END_TEST

/* ---- handoff ------------------------------------------------------------- */

START_TEST(handoff_to_the_only_waiter_sends_nothing_however_long_it_waited)
{
  for (int a = LK_ASSURE_QUORUM; a <= LK_ASSURE_PING; a++) {
    for (int64_t wait_ms = 0; wait_ms < 3 * T; wait_ms += STEP) {
      begin((lk_assurance)a);
      lock_pair_queue(&lp);
      model_run(&lp.server, wait_ms);
      count_from_here();
      locker_release(&lp.a);
      model_turn(&lp.server);
      expect_grant(&lp.b, (lk_assurance)a, "");
      ck_assert(model_check_log(lp.one.link, "delete"));
      lock_pair_end(&lp);
    }
  }
}
END_TEST

/* b waits behind two locks of another session, which are released together
 * after `wait_ms`. */
static void wait_behind_two(lk_assurance assurance, int64_t wait_ms)
{
  begin(assurance);
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/x-lock-0000000001");
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_run(&lp.server, wait_ms);
  count_from_here();
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_delete(&lp.server, LOCKS "/x-lock-0000000001");
  model_turn(&lp.server);
}

START_TEST(handoff_after_a_short_wait_sends_no_check)
{
  for (int64_t wait_ms = 0; wait_ms <= SHORT; wait_ms += STEP) {
    wait_behind_two(LK_ASSURE_QUORUM, wait_ms);
    expect_grant(&lp.b, LK_ASSURE_QUORUM, "getData");
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(handoff_after_a_long_wait_sends_check_and_list_in_one_write)
{
  for (int64_t wait_ms = LONG; wait_ms < LONG + T / 2; wait_ms += STEP) {
    wait_behind_two(LK_ASSURE_QUORUM, wait_ms);
    expect_grant(&lp.b, LK_ASSURE_QUORUM, "getData | multi getChildren2");
    /* no heartbeat follows, since the check was one */
    ck_assert(model_check_log(lp.two.link, "getData | multi getChildren2"));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(handoff_without_quorum_assurance_never_sends_a_check)
{
  for (int a = LK_ASSURE_SYNC; a <= LK_ASSURE_PING; a++) {
    wait_behind_two((lk_assurance)a, LONG);
    expect_grant(&lp.b, (lk_assurance)a, "getData");
    lock_pair_end(&lp);
  }
}
END_TEST

/* ---- permits ------------------------------------------------------------- */

/* a has the only permit, and b is the first that waits for one. b holds its
 * queue node, so its heartbeats check that node. */
static void hand_permit_over(int64_t wait_ms)
{
  lk_semaphore_config one = {.size = sizeof one, .permits = 1};
  locker *both[] = {&lp.a, &lp.b};

  begin(LK_ASSURE_QUORUM);
  for (int i = 0; i < 2; i++) {
    lk_lock_free(both[i]->lock);
    ck_assert_int_eq(lk_semaphore_new(&both[i]->lock, both[i]->p->link->client,
                                      LOCKS, NULL, &one),
                     0);
    ck_assert_int_eq(locker_acquire(both[i], LK_NO_LIMIT), 0);
    model_turn(&lp.server);
  }
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_run(&lp.server, wait_ms);
  count_from_here();
  locker_release(&lp.a);
  model_turn(&lp.server);
  expect_grant(&lp.b, LK_ASSURE_QUORUM, "getChildren2");
  locker_release(&lp.b);
  model_turn(&lp.server);
  model_delete(&lp.server, LOCKS "/locks");
  model_delete(&lp.server, LOCKS "/leases");
  lock_pair_end(&lp);
}

START_TEST(handoff_of_a_permit_sends_the_list_alone_however_long_it_waited)
{
  for (int64_t wait_ms = 0; wait_ms < 3 * T; wait_ms += STEP)
    hand_permit_over(wait_ms);
}
END_TEST

SUITE("grant_costs", uncontended_acquire_of_an_idle_session_is_one_write,
      uncontended_acquire_of_a_live_session_is_one_write,
      handoff_to_the_only_waiter_sends_nothing_however_long_it_waited,
      handoff_after_a_short_wait_sends_no_check,
      handoff_after_a_long_wait_sends_check_and_list_in_one_write,
      handoff_without_quorum_assurance_never_sends_a_check,
      handoff_of_a_permit_sends_the_list_alone_however_long_it_waited)
