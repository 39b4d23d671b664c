/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/subscribe.h>

#include <stdio.h>

/* Subscriptions on one server. The client `one` has three: to the children of
 * /news (`names` and `second`) and to its data (`data`). */

#define NODE "/news"

typedef struct subscriber {
  lk_subscription *s; /* NULL: none */
  char reports[4096]; /* a line for each report: the names in order, '=' and the
                         data, or an error */
  void (*react)(struct subscriber *r); /* called after each report; or NULL */
} subscriber;

static model_server server;
static test_client one;
static subscriber names;
static subscriber data;
static subscriber second;
static lk_subscription_config options; /* of the next subscriptions */

/* ---- subscribers --------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_report(subscriber *r, const char *text)
{
  size_t at = strlen(r->reports);

  ck_assert_uint_lt(at + strlen(text) + 2, sizeof r->reports);
  snprintf(r->reports + at, sizeof r->reports - at, "%s\n", text);
  if (r->react != NULL)
    r->react(r);
}

static void on_names(lk_subscription *s, int err, const lk_bytes *list,
                     size_t count, const lk_stat *stat, void *arg)
{
  subscriber *r = arg;
  char *sorted[16];
  char text[256] = "";

  ck_assert_ptr_eq(s, r->s);
  if (err != 0) {
    ck_assert(list == NULL && count == 0 && stat == NULL);
    add_report(r, lk_error_name(err));
    return;
  }
  ck_assert_int_eq(stat->num_children, (int)count);
  for (size_t i = 0; i < count; i++) {
    sorted[i] = calloc(1, list[i].len + 1);
    memcpy(sorted[i], list[i].at, list[i].len);
  }
  qsort(sorted, count, sizeof sorted[0], by_text);
  for (size_t i = 0; i < count; i++) {
    strcat(text, i == 0 ? "" : " ");
    strcat(text, sorted[i]);
    free(sorted[i]);
  }
  add_report(r, text);
}

static void on_data(lk_subscription *s, int err, const lk_bytes *bytes,
                    const lk_stat *stat, void *arg)
{
  subscriber *r = arg;
  char text[64];

  ck_assert_ptr_eq(s, r->s);
  if (err != 0) {
    ck_assert(bytes == NULL && stat == NULL);
    add_report(r, lk_error_name(err));
    return;
  }
  ck_assert_uint_eq((size_t)stat->data_length, bytes->len);
  snprintf(text, sizeof text, "=%.*s", (int)bytes->len,
           (const char *)bytes->at);
  add_report(r, text);
}

/* Whether exactly these reports came since the last check. Discards them. */
static bool check_reports(subscriber *r, const char *text)
{
  bool same = strcmp(r->reports, text) == 0;

  if (!same)
    fprintf(stderr, "reports: %s", r->reports);
  r->reports[0] = '\0';
  return same;
}

static lk_client *client(void)
{
  return one.link->client;
}

static int try_subscribe_names(subscriber *r)
{
  return lk_subscribe_children(&r->s, client(), NODE, &options, on_names, r);
}

static int try_subscribe_data(subscriber *r)
{
  return lk_subscribe_data(&r->s, client(), NODE, &options, on_data, r);
}

static void unsubscribe(subscriber *r)
{
  lk_subscription_free(r->s);
  r->s = NULL;
}

/* ---- the server and its changes ----------------------------------------- */

enum { NO_CHECKS = -1 }; /* a value of lk_subscription_config.check_ms */

static void begin(void)
{
  memset(&names, 0, sizeof names);
  memset(&data, 0, sizeof data);
  memset(&second, 0, sizeof second);
  options =
      (lk_subscription_config){.size = sizeof options, .check_ms = NO_CHECKS};
  model_init(&server);
  test_client_init(&one, &server, NULL);
  model_turn(&server);
  one.link->log[0] = '\0';
}

static void subscribe(subscriber *r)
{
  ck_assert_int_eq(r == &data ? try_subscribe_data(r) : try_subscribe_names(r),
                   0);
  /* no callback before the call has returned */
  ck_assert_str_eq(r->reports, "");
  model_turn(&server);
}

/* Begins with the node and a subscription to it. */
static void begin_with(subscriber *r)
{
  begin();
  model_create(&server, NODE);
  subscribe(r);
  r->reports[0] = '\0';
  one.link->log[0] = '\0';
}

static size_t watches(void)
{
  return model_watches(one.link);
}

/* After the subscriptions are freed, no watch and no request is left. */
static void end(void)
{
  unsubscribe(&names);
  unsubscribe(&data);
  unsubscribe(&second);
  model_turn(&server);
  ck_assert_uint_eq(watches(), 0);
  test_client_free(&one);
  model_done(&server);
}

