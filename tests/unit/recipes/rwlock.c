/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/rwlock.h>

/* The read-write lock: three owners, each with both sides, on one server. */

typedef struct owner {
  test_client p;
  lk_rwlock *rw;
  locker r; /* of the read side */
  locker w; /* of the write side */
  bool cancels_read_when_write_is_lost;
} owner;

static model_server server;
static owner one;
static owner two;
static owner three;

static void on_event(lk_lock *lock, const lk_lock_event *e, void *arg)
{
  owner *o = arg;

  locker_on_event(lock, e, lock == o->r.lock ? &o->r : &o->w);
  if (o->cancels_read_when_write_is_lost && lock == o->w.lock &&
      e->type == LK_LOCK_EVENT_LOST)
    lk_lock_cancel(o->r.lock);
}

static bool try_init_owner(owner *o)
{
  lk_lock_config config = {
      .size = sizeof config, .on_event = on_event, .arg = o};

  if (!test_client_try_init(&o->p, &server, NULL) ||
      lk_rwlock_new(&o->rw, o->p.link->client, LOCKS, &config) != 0)
    return false;
  locker_clear(&o->r, &o->p);
  o->r.lock = lk_rwlock_read_side(o->rw);
  locker_clear(&o->w, &o->p);
  o->w.lock = lk_rwlock_write_side(o->rw);
  return true;
}

static void init_owner(owner *o)
{
  failing_mem_init(&o->p.mem);
  ck_assert(try_init_owner(o));
}

static void begin(void)
{
  model_init(&server);
  model_create(&server, "/locks");
  model_create(&server, LOCKS);
  init_owner(&one);
  init_owner(&two);
  init_owner(&three);
  model_turn(&server);
}

/* Free all, and check that no node is left. */
static void end(void)
{
  owner *const owners[] = {&one, &two, &three};

  for (int i = 0; i < 3; i++) {
    lk_rwlock_free(owners[i]->rw);
    owners[i]->rw = NULL;
  }
  model_run(&server, T);
  ck_assert_uint_eq(model_children(&server, LOCKS), 0);
  for (int i = 0; i < 3; i++)
    test_client_free(&owners[i]->p);
  model_done(&server);
}

static void acquire_at_once(locker *l)
{
  locker_request(l);
  ck_assert_int_eq(l->acquired, 0);
}

static void release_lock(locker *l)
{
  locker_release(l);
  model_turn(&server);
}

static void empty_logs(void)
{
  one.p.link->log[0] = '\0';
  two.p.link->log[0] = '\0';
}

/* ---- exclusion ----------------------------------------------------------- */

START_TEST(writer_waits_for_all_readers)
{
  begin();
  acquire_at_once(&one.r);
  acquire_at_once(&two.r);
  ck_assert(lk_lock_ok(one.r.lock) && lk_lock_ok(two.r.lock));
  locker_request(&three.w);
  ck_assert_int_eq(three.w.acquired, NOT_YET);
  release_lock(&one.r);
  ck_assert_int_eq(three.w.acquired, NOT_YET);
  release_lock(&two.r);
  ck_assert_int_eq(three.w.acquired, 0);
  end();
}
END_TEST

START_TEST(a_reader_does_not_overtake_a_writer_that_waits)
{
  begin();
  acquire_at_once(&one.r);
  locker_request(&two.w);
  locker_request(&three.r);
  ck_assert_int_eq(two.w.acquired, NOT_YET);
  ck_assert_int_eq(three.r.acquired, NOT_YET);
  release_lock(&one.r);
  ck_assert_int_eq(two.w.acquired, 0);
  ck_assert_int_eq(three.r.acquired, NOT_YET);
  release_lock(&two.w);
  ck_assert_int_eq(three.r.acquired, 0);
  end();
}
END_TEST

START_TEST(all_readers_behind_a_writer_are_served_together)
{
  begin();
  acquire_at_once(&one.w);
  locker_request(&two.r);
  locker_request(&three.r);
  empty_logs();
  release_lock(&one.w);
  ck_assert_int_eq(two.r.acquired, 0);
  ck_assert_int_eq(three.r.acquired, 0);
  /* A reader needs no list: every contender with a smaller number is a reader,
     too. */
  ck_assert(model_check_log(two.p.link, ""));
  end();
}
END_TEST

