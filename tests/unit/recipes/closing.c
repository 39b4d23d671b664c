/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/roster.h>
#include <latchkey/single.h>
#include <latchkey/subscribe.h>
#include <stdio.h>

/* Locks and clients that are closed or freed: in any order, in callbacks, and
 * with replies that are too long. */

static lock_pair lp;
static test_client small; /* a client with a low receive limit */

/* The session of the client ends while the client cannot connect. It learns of
 * the end when it connects again. */
static void expire_session(test_client *p)
{
  lp.server.down = true;
  model_drop(p->link);
  model_expire(&lp.server, p->link->last_session);
  lp.server.down = false;
  model_run(&lp.server, T / 10);
}

/* Adds a line for a node that the client could not delete. */
static void note_left_behind(lk_client *c, const char *path, int err, void *arg)
{
  test_client *p = arg;
  size_t end = strlen(p->left_behind);

  (void)c;
  snprintf(p->left_behind + end, sizeof p->left_behind - end, "%s %s\n",
           lk_error_name(err), path);
}

static void begin(void)
{
  lock_pair_begin(&lp, NULL, NULL);
}

/* ---- closed clients, freed locks and ended calls ----------------------- */

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
  lk_listener first = {
      .size = sizeof first, .state = close_when_connected, .arg = &first};
  lk_listener second = {.size = sizeof second,
                        .state = NULL}; /* is notified after the first, which
                    has detached itself by then */

  begin();
  lp.server.down = true;
  model_drop(lp.one.link);
  model_run(&lp.server, 10);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  lk_client_attach(lp.one.link->client, &first);
  lk_client_attach(lp.one.link->client, &second);
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lk_client_state(lp.one.link->client), LK_STATE_CLOSED);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_CLOSED);
  lk_client_detach(lp.one.link->client, &second);
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

/* ---- clients that are freed before their objects ------------------------ */

static unsigned ends_reported;

static void on_any_lock_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  (void)arg;
  ends_reported += event->type == LK_LOCK_EVENT_LOST;
}

static void on_candidate(lk_candidate *c, const lk_candidate_event *event,
                         void *arg)
{
  (void)c;
  (void)arg;
  ends_reported += event->type == LK_CANDIDATE_EVENT_ENDED;
}

static void on_member(lk_membership *m, const lk_membership_event *event,
                      void *arg)
{
  (void)m;
  (void)arg;
  ends_reported += event->type == LK_MEMBERSHIP_EVENT_ENDED;
}

static void on_names(lk_subscription *s, int err, const lk_bytes *names,
                     size_t count, const lk_stat *stat, void *arg)
{
  (void)s;
  (void)names;
  (void)count;
  (void)stat;
  (void)arg;
  ends_reported += err == LK_ERR_CLOSED;
}

static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  (void)r;
  (void)entries;
  (void)count;
  (void)arg;
  ends_reported += err == LK_ERR_CLOSED;
}

enum { OBJECTS = 6 };

/* An object of each kind that lives on a client. */
typedef struct all_objects {
  lk_lock *lock;
  lk_lock *multilock;
  lk_candidate *candidate;
  lk_membership *member;
  lk_subscription *subscription;
  lk_roster *roster;
} all_objects;

static void make_all_objects(all_objects *o, lk_client *c)
{
  const lk_multilock_part members[] = {{.path = "/m/a"}, {.path = "/m/b"}};
  lk_lock_config lock = {.size = sizeof lock, .on_event = on_any_lock_event};
  lk_candidate_config candidate = {.size = sizeof candidate,
                                   .on_event = on_candidate};
  lk_membership_config member = {.size = sizeof member, .on_event = on_member};

  ck_assert_int_eq(lk_lock_new(&o->lock, c, "/l/a", &lock), 0);
  ck_assert_int_eq(lk_multilock_new(&o->multilock, c, members, 2, &lock, NULL),
                   0);
  ck_assert_int_eq(lk_election_new(&o->candidate, c, "/e", LK_LAYOUT_LATCH,
                                   NULL, &candidate),
                   0);
  ck_assert_int_eq(lk_membership_new(&o->member, c, "/g", "x", &member), 0);
  ck_assert_int_eq(
      lk_subscribe_children(&o->subscription, c, "/g", NULL, on_names, NULL),
      0);
  ck_assert_int_eq(
      lk_roster_subscribe(&o->roster, c, "/e", NULL, on_roster, NULL), 0);
  ck_assert_int_eq(lk_lock_acquire(o->lock, LK_NO_LIMIT, NULL, NULL), 0);
  ck_assert_int_eq(lk_lock_acquire(o->multilock, LK_NO_LIMIT, NULL, NULL), 0);
  ck_assert_int_eq(lk_candidate_start(o->candidate), 0);
  ck_assert_int_eq(lk_membership_join(o->member), 0);
}