static void create_node(const char *path)
{
  model_create(&server, path);
  model_turn(&server);
}

static void delete_node(const char *path)
{
  model_delete(&server, path);
  model_turn(&server);
}

static void set_data(const char *text)
{
  model_set(&server, NODE, text);
  model_turn(&server);
}

/* The connection breaks. The client cannot connect again before
 * reconnect(). */
static void disconnect(void)
{
  server.down = true;
  model_drop(one.link);
  model_turn(&server);
}

static void reconnect(void)
{
  one.link->log[0] = '\0';
  server.down = false;
  model_run(&server, T / 3);
  ck_assert(one.link->up);
}

static void expect_requests(const char *text)
{
  ck_assert(model_check_log(one.link, text));
}

/* ---- reports ------------------------------------------------------------- */

START_TEST(children_are_reported_at_once_and_after_each_change)
{
  begin();
  model_create(&server, NODE);
  model_create(&server, NODE "/a");
  subscribe(&names);
  ck_assert(check_reports(&names, "a\n"));
  expect_requests("getChildren2");
  create_node(NODE "/b");
  ck_assert(check_reports(&names, "a b\n"));
  expect_requests("getChildren2");
  delete_node(NODE "/a");
  delete_node(NODE "/b");
  ck_assert(check_reports(&names, "b\n\n"));
  expect_requests("getChildren2 | getChildren2");
  ck_assert_str_eq(lk_subscription_path(names.s), NODE);
  ck_assert_uint_eq(watches(), 1);
  end();
}
END_TEST

START_TEST(data_are_reported_at_once_and_after_each_change)
{
  begin();
  model_create(&server, NODE);
  subscribe(&data);
  set_data("x");
  set_data("x");
  /* the same data written again is a change */
  ck_assert(check_reports(&data, "=\n=x\n=x\n"));
  expect_requests("getData | getData | getData");
  create_node(NODE "/a");
  ck_assert(check_reports(&data, ""));
  expect_requests("");
  end();
}
END_TEST

START_TEST(change_of_data_is_no_change_of_children)
{
  begin_with(&names);
  set_data("x");
  ck_assert(check_reports(&names, ""));
  expect_requests("");
  end();
}
END_TEST

START_TEST(missing_node_and_its_creation_are_reported)
{
  begin();
  subscribe(&names);
  ck_assert(check_reports(&names, "NO_NODE\n"));
  expect_requests("getChildren2 | exists");
  subscribe(&data);
  ck_assert(check_reports(&data, "NO_NODE\n"));
  expect_requests("getData | exists");
  ck_assert_uint_eq(watches(), 1);
  create_node(NODE);
  ck_assert(check_reports(&names, "\n"));
  ck_assert(check_reports(&data, "=\n"));
  expect_requests("getChildren2 getData");
  ck_assert_uint_eq(watches(), 2);
  end();
}
END_TEST

START_TEST(deletion_and_return_of_the_node_are_reported)
{
  begin_with(&names);
  subscribe(&data);
  one.link->log[0] = '\0';
  delete_node(NODE);
  ck_assert(check_reports(&names, "NO_NODE\n"));
  ck_assert(check_reports(&data, "=\nNO_NODE\n"));
  expect_requests("exists exists");
  create_node(NODE);
  ck_assert(check_reports(&names, "\n"));
  ck_assert(check_reports(&data, "=\n"));
  end();
}
END_TEST

START_TEST(node_created_again_between_two_reads_is_a_new_node)
{
  begin_with(&names);
  subscribe(&data);
  model_delete(&server, NODE);
  /* with the version and the names of the old node */
  model_create(&server, NODE);
  model_turn(&server);
  ck_assert(check_reports(&names, "\n"));
  ck_assert(check_reports(&data, "=\n=\n"));
  ck_assert_uint_eq(watches(), 2);
  end();
}
END_TEST

START_TEST(of_many_changes_the_newest_is_reported)
{
  char path[32];

  begin_with(&names);
  one.link->frozen = true;
  for (int i = 0; i < 9; i++) {
    snprintf(path, sizeof path, NODE "/%d", i);
    create_node(path);
  }
  one.link->frozen = false;
  model_turn(&server);
  ck_assert(check_reports(&names, "0 1 2 3 4 5 6 7 8\n"));
  expect_requests("getChildren2");
  end();
}
END_TEST

START_TEST(subscriptions_to_one_node_get_the_same_reports)
{
  begin_with(&names);
  subscribe(&second);
  create_node(NODE "/a");
  ck_assert(check_reports(&names, "a\n"));
  ck_assert(check_reports(&second, "\na\n"));
  unsubscribe(&second); /* both subscriptions need the same watch */
  one.link->log[0] = '\0';
  model_turn(&server);
  expect_requests("");
  create_node(NODE "/b");
  ck_assert(check_reports(&names, "a b\n"));
  ck_assert(check_reports(&second, ""));
  end();
}
END_TEST