START_TEST(a_writer_behind_a_writer_lists_before_it_is_granted)
{
  begin();
  acquire_at_once(&one.w);
  locker_request(&two.w);
  empty_logs();
  release_lock(&one.w);
  ck_assert_int_eq(two.w.acquired, 0);
  ck_assert(model_check_log(two.p.link, "getChildren2"));
  end();
}
END_TEST

START_TEST(a_mutex_on_the_same_path_excludes_both_sides)
{
  locker m;

  begin();
  locker_init(&m, &two.p, NULL);
  acquire_at_once(&m);
  locker_request(&one.r);
  ck_assert_int_eq(one.r.acquired, NOT_YET);
  release_lock(&m);
  ck_assert_int_eq(one.r.acquired, 0);
  locker_request(&m);
  ck_assert_int_eq(m.acquired, NOT_YET);
  release_lock(&one.r);
  ck_assert_int_eq(m.acquired, 0);
  locker_free(&m);
  end();
}
END_TEST

/* ---- both sides of one owner -------------------------------------------- */

START_TEST(writer_gets_its_read_lock_at_once_with_the_number_of_its_write_node)
{
  begin();
  acquire_at_once(&one.w);
  empty_logs();
  acquire_at_once(&one.r);
  ck_assert(model_check_log(one.p.link, "multi"));
  ck_assert_ptr_nonnull(
      strstr(lk_lock_node(one.r.lock), "-__READ__0000000000"));
  ck_assert_uint_eq(lk_lock_token(one.r.lock), lk_lock_token(one.w.lock));
  ck_assert(lk_lock_ok(one.r.lock) && lk_lock_ok(one.w.lock));
  end();
}
END_TEST

START_TEST(no_other_writer_is_granted_during_a_downgrade)
{
  begin();
  acquire_at_once(&one.w);
  locker_request(&two.w);
  acquire_at_once(&one.r);
  uint64_t token = lk_lock_token(one.w.lock);

  release_lock(&one.w);
  ck_assert_int_eq(two.w.acquired, NOT_YET);
  model_run(&server, 2 * T);
  ck_assert_int_eq(two.w.acquired, NOT_YET);
  ck_assert(lk_lock_ok(one.r.lock));
  ck_assert_uint_eq(lk_lock_token(one.r.lock), token);
  release_lock(&one.r);
  ck_assert_int_eq(two.w.acquired, 0);
  ck_assert_uint_gt(lk_lock_token(two.w.lock), token);
  end();
}
END_TEST

START_TEST(read_side_may_be_released_before_the_write_side)
{
  begin();
  acquire_at_once(&one.w);
  acquire_at_once(&one.r);
  locker_request(&two.r);
  release_lock(&one.r);
  ck_assert_int_eq(two.r.acquired, NOT_YET);
  release_lock(&one.w);
  ck_assert_int_eq(two.r.acquired, 0);
  end();
}
END_TEST

START_TEST(reader_cannot_acquire_the_write_lock)
{
  begin();
  acquire_at_once(&one.r);
  empty_logs();
  ck_assert_int_eq(locker_acquire(&one.w, LK_NO_LIMIT), LK_ERR_DEADLOCK);
  model_turn(&server);
  ck_assert(model_check_log(one.p.link, ""));
  release_lock(&one.r);
  acquire_at_once(&one.w);
  end();
}
END_TEST

START_TEST(downgraded_writer_cannot_acquire_the_write_lock_again)
{
  begin();
  acquire_at_once(&one.w);
  acquire_at_once(&one.r);
  acquire_at_once(&one.w); /* a re-entry, while the write side is still held */
  release_lock(&one.w);
  release_lock(&one.w);
  ck_assert_int_eq(locker_acquire(&one.w, LK_NO_LIMIT), LK_ERR_DEADLOCK);
  end();
}
END_TEST

