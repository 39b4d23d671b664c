/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/member.h>

#include <stdio.h>

/* Members of the group at /g. */

#define GROUP "/g"
#define NODE  GROUP "/m"

static model_server server;
static test_client one, two;
static lk_membership *member;
static char events[2048]; /* a line for each event */
static int64_t retry_ms;  /* of the last RETRYING */
static int64_t joined_zxid;
static unsigned calls;
static unsigned act_at; /* the number of the event that calls `act` */
static void (*act)(void);

static void on_event(lk_membership *m, const lk_membership_event *e, void *arg)
{
  size_t at = strlen(events);

  ck_assert_ptr_eq(m, member);
  ck_assert_ptr_eq(arg, &server);
  snprintf(events + at, sizeof events - at, "%s%s%s\n",
           lk_membership_event_text(e->type), e->err == 0 ? "" : " ",
           e->err == 0 ? "" : lk_error_name(e->err));
  if (e->type == LK_MEMBERSHIP_EVENT_JOINED) {
    ck_assert_int_ge(e->zxid, joined_zxid);
    joined_zxid = e->zxid;
  }
  retry_ms = e->retry_ms;
  if (++calls == act_at)
    act();
}

static void expect(const char *text)
{
  ck_assert_str_eq(events, text);
  events[0] = '\0';
}

static int try_init(const char *name, lk_membership_config config)
{
  config.size = sizeof config;
  config.on_event = on_event;
  config.arg = &server;
  return lk_membership_new(&member, one.link->client, GROUP, name, &config);
}

static void begin_with(const char *name, lk_membership_config config)
{
  events[0] = '\0';
  calls = act_at = 0;
  joined_zxid = 0;
  model_init(&server);
  test_client_init(&one, &server, NULL);
  test_client_init(&two, &server, NULL);
  model_turn(&server);
  ck_assert_int_eq(try_init(name, config), 0);
}

static void begin(void)
{
  begin_with("m", (lk_membership_config){.data = lk_text("data")});
}

/* Free the member, whose node must be deleted then. */
static void end(void)
{
  lk_membership_free(member);
  member = NULL;
  model_run(&server, 2 * T);
  ck_assert_uint_eq(model_children(&server, GROUP), 0);
  test_client_free(&one);
  test_client_free(&two);
  model_done(&server);
}

static void join(void)
{
  ck_assert_int_eq(lk_membership_join(member), 0);
  model_turn(&server);
}

static void expect_data(const char *text)
{
  const sim_node *node = model_node(&server, NODE);

  ck_assert_ptr_nonnull(node);
  ck_assert_uint_eq((size_t)node->stat.data_length, strlen(text));
  ck_assert_mem_eq(node->data, text, strlen(text));
}

static void expire_session(void)
{
  server.down = true;
  model_drop(one.link);
  model_expire(&server, one.link->last_session);
  server.down = false;
  model_run(&server, T / 2);
}

START_TEST(member_has_a_node_while_it_takes_part)
{
  begin();
  ck_assert(!lk_membership_has_joined(member));
  ck_assert_str_eq(lk_membership_path(member), NODE);
  join();
  expect("joined\n");
  ck_assert(lk_membership_has_joined(member));
  expect_data("data");
  ck_assert(model_node(&server, GROUP)->container);
  join(); /* no effect */
  expect("");
  lk_membership_leave(member);
  expect("left\n");
  ck_assert(!lk_membership_has_joined(member));
  model_turn(&server);
  ck_assert_uint_eq(model_children(&server, GROUP), 0);
  lk_membership_leave(member);
  join();
  expect("joined\n");
  end();
}
END_TEST

START_TEST(join_costs_one_write_and_one_read)
{
  begin();
  join();
  lk_membership_leave(member);
  model_turn(&server);
  one.link->log[0] = '\0';
  join();
  ck_assert(model_check_log(one.link, "create2 | getData"));
  model_run(&server, 4 * T);
  ck_assert(model_check_log(one.link, ""));
  end();
}
END_TEST

START_TEST(directory_is_created_once_it_is_missing)
{
  begin_with("m", (lk_membership_config){.persistent_parents = true});
  join();
  expect("joined\n");
  ck_assert(!model_node(&server, GROUP)->container);
  end();
  begin();
  server.no_containers = true;
  join();
  model_run(&server, T);
  ck_assert(lk_membership_has_joined(member));
  ck_assert(!model_node(&server, GROUP)->container);
  end();
}
END_TEST

