/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/watches.h"
#include "support/failing_mem.h"
#include "support/suite.h"

#include <stdio.h>

static failing_mem mem;
static lk_watches ws;

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
}

static void begin(void)
{
  failing_mem_init(&mem);
  ck_assert(lk__watches_init(&ws, &mem.mem));
}

static void end(void)
{
  ck_assert_uint_eq(lk__map_count(&ws.paths), 0);
  ck_assert_uint_eq(ws.standing, 0);
  lk__watches_free(&ws);
  ck_assert_uint_eq(mem.live, 0);
}

/* A new watch whose request has no reply yet. An exists begins with a watch for
   data; the reply turns it into a watch of the kind EXIST. */
static lk_watch *new_pending(const char *path, lk_watch_kind kind,
                             const lk_call *call)
{
  lk_watch *w = lk__watch_new(
      &ws, lk_text(path),
      kind == LK_WATCH_KIND_EXIST ? LK_WATCH_KIND_DATA : kind, call);

  ck_assert_ptr_nonnull(w);
  return w;
}

static lk_watch *pending(const char *path, lk_watch_kind kind)
{
  lk_call call = {.size = sizeof call, .on_event = on_event};

  return new_pending(path, kind, &call);
}

static lk_watch *pending_until_disconnect(const char *path, lk_watch_kind kind)
{
  lk_call call = {
      .size = sizeof call, .on_event = on_event, .until_disconnect = true};

  return new_pending(path, kind, &call);
}

/* A new watch whose request has succeeded. */
static lk_watch *standing(const char *path, lk_watch_kind kind)
{
  lk_watch *w = pending(path, kind);

  lk__watch_stand(&ws, w, kind);
  return w;
}

/* Report an event, and drop the watches that have fired. Returns their number.
 */
static size_t fire(int32_t type, const char *path)
{
  lk_link fired;
  size_t count = 0;

  lk__list_init(&fired);
  lk__watches_match(&ws, type, lk_text(path), &fired);
  for (; !lk__list_empty(&fired); count++)
    lk__watch_drop(&ws, LK_OWNER(fired.next, lk_watch, event_link));
  return count;
}

/* End the remaining watches of `kind` at `path`. Returns whether there were
 * any. */
static bool end_remaining(const char *path, lk_watch_kind kind)
{
  return fire(kind == LK_WATCH_KIND_CHILD ? LK_EVENT_CHILDREN
                                          : LK_EVENT_CREATED,
              path) > 0;
}

START_TEST(each_event_fires_the_watches_that_the_server_removed)
{
  static const struct {
    int32_t type;
    bool fires[LK_ONE_SHOT_KINDS]; /* data, exist, child */
  } table[] = {
      {LK_EVENT_CREATED, {true, true, false}},
      {LK_EVENT_DELETED, {true, true, true}},
      {LK_EVENT_CHANGED, {true, true, false}},
      {LK_EVENT_CHILDREN, {false, false, true}},
      {0, {false, false, false}},
      {-1, {false, false, false}},
      {5, {false, false, false}},
      {INT32_MAX, {false, false, false}},
  };

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    for (int kind = 0; kind < LK_ONE_SHOT_KINDS; kind++) {
      begin();
      standing("/a", (lk_watch_kind)kind);
      ck_assert_uint_eq(fire(table[i].type, "/a"), table[i].fires[kind]);
      ck_assert(end_remaining("/a", (lk_watch_kind)kind) !=
                table[i].fires[kind]);
      end();
    }
  }
}
END_TEST

START_TEST(a_deletion_fires_watches_of_all_kinds_of_exactly_its_path)
{
  begin();
  standing("/a", LK_WATCH_KIND_DATA);
  standing("/a", LK_WATCH_KIND_DATA);
  standing("/a", LK_WATCH_KIND_CHILD);
  standing("/a", LK_WATCH_KIND_EXIST);
  standing("/ab", LK_WATCH_KIND_DATA);
  ck_assert_uint_eq(fire(LK_EVENT_DELETED, "/a"), 4);
  ck_assert_uint_eq(fire(LK_EVENT_DELETED, "/a"), 0);
  ck_assert_uint_eq(fire(LK_EVENT_DELETED, "/ab"), 1);
  end();
}
END_TEST

/* Whether a persistent watch of `kind` at `watched` reports an event, once. The
   watch must not end. */
