/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/multilock.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>

/* Local queues: owners of one process behind one node. a, c, d, e and so on are
 * of the first session and share a local queue; b is of the second session and
 * does not. */

enum { OWNERS = 40 };

static const lk_lock_config local = {.size = sizeof local, .local_queue = true};

static lock_pair lp;
static locker owners[OWNERS];
static int order[OWNERS]; /* the owners in the order of their grants */
static int granted;

static void note(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0 && l->acquired == 0)
    order[granted++] = (int)(l - owners);
}

static void begin(void)
{
  lock_pair_begin(&lp, NULL, NULL);
  granted = 0;
}

static void add_owners(int count)
{
  for (int i = 0; i < count; i++) {
    locker_init(&owners[i], &lp.one, &local);
    owners[i].react = note;
  }
}

static void acquire_all(int count)
{
  for (int i = 0; i < count; i++)
    ck_assert_int_eq(locker_acquire(&owners[i], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
}

static void end(int count)
{
  for (int i = 0; i < count; i++)
    locker_free(&owners[i]);
  lock_pair_end(&lp);
}

/* ---- one node ----------------------------------------------------------- */

START_TEST(local_owners_share_one_node_and_hand_it_over_without_requests)
{
  uint64_t token;

  begin();
  add_owners(10);
  acquire_all(10);
  ck_assert(model_check_log(lp.one.link, "create2 getChildren2"));
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 1);
  token = lk_lock_token(owners[0].lock);
  for (int i = 0; i < 10; i++) {
    ck_assert_int_eq(granted, i + 1);
    ck_assert_int_eq(order[i], i);
    ck_assert(lk_lock_ok(owners[i].lock));
    ck_assert_uint_eq(lk_lock_token(owners[i].lock), token);
    ck_assert_uint_eq(lk_lock_handoffs(owners[i].lock), (uint64_t)i);
    for (int j = 0; j < 10; j++)
      ck_assert(j == i || !lk_lock_ok(owners[j].lock));
    locker_release(&owners[i]);
    ck_assert(!lk_lock_ok(owners[i].lock));
    ck_assert_int_eq(
        granted,
        i + 1); /* the next owner is granted after the release has returned */
    model_turn(&lp.server);
    ck_assert_int_eq(owners[i].released, 0);
  }
  ck_assert(model_check_log(lp.one.link, "delete"));
  end(10);
}
END_TEST

/* Owners whose options give their nodes different names do not share a node. */
START_TEST(names_of_another_layout_are_another_queue)
{
  static const lk_lock_config kinds[] = {
      {.size = sizeof local, .local_queue = true},
      {.size = sizeof local, .local_queue = true, .layout = LK_LAYOUT_KAZOO},
      {.size = sizeof local, .local_queue = true, .layout = LK_LAYOUT_NATIVE},
      {.size = sizeof local,
       .local_queue = true,
       .layout = LK_LAYOUT_NATIVE_UUID},
      {.size = sizeof local,
       .local_queue = true,
       .layout = LK_LAYOUT_NATIVE,
       .prefix = "lock"}};
  enum { KINDS = sizeof kinds / sizeof kinds[0] };

  begin();
  for (int i = 0; i < 2 * KINDS; i++) {
    locker_init(&owners[i], &lp.one, &kinds[i % KINDS]);
    owners[i].react = note;
  }
  acquire_all(2 * KINDS);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), KINDS);
  end(2 * KINDS);
}
END_TEST

START_TEST(waiter_knows_its_position)
{
  begin();
  lock_pair_hold(&lp);
  locker_release(&lp.a);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  add_owners(3);
  acquire_all(3);
  ck_assert(locker_check_events(&owners[0], "waiting 1 0000000001\n"));
  ck_assert(locker_check_events(&owners[1], "waiting 2 0000000001\n"));
  ck_assert(locker_check_events(&owners[2], "waiting 3 0000000001\n"));
  ck_assert_ptr_null(lk_lock_node(owners[0].lock));
  locker_release(&lp.b);
  model_turn(&lp.server);
  locker_init(&owners[3], &lp.one, &local);
  ck_assert_int_eq(locker_acquire(&owners[3], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&owners[3], "waiting 3 0000000002\n"));
  ck_assert_str_eq(lk_lock_node(owners[0].lock),
                   model_child(&lp.server, LOCKS, 0));
  end(4);
}
END_TEST