static void delete_directory_first(model_server *s, model_link *l, int32_t op,
                                   const char *path)
{
  (void)l;
  if (op == LK_OPCODE_CREATE2 && strcmp(path, NODE) == 0 &&
      model_node(s, GROUP) != NULL)
    model_delete(s, GROUP);
}

START_TEST(directory_that_others_delete_is_created_after_pauses)
{
  begin();
  server.before = delete_directory_first;
  join();
  ck_assert(model_check_log(one.link, "create2 | createContainer | create2"));
  expect("retrying NO_NODE\n");
  model_run(&server, 5000);
  server.before = NULL;
  model_run(&server, 10000);
  expect("retrying NO_NODE\nretrying NO_NODE\nretrying NO_NODE\n"
         "retrying NO_NODE\nretrying NO_NODE\njoined\n");
  end();
}
END_TEST

START_TEST(deleted_node_is_created_again)
{
  begin();
  join();
  for (int i = 0; i < 3; i++) {
    model_delete(&server, NODE);
    model_run(&server, 1000);
    ck_assert(lk_membership_has_joined(member));
  }
  expect("joined\nleft NO_NODE\njoined\nleft NO_NODE\njoined\n"
         "left NO_NODE\njoined\n");
  expect_data("data");
  end();
}
END_TEST

START_TEST(member_joins_again_in_the_next_session)
{
  begin();
  join();
  expire_session();
  expect("joined\nleft SESSION_EXPIRED\njoined\n");
  end();
}
END_TEST

START_TEST(member_stays_over_a_lost_connection)
{
  begin();
  join();
  model_drop(one.link);
  model_run(&server, T);
  expect("joined\n");
  end();
}
END_TEST

START_TEST(member_waits_for_a_node_of_another_session)
{
  begin();
  model_create(&server, GROUP);
  model_create_ephemeral(&server, NODE, "other", 77);
  join();
  model_run(&server, T);
  expect("name taken\n");
  expect_data("other");
  model_delete(&server, NODE);
  model_turn(&server);
  expect("joined\n");
  expect_data("data");
  /* The name of a member that has joined is taken, too. */
  model_delete(&server, NODE);
  model_create_ephemeral(&server, NODE, "other", 77);
  model_run(&server, 1000);
  expect("left NO_NODE\nname taken\n");
  lk_membership_leave(member);
  model_turn(&server);
  expect_data("other");
  model_delete(&server, NODE);
  end();
}
END_TEST

START_TEST(node_of_the_own_session_is_taken_over)
{
  begin();
  model_create(&server, GROUP);
  model_create_ephemeral(&server, NODE, "earlier", one.link->last_session);
  join();
  expect("joined\n");
  model_turn(&server);
  expect_data("data");
  end();
}
END_TEST

/* ---- data ---------------------------------------------------------------- */

static void set_data(const char *text)
{
  ck_assert_int_eq(lk_membership_set_data(member, lk_text(text)), 0);
}

START_TEST(data_can_be_replaced)
{
  begin();
  set_data("before");
  join();
  expect_data("before");
  set_data("1");
  set_data("2");
  set_data("3");
  model_turn(&server);
  expect_data("3");
  set_data("");
  model_turn(&server);
  expect_data("");
  server.down = true;
  model_drop(one.link);
  set_data("disconnected");
  model_run(&server, 100);
  server.down = false;
  model_run(&server, T / 2);
  expect_data("disconnected");
  expire_session();
  expect_data("disconnected");
  end();
}
END_TEST

START_TEST(refused_data_are_written_later)
{
  begin();
  join();
  model_deny(&server, NODE, LK_PERM_WRITE);
  set_data("new");
  model_turn(&server);
  expect("joined\nretrying NO_AUTH\n");
  model_deny(&server, NODE, 0);
  model_run(&server, retry_ms);
  expect_data("new");
  end();
}
END_TEST

START_TEST(data_that_were_replaced_during_the_create_are_written)
{
  begin();
  model_create(&server, GROUP);
  ck_assert_int_eq(lk_membership_join(member), 0);
  set_data("new");
  model_turn(&server);
  expect_data("new");
  end();
}
END_TEST

