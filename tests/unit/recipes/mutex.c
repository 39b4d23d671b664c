/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"
#include "recipes/queue/predecessors.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/leader.h>
#include <latchkey/member.h>

/* The mutex without failures: costs, nodes, the queue and arguments. The
 * event "waiting 2 0000000000" says that there are two predecessors, and that
 * the first one, the holder, has the number 0. */

static lock_pair lp;

static void begin(void)
{
  lock_pair_begin(&lp, NULL, NULL);
}

static void begin_queue(void)
{
  begin();
  lock_pair_queue(&lp);
}

static void begin_held(void)
{
  begin();
  lock_pair_hold(&lp);
}

START_TEST(every_lock_state_and_event_has_a_text)
{
  for (int i = LK_LOCK_IDLE; i <= LK_LOCK_LOST; i++) {
    const char *text = lk_lock_state_text((lk_lock_state)i);

    ck_assert_str_ne(text, "unknown state");
    for (int k = LK_LOCK_IDLE; k < i; k++)
      ck_assert_str_ne(text, lk_lock_state_text((lk_lock_state)k));
  }
  ck_assert_str_eq(lk_lock_state_text((lk_lock_state)(LK_LOCK_LOST + 1)),
                   "unknown state");
  for (int i = LK_LOCK_EVENT_WAITING; i <= LK_LOCK_EVENT_REVOKED; i++) {
    const char *text = lk_lock_event_text((lk_lock_event_type)i);

    ck_assert_str_ne(text, "unknown event");
    for (int k = LK_LOCK_EVENT_WAITING; k < i; k++)
      ck_assert_str_ne(text, lk_lock_event_text((lk_lock_event_type)k));
  }
  ck_assert_str_eq(
      lk_lock_event_text((lk_lock_event_type)(LK_LOCK_EVENT_REVOKED + 1)),
      "unknown event");
}
END_TEST

/* ---- costs --------------------------------------------------------------- */

/* The session of the short holds has a lease already, since `a` is held. */
START_TEST(short_hold_costs_three_requests_with_other_locks_held)
{
  enum { HOLDS = 40 };
  locker other;

  begin_held();
  model_run(&lp.server, T);
  /* a watch on the own node of a, and four heartbeats in a timeout */
  ck_assert(
      model_check_log(lp.one.link, "getData multi | multi | multi | multi"));
  locker_clear(&other, &lp.one);
  ck_assert_int_eq(
      lk_lock_new(&other.lock, lp.one.link->client, "/locks/y", NULL), 0);
  model_create(&lp.server, "/locks/y");
  for (int i = 0; i < HOLDS; i++) {
    ck_assert_int_eq(lk_lock_acquire(other.lock, LK_NO_LIMIT, NULL, NULL), 0);
    model_run(&lp.server, T / 5);
    ck_assert_int_eq(lk_lock_release(other.lock, NULL, NULL), 0);
    model_turn(&lp.server);
  }
  ck_assert_uint_eq(model_count(lp.one.link, "create2"), HOLDS);
  ck_assert_uint_eq(model_count(lp.one.link, "getChildren2"), HOLDS);
  ck_assert_uint_eq(model_count(lp.one.link, "delete"), HOLDS);
  ck_assert_uint_eq(model_count(lp.one.link, "getData"), 0);
  /* each hold is a fifth of a timeout: only the heartbeats of a are sent */
  ck_assert_uint_le(model_count(lp.one.link, "multi"), 4 * HOLDS / 5);
  locker_free(&other);
  lock_pair_end(&lp);
}
END_TEST

/* ---- nodes, tokens and positions ----------------------------------------- */

/* ---- queue ------------------------------------------------------------- */

enum { CROWD = 24 };

