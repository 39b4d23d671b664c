/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/leader.h>
#include <latchkey/multilock.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>

/* Local queues: owners of one process behind one node. The `owners` are handles
 * of the first session and share a local queue. The handle `a` is of the same
 * session, and `b` is of another one; both have no local queue. */

enum {
  OWNERS = 40,
  DO_NOT_WAIT = 0 /* as the timeout of an acquire */
};

static const lk_lock_config local = {.size = sizeof local, .local_queue = true};

static lock_pair lp;
static locker owners[OWNERS];
static int order[OWNERS]; /* the indices of owners, in the order of grants */
static int granted;       /* how many entries `order` has */

static void note_grant(locker *l, const char *what)
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
    owners[i].react = note_grant;
  }
}

/* Starts the acquires, and has the server execute them as far as possible. */
static void acquire_all(int count)
{
  for (int i = 0; i < count; i++)
    ck_assert_int_eq(locker_acquire(&owners[i], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
}

/* Frees the owners that are left. */
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
    /* the next owner is granted only after the release has returned */
    ck_assert_int_eq(granted, i + 1);
    model_turn(&lp.server);
    ck_assert_int_eq(owners[i].released, 0);
  }
  ck_assert(model_check_log(lp.one.link, "delete"));
  end(10);
}
END_TEST

START_TEST(owners_with_different_layouts_share_no_node)
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
    owners[i].react = note_grant;
  }
  acquire_all(2 * KINDS);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), KINDS);
  end(2 * KINDS);
}
END_TEST

START_TEST(position_of_a_waiter_counts_local_owners_before_it)
{
  begin();
  /* this takes number 0, so that b has 1 and the owners have 2 */
  lock_pair_hold(&lp);
  locker_release(&lp.a);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  add_owners(3);
  acquire_all(3);
  /* predecessors, and the number of the holder's node */
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

/* b queues behind the node of the owners. The owner with index 0 is granted
 * without a handoff, so b follows the owner with index 16. */
START_TEST(after_sixteen_handoffs_the_node_is_released_to_other_contenders)
{
  enum { OWNERS_OF_A_NODE = 1 + 16 };
  uint64_t last_token = 0, last_handoffs = 0;

  begin();
  add_owners(OWNERS);
  acquire_all(OWNERS);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  for (int i = 0; i < OWNERS; i++) {
    if (i == OWNERS_OF_A_NODE) {
      ck_assert_int_eq(lp.b.acquired, 0);
      ck_assert_int_eq(granted, OWNERS_OF_A_NODE);
      locker_release(&lp.b);
      model_turn(&lp.server);
    }
    ck_assert_int_eq(granted, i + 1);
    ck_assert_int_eq(order[i], i);
    ck_assert_uint_ge(lk_lock_token(owners[i].lock), last_token);
    ck_assert(lk_lock_token(owners[i].lock) > last_token ||
              lk_lock_handoffs(owners[i].lock) > last_handoffs);
    last_token = lk_lock_token(owners[i].lock);
    last_handoffs = lk_lock_handoffs(owners[i].lock);
    lp.one.link->log[0] = '\0';
    locker_release(&owners[i]);
    model_turn(&lp.server);
    /* no other contender waits, so the second node is replaced in one round
     * trip */
    if (i == 2 * OWNERS_OF_A_NODE - 1)
      ck_assert(model_check_log(lp.one.link, "delete create2 getChildren2"));
  }
  end(OWNERS);
}
END_TEST

START_TEST(handles_without_the_option_and_other_sessions_have_their_own_nodes)
{
  begin();
  add_owners(1);
  acquire_all(1);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
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
  ck_assert_int_eq(locker_acquire(&owners[0], DO_NOT_WAIT), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[0].acquired, 0);
  ck_assert_int_eq(locker_acquire(&owners[1], DO_NOT_WAIT), 0);
  /* no callback is invoked before the call has returned */
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].acquired, LK_ERR_BUSY);
  locker_release(&owners[0]);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  /* owner 0 does not wait for b; owner 1, behind owner 0, does */
  ck_assert_int_eq(locker_acquire(&owners[0], DO_NOT_WAIT), 0);
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
  /* the holder and one waiter precede owner 2 */
  ck_assert_int_eq(owners[2].acquired, NOT_YET);
  ck_assert_int_eq(owners[3].acquired, LK_ERR_QUEUE_FULL);
  end(4);
}
END_TEST