START_TEST(data_of_another_client_are_replaced)
{
  begin();
  join();
  model_set(&server, NODE, "other");
  model_run(&server, 150);
  expect_data("data");
  model_deny(&server, NODE, LK_PERM_WRITE);
  model_set(&server, NODE, "");
  model_run(&server, 300);
  expect("joined\nretrying NO_AUTH\n");
  model_deny(&server, NODE, 0);
  model_run(&server, retry_ms);
  expect_data("data");
  end();
}
END_TEST

START_TEST(client_that_also_replaces_the_data_is_answered_after_longer_pauses)
{
  begin();
  join();
  one.link->log[0] = '\0';
  for (int i = 0; i < 400; i++) {
    model_set(&server, NODE, "other");
    model_run(&server, 50);
  }
  unsigned writes = model_count(one.link, "setData"); /* in 20 s */

  ck_assert_uint_ge(writes, 5);
  ck_assert_uint_le(writes, 8);
  model_run(&server, 15000);
  expect_data("data");
  expect("joined\n");
  end();
}
END_TEST

START_TEST(own_data_are_written_once)
{
  begin();
  join();
  one.link->log[0] = '\0';
  set_data("1");
  set_data("2");
  set_data("3");
  model_run(&server, T);
  expect_data("3");
  ck_assert_uint_eq(model_count(one.link, "setData"), 2);
  end();
}
END_TEST

/* ---- failures ------------------------------------------------------------ */

START_TEST(refused_create_is_retried)
{
  begin();
  model_create(&server, GROUP);
  model_deny(&server, GROUP, LK_PERM_CREATE);
  join();
  expect("retrying NO_AUTH\n");
  ck_assert_int_ge(retry_ms, 100);
  ck_assert_int_le(retry_ms, 150);
  model_run(&server, retry_ms);
  expect("retrying NO_AUTH\n");
  ck_assert_int_ge(retry_ms, 200);
  ck_assert_int_le(retry_ms, 300);
  model_deny(&server, GROUP, 0);
  model_run(&server, retry_ms);
  expect("joined\n");
  end();
}
END_TEST

/* The connection breaks at one request, before or after it is executed. */
START_TEST(broken_connection_leaves_one_node_or_none)
{
  enum { REQUESTS = 8 };

  for (unsigned n = 1; n <= REQUESTS; n++) {
    for (int i = 0; i < 4; i++) {
      bool leaves = i / 2;

      begin();
      one.link->requests = 0;
      one.link->cut_at = n;
      one.link->cut_after = i % 2;
      ck_assert_int_eq(lk_membership_join(member), 0);
      if (leaves) {
        model_deliver(one.link);
        lk_membership_leave(member);
      }
      model_run(&server, 2 * T);
      ck_assert_int_eq(lk_membership_has_joined(member), !leaves);
      ck_assert_uint_eq(model_children(&server, GROUP), leaves ? 0 : 1);
      end();
    }
  }
}
END_TEST

START_TEST(member_without_memory_joins_and_leaves_later)
{
  for (size_t n = 1;; n++) {
    begin();
    one.mem.fail_at = one.mem.count + n;
    int err = lk_membership_join(member);

    ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
    if (err != 0)
      join();
    model_run(&server, 2 * T);
    ck_assert(lk_membership_has_joined(member));
    if (lk_membership_set_data(member, lk_text("new")) != 0)
      set_data("new");
    model_run(&server, T);
    expect_data("new");
    lk_membership_leave(member);
    bool failed = failing_mem_failed(&one.mem);

    end();
    if (!failed)
      break;
    ck_assert_uint_lt(n, 300);
  }
}
END_TEST

/* ---- leaving, and the end of the client ---------------------------------- */

START_TEST(member_freed_at_any_time_leaves_no_node)
{
  enum { REPLIES = 5 };

  for (int i = 0; i <= 2 * REPLIES; i++) {
    int replies = i / 2;
    bool directory_exists = i % 2;

    begin();
    if (directory_exists)
      model_create(&server, GROUP);
    ck_assert_int_eq(lk_membership_join(member), 0);
    one.link->allow = 0;
    for (int n = 0; n < replies; n++) {
      one.link->allow = 150;
      model_turn(&server);
    }
    lk_membership_free(member);
    member = NULL;
    if (one.link->up)
      model_drop(one.link);
    one.link->allow = SIZE_MAX;
    end();
  }
}
END_TEST

