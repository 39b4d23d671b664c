/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The blocking interface against a real server: requests and watches. The
 * requests that the server executes as they are: operations_table.c. */

#include "live/client/sync_world.h"
#include "support/server_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char test_node[64]; /* the path of the node below which a test works */

/* The path of a child of the test node, in one of four buffers, which are used
 * in turn. */
static const char *path_of(const char *name)
{
  static char text[4][128];
  static unsigned ncalls;
  char *out = text[ncalls++ % 4];

  snprintf(out, sizeof text[0], "%s/%s", test_node, name);
  return out;
}

static void make_test_node(void)
{
  lk_sync_result *r;

  ck_assert_int_eq(lk_sync_create(here, &r, "/c-", lk_text(""), NULL,
                                  LK_SEQUENTIAL, &ten_seconds),
                   0);
  snprintf(test_node, sizeof test_node, "%s", r->path);
  lk_sync_result_free(r);
}

/* ---- the connection ------------------------------------------------------ */

START_TEST(connection_can_be_awaited_and_queried)
{
  char name[80], peer[80];

  ck_assert_int_eq(
      lk_sync_client_wait_state(here, LK_STATE_CONNECTED, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_client_state(here), LK_STATE_CONNECTED);
  ck_assert_int_ne(lk_sync_client_session(here).id, 0);
  ck_assert_int_gt(lk_sync_client_timeout_ms(here), 0);
  make_test_node();
  int64_t zxid = lk_sync_client_zxid(here);

  make_test_node();
  ck_assert_int_gt(lk_sync_client_zxid(here), zxid);
  ck_assert_int_eq(lk_sync_client_server(here, name, sizeof name), 0);
  ck_assert_int_eq(lk_sync_client_peer(here, peer, sizeof peer), 0);
  ck_assert_str_eq(peer, name); /* the connect string has an address */
}
END_TEST

/* ---- requests ------------------------------------------------------------ */

/* Create a tree of three levels; returns its number of nodes. */
static size_t make_tree(void)
{
  enum { TOP = 8, MIDDLE = 8, LEAVES = 16 };
  lk_parents_config containers = {.size = sizeof containers,
                                  .containers = true};
  char name[64];

  for (int a = 0; a < TOP; a++) {
    for (int b = 0; b < MIDDLE; b++) {
      for (int c = 0; c < LEAVES; c++) {
        snprintf(name, sizeof name, "tree/%d/%d/%d", a, b, c);
        ck_assert_int_eq(lk_sync_create_with_parents(
                             here, NULL, path_of(name), lk_text(""), NULL,
                             LK_PERSISTENT, &containers, &ten_seconds),
                         0);
      }
    }
  }
  return 1 + TOP + TOP * MIDDLE + TOP * MIDDLE * LEAVES;
}

START_TEST(tree_is_deleted_unless_cancelled)
{
  lk_sync_call cancelled = {.size = sizeof cancelled};
  size_t deleted;

  make_test_node();
  size_t count = make_tree();

  ck_assert_int_eq(lk_sync_cancel_new(&cancelled.cancel, here), 0);
  lk_sync_cancel_set(cancelled.cancel);
  ck_assert_int_eq(
      lk_sync_delete_recursive(here, &deleted, path_of("tree"), &cancelled),
      LK_ERR_CANCELLED);
  ck_assert_uint_eq(deleted, 0);
  lk_sync_cancel_free(cancelled.cancel);
  ck_assert_int_eq(
      lk_sync_delete_recursive(here, &deleted, path_of("tree"), &ten_seconds),
      0);
  ck_assert_uint_eq(deleted, count);
  ck_assert_int_eq(
      lk_sync_delete_recursive(here, &deleted, path_of("tree"), &ten_seconds),
      LK_ERR_NO_NODE);
  ck_assert_int_eq(lk_sync_exists(here, NULL, test_node, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_delete_recursive(here, NULL, "/", &ten_seconds),
                   LK_ERR_BAD_ARGUMENT);
}
END_TEST

typedef struct tree_creator {
  atomic_bool stop;
  unsigned created_count;
} tree_creator;

/* Create nodes in the tree until `stop` is set. When the tree is deleted, each
 * create fails with NO_NODE. */
static int create_in_tree(void *arg)
{
  tree_creator *creator = arg;
  char name[128];
  int err = 0;

  while (!atomic_load(&creator->stop) && (err == 0 || err == LK_ERR_NO_NODE)) {
    snprintf(name, sizeof name, "%s/tree/3/3/new-%u", test_node,
             creator->created_count);
    err = lk_sync_create(there, NULL, name, lk_text(""), NULL, LK_PERSISTENT,
                         &ten_seconds);
    if (err == 0)
      creator->created_count++;
  }
  return err == LK_ERR_NO_NODE ? 0 : err;
}

START_TEST(tree_in_which_another_client_creates_nodes_is_deleted)
{
  tree_creator creator = {.created_count = 0};
  waiter creating;
  size_t deleted = 0;
  size_t deleted_in_all = 0;
  int err;

  make_test_node();
  size_t count = make_tree();

  waiter_start(&creating, create_in_tree, &creator);
  do {
    err =
        lk_sync_delete_recursive(here, &deleted, path_of("tree"), &ten_seconds);
    deleted_in_all += deleted;
  } while (err == LK_ERR_NOT_EMPTY);
  ck_assert_int_eq(err, 0);
  atomic_store(&creator.stop, true);
  ck_assert_int_eq(waiter_end(&creating), 0);
  ck_assert_uint_eq(deleted_in_all, count + creator.created_count);
}
END_TEST

/* Whether no other client writes to the node. */
enum { NOT_SOLE = false, SOLE = true };

START_TEST(reliable_writes_name_their_outcome)
{
  lk_sync_result *r;
  lk_stat stat;

  make_test_node();
  ck_assert_int_eq(lk_sync_create_reliable(here, &r, path_of("n"), lk_text("1"),
                                           NULL, LK_EPHEMERAL, NOT_SOLE,
                                           &ten_seconds),
                   0);
  ck_assert_str_eq(r->path, path_of("n"));
  ck_assert_int_ne(r->stat.ephemeral_owner, 0);
  lk_sync_result_free(r);
  ck_assert_int_eq(lk_sync_create_reliable(here, NULL, path_of("n"),
                                           lk_text("1"), NULL, LK_PERSISTENT,
                                           NOT_SOLE, &ten_seconds),
                   LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(lk_sync_set_reliable(here, &stat, path_of("n"), lk_text("2"),
                                        0, SOLE, &ten_seconds),
                   0);
  ck_assert_int_eq(stat.version, 1);
  ck_assert_int_eq(
      lk_sync_delete_reliable(here, path_of("n"), 0, NOT_SOLE, &ten_seconds),
      LK_ERR_BAD_VERSION);
  ck_assert_int_eq(
      lk_sync_delete_reliable(here, path_of("n"), 1, NOT_SOLE, &ten_seconds),
      0);
  ck_assert_int_eq(
      lk_sync_delete_reliable(here, path_of("n"), 1, NOT_SOLE, &ten_seconds),
      LK_ERR_NO_NODE);
}
END_TEST

START_TEST(added_identity_admits_its_client_only)
{
  make_test_node();
  ck_assert_int_eq(lk_sync_create(here, NULL, path_of("x"), lk_text(""),
                                  lk_acl_creator(), LK_PERSISTENT,
                                  &ten_seconds),
                   LK_ERR_INVALID_ACL);
  ck_assert_int_eq(
      lk_sync_add_auth(here, "digest", lk_text("bob:secret"), &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_create(here, NULL, path_of("x"), lk_text(""),
                                  lk_acl_creator(), LK_PERSISTENT,
                                  &ten_seconds),
                   0);
  ck_assert_int_eq(lk_sync_get(there, NULL, path_of("x"), &ten_seconds),
                   LK_ERR_NO_AUTH);
}
END_TEST

START_TEST(silent_server_ends_calls_at_their_deadline)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 100};

  make_test_node();
  server_ask(&zk, "stop 1");
  int64_t begun_ms = lk_sync_client_clock(here);

  ck_assert_int_eq(lk_sync_get(here, NULL, test_node, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_add_auth(here, "digest", lk_text("a:b"), &brief),
                   LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_lt(lk_sync_client_clock(here), begun_ms + 2000);
  server_ask(&zk, "cont 1");
  ck_assert_int_eq(lk_sync_get(here, NULL, test_node, &ten_seconds), 0);
}
END_TEST

/* ---- watches ------------------------------------------------------------- */

/* The events of a watch. */
typedef struct watch_record {
  atomic_uint count;
  atomic_int type;             /* of the last event */
  lk_sync_watch **freed_watch; /* the callback frees this watch; or NULL */
} watch_record;

static void on_event(lk_sync_client *c, const lk_event *event, void *arg)
{
  watch_record *record = arg;

  ck_assert_ptr_eq(c, here);
  if (record->freed_watch != NULL)
    lk_sync_watch_free(*record->freed_watch);
  record->type = (int)event->type;
  record->count++;
}

static lk_sync_call call_with_watch(watch_record *record)
{
  return (lk_sync_call){.size = sizeof(lk_sync_call),
                        .timeout_ms = 10000,
                        .on_event = on_event,
                        .watch_arg = record};
}

static void wait_for_count(const watch_record *record, unsigned count)
{
  for (int i = 0; record->count < count; i++) {
    ck_assert_int_lt(i, 1000);
    usleep(10000);
  }
}

START_TEST(persistent_watch_reports_events_until_freed)
{
  watch_record with_handle = {.type = -1}, without_handle = {.type = -1};
  watch_record frees_itself = {.type = -1};
  lk_sync_call call = call_with_watch(&with_handle);
  lk_sync_watch *watch, *self_freed;

  make_test_node();
  call.watch = &watch;
  if (!server_has(SERVER_PERSISTENT_WATCHES)) {
    ck_assert_int_eq(
        lk_sync_add_watch(here, test_node, LK_WATCH_PERSISTENT, &call),
        LK_ERR_UNIMPLEMENTED);
    return;
  }
  ck_assert_int_eq(
      lk_sync_add_watch(here, test_node, LK_WATCH_PERSISTENT, &call), 0);
  ck_assert_ptr_nonnull(watch);
  call = call_with_watch(&without_handle);
  ck_assert_int_eq(
      lk_sync_add_watch(here, test_node, LK_WATCH_PERSISTENT, &call), 0);
  call = call_with_watch(&frees_itself);
  call.watch = &self_freed;
  frees_itself.freed_watch = &self_freed;
  ck_assert_int_eq(
      lk_sync_add_watch(here, test_node, LK_WATCH_PERSISTENT, &call), 0);
  for (unsigned i = 1; i <= 3; i++) {
    ck_assert_int_eq(
        lk_sync_set(there, NULL, test_node, lk_text("x"), -1, &ten_seconds), 0);
    wait_for_count(&without_handle, i);
    wait_for_count(&frees_itself, 1);
    ck_assert_uint_eq(with_handle.count, i);
  }
  lk_sync_watch_free(watch);
  ck_assert_int_eq(
      lk_sync_set(there, NULL, test_node, lk_text("x"), -1, &ten_seconds), 0);
  wait_for_count(&without_handle, 4);
  ck_assert_uint_eq(with_handle.count, 3);
  ck_assert_uint_eq(frees_itself.count, 1);
  ck_assert_int_eq(without_handle.type, LK_EVENT_CHANGED);
  call = call_with_watch(&with_handle);
  call.on_event = NULL;
  ck_assert_int_eq(
      lk_sync_add_watch(here, test_node, LK_WATCH_PERSISTENT, &call),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_client_close(here), 0);
  ck_assert_int_eq(without_handle.type, LK_EVENT_ENDED);
}
END_TEST

START_TEST(watch_with_a_handle_can_be_freed)
{
  watch_record first = {.type = -1}, next = {.type = -1};
  lk_sync_watch *watch;
  lk_sync_call call = call_with_watch(&first);

  make_test_node();
  call.watch = &watch;
  ck_assert_int_eq(lk_sync_get(here, NULL, path_of("no"), &call),
                   LK_ERR_NO_NODE);
  ck_assert_ptr_null(watch);
  ck_assert_int_eq(lk_sync_get(here, NULL, test_node, &call), 0);
  ck_assert_ptr_nonnull(watch);
  lk_sync_watch_free(watch);
  lk_sync_set(there, NULL, test_node, lk_text("new"), -1, &ten_seconds);
  ck_assert_int_eq(lk_sync_server_sync(here, test_node, &ten_seconds), 0);
  ck_assert_uint_eq(first.count, 0);
  ck_assert_int_eq(lk_sync_get(here, NULL, test_node, &call), 0);
  lk_sync_set(there, NULL, test_node, lk_text("newer"), -1, &ten_seconds);
  wait_for_event(&first.count);
  call.watch_arg = &next;
  call.watch = NULL;
  ck_assert_int_eq(lk_sync_get(here, NULL, test_node, &call), 0);
  lk_sync_watch_free(watch); /* it has fired; the next one is not affected */
  lk_sync_watch_free(NULL);
  lk_sync_set(there, NULL, test_node, lk_text("newest"), -1, &ten_seconds);
  wait_for_event(&next.count);
}
END_TEST

static int get_and_watch(void *call)
{
  return lk_sync_get(here, NULL, test_node, call);
}

START_TEST(cancelled_call_leaves_no_watch)
{
  watch_record seen = {.type = -1};
  /* Not NULL, so that the test sees that the call stores NULL. */
  lk_sync_watch *watch = (void *)&seen;
  lk_sync_cancel *cancel;
  lk_sync_call call = call_with_watch(&seen);
  waiter w;

  make_test_node();
  ck_assert_int_eq(lk_sync_cancel_new(&cancel, here), 0);
  call.cancel = cancel;
  call.watch = &watch;
  server_ask(&zk, "stop 1");
  waiter_start(&w, get_and_watch, &call);
  waiters_inside(here, 1);
  lk_sync_cancel_set(cancel);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CANCELLED);
  ck_assert_ptr_null(watch);
  server_ask(&zk, "cont 1");
  lk_sync_cancel_free(cancel);
  lk_sync_set(there, NULL, test_node, lk_text("new"), -1, &ten_seconds);
  ck_assert_int_eq(lk_sync_server_sync(here, test_node, &ten_seconds), 0);
  ck_assert_uint_eq(seen.count, 0);
}
END_TEST

/* ---- subscriptions ------------------------------------------------------- */

static lk_sync_subscription *subscription;

/* Wait for the next notification, for at most ten seconds. Returns it as text:
 * its names with a space behind each, its data, or its error. */
static const char *next_notification(void)
{
  static char text[128];
  lk_sync_result *r;
  int err = lk_sync_subscription_next(subscription, &r, &ten_seconds);

  text[0] = '\0';
  if (err != 0) {
    ck_assert_ptr_null(r);
    return lk_error_name(err);
  }
  for (size_t i = 0; i < r->count; i++) {
    strcat(text, r->names[i].at);
    strcat(text, " ");
  }
  if (r->names == NULL)
    strcat(text, r->data.at);
  ck_assert_int_ne(r->stat.czxid, 0);
  lk_sync_result_free(r);
  return text;
}

/* Wait until the subscription has read the changes so far. The event of a
 * change precedes the reply to the first sync. The client then reads the node,
 * and the reply to the read precedes the reply to the second sync. */
static void wait_for_subscription(void)
{
  ck_assert_int_eq(lk_sync_server_sync(here, test_node, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_server_sync(here, test_node, &ten_seconds), 0);
}

static int take_notification(void *call)
{
  return lk_sync_subscription_next(subscription, NULL, call);
}

START_TEST(subscription_merges_changes_of_children)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 50};

  make_test_node();
  ck_assert_int_eq(
      lk_sync_subscribe_children(&subscription, here, path_of("d"), NULL), 0);
  ck_assert_str_eq(next_notification(), "NO_NODE");
  lk_sync_create(there, NULL, path_of("d"), lk_text(""), NULL, LK_PERSISTENT,
                 &ten_seconds);
  ck_assert_str_eq(next_notification(), "");
  ck_assert_int_eq(take_notification(&brief), LK_ERR_DEADLINE);
  lk_sync_create(there, NULL, path_of("d/a"), lk_text(""), NULL, LK_PERSISTENT,
                 &ten_seconds);
  ck_assert_str_eq(next_notification(), "a ");
  lk_sync_delete(there, path_of("d/a"), -1, &ten_seconds);
  lk_sync_create(there, NULL, path_of("d/b"), lk_text(""), NULL, LK_PERSISTENT,
                 &ten_seconds);
  /* Changes before the next call are merged into one notification. */
  wait_for_subscription();
  ck_assert_str_eq(next_notification(), "b ");
  ck_assert_int_eq(take_notification(&brief), LK_ERR_DEADLINE);
  lk_sync_subscription_free(subscription);
}
END_TEST

START_TEST(each_change_of_data_goes_to_one_waiting_thread)
{
  waiter w[3];

  make_test_node();
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, here, test_node, NULL),
                   0);
  ck_assert_str_eq(next_notification(), "");
  for (int i = 0; i < 3; i++)
    waiter_start(&w[i], take_notification, NULL);
  waiters_inside(here, 3);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(
        lk_sync_set(there, NULL, test_node, lk_text("new"), -1, &ten_seconds),
        0);
    wait_for_subscription();
  }
  ck_assert_int_eq(lk_sync_client_close(here), 0);
  int closed_count = 0;

  for (int i = 0; i < 3; i++) {
    int err = waiter_end(&w[i]);

    ck_assert(err == 0 || err == LK_ERR_CLOSED);
    if (err == LK_ERR_CLOSED)
      closed_count++;
  }
  ck_assert_int_eq(closed_count, 1);
  ck_assert_int_eq(take_notification(NULL), LK_ERR_CLOSED);
  lk_sync_subscription_free(subscription);
}
END_TEST