/* ---- changes just before a request ------------------------------------- */

static int32_t trigger_op;
static const char *node_to_change;

/* Before a request with this opcode is executed, the node is deleted if it
 * exists, and otherwise created. */
static void create_or_delete_node(model_server *s, model_link *l, int32_t op,
                                  const char *path)
{
  (void)l;
  (void)path;
  if (op != trigger_op)
    return;
  s->before = NULL;
  if (model_node(s, node_to_change) == NULL)
    model_create(s, node_to_change);
  else
    model_delete(s, node_to_change);
}

static void change_node_before(int32_t op, const char *path)
{
  trigger_op = op;
  node_to_change = path;
  server.before = create_or_delete_node;
}

START_TEST(node_created_before_the_watch_is_reported)
{
  begin();
  change_node_before(LK_OPCODE_EXISTS, NODE);
  subscribe(&names);
  ck_assert(check_reports(&names, "NO_NODE\n\n"));
  expect_requests("getChildren2 | exists | removeWatches getChildren2");
  ck_assert_uint_eq(watches(), 1);
  delete_node(NODE);
  names.reports[0] = '\0';
  change_node_before(LK_OPCODE_EXISTS, NODE);
  subscribe(&data);
  ck_assert(check_reports(&data, "NO_NODE\n=\n"));
  ck_assert_uint_eq(watches(), 2);
  end();
}
END_TEST

START_TEST(node_deleted_before_the_read_is_missing)
{
  begin();
  model_create(&server, NODE);
  change_node_before(LK_OPCODE_GET_CHILDREN2, NODE);
  subscribe(&names);
  ck_assert(check_reports(&names, "NO_NODE\n"));
  change_node_before(LK_OPCODE_GET_CHILDREN2, NODE);
  create_node(NODE); /* the node is deleted before the read */
  ck_assert(check_reports(&names, ""));
  create_node(NODE);
  ck_assert(check_reports(&names, "\n"));
  change_node_before(LK_OPCODE_GET_CHILDREN2, NODE "/a");
  create_node(NODE "/b");
  ck_assert(check_reports(&names, "a b\n"));
  end();
}
END_TEST

START_TEST(child_created_and_deleted_between_reads_is_reported)
{
  begin_with(&names);
  change_node_before(LK_OPCODE_GET_CHILDREN2, NODE "/a");
  create_node(NODE "/a");
  ck_assert(check_reports(&names, "\n"));
  end();
}
END_TEST

/* ---- connections and sessions ------------------------------------------ */

START_TEST(subscription_reads_again_after_a_reconnect)
{
  begin_with(&names);
  subscribe(&data);
  disconnect();
  reconnect();
  expect_requests("getChildren2 getData");
  ck_assert(check_reports(&names, "")); /* nothing has changed */
  ck_assert(check_reports(&data, "=\n"));
  disconnect();
  create_node(NODE "/a");
  set_data("x");
  reconnect();
  expect_requests("getChildren2 getData");
  ck_assert(check_reports(&names, "a\n"));
  ck_assert(check_reports(&data, "=x\n"));
  ck_assert_uint_eq(watches(), 2);
  disconnect();
  delete_node(NODE "/a");
  delete_node(NODE);
  create_node(NODE);
  reconnect();
  ck_assert(check_reports(&names, "\n"));
  ck_assert(check_reports(&data, "=\n"));
  disconnect();
  delete_node(NODE);
  reconnect();
  ck_assert(check_reports(&names, "NO_NODE\n"));
  ck_assert(check_reports(&data, "NO_NODE\n"));
  disconnect();
  create_node(NODE);
  reconnect();
  ck_assert(check_reports(&names, "\n"));
  ck_assert(check_reports(&data, "=\n"));
  end();
}
END_TEST

START_TEST(subscription_reads_again_when_its_watch_has_ended)
{
  begin_with(&names);
  one.link->log[0] = '\0';
  test_client_end_watches(&one, NODE);
  ck_assert_uint_eq(model_count(one.link, "getChildren2"), 1);
  create_node(NODE "/a");
  ck_assert(check_reports(&names, "a\n"));
  end();
}
END_TEST

START_TEST(read_of_a_subscription_is_sent_before_waiting_requests)
{
  begin_with(&names);
  disconnect();
  ck_assert_int_eq(lk_server_sync(client(), "/", NULL, NULL, NULL), 0);
  reconnect();
  expect_requests("getChildren2 sync");
  end();
}
END_TEST