START_TEST(closed_client_ends_the_membership)
{
  begin();
  join();
  ck_assert_int_eq(lk_client_close(one.link->client, NULL, NULL), 0);
  model_turn(&server);
  expect("joined\nleft CLOSED\nended CLOSED\n");
  ck_assert_int_eq(lk_membership_join(member), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_membership_set_data(member, lk_text("x")), 0);
  lk_membership_leave(member);
  end();
}
END_TEST

START_TEST(refused_credentials_end_the_membership)
{
  begin();
  one.link->answer_at = one.link->requests + 1;
  one.link->answer_err = LK_ERR_AUTH_REQUIRED;
  lk_get(one.link->client, "/x", NULL, NULL, NULL);
  model_turn(&server);
  expect(""); /* it did not take part */
  ck_assert_int_eq(lk_membership_join(member), LK_ERR_AUTH_FAILED);
  lk_membership_free(member);
  ck_assert_int_eq(try_init("m", (lk_membership_config){0}), 0);
  ck_assert_int_eq(lk_membership_join(member), LK_ERR_AUTH_FAILED);
  end();
}
END_TEST

START_TEST(member_can_be_freed_after_its_client)
{
  begin();
  join();
  lk_client_free(one.link->client);
  expect("joined\nleft CLOSED\nended CLOSED\n");
  lk_membership_free(member);
  ck_assert_uint_eq(one.mem.live, 0);
  test_client_free(&two);
  model_done(&server);
}
END_TEST

static void free_member(void)
{
  lk_membership_free(member);
  member = NULL;
}

static void leave(void)
{
  lk_membership_leave(member);
}

static void close_client(void)
{
  ck_assert_int_eq(lk_client_close(one.link->client, NULL, NULL), 0);
}

static void free_client(void)
{
  lk_client_free(one.link->client);
}

START_TEST(callback_may_free_leave_or_close)
{
  static void (*const acts[])(void) = {free_member, leave, close_client,
                                       free_client};
  enum { EVENTS = 5 }; /* retrying, joined, left, joined, left */

  for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
    for (unsigned n = 1; n <= EVENTS; n++) {
      begin();
      act = acts[i];
      act_at = n;
      model_create(&server, GROUP);
      model_deny(&server, GROUP, LK_PERM_CREATE);
      join();
      model_deny(&server, GROUP, 0);
      model_run(&server, 1000);
      if (calls < n)
        model_delete(&server, NODE);
      model_run(&server, 1000);
      if (calls < n)
        expire_session();
      ck_assert_uint_ge(calls, n);
      lk_membership_free(member);
      member = NULL;
      model_run(&server, T);
      if (acts[i] != free_client)
        ck_assert_uint_eq(model_children(&server, GROUP), 0);
      test_client_free(&one);
      test_client_free(&two);
      model_done(&server);
    }
  }
}
END_TEST

START_TEST(expiry_ends_the_membership_of_a_client_with_one_session)
{
  lk_client_config c = {
      .size = sizeof c, .session_timeout_ms = T, .one_session = true};

  begin();
  lk_membership_free(member);
  test_client_free(&one);
  failing_mem_init(&one.mem);
  c.mem = &one.mem.mem;
  one.link = model_client(&server, &c);
  ck_assert_int_eq(try_init("m", (lk_membership_config){0}), 0);
  join();
  expire_session();
  model_run(&server, T);
  expect("joined\nleft SESSION_EXPIRED\nended SESSION_EXPIRED\n");
  ck_assert_int_eq(lk_client_deadline(one.link->client), INT64_MAX);
  ck_assert_int_eq(lk_membership_join(member), LK_ERR_SESSION_EXPIRED);
  lk_membership_free(member);
  ck_assert_int_eq(try_init("m", (lk_membership_config){0}), 0);
  ck_assert_int_eq(lk_membership_join(member), LK_ERR_SESSION_EXPIRED);
  end();
}
END_TEST

/* ---- nodes of other sessions --------------------------------------------- */

/* The session ends while the client is not connected, and another program makes
 * a node of the same name. */
static void replace_node_by_another(void)
{
  server.down = true;
  model_drop(one.link);
  model_expire(&server, one.link->last_session);
  model_create_ephemeral(&server, NODE, "other", 77);
}

