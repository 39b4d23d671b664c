/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "recipes/locks/lock.h"
#include "recipes/names.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/queue.h"
#include "recipes/queue/single_node.h"
#include "support/locks.h"
#include "support/suite.h"

#include <stdio.h>

/* The mutex with failures of connections, sessions and nodes. In the logs of
 * requests, a multi before a list is the transaction with which a recovery
 * begins. */

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

static lk_contender *contender_of(const locker *l)
{
  return l->lock->acquisition->parts[0];
}

/* The connection breaks after the client's first request is executed. */
static void lose_first_reply(model_link *l)
{
  l->cut_at = 1;
  l->cut_after = true;
}

/* ---- the table --------------------------------------------------------- */

static int next_state(const lk_contender_machine *machine, int state, int event)
{
  return (int)lk__contender_next_state(machine, (lk_contender_state)state,
                                       (lk_contender_event)event);
}

START_TEST(stop_leads_to_cleanup_and_loss_of_the_node_to_the_end)
{
  /* LK_CONTENDER_CLEANING_UP and LK_CONTENDER_FINISHED are the last states. */
  for (int s = LK_CONTENDER_IDLE; s < LK_CONTENDER_CLEANING_UP; s++) {
    ck_assert_int_eq(next_state(&lk__queue_machine, s, LK_CONTENDER_ON_STOP),
                     LK_CONTENDER_CLEANING_UP);
    ck_assert_int_eq(
        next_state(&lk__queue_machine, s, LK_CONTENDER_ON_GONE_FOR_GOOD),
        LK_CONTENDER_FINISHED);
  }
  ck_assert_int_eq(next_state(&lk__queue_machine, LK_CONTENDER_CLEANING_UP,
                              LK_CONTENDER_ON_GONE_FOR_GOOD),
                   LK_CONTENDER_FINISHED);
}
END_TEST

START_TEST(contender_in_cleanup_is_never_granted)
{
  for (int e = 0; e < LK_CONTENDER_NEVENTS; e++) {
    if (e != LK_CONTENDER_ON_GONE_FOR_GOOD)
      ck_assert_int_eq(
          next_state(&lk__queue_machine, LK_CONTENDER_CLEANING_UP, e),
          e == LK_CONTENDER_ON_PAUSE ? LK_CONTENDER_STAY
                                     : LK_CONTENDER_NO_STEP);
    ck_assert_int_eq(next_state(&lk__queue_machine, LK_CONTENDER_FINISHED, e),
                     e == LK_CONTENDER_ON_GONE_FOR_GOOD ? LK_CONTENDER_STAY
                                                        : LK_CONTENDER_NO_STEP);
  }
}
END_TEST