START_TEST(changes_are_reported_though_any_request_is_lost)
{
  for (int executed = 0; executed < 2; executed++) {
    for (unsigned at = 1; at < 9; at++) {
      begin();
      one.link->requests = 0;
      one.link->cut_at = at;
      one.link->cut_after = executed;
      subscribe(&names);
      model_run(&server, T / 3);
      ck_assert(check_reports(&names, "NO_NODE\n"));
      model_create(&server, NODE);
      model_run(&server, T / 3);
      ck_assert(check_reports(&names, "\n"));
      model_create(&server, NODE "/a");
      model_run(&server, T / 3);
      ck_assert(check_reports(&names, "a\n"));
      model_delete(&server, NODE "/a");
      model_delete(&server, NODE);
      model_run(&server, T / 3);
      ck_assert(check_reports(&names, "NO_NODE\n"));
      end();
    }
  }
}
END_TEST

START_TEST(subscription_watches_again_in_a_new_session)
{
  begin_with(&names);
  subscribe(&data);
  model_expire(&server, one.link->last_session);
  model_run(&server, T);
  ck_assert(check_reports(&names, ""));
  ck_assert(check_reports(&data, "=\n"));
  ck_assert_uint_eq(watches(), 2);
  create_node(NODE "/a");
  set_data("x");
  ck_assert(check_reports(&names, "a\n"));
  ck_assert(check_reports(&data, "=x\n"));
  end();
}
END_TEST

START_TEST(subscription_begins_with_the_first_connection)
{
  begin();
  disconnect();
  ck_assert_int_eq(try_subscribe_names(&names), 0);
  ck_assert_int_eq(try_subscribe_names(&second), 0);
  model_turn(&server);
  unsubscribe(&second);
  reconnect();
  ck_assert(check_reports(&names, "NO_NODE\n"));
  ck_assert(check_reports(&second, ""));
  expect_requests("getChildren2 | exists");
  end();
}
END_TEST

static void subscribe_at_state(lk_client *c, lk_state state, int err, void *arg)
{
  (void)c;
  (void)err;
  (void)arg;
  if (state == LK_STATE_CONNECTED && names.s == NULL)
    ck_assert_int_eq(try_subscribe_names(&names), 0);
  if (state == LK_STATE_EXPIRED && second.s == NULL)
    ck_assert_int_eq(try_subscribe_names(&second), 0);
}

START_TEST(subscription_may_begin_in_a_state_callback)
{
  lk_listener l = {.size = sizeof l, .state = subscribe_at_state};

  begin();
  lk_client_attach(client(), &l);
  disconnect();
  reconnect();
  expect_requests("getChildren2 | exists");
  ck_assert(check_reports(&names, "NO_NODE\n"));
  model_expire(&server, one.link->last_session);
  model_run(&server, T);
  ck_assert(check_reports(&second, "NO_NODE\n"));
  lk_client_detach(client(), &l);
  end();
}
END_TEST

/* ---- errors ------------------------------------------------------------ */

static void allow_reads(void)
{
  const int32_t no_permission = 0;

  model_deny(&server, NODE, no_permission);
}

START_TEST(denied_read_is_reported_once_and_retried)
{
  begin_with(&names);
  model_deny(&server, NODE, LK_PERM_READ);
  subscribe(&data);
  ck_assert(check_reports(&data, "NO_AUTH\n"));
  model_run(&server, 10000);
  ck_assert(check_reports(&data, ""));
  unsigned reads = model_count(one.link, "getData");

  /* The pauses double from 0.1 to 0.2 s on. */
  ck_assert_uint_ge(reads, 5);
  ck_assert_uint_le(reads, 9);
  allow_reads();
  model_run(&server, 60000);
  ck_assert(check_reports(&data, "=\n"));
  set_data("x"); /* after a success the pauses begin again with the shortest */
  ck_assert(check_reports(&data, "=x\n"));
  ck_assert(check_reports(&names, ""));
  end();
}
END_TEST

START_TEST(pause_of_a_subscription_is_a_minute_at_most)
{
  begin();
  model_create(&server, NODE);
  model_deny(&server, NODE, LK_PERM_READ);
  subscribe(&names);
  model_run(&server, 600000);
  for (int i = 0; i < 10; i++) {
    one.link->log[0] = '\0';
    model_run(&server, 60000);
    ck_assert_uint_ge(model_count(one.link, "getChildren2"), 1);
    ck_assert_uint_le(model_count(one.link, "getChildren2"), 3);
  }
  ck_assert(check_reports(&names, "NO_AUTH\n"));
  disconnect();
  model_run(&server, T / 2); /* a pause may end meanwhile */
  reconnect();
  allow_reads();
  model_run(&server, 60000);
  ck_assert(check_reports(&names, "\n"));
  end();
}
END_TEST