static void expect_other_node(void)
{
  server.down = false;
  model_run(&server, 2 * T);
  expect_data("other");
  model_delete(&server, NODE);
  end();
}

START_TEST(leave_without_a_connection_spares_the_node_of_another_session)
{
  begin();
  join();
  server.down = true;
  model_drop(one.link);
  lk_membership_leave(member);
  replace_node_by_another();
  expect_other_node();
}
END_TEST

START_TEST(delete_that_was_executed_is_not_repeated)
{
  begin();
  join();
  one.link->requests = 0;
  one.link->cut_at = 1;
  one.link->cut_after = true;
  lk_membership_leave(member);
  server.down = true;
  model_turn(&server);
  ck_assert_ptr_null(model_node(&server, NODE));
  model_create_ephemeral(&server, NODE, "other", 77);
  expect_other_node();
}
END_TEST

START_TEST(throttled_delete_is_not_repeated_in_the_next_session)
{
  begin();
  join();
  one.link->requests = 0;
  one.link->throttle_at = 1;
  lk_membership_leave(member);
  model_turn(&server);
  ck_assert_ptr_nonnull(model_node(&server, NODE));
  replace_node_by_another();
  expect_other_node();
}
END_TEST

START_TEST(data_are_not_written_to_the_node_of_another_session)
{
  begin();
  join();
  server.down = true;
  model_drop(one.link);
  set_data("mine");
  replace_node_by_another();
  expect_other_node();
}
END_TEST

/* ---- replies that are lost, or are errors -------------------------------- */

static const int doubtful_errors[] = {
    LK_ERR_OPERATION_TIMEOUT, LK_ERR_REQUEST_TIMEOUT, LK_ERR_CONNECTION_LOSS};

START_TEST(refused_delete_is_sent_again)
{
  for (size_t i = 0; i < 3; i++) {
    begin();
    join();
    one.link->requests = 0;
    one.link->answer_at = 1;
    one.link->answer_err = doubtful_errors[i];
    lk_membership_leave(member);
    model_run(&server, 2 * T);
    ck_assert_uint_eq(model_children(&server, GROUP), 0);
    end();
  }
}
END_TEST

/* The connection breaks at the create, and a later request is refused or finds
 * no memory; the member leaves before or after that. */
START_TEST(create_in_doubt_leaves_no_node)
{
  enum { LATER_REQUESTS = 8, ALLOCATIONS = 20 };

  for (unsigned n = 2; n < LATER_REQUESTS + ALLOCATIONS; n++) {
    for (int leaves_early = 0; leaves_early < 2; leaves_early++) {
      begin();
      model_create(&server, GROUP);
      one.link->requests = 0;
      one.link->cut_at = 1;
      one.link->cut_after = true;
      one.link->answer_at = n <= LATER_REQUESTS ? n : 0;
      one.link->answer_err = LK_ERR_OPERATION_TIMEOUT;
      ck_assert_int_eq(lk_membership_join(member), 0);
      if (n > LATER_REQUESTS)
        one.mem.fail_at = one.mem.count + n - LATER_REQUESTS;
      if (leaves_early)
        lk_membership_leave(member);
      model_run(&server, 2 * T);
      lk_membership_leave(member);
      one.mem.fail_at = 0;
      model_run(&server, 4 * T);
      ck_assert_uint_eq(model_children(&server, GROUP), 0);
      end();
    }
  }
}
END_TEST

/* The create may still be executed behind a transaction that failed with an
 * error which the leader has not committed. */
START_TEST(missing_node_counts_only_behind_a_committed_transaction)
{
  begin();
  model_create(&server, GROUP);
  one.link->requests = 0;
  one.link->cut_at = 1; /* the create */
  one.link->multi_err = LK_ERR_SYSTEM;
  ck_assert_int_eq(lk_membership_join(member), 0);
  model_run(&server, T);
  ck_assert_uint_eq(model_count(one.link, "create2"), 1);
  one.link->multi_err = 0;
  model_run(&server, T);
  ck_assert(lk_membership_has_joined(member));
  end();
}
END_TEST

START_TEST(last_data_are_written_last)
{
  begin();
  join();
  server.down = true;
  one.link->requests = 0;
  one.link->cut_at = 1;
  set_data("1");
  model_turn(&server);
  set_data("2");
  lk_membership_leave(member);
  ck_assert_int_eq(lk_membership_join(member), 0);
  server.down = false;
  model_run(&server, 4 * T);
  expect_data("2");
  end();
}
END_TEST