static bool reports(lk_watch_kind kind, const char *watched, int32_t type,
                    const char *path)
{
  lk_link fired;
  bool reported;

  begin();
  lk_watch *w = standing(watched, kind);

  lk__list_init(&fired);
  lk__watches_match(&ws, type, lk_text(path), &fired);
  reported = !lk__list_empty(&fired);
  if (reported) {
    ck_assert_ptr_eq(LK_OWNER(fired.next, lk_watch, event_link), w);
    lk__list_remove(fired.next);
  }
  ck_assert(lk__list_empty(&fired));
  ck_assert_uint_eq(ws.standing, 1);
  lk__watch_drop(&ws, w);
  ck_assert_uint_eq(ws.added + ws.recursive, 0);
  end();
  return reported;
}

START_TEST(persistent_watch_reports_its_node_and_a_recursive_one_all_below)
{
  static const struct {
    const char *watched;
    const char *path;
    bool at_or_below; /* `path` is `watched` or below it */
  } table[] = {
      {"/a", "/a", true},    {"/a", "/a/b", true},     {"/a", "/a/b/c", true},
      {"/a", "/ab", false},  {"/a", "/", false},       {"/a", "/b/a", false},
      {"/a/b", "/a", false}, {"/", "/", true},         {"/", "/a", true},
      {"/", "/a/b/c", true}, {"/a/b", "/a/b/c", true}, {"/a/b", "/a/bc", false},
      {"/a", "", false},     {"/", "", false},         {"/a", "a", false},
      {"/a", "//a", false},  {"/a", "/a/", true},
  };

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const char *watched = table[i].watched, *path = table[i].path;
    bool same = strcmp(watched, path) == 0;

    for (int32_t type = -1; type < 9; type++) {
      bool exists = type >= LK_EVENT_CREATED && type <= LK_EVENT_CHILDREN;

      ck_assert(reports(LK_WATCH_KIND_PERSISTENT, watched, type, path) ==
                (exists && same));
      ck_assert(reports(LK_WATCH_KIND_RECURSIVE, watched, type, path) ==
                (exists && type != LK_EVENT_CHILDREN && table[i].at_or_below));
    }
  }
}
END_TEST

START_TEST(persistent_watch_reports_again)
{
  lk_link fired;

  begin();
  standing("/a", LK_WATCH_KIND_PERSISTENT);
  standing("/a", LK_WATCH_KIND_RECURSIVE);
  for (int i = 0; i < 3; i++) {
    lk__list_init(&fired);
    lk__watches_match(&ws, LK_EVENT_CHANGED, lk_text("/a"), &fired);
    for (int watch = 0; watch < 2; watch++) {
      ck_assert(!lk__list_empty(&fired));
      lk__list_remove(fired.next);
    }
    ck_assert(lk__list_empty(&fired));
  }
  ck_assert_uint_eq(fire(LK_EVENT_CHANGED, "/a"), 2);
  end();
}
END_TEST

START_TEST(event_fires_watches_of_exactly_its_path)
{
  static const char *const others[] = {"/",   "/a", "/a/b/c", "/a/bc",
                                       "/a/", "",   "a/b"};
  lk_link fired;

  begin();
  standing("/a/b", LK_WATCH_KIND_DATA);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    ck_assert_uint_eq(fire(LK_EVENT_CHANGED, others[i]), 0);
  lk__list_init(&fired);
  lk__watches_match(&ws, LK_EVENT_CHANGED, lk_bytes_of("/a/b\0c", 6), &fired);
  ck_assert(lk__list_empty(&fired));
  ck_assert_uint_eq(fire(LK_EVENT_CHANGED, "/a/b"), 1);
  end();
}
END_TEST

START_TEST(watch_without_a_reply_gets_no_event)
{
  begin();
  lk_watch *w = pending("/a", LK_WATCH_KIND_DATA);

  ck_assert_uint_eq(fire(LK_EVENT_DELETED, "/a"), 0);
  ck_assert_uint_eq(ws.standing, 0);
  lk__watch_stand(&ws, w, LK_WATCH_KIND_EXIST);
  ck_assert_uint_eq(ws.standing, 1);
  ck_assert_uint_eq(fire(LK_EVENT_CREATED, "/a"), 1);
  lk__watch_drop(&ws, pending("/a", LK_WATCH_KIND_DATA));
  end();
}
END_TEST