START_TEST(after_sixteen_handoffs_others_have_their_turn)
{
  uint64_t last_token = 0, last_turn = 0;

  begin();
  add_owners(OWNERS);
  acquire_all(OWNERS);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  for (int i = 0; i < OWNERS; i++) {
    if (i == 17) {
      ck_assert_int_eq(lp.b.acquired, 0);
      ck_assert_int_eq(granted, 17);
      locker_release(&lp.b);
      model_turn(&lp.server);
    }
    ck_assert_int_eq(granted, i + 1);
    ck_assert_int_eq(order[i], i);
    ck_assert_uint_ge(lk_lock_token(owners[i].lock), last_token);
    ck_assert(lk_lock_token(owners[i].lock) > last_token ||
              lk_lock_handoffs(owners[i].lock) > last_turn);
    last_token = lk_lock_token(owners[i].lock);
    last_turn = lk_lock_handoffs(owners[i].lock);
    lp.one.link->log[0] = '\0';
    locker_release(&owners[i]);
    model_turn(&lp.server);
    if (i == 33) /* no other contender waits, so the node is replaced in one
                    round trip */
      ck_assert(model_check_log(lp.one.link, "delete create2 getChildren2"));
  }
  end(OWNERS);
}
END_TEST

START_TEST(a_queue_of_its_own_for_each_client_path_and_kind)
{
  begin();
  add_owners(1);
  acquire_all(1);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT),
                   0); /* a has no local queue, so it has a node of its own */
  model_turn(&lp.server);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 2);
  locker_init(&owners[1], &lp.two, &local);
  ck_assert_int_eq(locker_acquire(&owners[1], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 3);
  locker_release(&owners[0]);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, 0);
  end(2);
}
END_TEST

START_TEST(other_kinds_of_locks_refuse_a_local_queue)
{
  lk_semaphore_config permits = {.size = sizeof permits, .permits = 1};
  lk_multilock_member member = {.path = LOCKS};
  lk_rwlock *rw;
  lk_lock *l;

  begin();
  ck_assert_int_eq(lk_rwlock_new(&rw, lp.one.link->client, LOCKS, &local),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_semaphore_new(&l, lp.one.link->client, LOCKS, &local, &permits),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_multilock_new(&l, lp.one.link->client, &member, 1, &local, NULL),
      LK_ERR_BAD_ARGUMENT);
  end(0);
}
END_TEST

/* ---- tries, limits and cancels ------------------------------------------- */

START_TEST(try_is_refused_by_local_and_remote_contenders)
{
  begin();
  add_owners(2);
  ck_assert_int_eq(locker_acquire(&owners[0], 0), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[0].acquired, 0);
  ck_assert_int_eq(locker_acquire(&owners[1], 0), 0);
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].acquired, LK_ERR_BUSY);
  locker_release(&owners[0]);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  /* owner 0 tries, and owner 1 waits behind it */
  ck_assert_int_eq(locker_acquire(&owners[0], 0), 0);
  ck_assert_int_eq(locker_acquire(&owners[1], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[0].acquired, LK_ERR_BUSY);
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  locker_release(&lp.b);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].acquired, 0);
  end(2);
}
END_TEST

START_TEST(queue_limit_counts_local_owners)
{
  lk_lock_config config = {
      .size = sizeof config, .local_queue = true, .max_queue = 2};

  begin();
  for (int i = 0; i < 4; i++) {
    locker_init(&owners[i], &lp.one, &config);
    ck_assert_int_eq(locker_acquire(&owners[i], LK_NO_LIMIT), 0);
    model_turn(&lp.server);
  }
  ck_assert_int_eq(owners[2].acquired, NOT_YET);
  ck_assert_int_eq(owners[3].acquired, LK_ERR_QUEUE_FULL);
  end(4);
}
END_TEST

START_TEST(a_wait_that_ends_leaves_the_others_in_place)
{
  begin();
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  add_owners(4);
  ck_assert_int_eq(locker_acquire(&owners[0], 100), 0);
  for (int i = 1; i < 4; i++)
    ck_assert_int_eq(locker_acquire(&owners[i], LK_NO_LIMIT), 0);
  model_run(&lp.server, 200);
  ck_assert_int_eq(owners[0].acquired, LK_ERR_DEADLINE);
  lk_lock_cancel(owners[2].lock);
  ck_assert_int_eq(owners[2].acquired, LK_ERR_CANCELLED);
  model_turn(&lp.server);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 2);
  locker_release(&lp.b);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].acquired, 0);
  locker_release(&owners[1]);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[3].acquired, 0);
  end(4);
}
END_TEST

