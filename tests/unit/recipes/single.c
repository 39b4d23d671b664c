/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/reader.h"
#include "proto/wire/opcode.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/single.h>

#include <stdio.h>

/* Single-node locks on one server. Each handle belongs to another session,
 * except the last, which belongs to the first session. */

enum {
  CLIENTS = 4,
  HANDLES = CLIENTS + 1,
  SECOND_OF_FIRST = CLIENTS /* the index of the second handle of a session */
};

#define NODE "/one/lock"
/* locker_on_event() prints the last ten characters of a path; on_event() puts
 * dots before a shorter one. */
#define WAITING "waiting 0 ./one/lock\n"

static model_server server;
static test_client clients[CLIENTS];
static locker handle[HANDLES];
static lk_single_config options; /* of handles that are made from now on */
static const char *node;

static void on_event(lk_lock *lock, const lk_lock_event *e, void *arg)
{
  lk_lock_event copy = *e;
  char text[64];

  if (e->node != NULL) {
    ck_assert_str_eq(e->node, node);
    snprintf(text, sizeof text, "..........%s", node);
    copy.node = text;
  }
  locker_on_event(lock, &copy, arg);
}

static bool try_init(locker *x, test_client *p, const lk_lock_config *config)
{
  lk_lock_config c = {.size = sizeof c};

  locker_clear(x, p);
  if (config != NULL)
    c = *config;
  c.on_event = on_event;
  c.arg = x;
  return lk_single_new(&x->lock, p->link->client, node, &c, &options) == 0;
}

static test_client *client_of(int i)
{
  return &clients[i % CLIENTS];
}

/* Values of lk_single_config.spread_ms. */
enum { DEFAULT_SPREAD = 0, NO_SPREAD = -1 };

static void begin_with_path(const char *path, int32_t spread_ms)
{
  node = path;
  options = (lk_single_config){.size = sizeof options, .spread_ms = spread_ms};
  model_init(&server);
  for (int i = 0; i < CLIENTS; i++)
    test_client_init(&clients[i], &server, NULL);
  for (int i = 0; i < HANDLES; i++)
    ck_assert(try_init(&handle[i], client_of(i), NULL));
  model_turn(&server);
  for (int i = 0; i < CLIENTS; i++)
    clients[i].link->log[0] = '\0';
}

/* Begins without a random delay of waiters; the directory exists. */
static void begin(void)
{
  begin_with_path(NODE, NO_SPREAD);
  model_create(&server, "/one");
}

static size_t watches(int i)
{
  return model_watches(clients[i].link);
}

/* All handles are freed; no node, watch or request is left. */
static void end(void)
{
  for (int i = 0; i < HANDLES; i++)
    locker_free(&handle[i]);
  model_run(&server, T);
  ck_assert_ptr_null(model_node(&server, node));
  for (int i = 0; i < CLIENTS; i++) {
    ck_assert_uint_eq(watches(i), 0);
    ck_assert_uint_eq(lk_lease_pending_cleanups(clients[i].link->client), 0);
    test_client_free(&clients[i]);
  }
  model_done(&server);
}

/* Makes handle `i` again, with the current options and this configuration. */
static void make_handle_again(int i, const lk_lock_config *config)
{
  locker_free(&handle[i]);
  ck_assert(try_init(&handle[i], client_of(i), config));
}

static void start_acquire(int i)
{
  locker_request(&handle[i]);
}

static void acquire_at_once(int i)
{
  start_acquire(i);
  ck_assert_int_eq(handle[i].acquired, 0);
}

static void release_lock(int i)
{
  locker_release(&handle[i]);
  model_turn(&server);
  ck_assert_int_eq(handle[i].released, 0);
}

static model_link *link_of(int i)
{
  return client_of(i)->link;
}

/* Breaks the connection of a handle. The client cannot connect again before
 * reconnect(). */
static void disconnect(int i)
{
  server.down = true;
  model_drop(link_of(i));
  model_turn(&server);
}

static void reconnect(int i)
{
  link_of(i)->log[0] = '\0';
  server.down = false;
  model_run(&server, T / 3);
  ck_assert(link_of(i)->up);
}

/* The index of the handle that holds; -1: none. There is at most one, and its
 * token is the czxid of the node. */