START_TEST(deletion_notifies_one_waiter_only)
{
  test_client crowd[CROWD];
  locker lockers[CROWD];

  begin_held();
  for (int i = 0; i < CROWD; i++) {
    test_client_init(&crowd[i], &lp.server, NULL);
    locker_init(&lockers[i], &crowd[i], NULL);
    model_turn(&lp.server);
    locker_request(&lockers[i]);
    crowd[i].link->log[0] = '\0';
  }
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lockers[0].acquired, 0);
  for (int i = 1; i < CROWD; i++)
    ck_assert(model_check_log(crowd[i].link, ""));
  for (int i = 0; i < CROWD; i++)
    locker_free(&lockers[i]);
  model_turn(&lp.server);
  for (int i = 0; i < CROWD; i++)
    test_client_free(&crowd[i]);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(waiter_is_notified_of_its_position_and_the_holder)
{
  locker crowd[4];

  begin_queue();
  for (int i = 0; i < 4; i++) {
    locker_init(&crowd[i], &lp.one, NULL);
    locker_request(&crowd[i]);
  }
  ck_assert(locker_check_events(&crowd[0], "waiting 2 0000000000\n"));
  ck_assert(locker_check_events(&crowd[3], "waiting 5 0000000000\n"));
  lk_lock_cancel(crowd[2].lock); /* the direct predecessor of crowd[3] */
  model_turn(&lp.server);
  ck_assert(locker_check_events(&crowd[3], "waiting 4 0000000000\n"));
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  model_turn(&lp.server);
  /* only the deletion of its direct predecessor notifies it */
  ck_assert(locker_check_events(&crowd[3], ""));
  lk_lock_cancel(crowd[1].lock);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&crowd[3], "waiting 2 0000000001\n"));
  for (int i = 0; i < 4; i++)
    locker_free(&crowd[i]);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(predecessor_deleted_in_a_long_list_costs_up_to_eight_reads_or_a_list)
{
  locker crowd[12];
  test_client third;
  locker waiter; /* behind the crowd */

  begin();
  lock_pair_add_others(&lp, LK_SHORT_LIST);
  test_client_init(&third, &lp.server, NULL);
  locker_init(&waiter, &third, NULL);
  for (int i = 0; i < 12; i++) {
    locker_init(&crowd[i], &lp.one, NULL);
    locker_request(&crowd[i]);
  }
  locker_request(&waiter);
  third.link->log[0] = '\0';
  /* more than eight predecessors are left: one list costs less */
  for (int nearest = 11; nearest > 8; nearest--) {
    lk_lock_cancel(crowd[nearest].lock);
    model_turn(&lp.server);
    ck_assert(model_check_log(third.link, "getChildren2 | getData"));
  }
  /* nine predecessors: the nearest is deleted, and the other eight are read,
   * and the own node, to have it watched */
  lk_lock_cancel(crowd[8].lock);
  model_turn(&lp.server);
  ck_assert(model_check_log(third.link,
                            "getData getData getData getData getData "
                            "getData getData getData getData"));
  /* two in the middle are deleted without an event for this waiter, and then
   * the nearest */
  lk_lock_cancel(crowd[5].lock);
  lk_lock_cancel(crowd[6].lock);
  model_turn(&lp.server);
  ck_assert(model_check_log(third.link, ""));
  lk_lock_cancel(crowd[7].lock);
  model_turn(&lp.server);
  ck_assert(model_check_log(third.link,
                            "getData getData getData getData getData "
                            "getData getData | getData"));
  for (int i = 0; i < 12; i++)
    locker_free(&crowd[i]);
  model_turn(&lp.server);
  ck_assert_int_eq(waiter.acquired, 0);
  locker_free(&waiter);
  model_turn(&lp.server);
  test_client_free(&third);
  lock_pair_delete_others(&lp, LK_SHORT_LIST);
  lock_pair_end(&lp);
}
END_TEST

/* b waits behind three nodes, in a directory with `others` more. */
static void wait_behind_three(int others)
{
  lock_pair_add_others(&lp, others);
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/y-lock-0000000001");
  model_create(&lp.server, LOCKS "/z-lock-0000000002");
  locker_request(&lp.b);
  ck_assert(model_check_log(lp.two.link, "create2 getChildren2 | getData"));
}