START_TEST(state_is_reported_after_an_error_even_if_unchanged)
{
  begin_with(&names);
  one.link->requests = 0;
  one.link->answer_at = 1;
  one.link->answer_err = LK_ERR_NO_AUTH;
  disconnect();
  reconnect();
  model_run(&server, 1000);
  ck_assert(check_reports(&names, "NO_AUTH\n\n"));
  end();
}
END_TEST

START_TEST(throttled_read_is_retried_without_a_report)
{
  for (unsigned at = 1; at < 9; at++) {
    begin();
    options.check_ms = 1000;
    one.link->requests = 0;
    one.link->throttle_at = at;
    subscribe(&names);
    model_run(&server, 300);
    ck_assert(check_reports(&names, "NO_NODE\n"));
    model_create(&server, NODE);
    model_run(&server, 300);
    ck_assert(check_reports(&names, "\n"));
    model_delete(&server, NODE);
    model_run(&server, 300);
    ck_assert(check_reports(&names, "NO_NODE\n"));
    model_run(&server, 5000);
    ck_assert(check_reports(&names, ""));
    end();
  }
}
END_TEST

START_TEST(refused_exists_request_is_reported)
{
  begin();
  one.link->requests = 0;
  one.link->answer_at = 2; /* the exists, which follows the list */
  one.link->answer_err = LK_ERR_NO_AUTH;
  subscribe(&names);
  ck_assert(check_reports(&names, "NO_NODE\nNO_AUTH\n"));
  model_run(&server, 1000);
  ck_assert(check_reports(&names, "NO_NODE\n"));
  end();
}
END_TEST

START_TEST(reply_beyond_the_limit_does_not_break_every_connection)
{
  lk_client_config config = {
      .size = sizeof config, .session_timeout_ms = T, .receive_limit = 200};
  char path[64];

  begin();
  model_create(&server, NODE);
  for (int i = 0; i < 9; i++) {
    snprintf(path, sizeof path, NODE "/a-name-of-thirty-letters-or-so-%d", i);
    model_create(&server, path);
  }
  config.mem = &one.mem.mem;
  model_link *l = model_client(&server, &config);

  ck_assert_int_eq(lk_subscribe_children(&second.s, l->client, NODE, &options,
                                         on_names, &second),
                   0);
  model_run(&server, 120000);
  ck_assert(check_reports(&second, "REPLY_TOO_BIG\n"));
  /* each list breaks a connection, and the pauses between the lists grow */
  ck_assert_uint_ge(lk_client_connection(l->client), 3);
  ck_assert_uint_le(lk_client_connection(l->client), 7);
  for (int i = 2; i < 9; i++) {
    snprintf(path, sizeof path, NODE "/a-name-of-thirty-letters-or-so-%d", i);
    model_delete(&server, path);
  }
  model_run(&server, 60000);
  ck_assert(check_reports(&second, "a-name-of-thirty-letters-or-so-0 "
                                   "a-name-of-thirty-letters-or-so-1\n"));
  unsubscribe(&second);
  lk_client_free(l->client);
  end();
}
END_TEST

/* ---- events that do not come ------------------------------------------- */

START_TEST(check_replaces_an_event_that_the_server_withheld)
{
  begin_with(&names);
  options.check_ms = 1000;
  subscribe(&second);
  one.link->log[0] = '\0';
  model_run(&server, 740); /* a check comes after 750 to 1000 ms */
  model_deny(&server, NODE, LK_PERM_READ);
  model_create(&server, NODE "/a"); /* the watch fires without an event */
  allow_reads();
  model_run(&server, 270);
  ck_assert(check_reports(&names, ""));
  ck_assert(check_reports(&second, "\na\n"));
  expect_requests("exists | getChildren2");
  model_run(&server, 3000); /* each check costs one request */
  ck_assert(check_reports(&second, ""));
  ck_assert_uint_ge(model_count(one.link, "exists"), 3);
  ck_assert_uint_eq(model_count(one.link, "getChildren2"), 0);
  end();
}
END_TEST

START_TEST(check_detects_a_lost_read_permission)
{
  begin();
  server.strict = true;
  options.check_ms = 1000;
  subscribe(&names);
  create_node(NODE);
  names.reports[0] = '\0';
  model_deny(&server, NODE, LK_PERM_READ);
  model_run(&server, 1010);
  ck_assert(check_reports(&names, "NO_AUTH\n"));
  ck_assert_uint_eq(watches(), 0);
  allow_reads();
  model_run(&server, 1000);
  ck_assert(check_reports(&names, "\n"));
  end();
}
END_TEST

