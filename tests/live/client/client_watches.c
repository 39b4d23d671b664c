/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* One-shot watches against a real server. */

#include "live/client/world.h"

#include <stdio.h>
#include <string.h>

typedef struct watch_record {
  lk_call call;
  lk_watch *watch;
  bool fired;
  lk_event_type type;
  int err;
  char path[256];
} watch_record;

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  watch_record *s = arg;

  (void)c;
  ck_assert_ptr_eq(w, s->watch);
  ck_assert_msg(!s->fired, "a watch fired twice");
  s->type = event->type;
  s->err = event->err;
  snprintf(s->path, sizeof s->path, "%.*s", (int)event->path.len,
           (const char *)event->path.at);
  s->fired = true;
}

/* Clear the record. A request with the lk_call `s->call` then sets a watch
 * whose events are noted in the record. */
static void watch_record_init(watch_record *s)
{
  memset(s, 0, sizeof *s);
  s->call.size = sizeof s->call;
  s->call.on_event = on_event;
  s->call.watch_arg = s;
  s->call.watch = &s->watch;
}

static void assert_event(watch_record *s, lk_event_type type, const char *path)
{
  wait_until(&s->fired);
  ck_assert_int_eq(s->type, type);
  ck_assert_int_eq(s->err, 0);
  ck_assert_str_eq(s->path, path);
}

/* Wait until the server has `count` watches: it registers and removes them
 * asynchronously. */
static void assert_watches_become(long count)
{
  for (int i = 0; watches_on_server() != count; i++) {
    ck_assert_msg(i < 500, "%ld watches instead of %ld", watches_on_server(),
                  count);
    ck_assert_int_eq(sync_with(here, "/"), 0);
    ev_sleep(.02);
  }
}

START_TEST(a_read_watches_data)
{
  watch_record s;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/w", "", 0), 0);
  watch_record_init(&s);
  ck_assert_int_eq(get(here, "/w", &s.call), 0);
  ck_assert_int_eq(set(there, full("/w"), lk_text("1"), -1), 0);
  assert_event(&s, LK_EVENT_CHANGED, "/w");
  watch_record_init(&s);
  ck_assert_int_eq(exists(here, "/w", &s.call), 0);
  ck_assert_int_eq(set(there, full("/w"), lk_text("2"), -1), 0);
  assert_event(&s, LK_EVENT_CHANGED, "/w");
  watch_record_init(&s);
  ck_assert_int_eq(get(here, "/w", &s.call), 0);
  ck_assert_int_eq(erase(there, full("/w"), -1), 0);
  assert_event(&s, LK_EVENT_DELETED, "/w");
}
END_TEST

START_TEST(exists_watch_reports_creation)
{
  watch_record s;

  world_enter(_i);
  watch_record_init(&s);
  ck_assert_int_eq(exists(here, "/to-be", &s.call), LK_ERR_NO_NODE);
  ck_assert_int_eq(create(there, full("/to-be"), "", 0), 0);
  assert_event(&s, LK_EVENT_CREATED, "/to-be");
  watch_record_init(&s);
  ck_assert_int_eq(exists(here, "/to-be", &s.call), 0);
  ck_assert_int_eq(erase(there, full("/to-be"), -1), 0);
  assert_event(&s, LK_EVENT_DELETED, "/to-be");
}
END_TEST

START_TEST(a_listing_watches_children)
{
  watch_record s;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/dir", "", 0), 0);
  watch_record_init(&s);
  ck_assert_int_eq(children(here, "/dir", &s.call), 0);
  ck_assert_int_eq(set(there, full("/dir"), lk_text("not this"), -1), 0);
  ck_assert_int_eq(create(there, full("/dir/x"), "", 0), 0);
  assert_event(&s, LK_EVENT_CHILDREN, "/dir");
  watch_record_init(&s);
  ck_assert_int_eq(children(here, "/dir", &s.call), 0);
  ck_assert_int_eq(erase(there, full("/dir/x"), -1), 0);
  assert_event(&s, LK_EVENT_CHILDREN, "/dir");
  watch_record_init(&s);
  ck_assert_int_eq(children(here, "/dir", &s.call), 0);
  ck_assert_int_eq(erase(there, full("/dir"), -1), 0);
  assert_event(&s, LK_EVENT_DELETED, "/dir");
}
END_TEST

START_TEST(a_failed_request_leaves_no_watch)
{
  watch_record s;

  world_enter(_i);
  assert_watches_become(0);
  watch_record_init(&s);
  ck_assert_int_eq(get(here, "/not-here", &s.call), LK_ERR_NO_NODE);
  watch_record_init(&s);
  ck_assert_int_eq(children(here, "/not-here", &s.call), LK_ERR_NO_NODE);
  assert_watches_become(0);
  ck_assert_int_eq(create(here, "/not-here", "", 0), 0);
  ck_assert_int_eq(erase(here, "/not-here", -1), 0);
  ck_assert(!s.fired);
}
END_TEST