START_TEST(second_side_is_refused_while_the_first_waits)
{
  begin();
  acquire_at_once(&one.w);
  locker_request(&two.r);
  ck_assert_int_eq(locker_acquire(&two.w, LK_NO_LIMIT), LK_ERR_STATE);
  lk_lock_cancel(two.r.lock);
  locker_request(&two.w);
  ck_assert_int_eq(locker_acquire(&two.r, LK_NO_LIMIT), LK_ERR_STATE);
  end();
}
END_TEST

START_TEST(reentrant_acquires_are_counted_for_each_side)
{
  begin();
  acquire_at_once(&one.w);
  acquire_at_once(&one.w);
  acquire_at_once(&one.r);
  acquire_at_once(&one.r);
  ck_assert_uint_eq(lk_lock_count(one.w.lock), 2);
  ck_assert_uint_eq(lk_lock_count(one.r.lock), 2);
  release_lock(&one.w);
  release_lock(&one.r);
  ck_assert(lk_lock_ok(one.w.lock) && lk_lock_ok(one.r.lock));
  release_lock(&one.w);
  ck_assert(!lk_lock_ok(one.w.lock) && lk_lock_ok(one.r.lock));
  release_lock(&one.r);
  ck_assert_int_eq(locker_try_release(&one.r), LK_ERR_NOT_HELD);
  end();
}
END_TEST

/* ---- losses, breaks and failures ---------------------------------------- */

START_TEST(writer_that_lost_its_lock_gets_no_read_lock)
{
  begin();
  /* the own node is not watched before the first heartbeat */
  acquire_at_once(&one.w);
  locker_request(&two.w);
  model_delete(&server, lk_lock_node(one.w.lock));
  model_turn(&server);
  ck_assert_int_eq(two.w.acquired, 0);
  ck_assert_int_eq(lk_lock_get_state(one.w.lock), LK_LOCK_HELD);
  locker_request(&one.r);
  ck_assert(locker_check_events(&one.w, "lost NO_NODE\n"));
  ck_assert_int_eq(one.r.acquired, NOT_YET);
  release_lock(&two.w);
  ck_assert_int_eq(one.r.acquired, 0);
  /* The read lock has a token of its own. */
  ck_assert_uint_gt(lk_lock_token(one.r.lock), 0);
  ck_assert_int_eq(lk_lock_release(one.w.lock, NULL, NULL), LK_ERR_LOST);
  end();
}
END_TEST

/* The create of the read node fails, since the write node is deleted. The
 * writer is notified of that first, and its callback may cancel the read side's
 * acquire. */
START_TEST(read_side_cancelled_when_the_write_side_is_lost_leaves_no_node)
{
  begin();
  one.cancels_read_when_write_is_lost = true;
  acquire_at_once(&one.w);
  model_delete(&server, lk_lock_node(one.w.lock));
  model_turn(&server);
  locker_request(&one.r);
  ck_assert(locker_check_events(&one.w, "lost NO_NODE\n"));
  ck_assert_int_eq(one.r.acquired, LK_ERR_CANCELLED);
  ck_assert_uint_eq(model_children(&server, LOCKS), 0);
  one.cancels_read_when_write_is_lost = false;
  end();
}
END_TEST

/* The connection breaks at the create of the read node, before or after it is
 * executed. */
START_TEST(create_of_a_read_node_is_recovered_or_sent_again_after_a_break)
{
  for (int executed = 0; executed < 2; executed++) {
    begin();
    acquire_at_once(&one.w);
    locker_request(&two.w);
    uint64_t token = lk_lock_token(one.w.lock);

    one.p.link->requests = 0;
    one.p.link->cut_at = 1;
    one.p.link->cut_after = executed;
    locker_request(&one.r);
    model_run(&server, T / 4);
    ck_assert_int_eq(one.r.acquired, 0);
    /* the two nodes of `one`, and that of the waiting `two` */
    ck_assert_uint_eq(model_children(&server, LOCKS), 3);
    ck_assert_uint_eq(lk_lock_token(one.r.lock), token);
    release_lock(&one.w);
    ck_assert_int_eq(two.w.acquired, NOT_YET);
    release_lock(&one.r);
    ck_assert_int_eq(two.w.acquired, 0);
    end();
  }
}
END_TEST