START_TEST(local_waiter_can_cancel_during_a_handover)
{
  begin();
  add_owners(2);
  acquire_all(2);
  locker_release(&owners[0]);
  lk_lock_cancel(
      owners[1].lock); /* before the node is handed over to owner 1 */
  model_turn(&lp.server);
  ck_assert_int_eq(owners[0].released, 0);
  ck_assert_int_eq(owners[1].acquired, LK_ERR_CANCELLED);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  end(2);
}
END_TEST

/* ---- ends that are not handed over --------------------------------------- */

START_TEST(revoked_node_is_released_and_not_handed_over)
{
  begin();
  add_owners(2);
  acquire_all(2);
  model_run(&lp.server, T / 2);
  model_set(&lp.server, lk_lock_node(owners[0].lock), LK_REVOKE_MESSAGE);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&owners[0], "revoked\n"));
  locker_release(&owners[0]);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  end(2);
}
END_TEST

START_TEST(a_lease_that_runs_out_is_not_passed_on)
{
  begin();
  add_owners(2);
  acquire_all(2);
  lp.one.link->frozen = true;
  model_run(&lp.server, T - T / 8);
  ck_assert_int_eq(lk_lock_get_state(owners[0].lock), LK_LOCK_UNSURE);
  locker_release(&owners[0]);
  model_run(&lp.server, T / 16);
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  lp.one.link->frozen = false;
  model_run(&lp.server, T);
  ck_assert_int_eq(owners[1].acquired, 0);
  end(2);
}
END_TEST

START_TEST(loss_is_reported_to_the_holder_and_the_others_queue_again)
{
  begin();
  add_owners(3);
  acquire_all(3);
  model_run(&lp.server, T / 2); /* by now the node is watched */
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  model_turn(&lp.server);
  ck_assert(locker_check_events(&owners[0], "lost NO_NODE\n"));
  ck_assert_int_eq(owners[1].acquired, 0);
  ck_assert_int_eq(owners[2].acquired, NOT_YET);
  /* also if the node is deleted between two holders */
  model_run(&lp.server, T / 2);
  locker_release(&owners[1]);
  model_expire(&lp.server, lp.one.link->last_session);
  model_drop(lp.one.link);
  model_run(&lp.server, T);
  ck_assert_int_eq(owners[2].acquired, 0);
  ck_assert_int_eq(lk_lock_release(owners[0].lock, NULL, NULL), LK_ERR_LOST);
  end(3);
}
END_TEST

static void acquire_again_when_ended(locker *l, const char *what)
{
  note(l, what);
  if (strcmp(what, "acquired") == 0 && l->acquired != 0 && l->calls < 8)
    ck_assert_int_eq(locker_acquire(l, LK_NO_LIMIT), 0);
}

START_TEST(acquire_in_the_callback_of_an_end_survives_that_end)
{
  static const lk_lock_config fails = {
      .size = sizeof fails, .local_queue = true, .fail_on_expiry = true};

  begin();
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  for (int i = 0; i < 3; i++)
    locker_init(&owners[i], &lp.one, &fails);
  owners[0].react = acquire_again_when_ended;
  owners[2].react = acquire_again_when_ended;
  acquire_all(3);
  model_expire(&lp.server, lp.one.link->last_session);
  model_drop(lp.one.link);
  model_run(&lp.server, T);
  ck_assert_int_eq(owners[0].acquired, NOT_YET);
  ck_assert_int_eq(owners[1].acquired, LK_ERR_SESSION_EXPIRED);
  ck_assert_int_eq(owners[2].acquired, NOT_YET);
  locker_release(&lp.b);
  model_run(&lp.server, T);
  ck_assert_int_eq(owners[0].acquired, 0);
  locker_release(&owners[0]);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[2].acquired, 0);
  end(3);
}
END_TEST

static void free_the_next(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0)
    locker_free(l + 1);
}