static void free_object(all_objects *o, int i)
{
  switch (i) {
  case 0: lk_lock_free(o->lock); break;
  case 1: lk_lock_free(o->multilock); break;
  case 2: lk_candidate_free(o->candidate); break;
  case 3: lk_membership_free(o->member); break;
  case 4: lk_subscription_free(o->subscription); break;
  case 5: lk_roster_free(o->roster); break;
  }
}

static void on_no_event(lk_client *c, lk_watch *w, const lk_event *event,
                        void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
}

/* What the objects, and the client of one of them, answer at the end. */
static void check_ended(const all_objects *o, lk_client *c)
{
  ck_assert_int_eq(lk_lock_acquire(o->lock, LK_NO_LIMIT, NULL, NULL),
                   LK_ERR_CLOSED);
  ck_assert_int_eq(lk_lock_acquire(o->multilock, 1, NULL, NULL), LK_ERR_CLOSED);
  ck_assert(!lk_lock_ok(o->lock));
  ck_assert_int_eq(lk_candidate_start(o->candidate), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_membership_join(o->member), LK_ERR_CLOSED);
  lk_lock_cancel(o->lock);
  lk_candidate_resign(o->candidate);
  lk_membership_leave(o->member);

  lk_timer timer = {.fire = NULL};
  lk_listener listener = {.size = sizeof listener, .state = NULL};
  const char *text;
  uint32_t random = 1;
  lk_watch *watch = (lk_watch *)(uintptr_t)1; /* of the first watch */

  ck_assert_int_eq(lk_client_state(c), LK_STATE_CLOSED);
  ck_assert_int_eq(lk_client_clock(c), lk_client_input_ms(c));
  ck_assert_int_eq(lk_get(c, "/", NULL, NULL, NULL), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_client_set_hosts(c, "b"), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_client_close(c, NULL, NULL), LK_ERR_CLOSED);
  ck_assert_str_eq(lk_client_chroot(c), "");
  ck_assert_ptr_null(lk_client_tls(c));
  ck_assert_uint_eq(lk_client_connection(c), 0);
  ck_assert_int_eq(lk_lease_deadline(c), INT64_MIN);
  ck_assert_uint_eq(lk_lease_pending_cleanups(c), 0);
  (void)lk_client_last_error(c, &text);
  lk_client_random(c, &random, sizeof random);
  ck_assert_uint_eq(random, 0);
  lk_client_log(c, LK_LOG_ERROR, 0, "no log function gets this");
  ck_assert_int_eq(
      lk_add_watch(c, "/g", LK_WATCH_PERSISTENT,
                   &(lk_call){.size = sizeof(lk_call), .on_event = on_no_event},
                   NULL, NULL),
      LK_ERR_CLOSED);
  lk_watch_cancel(c, watch);
  ck_assert_int_eq(lk_watch_remove(c, watch, NULL, NULL), LK_ERR_STATE);
  lk_timer_start(c, &timer, 0);
  lk_timer_stop(c, &timer);
  lk_client_attach(c, &listener);
  lk_client_detach(c, &listener);
}