/* A short list costs no more than the reads. */
START_TEST(predecessor_deleted_in_a_short_list_costs_a_list)
{
  enum { CONTENDERS = 4 };

  for (int longer = 0; longer <= 1; longer++) {
    int others = LK_SHORT_LIST - CONTENDERS + longer;

    begin();
    wait_behind_three(others);
    model_delete(&lp.server, LOCKS "/z-lock-0000000002");
    model_turn(&lp.server);
    ck_assert(model_check_log(lp.two.link, longer ? "getData getData getData"
                                                  : "getChildren2 | getData"));
    model_delete(&lp.server, LOCKS "/x-lock-0000000000");
    model_delete(&lp.server, LOCKS "/y-lock-0000000001");
    model_turn(&lp.server);
    ck_assert_int_eq(lp.b.acquired, 0);
    lock_pair_delete_others(&lp, others);
    lock_pair_end(&lp);
  }
}
END_TEST

/* The reads may show that one predecessor is left, or none. With the watch, the
 * next deletion grants the lock without a list. */
START_TEST(waiter_watches_its_own_node_with_the_reads)
{
  begin();
  wait_behind_three(LK_SHORT_LIST);
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_delete(&lp.server, LOCKS "/z-lock-0000000002");
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.two.link, "getData getData getData"));
  model_delete(&lp.server, LOCKS "/y-lock-0000000001");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(model_check_log(lp.two.link, ""));
  lock_pair_delete_others(&lp, LK_SHORT_LIST);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(watch_event_does_not_extend_the_timeout)
{
  locker between;

  begin_held();
  locker_init(&between, &lp.one, NULL);
  locker_request(&between);
  ck_assert_int_eq(locker_acquire(&lp.b, 300), 0);
  model_run(&lp.server, 200);
  locker_free(&between);
  model_turn(&lp.server);
  ck_assert(locker_check_events(
      &lp.b, "waiting 2 0000000000\nwaiting 1 0000000000\n"));
  model_run(&lp.server, 100);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_run(&lp.server, 1);
  ck_assert_int_eq(lp.b.acquired, LK_ERR_DEADLINE);
  lock_pair_end(&lp);
}
END_TEST

/* ---- re-entrance and release ------------------------------------------- */

/* ---- directories ------------------------------------------------------- */