static int find_holder(void)
{
  const sim_node *n = model_node(&server, node);
  int holder = -1;

  for (int i = 0; i < HANDLES; i++) {
    if (handle[i].lock == NULL || !lk_lock_ok(handle[i].lock))
      continue;
    ck_assert_int_eq(holder, -1);
    ck_assert_ptr_nonnull(n);
    ck_assert_uint_eq(lk_lock_token(handle[i].lock), (uint64_t)n->stat.czxid);
    holder = i;
  }
  return holder;
}

/* ---- costs --------------------------------------------------------------- */

START_TEST(lock_node_may_be_a_child_of_the_root)
{
  begin_with_path("/lock", NO_SPREAD);
  acquire_at_once(0);
  ck_assert_str_eq(lk_lock_node(handle[0].lock), "/lock");
  ck_assert_str_eq(lk_lock_path(handle[0].lock), "/lock");
  start_acquire(1);
  disconnect(1);
  reconnect(1);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

START_TEST(heartbeat_of_a_waiter_is_a_sync)
{
  begin();
  acquire_at_once(0);
  start_acquire(1);
  ck_assert(locker_check_events(&handle[1], WAITING));
  link_of(1)->log[0] = '\0';
  model_run(&server, T);
  ck_assert(model_check_log(link_of(1), "sync | sync | sync | sync"));
  end();
}
END_TEST

START_TEST(release_costs_waiters_one_or_two_writes)
{
  begin_with_path(NODE, DEFAULT_SPREAD);
  model_create(&server, "/one");
  acquire_at_once(0);
  for (int i = 1; i < CLIENTS; i++) {
    start_acquire(i);
    link_of(i)->log[0] = '\0';
  }
  for (int waiters = CLIENTS - 1; waiters > 0; waiters--) {
    unsigned creates = 0;

    release_lock(find_holder());
    model_run(&server, 60);
    ck_assert_int_ge(find_holder(), 1);
    for (int i = 1; i < CLIENTS; i++) {
      creates += model_count(link_of(i), "create2");
      link_of(i)->log[0] = '\0';
    }
    ck_assert_uint_le(creates, 2);
  }
  end();
}
END_TEST

START_TEST(polling_waiter_sets_no_watch)
{
  begin();
  options.poll_ms = 100;
  make_handle_again(1, NULL);
  acquire_at_once(0);
  start_acquire(1);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  ck_assert(model_check_log(link_of(1), "create2 getData | removeWatches"));
  ck_assert_uint_eq(watches(1), 0);
  model_run(&server, 350);
  ck_assert(model_check_log(link_of(1), "getData | getData | getData"));
  ck_assert_uint_eq(watches(1), 0);
  ck_assert(locker_check_events(&handle[1], WAITING));
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  model_run(&server, 100);
  ck_assert_int_eq(handle[1].acquired, 0);
  ck_assert(model_check_log(link_of(1), "getData | create2 getData"));
  /* a polling handle watches the node that it holds */
  model_delete(&server, NODE);
  model_turn(&server);
  ck_assert(locker_check_events(&handle[1], "lost NO_NODE\n"));
  end();
}
END_TEST

/* ---- acquire and release ----------------------------------------------- */

START_TEST(acquire_with_peek_writes_nothing_for_a_held_lock)
{
  const lk_lock_config config = {.size = sizeof config, .peek = true};

  begin();
  make_handle_again(1, &config);
  acquire_at_once(0);
  ck_assert_int_eq(locker_try(&handle[1]), 0);
  model_turn(&server);
  ck_assert_int_eq(handle[1].acquired, LK_ERR_BUSY);
  ck_assert(model_check_log(link_of(1), "getData"));
  release_lock(0);
  ck_assert_int_eq(locker_try(&handle[1]), 0);
  model_turn(&server);
  ck_assert_int_eq(handle[1].acquired, 0);
  ck_assert(model_check_log(link_of(1), "getData | create2 getData"));
  end();
}
END_TEST

START_TEST(handles_of_one_session_wait_for_each_other)
{
  begin();
  acquire_at_once(0);
  start_acquire(SECOND_OF_FIRST);
  ck_assert_int_eq(handle[SECOND_OF_FIRST].acquired, NOT_YET);
  release_lock(0);
  ck_assert_int_eq(handle[SECOND_OF_FIRST].acquired, 0);
  ck_assert_int_eq(find_holder(), SECOND_OF_FIRST);
  start_acquire(0);
  start_acquire(1);
  /* the holder, of the same session, still watches the node */
  lk_lock_cancel(handle[0].lock);
  model_delete(&server, NODE);
  model_turn(&server);
  ck_assert(
      locker_check_events(&handle[SECOND_OF_FIRST], WAITING "lost NO_NODE\n"));
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

/* ---- loss -------------------------------------------------------------- */

START_TEST(node_of_another_session_is_not_taken_for_the_own_node)
{
  begin();
  acquire_at_once(0);
  disconnect(0);
  model_delete(&server, NODE);
  start_acquire(1);
  ck_assert_int_eq(handle[1].acquired, 0);
  reconnect(0);
  ck_assert(locker_check_events(&handle[0], "suspended\nlost NO_NODE\n"));
  ck_assert_int_eq(find_holder(), 1);
  ck_assert_uint_eq(model_count(link_of(0), "delete"), 0);
  end();
}
END_TEST

START_TEST(read_without_a_watch_proves_nothing)
{
  begin();
  acquire_at_once(0);
  disconnect(0);
  model_delete(&server, NODE);
  start_acquire(1);
  /* The read that is sent after the reconnect is throttled. */
  link_of(0)->requests = 0;
  link_of(0)->throttle_at = 1;
  server.down = false;
  while (!link_of(0)->up || model_count(link_of(0), "multi") == 0)
    model_run(&server, 10);
  ck_assert(locker_check_events(&handle[0], "suspended\n"));
  ck_assert_int_eq(locker_verify(&handle[0]), 0);
  model_turn(&server);
  ck_assert(locker_check_events(&handle[0], "lost NO_NODE\n"));
  ck_assert(handle[0].verified == LK_ERR_UNSURE ||
            handle[0].verified == LK_ERR_LOST);
  ck_assert_int_eq(find_holder(), 1);
  end();
}
END_TEST

START_TEST(lock_node_that_cannot_be_read_fails_the_acquire)
{
  const int32_t no_permission = 0;

  begin();
  acquire_at_once(0);
  model_deny(&server, NODE, LK_PERM_READ);
  start_acquire(1);
  ck_assert_int_eq(handle[1].acquired, LK_ERR_NO_AUTH);
  model_deny(&server, NODE, no_permission);
  end();
}
END_TEST

/* ---- breaks ------------------------------------------------------------ */

enum { NOT_EXECUTED = false, EXECUTED = true };

/* Breaks the connection of handle `i` at request number `at` from now on,
 * before or after it is executed. */
static void break_at(int i, unsigned at, bool executed)
{
  link_of(i)->requests = 0;
  link_of(i)->cut_at = at;
  link_of(i)->cut_after = executed;
}

START_TEST(a_delete_is_repeated_only_if_it_was_not_executed)
{
  for (int executed = NOT_EXECUTED; executed <= EXECUTED; executed++) {
    begin();
    acquire_at_once(0);
    start_acquire(1);
    server.down = true; /* no new connection before reconnect() */
    break_at(0, 1, executed);
    locker_release(&handle[0]);
    model_turn(&server);
    ck_assert_int_eq(handle[0].released, NOT_YET);
    ck_assert_int_eq(handle[1].acquired, executed ? 0 : NOT_YET);
    reconnect(0);
    ck_assert_int_eq(handle[0].released, 0);
    ck_assert_uint_eq(model_count(link_of(0), "delete"), executed ? 0 : 1);
    ck_assert_uint_eq(model_count(link_of(0), "multi"), 1);
    ck_assert_int_eq(find_holder(), 1);
    end();
  }
}
END_TEST

START_TEST(unsent_release_reads_the_node_first)
{
  begin();
  acquire_at_once(0);
  disconnect(0);
  locker_release(&handle[0]);
  model_delete(&server, NODE);
  start_acquire(1);
  ck_assert_int_eq(handle[1].acquired, 0);
  reconnect(0);
  ck_assert_int_eq(handle[0].released, 0);
  ck_assert_uint_eq(model_count(link_of(0), "delete"), 0);
  ck_assert_int_eq(find_holder(), 1);
  end();
}
END_TEST

/* One handle releases, and another handle of its session acquires. The
 * connection breaks when request number `last_executed` was executed. */
static void release_and_acquire_with_break(unsigned last_executed)
{
  begin();
  acquire_at_once(0);
  server.down = true; /* no new connection before reconnect() */
  break_at(0, last_executed, EXECUTED);
  locker_release(&handle[0]);
  locker_request(&handle[SECOND_OF_FIRST]);
  reconnect(0);
  ck_assert_int_eq(handle[0].released, 0);
  ck_assert_int_eq(handle[SECOND_OF_FIRST].acquired, 0);
  model_run(&server, T);
  ck_assert_int_eq(find_holder(), SECOND_OF_FIRST);
  end();
}

START_TEST(delete_in_doubt_spares_the_node_of_the_next_handle)
{
  for (unsigned n = 1; n <= 3; n++)
    release_and_acquire_with_break(n);
}
END_TEST

/* Two handles of one session have creates in doubt, of which at most one was
 * executed. */
static void break_with_both_in_doubt(unsigned at, bool executed)
{
  begin();
  break_at(0, at, executed);
  ck_assert_int_eq(locker_acquire(&handle[0], LK_NO_LIMIT), 0);
  ck_assert_int_eq(locker_acquire(&handle[SECOND_OF_FIRST], LK_NO_LIMIT), 0);
  model_run(&server, T / 2);
  int first_holder = find_holder();
  int second_holder = first_holder == 0 ? SECOND_OF_FIRST : 0;

  ck_assert(first_holder == 0 || first_holder == SECOND_OF_FIRST);
  ck_assert_int_eq(handle[second_holder].acquired, NOT_YET);
  locker_release(&handle[first_holder]);
  model_run(&server, T / 2);
  ck_assert_int_eq(handle[first_holder].released, 0);
  ck_assert_int_eq(handle[second_holder].acquired, 0);
  end();
}

START_TEST(two_creates_in_doubt_grant_one_lock)
{
  for (unsigned at = 1; at <= 6; at++) {
    break_with_both_in_doubt(at, NOT_EXECUTED);
    break_with_both_in_doubt(at, EXECUTED);
  }
}
END_TEST

/* The handle whose create is in doubt cancels, and another one of the session
 * acquires. The node may belong to either. */
static void cancel_in_doubt(unsigned at, bool executed)
{
  begin();
  break_at(0, at, executed);
  ck_assert_int_eq(locker_acquire(&handle[0], LK_NO_LIMIT), 0);
  ck_assert_int_eq(locker_acquire(&handle[SECOND_OF_FIRST], LK_NO_LIMIT), 0);
  lk_lock_cancel(handle[0].lock);
  model_run(&server, T / 2);
  ck_assert_int_eq(handle[0].acquired, LK_ERR_CANCELLED);
  ck_assert_int_eq(find_holder(), SECOND_OF_FIRST);
  model_run(&server, T);
  ck_assert_int_eq(find_holder(), SECOND_OF_FIRST);
  end();
}

START_TEST(cancelled_create_in_doubt_deletes_no_node_of_another_handle)
{
  for (unsigned at = 1; at <= 6; at++) {
    cancel_in_doubt(at, NOT_EXECUTED);
    cancel_in_doubt(at, EXECUTED);
  }
}
END_TEST

START_TEST(waiter_survives_a_break)
{
  begin();
  acquire_at_once(0);
  start_acquire(1);
  for (unsigned at = 1; at <= 2; at++) {
    break_at(1, at, EXECUTED);
    model_drop(link_of(1));
    model_run(&server, T / 4);
  }
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  /* the create from before the break */
  ck_assert_uint_eq(model_count(link_of(1), "create2"), 1);
  link_of(1)->cut_at = 0;
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

/* Whether another client creates the node again in delete_before_read(). */
static bool others_create_node;

/* Deletes the node between its create and the read that follows. */
static void delete_before_read(model_server *s, model_link *link, int32_t op,
                               const char *path)
{
  (void)link;
  if (op != LK_OPCODE_GET_DATA || strcmp(path, NODE) != 0)
    return;
  s->before = NULL;
  model_delete(s, NODE);
  if (others_create_node)
    model_create(s, NODE);
}

START_TEST(node_deleted_before_its_first_read_is_created_again)
{
  for (int others_create = 0; others_create < 2; others_create++) {
    others_create_node = others_create;
    begin();
    server.before = delete_before_read;
    start_acquire(0);
    model_run(&server, T / 4);
    ck_assert_ptr_null(server.before);
    ck_assert_int_eq(handle[0].acquired, others_create_node ? NOT_YET : 0);
    if (others_create_node)
      model_delete(&server, NODE);
    model_run(&server, T / 4);
    ck_assert_int_eq(handle[0].acquired, 0);
    ck_assert_int_eq(find_holder(), 0);
    end();
  }
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
  static const struct {
    lk_single_config config;
    int err;
  } cases[] = {{{.size = 1}, LK_ERR_BAD_ARGUMENT},
               {{.poll_ms = -1}, LK_ERR_BAD_ARGUMENT},
               {{.poll_ms = 3600001}, LK_ERR_BAD_ARGUMENT},
               {{.spread_ms = -2}, LK_ERR_BAD_ARGUMENT},
               {{.spread_ms = 60001}, LK_ERR_BAD_ARGUMENT},
               {{.poll_ms = 3600000, .spread_ms = 60000}, 0}};
  lk_lock *x;

  begin();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    lk_single_config config = cases[i].config;

    if (config.size == 0)
      config.size = sizeof config;
    ck_assert_int_eq(
        lk_single_new(&x, clients[0].link->client, NODE, NULL, &config),
        cases[i].err);
    ck_assert_int_eq(x == NULL, cases[i].err != 0);
    lk_lock_free(x);
  }
  ck_assert_int_eq(lk_single_new(&x, clients[0].link->client, "/", NULL, NULL),
                   LK_ERR_BAD_PATH);
  end();
}
END_TEST

/* Execute the first delete, and reply as a server that gave up waiting for it.
 */
static void time_out_delete(model_server *s, model_link *l, int32_t op,
                            const char *path)
{
  if (op != LK_OPCODE_DELETE)
    return;
  s->before = NULL;
  model_delete(s, path);
  l->answer_at = l->requests;
  l->answer_err = LK_ERR_REQUEST_TIMEOUT;
}

START_TEST(delete_in_doubt_is_not_repeated_on_the_node_of_the_next_holder)
{
  begin();
  locker_request(&handle[0]);
  locker_request(&handle[1]);
  server.before = time_out_delete;
  locker_release(&handle[0]);
  model_run(&server, 2 * T);
  ck_assert_int_eq(handle[1].acquired, 0);
  ck_assert(lk_lock_ok(handle[1].lock));
  ck_assert_ptr_nonnull(model_node(&server, NODE));
  end();
}
END_TEST

static model_link *half_dead; /* its server answers pings alone */

static bool serve_pings_alone(model_link *l, lk_bytes frame)
{
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  return (l == half_dead && lk__reader_int(&in) != LK_XID_PING) ||
         model_serve(l, frame);
}

/* No event comes from such a server, either. */
START_TEST(waiter_leaves_a_server_that_answers_pings_alone)
{
  begin();
  locker_request(&handle[0]);
  ck_assert_int_eq(locker_acquire(&handle[1], LK_NO_LIMIT), 0);
  model_run(&server, T);
  uint64_t connection = lk_client_connection(clients[1].link->client);

  half_dead = clients[1].link;
  server.serve = serve_pings_alone;
  for (int ms = 0; ms < 2 * T &&
                   lk_client_connection(clients[1].link->client) == connection;
       ms++)
    model_run(&server, 1);
  half_dead = NULL;
  ck_assert_msg(lk_client_connection(clients[1].link->client) != connection,
                "%s", clients[1].link->log);
  locker_release(&handle[0]);
  model_run(&server, T);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

SUITE("single", waiter_leaves_a_server_that_answers_pings_alone,
      delete_in_doubt_is_not_repeated_on_the_node_of_the_next_holder,
      lock_node_may_be_a_child_of_the_root, heartbeat_of_a_waiter_is_a_sync,
      release_costs_waiters_one_or_two_writes, polling_waiter_sets_no_watch,
      acquire_with_peek_writes_nothing_for_a_held_lock,
      handles_of_one_session_wait_for_each_other,
      node_of_another_session_is_not_taken_for_the_own_node,
      read_without_a_watch_proves_nothing,
      lock_node_that_cannot_be_read_fails_the_acquire,
      a_delete_is_repeated_only_if_it_was_not_executed,
      unsent_release_reads_the_node_first,
      delete_in_doubt_spares_the_node_of_the_next_handle,
      two_creates_in_doubt_grant_one_lock,
      cancelled_create_in_doubt_deletes_no_node_of_another_handle,
      waiter_survives_a_break,
      node_deleted_before_its_first_read_is_created_again,
      options_out_of_range_are_refused)