/* ---- close --------------------------------------------------------------- */

START_TEST(closing_ends_the_session)
{
  make_test_node();
  ck_assert_int_eq(lk_sync_create(here, NULL, path_of("e"), lk_text(""), NULL,
                                  LK_EPHEMERAL, &ten_seconds),
                   0);
  ck_assert_int_eq(lk_sync_client_close(here), 0);
  ck_assert_int_eq(lk_sync_exists(there, NULL, path_of("e"), &ten_seconds),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(lk_sync_get(here, NULL, test_node, &ten_seconds),
                   LK_ERR_CLOSED);
}
END_TEST

TCase *call_tests(void)
{
  const TTest *const tests[] = {
      connection_can_be_awaited_and_queried,
      tree_is_deleted_unless_cancelled,
      tree_in_which_another_client_creates_nodes_is_deleted,
      reliable_writes_name_their_outcome,
      added_identity_admits_its_client_only,
      silent_server_ends_calls_at_their_deadline,
      persistent_watch_reports_events_until_freed,
      watch_with_a_handle_can_be_freed,
      cancelled_call_leaves_no_watch,
      subscription_merges_changes_of_children,
      each_change_of_data_goes_to_one_waiting_thread,
      closing_ends_the_session,
  };
  TCase *t = tcase_create("calls");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_test(t, tests[i]);
  return t;
}

int main(void)
{
  TCase *cases[] = {call_tests(), lock_tests(), lease_tests(), thread_tests(),
                    kind_tests()};
  const char *const options[] = {"--property",
                                 "zookeeper.extendedTypesEnabled=true", NULL};
  Suite *suite = suite_create("sync");
  SRunner *runner;
  int failed;

  server_start(&zk, options);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tcase_set_timeout(cases[i], 0);
    tcase_add_checked_fixture(cases[i], sync_world_set_up,
                              sync_world_tear_down);
    suite_add_tcase(suite, cases[i]);
  }
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  server_end(&zk);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