START_TEST(timeout_and_cancel_of_owners_leave_the_others_in_place)
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
  /* the node of b, and that of the owners */
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
  /* before the turn in which the node is handed over to owner 1 */
  lk_lock_cancel(owners[1].lock);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[0].released, 0);
  ck_assert_int_eq(owners[1].acquired, LK_ERR_CANCELLED);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  end(2);
}
END_TEST

/* ---- holds that are not handed over -------------------------------------- */

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

START_TEST(unsure_hold_is_not_handed_over)
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

START_TEST(loss_is_reported_to_the_holder_and_the_other_owners_queue_again)
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
  /* the node is also replaced if it is deleted between two holders */
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

static void acquire_again_after_a_failure(locker *l, const char *what)
{
  enum { MAX_CALLS = 8 }; /* so that a bug does not repeat it for ever */

  note_grant(l, what);
  if (strcmp(what, "acquired") == 0 && l->acquired != 0 && l->calls < MAX_CALLS)
    ck_assert_int_eq(locker_acquire(l, LK_NO_LIMIT), 0);
}

START_TEST(owner_may_acquire_again_in_the_callback_of_an_expiry)
{
  static const lk_lock_config config = {
      .size = sizeof config, .local_queue = true, .fail_on_expiry = true};

  begin();
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  for (int i = 0; i < 3; i++)
    locker_init(&owners[i], &lp.one, &config);
  owners[0].react = acquire_again_after_a_failure;
  owners[2].react = acquire_again_after_a_failure;
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

static void free_next_owner(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0)
    locker_free(l + 1);
}

START_TEST(callback_of_an_acquire_may_free_the_next_owner)
{
  begin();
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  add_owners(2);
  owners[0].react = free_next_owner;
  ck_assert_int_eq(locker_acquire(&owners[0], DO_NOT_WAIT), 0);
  ck_assert_int_eq(locker_acquire(&owners[1], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[0].acquired, LK_ERR_BUSY);
  end(1);
}
END_TEST

static int guarded_err;

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  (void)c;
  (void)results;
  (void)count;
  (void)arg;
  guarded_err = err;
}

/* The node is deleted, so the multi is executed before the next owner holds. */
START_TEST(node_with_an_unanswered_multi_is_not_handed_over)
{
  begin();
  add_owners(2);
  acquire_all(2);
  guarded_err = NOT_YET;
  lp.one.link->frozen = true;
  ck_assert_int_eq(
      lk_lock_guarded_multi(owners[0].lock, NULL, 0, NULL, on_guarded, NULL),
      0);
  locker_release(&owners[0]);
  model_turn(&lp.server);
  ck_assert_int_eq(owners[1].acquired, NOT_YET);
  lp.one.link->frozen = false;
  model_turn(&lp.server);
  ck_assert_int_eq(guarded_err, 0);
  ck_assert_int_eq(owners[1].acquired, 0);
  ck_assert_uint_eq(lk_lock_handoffs(owners[1].lock), 0);
  /* The reply to this one has come. */
  ck_assert_int_eq(
      lk_lock_guarded_multi(owners[1].lock, NULL, 0, NULL, on_guarded, NULL),
      0);
  model_turn(&lp.server);
  ck_assert_int_eq(locker_acquire(&owners[0], LK_NO_LIMIT), 0);
  locker_release(&owners[1]);
  model_turn(&lp.server);
  ck_assert_uint_eq(lk_lock_handoffs(owners[0].lock), 1);
  end(2);
}
END_TEST

