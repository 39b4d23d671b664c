/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* One-shot watches against a real server. */

#include "live/client/world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A watch, and the event that it has reported. */
typedef struct watch_record {
  lk_call call; /* sets the watch */
  lk_watch *watch;
  bool has_fired;
  lk_event_type type;
  int err;
  char path[256];
} watch_record;

static void note_event(lk_client *c, lk_watch *w, const lk_event *event,
                       void *arg)
{
  watch_record *record = arg;

  (void)c;
  ck_assert_ptr_eq(w, record->watch);
  ck_assert_msg(!record->has_fired, "a watch fired twice");
  record->type = event->type;
  record->err = event->err;
  snprintf(record->path, sizeof record->path, "%.*s", (int)event->path.len,
           (const char *)event->path.at);
  record->has_fired = true;
}

/* Clear the record. A request with the lk_call `record->call` then sets a watch
 * whose events are noted in the record. */
static void watch_record_init(watch_record *record)
{
  memset(record, 0, sizeof *record);
  record->call.size = sizeof record->call;
  record->call.on_event = note_event;
  record->call.watch_arg = record;
  record->call.watch = &record->watch;
}

static void assert_event(watch_record *record, lk_event_type type,
                         const char *path)
{
  wait_until(&record->has_fired);
  ck_assert_int_eq(record->type, type);
  ck_assert_int_eq(record->err, 0);
  ck_assert_str_eq(record->path, path);
}

/* Wait until the server has `count` watches: it registers and removes them
 * asynchronously. */
static void wait_for_watch_count(long count)
{
  for (int i = 0; watches_on_server() != count; i++) {
    ck_assert_msg(i < 500, "%ld watches instead of %ld", watches_on_server(),
                  count);
    ck_assert_int_eq(sync_with(here, "/"), 0);
    usleep(20 * 1000);
  }
}