START_TEST(watch_is_alone_if_no_other_shares_its_server_watch)
{
  begin();
  lk_watch *data = standing("/a", LK_WATCH_KIND_DATA);
  lk_watch *child = standing("/a", LK_WATCH_KIND_CHILD);
  lk_watch *elsewhere = standing("/b", LK_WATCH_KIND_DATA);

  ck_assert(lk__watch_is_removable(data));
  ck_assert(lk__watch_is_removable(child));
  lk_watch *exist = standing("/a", LK_WATCH_KIND_EXIST);
  /* `data` and `exist` share a watch on the server. */
  ck_assert(!lk__watch_is_removable(data));
  ck_assert(!lk__watch_is_removable(exist));
  ck_assert(lk__watch_is_removable(child));
  lk__watch_drop(&ws, exist);
  ck_assert(lk__watch_is_removable(data));
  lk_watch *later = pending("/a", LK_WATCH_KIND_CHILD);
  ck_assert(!lk__watch_is_removable(child));
  ck_assert(lk__watch_is_removable(data));
  lk__watch_drop(&ws, later);
  later = pending("/a", LK_WATCH_KIND_DATA);
  ck_assert(!lk__watch_is_removable(data));
  ck_assert(!lk__watch_is_removable(later));
  lk__watch_drop(&ws, later);
  lk__watch_drop(&ws, data);
  lk__watch_drop(&ws, child);
  lk__watch_drop(&ws, elsewhere);
  end();
}
END_TEST

START_TEST(persistent_watch_serves_others_once_its_request_was_sent)
{
  begin();
  lk_watch *tree = pending("/a", LK_WATCH_KIND_RECURSIVE);

  lk__watch_set_unsent(tree);
  ck_assert(!lk__watched_will_serve(&ws, tree->on, LK_WATCH_KIND_DATA));
  lk__watch_set_sent(tree);
  ck_assert(lk__watched_will_serve(&ws, tree->on, LK_WATCH_KIND_EXIST));
  ck_assert(!lk__watched_will_serve(&ws, tree->on, LK_WATCH_KIND_CHILD));
  ck_assert(!lk__watched_serves(tree->on, LK_WATCH_KIND_EXIST));
  lk__watch_stand(&ws, tree, LK_WATCH_KIND_RECURSIVE);
  ck_assert(lk__watched_serves(tree->on, LK_WATCH_KIND_DATA));
  ck_assert(!lk__watched_serves(tree->on, LK_WATCH_KIND_CHILD));
  lk_watch *node = pending("/a", LK_WATCH_KIND_PERSISTENT);
  ck_assert(lk__watched_will_serve(&ws, tree->on, LK_WATCH_KIND_CHILD));
  lk__watch_drop(&ws, node);
  lk__watch_drop(&ws, tree);
  end();
}
END_TEST

/* A watch may be removed in a callback, while others that have fired are not
   notified yet. */
START_TEST(fired_one_shot_watch_is_removed)
{
  lk_link fired;

  begin();
  const lk_watch *w = standing("/a", LK_WATCH_KIND_DATA);

  standing("/a", LK_WATCH_KIND_DATA);
  lk__list_init(&fired);
  lk__watches_match(&ws, LK_EVENT_CHANGED, lk_text("/a"), &fired);
  ck_assert(!lk__watched_has(w->on, LK_WATCH_KIND_DATA, NULL));
  while (!lk__list_empty(&fired))
    lk__watch_drop(&ws, LK_OWNER(fired.next, lk_watch, event_link));
  end();
}
END_TEST

START_TEST(watch_dropped_while_its_request_waits_is_not_counted_as_waiting)
{
  begin();
  lk_watch *data = standing("/a", LK_WATCH_KIND_DATA);
  lk_watch *first = pending("/a", LK_WATCH_KIND_RECURSIVE);

  lk__watch_set_unsent(first);
  lk__watch_drop(&ws, first);
  lk_watch *second = pending("/a", LK_WATCH_KIND_RECURSIVE);

  ck_assert(lk__watched_will_serve(&ws, data->on, LK_WATCH_KIND_DATA));
  lk__watch_drop(&ws, second);
  lk__watch_drop(&ws, data);
  end();
}
END_TEST

/* Take watches by this function, and drop them. Returns their number. */
static size_t take_and_drop(void (*take)(lk_watches *ws, lk_link *out))
{
  lk_link taken;
  size_t count = 0;

  lk__list_init(&taken);
  take(&ws, &taken);
  for (; !lk__list_empty(&taken); count++)
    lk__watch_drop(&ws, LK_OWNER(taken.next, lk_watch, event_link));
  return count;
}

START_TEST(watches_until_disconnect_are_taken_alone_or_with_all)
{
  begin();
  for (int i = 0; i < 30; i++) {
    lk_watch_kind kind = (lk_watch_kind)(i % 3);
    bool until_disconnect = i % 5 == 0;
    char path[16];

    snprintf(path, sizeof path, "/%d", i / 4);
    lk_watch *w = until_disconnect ? pending_until_disconnect(path, kind)
                                   : pending(path, kind);
    lk__watch_stand(&ws, w, kind);
  }
  lk_watch *under_way = pending_until_disconnect("/0", LK_WATCH_KIND_DATA);

  ck_assert_uint_eq(take_and_drop(lk__watches_take_disconnected), 6);
  ck_assert_uint_eq(take_and_drop(lk__watches_take_disconnected), 0);
  ck_assert_uint_eq(ws.standing, 24);
  ck_assert_uint_eq(take_and_drop(lk__watches_take_all), 24);
  lk__watch_drop(&ws, under_way);
  end();
}
END_TEST

