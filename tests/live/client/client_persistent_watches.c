/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Persistent and recursive watches against a real server: their events, other
 * watches on the same node, and a restart of the server. */

#include "live/client/world.h"

#include <stdio.h>
#include <string.h>

/* The events of a watch, as in "created /a, deleted /a". */
typedef struct event_log {
  lk_call call;
  lk_watch *watch;
  unsigned count;
  bool reregistered;
  bool ended;
  int err;
  char text[1024];
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

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  event_log *d = arg;
  size_t len = strlen(d->text);

  (void)c;
  ck_assert_ptr_eq(w, d->watch);
  ck_assert(!d->ended);
  d->count++;
  d->reregistered = d->reregistered || event->type == LK_EVENT_REREGISTERED;
  d->ended = event->type == LK_EVENT_ENDED;
  d->err = event->err;
  snprintf(d->text + len, sizeof d->text - len, "%s%s %s", len == 0 ? "" : ", ",
           name_of(event->type), (const char *)event->path.at);
}

static void event_log_init(event_log *d)
{
  memset(d, 0, sizeof *d);
  d->call.size = sizeof d->call;
  d->call.on_event = on_event;
  d->call.watch_arg = d;
  d->call.watch = &d->watch;
}

static int add_logged_watch(lk_client *c, event_log *d, const char *path,
                            lk_watch_mode mode)
{
  event_log_init(d);
  memset(&last, 0, sizeof last);
  int err = lk_add_watch(c, path, mode, &d->call, on_done, &last);

  if (err != 0)
    return err;
  wait_until(&last.done);
  return last.err;
}

/* Check the events so far. It sends a sync first, since the server sends the
 * events of earlier changes before the reply to a sync. */
static void assert_events(event_log *d, const char *text)
{
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_str_eq(d->text, text);
  d->text[0] = '\0';
}

START_TEST(persistent_watch_survives_creation_and_deletion)
{
  event_log d;

  world_enter(_i);
  ck_assert_int_eq(add_logged_watch(here, &d, "/w", LK_WATCH_PERSISTENT), 0);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(create(there, full("/w"), "", 0), 0);
    ck_assert_int_eq(set(there, full("/w"), lk_text("1"), -1), 0);
    ck_assert_int_eq(create(there, full("/w/x"), "", 0), 0);
    ck_assert_int_eq(set(there, full("/w/x"), lk_text("1"), -1), 0);
    ck_assert_int_eq(erase(there, full("/w/x"), -1), 0);
    ck_assert_int_eq(erase(there, full("/w"), -1), 0);
    assert_events(&d, "created /w, changed /w, children /w, children /w, "
                      "deleted /w");
  }
  lk_watch_cancel(here, d.watch, true);
  ck_assert_int_eq(create(there, full("/w"), "", 0), 0);
  assert_events(&d, "");
  ck_assert_int_eq(erase(there, full("/w"), -1), 0);
}
END_TEST