/* No hook is called after `freed`; model_client.c checks this. */
START_TEST(objects_and_their_client_may_be_freed_in_any_order)
{
  enum { STEPS = OBJECTS + 1 }; /* the client is one of them */
  all_objects objects;

  for (int first = 0; first < STEPS; first++) {
    for (int direction = 1; direction < STEPS; direction += STEPS - 2) {
      begin();
      lk_client *c = lp.two.link->client;

      make_all_objects(&objects, c);
      model_run(&lp.server, T / 4);
      ends_reported = 0;
      for (int i = 0; i < STEPS; i++) {
        int step = (first + i * direction) % STEPS;

        if (step < OBJECTS)
          free_object(&objects, step);
        else
          lk_client_free(c);
        if (step == OBJECTS && i == 0) {
          ck_assert_uint_eq(ends_reported, OBJECTS);
          check_ended(&objects, c);
        }
      }
      ck_assert_ptr_null(lp.two.link->client);
      model_expire(&lp.server, lp.two.link->last_session);
      lock_pair_end(&lp);
    }
  }
}
END_TEST

static void free_client_in_callback(lk_client *c, int err, const lk_stat *stat,
                                    void *arg)
{
  (void)err;
  (void)stat;
  lk_client_free(c);
  ck_assert_int_eq(lk_client_state(c), LK_STATE_CONNECTED);
  *(bool *)arg = true;
}

START_TEST(client_freed_in_a_callback_ends_when_the_callback_has_returned)
{
  bool called = false;

  begin();
  lk_client *c = lp.one.link->client;

  lock_pair_hold(&lp);
  ck_assert_int_eq(lk_exists(c, "/", NULL, free_client_in_callback, &called),
                   0);
  model_turn(&lp.server);
  ck_assert(called);
  ck_assert_ptr_null(lp.one.link->client);
  ck_assert_int_eq(lk_client_state(c), LK_STATE_CLOSED);
  ck_assert_str_eq(lp.a.events, "lost CLOSED\n");
  model_expire(&lp.server, lp.one.link->last_session);
  lock_pair_end(&lp);
}
END_TEST

static void (*model_wake)(lk_client *c, void *arg);

static void free_client_in_wake(lk_client *c, void *arg)
{
  model_wake(c, arg);
  lk_client_free(c);
}

/* The program's call sends the first of several requests. The hook frees the
 * client at it, and the rest of the call uses the client. */