/* The missing node is created and deleted before the next check is executed. */
static void create_and_delete_node(model_server *s, model_link *l, int32_t op,
                                   const char *path)
{
  (void)l;
  if (op != LK_OPCODE_EXISTS)
    return;
  s->before = NULL;
  model_create(s, path);
  model_delete(s, path);
}

START_TEST(node_created_and_deleted_during_a_check_is_watched_again)
{
  begin();
  options.check_ms = 100;
  subscribe(&names);
  server.before = create_and_delete_node;
  model_run(&server, 150);
  ck_assert_ptr_null(server.before);
  ck_assert(check_reports(&names, "NO_NODE\n"));
  ck_assert_uint_eq(watches(), 1);
  end();
}
END_TEST

START_TEST(check_reports_each_change_once)
{
  begin_with(&names);
  options.check_ms = 100;
  subscribe(&data);
  data.reports[0] = '\0';
  for (int i = 0; i < 2; i++) {
    /* first deleted, then created again */
    change_node_before(LK_OPCODE_EXISTS, NODE);
    model_run(&server, 200);
    ck_assert(check_reports(&data, i == 0 ? "NO_NODE\n" : "=\n"));
  }
  end();
}
END_TEST

/* ---- ends of subscriptions and clients --------------------------------- */

START_TEST(subscription_freed_at_once_leaves_no_watch)
{
  begin();
  ck_assert_int_eq(try_subscribe_names(&names), 0);
  unsubscribe(&names);
  model_turn(&server);
  expect_requests("getChildren2");
  ck_assert_int_eq(try_subscribe_names(&names), 0);
  one.link->frozen = true;
  model_turn(&server);
  unsubscribe(&names);
  model_create(&server, NODE);
  one.link->frozen = false;
  model_turn(&server);
  expect_requests("getChildren2 | removeWatches");
  ck_assert_uint_eq(watches(), 0);
  ck_assert(check_reports(&names, ""));
  end();
}
END_TEST

static void free_subscription_of(subscriber *r)
{
  unsubscribe(r);
}

static void free_everything(subscriber *r)
{
  (void)r;
  unsubscribe(&names);
  unsubscribe(&data);
  unsubscribe(&second);
  if (one.link->client != NULL)
    lk_client_free(one.link->client);
}

/* Runs a sequence of reports of all kinds, and calls `react` in report number
 * `n`, from 0 on. Returns whether there were so many. */
static bool react_to_report(int n, void (*react)(subscriber *r))
{
  static const char *const steps[] = {"", NODE, NODE "/a"};

  begin();
  for (size_t i = 0; i < 3; i++) {
    subscriber *r = i == 0 ? &names : i == 1 ? &data : &second;

    if (i > 0)
      create_node(steps[i]);
    if (one.link->client == NULL)
      break;
    r->react = n-- == 0 ? react : NULL;
    subscribe(r);
    model_turn(&server);
  }
  for (int i = 0; i < 4 && one.link->client != NULL; i++) {
    names.react = data.react = second.react = NULL;
    subscriber *r = i == 3 ? &data : &names; /* the one that gets a report */

    r->react = n-- == 0 ? react : NULL;
    if (i == 0)
      delete_node(NODE "/a");
    else if (i == 1)
      delete_node(NODE);
    else if (i == 2)
      create_node(NODE);
    else
      set_data("x");
  }
  names.react = data.react = second.react = NULL;
  end();
  return n < 0;
}

START_TEST(a_callback_may_free_its_subscription_or_everything)
{
  for (int n = 0; react_to_report(n, free_subscription_of); n++)
    ;
  for (int n = 0; react_to_report(n, free_everything); n++)
    ;
}
END_TEST

START_TEST(callback_of_the_end_may_free_its_subscription)
{
  for (int closes_first = 0; closes_first < 2; closes_first++) {
    begin_with(&names);
    names.react = free_subscription_of;
    if (closes_first) {
      ck_assert_int_eq(lk_client_close(client(), NULL, NULL), 0);
      model_turn(&server);
    } else {
      lk_client_free(client());
    }
    ck_assert(check_reports(&names, "CLOSED\n"));
    end();
  }
}
END_TEST

START_TEST(nothing_is_reported_after_the_client_has_ended)
{
  begin_with(&names);
  ck_assert_int_eq(lk_client_close(client(), NULL, NULL), 0);
  set_data("x");
  create_node(NODE "/a");
  ck_assert(check_reports(&names, "CLOSED\n"));
  ck_assert_int_eq(try_subscribe_names(&second), LK_ERR_CLOSED);
  ck_assert_ptr_null(second.s);
  lk_client_free(client());
  ck_assert(check_reports(&names, ""));
  end();
}
END_TEST

