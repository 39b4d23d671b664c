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

/* The number of events, and the last event. */
static int event_count;
static lk_event_type event_type;
static char event_path[256];

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  event_count++;
  event_type = event->type;
  snprintf(event_path, sizeof event_path, "%s", (const char *)event->path.at);
}

/* Make the change for which operation.watch_event is `type`. */
static void make_change(const char *node, lk_event_type type)
{
  if (type == LK_EVENT_CHANGED)
    ck_assert_int_eq(set(there, path_there(node, ""), lk_text("new"), -1), 0);
  else
    ck_assert_int_eq(
        create(there, path_there(node, "/born"), "", LK_PERSISTENT), 0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

/* The server has registered the watch when the reply is lost. If the request
 * fails, the callback is not invoked nevertheless. */
START_TEST(watch_exists_only_after_its_request_succeeded)
{
  const operation *o = operation_of(_i);
  lk_call call = {.size = sizeof call, .on_event = on_event};

  if (o->watch_event == NO_WATCH)
    return;
  fixture_set_up(with_chroot(_i));
  event_count = 0;
  make_test_node("/a");
  make_test_node("/b");
  wire_break_at_request(wire_of_here, o->op, LOSE_REPLY);
  ck_assert_int_eq(send_and_wait(o, path_here("/a", ""), &call),
                   LK_ERR_CONNECTION_LOSS);
  wait_for_state(here, LK_STATE_CONNECTED);
  make_change("/a", (lk_event_type)o->watch_event);
  ck_assert_int_eq(event_count, 0);
  call.repeat = true;
  wire_break_at_request(wire_of_here, o->op, LOSE_REPLY);
  ck_assert_int_eq(send_and_wait(o, path_here("/b", ""), &call), 0);
  make_change("/b", (lk_event_type)o->watch_event);
  ck_assert_int_eq(event_count, 1);
  ck_assert_int_eq((int)event_type, o->watch_event);
  ck_assert_str_eq(event_path, path_here("/b", ""));
  fixture_tear_down();
}
END_TEST

/* A test with two cases has two turns for each, without a chroot and with one.
 */
enum { TURNS_OF_TWO_CASES = 4 };

static bool is_second_case(int i)
{
  return i >= 2;
}

/* The client does not register a cancelled watch again, even if the server has
 * not received removeWatches. */
START_TEST(cancelled_watch_is_not_reregistered_after_a_break)
{
  const lost_message lost = is_second_case(_i) ? LOSE_REPLY : LOSE_REQUEST;
  lk_watch *w;
  lk_call call = {.size = sizeof call, .on_event = on_event, .watch = &w};

  fixture_set_up(with_chroot(_i));
  event_count = 0;
  make_test_node("/a");
  ck_assert_int_eq(get_and_watch(here, path_here("/a", ""), &call), 0);
  wire_break_at_request(wire_of_here, REMOVE_WATCHES, lost);
  remove_watch(w);
  wait_for_state(here, LK_STATE_SUSPENDED);
  ck_assert(wire_has_broken(wire_of_here));
  wait_for_state(here, LK_STATE_CONNECTED);
  make_change("/a", LK_EVENT_CHANGED);
  ck_assert_int_eq(event_count, 0);
  fixture_tear_down();
}
END_TEST

/* ---- all kinds of watches on the same node ------------------------------ */

/* The persistent watch that covers a node. */
enum cover {
  NO_PERSISTENT,
  PERSISTENT,       /* on the node, not recursive */
  RECURSIVE,        /* on the node */
  PARENT_RECURSIVE, /* on the parent of the node */
  NCOVERS
};

/* The change of a node while the client is not connected. */
enum change {
  UNCHANGED,
  WRITTEN,
  CHILD_CREATED,
  DELETED,
  RECREATED, /* deleted, and created again */
  CREATED,   /* the node does not exist before */
  NCHANGES
};

/* The request that sets a one-shot watch. */
enum one_shot { GET, EXISTS, CHILDREN, NSHOTS };

typedef struct event_log {
  lk_watch *watch;
  char text[512];
} event_log;

/* There is one node, "/COVER/CHANGE", for each cover and each change. These are
 * the events of its watches. */
static event_log one_shots[NCOVERS][NCHANGES][NSHOTS];
static event_log persistent[NCOVERS][NCHANGES];
/* The events of the watch on the parent, which covers several nodes. */
static event_log *const parent_log = &persistent[PARENT_RECURSIVE][0];

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
  event_log *log = arg;
  size_t len = strlen(log->text);

  (void)c;
  ck_assert_ptr_eq(w, log->watch);
  snprintf(log->text + len, sizeof log->text - len, "%s%s %s",
           len == 0 ? "" : ", ", names[event->type],
           (const char *)event->path.at + strlen(start));
}

static lk_call call_with_log(event_log *log)
{
  return (lk_call){.size = sizeof(lk_call),
                   .on_event = log_event,
                   .watch_arg = log,
                   .watch = &log->watch};
}

static const char *parent_of(int cover)
{
  static char text[16];

  snprintf(text, sizeof text, "/%d", cover);
  return text;
}

static const char *node_of(int cover, int change)
{
  static char text[4][32];
  static unsigned ncalls;
  char *out = text[ncalls++ % 4];

  snprintf(out, sizeof text[0], "/%d/%d", cover, change);
  return out;
}

static int add_logged_watch(const char *path, lk_watch_mode mode,
                            event_log *log)
{
  lk_call call = call_with_log(log);

  reset_last_reply();
  return wait_for_completion(
      lk_add_watch(here, path, mode, &call, on_ended, NULL));
}

static void set_persistent_watch(int cover, int change)
{
  const char *node = path_here(node_of(cover, change), "");

  if (cover == PERSISTENT)
    ck_assert_int_eq(
        add_logged_watch(node, LK_WATCH_PERSISTENT, &persistent[cover][change]),
        0);
  else if (cover == RECURSIVE)
    ck_assert_int_eq(
        add_logged_watch(node, LK_WATCH_RECURSIVE, &persistent[cover][change]),
        0);
}

static void set_one_shot_watches(int cover, int change)
{
  event_log *logs = one_shots[cover][change];
  const char *node = path_here(node_of(cover, change), "");
  lk_call calls[] = {call_with_log(&logs[GET]), call_with_log(&logs[EXISTS]),
                     call_with_log(&logs[CHILDREN])};
  const bool is_missing = change == CREATED;

  ck_assert_int_eq(exists_and_watch(here, node, &calls[EXISTS]),
                   is_missing ? LK_ERR_NO_NODE : 0);
  if (is_missing)
    return;
  ck_assert_int_eq(get_and_watch(here, node, &calls[GET]), 0);
  ck_assert_int_eq(children_and_watch(here, node, &calls[CHILDREN]), 0);
}

enum { PERSISTENT_LAST = false, PERSISTENT_FIRST = true };

/* Create the nodes, except those of CREATED, and set all watches. The order of
 * persistent and one-shot watches on a node matters only for a child watch,
 * which a recursive watch ends. */
static void create_nodes_and_watches(bool persistent_first)
{
  for (int cover = 0; cover < NCOVERS; cover++) {
    ck_assert_int_eq(
        create(there, path_there(parent_of(cover), ""), "", LK_PERSISTENT), 0);
    for (int change = 0; change < NCHANGES; change++) {
      if (change != CREATED)
        ck_assert_int_eq(create(there, path_there(node_of(cover, change), ""),
                                "", LK_PERSISTENT),
                         0);
    }
    ck_assert_int_eq(sync_with(here, "/"), 0);
    if (cover == PARENT_RECURSIVE)
      ck_assert_int_eq(add_logged_watch(path_here(parent_of(cover), ""),
                                        LK_WATCH_RECURSIVE, parent_log),
                       0);
    for (int change = 0; change < NCHANGES; change++) {
      if (persistent_first)
        set_persistent_watch(cover, change);
      set_one_shot_watches(cover, change);
      if (!persistent_first)
        set_persistent_watch(cover, change);
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
    ck_assert_int_eq(create(there, path_there(node_of(cover, change), "/x"), "",
                            LK_PERSISTENT),
                     0);
  if (change == DELETED || change == RECREATED)
    ck_assert_int_eq(delete_node(there, node, -1), 0);
  if (change == RECREATED || change == CREATED)
    ck_assert_int_eq(create(there, node, "", LK_PERSISTENT), 0);
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

/* The change CREATED has one watch, since the node is missing at first. */
static bool is_set(int change, int shot)
{
  return change != CREATED || shot == EXISTS;
}

/* Whether a persistent watch is on the node itself. One-shot watches on the
 * node rely on it and end with the connection, a child watch also when a
 * recursive watch is added. */
static bool relies_on_persistent(int cover)
{
  return cover == PERSISTENT || cover == RECURSIVE;
}

/* The event that a one-shot watch reports up to the reconnect; NULL: none. */
static const char *first_event(int cover, int change, int shot)
{
  if (!relies_on_persistent(cover))
    return missed_event(change, shot);
  return is_set(change, shot) ? "ended" : NULL;
}

/* The event that a one-shot watch reports for touch_all(), after the reconnect;
 * NULL: none, since the watch has ended already or was never set. */
static const char *later_event(int cover, int change, int shot)
{
  if (first_event(cover, change, shot) != NULL || !is_set(change, shot))
    return NULL;
  return shot == CHILDREN ? "children" : "changed";
}

/* In place of a one-shot watch: the persistent watch. */
enum { NO_ONE_SHOT = NSHOTS };

/* `cover`, `change` and `shot` tell in the message which watch has reported
 * `text`. */
static void assert_text(const char *text, const char *expected, int cover,
                        int change, int shot)
{
  ck_assert_msg(strcmp(text, expected) == 0,
                "cover %d, change %d, watch %d: \"%s\", not \"%s\"", cover,
                change, shot, text, expected);
}

/* Check that each one-shot watch has reported one event, `expected_event`, or
 * none if that is NULL. */
static void
assert_one_shots(const char *(*expected_event)(int cover, int change, int shot))
{
  char expected[128];

  for (int cover = 0; cover < NCOVERS; cover++) {
    for (int change = 0; change < NCHANGES; change++) {
      for (int shot = 0; shot < NSHOTS; shot++) {
        expected[0] = '\0';
        if (expected_event(cover, change, shot) != NULL)
          snprintf(expected, sizeof expected, "%s %s",
                   expected_event(cover, change, shot), node_of(cover, change));
        assert_text(one_shots[cover][change][shot].text, expected, cover,
                    change, shot);
      }
    }
  }
}

/* Whether `text` is the event of a one-shot watch for a missed change of a node
 * below the recursive watch on its parent. */
static bool is_missed_event(const char *text)
{
  char missed[128];

  for (int change = 0; change < NCHANGES; change++) {
    for (int shot = 0; shot < NSHOTS; shot++) {
      const char *event = missed_event(change, shot);

      if (event == NULL)
        continue;
      snprintf(missed, sizeof missed, "%s %s", event,
               node_of(PARENT_RECURSIVE, change));
      if (strcmp(missed, text) == 0)
        return true;
    }
  }
  return false;
}

/* Check that the first event of the watch on the parent says that it was
 * registered again. Missed changes that one-shot watches report may follow. */
static void assert_parent_reregistered(void)
{
  char text[sizeof parent_log->text], *rest, expected[64];

  snprintf(text, sizeof text, "%s", parent_log->text);
  snprintf(expected, sizeof expected, "reregistered %s",
           parent_of(PARENT_RECURSIVE));
  ck_assert_str_eq(strtok_r(text, ",", &rest), expected);
  for (char *at = strtok_r(NULL, ",", &rest); at != NULL;
       at = strtok_r(NULL, ",", &rest))
    ck_assert_msg(is_missed_event(at + 1), "%s", parent_log->text);
}

static void assert_all_reregistered(void)
{
  char expected[64];

  for (int cover = PERSISTENT; cover <= RECURSIVE; cover++) {
    for (int change = 0; change < NCHANGES; change++) {
      snprintf(expected, sizeof expected, "reregistered %s",
               node_of(cover, change));
      assert_text(persistent[cover][change].text, expected, cover, change,
                  NO_ONE_SHOT);
    }
  }
  assert_parent_reregistered();
}

/* Write the events that a persistent watch reports for touch_all(). */
static void print_events_of_touch(char *out, size_t size, int cover, int change)
{
  const char *node = node_of(cover, change);

  if (change == DELETED)
    snprintf(out, size, "created %s", node);
  else if (cover == PERSISTENT)
    snprintf(out, size, "changed %s, children %s", node, node);
  else
    snprintf(out, size, "changed %s, created %s/late", node, node);
}

static void assert_all_events_of_touch(void)
{
  char expected[1024], all[1024] = "";

  for (int change = 0; change < NCHANGES; change++) {
    size_t len = strlen(all);

    for (int cover = PERSISTENT; cover <= RECURSIVE; cover++) {
      print_events_of_touch(expected, sizeof expected, cover, change);
      assert_text(persistent[cover][change].text, expected, cover, change,
                  NO_ONE_SHOT);
    }
    if (len > 0)
      len += (size_t)snprintf(all + len, sizeof all - len, ", ");
    print_events_of_touch(all + len, sizeof all - len, PARENT_RECURSIVE,
                          change);
  }
  assert_text(parent_log->text, all, PARENT_RECURSIVE, UNCHANGED, NO_ONE_SHOT);
}

static void clear_logs(void)
{
  for (int cover = 0; cover < NCOVERS; cover++) {
    for (int change = 0; change < NCHANGES; change++) {
      persistent[cover][change].text[0] = '\0';
      for (int shot = 0; shot < NSHOTS; shot++)
        one_shots[cover][change][shot].text[0] = '\0';
    }
  }
}

/* Create each node that is missing, and change all others, so that every watch
 * fires that has not fired yet. */
static void touch_all(void)
{
  for (int cover = 0; cover < NCOVERS; cover++) {
    for (int change = 0; change < NCHANGES; change++) {
      const char *node = node_of(cover, change);

      if (change == DELETED) {
        ck_assert_int_eq(create(there, path_there(node, ""), "", LK_PERSISTENT),
                         0);
        continue;
      }
      ck_assert_int_eq(set(there, path_there(node, ""), lk_text("2"), -1), 0);
      ck_assert_int_eq(
          create(there, path_there(node, "/late"), "", LK_PERSISTENT), 0);
    }
  }
}

START_TEST(missed_changes_are_reported_after_a_reconnect)
{
  completion queued_get = {0};

  fixture_set_up(with_chroot(_i));
  clear_logs();
  create_nodes_and_watches(is_second_case(_i) ? PERSISTENT_FIRST
                                              : PERSISTENT_LAST);
  wire_break(wire_of_here);
  wait_for_state(here, LK_STATE_SUSPENDED);
  for (int cover = 0; cover < NCOVERS; cover++) {
    for (int change = 0; change < NCHANGES; change++)
      apply_change(cover, change);
  }
  /* A read that is queued before the client is connected again. */
  ck_assert_int_eq(lk_get(here, path_here("", "/0"), NULL, on_get, &queued_get),
                   0);
  wire_mend(wire_of_here);
  wait_until(&queued_get.done);
  /* Events of missed changes precede the replies that show these changes. */
  assert_one_shots(first_event);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  assert_one_shots(first_event);
  assert_all_reregistered();
  clear_logs();
  touch_all();
  ck_assert_int_eq(sync_with(here, "/"), 0);
  assert_one_shots(later_event);
  assert_all_events_of_touch();
  fixture_tear_down();
}
END_TEST

TCase *operation_watch_tests(bool ensemble)
{
  TCase *t = tcase_create("watches");

  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, watch_exists_only_after_its_request_succeeded, 0,
                      turns_of_operations(ensemble));
  tcase_add_loop_test(t, cancelled_watch_is_not_reregistered_after_a_break, 0,
                      TURNS_OF_TWO_CASES);
  if (server_has(SERVER_PERSISTENT_WATCHES))
    tcase_add_loop_test(t, missed_changes_are_reported_after_a_reconnect, 0,
                        TURNS_OF_TWO_CASES);
  return t;
}