START_TEST(one_shot_watches_beside_a_persistent_one_end_with_the_connection)
{
  begin();
  lk_watch *stays = standing("/a", LK_WATCH_KIND_PERSISTENT);
  lk_watch *tree = standing("/b", LK_WATCH_KIND_RECURSIVE);

  standing("/a", LK_WATCH_KIND_DATA);
  standing("/b", LK_WATCH_KIND_CHILD);
  lk_watch *below = standing("/b/c", LK_WATCH_KIND_DATA);

  ck_assert_uint_eq(take_and_drop(lk__watches_take_disconnected), 2);
  ck_assert_uint_eq(ws.standing, 3);
  lk__watch_drop(&ws, stays);
  lk__watch_drop(&ws, tree);
  lk__watch_drop(&ws, below);
  end();
}
END_TEST

/* The numbers of watches of each one-shot kind that stand on a path. */
static void check_standing(const lk_watched *on, size_t data, size_t exist,
                           size_t child)
{
  const size_t expected[] = {data, exist, child};

  for (int i = 0; i < LK_ONE_SHOT_KINDS; i++)
    ck_assert_uint_eq(lk__watched_has(on, (lk_watch_kind)i, LK_ANY_WATCH),
                      expected[i]);
}

static size_t drop_ended(void)
{
  size_t count = 0;

  for (; !lk__list_empty(&ws.ended); count++)
    lk__watch_drop(&ws, LK_OWNER(ws.ended.next, lk_watch, event_link));
  return count;
}

START_TEST(persistent_watch_ends_the_one_shot_watches_that_it_does_not_serve)
{
  begin();
  lk_watch *data = standing("/a", LK_WATCH_KIND_DATA);

  standing("/a", LK_WATCH_KIND_EXIST);
  standing("/a", LK_WATCH_KIND_CHILD);
  lk__watched_ref(data->on);
  lk_watched *on = data->on;

  lk__watched_end_replaced(&ws, on, LK_WATCH_KIND_PERSISTENT);
  check_standing(on, 1, 1, 1);
  lk__watched_end_replaced(&ws, on, LK_WATCH_KIND_RECURSIVE);
  check_standing(on, 1, 1, 0);
  on->missing_after[LK_WATCH_KIND_EXIST] = 5; /* not registered */
  lk__watched_end_replaced(&ws, on, LK_WATCH_KIND_PERSISTENT);
  check_standing(on, 1, 0, 0);
  ck_assert_uint_eq(drop_ended(), 2);
  lk_watch *later = pending("/a", LK_WATCH_KIND_CHILD);

  lk__watched_end_removed(&ws, on);
  check_standing(on, 0, 0, 1); /* `later` */
  ck_assert(later->relies);
  ck_assert_uint_eq(take_and_drop(lk__watches_take_disconnected), 1);
  lk__watch_drop(&ws, later);
  lk__watched_unref(&ws, on);
  end();
}
END_TEST

START_TEST(memory_of_removed_watches_is_reused)
{
  begin();
  lk__watch_drop(&ws, standing("/a/path/of/some/length", LK_WATCH_KIND_DATA));
  size_t count = mem.count;

  for (int i = 0; i < 1000; i++) {
    char path[32];

    snprintf(path, sizeof path, "/a/path/of/%d", i);
    standing(path, (lk_watch_kind)(i % 3));
    ck_assert_uint_eq(fire(LK_EVENT_DELETED, path), 1);
  }
  ck_assert_uint_eq(mem.count, count);
  end();
}
END_TEST

START_TEST(handle_of_a_removed_watch_matches_no_other)
{
  lk_watch *handles[100];

  begin();
  for (size_t i = 0; i < 100; i++) {
    lk_watch *w = standing("/a", LK_WATCH_KIND_DATA);

    handles[i] = lk__watch_handle(w);
    ck_assert_ptr_eq(lk__watch_of(&ws, handles[i]), w);
    for (size_t j = 0; j < i; j++) {
      ck_assert_ptr_ne(handles[i], handles[j]);
      ck_assert((lk__watch_of(&ws, handles[j]) == NULL) == (j % 2 == 0));
    }
    if (i % 2 == 0)
      lk__watch_drop(&ws, w);
  }
  ck_assert_uint_eq(fire(LK_EVENT_CHANGED, "/a"), 50);
  for (size_t i = 0; i < 100; i++)
    ck_assert_ptr_null(lk__watch_of(&ws, handles[i]));
  ck_assert_ptr_null(lk__watch_of(&ws, NULL));
  ck_assert_ptr_null(lk__watch_of(&ws, (const lk_watch *)handles));
  end();
}
END_TEST

