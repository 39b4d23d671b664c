/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Persistent and recursive watches against a real server: their events, other
 * watches on the same node, those of locks, too, and a restart of the
 * server. */

#include "live/client/world.h"

#include <stdio.h>
#include <string.h>

/* A watch, and the events that it has reported. */
typedef struct event_log {
  lk_call call; /* sets the watch */
  lk_watch *watch;
  bool was_reregistered;
  bool has_ended;
  int err;         /* of the last event */
  char text[1024]; /* the events, as in "created /a, deleted /a" */
} event_log;

static const char *name_of(lk_event_type type)
{
  switch (type) {
  case LK_EVENT_CREATED: return "created";
  case LK_EVENT_DELETED: return "deleted";
  case LK_EVENT_CHANGED: return "changed";
  case LK_EVENT_CHILDREN: return "children";
  case LK_EVENT_REREGISTERED: return "reregistered";
  case LK_EVENT_ENDED: return "ended";
  }
  return "?";
}

static void log_event(lk_client *c, lk_watch *w, const lk_event *event,
                      void *arg)
{
  event_log *log = arg;
  size_t len = strlen(log->text);

  (void)c;
  ck_assert_ptr_eq(w, log->watch);
  ck_assert(!log->has_ended);
  if (event->type == LK_EVENT_REREGISTERED)
    log->was_reregistered = true;
  if (event->type == LK_EVENT_ENDED)
    log->has_ended = true;
  log->err = event->err;
  snprintf(log->text + len, sizeof log->text - len, "%s%s %s",
           len == 0 ? "" : ", ", name_of(event->type),
           (const char *)event->path.at);
}

/* Clear the log. A request with the lk_call `log->call` then sets a watch whose
 * events are noted in the log. */
static void event_log_init(event_log *log)
{
  memset(log, 0, sizeof *log);
  log->call.size = sizeof log->call;
  log->call.on_event = log_event;
  log->call.watch_arg = log;
  log->call.watch = &log->watch;
}

static int add_logged_watch(lk_client *c, event_log *log, const char *path,
                            lk_watch_mode mode)
{
  event_log_init(log);
  return wait_for_completion(
      lk_add_watch(c, path, mode, &log->call, on_done, reset_last_reply()));
}

/* Check the events since the last check, and clear the log. It sends a sync
 * first, since the server sends the events of earlier changes before the reply
 * to a sync. */
static void assert_new_events(event_log *log, const char *text)
{
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_str_eq(log->text, text);
  log->text[0] = '\0';
}

START_TEST(persistent_watch_survives_creation_and_deletion)
{
  event_log log;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(add_logged_watch(here, &log, "/w", LK_WATCH_PERSISTENT), 0);
  /* The second time shows that the watch has survived the deletion. */
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(create(there, absolute("/w"), "", LK_PERSISTENT), 0);
    ck_assert_int_eq(set(there, absolute("/w"), lk_text("1"), -1), 0);
    ck_assert_int_eq(create(there, absolute("/w/x"), "", LK_PERSISTENT), 0);
    ck_assert_int_eq(set(there, absolute("/w/x"), lk_text("1"), -1), 0);
    ck_assert_int_eq(delete_node(there, absolute("/w/x"), -1), 0);
    ck_assert_int_eq(delete_node(there, absolute("/w"), -1), 0);
    assert_new_events(&log, "created /w, changed /w, children /w, children /w, "
                            "deleted /w");
  }
  remove_watch(log.watch);
  ck_assert_int_eq(create(there, absolute("/w"), "", LK_PERSISTENT), 0);
  assert_new_events(&log, "");
  ck_assert_int_eq(delete_node(there, absolute("/w"), -1), 0);
}
END_TEST