START_TEST(pauses_double_in_a_long_membership)
{
  begin();
  join();
  model_run(&server, 11000);
  model_deny(&server, NODE, LK_PERM_WRITE);
  calls = 0;
  set_data("new");
  for (int second = 0; second < 60; second++) {
    model_run(&server, 1000);
    events[0] = '\0';
  }
  ck_assert_uint_lt(calls, 15);
  end();
}
END_TEST

/* ---- special cases ------------------------------------------------------- */

START_TEST(node_that_its_own_session_made_anew_is_joined_again)
{
  begin();
  join();
  ck_assert_int_eq(lk_delete(one.link->client, NODE, -1, NULL, NULL, NULL), 0);
  ck_assert_int_eq(lk_create(one.link->client, NODE, lk_text("x"), NULL,
                             LK_EPHEMERAL, NULL, NULL, NULL),
                   0);
  model_run(&server, T);
  expect("joined\nleft NO_NODE\njoined\n");
  expect_data("data");
  end();
}
END_TEST

START_TEST(member_of_a_closed_client_can_be_freed_after_it)
{
  begin();
  lk_membership_free(member);
  close_client();
  model_turn(&server);
  ck_assert_int_eq(try_init("m", (lk_membership_config){0}), 0);
  ck_assert_int_eq(lk_membership_join(member), LK_ERR_CLOSED);
  lk_client_free(one.link->client);
  lk_membership_free(member);
  ck_assert_uint_eq(one.mem.live, 0);
  test_client_free(&two);
  model_done(&server);
}
END_TEST

/* ---- names --------------------------------------------------------------- */

START_TEST(name_of_kazoo_is_the_default)
{
  begin_with(NULL, (lk_membership_config){.data = lk_text("me")});
  const char *path = lk_membership_path(member);

  ck_assert_uint_eq(strlen(path), strlen(GROUP "/") + 32 + strlen("__party__"));
  ck_assert_str_eq(path + strlen(GROUP "/") + 32, "__party__");
  join();
  ck_assert_ptr_nonnull(model_node(&server, path));
  end();
}
END_TEST

START_TEST(wrong_names_are_refused)
{
  static const char *const names[] = {"", "a/b", ".", "..", "\x01"};

  begin();
  lk_membership_free(member);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    ck_assert_int_eq(try_init(names[i], (lk_membership_config){0}),
                     LK_ERR_BAD_PATH);
  ck_assert_ptr_null(member);
  end();
}
END_TEST

SUITE("membership", member_has_a_node_while_it_takes_part,
      join_costs_one_write_and_one_read,
      directory_is_created_once_it_is_missing,
      directory_that_others_delete_is_created_after_pauses,
      deleted_node_is_created_again, member_joins_again_in_the_next_session,
      member_stays_over_a_lost_connection,
      missing_node_counts_only_behind_a_committed_transaction,
      member_waits_for_a_node_of_another_session,
      node_of_the_own_session_is_taken_over, data_can_be_replaced,
      refused_data_are_written_later,
      data_that_were_replaced_during_the_create_are_written,
      data_of_another_client_are_replaced,
      client_that_also_replaces_the_data_is_answered_after_longer_pauses,
      own_data_are_written_once, refused_create_is_retried,
      broken_connection_leaves_one_node_or_none,
      member_without_memory_joins_and_leaves_later,
      member_freed_at_any_time_leaves_no_node,
      closed_client_ends_the_membership, refused_credentials_end_the_membership,
      member_can_be_freed_after_its_client, callback_may_free_leave_or_close,
      expiry_ends_the_membership_of_a_client_with_one_session,
      leave_without_a_connection_spares_the_node_of_another_session,
      delete_that_was_executed_is_not_repeated,
      throttled_delete_is_not_repeated_in_the_next_session,
      data_are_not_written_to_the_node_of_another_session,
      refused_delete_is_sent_again, create_in_doubt_leaves_no_node,
      last_data_are_written_last, pauses_double_in_a_long_membership,
      node_that_its_own_session_made_anew_is_joined_again,
      member_of_a_closed_client_can_be_freed_after_it,
      name_of_kazoo_is_the_default, wrong_names_are_refused)
