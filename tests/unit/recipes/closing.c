/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/single.h>
#include <stdio.h>

/* Locks and clients that are closed or freed: in any order, in callbacks, and
 * with replies that are too long. */

static lock_pair lp;
static test_client small; /* a client with a low receive limit */

static void note_left_behind(lk_client *c, const char *path, int err, void *arg)
{
  test_client *p = arg;
  size_t at = strlen(p->left_behind);

  (void)c;
  snprintf(p->left_behind + at, sizeof p->left_behind - at, "%s %s\n",
           lk_error_name(err), path);
}

static void begin(void)
{
  lock_pair_begin(&lp, NULL, NULL);
}

/* ---- the order of freeing ---------------------------------------------- */

static void close_when_connected(lk_client *c, lk_state state, int err,
                                 void *arg)
{
  lk_listener *l = arg;

  (void)err;
  if (state != LK_STATE_CONNECTED)
    return;
  ck_assert_int_eq(lk_client_close(c, NULL, NULL), 0);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_CLOSED);
  lk_client_detach(c, l);
}

/* The client is closed within a state callback, so the locks are notified of
 * the close before the other listeners are notified of the state. */
START_TEST(listener_closes_the_client_before_others_are_notified)
{
  lk_listener first = {.state = close_when_connected, .arg = &first};
  lk_listener last = {.state = NULL};

  begin();
  lp.server.down = true;
  model_drop(lp.one.link);
  model_run(&lp.server, 10);
  ck_assert_int_eq(locker_acquire(&lp.a, -1), 0);
  lk_client_attach(lp.one.link->client, &first);
  lk_client_attach(lp.one.link->client, &last);
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lk_client_state(lp.one.link->client), LK_STATE_CLOSED);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_CLOSED);
  lk_client_detach(lp.one.link->client, &last);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(release_before_a_close_is_executed_first)
{
  begin();
  lock_pair_hold(&lp);
  locker_release(&lp.a);
  ck_assert_int_eq(lk_client_close(lp.one.link->client, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.released, 0);
  ck_assert(model_check_log(lp.one.link, "delete closeSession"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(expiry_ends_all_locks_of_a_client_with_one_session)
{
  lk_client_config c = {
      .size = sizeof c, .session_timeout_ms = T, .one_session = true};
  test_client three;
  locker l;

  begin();
  lock_pair_hold(&lp);
  failing_mem_init(&three.mem);
  c.mem = &three.mem.mem;
  three.link = model_client(&lp.server, &c);
  locker_init(&l, &three, NULL);
  model_turn(&lp.server);
  ck_assert_int_eq(locker_acquire(&l, -1), 0);
  model_turn(&lp.server);
  lp.server.down = true;
  model_drop(three.link);
  model_expire(&lp.server, three.link->last_session);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(l.acquired, LK_ERR_SESSION_EXPIRED);
  ck_assert_int_eq(lk_lock_acquire(l.lock, -1, NULL, NULL), LK_ERR_CLOSED);
  locker_free(&l);
  test_client_free(&three);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(node_of_a_lock_freed_during_its_create_is_deleted)
{
  /* freed before the create is answered */
  begin();
  ck_assert_int_eq(locker_acquire(&lp.a, -1), 0);
  locker_free(&lp.a);
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.one.link, "create2 getChildren2 | delete"));
  lock_pair_end(&lp);
  /* freed while held */
  begin();
  lock_pair_hold(&lp);
  locker_free(&lp.a);
  model_turn(&lp.server);
  ck_assert(model_check_log(lp.one.link, "delete"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(lock_freed_without_a_connection_is_deleted_on_the_next_one)
{
  begin();
  lock_pair_hold(&lp);
  lp.server.down = true;
  model_drop(lp.one.link);
  locker_free(&lp.a);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(lock_freed_before_a_break_leaves_no_node)
{
  for (unsigned request = 1; request < 3; request++) {
    begin();
    lp.one.link->cut_at = request;
    lp.one.link->cut_after = true;
    ck_assert_int_eq(locker_acquire(&lp.a, -1), 0);
    locker_free(&lp.a);
    model_run(&lp.server, T / 10);
    ck_assert_uint_eq(model_children(&lp.server, LOCKS), 0);
    lock_pair_end(&lp);
  }
}
END_TEST

static void acquire_once_more(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0 && l->acquired != 0)
    ck_assert_int_eq(locker_acquire(l, -1), 0);
}

START_TEST(acquire_in_the_callback_of_an_expiry_survives_that_expiry)
{
  lk_lock_config c = {.size = sizeof c, .fail_on_expiry = true};

  locker other;

  lock_pair_begin(&lp, NULL, &c);
  lock_pair_queue(&lp);
  locker_init(&other, &lp.two, &c); /* its session expires as well */
  ck_assert_int_eq(locker_acquire(&other, -1), 0);
  model_turn(&lp.server);
  lp.b.react = acquire_once_more;
  unsigned before = lp.b.calls;

  lp.server.down = true;
  model_drop(lp.two.link);
  model_expire(&lp.server, lp.two.link->last_session);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(other.acquired, LK_ERR_SESSION_EXPIRED);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  ck_assert_uint_eq(
      lp.b.calls,
      before + 2); /* the end of the acquire, and WAITING of the next one */
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 2);
  lp.b.react = NULL;
  locker_free(&other);
  lock_pair_end(&lp);
}
END_TEST

static void acquire_when_released(locker *l, const char *what)
{
  if (strcmp(what, "verified") == 0)
    ck_assert_int_eq(locker_acquire(l, -1), 0);
}

START_TEST(acquire_in_the_callback_of_a_release_survives_that_release)
{
  begin();
  lock_pair_hold(&lp);
  lp.a.react = acquire_when_released;
  ck_assert_int_eq(locker_verify(&lp.a), 0);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  ck_assert_int_eq(lp.a.verified, LK_ERR_NOT_HELD);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, 0);
  ck_assert_uint_eq(lk_lock_count(lp.a.lock), 1);
  lp.a.react = NULL;
  lock_pair_end(&lp);
}
END_TEST

static void acquire_when_lost(locker *l, const char *what)
{
  if (strncmp(what, "lost", 4) == 0) {
    ck_assert_int_eq(lk_lock_release(l->lock, NULL, NULL), LK_ERR_LOST);
    ck_assert_int_eq(locker_acquire(l, -1), 0);
  }
}

START_TEST(acquire_in_the_callback_of_a_loss_survives_that_loss)
{
  begin();
  lock_pair_hold(&lp);
  lp.a.react = acquire_when_lost;
  ck_assert_int_eq(locker_verify(&lp.a), 0);
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.a, "lost NO_NODE\n"));
  ck_assert_int_eq(lp.a.acquired, 0);
  ck_assert_uint_eq(lk_lock_count(lp.a.lock), 1);
  lp.a.react = NULL;
  lock_pair_end(&lp);
}
END_TEST

static locker *victim;

static void free_victim(locker *l, const char *what)
{
  (void)l;
  (void)what;
  lk_lock_free(victim->lock);
  victim->lock = NULL;
}

START_TEST(next_subscription_to_be_notified_may_be_freed)
{
  locker others[3];
  char path[32];

  begin();
  for (int i = 0; i < 3; i++) {
    locker_init(&others[i], &lp.one, NULL);
    lk_lock_free(others[i].lock);
    snprintf(path, sizeof path, "/locks/y%d", i);
    lk_lock_config c = {.size = sizeof c, .on_event = locker_on_event};

    c.arg = &others[i];
    ck_assert_int_eq(
        lk_lock_new(&others[i].lock, lp.one.link->client, path, &c), 0);
    model_create(&lp.server, path);
    ck_assert_int_eq(lk_lock_acquire(others[i].lock, -1, NULL, NULL), 0);
  }
  model_turn(&lp.server);
  victim = &others[1];
  others[0].react = free_victim;
  lp.server.down = true;
  model_drop(lp.one.link);
  others[0].react = NULL;
  ck_assert(locker_check_events(&others[0], "suspended\n"));
  ck_assert(locker_check_events(&others[1], ""));
  ck_assert(locker_check_events(&others[2], "suspended\n"));
  lp.server.down = false;
  model_run(&lp.server, T / 10);
  locker_free(&others[0]);
  locker_free(&others[2]);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(callback_that_frees_a_cancelled_lock_is_called_once)
{
  begin();
  lock_pair_hold(&lp);
  ck_assert_int_eq(locker_acquire(&lp.a, -1), 0);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  ck_assert_int_eq(locker_verify(&lp.a), 0);
  victim = &lp.a;
  lp.a.react = free_victim;
  lk_lock_cancel(lp.a.lock);
  ck_assert_ptr_null(lp.a.lock);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_CLOSED);
  lp.a.react = NULL;
  lock_pair_end(&lp);
}
END_TEST

START_TEST(callback_of_a_close_may_free_the_next_lock)
{
  locker others[3];

  begin();
  lp.server.down = true;
  model_drop(lp.one.link);
  for (int i = 0; i < 3; i++) {
    locker_init(&others[i], &lp.one, NULL);
    ck_assert_int_eq(locker_acquire(&others[i], -1), 0);
  }
  victim = &others[1];
  others[0].react = free_victim;
  lk_client_free(lp.one.link->client);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(others[i].acquired, LK_ERR_CLOSED);
  locker_free(&others[0]);
  locker_free(&others[2]);
  model_expire(&lp.server, lp.one.link->last_session);
  lp.server.down = false;
  lock_pair_end(&lp);
}
END_TEST

/* ---- freeing in callbacks ---------------------------------------------- */

static unsigned calls;
static unsigned act_at;
static void (*act)(locker *l);

static void act_at_nth_callback(locker *l, const char *what)
{
  (void)what;
  if (++calls == act_at)
    act(l);
}

/* A sequence with all kinds of callbacks: acquire, wait, break, loss, re-entry,
 * release and expiry. Callbacks may have freed any object, so each step asks
 * what exists. */
static void run_sequence(void)
{
  lk_lock_config c = {.size = sizeof c, .unsure_when_suspended = true};

  lock_pair_begin(&lp, NULL, &c);
  model_create(&lp.server,
               LOCKS "/x__lock__0000009999"); /* a node of another kind, which
                                                 is reported as an event */
  calls = 0;
  lp.a.react = act_at_nth_callback;
  lp.b.react = act_at_nth_callback;
  (void)locker_acquire(&lp.a, -1);
  (void)locker_acquire(&lp.b, 10 * T);
  model_run(&lp.server, T / 2);
  if (lp.one.link->up)
    model_drop(lp.one.link);
  model_run(&lp.server, T / 2);
  if (model_children(&lp.server, LOCKS) > 2)
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 1));
  model_turn(&lp.server);
  if (lp.a.lock != NULL && lk_lock_get_state(lp.a.lock) == LK_LOCK_HELD) {
    (void)locker_acquire(&lp.a, -1);
    model_turn(&lp.server);
  }
  for (int i = 0; i < 2 && lp.a.lock != NULL; i++) {
    if (lk_lock_get_state(lp.a.lock) == LK_LOCK_HELD)
      locker_release(&lp.a);
    model_turn(&lp.server);
  }
  model_run(&lp.server, T / 2);
  model_expire(&lp.server, lp.two.link->last_session);
  model_run(&lp.server, T / 2);
}