START_TEST(callback_of_an_end_may_free_the_others)
{
  begin();
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  add_owners(2);
  owners[0].react = free_the_next;
  ck_assert_int_eq(locker_acquire(&owners[0], 0), 0);
  ck_assert_int_eq(locker_acquire(&owners[1], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[0].acquired, LK_ERR_BUSY);
  end(1);
}
END_TEST

START_TEST(verify_outlives_the_handover_of_its_owner)
{
  begin();
  add_owners(2);
  acquire_all(2);
  ck_assert_int_eq(locker_verify(&owners[0]), 0);
  locker_release(&owners[0]);
  ck_assert_int_eq(owners[0].verified, LK_ERR_NOT_HELD);
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].acquired, 0);
  ck_assert_int_eq(locker_verify(&owners[1]), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].verified, 0);
  end(2);
}
END_TEST

START_TEST(missing_permission_is_reported_to_each_local_owner)
{
  begin();
  model_deny(&lp.server, LOCKS, LK_PERM_CREATE);
  add_owners(3);
  acquire_all(3);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(owners[i].acquired, LK_ERR_NO_AUTH);
  end(3);
}
END_TEST

/* ---- ends --------------------------------------------------------------- */

START_TEST(a_closed_client_ends_all_of_them)
{
  for (int held = 0; held < 3; held++) {
    begin();
    add_owners(4);
    if (held == 0) {
      ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
      model_turn(&lp.server);
    }
    acquire_all(3);
    if (held == 2)
      locker_release(&owners[0]);
    ck_assert_int_eq(locker_acquire(&owners[3], 0), 0); /* to be turned away */
    lk_client_free(lp.one.link->client);
    if (held == 1)
      ck_assert(locker_check_events(&owners[0], "lost CLOSED\n"));
    if (held == 2)
      ck_assert_int_eq(owners[0].released, 0);
    for (int i = held == 0 ? 0 : 1; i < 3; i++)
      ck_assert_int_eq(owners[i].acquired, LK_ERR_CLOSED);
    ck_assert_int_ne(owners[3].acquired, NOT_YET);
    model_expire(&lp.server, lp.one.link->last_session);
    end(4);
  }
}
END_TEST

static int freed_in_done;

static void free_all(lk_client *c, int err, void *arg)
{
  (void)err;
  (void)arg;
  freed_in_done++;
  for (int i = 0; i < 4; i++)
    locker_free(&owners[i]);
  locker_free(&lp.a);
  lk_client_free(c);
}

/* If a timer outlived its owner, the sanitizer would report it when the client
 * is freed. */
START_TEST(all_may_be_freed_once_the_client_is_closed)
{
  for (int kind = 0; kind < 6; kind++) {
    begin();
    freed_in_done = 0;
    add_owners(4);
    if (kind % 2 == 0) {
      ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
      model_turn(&lp.server);
    }
    lp.server.down = kind / 2 == 1;
    if (lp.server.down)
      model_drop(lp.one.link);
    for (int i = 0; i < 3; i++)
      ck_assert_int_eq(locker_acquire(&owners[i], LK_NO_LIMIT), 0);
    if (kind / 2 == 2)
      model_turn(&lp.server);
    ck_assert_int_eq(locker_acquire(&owners[3], 0), 0); /* to be turned away */
    ck_assert_int_eq(lk_client_close(lp.one.link->client, free_all, NULL), 0);
    model_run(&lp.server, 2000);
    ck_assert_int_eq(freed_in_done, 1);
    ck_assert_ptr_null(lp.one.link->client);
    for (int i = 0; i < 4; i++)
      ck_assert_int_ne(owners[i].acquired, NOT_YET);
    lp.server.down = false;
    model_expire(&lp.server, lp.one.link->last_session);
    end(0);
  }
}
END_TEST

static void try_again(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0 && l->calls < 30000)
    ck_assert_int_eq(locker_acquire(l, 0), 0);
}