START_TEST(one_event_fires_all_watches_of_a_node)
{
  watch_record a, b, c, d;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/many", "", 0), 0);
  watch_record_init(&a);
  watch_record_init(&b);
  watch_record_init(&c);
  watch_record_init(&d);
  ck_assert_int_eq(get(here, "/many", &a.call), 0);
  ck_assert_int_eq(get(here, "/many", &b.call), 0);
  ck_assert_int_eq(exists(here, "/many", &c.call), 0);
  ck_assert_int_eq(children(here, "/many", &d.call), 0);
  ck_assert_int_eq(erase(there, full("/many"), -1), 0);
  assert_event(&a, LK_EVENT_DELETED, "/many");
  assert_event(&b, LK_EVENT_DELETED, "/many");
  assert_event(&c, LK_EVENT_DELETED, "/many");
  assert_event(&d, LK_EVENT_DELETED, "/many");
}
END_TEST

START_TEST(cancelled_watch_is_removed_at_the_server)
{
  watch_record a, b;

  world_enter(_i);
  assert_watches_become(0);
  ck_assert_int_eq(create(here, "/c", "", 0), 0);
  watch_record_init(&a);
  watch_record_init(&b);
  ck_assert_int_eq(get(here, "/c", &a.call), 0);
  ck_assert_int_eq(get(here, "/c", &b.call), 0);
  assert_watches_become(1);
  lk_watch_cancel(here, a.watch, true);
  ck_assert_int_eq(sync_with(here, "/c"), 0);
  /* The server keeps one watch for the node, which `b` still needs. */
  assert_watches_become(1);
  ck_assert_int_eq(set(there, full("/c"), lk_text("1"), -1), 0);
  assert_event(&b, LK_EVENT_CHANGED, "/c");
  ck_assert(!a.fired);
  watch_record_init(&b);
  ck_assert_int_eq(children(here, "/c", &b.call), 0);
  assert_watches_become(1);
  lk_watch_cancel(here, b.watch, true);
  assert_watches_become(0);
  ck_assert_int_eq(create(here, "/c/x", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(erase(here, "/c/x", -1), 0);
  ck_assert_int_eq(erase(here, "/c", -1), 0);
  ck_assert(!b.fired);
}
END_TEST

START_TEST(a_cancelled_watch_can_stay_on_the_server)
{
  watch_record s;

  world_enter(_i);
  assert_watches_become(0);
  ck_assert_int_eq(create(here, "/stay", "", 0), 0);
  watch_record_init(&s);
  ck_assert_int_eq(get(here, "/stay", &s.call), 0);
  lk_watch_cancel(here, s.watch, false);
  ck_assert_int_eq(sync_with(here, "/stay"), 0);
  ck_assert_int_eq(watches_on_server(), 1);
  ck_assert_int_eq(erase(there, full("/stay"), -1), 0);
  ck_assert_int_eq(sync_with(here, "/stay"), 0);
  ck_assert(!s.fired);
}
END_TEST

START_TEST(event_of_an_own_change_precedes_its_reply)
{
  watch_record s;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/own", "", 0), 0);
  watch_record_init(&s);
  ck_assert_int_eq(get(here, "/own", &s.call), 0);
  ck_assert_int_eq(set(here, "/own", lk_text("1"), -1), 0);
  ck_assert(s.fired);
  ck_assert_int_eq(s.type, LK_EVENT_CHANGED);
  ck_assert_int_eq(erase(here, "/own", -1), 0);
}
END_TEST

START_TEST(closing_ends_watches)
{
  watch_record a, b;

  world_enter(_i);
  watch_record_init(&a);
  watch_record_init(&b);
  ck_assert_int_eq(exists(here, "/never", &a.call), LK_ERR_NO_NODE);
  ck_assert_int_eq(children(here, "/", &b.call), 0);
  ck_assert_int_eq(close_client(here), 0);
  ck_assert(a.fired && b.fired);
  ck_assert_int_eq(a.type, LK_EVENT_ENDED);
  ck_assert_int_eq(a.err, LK_ERR_CLOSED);
  ck_assert_int_eq(b.err, LK_ERR_CLOSED);
}
END_TEST

TCase *watch_tests(void)
{
  const TTest *const tests[] = {
      a_read_watches_data,
      exists_watch_reports_creation,
      a_listing_watches_children,
      a_failed_request_leaves_no_watch,
      one_event_fires_all_watches_of_a_node,
      cancelled_watch_is_removed_at_the_server,
      a_cancelled_watch_can_stay_on_the_server,
      event_of_an_own_change_precedes_its_reply,
      closing_ends_watches,
  };
  TCase *t = tcase_create("watches");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(t, tests[i], 0, 2);
  return t;
}