/* So many watches need too much memory, so the test sets the count of the table
   by hand. */
START_TEST(number_of_watches_is_limited_by_their_handles)
{
  lk_call call = {.size = sizeof call, .on_event = on_event};
  size_t before;

  begin();
  standing("/a", LK_WATCH_KIND_DATA);
  uint32_t free_slot = ws.free_slot, nslots = ws.nslots;

  ws.nslots = (uint32_t)1 << (sizeof(uintptr_t) > 4 ? 31 : 19);
  ws.free_slot = ws.nslots;
  before = mem.count;
  ck_assert_ptr_null(
      lk__watch_new(&ws, lk_text("/a"), LK_WATCH_KIND_DATA, &call));
  /* One allocation is for the watch, none for slots. */
  ck_assert_uint_eq(mem.count, before + 1);
  ws.nslots = nslots;
  ws.free_slot = free_slot;
  ck_assert_uint_eq(fire(LK_EVENT_CHANGED, "/a"), 1);
  end();
}
END_TEST

/* A handle contains the whole serial number if pointers have 64 bits, and 12
   bits of it otherwise. */
START_TEST(handles_differ_in_each_bit_of_the_serial_number)
{
  const int bits = sizeof(uintptr_t) > 4 ? 32 : 12;
  lk_watch w = {.serial = 0};
  const lk_watch *first = lk__watch_handle(&w);

  for (int bit = 0; bit < bits; bit++) {
    w.serial = (uint32_t)1 << bit;
    ck_assert_ptr_ne(lk__watch_handle(&w), first);
  }
}
END_TEST

START_TEST(longer_path_gets_enough_memory)
{
  char path[1000];

  begin();
  for (size_t len = 1; len < sizeof path; len++) {
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[len] = '\0';
    const lk_watch *w = standing(path, LK_WATCH_KIND_DATA);

    ck_assert_str_eq(w->on->path, path);
    ck_assert_uint_eq(fire(LK_EVENT_CHANGED, path), 1);
  }
  end();
}
END_TEST

START_TEST(without_memory_there_is_no_watch)
{
  lk_call call = {.size = sizeof call, .on_event = on_event};
  char path[300];

  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = '\0';
  for (size_t n = 1;; n++) {
    begin();
    standing("/a", LK_WATCH_KIND_DATA);
    size_t before = mem.count;

    mem.fail_at = before + n;
    lk_watch *w = lk__watch_new(&ws, lk_text(path), LK_WATCH_KIND_DATA, &call);
    bool failed = failing_mem_failed(&mem);

    ck_assert(failed == (w == NULL));
    ck_assert_uint_eq(lk__map_count(&ws.paths), failed ? 1 : 2);
    if (w != NULL)
      lk__watch_drop(&ws, w);
    ck_assert_uint_eq(fire(LK_EVENT_CHANGED, "/a"), 1);
    end();
    if (!failed) {
      ck_assert_uint_gt(n, 3); /* allocations: watch, path, text of the path */
      break;
    }
  }
}
END_TEST

SUITE("watch_table", each_event_fires_the_watches_that_the_server_removed,
      a_deletion_fires_watches_of_all_kinds_of_exactly_its_path,
      persistent_watch_reports_its_node_and_a_recursive_one_all_below,
      persistent_watch_reports_again, event_fires_watches_of_exactly_its_path,
      watch_without_a_reply_gets_no_event,
      watch_is_alone_if_no_other_shares_its_server_watch,
      persistent_watch_serves_others_once_its_request_was_sent,
      fired_one_shot_watch_is_removed,
      watch_dropped_while_its_request_waits_is_not_counted_as_waiting,
      watches_until_disconnect_are_taken_alone_or_with_all,
      one_shot_watches_beside_a_persistent_one_end_with_the_connection,
      persistent_watch_ends_the_one_shot_watches_that_it_does_not_serve,
      memory_of_removed_watches_is_reused,
      handle_of_a_removed_watch_matches_no_other,
      number_of_watches_is_limited_by_their_handles,
      handles_differ_in_each_bit_of_the_serial_number,
      longer_path_gets_enough_memory, without_memory_there_is_no_watch)
