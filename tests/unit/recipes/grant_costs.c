/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The cost of a grant: the requests that the client sends until the grant, and
 * in how many writes. It is counted from the call, or from the deletion of the
 * predecessor. Each write is one round trip.
 */

#include "recipes/queue/predecessors.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/semaphore.h>

enum {
  STEP_MS = 37, /* between two times to be tried; no divisor of T */
  /* The reply to the create still proves the lease after a short wait, but not
   * after a long one. */
  SHORT_WAIT_MS = T / 8,
  LONG_WAIT_MS = 3 * T + 100
};

static const lk_assurance all_assurances[] = {LK_ASSURE_QUORUM, LK_ASSURE_SYNC,
                                              LK_ASSURE_PING};
static const lk_assurance weak_assurances[] = {LK_ASSURE_SYNC, LK_ASSURE_PING};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

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

/* Only requests from here on count as the cost of the next grant. */
static void forget_requests(void)
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

/* A free lock is acquired after `idle_ms` without a request. */
static void acquire_in_one_write(lk_assurance assurance, int64_t idle_ms)
{
  begin(assurance);
  model_run(&lp.server, idle_ms);
  forget_requests();
  locker_request(&lp.a);
  expect_grant(&lp.a, assurance, "create2 getChildren2");
  /* nothing is sent after the grant */
  ck_assert(model_check_log(lp.one.link, "create2 getChildren2"));
  lock_pair_end(&lp);
}

START_TEST(uncontended_acquire_of_an_idle_session_is_one_write)
{
  for (size_t i = 0; i < COUNT(all_assurances); i++) {
    for (int64_t idle_ms = 0; idle_ms < 2 * T; idle_ms += STEP_MS)
      acquire_in_one_write(all_assurances[i], idle_ms);
  }
}
END_TEST

/* A session with regular requests: the client sends no pings. */
START_TEST(uncontended_acquire_of_a_live_session_is_one_write)
{
  for (int64_t pause_ms = STEP_MS; pause_ms < T / 3; pause_ms += STEP_MS) {
    begin(LK_ASSURE_QUORUM);
    for (int64_t ms = 0; ms < 2 * T; ms += pause_ms) {
      ck_assert_int_eq(
          lk_exists(lp.one.link->client, "/locks", NULL, NULL, NULL), 0);
      model_run(&lp.server, pause_ms);
    }
    forget_requests();
    locker_request(&lp.a);
    expect_grant(&lp.a, LK_ASSURE_QUORUM, "create2 getChildren2");
    lock_pair_end(&lp);
  }
}
END_TEST

/* ---- handoff ------------------------------------------------------------- */

START_TEST(handoff_to_the_only_waiter_sends_nothing_however_long_it_waited)
{
  for (size_t i = 0; i < COUNT(all_assurances); i++) {
    for (int64_t wait_ms = 0; wait_ms < 3 * T; wait_ms += STEP_MS) {
      begin(all_assurances[i]);
      lock_pair_queue(&lp);
      model_run(&lp.server, wait_ms);
      forget_requests();
      locker_release(&lp.a);
      model_turn(&lp.server);
      expect_grant(&lp.b, all_assurances[i], "");
      ck_assert(model_check_log(lp.one.link, "delete"));
      lock_pair_end(&lp);
    }
  }
}
END_TEST

/* b waits behind two nodes of another session, which are deleted together after
 * `wait_ms`. The deletion of the direct predecessor notifies b. */
static void wait_behind_two(int64_t wait_ms)
{
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/x-lock-0000000001");
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_run(&lp.server, wait_ms);
  forget_requests();
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_delete(&lp.server, LOCKS "/x-lock-0000000001");
  model_turn(&lp.server);
}