START_TEST(client_freed_in_the_hook_wake_ends_with_the_next_input)
{
  begin();
  lk_client *c = lp.one.link->client;

  model_wake = c->hooks.wake;
  c->hooks.wake = free_client_in_wake;
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_client_deadline(c), lk_client_clock(c));
  ck_assert_int_eq(lk_delete_recursive(c, "/x", NULL, NULL, NULL, NULL),
                   LK_ERR_CLOSED);
  lk_client_tick(c);
  ck_assert_ptr_null(lp.one.link->client);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  model_expire(&lp.server, lp.one.link->last_session);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(expiry_ends_all_locks_of_a_client_with_one_session)
{
  lk_client_config c = {
      .size = sizeof c, .session_timeout_ms = T, .one_session = true};
  test_client three; /* the only client that ends with its session */
  locker waiter;

  begin();
  lock_pair_hold(&lp);
  failing_mem_init(&three.mem);
  c.mem = &three.mem.mem;
  three.link = model_client(&lp.server, &c);
  locker_init(&waiter, &three, NULL);
  model_turn(&lp.server);
  locker_request(&waiter);
  expire_session(&three);
  ck_assert_int_eq(waiter.acquired, LK_ERR_SESSION_EXPIRED);
  ck_assert_int_eq(lk_lock_acquire(waiter.lock, LK_NO_LIMIT, NULL, NULL),
                   LK_ERR_CLOSED);
  locker_free(&waiter);
  test_client_free(&three);
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

START_TEST(lock_that_is_to_be_notified_next_may_be_freed)
{
  locker others[3];
  char path[32];

  begin();
  for (int i = 0; i < 3; i++) {
    lk_lock_config c = {
        .size = sizeof c, .on_event = locker_on_event, .arg = &others[i]};

    locker_clear(&others[i], &lp.one);
    snprintf(path, sizeof path, "/locks/y%d", i);
    ck_assert_int_eq(
        lk_lock_new(&others[i].lock, lp.one.link->client, path, &c), 0);
    model_create(&lp.server, path);
    ck_assert_int_eq(lk_lock_acquire(others[i].lock, LK_NO_LIMIT, NULL, NULL),
                     0);
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

START_TEST(callbacks_of_a_lock_freed_during_its_cancel_are_called_once)
{
  begin();
  lock_pair_hold(&lp);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  ck_assert_int_eq(lk_lock_release(lp.a.lock, NULL, NULL), 0);
  ck_assert_int_eq(locker_verify(&lp.a), 0);
  unsigned calls_before = lp.a.calls;

  victim = &lp.a;
  lp.a.react = free_victim;
  lk_lock_cancel(lp.a.lock);
  /* the cancel ends the hold and with it the verification, whose callback frees
   * the lock; this ends the acquire */
  ck_assert_ptr_null(lp.a.lock);
  ck_assert_int_eq(lp.a.verified, LK_ERR_NOT_HELD);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_CLOSED);
  ck_assert_uint_eq(lp.a.calls, calls_before + 2);
  lp.a.react = NULL;
  lock_pair_end(&lp);
}
END_TEST

START_TEST(callback_during_the_free_of_a_client_may_free_the_next_lock)
{
  locker others[3];

  begin();
  lp.server.down = true;
  model_drop(lp.one.link);
  for (int i = 0; i < 3; i++) {
    locker_init(&others[i], &lp.one, NULL);
    ck_assert_int_eq(locker_acquire(&others[i], LK_NO_LIMIT), 0);
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

/* ---- lists that are too long --------------------------------------------- */

enum { LONG_QUEUE = 40 };

static void create_long_queue(const char *prefix)
{
  char path[64];

  for (int i = 0; i < LONG_QUEUE; i++) {
    snprintf(path, sizeof path, LOCKS "/%s%010d", prefix, i);
    model_create(&lp.server, path);
  }
}

/* Makes the client `small`. It cannot receive a list of LONG_QUEUE nodes, of
 * which each takes at least 18 bytes. It can receive a list of the nodes of one
 * session. */
static void begin_with_small_client(void)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .session_timeout_ms = T,
                                    .receive_limit = 600,
                                    .mem = &small.mem.mem};
  lk_lease_config lease_config = {.size = sizeof lease_config,
                                  .left_behind = note_left_behind,
                                  .arg = &small};

  begin();
  failing_mem_init(&small.mem);
  small.left_behind[0] = '\0';
  small.link = model_client(&lp.server, &client_config);
  ck_assert_int_eq(lk_lease_configure(small.link->client, &lease_config), 0);
  model_turn(&lp.server);
}

static void end_with_small_client(size_t nodes_left)
{
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), nodes_left);
  test_client_free(&small);
  model_expire(&lp.server, small.link->last_session);
  while (model_children(&lp.server, LOCKS) > 0)
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  lock_pair_end(&lp);
}

/* The connection breaks after the request with the number `cut_at`; 0: it does
 * not break. */
static void acquire_behind_long_queue(lk_layout layout, unsigned cut_at)
{
  lk_lock_config config = {.size = sizeof config, .layout = layout};
  locker first, second;

  begin_with_small_client();
  create_long_queue(layout == LK_LAYOUT_CURATOR ? "lock-" : "seq-");
  locker_init(&first, &small, &config);
  locker_init(&second, &small, &config);
  small.link->requests = 0;
  small.link->cut_at = cut_at;
  small.link->cut_after = true;
  ck_assert_int_eq(locker_acquire(&first, LK_NO_LIMIT), 0);
  ck_assert_int_eq(locker_acquire(&second, LK_NO_LIMIT), 0);
  model_run(&lp.server, 2 * T);
  ck_assert_int_eq(first.acquired, LK_ERR_REPLY_TOO_BIG);
  ck_assert_int_eq(second.acquired, LK_ERR_REPLY_TOO_BIG);
  ck_assert_str_eq(small.left_behind, "");
  ck_assert_uint_eq(lk_lease_pending_cleanups(small.link->client), 0);
  locker_free(&first);
  locker_free(&second);
  end_with_small_client(LONG_QUEUE);
}