START_TEST(recursive_watch_covers_any_depth)
{
  event_log d, top;

  world_enter(_i);
  ck_assert_int_eq(add_logged_watch(here, &d, "/t", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(add_logged_watch(here, &top, "/", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(create(there, full("/t"), "", 0), 0);
  ck_assert_int_eq(create(there, full("/t/a"), "", 0), 0);
  ck_assert_int_eq(create(there, full("/t/a/b"), "", 0), 0);
  ck_assert_int_eq(set(there, full("/t/a/b"), lk_text("1"), -1), 0);
  ck_assert_int_eq(erase(there, full("/t/a/b"), -1), 0);
  ck_assert_int_eq(create(there, full("/tt"), "", 0), 0);
  ck_assert_int_eq(erase(there, full("/tt"), -1), 0);
  assert_events(&d, "created /t, created /t/a, created /t/a/b, changed /t/a/b, "
                    "deleted /t/a/b");
  assert_events(&top,
                "created /t, created /t/a, created /t/a/b, changed /t/a/b, "
                "deleted /t/a/b, created /tt, deleted /tt");
  ck_assert_int_eq(erase(here, "/t/a", -1), 0);
  ck_assert_int_eq(erase(here, "/t", -1), 0);
  lk_watch_cancel(here, d.watch, true);
  lk_watch_cancel(here, top.watch, true);
}
END_TEST

START_TEST(one_shot_and_persistent_watches_are_independent)
{
  event_log stays, data, child;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/m", "", 0), 0);
  ck_assert_int_eq(add_logged_watch(here, &stays, "/m", LK_WATCH_PERSISTENT),
                   0);
  for (int i = 0; i < 2; i++) {
    event_log_init(&data);
    event_log_init(&child);
    ck_assert_int_eq(get(here, "/m", &data.call), 0);
    ck_assert_int_eq(children(here, "/m", &child.call), 0);
    ck_assert_int_eq(set(there, full("/m"), lk_text("1"), -1), 0);
    ck_assert_int_eq(create(there, full("/m/x"), "", 0), 0);
    ck_assert_int_eq(set(there, full("/m"), lk_text("2"), -1), 0);
    ck_assert_int_eq(erase(there, full("/m/x"), -1), 0);
    assert_events(&stays, "changed /m, children /m, changed /m, children /m");
    assert_events(&data, "changed /m");
    assert_events(&child, "children /m");
  }
  /* Cancelling the persistent watch does not affect the one-shot watches. */
  event_log_init(&data);
  event_log_init(&child);
  ck_assert_int_eq(get(here, "/m", &data.call), 0);
  ck_assert_int_eq(children(here, "/m", &child.call), 0);
  lk_watch_cancel(here, stays.watch, true);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_int_eq(create(there, full("/m/y"), "", 0), 0);
  ck_assert_int_eq(set(there, full("/m"), lk_text("3"), -1), 0);
  assert_events(&data, "changed /m");
  assert_events(&child, "children /m");
  assert_events(&stays, "");
  ck_assert_int_eq(erase(here, "/m/y", -1), 0);
  ck_assert_int_eq(erase(here, "/m", -1), 0);
}
END_TEST

START_TEST(recursive_watch_and_child_watch_of_its_root_coexist)
{
  event_log tree, before, after, node;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/wn", "", 0), 0);
  event_log_init(&before);
  ck_assert_int_eq(children(here, "/wn", &before.call), 0);
  ck_assert_int_eq(add_logged_watch(here, &tree, "/wn", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(add_logged_watch(here, &node, "/wn", LK_WATCH_PERSISTENT),
                   LK_ERR_WATCH_MODE);
  ck_assert_ptr_null(node.watch);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_int_eq(create(there, full("/wn/x"), "", 0), 0);
  assert_events(&before, "children /wn");
  assert_events(&tree, "created /wn/x");
  event_log_init(&after);
  ck_assert_int_eq(children(here, "/wn", &after.call), 0);
  ck_assert_int_eq(set(there, full("/wn/x"), lk_text("1"), -1), 0);
  ck_assert_int_eq(erase(there, full("/wn/x"), -1), 0);
  ck_assert_int_eq(create(there, full("/wn/y"), "", 0), 0);
  assert_events(&after, "children /wn");
  assert_events(&tree, "changed /wn/x, deleted /wn/x, created /wn/y");
  ck_assert_int_eq(erase(here, "/wn/y", -1), 0);
  ck_assert_int_eq(erase(here, "/wn", -1), 0);
  lk_watch_cancel(here, tree.watch, true);
}
END_TEST

START_TEST(last_cancel_of_a_path_removes_the_watch_at_the_server)
{
  event_log a, b;
  long before;

  world_enter(_i);
  wait_for_state(here, LK_STATE_CONNECTED);
  before = watches_on_server();
  ck_assert_int_eq(add_logged_watch(here, &a, "/g", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(add_logged_watch(here, &b, "/g", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_gt(watches_on_server(), before);
  lk_watch_cancel(here, a.watch, true);
  ck_assert_int_eq(create(here, "/g", "", LK_EPHEMERAL), 0);
  assert_events(&b, "created /g");
  ck_assert_int_gt(watches_on_server(), before);
  lk_watch_cancel(here, b.watch, true);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_int_eq(watches_on_server(), before);
  ck_assert_str_eq(a.text, "");
}
END_TEST

START_TEST(persistent_watches_continue_after_a_reconnect)
{
  event_log node, tree, once, shot;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/wr", "", 0), 0);
  ck_assert_int_eq(add_logged_watch(here, &node, "/wr", LK_WATCH_PERSISTENT),
                   0);
  ck_assert_int_eq(add_logged_watch(here, &tree, "/s", LK_WATCH_RECURSIVE), 0);
  event_log_init(&once);
  once.call.until_disconnect = true;
  memset(&last, 0, sizeof last);
  ck_assert_int_eq(
      lk_add_watch(here, "/o", LK_WATCH_PERSISTENT, &once.call, on_done, &last),
      0);
  wait_until(&last.done);
  event_log_init(&shot);
  ck_assert_int_eq(get(here, "/wr", &shot.call), 0);
  server_ask(&zk, "restart 1");
  wait_until(&node.reregistered);
  wait_until(&tree.reregistered);
  ck_assert_str_eq(once.text, "ended /o");
  ck_assert_int_eq(once.err, LK_ERR_CONNECTION_LOSS);
  ck_assert_int_eq(set(here, "/wr", lk_text("1"), -1), 0);
  ck_assert_int_eq(create(here, "/s", "", 0), 0);
  ck_assert_int_eq(create(here, "/s/x", "", 0), 0);
  ck_assert_int_eq(create(here, "/wr/x", "", 0), 0);
  assert_events(&node, "reregistered /wr, changed /wr, children /wr");
  assert_events(&tree, "reregistered /s, created /s, created /s/x");
  assert_events(&shot, "changed /wr");
  ck_assert_int_eq(erase(here, "/s/x", -1), 0);
  ck_assert_int_eq(erase(here, "/s", -1), 0);
  ck_assert_int_eq(erase(here, "/wr/x", -1), 0);
  ck_assert_int_eq(erase(here, "/wr", -1), 0);
  ck_assert_int_eq(close_client(here), 0);
  ck_assert(node.ended && tree.ended);
  ck_assert_int_eq(node.err, LK_ERR_CLOSED);
}
END_TEST

TCase *persistent_watch_tests(void)
{
  const TTest *const tests[] = {
      persistent_watch_survives_creation_and_deletion,
      recursive_watch_covers_any_depth,
      one_shot_and_persistent_watches_are_independent,
      recursive_watch_and_child_watch_of_its_root_coexist,
      last_cancel_of_a_path_removes_the_watch_at_the_server,
      persistent_watches_continue_after_a_reconnect,
  };
  TCase *t = tcase_create("persistent");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(t, tests[i], 0, 2);
  return t;
}