static void end_sequence(void)
{
  lp.a.react = NULL;
  lp.b.react = NULL;
  model_delete(&lp.server, LOCKS "/x__lock__0000009999");
  model_expire(&lp.server, lp.one.link->last_session);
  model_expire(&lp.server, lp.two.link->last_session);
  lock_pair_end(&lp);
}

/* Runs the sequence once for each of its callbacks, and calls `what` in that
 * callback. */
static void assert_survives(void (*what)(locker *l))
{
  act = what;
  act_at = 1;
  do {
    run_sequence();
    end_sequence();
  } while (calls >= act_at++);
  ck_assert_uint_gt(act_at, 12); /* the sequence has more callbacks */
}

static void free_lock(locker *l)
{
  lk_lock *lock = l->lock;

  lk_lock_free(lock);
  l->lock = NULL;
}

START_TEST(every_callback_may_free_its_lock)
{
  assert_survives(free_lock);
}
END_TEST

static void free_client(locker *l)
{
  lk_client_free(l->p->link->client);
}

START_TEST(every_callback_may_free_its_client)
{
  assert_survives(free_client);
}
END_TEST

static void free_all(locker *l)
{
  free_lock(l);
  lk_client_free(l->p->link->client);
}

START_TEST(every_callback_may_free_all)
{
  assert_survives(free_all);
}
END_TEST