START_TEST(candidates_are_refused)
{
  lk_candidate *c;

  begin();
  add_owners(1);
  ck_assert_int_eq(lk_candidate_new(&c, owners[0].lock, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(c);
  end(1);
}
END_TEST

START_TEST(verify_ends_when_its_owner_hands_the_node_over)
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

/* ---- closed clients and freed handles ------------------------------------ */

START_TEST(freed_client_ends_all_calls_of_owners)
{
  enum { WAITING, HELD, RELEASING }; /* what owner 0 does */

  for (int first = WAITING; first <= RELEASING; first++) {
    begin();
    add_owners(4);
    if (first == WAITING) {
      ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
      model_turn(&lp.server);
    }
    acquire_all(3);
    if (first == RELEASING)
      locker_release(&owners[0]);
    ck_assert_int_eq(locker_acquire(&owners[3], DO_NOT_WAIT), 0);
    lk_client_free(lp.one.link->client);
    if (first == WAITING)
      ck_assert_int_eq(owners[0].acquired, LK_ERR_CLOSED);
    if (first == HELD)
      ck_assert(locker_check_events(&owners[0], "lost CLOSED\n"));
    if (first == RELEASING)
      ck_assert_int_eq(owners[0].released, 0);
    ck_assert_int_eq(owners[1].acquired, LK_ERR_CLOSED);
    ck_assert_int_eq(owners[2].acquired, LK_ERR_CLOSED);
    ck_assert_int_ne(owners[3].acquired, NOT_YET); /* BUSY or CLOSED */
    model_expire(&lp.server, lp.one.link->last_session);
    end(4);
  }
}
END_TEST

static int close_callbacks; /* how many times free_all() was called */

/* The callback of lk_client_close(). */
static void free_all(lk_client *c, int err, void *arg)
{
  (void)err;
  (void)arg;
  close_callbacks++;
  for (int i = 0; i < 4; i++)
    locker_free(&owners[i]);
  locker_free(&lp.a);
  lk_client_free(c);
}

/* If a timer outlived its owner, the sanitizer would report it when the client
 * is freed. */
START_TEST(callback_of_a_close_may_free_all_owners_and_the_client)
{
  /* when the client is closed: */
  enum { REQUEST_NOT_SENT, DISCONNECTED, REQUEST_ANSWERED };

  for (int kind = 0; kind < 6; kind++) {
    bool b_holds = kind % 2 == 0;
    int when = kind / 2;

    begin();
    close_callbacks = 0;
    add_owners(4);
    if (b_holds) {
      ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
      model_turn(&lp.server);
    }
    if (when == DISCONNECTED) {
      lp.server.down = true;
      model_drop(lp.one.link);
    }
    for (int i = 0; i < 3; i++)
      ck_assert_int_eq(locker_acquire(&owners[i], LK_NO_LIMIT), 0);
    if (when == REQUEST_ANSWERED)
      model_turn(&lp.server);
    ck_assert_int_eq(locker_acquire(&owners[3], DO_NOT_WAIT), 0);
    ck_assert_int_eq(lk_client_close(lp.one.link->client, free_all, NULL), 0);
    model_run(&lp.server, 2000); /* a close takes at most 1.5 s */
    ck_assert_int_eq(close_callbacks, 1);
    ck_assert_ptr_null(lp.one.link->client);
    for (int i = 0; i < 4; i++)
      ck_assert_int_ne(owners[i].acquired, NOT_YET);
    lp.server.down = false;
    model_expire(&lp.server, lp.one.link->last_session);
    end(0);
  }
}
END_TEST

/* With so many callbacks in one turn, nothing limits their number. */
enum { ENDLESS = 30000 };

static void try_again(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0 && l->calls < ENDLESS)
    ck_assert_int_eq(locker_acquire(l, DO_NOT_WAIT), 0);
}

START_TEST(endless_tries_in_callbacks_do_not_block_the_loop)
{
  begin();
  add_owners(2);
  ck_assert_int_eq(locker_acquire(&owners[0], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  owners[1].react = try_again;
  ck_assert_int_eq(locker_acquire(&owners[1], DO_NOT_WAIT), 0);
  lk_client_tick(lp.one.link->client);
  ck_assert_uint_gt(owners[1].calls, 0);
  ck_assert_uint_lt(owners[1].calls, ENDLESS);
  owners[1].react = NULL;
  model_turn(&lp.server);
  end(2);
}
END_TEST

static void cancel_and_acquire_again(locker *l, const char *what)
{
  if (strncmp(what, "waiting", strlen("waiting")) != 0 || l->calls > ENDLESS)
    return;
  l->events[0] = '\0'; /* or its buffer overflows */
  l->react = NULL;     /* during the callback of the cancelled acquire */
  lk_lock_cancel(l->lock);
  l->react = cancel_and_acquire_again;
  ck_assert_int_eq(locker_acquire(l, LK_NO_LIMIT), 0);
}

START_TEST(endless_acquires_in_waiting_events_do_not_block_the_loop)
{
  begin();
  add_owners(2);
  ck_assert_int_eq(locker_acquire(&owners[0], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  owners[1].react = cancel_and_acquire_again;
  ck_assert_int_eq(locker_acquire(&owners[1], LK_NO_LIMIT), 0);
  lk_client_tick(lp.one.link->client);
  ck_assert_uint_gt(owners[1].calls, 0);
  ck_assert_uint_lt(owners[1].calls, ENDLESS);
  owners[1].react = NULL;
  owners[1].events[0] = '\0';
  model_turn(&lp.server);
  end(2);
}
END_TEST

START_TEST(owner_that_is_freed_passes_the_node_on_and_the_last_one_deletes_it)
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

/* Three handles hold one after the other, and the n-th allocation fails. false:
 * there were fewer allocations. */
static bool owners_survive_failed_allocation(unsigned n)
{
  bool failed;
  int made = 0; /* how many handles there was memory for */

  lock_pair_begin(&lp, NULL, NULL);
  lp.one.mem.fail_at = lp.one.mem.count + n;
  while (made < 3 && locker_try_init(&owners[made], &lp.one, &local))
    made++;
  for (int i = 0; i < made; i++) {
    int err = locker_acquire(&owners[i], LK_NO_LIMIT);

    ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
  }
  for (int quarter = 0; quarter < 12; quarter++) { /* of a session timeout */
    model_run(&lp.server, T / 4);
    for (int i = 0; i < made; i++) {
      if (lk_lock_get_state(owners[i].lock) == LK_LOCK_HELD)
        locker_release(&owners[i]);
    }
  }
  model_run(&lp.server, T);
  failed = failing_mem_failed(&lp.one.mem);
  lp.one.mem.fail_at = 0;
  for (int i = 0; i < made; i++)
    ck_assert_int_ne(lk_lock_get_state(owners[i].lock), LK_LOCK_ACQUIRING);
  end(made);
  return failed;
}

START_TEST(failed_allocation_leaves_no_owner_acquiring)
{
  unsigned n = 1;

  while (owners_survive_failed_allocation(n))
    n++;
  ck_assert_uint_gt(n, 10);
}
END_TEST

/* ---- random calls ------------------------------------------------------- */

enum { RANDOM_OWNERS = 6 };

static uint64_t roll_state;

/* A random number below `n`, from a linear congruential generator. */
static unsigned roll(unsigned n)
{
  roll_state = roll_state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(roll_state >> 33) % n;
}

/* of the last grant */
static uint64_t newest_token, newest_handoffs;

/* Nodes are deleted in ways that their holders cannot know of at once. */
static bool holders_may_be_unaware;

/* Token and handoffs must increase with each grant. */
static void check_grant(const locker *l)
{
  uint64_t token = lk_lock_token(l->lock);
  uint64_t handoffs = lk_lock_handoffs(l->lock);

  ck_assert(token > newest_token ||
            (token == newest_token && handoffs > newest_handoffs));
  newest_token = token;
  newest_handoffs = handoffs;
}

static void check_grant_and_act_randomly(locker *l, const char *what)
{
  bool acquired = strcmp(what, "acquired") == 0 && l->acquired == 0;

  if (acquired && lk_lock_count(l->lock) == 1) /* no re-entrance */
    check_grant(l);
  l->events[0] = '\0';
  if (l->lock != NULL && roll(12) == 0) {
    locker_free(l);
    return;
  }
  if (l->lock != NULL && roll(3) == 0)
    (void)lk_lock_release(l->lock, NULL, NULL);
}

static void assert_one_holder_at_most(void)
{
  int holders = 0;

  if (!holders_may_be_unaware && lk_lock_ok(lp.b.lock))
    holders++;
  for (int i = 0; i < RANDOM_OWNERS; i++) {
    if (owners[i].lock != NULL && lk_lock_ok(owners[i].lock))
      holders++;
  }
  ck_assert_int_le(holders, 1);
}

static int64_t random_timeout(void)
{
  if (roll(4) == 0)
    return DO_NOT_WAIT;
  return roll(2) == 0 ? 50 : LK_NO_LIMIT;
}

static void call_randomly(locker *l)
{
  if (l->lock == NULL) {
    locker_init(l, &lp.one, &local);
    l->react = check_grant_and_act_randomly;
    return;
  }
  switch (roll(6)) {
  case 0:
  case 1:
    /* the locker records the result of one acquire at a time */
    if (l->acquired != NOT_YET || lk_lock_get_state(l->lock) == LK_LOCK_IDLE)
      (void)locker_acquire(l, random_timeout());
    break;
  case 2:
    /* the locker records the result of one release at a time */
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

enum { FAULTS_THAT_KEEP_NODES = 2, ALL_FAULTS = 4 };

/* One of the first `kinds` kinds of faults. */
static void inject_fault(unsigned kinds)
{
  switch (roll(kinds)) {
  case 0: model_drop(lp.one.link); break;
  case 1: /* one of the next four requests */
    lp.one.link->throttle_at = lp.one.link->requests + 1 + roll(4);
    break;
  case 2: model_expire(&lp.server, lp.one.link->last_session); break;
  default:
    if (model_children(&lp.server, LOCKS) > 0)
      model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  }
}

static void run_random_calls(uint64_t seed)
{
  roll_state = seed;
  newest_token = newest_handoffs = 0;
  holders_may_be_unaware = seed % 2 == 0;
  begin();
  for (int i = 0; i < RANDOM_OWNERS; i++) {
    locker_init(&owners[i], &lp.one, &local);
    owners[i].react = check_grant_and_act_randomly;
  }
  for (int step = 0; step < 150; step++) {
    call_randomly(&owners[roll(RANDOM_OWNERS)]);
    if (roll(4) == 0 && lk_lock_get_state(lp.b.lock) == LK_LOCK_IDLE)
      (void)lk_lock_acquire(lp.b.lock, LK_NO_LIMIT, NULL, NULL);
    else if (roll(4) == 0)
      (void)lk_lock_release(lp.b.lock, NULL, NULL);
    if (roll(20) == 0)
      inject_fault(holders_may_be_unaware ? ALL_FAULTS
                                          : FAULTS_THAT_KEEP_NODES);
    model_run(&lp.server, roll(3) == 0 ? roll(T / 4) : 0);
    assert_one_holder_at_most();
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
      owners_with_different_layouts_share_no_node,
      position_of_a_waiter_counts_local_owners_before_it,
      after_sixteen_handoffs_the_node_is_released_to_other_contenders,
      handles_without_the_option_and_other_sessions_have_their_own_nodes,
      other_kinds_of_locks_refuse_a_local_queue,
      try_is_refused_by_local_and_remote_contenders,
      queue_limit_counts_local_owners,
      timeout_and_cancel_of_owners_leave_the_others_in_place,
      local_waiter_can_cancel_during_a_handover,
      revoked_node_is_released_and_not_handed_over,
      unsure_hold_is_not_handed_over,
      node_with_an_unanswered_multi_is_not_handed_over, candidates_are_refused,
      loss_is_reported_to_the_holder_and_the_other_owners_queue_again,
      owner_may_acquire_again_in_the_callback_of_an_expiry,
      callback_of_an_acquire_may_free_the_next_owner,
      verify_ends_when_its_owner_hands_the_node_over,
      missing_permission_is_reported_to_each_local_owner,
      freed_client_ends_all_calls_of_owners,
      callback_of_a_close_may_free_all_owners_and_the_client,
      endless_tries_in_callbacks_do_not_block_the_loop,
      endless_acquires_in_waiting_events_do_not_block_the_loop,
      owner_that_is_freed_passes_the_node_on_and_the_last_one_deletes_it,
      failed_allocation_leaves_no_owner_acquiring,
      random_calls_leave_one_holder_at_most_and_no_node)