/* The client closes and reads no node any more, so the event is not answered by
 * a read. Then its session expires. */
START_TEST(subscription_of_a_closing_client_ends_once)
{
  begin_with(&names);
  one.link->frozen = true;
  ck_assert_int_eq(lk_client_close(client(), NULL, NULL), 0);
  create_node(NODE "/a");
  one.link->frozen = false;
  server.down = true;
  model_drop(one.link);
  model_expire(&server, one.link->last_session);
  server.down = false;
  model_run(&server, 1000);
  ck_assert_int_eq(lk_client_state(client()), LK_STATE_CLOSED);
  ck_assert(check_reports(&names, "SESSION_EXPIRED\n"));
  end();
}
END_TEST

START_TEST(refused_credentials_end_a_subscription)
{
  begin_with(&names);
  one.link->answer_at = one.link->requests + 1;
  one.link->answer_err = LK_ERR_AUTH_REQUIRED;
  create_node(NODE "/a");
  ck_assert(check_reports(&names, "AUTH_REQUIRED\nAUTH_FAILED\n"));
  ck_assert_int_eq(try_subscribe_names(&second), LK_ERR_AUTH_FAILED);
  model_run(&server, 60000);
  ck_assert(check_reports(&names, ""));
  end();
}
END_TEST

START_TEST(expiry_is_reported_if_the_client_has_one_session)
{
  lk_client_config config = {
      .size = sizeof config, .session_timeout_ms = T, .one_session = true};

  begin_with(&names);
  config.mem = &one.mem.mem;
  model_link *l = model_client(&server, &config);

  ck_assert_int_eq(lk_subscribe_children(&second.s, l->client, NODE, &options,
                                         on_names, &second),
                   0);
  model_turn(&server);
  ck_assert(check_reports(&second, "\n"));
  model_expire(&server, l->last_session);
  model_run(&server, T);
  ck_assert(check_reports(&second, "SESSION_EXPIRED\n"));
  unsubscribe(&second);
  ck_assert_int_eq(lk_subscribe_children(&second.s, l->client, NODE, &options,
                                         on_names, &second),
                   LK_ERR_CLOSED);
  lk_client_free(l->client);
  ck_assert(check_reports(&second, ""));
  end();
}
END_TEST