START_TEST(recursive_watch_covers_any_depth)
{
  event_log tree, top;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(add_logged_watch(here, &tree, "/t", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(add_logged_watch(here, &top, "/", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(create(there, absolute("/t"), "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(there, absolute("/t/a"), "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(there, absolute("/t/a/b"), "", LK_PERSISTENT), 0);
  ck_assert_int_eq(set(there, absolute("/t/a/b"), lk_text("1"), -1), 0);
  ck_assert_int_eq(delete_node(there, absolute("/t/a/b"), -1), 0);
  ck_assert_int_eq(create(there, absolute("/tt"), "", LK_PERSISTENT), 0);
  ck_assert_int_eq(delete_node(there, absolute("/tt"), -1), 0);
  assert_new_events(&tree,
                    "created /t, created /t/a, created /t/a/b, changed /t/a/b, "
                    "deleted /t/a/b");
  assert_new_events(&top,
                    "created /t, created /t/a, created /t/a/b, changed /t/a/b, "
                    "deleted /t/a/b, created /tt, deleted /tt");
  ck_assert_int_eq(delete_node(here, "/t/a", -1), 0);
  ck_assert_int_eq(delete_node(here, "/t", -1), 0);
  remove_watch(tree.watch);
  remove_watch(top.watch);
}
END_TEST

START_TEST(one_shot_watches_rely_on_a_persistent_watch)
{
  event_log persistent, by_get, by_children;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/m", "", LK_PERSISTENT), 0);
  for (int i = 0; i < 2; i++) {
    event_log_init(&by_get);
    event_log_init(&by_children);
    ck_assert_int_eq(get_and_watch(here, "/m", &by_get.call), 0);
    ck_assert_int_eq(children_and_watch(here, "/m", &by_children.call), 0);
    /* The first two watches are older than the persistent one. */
    if (i == 0)
      ck_assert_int_eq(
          add_logged_watch(here, &persistent, "/m", LK_WATCH_PERSISTENT), 0);
    ck_assert_int_eq(set(there, absolute("/m"), lk_text("1"), -1), 0);
    ck_assert_int_eq(create(there, absolute("/m/x"), "", LK_PERSISTENT), 0);
    ck_assert_int_eq(set(there, absolute("/m"), lk_text("2"), -1), 0);
    ck_assert_int_eq(delete_node(there, absolute("/m/x"), -1), 0);
    assert_new_events(&persistent,
                      "changed /m, children /m, changed /m, children /m");
    assert_new_events(&by_get, "changed /m");
    assert_new_events(&by_children, "children /m");
  }
  /* Cancelling the persistent watch ends the one-shot watches. */
  event_log_init(&by_get);
  event_log_init(&by_children);
  ck_assert_int_eq(get_and_watch(here, "/m", &by_get.call), 0);
  ck_assert_int_eq(children_and_watch(here, "/m", &by_children.call), 0);
  remove_watch(persistent.watch);
  assert_new_events(&by_get, "ended /m");
  assert_new_events(&by_children, "ended /m");
  ck_assert_int_eq(by_get.err, LK_ERR_NO_WATCHER);
  event_log_init(&by_get);
  ck_assert_int_eq(get_and_watch(here, "/m", &by_get.call), 0);
  ck_assert_int_eq(create(there, absolute("/m/y"), "", LK_PERSISTENT), 0);
  ck_assert_int_eq(set(there, absolute("/m"), lk_text("3"), -1), 0);
  assert_new_events(&by_get, "changed /m");
  assert_new_events(&persistent, "");
  ck_assert_int_eq(delete_node(here, "/m/y", -1), 0);
  ck_assert_int_eq(delete_node(here, "/m", -1), 0);
}
END_TEST

START_TEST(recursive_watch_and_child_watch_of_its_root_coexist)
{
  event_log tree, before, after, refused;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/wn", "", LK_PERSISTENT), 0);
  event_log_init(&before);
  ck_assert_int_eq(children_and_watch(here, "/wn", &before.call), 0);
  ck_assert_int_eq(add_logged_watch(here, &tree, "/wn", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(add_logged_watch(here, &refused, "/wn", LK_WATCH_PERSISTENT),
                   LK_ERR_WATCH_MODE);
  ck_assert_ptr_null(refused.watch);
  /* The recursive watch has replaced the child watch. */
  assert_new_events(&before, "ended /wn");
  ck_assert_int_eq(create(there, absolute("/wn/x"), "", LK_PERSISTENT), 0);
  assert_new_events(&tree, "created /wn/x");
  event_log_init(&after);
  ck_assert_int_eq(children_and_watch(here, "/wn", &after.call), 0);
  ck_assert_int_eq(set(there, absolute("/wn/x"), lk_text("1"), -1), 0);
  ck_assert_int_eq(delete_node(there, absolute("/wn/x"), -1), 0);
  ck_assert_int_eq(create(there, absolute("/wn/y"), "", LK_PERSISTENT), 0);
  assert_new_events(&after, "children /wn");
  assert_new_events(&tree, "changed /wn/x, deleted /wn/x, created /wn/y");
  ck_assert_int_eq(delete_node(here, "/wn/y", -1), 0);
  ck_assert_int_eq(delete_node(here, "/wn", -1), 0);
  remove_watch(tree.watch);
}
END_TEST

START_TEST(last_cancel_of_a_path_removes_the_watch_at_the_server)
{
  event_log first, second;
  long count_before;

  connect_here(with_chroot(_i));
  wait_for_state(here, LK_STATE_CONNECTED);
  count_before = watches_on_server();
  ck_assert_int_eq(add_logged_watch(here, &first, "/g", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(add_logged_watch(here, &second, "/g", LK_WATCH_RECURSIVE),
                   0);
  ck_assert_int_gt(watches_on_server(), count_before);
  remove_watch(first.watch);
  ck_assert_int_eq(create(here, "/g", "", LK_EPHEMERAL), 0);
  assert_new_events(&second, "created /g");
  ck_assert_int_gt(watches_on_server(), count_before);
  remove_watch(second.watch);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_int_eq(watches_on_server(), count_before);
  ck_assert_str_eq(first.text, "");
}
END_TEST

START_TEST(persistent_watches_continue_after_a_reconnect)
{
  event_log node, tree, until_disconnect, one_shot;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/wr", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(add_logged_watch(here, &node, "/wr", LK_WATCH_PERSISTENT),
                   0);
  ck_assert_int_eq(add_logged_watch(here, &tree, "/s", LK_WATCH_RECURSIVE), 0);
  event_log_init(&until_disconnect);
  until_disconnect.call.until_disconnect = true;
  ck_assert_int_eq(wait_for_completion(lk_add_watch(
                       here, "/o", LK_WATCH_PERSISTENT, &until_disconnect.call,
                       on_done, reset_last_reply())),
                   0);
  event_log_init(&one_shot);
  ck_assert_int_eq(get_and_watch(here, "/wr", &one_shot.call), 0);
  server_ask(&zk, "restart 1");
  wait_until(&node.was_reregistered);
  wait_until(&tree.was_reregistered);
  ck_assert_str_eq(one_shot.text, "ended /wr");
  ck_assert_int_eq(one_shot.err, LK_ERR_CONNECTION_LOSS);
  ck_assert_str_eq(until_disconnect.text, "ended /o");
  ck_assert_int_eq(until_disconnect.err, LK_ERR_CONNECTION_LOSS);
  ck_assert_int_eq(set(here, "/wr", lk_text("1"), -1), 0);
  ck_assert_int_eq(create(here, "/s", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(here, "/s/x", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(here, "/wr/x", "", LK_PERSISTENT), 0);
  assert_new_events(&node, "reregistered /wr, changed /wr, children /wr");
  assert_new_events(&tree, "reregistered /s, created /s, created /s/x");
  ck_assert_int_eq(delete_node(here, "/s/x", -1), 0);
  ck_assert_int_eq(delete_node(here, "/s", -1), 0);
  ck_assert_int_eq(delete_node(here, "/wr/x", -1), 0);
  ck_assert_int_eq(delete_node(here, "/wr", -1), 0);
  ck_assert_int_eq(close_client(here), 0);
  ck_assert(node.has_ended && tree.has_ended);
  ck_assert_int_eq(node.err, LK_ERR_CLOSED);
}
END_TEST

/* ---- waiters of a program that has persistent watches -------------------- */

/* A lock and the result of its acquire. */
typedef struct acquisition {
  lk_lock *lock;
  bool is_waiting;
  bool is_granted;
} acquisition;

static void on_lock_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  if (event->type == LK_LOCK_EVENT_WAITING)
    ((acquisition *)arg)->is_waiting = true;
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  (void)l;
  ck_assert_int_eq(err, 0);
  ((acquisition *)arg)->is_granted = true;
}

static void make_mutex(acquisition *a, lk_client *c)
{
  const lk_lock_config config = {
      .size = sizeof config, .on_event = on_lock_event, .arg = a};

  memset(a, 0, sizeof *a);
  ck_assert_int_eq(lk_lock_new(&a->lock, c, "/q", &config), 0);
}

static void make_semaphore(acquisition *a, lk_client *c)
{
  const lk_lock_config config = {
      .size = sizeof config, .on_event = on_lock_event, .arg = a};
  const lk_semaphore_config options = {.size = sizeof options, .permits = 1};

  memset(a, 0, sizeof *a);
  ck_assert_int_eq(lk_semaphore_new(&a->lock, c, "/q", &config, &options), 0);
}

static void start_acquire(acquisition *a)
{
  ck_assert_int_eq(lk_lock_acquire(a->lock, LK_NO_LIMIT, on_acquired, a), 0);
}

/* `here` waits for the lock that `there` holds, and has a persistent watch on
 * the node that it watches as a waiter, which it cancels. */
static void check_waiter(void (*make)(acquisition *a, lk_client *c),
                         bool watches_directory)
{
  acquisition holder, waiter;
  event_log log;

  connect_here(WITHOUT_CHROOT);
  make(&holder, there);
  make(&waiter, here);
  start_acquire(&holder);
  wait_until(&holder.is_granted);
  const char *watched =
      watches_directory ? "/q/leases" : lk_lock_node(holder.lock);

  ck_assert_int_eq(add_logged_watch(here, &log, watched, LK_WATCH_PERSISTENT),
                   0);
  start_acquire(&waiter);
  wait_until(&waiter.is_waiting);
  /* The reads of the waiter have been answered before the second reply. */
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  remove_watch(log.watch);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert(!waiter.is_granted);
  ck_assert_int_eq(lk_lock_release(holder.lock, NULL, NULL), 0);
  wait_until(&waiter.is_granted);
  lk_lock_free(holder.lock);
  lk_lock_free(waiter.lock);
}

START_TEST(waiter_is_granted_after_a_persistent_watch_is_cancelled)
{
  check_waiter(make_mutex, false);
}
END_TEST

START_TEST(first_waiter_of_a_semaphore_is_granted_after_such_a_cancel)
{
  check_waiter(make_semaphore, true);
}
END_TEST

TCase *persistent_watch_tests(void)
{
  const TTest *const tests[] = {
      persistent_watch_survives_creation_and_deletion,
      recursive_watch_covers_any_depth,
      one_shot_watches_rely_on_a_persistent_watch,
      recursive_watch_and_child_watch_of_its_root_coexist,
      last_cancel_of_a_path_removes_the_watch_at_the_server,
      persistent_watches_continue_after_a_reconnect,
  };
  TCase *t = tcase_create("persistent");

  add_tests_without_and_with_chroot(t, tests, sizeof tests / sizeof tests[0]);
  tcase_add_test(t, waiter_is_granted_after_a_persistent_watch_is_cancelled);
  tcase_add_test(t, first_waiter_of_a_semaphore_is_granted_after_such_a_cancel);
  return t;
}