START_TEST(read_side_cancelled_at_once_leaves_no_node)
{
  begin();
  acquire_at_once(&one.w);
  ck_assert_int_eq(locker_acquire(&one.r, LK_NO_LIMIT), 0);
  lk_lock_cancel(one.r.lock);
  ck_assert_int_eq(one.r.acquired, LK_ERR_CANCELLED);
  model_run(&server, T);
  ck_assert_uint_eq(model_children(&server, LOCKS), 1); /* the write node */
  ck_assert(lk_lock_ok(one.w.lock));
  end();
}
END_TEST

START_TEST(expired_session_loses_both_sides)
{
  begin();
  acquire_at_once(&one.w);
  acquire_at_once(&one.r);
  model_expire(&server, one.p.link->session);
  model_drop(one.p.link);
  model_run(&server, T / 4);
  ck_assert(locker_check_events(&one.w, "suspended\nlost SESSION_EXPIRED\n"));
  ck_assert(locker_check_events(&one.r, "suspended\nlost SESSION_EXPIRED\n"));
  (void)lk_lock_release(one.w.lock, NULL, NULL);
  (void)lk_lock_release(one.r.lock, NULL, NULL);
  acquire_at_once(&one.r);
  end();
}
END_TEST

START_TEST(handle_may_be_freed_while_one_side_is_held_and_the_other_acquired)
{
  begin();
  acquire_at_once(&one.w);
  ck_assert_int_eq(locker_acquire(&one.r, LK_NO_LIMIT), 0);
  lk_rwlock_free(one.rw);
  one.rw = NULL;
  ck_assert_int_eq(one.r.acquired, LK_ERR_CLOSED);
  end();
}
END_TEST

/* Acquires both sides and releases them while allocation number `fail_at`
 * fails. Returns whether there were so many allocations. */
static bool downgrade_without_memory(size_t fail_at)
{
  model_init(&server);
  model_create(&server, "/locks");
  model_create(&server, LOCKS);
  init_owner(&two);
  init_owner(&three);
  memset(&one, 0, sizeof one);
  failing_mem_init(&one.p.mem);
  one.p.mem.fail_at = fail_at;
  if (try_init_owner(&one)) {
    model_run(&server, T / 4);
    if (locker_acquire(&one.w, T) == 0)
      model_run(&server, T / 4);
    if (locker_acquire(&one.r, T) == 0)
      model_run(&server, T / 4);
    (void)lk_lock_release(one.w.lock, NULL, NULL);
    (void)lk_lock_release(one.r.lock, NULL, NULL);
    model_run(&server, T);
  }
  bool failed = failing_mem_failed(&one.p.mem);

  end();
  return failed;
}

START_TEST(downgrade_survives_any_failed_allocation)
{
  size_t n = 0;

  do
    n++;
  while (downgrade_without_memory(n));
  /* in the last run no allocation has failed */
  ck_assert_int_eq(one.w.acquired, 0);
  ck_assert_int_eq(one.r.acquired, 0);
}
END_TEST

SUITE("rwlock", writer_waits_for_all_readers,
      a_reader_does_not_overtake_a_writer_that_waits,
      all_readers_behind_a_writer_are_served_together,
      a_writer_behind_a_writer_lists_before_it_is_granted,
      a_mutex_on_the_same_path_excludes_both_sides,
      writer_gets_its_read_lock_at_once_with_the_number_of_its_write_node,
      no_other_writer_is_granted_during_a_downgrade,
      read_side_may_be_released_before_the_write_side,
      reader_cannot_acquire_the_write_lock,
      downgraded_writer_cannot_acquire_the_write_lock_again,
      second_side_is_refused_while_the_first_waits,
      reentrant_acquires_are_counted_for_each_side,
      writer_that_lost_its_lock_gets_no_read_lock,
      read_side_cancelled_when_the_write_side_is_lost_leaves_no_node,
      create_of_a_read_node_is_recovered_or_sent_again_after_a_break,
      read_side_cancelled_at_once_leaves_no_node,
      expired_session_loses_both_sides,
      handle_may_be_freed_while_one_side_is_held_and_the_other_acquired,
      downgrade_survives_any_failed_allocation)