static void free_both(locker *l)
{
  (void)l;
  if (lp.a.lock != NULL)
    free_lock(&lp.a);
  if (lp.b.lock != NULL)
    free_lock(&lp.b);
}

START_TEST(every_callback_may_free_the_locks_of_others)
{
  assert_survives(free_both);
}
END_TEST

static void close_client(locker *l)
{
  (void)lk_client_close(l->p->link->client, NULL, NULL);
}

START_TEST(every_callback_may_close_its_client)
{
  assert_survives(close_client);
}
END_TEST

static void stop(locker *l)
{
  lk_lock_cancel(l->lock);
  while (lk_lock_release(l->lock, NULL, NULL) == 0)
    continue;
}

START_TEST(every_callback_may_cancel_and_release)
{
  assert_survives(stop);
}
END_TEST

static void acquire_again(locker *l)
{
  stop(l);
  (void)lk_lock_acquire(l->lock, -1, NULL, NULL);
}

START_TEST(every_callback_may_acquire_anew)
{
  assert_survives(acquire_again);
}
END_TEST

static void drop(locker *l)
{
  if (l->p->link->up)
    model_drop(l->p->link);
}

START_TEST(every_callback_may_see_its_connection_break)
{
  assert_survives(drop);
}
END_TEST

static void verify(locker *l)
{
  (void)lk_lock_verify(l->lock, NULL, NULL);
  (void)lk_lock_guarded_multi(l->lock, NULL, 0, NULL, NULL, NULL);
}