START_TEST(exists_watch_reports_creation)
{
  watch_record record;

  connect_here(with_chroot(_i));
  watch_record_init(&record);
  ck_assert_int_eq(exists_and_watch(here, "/to-be", &record.call),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(create(there, absolute("/to-be"), "", LK_PERSISTENT), 0);
  assert_event(&record, LK_EVENT_CREATED, "/to-be");
  watch_record_init(&record);
  ck_assert_int_eq(exists_and_watch(here, "/to-be", &record.call), 0);
  ck_assert_int_eq(delete_node(there, absolute("/to-be"), -1), 0);
  assert_event(&record, LK_EVENT_DELETED, "/to-be");
}
END_TEST

START_TEST(list_of_children_watches_children)
{
  watch_record record;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/dir", "", LK_PERSISTENT), 0);
  watch_record_init(&record);
  ck_assert_int_eq(children_and_watch(here, "/dir", &record.call), 0);
  ck_assert_int_eq(set(there, absolute("/dir"), lk_text("no event"), -1), 0);
  ck_assert_int_eq(create(there, absolute("/dir/x"), "", LK_PERSISTENT), 0);
  assert_event(&record, LK_EVENT_CHILDREN, "/dir");
  watch_record_init(&record);
  ck_assert_int_eq(children_and_watch(here, "/dir", &record.call), 0);
  ck_assert_int_eq(delete_node(there, absolute("/dir/x"), -1), 0);
  assert_event(&record, LK_EVENT_CHILDREN, "/dir");
  watch_record_init(&record);
  ck_assert_int_eq(children_and_watch(here, "/dir", &record.call), 0);
  ck_assert_int_eq(delete_node(there, absolute("/dir"), -1), 0);
  assert_event(&record, LK_EVENT_DELETED, "/dir");
}
END_TEST

START_TEST(failed_request_leaves_no_watch)
{
  watch_record record;

  connect_here(with_chroot(_i));
  wait_for_watch_count(0);
  watch_record_init(&record);
  ck_assert_int_eq(get_and_watch(here, "/not-here", &record.call),
                   LK_ERR_NO_NODE);
  watch_record_init(&record);
  ck_assert_int_eq(children_and_watch(here, "/not-here", &record.call),
                   LK_ERR_NO_NODE);
  wait_for_watch_count(0);
  ck_assert_int_eq(create(here, "/not-here", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(delete_node(here, "/not-here", -1), 0);
  ck_assert(!record.has_fired);
}
END_TEST

START_TEST(one_event_fires_all_watches_of_a_node)
{
  watch_record by_get_1, by_get_2, by_exists, by_children;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/many", "", LK_PERSISTENT), 0);
  watch_record_init(&by_get_1);
  watch_record_init(&by_get_2);
  watch_record_init(&by_exists);
  watch_record_init(&by_children);
  ck_assert_int_eq(get_and_watch(here, "/many", &by_get_1.call), 0);
  ck_assert_int_eq(get_and_watch(here, "/many", &by_get_2.call), 0);
  ck_assert_int_eq(exists_and_watch(here, "/many", &by_exists.call), 0);
  ck_assert_int_eq(children_and_watch(here, "/many", &by_children.call), 0);
  ck_assert_int_eq(delete_node(there, absolute("/many"), -1), 0);
  assert_event(&by_get_1, LK_EVENT_DELETED, "/many");
  assert_event(&by_get_2, LK_EVENT_DELETED, "/many");
  assert_event(&by_exists, LK_EVENT_DELETED, "/many");
  assert_event(&by_children, LK_EVENT_DELETED, "/many");
}
END_TEST

START_TEST(cancelled_watch_is_removed_at_the_server)
{
  watch_record cancelled, kept;

  connect_here(with_chroot(_i));
  wait_for_watch_count(0);
  ck_assert_int_eq(create(here, "/c", "", LK_PERSISTENT), 0);
  watch_record_init(&cancelled);
  watch_record_init(&kept);
  ck_assert_int_eq(get_and_watch(here, "/c", &cancelled.call), 0);
  ck_assert_int_eq(get_and_watch(here, "/c", &kept.call), 0);
  wait_for_watch_count(1);
  ck_assert_int_eq(lk_watch_remove(here, cancelled.watch, NULL, NULL),
                   LK_ERR_STATE);
  ck_assert_int_eq(sync_with(here, "/c"), 0);
  /* The server keeps one watch for the node, which `kept` still needs. */
  wait_for_watch_count(1);
  ck_assert_int_eq(set(there, absolute("/c"), lk_text("1"), -1), 0);
  assert_event(&kept, LK_EVENT_CHANGED, "/c");
  ck_assert(!cancelled.has_fired);
  watch_record_init(&cancelled);
  ck_assert_int_eq(children_and_watch(here, "/c", &cancelled.call), 0);
  wait_for_watch_count(1);
  ck_assert_int_eq(wait_for_completion(lk_watch_remove(
                       here, cancelled.watch, on_done, reset_last_reply())),
                   0);
  ck_assert_int_eq(watches_on_server(), 0);
  ck_assert_int_eq(create(here, "/c/x", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(delete_node(here, "/c/x", -1), 0);
  ck_assert_int_eq(delete_node(here, "/c", -1), 0);
  ck_assert(!cancelled.has_fired);
}
END_TEST

START_TEST(cancelled_watch_can_stay_at_the_server)
{
  watch_record record;

  connect_here(with_chroot(_i));
  wait_for_watch_count(0);
  ck_assert_int_eq(create(here, "/stay", "", LK_PERSISTENT), 0);
  watch_record_init(&record);
  ck_assert_int_eq(get_and_watch(here, "/stay", &record.call), 0);
  lk_watch_cancel(here, record.watch);
  ck_assert_int_eq(sync_with(here, "/stay"), 0);
  ck_assert_int_eq(watches_on_server(), 1);
  ck_assert_int_eq(delete_node(there, absolute("/stay"), -1), 0);
  ck_assert_int_eq(sync_with(here, "/stay"), 0);
  ck_assert(!record.has_fired);
}
END_TEST

START_TEST(event_of_a_change_precedes_its_reply_to_the_same_client)
{
  watch_record record;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/own", "", LK_PERSISTENT), 0);
  watch_record_init(&record);
  ck_assert_int_eq(get_and_watch(here, "/own", &record.call), 0);
  ck_assert_int_eq(set(here, "/own", lk_text("1"), -1), 0);
  ck_assert(record.has_fired);
  ck_assert_int_eq(record.type, LK_EVENT_CHANGED);
  ck_assert_int_eq(delete_node(here, "/own", -1), 0);
}
END_TEST

START_TEST(closing_ends_watches)
{
  watch_record by_exists, by_children;

  connect_here(with_chroot(_i));
  watch_record_init(&by_exists);
  watch_record_init(&by_children);
  ck_assert_int_eq(exists_and_watch(here, "/never", &by_exists.call),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(children_and_watch(here, "/", &by_children.call), 0);
  ck_assert_int_eq(close_client(here), 0);
  ck_assert(by_exists.has_fired && by_children.has_fired);
  ck_assert_int_eq(by_exists.type, LK_EVENT_ENDED);
  ck_assert_int_eq(by_exists.err, LK_ERR_CLOSED);
  ck_assert_int_eq(by_children.err, LK_ERR_CLOSED);
}
END_TEST

TCase *watch_tests(void)
{
  const TTest *const tests[] = {
      exists_watch_reports_creation,
      list_of_children_watches_children,
      failed_request_leaves_no_watch,
      one_event_fires_all_watches_of_a_node,
      cancelled_watch_is_removed_at_the_server,
      cancelled_watch_can_stay_at_the_server,
      event_of_a_change_precedes_its_reply_to_the_same_client,
      closing_ends_watches,
  };
  TCase *t = tcase_create("watches");

  add_tests_without_and_with_chroot(t, tests, sizeof tests / sizeof tests[0]);
  return t;
}
