/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Watches of all kinds, on a node and on its parent, when the connection breaks
 * and nodes change before the client is connected again.
 */

#include "live/client/operations.h"

#include <stdio.h>
#include <string.h>

enum { REMOVE_WATCHES = 18 }; /* the opcode */

/* ---- a watch for each request that sets one ----------------------------- */

static int event_count;
static lk_event_type last_type;
static char last_path[256];

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  event_count++;
  last_type = event->type;
  snprintf(last_path, sizeof last_path, "%s", (const char *)event->path.at);
}

static void make_change(const char *node, lk_event_type type)
{
  if (type == LK_EVENT_CHANGED)
    ck_assert_int_eq(set(there, path_there(node, ""), lk_text("new"), -1), 0);
  else
    ck_assert_int_eq(create(there, path_there(node, "/born"), "", 0), 0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

/* After a failed request the callback is not invoked, even if the server has
 * registered the watch. */
START_TEST(watch_exists_only_after_its_request_succeeded)
{
  const operation *o = operation_of(_i);
  lk_call call = {.size = sizeof call, .on_event = on_event};

  if (o->watch_event == 0)
    return;
  fixture_set_up(with_chroot(_i));
  event_count = 0;
  make_test_node("/a");
  make_test_node("/b");
  wire_break_at_request(wire_of_here, o->op, true);
  ck_assert_int_eq(send_and_wait(o, path_here("/a", ""), &call),
                   LK_ERR_CONNECTION_LOSS);
  wait_for_state(here, LK_STATE_CONNECTED);
  make_change("/a", (lk_event_type)o->watch_event);
  ck_assert_int_eq(event_count, 0);
  call.repeat = true;
  wire_break_at_request(wire_of_here, o->op, true);
  ck_assert_int_eq(send_and_wait(o, path_here("/b", ""), &call), 0);
  make_change("/b", (lk_event_type)o->watch_event);
  ck_assert_int_eq(event_count, 1);
  ck_assert_int_eq((int)last_type, o->watch_event);
  ck_assert_str_eq(last_path, path_here("/b", ""));
  fixture_tear_down();
}
END_TEST

/* The client does not register a cancelled watch again, even if the server has
 * not received removeWatches. */
START_TEST(cancelled_watch_is_not_reregistered_after_a_break)
{
  const bool replied = _i >= 2;
  lk_watch *w;
  lk_call call = {.size = sizeof call, .on_event = on_event, .watch = &w};

  fixture_set_up(_i % 2 == 1);
  event_count = 0;
  make_test_node("/a");
  ck_assert_int_eq(get(here, path_here("/a", ""), &call), 0);
  wire_break_at_request(wire_of_here, REMOVE_WATCHES, replied);
  lk_watch_cancel(here, w, true);
  wait_for_state(here, LK_STATE_SUSPENDED);
  ck_assert(wire_has_broken(wire_of_here));
  wait_for_state(here, LK_STATE_CONNECTED);
  make_change("/a", LK_EVENT_CHANGED);
  ck_assert_int_eq(event_count, 0);
  fixture_tear_down();
}
END_TEST

/* ---- all kinds of watches on the same node ------------------------------ */

/* The persistent watch that covers a node: none, one on the node, a recursive
 * one on the node, or a recursive one on its parent. */
enum cover { NONE, NODE, TREE, ABOVE, NCOVERS };

/* The change of a node while the client is not connected. */
enum change {
  NOTHING,
  WRITTEN,
  CHILD_CREATED,
  DELETED,
  RECREATED,
  CREATED,
  NCHANGES
};

/* The request that sets a one-shot watch. */
enum shot { GET, EXISTS, CHILDREN, NSHOTS };

typedef struct event_log {
  lk_watch *watch;
  char text[512];
} event_log;

/* The node "/COVER/CHANGE" is covered as `cover` says, and changes as `change`
 * says; these are the events of its watches. The one watch on the parent logs
 * to persistent[ABOVE][0]. */
static event_log shots[NCOVERS][NCHANGES][NSHOTS];
static event_log persistent[NCOVERS][NCHANGES];

static void log_event(lk_client *c, lk_watch *w, const lk_event *event,
                      void *arg)
{
  static const char *const names[] = {[LK_EVENT_ENDED] = "ended",
                                      [LK_EVENT_CREATED] = "created",
                                      [LK_EVENT_DELETED] = "deleted",
                                      [LK_EVENT_CHANGED] = "changed",
                                      [LK_EVENT_CHILDREN] = "children",
                                      [LK_EVENT_REREGISTERED] = "reregistered"};
  const char *start = path_here("", "");
  event_log *d = arg;
  size_t len = strlen(d->text);

  (void)c;
  ck_assert_ptr_eq(w, d->watch);
  snprintf(d->text + len, sizeof d->text - len, "%s%s %s", len == 0 ? "" : ", ",
           names[event->type], (const char *)event->path.at + strlen(start));
}

static lk_call call_with_log(event_log *d)
{
  return (lk_call){.size = sizeof(lk_call),
                   .on_event = log_event,
                   .watch_arg = d,
                   .watch = &d->watch};
}

static const char *node_of(int cover, int change)
{
  static char text[4][32];
  static unsigned turn;
  char *out = text[turn++ % 4];

  snprintf(out, sizeof text[0], "/%d/%d", cover, change);
  return out;
}

static int add_logged_watch(const char *path, lk_watch_mode mode, event_log *d)
{
  lk_call call = call_with_log(d);

  memset(&last_result, 0, sizeof last_result);
  return wait_for_result(lk_add_watch(here, path, mode, &call, on_ended, NULL));
}

static void set_persistent(int cover, int change)
{
  const char *node = path_here(node_of(cover, change), "");

  if (cover == NODE)
    ck_assert_int_eq(
        add_logged_watch(node, LK_WATCH_PERSISTENT, &persistent[cover][change]),
        0);
  else if (cover == TREE)
    ck_assert_int_eq(
        add_logged_watch(node, LK_WATCH_RECURSIVE, &persistent[cover][change]),
        0);
}

static void set_one_shots(int cover, int change)
{
  event_log *d = shots[cover][change];
  const char *node = path_here(node_of(cover, change), "");
  lk_call calls[] = {call_with_log(&d[GET]), call_with_log(&d[EXISTS]),
                     call_with_log(&d[CHILDREN])};
  const int missing = change == CREATED ? LK_ERR_NO_NODE : 0;

  ck_assert_int_eq(exists(here, node, &calls[EXISTS]), missing);
  if (missing != 0)
    return;
  ck_assert_int_eq(get(here, node, &calls[GET]), 0);
  ck_assert_int_eq(children(here, node, &calls[CHILDREN]), 0);
}

/* Create the nodes, except those of CREATED, and set all watches. The order of
 * persistent and one-shot watches on a node must not matter. */
static void create_nodes_and_watches(bool persistent_first)
{
  char directory[16];

  for (int cover = 0; cover < NCOVERS; cover++) {
    snprintf(directory, sizeof directory, "/%d", cover);
    ck_assert_int_eq(create(there, path_there(directory, ""), "", 0), 0);
    for (int change = 0; change < CREATED; change++)
      ck_assert_int_eq(
          create(there, path_there(node_of(cover, change), ""), "", 0), 0);
    ck_assert_int_eq(sync_with(here, "/"), 0);
    if (cover == ABOVE)
      ck_assert_int_eq(add_logged_watch(path_here(directory, ""),
                                        LK_WATCH_RECURSIVE,
                                        &persistent[cover][0]),
                       0);
    for (int change = 0; change < NCHANGES; change++) {
      if (persistent_first)
        set_persistent(cover, change);
      set_one_shots(cover, change);
      if (!persistent_first)
        set_persistent(cover, change);
    }
  }
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

static void apply_change(int cover, int change)
{
  const char *node = path_there(node_of(cover, change), "");

  if (change == WRITTEN)
    ck_assert_int_eq(set(there, node, lk_text("1"), -1), 0);
  if (change == CHILD_CREATED)
    ck_assert_int_eq(
        create(there, path_there(node_of(cover, change), "/x"), "", 0), 0);
  if (change == DELETED || change == RECREATED)
    ck_assert_int_eq(erase(there, node, -1), 0);
  if (change == RECREATED || change == CREATED)
    ck_assert_int_eq(create(there, node, "", 0), 0);
}

/* The event that a one-shot watch reports for a missed change; NULL: none. When
 * the client registers the watch again, the server compares the node with the
 * zxid that the client has seen last. */
static const char *missed_event(int change, int shot)
{
  static const char *const of[NCHANGES][NSHOTS] = {
      [WRITTEN] = {"changed", "changed", NULL},
      [CHILD_CREATED] = {NULL, NULL, "children"},
      [DELETED] = {"deleted", "deleted", "deleted"},
      [RECREATED] = {"changed", "changed", "children"},
      [CREATED] = {NULL, "created", NULL},
  };

  return of[change][shot];
}

/* The event that a one-shot watch reports for touch_all(), after the reconnect;
 * NULL: none, since the watch has fired already or was never set. */
static const char *later_event(int change, int shot)
{
  if (missed_event(change, shot) != NULL ||
      (change == CREATED && shot != EXISTS))
    return NULL;
  return shot == CHILDREN ? "children" : "changed";
}

static void assert_text(const char *text, const char *expected, int cover,
                        int change, int shot)
{
  ck_assert_msg(strcmp(text, expected) == 0,
                "cover %d, change %d, watch %d: \"%s\", not \"%s\"", cover,
                change, shot, text, expected);
}

/* Check that each one-shot watch has reported the event of `what` only. */
static void assert_shots(const char *(*what)(int change, int shot))
{
  char expected[128];

  for (int n = 0; n < NCOVERS * NCHANGES * NSHOTS; n++) {
    int shot = n % NSHOTS, change = n / NSHOTS % NCHANGES;
    int cover = n / NSHOTS / NCHANGES;

    expected[0] = '\0';
    if (what(change, shot) != NULL)
      snprintf(expected, sizeof expected, "%s %s", what(change, shot),
               node_of(cover, change));
    assert_text(shots[cover][change][shot].text, expected, cover, change, shot);
  }
}

/* Whether `text` is the event of a one-shot watch for a missed change of a node
 * with this cover. */
static bool was_missed(const char *text, int cover)
{
  char line[128];

  for (int n = 0; n < NCHANGES * NSHOTS; n++) {
    const char *what = missed_event(n / NSHOTS, n % NSHOTS);

    snprintf(line, sizeof line, "%s %s", what == NULL ? "" : what,
             node_of(cover, n / NSHOTS));
    if (strcmp(line, text) == 0)
      return true;
  }
  return false;
}

/* Check the events of a persistent watch: first that it was registered again,
 * then possibly missed changes that one-shot watches report, too. */
static void assert_reregistered(const event_log *d, const char *path, int cover)
{
  char text[sizeof d->text], *rest, expected[64];

  snprintf(text, sizeof text, "%s", d->text);
  snprintf(expected, sizeof expected, "reregistered %s", path);
  ck_assert_str_eq(strtok_r(text, ",", &rest), expected);
  for (char *at = strtok_r(NULL, ",", &rest); at != NULL;
       at = strtok_r(NULL, ",", &rest))
    ck_assert_msg(was_missed(at + 1, cover), "%s: %s", path, d->text);
}

static void assert_all_reregistered(void)
{
  for (int change = 0; change < NCHANGES; change++) {
    assert_reregistered(&persistent[NODE][change], node_of(NODE, change), NODE);
    assert_reregistered(&persistent[TREE][change], node_of(TREE, change), TREE);
  }
  assert_reregistered(&persistent[ABOVE][0], "/3", ABOVE);
}

/* Write the events that a persistent watch reports for touch_all(). */
static void put_events_of_touch(char *out, size_t size, int cover, int change)
{
  const char *node = node_of(cover, change);

  if (change == DELETED)
    snprintf(out, size, "created %s", node);
  else if (cover == NODE)
    snprintf(out, size, "changed %s, children %s", node, node);
  else
    snprintf(out, size, "changed %s, created %s/late", node, node);
}

static void assert_all_events_of_touch(void)
{
  char expected[1024], all[1024] = "";

  for (int change = 0; change < NCHANGES; change++) {
    size_t len = strlen(all);

    for (int cover = NODE; cover <= TREE; cover++) {
      put_events_of_touch(expected, sizeof expected, cover, change);
      assert_text(persistent[cover][change].text, expected, cover, change,
                  NSHOTS);
    }
    len += (size_t)snprintf(all + len, sizeof all - len, "%s",
                            change == 0 ? "" : ", ");
    put_events_of_touch(all + len, sizeof all - len, ABOVE, change);
  }
  assert_text(persistent[ABOVE][0].text, all, ABOVE, 0, NSHOTS);
}

static void clear_logs(void)
{
  for (int cover = 0; cover < NCOVERS; cover++) {
    for (int change = 0; change < NCHANGES; change++) {
      persistent[cover][change].text[0] = '\0';
      for (int shot = 0; shot < NSHOTS; shot++)
        shots[cover][change][shot].text[0] = '\0';
    }
  }
}

/* Change every node, so that all watches fire that have not fired yet. */
static void touch_all(void)
{
  for (int cover = 0; cover < NCOVERS; cover++) {
    for (int change = 0; change < NCHANGES; change++) {
      const char *node = node_of(cover, change);

      if (change == DELETED) {
        ck_assert_int_eq(create(there, path_there(node, ""), "", 0), 0);
        continue;
      }
      ck_assert_int_eq(set(there, path_there(node, ""), lk_text("2"), -1), 0);
      ck_assert_int_eq(create(there, path_there(node, "/late"), "", 0), 0);
    }
  }
}

START_TEST(missed_changes_are_reported_after_a_reconnect)
{
  completion waiting = {0};

  fixture_set_up(_i % 2 == 1);
  clear_logs();
  create_nodes_and_watches(_i >= 2);
  wire_break(wire_of_here);
  wait_for_state(here, LK_STATE_SUSPENDED);
  for (int cover = 0; cover < NCOVERS; cover++) {
    for (int change = 0; change < NCHANGES; change++)
      apply_change(cover, change);
  }
  ck_assert_int_eq(lk_get(here, path_here("", "/0"), NULL, on_get, &waiting),
                   0);
  wire_mend(wire_of_here);
  wait_until(&waiting.done);
  /* Events of missed changes precede the replies that show these changes. */
  assert_shots(missed_event);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  assert_shots(missed_event);
  assert_all_reregistered();
  clear_logs();
  touch_all();
  ck_assert_int_eq(sync_with(here, "/"), 0);
  assert_shots(later_event);
  assert_all_events_of_touch();
  fixture_tear_down();
}
END_TEST

TCase *operation_watch_tests(bool ensemble)
{
  TCase *t = tcase_create("watches");

  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, watch_exists_only_after_its_request_succeeded, 0,
                      2 * (int)operations_in(ensemble));
  tcase_add_loop_test(t, cancelled_watch_is_not_reregistered_after_a_break, 0,
                      4);
  tcase_add_loop_test(t, missed_changes_are_reported_after_a_reconnect, 0, 4);
  return t;
}