START_TEST(every_callback_may_verify)
{
  assert_survives(verify);
}
END_TEST

/* ---- lists that are too long --------------------------------------------- */

enum { LONG_QUEUE = 40 };

/* Begins with LONG_QUEUE contender nodes that have no session; `prefix` NULL:
 * with none. A list of them is longer than the limit of `small`. A list of the
 * nodes of one session is not. */
static void begin_with_long_queue(const char *prefix)
{
  lk_client_config cc = {.size = sizeof cc,
                         .session_timeout_ms = T,
                         .receive_limit = 600,
                         .mem = &small.mem.mem};
  char path[64];

  begin();
  for (int i = 0; i < LONG_QUEUE && prefix != NULL; i++) {
    snprintf(path, sizeof path, LOCKS "/%s%010d", prefix, i);
    model_create(&lp.server, path);
  }
  failing_mem_init(&small.mem);
  small.left_behind[0] = '\0';
  small.link = model_client(&lp.server, &cc);
  lk_lease_config kc = {
      .size = sizeof kc, .left_behind = note_left_behind, .arg = &small};

  ck_assert_int_eq(lk_lease_configure(small.link->client, &kc), 0);
  model_turn(&lp.server);
}

static void end_with_long_queue(size_t left)
{
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), left);
  test_client_free(&small);
  model_expire(&lp.server, small.link->last_session);
  while (model_children(&lp.server, LOCKS) > 0)
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  lock_pair_end(&lp);
}

/* The cleanup works although no list can be received. It reads a node before
 * the delete if another client may have a node of that name, or if the own name
 * is not known. */
START_TEST(list_beyond_the_receive_limit_leaves_no_node)
{
  static const lk_layout layouts[] = {LK_LAYOUT_CURATOR, LK_LAYOUT_NATIVE,
                                      LK_LAYOUT_NATIVE_UUID};
  lk_lock_config lc = {.size = sizeof lc};
  locker l, more;

  for (int i = 0; i < 9; i++) {
    lc.layout = layouts[i / 3];
    begin_with_long_queue(lc.layout == LK_LAYOUT_CURATOR ? "lock-" : "seq-");
    locker_init(&l, &small, &lc);
    locker_init(&more, &small, &lc);
    small.link->requests = 0;
    small.link->cut_at = (unsigned)i % 3;
    small.link->cut_after = true;
    ck_assert_int_eq(locker_acquire(&l, -1), 0);
    ck_assert_int_eq(locker_acquire(&more, -1), 0);
    model_run(&lp.server, 2 * T);
    ck_assert_int_eq(l.acquired, LK_ERR_TOO_BIG);
    ck_assert_int_eq(more.acquired, LK_ERR_TOO_BIG);
    ck_assert_str_eq(small.left_behind, "");
    ck_assert_uint_eq(lk_lease_pending_cleanups(small.link->client), 0);
    locker_free(&l);
    locker_free(&more);
    end_with_long_queue(LONG_QUEUE);
  }
}
END_TEST