START_TEST(restarted_waiter_lists_and_restarted_holder_verifies)
{
  begin_queue();
  lk__contender_restart(contender_of(&lp.b));
  model_run(&lp.server, 10);
  ck_assert(model_check_log(lp.two.link, "getChildren2 | getData"));
  lp.one.link->log[0] = '\0';
  lk__contender_restart(contender_of(&lp.a));
  model_run(&lp.server, 10);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  ck_assert_int_eq(lk_lock_get_state(lp.a.lock), LK_LOCK_HELD);
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

static void assert_steps_to_held_and_unsure(const lk_contender_machine *machine)
{
  for (int s = 0; s < LK_CONTENDER_NSTATES; s++) {
    for (int e = 0; e < LK_CONTENDER_NEVENTS; e++) {
      int to = next_state(machine, s, e);

      if (to == LK_CONTENDER_HELD)
        ck_assert(
            e == LK_CONTENDER_ON_GRANT ||
            (s == LK_CONTENDER_UNSURE && e == LK_CONTENDER_ON_LEASE_PROVEN));
      if (to == LK_CONTENDER_UNSURE)
        ck_assert(s == LK_CONTENDER_HELD && e == LK_CONTENDER_ON_LEASE_ENDING);
    }
  }
}

START_TEST(grant_or_lease_leads_to_held_and_unsure_follows_held_only)
{
  assert_steps_to_held_and_unsure(&lk__queue_machine);
  assert_steps_to_held_and_unsure(&lk__single_node_machine);
}
END_TEST

/* ---- broken connections ------------------------------------------------ */

START_TEST(release_during_a_break_is_sent_before_other_requests)
{
  begin_queue();
  lp.server.down = true;
  model_drop(lp.one.link);
  locker_release(&lp.a);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  lk_get(lp.one.link->client, LOCKS, NULL, NULL, NULL);
  ck_assert_uint_eq(lk_lease_pending_cleanups(lp.one.link->client), 1);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.released, NOT_YET);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert(model_check_log(lp.one.link,
                            "delete create2 getChildren2 getData | "
                            "getData getData"));
  ck_assert_int_eq(lp.a.released, 0);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert_uint_eq(lk_lease_pending_cleanups(lp.one.link->client), 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(release_is_repeated_after_a_break_whether_executed_or_not)
{
  for (int executed = 0; executed < 2; executed++) {
    begin_queue();
    lp.one.link->requests = 0;
    lp.one.link->cut_at = 1;
    lp.one.link->cut_after = executed;
    locker_release(&lp.a);
    model_turn(&lp.server);
    ck_assert_int_eq(lp.a.released, NOT_YET);
    model_run(&lp.server, T / 10);
    ck_assert_int_eq(lp.a.released, 0);
    ck_assert_int_eq(lp.b.acquired, 0);
    ck_assert(model_check_log(lp.one.link, "delete | delete"));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(delete_is_sent_before_the_check_of_held_locks)
{
  lk_lock *held;

  begin();
  model_create(&lp.server, "/locks/y");
  ck_assert_int_eq(lk_lock_new(&held, lp.one.link->client, "/locks/y", NULL),
                   0);
  ck_assert_int_eq(lk_lock_acquire(held, LK_NO_LIMIT, NULL, NULL), 0);
  lock_pair_hold(&lp);
  lp.server.down = true;
  model_drop(lp.one.link);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert(model_check_log(lp.one.link, "delete getData multi"));
  lk_lock_free(held);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(unsent_create_is_not_recovered)
{
  begin();
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  model_drop(lp.one.link);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.acquired, 0);
  ck_assert(model_check_log(lp.one.link, "create2 getChildren2"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(recovery_is_repeated_if_its_transaction_is_throttled)
{
  begin();
  lose_first_reply(lp.one.link);
  lp.one.link->throttle_at = 2; /* the multi that precedes the list */
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.a.acquired, 0);
  ck_assert(model_check_log(lp.one.link,
                            "create2 getChildren2 | multi getChildren2 | "
                            "multi getChildren2 | getData"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(recovery_does_not_take_a_foreign_node)
{
  char node[128];

  begin();
  lose_first_reply(lp.one.link);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  lp.server.down = true;
  model_turn(&lp.server);
  snprintf(node, sizeof node, "%s", model_child(&lp.server, LOCKS, 0));
  model_delete(&lp.server, node);
  model_create(&lp.server, node);
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  model_delete(&lp.server, node);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(token_is_the_czxid_of_the_last_node_created)
{
  begin_queue();
  /* the second create; removeWatches, for the predecessor, precedes it */
  lp.two.link->cut_at = lp.two.link->requests + 2;
  lp.two.link->cut_after = true;
  model_delete(&lp.server, lk_lock_node(lp.b.lock));
  lp.server.down = true;
  model_turn(&lp.server);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  model_turn(&lp.server);
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert_uint_eq(
      lk_lock_token(lp.b.lock),
      (uint64_t)model_node(&lp.server, lk_lock_node(lp.b.lock))->stat.czxid);
  lock_pair_end(&lp);
}
END_TEST

/* ---- rule H ------------------------------------------------------------- */

/* The tests h1 to h6 each break one condition of
 * lk__direct_handoff_is_proven(). Then b is not granted without a list. */

static void assert_granted_after_list(void)
{
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert_uint_eq(model_count(lp.two.link, "getChildren2"), 1);
}

static void release_a(void)
{
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  model_turn(&lp.server);
}

START_TEST(h1_another_predecessor_is_left)
{
  begin();
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/y-lock-0000000001");
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_run(&lp.server, T / 2); /* the heartbeat watches the own node */
  model_delete(&lp.server, LOCKS "/y-lock-0000000001");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(h2_deletion_is_noticed_on_another_connection)
{
  begin_queue();
  lp.server.down = true;
  model_drop(lp.two.link);
  release_a();
  lp.two.link->log[0] = '\0';
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  assert_granted_after_list();
  lock_pair_end(&lp);
}
END_TEST

START_TEST(h3_own_node_is_not_watched)
{
  begin_queue();
  /* the watch on b's node fires, and its renewal is not confirmed */
  lp.two.link->allow = 0;
  model_set(&lp.server, model_child(&lp.server, LOCKS, 1), "__REVOKE__");
  release_a();
  lp.two.link->log[0] = '\0';
  lp.two.link->allow = SIZE_MAX;
  model_turn(&lp.server);
  assert_granted_after_list();
  lock_pair_end(&lp);
}
END_TEST

START_TEST(h4_a_curator_writer_was_a_predecessor_and_a_reader_is_deleted_last)
{
  begin();
  model_create(&lp.server, LOCKS "/x-__WRIT__0000000000");
  model_create(&lp.server, LOCKS "/y-__READ__0000000001");
  locker_request(&lp.b);
  model_create(&lp.server, LOCKS "/x-__READ__0000000000");
  model_delete(&lp.server, LOCKS "/x-__WRIT__0000000000");
  model_delete(&lp.server, LOCKS "/y-__READ__0000000001");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_delete(&lp.server, LOCKS "/x-__READ__0000000000");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(h5_a_number_in_the_queue_is_out_of_range)
{
  begin();
  model_create(&lp.server, LOCKS "/x-lock-2147483647"); /* INT32_MAX */
  lock_pair_hold(&lp);
  locker_request(&lp.b);
  lp.two.link->log[0] = '\0';
  release_a();
  assert_granted_after_list();
  model_delete(&lp.server, LOCKS "/x-lock-2147483647");
  lock_pair_end(&lp);
}
END_TEST

/* The proof of a lease takes `gap_ms`. With so long a gap, a lease lasts only
 * 500 ms longer than its proof takes. */
START_TEST(h6_the_lease_is_too_short_for_a_grant)
{
  enum { GAP_MS = T - 500 };
  lk_lease_config c = {.size = sizeof c, .gap_ms = GAP_MS, .margin_ms = 1};

  lock_pair_begin(&lp, &c, NULL);
  lock_pair_queue(&lp);
  model_run(&lp.server, 5 * T + T / 16);
  lp.two.link->log[0] = '\0';
  (void)lk_lock_release(lp.a.lock, NULL, NULL);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  ck_assert(model_check_log(lp.two.link, "multi getChildren2"));
  /* that multi begins a new lease, which a reply proves after gap_ms */
  model_run(&lp.server, GAP_MS);
  ck_assert_uint_eq(model_count(lp.two.link, "multi"), 0);
  model_run(&lp.server, 10);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

/* ---- nodes deleted or changed by others -------------------------------- */

START_TEST(deleted_own_node_is_not_granted_by_its_predecessor)
{
  begin_queue();
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 1));
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert_str_eq(lk_lock_node(lp.b.lock), model_child(&lp.server, LOCKS, 0));
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 1);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(own_node_deleted_three_times_fails_the_acquire)
{
  begin_queue();
  for (int i = 0; i < 3; i++) {
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 1));
    model_turn(&lp.server);
  }
  ck_assert_int_eq(lp.b.acquired, LK_ERR_NO_NODE);
  lock_pair_end(&lp);
}
END_TEST

static void delete_own_node_before_list(model_server *s, model_link *l,
                                        int32_t op, const char *path)
{
  (void)l;
  (void)path;
  if (op == LK_OPCODE_GET_CHILDREN2 && model_children(s, LOCKS) > 0)
    model_delete(s, model_child(s, LOCKS, 0));
}

START_TEST(own_node_missing_in_three_lists_fails_the_acquire)
{
  begin();
  lp.server.before = delete_own_node_before_list;
  locker_request(&lp.a);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_NO_NODE);
  ck_assert(
      locker_check_events(&lp.a, "place lost NO_NODE\nplace lost NO_NODE\n"));
  ck_assert_uint_eq(model_count(lp.one.link, "create2"), 3);
  lp.server.before = NULL;
  lock_pair_end(&lp);
}
END_TEST

START_TEST(
    own_node_deleted_just_after_the_grant_is_found_by_the_first_heartbeat)
{
  begin();
  lock_pair_hold(&lp);
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  model_run(&lp.server, T / 4 - 1);
  ck_assert(locker_check_events(&lp.a, ""));
  model_run(&lp.server, 1);
  ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
  lock_pair_end(&lp);
}
END_TEST

static unsigned reads_of_b;
static unsigned read_of_deletion; /* the predecessor is deleted before it */

static void delete_predecessor_before_read(model_server *s, model_link *l,
                                           int32_t op, const char *path)
{
  (void)path;
  if (op == LK_OPCODE_GET_DATA && l == lp.two.link &&
      ++reads_of_b == read_of_deletion)
    model_delete(s, LOCKS "/x-lock-0000000000");
}

/* The first read of b is that of the predecessor. */
START_TEST(predecessor_deleted_before_or_after_its_read_is_not_missed)
{
  for (read_of_deletion = 1; read_of_deletion <= 2; read_of_deletion++) {
    begin();
    reads_of_b = 0;
    model_create(&lp.server, LOCKS "/x-lock-0000000000");
    lp.server.before = delete_predecessor_before_read;
    locker_request(&lp.b);
    ck_assert_int_eq(lp.b.acquired, 0);
    ck_assert(
        model_check_log(lp.two.link, "create2 getChildren2 | getData getData"));
    lock_pair_end(&lp);
  }
}
END_TEST

/* b cannot read its node from the time between its create and its list. */
static void deny_read_of_own_node(model_server *s, model_link *l, int32_t op,
                                  const char *path)
{
  (void)path;
  if (op != LK_OPCODE_GET_CHILDREN2 || l != lp.two.link)
    return;
  model_deny_owned(s, l->session, LK_PERM_READ);
}

/* ---- access ------------------------------------------------------------ */

enum { DEEP = 3000, ONE_MB = 1 << 20 };

/* Creates of all directories have 9 MB. */
START_TEST(directories_of_a_long_path_are_not_created)
{
  char path[2 * DEEP + 1];
  failing_mem *mem = &lp.one.mem;
  locker deep;

  begin();
  for (size_t i = 0; i < DEEP; i++)
    memcpy(path + 2 * i, "/a", sizeof "/a");
  locker_clear(&deep, &lp.one);
  ck_assert_int_eq(lk_lock_new(&deep.lock, lp.one.link->client, path, NULL), 0);
  mem->peak = mem->held;
  locker_request(&deep);
  ck_assert_int_eq(deep.acquired, LK_ERR_TOO_BIG);
  ck_assert_uint_lt(mem->peak, ONE_MB);
  ck_assert_ptr_null(model_node(&lp.server, "/a"));
  locker_free(&deep);
  lock_pair_end(&lp);
}
END_TEST

static int directory_changes; /* 1: created, 2: deleted again */

/* Another client creates the directory before our first create of it, and
 * deletes it again. */
static void create_and_delete_directory(model_server *s, model_link *l,
                                        int32_t op, const char *path)
{
  (void)l;
  if (op == LK_OPCODE_CREATE_CONTAINER && directory_changes == 0 &&
      strcmp(path, LOCKS) == 0) {
    model_create(s, LOCKS);
    directory_changes++;
  } else if (op == LK_OPCODE_CREATE2 && directory_changes == 1) {
    model_delete(s, LOCKS);
    directory_changes++;
  }
}

START_TEST(directory_that_another_client_creates_and_deletes_is_created_again)
{
  begin();
  model_delete(&lp.server, LOCKS);
  directory_changes = 0;
  lp.server.before = create_and_delete_directory;
  locker_request(&lp.a);
  ck_assert_int_eq(directory_changes, 2);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(unreadable_predecessor_is_watched_by_its_directory)
{
  begin();
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/y-lock-0000000001");
  model_deny(&lp.server, LOCKS "/y-lock-0000000001", LK_PERM_READ);
  locker_request(&lp.b);
  ck_assert(model_check_log(lp.two.link,
                            "create2 getChildren2 | getData | getChildren2"));
  model_delete(&lp.server, LOCKS "/y-lock-0000000001");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(model_check_log(lp.two.link, "getChildren2 | getChildren2 | "
                                         "removeWatches"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(predecessor_that_became_readable_is_watched_after_a_new_create)
{
  begin();
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_deny(&lp.server, LOCKS "/x-lock-0000000000", LK_PERM_READ);
  locker_request(&lp.b);
  model_deny(&lp.server, LOCKS "/x-lock-0000000000", 0);
  lp.two.link->log[0] = '\0';
  model_delete(&lp.server, lk_lock_node(lp.b.lock));
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.two.link, "removeWatches create2 getChildren2 | "
                                         "getData getData"));
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(predecessor_that_cannot_be_read_counts)
{
  begin();
  lock_pair_add_others(&lp, LK_SHORT_LIST);
  model_create(&lp.server, LOCKS "/x-lock-0000000000");
  model_create(&lp.server, LOCKS "/y-lock-0000000001");
  model_create(&lp.server, LOCKS "/z-lock-0000000002");
  model_deny(&lp.server, LOCKS "/x-lock-0000000000", LK_PERM_READ);
  locker_request(&lp.b);
  lp.two.link->log[0] = '\0';
  model_delete(&lp.server, LOCKS "/z-lock-0000000002");
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.two.link, "getData getData getData"));
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_delete(&lp.server, LOCKS "/y-lock-0000000001");
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.two.link, "getData | getChildren2"));
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_delete_others(&lp, LK_SHORT_LIST);
  lock_pair_end(&lp);
}
END_TEST

static bool predecessor_deleted;

/* The predecessor is deleted before the own node is read again. */
static void delete_predecessor_once(model_server *s, model_link *l, int32_t op,
                                    const char *path)
{
  (void)path;
  if (op != LK_OPCODE_GET_DATA || l != lp.two.link || predecessor_deleted)
    return;
  predecessor_deleted = true;
  model_delete(s, LOCKS "/y-lock-0000000000");
}

START_TEST(change_of_the_directory_during_the_read_of_the_own_node_is_seen)
{
  begin();
  model_create(&lp.server, LOCKS "/y-lock-0000000000");
  model_deny(&lp.server, LOCKS "/y-lock-0000000000", LK_PERM_READ);
  locker_request(&lp.b);
  lp.two.link->log[0] = '\0';
  lp.two.link->frozen = true;
  model_create(&lp.server, LOCKS "/foreign");
  model_turn(&lp.server);
  model_set(&lp.server, lk_lock_node(lp.b.lock), "x");
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.two.link, "getChildren2 | getData"));
  predecessor_deleted = false;
  lp.server.before = delete_predecessor_once;
  lp.two.link->frozen = false;
  model_turn(&lp.server);
  ck_assert(predecessor_deleted);
  ck_assert(model_check_log(lp.two.link, "getChildren2 | removeWatches"));
  ck_assert_int_eq(lp.b.acquired, 0);
  model_delete(&lp.server, LOCKS "/foreign");
  lock_pair_end(&lp);
}
END_TEST

START_TEST(recovered_node_that_cannot_be_read_is_deleted)
{
  begin();
  lose_first_reply(lp.two.link);
  lp.server.before = deny_read_of_own_node;
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.b.acquired, LK_ERR_NO_AUTH);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(own_node_that_cannot_be_read_is_reported_and_disables_rule_h)
{
  begin();
  lock_pair_hold(&lp);
  lp.server.before = deny_read_of_own_node;
  locker_request(&lp.b);
  ck_assert(locker_check_events(&lp.b, "waiting 1 0000000000\nunwatched\n"));
  lp.two.link->log[0] = '\0';
  release_a();
  assert_granted_after_list();
  model_run(&lp.server, 3 * T);
  /* the heartbeat still detects a deletion: the check of an existing node fails
   * with NO_AUTH */
  ck_assert(locker_check_events(&lp.b, ""));
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  model_run(&lp.server, T / 4);
  ck_assert(locker_check_events(&lp.b, "lost NO_NODE\n"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(deletion_of_a_node_that_cannot_be_read_is_noticed_while_waiting)
{
  begin();
  lock_pair_hold(&lp);
  lp.server.before = deny_read_of_own_node;
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_run(&lp.server, T);
  ck_assert(locker_check_events(&lp.b, "waiting 1 0000000000\nunwatched\n"));
  model_delete(&lp.server, lk_lock_node(lp.b.lock));
  model_run(&lp.server, T / 2);
  ck_assert(
      locker_check_events(&lp.b, "place lost NO_NODE\nwaiting 1 0000000000\n"));
  lp.server.before = NULL;
  lock_pair_end(&lp);
}
END_TEST

static void deny_reads_of_held_nodes(model_link *l)
{
  model_deny_owned(&lp.server, l->session, LK_PERM_READ);
}

START_TEST(unreadable_nodes_do_not_hide_the_loss_of_another_lock)
{
  lk_lock *others[3];

  begin();
  for (int i = 0; i < 3; i++) {
    char path[32];

    snprintf(path, sizeof path, "/locks/y%d", i);
    model_create(&lp.server, path);
    ck_assert_int_eq(lk_lock_new(&others[i], lp.one.link->client, path, NULL),
                     0);
    ck_assert_int_eq(lk_lock_acquire(others[i], LK_NO_LIMIT, NULL, NULL), 0);
    model_turn(&lp.server);
    if (i == 1)
      deny_reads_of_held_nodes(lp.one.link);
  }
  lock_pair_hold(&lp);
  model_run(&lp.server, T);
  lp.one.link->log[0] = '\0';
  model_run(&lp.server, T);
  /* a check that fails ends its multi, so each unreadable node is the last of
   * one */
  ck_assert(model_check_log(lp.one.link,
                            "multi multi multi | multi multi multi | "
                            "multi multi multi | multi multi multi"));
  model_delete(&lp.server, lk_lock_node(others[1]));
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lk_lock_get_state(others[1]), LK_LOCK_LOST);
  ck_assert_int_eq(lk_lock_get_state(others[0]), LK_LOCK_HELD);
  ck_assert_int_eq(lk_lock_get_state(others[2]), LK_LOCK_HELD);
  ck_assert(locker_check_events(&lp.a, ""));
  for (int i = 0; i < 3; i++)
    lk_lock_free(others[i]);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(refused_reads_after_the_release_are_not_reported)
{
  begin();
  lock_pair_hold(&lp);
  deny_reads_of_held_nodes(lp.one.link);
  lp.one.link->frozen = true;
  model_run(&lp.server, T / 4);
  ck_assert(model_check_log(lp.one.link, "getData multi"));
  locker_release(&lp.a);
  lp.one.link->frozen = false;
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.released, 0);
  ck_assert(locker_check_events(&lp.a, ""));
  lock_pair_end(&lp);
}
END_TEST

/* ---- errors of requests ------------------------------------------------- */

START_TEST(unexpected_errors_end_the_acquire_and_leave_nothing)
{
  const int unknown_code = -999;
  const int errors[] = {LK_ERR_QUOTA_EXCEEDED, LK_ERR_INVALID_ACL, unknown_code,
                        LK_ERR_CONNECTION_LOSS};

  for (size_t e = 0; e < 4; e++) {
    /* The requests of an acquire that waits: create, list, and two reads. */
    for (unsigned n = 1; n <= 4; n++) {
      bool create_in_doubt = n == 1 && errors[e] == LK_ERR_CONNECTION_LOSS;

      begin();
      lock_pair_hold(&lp);
      lp.two.link->answer_at = n;
      lp.two.link->answer_err = errors[e];
      locker_request(&lp.b);
      ck_assert_int_eq(lp.b.acquired,
                       create_in_doubt ? LK_ERR_IN_DOUBT : errors[e]);
      release_a();
      ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
      ck_assert_uint_eq(model_watches(lp.two.link), 0);
      lock_pair_end(&lp);
    }
  }
}
END_TEST

/* ---- the counter ------------------------------------------------------- */

START_TEST(number_above_the_limit_fails_the_acquire_and_a_large_one_warns_once)
{
  begin();
  model_counter(&lp.server, LOCKS, LK_SEQUENCE_LIMIT + 1);
  locker_request(&lp.a);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_SEQ_UNSAFE);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  model_counter(&lp.server, LOCKS, INT32_MIN + 5); /* after an overflow */
  locker_request(&lp.a);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_SEQ_UNSAFE);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  ck_assert_uint_eq(lp.one.warnings, 0);
  for (int i = 0; i < 2; i++) {
    model_counter(&lp.server, LOCKS, INT32_MAX / 2 + 6); /* half is used */
    locker_request(&lp.a);
    ck_assert_int_eq(lp.a.acquired, 0);
    ck_assert_uint_eq(lp.one.warnings, 1);
    ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
    model_turn(&lp.server);
  }
  lock_pair_end(&lp);
}
END_TEST

START_TEST(foreign_node_in_the_queue_is_reported_once)
{
  begin();
  model_create(&lp.server, LOCKS "/x__lock__0000000099");
  lock_pair_hold(&lp);
  ck_assert(
      locker_check_events(&lp.a, "mixed " LOCKS "/x__lock__0000000099\n"));
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  lock_pair_hold(&lp);
  ck_assert(locker_check_events(&lp.a, ""));
  model_delete(&lp.server, LOCKS "/x__lock__0000000099");
  lock_pair_end(&lp);
}
END_TEST

/* ---- sessions ---------------------------------------------------------- */

/* Both are paths of contender nodes at LOCKS. */
static bool has_same_unique_part(const char *path, const char *other_path)
{
  size_t len = strlen(LOCKS "/") + LK_UNIQUE_PART_MAX_LEN;

  return strncmp(path, other_path, len) == 0;
}

START_TEST(node_created_again_has_another_unique_part)
{
  for (int session_expires = 0; session_expires < 2; session_expires++) {
    char first[128];

    begin_queue();
    snprintf(first, sizeof first, "%s", lk_lock_node(lp.b.lock));
    if (!session_expires) {
      model_delete(&lp.server, first);
    } else {
      lp.server.down = true;
      model_drop(lp.two.link);
      model_expire(&lp.server, lp.two.link->last_session);
      lp.server.down = false;
    }
    model_run(&lp.server, T / 10);
    ck_assert(!has_same_unique_part(first, lk_lock_node(lp.b.lock)));
    lock_pair_end(&lp);
  }
}
END_TEST

/* The server sends the event of the node's deletion before it closes the
 * connection of the expired session. */
START_TEST(an_expiry_on_a_living_connection_loses_the_place_once)
{
  begin_queue();
  model_run(&lp.server, T / 4);
  model_expire(&lp.server, lp.two.link->session);
  model_run(&lp.server, T / 10);
  ck_assert(
      locker_check_events(&lp.b, "place lost NO_NODE\nwaiting 1 0000000000\n"));
  model_expire(&lp.server, lp.one.link->session);
  model_run(&lp.server, T / 10);
  ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(expiry_completes_a_cleanup)
{
  begin_queue();
  lp.server.down = true;
  model_drop(lp.one.link);
  locker_release(&lp.a);
  model_expire(&lp.server, lp.one.link->last_session);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.released, 0);
  ck_assert_uint_eq(lk_lease_pending_cleanups(lp.one.link->client), 0);
  ck_assert_uint_eq(model_count(lp.one.link, "delete"), 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(create_of_an_expired_session_is_not_taken_for_ours)
{
  begin();
  lose_first_reply(lp.one.link);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  lp.server.down = true;
  model_turn(&lp.server);
  /* the session ends, and a server that is behind still shows its node */
  char orphan[128];

  snprintf(orphan, sizeof orphan, "%s", model_child(&lp.server, LOCKS, 0));
  model_expire(&lp.server, lp.one.link->last_session);
  model_create(&lp.server, orphan);
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  ck_assert(!has_same_unique_part(orphan, lk_lock_node(lp.a.lock)));
  model_delete(&lp.server, orphan);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

/* ---- memory ------------------------------------------------------------ */

START_TEST(predecessor_name_as_long_as_the_own_name_takes_no_memory)
{
  lk_queue_position p = {.predecessors = 1, .nearest_count = 1};
  size_t before;

  begin_queue();
  lk_contender *holder = contender_of(&lp.a);
  lk_contender *waiter = contender_of(&lp.b);

  ck_assert_ptr_null(holder->predecessors.block);
  p.head.name = lk_text(holder->own.path + strlen(LOCKS "/"));
  p.nearest[0].name = p.head.name;
  before = lp.two.mem.count;
  ck_assert(lk__predecessors_set(&waiter->predecessors, &waiter->lease->mem,
                                 waiter->own.dir, 1, 1, &p));
  ck_assert_uint_eq(lp.two.mem.count, before);
  lock_pair_end(&lp);
}
END_TEST

static char late_path[256]; /* of the create that is executed late */

/* Execute the create shortly before the transaction of the recovery. */
static void execute_create_late(model_server *s, model_link *l, int32_t op,
                                const char *path)
{
  size_t len = strlen(late_path);

  if (op == LK_OPCODE_CREATE2 && len == 0) {
    snprintf(late_path, sizeof late_path, "%s0000000000", path);
  } else if (op == LK_OPCODE_MULTI && model_node(s, late_path) == NULL) {
    s->before = NULL;
    model_create_ephemeral(s, late_path, "", l->session);
  }
}

/* The acquire is cancelled before its replies arrive: the create has timed out
 * in the server, and the list behind it does not show the node. Only the list
 * behind the transaction does. */
START_TEST(cleanup_awaits_the_list_behind_its_transaction)
{
  begin();
  late_path[0] = '\0';
  lp.server.before = execute_create_late;
  lp.one.link->requests = 0;
  lp.one.link->answer_at = 1;
  lp.one.link->answer_err = LK_ERR_REQUEST_TIMEOUT;
  lp.one.link->allow = 0;
  locker_request(&lp.a);
  lk_lock_cancel(lp.a.lock);
  lp.one.link->allow = SIZE_MAX;
  model_run(&lp.server, T);
  ck_assert_ptr_null(lp.server.before); /* the node was created */
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  lock_pair_end(&lp);
}
END_TEST

static const lk_lock_config shared_names = {.size = sizeof shared_names,
                                            .layout = LK_LAYOUT_NATIVE};

/* The own node of a waiter is replaced by another session's, and then its
 * predecessor is deleted. */
static void replace_own_node(void)
{
  char path[128];

  snprintf(path, sizeof path, "%s", model_child(&lp.server, LOCKS, 1));
  model_delete(&lp.server, path);
  model_create_ephemeral(&lp.server, path, "other", 77);
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  model_turn(&lp.server);
  ck_assert_int_ne(lp.b.acquired, 0);
}

static void end_with_foreign_node(void)
{
  locker_free(&lp.b);
  model_run(&lp.server, T);
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  model_run(&lp.server, T);
  lock_pair_end(&lp);
}

/* The watch on the own node has fired, and the read that sets the next one is
 * throttled. */
START_TEST(waiter_that_lost_its_watch_does_not_take_a_node_of_its_name)
{
  lock_pair_begin(&lp, NULL, &shared_names);
  lock_pair_queue(&lp);
  lp.two.link->requests = 0;
  lp.two.link->throttle_at = 1;
  model_set(&lp.server, model_child(&lp.server, LOCKS, 1), "x");
  model_turn(&lp.server);
  replace_own_node();
  end_with_foreign_node();
}
END_TEST

START_TEST(waiter_without_a_first_watch_does_not_take_a_node_of_its_name)
{
  lock_pair_begin(&lp, NULL, &shared_names);
  locker_request(&lp.a);
  lp.two.link->requests = 0;
  lp.two.link->throttle_at = 4; /* create, list, two reads */
  locker_request(&lp.b);
  replace_own_node();
  model_run(&lp.server, 120);
  ck_assert_int_ne(lp.b.acquired, 0);
  end_with_foreign_node();
}
END_TEST

SUITE("mutex_failures",
      waiter_that_lost_its_watch_does_not_take_a_node_of_its_name,
      waiter_without_a_first_watch_does_not_take_a_node_of_its_name,
      cleanup_awaits_the_list_behind_its_transaction,
      stop_leads_to_cleanup_and_loss_of_the_node_to_the_end,
      predecessor_name_as_long_as_the_own_name_takes_no_memory,
      directory_that_another_client_creates_and_deletes_is_created_again,
      contender_in_cleanup_is_never_granted,
      restarted_waiter_lists_and_restarted_holder_verifies,
      grant_or_lease_leads_to_held_and_unsure_follows_held_only,
      release_during_a_break_is_sent_before_other_requests,
      release_is_repeated_after_a_break_whether_executed_or_not,
      delete_is_sent_before_the_check_of_held_locks,
      unsent_create_is_not_recovered,
      recovery_is_repeated_if_its_transaction_is_throttled,
      recovery_does_not_take_a_foreign_node,
      token_is_the_czxid_of_the_last_node_created,
      h1_another_predecessor_is_left,
      h2_deletion_is_noticed_on_another_connection, h3_own_node_is_not_watched,
      h4_a_curator_writer_was_a_predecessor_and_a_reader_is_deleted_last,
      h5_a_number_in_the_queue_is_out_of_range,
      h6_the_lease_is_too_short_for_a_grant,
      deleted_own_node_is_not_granted_by_its_predecessor,
      own_node_deleted_three_times_fails_the_acquire,
      own_node_missing_in_three_lists_fails_the_acquire,
      own_node_deleted_just_after_the_grant_is_found_by_the_first_heartbeat,
      predecessor_deleted_before_or_after_its_read_is_not_missed,
      directories_of_a_long_path_are_not_created,
      unreadable_predecessor_is_watched_by_its_directory,
      predecessor_that_became_readable_is_watched_after_a_new_create,
      predecessor_that_cannot_be_read_counts,
      change_of_the_directory_during_the_read_of_the_own_node_is_seen,
      recovered_node_that_cannot_be_read_is_deleted,
      deletion_of_a_node_that_cannot_be_read_is_noticed_while_waiting,
      own_node_that_cannot_be_read_is_reported_and_disables_rule_h,
      unreadable_nodes_do_not_hide_the_loss_of_another_lock,
      refused_reads_after_the_release_are_not_reported,
      unexpected_errors_end_the_acquire_and_leave_nothing,
      number_above_the_limit_fails_the_acquire_and_a_large_one_warns_once,
      foreign_node_in_the_queue_is_reported_once,
      node_created_again_has_another_unique_part,
      an_expiry_on_a_living_connection_loses_the_place_once,
      expiry_completes_a_cleanup,
      create_of_an_expired_session_is_not_taken_for_ours)