START_TEST(invalid_arguments_are_refused)
{
  static const lk_subscription_config bad[] = {
      {.size = 1},
      {.size = sizeof bad[0], .check_ms = -2},
      {.size = sizeof bad[0], .check_ms = 99},
      {.size = sizeof bad[0], .check_ms = 86400001},
  };
  lk_subscription *s;

  begin();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_int_eq(
        lk_subscribe_data(&s, client(), NODE, &bad[i], on_data, NULL),
        LK_ERR_BAD_ARGUMENT);
    ck_assert_ptr_null(s);
  }
  ck_assert_int_eq(lk_subscribe_data(&s, client(), "news", NULL, on_data, NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_subscribe_data(&s, client(), NODE, NULL, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_subscribe_children(&s, client(), NODE, NULL, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  lk_subscription_free(NULL);
  ck_assert_int_eq(
      lk_subscribe_data(&data.s, client(), "/", NULL, on_data, &data), 0);
  model_turn(&server);
  ck_assert(check_reports(&data, "=\n"));
  end();
}
END_TEST

START_TEST(read_refused_by_the_outstanding_limit_is_reported_and_repeated)
{
  lk_client_config config = {
      .size = sizeof config, .session_timeout_ms = T, .outstanding_limit = 1};

  begin_with(&names);
  config.mem = &one.mem.mem;
  model_link *l = model_client(&server, &config);

  model_turn(&server);
  ck_assert_int_eq(lk_subscribe_children(&second.s, l->client, NODE, &options,
                                         on_names, &second),
                   0);
  model_turn(&server);
  model_create(&server, NODE "/a");
  ck_assert_int_eq(lk_server_sync(l->client, "/", NULL, NULL, NULL), 0);
  ck_assert_int_eq(
      lk_subscribe_data(&data.s, l->client, NODE, &options, on_data, &data),
      LK_ERR_TOO_MANY);
  model_turn(&server);
  model_run(&server, 1000);
  ck_assert(check_reports(&second, "\nTOO_MANY\na\n"));
  unsubscribe(&second);
  lk_client_free(l->client);
  end();
}
END_TEST

/* A watch fires in the pause after a check that was refused. The pause ends
 * with the read that follows, so a reconnect repeats the read. */
START_TEST(event_during_a_pause_is_reported_though_the_read_is_lost)
{
  lk_client_config config = {
      .size = sizeof config, .session_timeout_ms = T, .outstanding_limit = 1};

  begin();
  model_create(&server, NODE);
  config.mem = &one.mem.mem;
  options.check_ms = 1000;
  model_link *l = model_client(&server, &config);

  model_turn(&server);
  ck_assert_int_eq(lk_subscribe_children(&second.s, l->client, NODE, &options,
                                         on_names, &second),
                   0);
  model_turn(&server);
  l->frozen = true;
  ck_assert_int_eq(lk_server_sync(l->client, "/", NULL, NULL, NULL), 0);
  model_run(&server, options.check_ms);
  ck_assert(check_reports(&second, "\nTOO_MANY\n"));
  l->frozen = false;
  model_turn(&server);
  l->requests = 0;
  l->cut_at = 1;
  model_create(&server, NODE "/a");
  model_run(&server, T / 3);
  ck_assert(check_reports(&second, "a\n"));
  unsubscribe(&second);
  lk_client_free(l->client);
  end();
}
END_TEST

/* ---- memory ------------------------------------------------------------ */

/* Subscribes and changes the node while allocation number `fail_at` fails.
 * Returns whether there were so many allocations. */
static bool report_without_memory(size_t fail_at)
{
  memset(&names, 0, sizeof names);
  memset(&data, 0, sizeof data);
  options = (lk_subscription_config){.size = sizeof options, .check_ms = 500};
  model_init(&server);
  failing_mem_init(&one.mem);
  one.mem.fail_at = fail_at;
  if (test_client_try_init(&one, &server, NULL) &&
      try_subscribe_names(&names) == 0 && try_subscribe_data(&data) == 0) {
    model_run(&server, T);
    model_create(&server, NODE);
    model_run(&server, T);
    model_create(&server, NODE "/a");
    model_set(&server, NODE, "x");
    model_run(&server, T);
    model_drop(one.link);
    model_run(&server, T);
  }
  bool failed = failing_mem_failed(&one.mem);
  size_t len = strlen(names.reports);

  one.mem.fail_at = 0;
  if (names.s != NULL && data.s != NULL) {
    ck_assert(len > 2 && strcmp(names.reports + len - 2, "a\n") == 0);
    ck_assert_ptr_nonnull(strstr(data.reports, "=x\n"));
  }
  unsubscribe(&names);
  unsubscribe(&data);
  model_run(&server, T);
  ck_assert(one.link == NULL || watches() == 0);
  test_client_free(&one);
  model_done(&server);
  return failed;
}

START_TEST(changes_are_reported_though_one_allocation_fails)
{
  size_t n = 0;

  while (report_without_memory(++n))
    ;
  ck_assert_uint_gt(n, 5);
}
END_TEST

SUITE("subscriptions", subscription_of_a_closing_client_ends_once,
      children_are_reported_at_once_and_after_each_change,
      data_are_reported_at_once_and_after_each_change,
      change_of_data_is_no_change_of_children,
      missing_node_and_its_creation_are_reported,
      deletion_and_return_of_the_node_are_reported,
      node_created_again_between_two_reads_is_a_new_node,
      of_many_changes_the_newest_is_reported,
      subscriptions_to_one_node_get_the_same_reports,
      node_created_before_the_watch_is_reported,
      node_deleted_before_the_read_is_missing,
      child_created_and_deleted_between_reads_is_reported,
      subscription_reads_again_after_a_reconnect,
      subscription_reads_again_when_its_watch_has_ended,
      read_of_a_subscription_is_sent_before_waiting_requests,
      changes_are_reported_though_any_request_is_lost,
      subscription_watches_again_in_a_new_session,
      subscription_begins_with_the_first_connection,
      subscription_may_begin_in_a_state_callback,
      denied_read_is_reported_once_and_retried,
      pause_of_a_subscription_is_a_minute_at_most,
      state_is_reported_after_an_error_even_if_unchanged,
      throttled_read_is_retried_without_a_report,
      refused_exists_request_is_reported,
      reply_beyond_the_limit_does_not_break_every_connection,
      check_replaces_an_event_that_the_server_withheld,
      check_detects_a_lost_read_permission,
      node_created_and_deleted_during_a_check_is_watched_again,
      check_reports_each_change_once,
      subscription_freed_at_once_leaves_no_watch,
      a_callback_may_free_its_subscription_or_everything,
      callback_of_the_end_may_free_its_subscription,
      nothing_is_reported_after_the_client_has_ended,
      refused_credentials_end_a_subscription,
      expiry_is_reported_if_the_client_has_one_session,
      invalid_arguments_are_refused,
      read_refused_by_the_outstanding_limit_is_reported_and_repeated,
      event_during_a_pause_is_reported_though_the_read_is_lost,
      changes_are_reported_though_one_allocation_fails)