START_TEST(directories_can_be_persistent_nodes)
{
  lk_lock_config c = {.size = sizeof c, .persistent_parents = true};
  lk_lock *l;

  begin();
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/a/b", &c), 0);
  ck_assert_int_eq(lk_lock_acquire(l, LK_NO_LIMIT, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lk_lock_get_state(l), LK_LOCK_HELD);
  ck_assert(model_check_log(lp.one.link, "create2 getChildren2 | create create "
                                         "create2 getChildren2"));
  ck_assert(!model_node(&lp.server, "/a/b")->container);
  lk_lock_free(l);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(a_server_without_containers_is_remembered)
{
  lk_lock *l;

  begin();
  lp.server.no_containers = true;
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/a/b", NULL), 0);
  ck_assert_int_eq(lk_lock_acquire(l, LK_NO_LIMIT, NULL, NULL), 0);
  model_run(&lp.server, T / 2);
  ck_assert_int_eq(lk_lock_get_state(l), LK_LOCK_HELD);
  ck_assert_int_eq(lk_lock_release(l, NULL, NULL), 0);
  lk_lock_free(l);
  model_turn(&lp.server);
  model_delete(&lp.server, "/a/b");
  lp.one.link->log[0] = '\0';
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/a/b", NULL), 0);
  ck_assert_int_eq(lk_lock_acquire(l, LK_NO_LIMIT, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.one.link, "create2 getChildren2 | create create "
                                         "create2 getChildren2"));
  lk_lock_free(l);
  lock_pair_end(&lp);
}
END_TEST

/* Deletes the lock directory /a before a node is created in it. */
static void delete_directory_before_create(model_server *s, model_link *l,
                                           int32_t op, const char *path)
{
  (void)l;
  if (op == LK_OPCODE_CREATE2 && strncmp(path, "/a/", 3) == 0 &&
      model_node(s, "/a") != NULL)
    model_delete(s, "/a");
}

START_TEST(acquire_fails_when_the_directory_is_deleted_ten_times)
{
  locker l;

  begin();
  locker_clear(&l, &lp.one);
  ck_assert_int_eq(lk_lock_new(&l.lock, lp.one.link->client, "/a", NULL), 0);
  lp.server.before = delete_directory_before_create;
  locker_request(&l);
  ck_assert_int_eq(l.acquired, LK_ERR_NO_NODE);
  /* in the missing directory, and in ten that are deleted */
  ck_assert_uint_eq(model_count(lp.one.link, "create2"), 11);
  lp.server.before = NULL;
  locker_request(&l);
  ck_assert_int_eq(l.acquired, 0);
  locker_free(&l);
  lock_pair_end(&lp);
}
END_TEST

static unsigned creates;

/* The directory is deleted before each of seven creates. The eighth succeeds,
 * and the own node is deleted before the list. Then the directory is deleted
 * before each of seven creates again. */
static void delete_directory_seven_times_twice(model_server *s, model_link *l,
                                               int32_t op, const char *path)
{
  if (op == LK_OPCODE_CREATE2 && ++creates % 8 != 0)
    delete_directory_before_create(s, l, op, path);
  if (op == LK_OPCODE_GET_CHILDREN2 && creates == 8 &&
      model_children(s, "/a") > 0)
    model_delete(s, model_child(s, "/a", 0));
}

START_TEST(only_consecutive_deletions_of_the_directory_count)
{
  locker l;

  begin();
  locker_clear(&l, &lp.one);
  ck_assert_int_eq(lk_lock_new(&l.lock, lp.one.link->client, "/a", NULL), 0);
  creates = 0;
  lp.server.before = delete_directory_seven_times_twice;
  locker_request(&l);
  ck_assert_int_eq(l.acquired, 0);
  ck_assert_uint_eq(creates, 16);
  locker_free(&l);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(nodes_have_the_configured_access_lists)
{
  lk_acl node_acl[] = {{LK_PERM_ALL, lk_text("digest"), lk_text("me:x")},
                       {LK_PERM_READ, lk_text("world"), lk_text("anyone")}};
  lk_acl directory_acl[] = {{LK_PERM_READ | LK_PERM_CREATE | LK_PERM_DELETE,
                             lk_text("ip"), lk_text("127.0.0.1")}};
  lk_acls of_nodes = {node_acl, 2}, of_directory = {directory_acl, 1};
  lk_lock_config c = {
      .size = sizeof c, .acl = &of_nodes, .parent_acl = &of_directory};
  lk_lock *l;

  begin();
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/a", &c), 0);
  memset(node_acl, 0, sizeof node_acl); /* the lock has a copy of the list */
  ck_assert_int_eq(lk_lock_acquire(l, LK_NO_LIMIT, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert_str_eq(model_acl(&lp.server, lk_lock_node(l)),
                   "31 digest me:x, 1 world anyone");
  ck_assert_str_eq(model_acl(&lp.server, "/a"), "13 ip 127.0.0.1");
  lk_lock_free(l);
  /* without parent_acl, acl is used for the directory as well */
  c.parent_acl = NULL;
  c.acl = &of_directory;
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/b", &c), 0);
  ck_assert_int_eq(lk_lock_acquire(l, LK_NO_LIMIT, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert_str_eq(model_acl(&lp.server, "/b"), "13 ip 127.0.0.1");
  lk_lock_free(l);
  lock_pair_end(&lp);
}
END_TEST

/* ---- arguments --------------------------------------------------------- */

START_TEST(bad_arguments_are_refused)
{
  lk_lock_config wrong_size = {.size = 1};
  lk_lock_config revocation = {.size = sizeof revocation,
                               .data = lk_text(LK_REVOKE_MESSAGE)};
  lk_lease_config lease_config = {.size = sizeof lease_config, .margin_ms = -1};
  lk_lock *l;

  begin();
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_ptr_null(l);
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "a", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/a/", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/a", &wrong_size),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/a", &revocation),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_lease_configure(lp.one.link->client, &lease_config),
                   LK_ERR_BAD_ARGUMENT);
  lease_config =
      (lk_lease_config){.size = sizeof lease_config,
                        .assurance = (lk_assurance)(LK_ASSURE_PING + 1)};
  ck_assert_int_eq(lk_lease_configure(lp.one.link->client, &lease_config),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_lock_verify(lp.a.lock, NULL, NULL), LK_ERR_NOT_HELD);
  lk_lock_free(NULL);
  lock_pair_end(&lp);
}
END_TEST

/* ---- a forked child ------------------------------------------------------ */

static bool is_child(void *arg)
{
  (void)arg;
  return true;
}

/* Runs as in the child of a process that holds the lock, leads and is a
 * member. */
START_TEST(forked_child_holds_nothing)
{
  const lk_candidate_config candidate_config = {.size =
                                                    sizeof candidate_config};
  lk_candidate *leader;
  lk_membership *member;
  lk_lock *led;

  begin_held();
  lk_client *c = lp.one.link->client;
  bool (*forked)(void *arg) = c->hooks.forked;

  ck_assert_int_eq(lk_lock_new(&led, c, "/locks/led", NULL), 0);
  ck_assert_int_eq(lk_candidate_new(&leader, led, &candidate_config), 0);
  ck_assert_int_eq(lk_membership_new(&member, c, "/group", "m", NULL), 0);
  ck_assert_int_eq(lk_candidate_start(leader), 0);
  ck_assert_int_eq(lk_membership_join(member), 0);
  model_run(&lp.server, T);
  ck_assert(lk_lock_ok(lp.a.lock) && lk_candidate_ok(leader));
  ck_assert(lk_membership_has_joined(member));
  ck_assert_int_gt(lk_lease_deadline(c), lp.server.now);

  c->hooks.forked = is_child;
  ck_assert(!lk_lock_ok(lp.a.lock));
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_IDLE);
  ck_assert_int_eq(lk_lock_deadline(lp.a.lock), INT64_MIN);
  ck_assert_int_eq(lk_lease_deadline(c), INT64_MIN);
  ck_assert_uint_eq(lk_lock_token(lp.a.lock), 0);
  ck_assert_uint_eq(lk_lock_count(lp.a.lock), 0);
  ck_assert_ptr_null(lk_lock_node(lp.a.lock));
  ck_assert_int_eq(lk_lock_acquire(lp.a.lock, LK_NO_LIMIT, NULL, NULL),
                   LK_ERR_FORKED);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), LK_ERR_FORKED);
  ck_assert(!lk_candidate_ok(leader));
  ck_assert_int_eq(lk_candidate_get_state(leader), LK_CANDIDATE_STOPPED);
  ck_assert_int_eq(lk_candidate_start(leader), LK_ERR_FORKED);
  lk_candidate_resign(leader);
  ck_assert(!lk_membership_has_joined(member));
  ck_assert_int_eq(lk_membership_join(member), LK_ERR_FORKED);
  ck_assert_int_eq(lk_membership_set_data(member, lk_text("x")), LK_ERR_FORKED);

  c->hooks.forked = forked;
  ck_assert(lk_lock_ok(lp.a.lock) && lk_candidate_ok(leader));
  ck_assert(lk_membership_has_joined(member));
  lk_candidate_free(leader);
  lk_lock_free(led);
  lk_membership_free(member);
  lock_pair_end(&lp);
}
END_TEST

SUITE("mutex", every_lock_state_and_event_has_a_text,
      short_hold_costs_three_requests_with_other_locks_held,
      deletion_notifies_one_waiter_only,
      waiter_is_notified_of_its_position_and_the_holder,
      predecessor_deleted_in_a_long_list_costs_up_to_eight_reads_or_a_list,
      predecessor_deleted_in_a_short_list_costs_a_list,
      waiter_watches_its_own_node_with_the_reads,
      watch_event_does_not_extend_the_timeout,
      directories_can_be_persistent_nodes,
      a_server_without_containers_is_remembered,
      acquire_fails_when_the_directory_is_deleted_ten_times,
      only_consecutive_deletions_of_the_directory_count,
      nodes_have_the_configured_access_lists, bad_arguments_are_refused,
      forked_child_holds_nothing)