START_TEST(try_in_the_callback_of_a_try_does_not_delay_others)
{
  begin();
  add_owners(2);
  ck_assert_int_eq(locker_acquire(&owners[0], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  owners[1].react = try_again;
  ck_assert_int_eq(locker_acquire(&owners[1], 0), 0);
  lk_client_tick(lp.one.link->client);
  ck_assert_uint_gt(owners[1].calls, 0);
  ck_assert_uint_lt(owners[1].calls, 20000);
  owners[1].react = NULL;
  model_turn(&lp.server);
  end(2);
}
END_TEST

static void acquire_again(locker *l, const char *what)
{
  if (strncmp(what, "waiting", 7) != 0 || l->calls > 30000)
    return;
  l->events[0] = '\0';
  l->react = NULL;
  lk_lock_cancel(l->lock);
  l->react = acquire_again;
  ck_assert_int_eq(locker_acquire(l, LK_NO_LIMIT), 0);
}

START_TEST(acquire_in_the_waiting_event_does_not_delay_others)
{
  begin();
  add_owners(2);
  ck_assert_int_eq(locker_acquire(&owners[0], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  owners[1].react = acquire_again;
  ck_assert_int_eq(locker_acquire(&owners[1], LK_NO_LIMIT), 0);
  lk_client_tick(lp.one.link->client);
  ck_assert_uint_gt(owners[1].calls, 0);
  ck_assert_uint_lt(owners[1].calls, 25000);
  owners[1].react = NULL;
  owners[1].events[0] = '\0';
  model_turn(&lp.server);
  end(2);
}
END_TEST

START_TEST(freed_handles_leave_nothing)
{
  begin();
  add_owners(4);
  acquire_all(4);
  locker_free(&owners[2]);
  ck_assert_int_eq(owners[2].acquired, LK_ERR_CLOSED);
  locker_free(&owners[0]);
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].acquired, 0);
  locker_release(&owners[1]);
  locker_free(&owners[1]);
  ck_assert_int_eq(owners[1].released, LK_ERR_CLOSED);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[3].acquired, 0);
  locker_release(&owners[3]);
  locker_free(&owners[3]);
  ck_assert_int_eq(owners[3].released, LK_ERR_CLOSED);
  end(0);
}
END_TEST

/* Three handles hold in turn, and the n-th allocation fails. false: there were
 * fewer allocations. */
static bool runs_short_of_memory(unsigned n)
{
  bool short_of;
  int made = 0;

  lock_pair_begin(&lp, NULL, NULL);
  lp.one.mem.fail_at = lp.one.mem.count + n;
  while (made < 3 && locker_try_init(&owners[made], &lp.one, &local))
    made++;
  for (int i = 0; i < made; i++) {
    int err = locker_acquire(&owners[i], LK_NO_LIMIT);

    ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
  }
  for (int turn = 0; turn < 12; turn++) {
    model_run(&lp.server, T / 4);
    for (int i = 0; i < made; i++) {
      if (lk_lock_get_state(owners[i].lock) == LK_LOCK_HELD)
        locker_release(&owners[i]);
    }
  }
  model_run(&lp.server, T);
  short_of = failing_mem_failed(&lp.one.mem);
  lp.one.mem.fail_at = 0;
  for (int i = 0; i < made; i++)
    ck_assert_int_ne(lk_lock_get_state(owners[i].lock), LK_LOCK_ACQUIRING);
  end(made);
  return short_of;
}

START_TEST(missing_memory_is_reported_to_each_local_owner)
{
  unsigned n = 1;

  while (runs_short_of_memory(n))
    n++;
  ck_assert_uint_gt(n, 10);
}
END_TEST

/* ---- all of it ---------------------------------------------------------- */

enum { RANDOM_OWNERS = 6 };

static uint64_t roll_state;

static unsigned roll(unsigned n)
{
  roll_state = roll_state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(roll_state >> 33) % n;
}

static uint64_t newest_token, newest_turn;
static bool holders_may_be_unaware; /* nodes are deleted in ways that their
                                       holders cannot know of at once */

static void check_grant(locker *l, const char *what)
{
  uint64_t token, turn;

  if (strcmp(what, "acquired") == 0 && l->acquired == 0 &&
      lk_lock_count(l->lock) == 1) {
    token = lk_lock_token(l->lock);
    turn = lk_lock_handoffs(l->lock);
    ck_assert(token > newest_token ||
              (token == newest_token && turn > newest_turn));
    newest_token = token;
    newest_turn = turn;
  }
  l->events[0] = '\0';
  if (l->lock != NULL && roll(12) == 0) {
    locker_free(l);
    return;
  }
  if (l->lock != NULL && roll(3) == 0)
    (void)lk_lock_release(l->lock, NULL, NULL);
}

static void assert_one_at_most(void)
{
  int held = !holders_may_be_unaware && lk_lock_ok(lp.b.lock);

  for (int i = 0; i < RANDOM_OWNERS; i++)
    held += owners[i].lock != NULL && lk_lock_ok(owners[i].lock);
  ck_assert_int_le(held, 1);
}

static void act_randomly(locker *l)
{
  if (l->lock == NULL) {
    locker_init(l, &lp.one, &local);
    l->react = check_grant;
    return;
  }
  switch (roll(6)) {
  case 0:
  case 1:
    if (l->acquired != NOT_YET || lk_lock_get_state(l->lock) == LK_LOCK_IDLE)
      (void)locker_acquire(l, roll(4) == 0 ? 0 : roll(2) == 0 ? 50 : -1);
    break;
  case 2:
    if (l->released != NOT_YET || lk_lock_get_state(l->lock) == LK_LOCK_HELD)
      (void)locker_try_release(l);
    break;
  case 3: (void)lk_lock_release(l->lock, NULL, NULL); break;
  case 4: lk_lock_cancel(l->lock); break;
  default:
    if (lk_lock_get_state(l->lock) == LK_LOCK_HELD)
      (void)lk_lock_verify(l->lock, NULL, NULL);
    break;
  }
}

static void inject_fault(unsigned choice)
{
  switch (roll(choice)) {
  case 0: model_drop(lp.one.link); break;
  case 1: lp.one.link->throttle_at = lp.one.link->requests + 1 + roll(4); break;
  case 2: model_expire(&lp.server, lp.one.link->last_session); break;
  default:
    if (model_children(&lp.server, LOCKS) > 0)
      model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  }
}

static void run_random_calls(uint64_t seed)
{
  roll_state = seed;
  newest_token = newest_turn = 0;
  holders_may_be_unaware = seed % 2 == 0;
  begin();
  for (int i = 0; i < RANDOM_OWNERS; i++) {
    locker_init(&owners[i], &lp.one, &local);
    owners[i].react = check_grant;
  }
  for (int step = 0; step < 150; step++) {
    act_randomly(&owners[roll(RANDOM_OWNERS)]);
    if (roll(4) == 0 && lk_lock_get_state(lp.b.lock) == LK_LOCK_IDLE)
      (void)lk_lock_acquire(lp.b.lock, LK_NO_LIMIT, NULL, NULL);
    else if (roll(4) == 0)
      (void)lk_lock_release(lp.b.lock, NULL, NULL);
    if (roll(20) == 0)
      inject_fault(holders_may_be_unaware ? 4 : 2);
    model_run(&lp.server, roll(3) == 0 ? roll(T / 4) : 0);
    assert_one_at_most();
  }
  end(RANDOM_OWNERS);
}

START_TEST(random_calls_leave_one_holder_at_most_and_no_node)
{
  for (uint64_t seed = 1; seed <= 300; seed++)
    run_random_calls(seed);
}
END_TEST

SUITE("local_queue",
      local_owners_share_one_node_and_hand_it_over_without_requests,
      names_of_another_layout_are_another_queue, waiter_knows_its_position,
      after_sixteen_handoffs_others_have_their_turn,
      a_queue_of_its_own_for_each_client_path_and_kind,
      other_kinds_of_locks_refuse_a_local_queue,
      try_is_refused_by_local_and_remote_contenders,
      queue_limit_counts_local_owners,
      a_wait_that_ends_leaves_the_others_in_place,
      local_waiter_can_cancel_during_a_handover,
      revoked_node_is_released_and_not_handed_over,
      a_lease_that_runs_out_is_not_passed_on,
      loss_is_reported_to_the_holder_and_the_others_queue_again,
      acquire_in_the_callback_of_an_end_survives_that_end,
      callback_of_an_end_may_free_the_others,
      verify_outlives_the_handover_of_its_owner,
      missing_permission_is_reported_to_each_local_owner,
      a_closed_client_ends_all_of_them,
      all_may_be_freed_once_the_client_is_closed,
      try_in_the_callback_of_a_try_does_not_delay_others,
      acquire_in_the_waiting_event_does_not_delay_others,
      freed_handles_leave_nothing,
      missing_memory_is_reported_to_each_local_owner,
      random_calls_leave_one_holder_at_most_and_no_node)