START_TEST(handoff_after_a_short_wait_sends_the_list_alone)
{
  for (int64_t wait_ms = 0; wait_ms <= SHORT_WAIT_MS; wait_ms += STEP_MS) {
    begin(LK_ASSURE_QUORUM);
    wait_behind_two(wait_ms);
    expect_grant(&lp.b, LK_ASSURE_QUORUM, "getChildren2");
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(handoff_after_a_long_wait_sends_check_and_list_in_one_write)
{
  for (int64_t wait_ms = LONG_WAIT_MS; wait_ms < LONG_WAIT_MS + T / 2;
       wait_ms += STEP_MS) {
    begin(LK_ASSURE_QUORUM);
    wait_behind_two(wait_ms);
    expect_grant(&lp.b, LK_ASSURE_QUORUM, "multi getChildren2");
    /* no heartbeat follows, since the check was one */
    ck_assert(model_check_log(lp.two.link, "multi getChildren2"));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(handoff_without_quorum_assurance_never_sends_a_check)
{
  for (size_t i = 0; i < COUNT(weak_assurances); i++) {
    begin(weak_assurances[i]);
    wait_behind_two(LONG_WAIT_MS);
    expect_grant(&lp.b, weak_assurances[i], "getChildren2");
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(handoff_in_a_long_list_sends_reads_alone)
{
  begin(LK_ASSURE_QUORUM);
  lock_pair_add_others(&lp, LK_SHORT_LIST);
  wait_behind_two(0);
  expect_grant(&lp.b, LK_ASSURE_QUORUM, "getData getData");
  lock_pair_delete_others(&lp, LK_SHORT_LIST);
  lock_pair_end(&lp);
}
END_TEST

/* In a long queue, the deletion of a predecessor may be one of many. */
START_TEST(deletion_in_a_long_queue_sends_no_check)
{
  enum { OTHERS = 10 };

  begin(LK_ASSURE_QUORUM);
  lock_pair_add_others(&lp, LK_SHORT_LIST);
  for (int i = 0; i < OTHERS; i++) {
    char path[64];

    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_create(&lp.server, path);
  }
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_run(&lp.server, LONG_WAIT_MS);
  lp.two.link->log[0] = '\0';
  for (int i = OTHERS - 1; i >= 0; i--) {
    char path[64];

    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_delete(&lp.server, path);
    if (i == OTHERS - 1) {
      model_turn(&lp.server);
      ck_assert(model_check_log(lp.two.link, "getChildren2 | getData"));
    }
  }
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_delete_others(&lp, LK_SHORT_LIST);
  lock_pair_end(&lp);
}
END_TEST

/* Contenders that each queue again after their hold: a turn is five requests,
 * and the create and the delete are its quorum writes. */
START_TEST(turn_of_several_contenders_is_five_requests_in_three_writes)
{
  enum { CONTENDERS = 5, TURNS = 20 };
  test_client clients[CONTENDERS];
  locker contenders[CONTENDERS];

  begin(LK_ASSURE_QUORUM);
  for (int i = 0; i < CONTENDERS; i++) {
    test_client_init(&clients[i], &lp.server, NULL);
    locker_init(&contenders[i], &clients[i], NULL);
    locker_request(&contenders[i]);
  }
  for (int turn = 0; turn < TURNS; turn++) {
    locker *l = &contenders[turn % CONTENDERS];

    size_t allocations = l->p->mem.count;

    ck_assert_int_eq(l->acquired, 0);
    l->p->link->log[0] = '\0';
    locker_release(l);
    locker_request(l);
    ck_assert(
        model_check_log(l->p->link, "delete create2 getChildren2 | getData"));
    /* the contender, and the paths of its predecessors */
    if (turn >= CONTENDERS)
      ck_assert_uint_eq(l->p->mem.count - allocations, 2);
    l = &contenders[(turn + 1) % CONTENDERS];
    ck_assert_int_eq(l->acquired, 0);
    if (turn >= CONTENDERS) /* before, the logs have the first acquires */
      ck_assert(model_check_log(l->p->link, "getChildren2"));
  }
  for (int i = 0; i < CONTENDERS; i++)
    locker_free(&contenders[i]);
  model_turn(&lp.server);
  for (int i = 0; i < CONTENDERS; i++)
    test_client_free(&clients[i]);
  lock_pair_end(&lp);
}
END_TEST

/* ---- permits ------------------------------------------------------------- */

/* a has the only permit, and b is the first that waits for one. b holds its
 * queue node, so its heartbeats check that node. */
static void hand_permit_over(int64_t wait_ms)
{
  lk_semaphore_config one_permit = {.size = sizeof one_permit, .permits = 1};
  locker *both[] = {&lp.a, &lp.b};

  begin(LK_ASSURE_QUORUM);
  for (int i = 0; i < 2; i++) {
    lk_lock_free(both[i]->lock);
    ck_assert_int_eq(lk_semaphore_new(&both[i]->lock, both[i]->p->link->client,
                                      LOCKS, NULL, &one_permit),
                     0);
    locker_request(both[i]);
  }
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_run(&lp.server, wait_ms);
  forget_requests();
  locker_release(&lp.a);
  model_turn(&lp.server);
  expect_grant(&lp.b, LK_ASSURE_QUORUM, "getChildren2");
  locker_release(&lp.b);
  model_turn(&lp.server);
  /* the directories that the semaphore has created */
  model_delete(&lp.server, LOCKS "/locks");
  model_delete(&lp.server, LOCKS "/leases");
  lock_pair_end(&lp);
}

START_TEST(handoff_of_a_permit_sends_the_list_alone_however_long_it_waited)
{
  for (int64_t wait_ms = 0; wait_ms < 3 * T; wait_ms += STEP_MS)
    hand_permit_over(wait_ms);
}
END_TEST

SUITE("grant_costs", uncontended_acquire_of_an_idle_session_is_one_write,
      uncontended_acquire_of_a_live_session_is_one_write,
      handoff_to_the_only_waiter_sends_nothing_however_long_it_waited,
      handoff_after_a_short_wait_sends_the_list_alone,
      handoff_after_a_long_wait_sends_check_and_list_in_one_write,
      handoff_without_quorum_assurance_never_sends_a_check,
      handoff_in_a_long_list_sends_reads_alone,
      deletion_in_a_long_queue_sends_no_check,
      turn_of_several_contenders_is_five_requests_in_three_writes,
      handoff_of_a_permit_sends_the_list_alone_however_long_it_waited)