/* The cleanup works although no list can be received. It reads a node before
 * the delete if another client may have a node of that name, or if the own name
 * is not known. */
START_TEST(list_beyond_the_receive_limit_leaves_no_node)
{
  static const lk_layout layouts[] = {LK_LAYOUT_CURATOR, LK_LAYOUT_NATIVE,
                                      LK_LAYOUT_NATIVE_UUID};
  enum { NO_REQUEST, CREATE, LIST }; /* at which the connection breaks */

  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
    for (unsigned cut_at = NO_REQUEST; cut_at <= LIST; cut_at++)
      acquire_behind_long_queue(layouts[i], cut_at);
  }
}
END_TEST

/* A reply beyond the limit breaks the connection. If the acquire did not fail,
 * the client would repeat the request on each new connection. */
START_TEST(node_of_the_holder_beyond_the_receive_limit_fails_the_acquire)
{
  char data[800] = "";
  locker l;
  lk_lock *single;

  memset(data, 'x', sizeof data - 1);
  begin_with_small_client();
  lock_pair_hold(&lp);
  model_set(&lp.server, model_child(&lp.server, LOCKS, 0), data);
  model_create(&lp.server, "/locks/single");
  model_set(&lp.server, "/locks/single", data);
  locker_init(&l, &small, NULL);
  ck_assert_int_eq(
      lk_single_new(&single, small.link->client, "/locks/single", NULL, NULL),
      0);
  ck_assert_int_eq(locker_acquire(&l, LK_NO_LIMIT), 0);
  model_run(&lp.server, T);
  ck_assert_int_eq(l.acquired, LK_ERR_REPLY_TOO_BIG);
  ck_assert_int_eq(lk_lock_acquire(single, LK_NO_LIMIT, NULL, NULL), 0);
  model_run(&lp.server, T);
  ck_assert_int_eq(lk_lock_get_state(single), LK_LOCK_IDLE);
  locker_free(&l);
  lk_lock_free(single);
  model_run(&lp.server, T);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 1);
  locker_release(&lp.a);
  model_turn(&lp.server);
  end_with_small_client(0);
}
END_TEST

START_TEST(node_that_cannot_be_identified_is_left_and_reported)
{
  lk_lock_config config = {.size = sizeof config, .layout = LK_LAYOUT_NATIVE};
  locker l;

  begin_with_small_client();
  create_long_queue("seq-");
  lp.server.no_ephemerals = true; /* the session's nodes cannot be listed */
  locker_init(&l, &small, &config);
  ck_assert_int_eq(locker_acquire(&l, LK_NO_LIMIT), 0);
  model_run(&lp.server, 2 * T);
  ck_assert_int_eq(l.acquired, LK_ERR_REPLY_TOO_BIG);
  /* its number follows those of the LONG_QUEUE nodes */
  ck_assert_str_eq(small.left_behind,
                   "REPLY_TOO_BIG " LOCKS "/seq-0000000040\n");
  ck_assert_uint_eq(lk_lease_pending_cleanups(small.link->client), 0);
  locker_free(&l);
  end_with_small_client(LONG_QUEUE + 1);
}
END_TEST

SUITE("closing", listener_closes_the_client_before_others_are_notified,
      release_before_a_close_is_executed_first,
      objects_and_their_client_may_be_freed_in_any_order,
      client_freed_in_a_callback_ends_when_the_callback_has_returned,
      client_freed_in_the_hook_wake_ends_with_the_next_input,
      expiry_ends_all_locks_of_a_client_with_one_session,
      callbacks_of_a_lock_freed_during_its_cancel_are_called_once,
      lock_that_is_to_be_notified_next_may_be_freed,
      callback_during_the_free_of_a_client_may_free_the_next_lock,
      list_beyond_the_receive_limit_leaves_no_node,
      node_of_the_holder_beyond_the_receive_limit_fails_the_acquire,
      node_that_cannot_be_identified_is_left_and_reported)