/* Without the failure, the request would be repeated on each connection, and
 * its reply would break each. */
START_TEST(own_node_beyond_the_receive_limit_fails_the_acquire)
{
  char data[800] = "";
  locker l;
  lk_lock *s;

  memset(data, 'x', sizeof data - 1);
  begin_with_long_queue(NULL);
  lock_pair_hold(&lp);
  model_set(&lp.server, model_child(&lp.server, LOCKS, 0), data);
  model_create(&lp.server, "/locks/single");
  model_set(&lp.server, "/locks/single", data);
  locker_init(&l, &small, NULL);
  ck_assert_int_eq(
      lk_single_new(&s, small.link->client, "/locks/single", NULL, NULL), 0);
  ck_assert_int_eq(locker_acquire(&l, -1), 0);
  model_run(&lp.server, T);
  ck_assert_int_eq(l.acquired, LK_ERR_TOO_BIG);
  ck_assert_int_eq(lk_lock_acquire(s, -1, NULL, NULL), 0);
  model_run(&lp.server, T);
  ck_assert_int_eq(lk_lock_get_state(s), LK_LOCK_IDLE);
  locker_free(&l);
  lk_lock_free(s);
  model_run(&lp.server, T);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 1);
  locker_release(&lp.a);
  model_turn(&lp.server);
  end_with_long_queue(0);
}
END_TEST

START_TEST(node_that_cannot_be_identified_is_left_and_reported)
{
  lk_lock_config lc = {.size = sizeof lc, .layout = LK_LAYOUT_NATIVE};
  locker l;

  begin_with_long_queue("seq-");
  lp.server.no_ephemerals = true;
  locker_init(&l, &small, &lc);
  ck_assert_int_eq(locker_acquire(&l, -1), 0);
  model_run(&lp.server, 2 * T);
  ck_assert_int_eq(l.acquired, LK_ERR_TOO_BIG);
  ck_assert_str_eq(small.left_behind, "TOO_BIG " LOCKS "/seq-0000000040\n");
  ck_assert_uint_eq(lk_lease_pending_cleanups(small.link->client), 0);
  locker_free(&l);
  end_with_long_queue(LONG_QUEUE + 1);
}
END_TEST

SUITE("closing", listener_closes_the_client_before_others_are_notified,
      release_before_a_close_is_executed_first,
      expiry_ends_all_locks_of_a_client_with_one_session,
      node_of_a_lock_freed_during_its_create_is_deleted,
      lock_freed_without_a_connection_is_deleted_on_the_next_one,
      lock_freed_before_a_break_leaves_no_node,
      acquire_in_the_callback_of_an_expiry_survives_that_expiry,
      acquire_in_the_callback_of_a_release_survives_that_release,
      acquire_in_the_callback_of_a_loss_survives_that_loss,
      callback_that_frees_a_cancelled_lock_is_called_once,
      next_subscription_to_be_notified_may_be_freed,
      callback_of_a_close_may_free_the_next_lock,
      every_callback_may_free_its_lock, every_callback_may_free_its_client,
      every_callback_may_free_all, every_callback_may_free_the_locks_of_others,
      every_callback_may_close_its_client,
      every_callback_may_cancel_and_release, every_callback_may_acquire_anew,
      every_callback_may_see_its_connection_break, every_callback_may_verify,
      list_beyond_the_receive_limit_leaves_no_node,
      own_node_beyond_the_receive_limit_fails_the_acquire,
      node_that_cannot_be_identified_is_left_and_reported)
