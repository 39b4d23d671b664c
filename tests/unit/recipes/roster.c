/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "support/locks.h"
#include "support/suite.h"
#include "support/wire.h"

#include <latchkey/leader.h>
#include <latchkey/roster.h>

#include <stdio.h>

/* Rosters: the children of a node with their data. */

#define DIR "/d"

static model_server server;
static test_client one, two;
static char reports[4096]; /* a line for each: the error, or "NAME=DATA ..." */
static lk_roster *roster;
static unsigned calls;
static unsigned act_at; /* the number of the report that calls `act` */
static void (*act)(void);

static void print_entry(char *out, size_t size, const lk_roster_entry *e)
{
  if (e->err != 0) {
    ck_assert_ptr_null(e->stat);
    ck_assert_uint_eq(e->data.len, 0);
    snprintf(out, size, "%.*s!%s", (int)e->name.len, (const char *)e->name.at,
             lk_error_name(e->err));
    return;
  }
  ck_assert_uint_eq((size_t)e->stat->data_length, e->data.len);
  snprintf(out, size, "%.*s=%.*s", (int)e->name.len, (const char *)e->name.at,
           (int)e->data.len, (const char *)e->data.at);
}

static void record(int err, const lk_roster_entry *entries, size_t count)
{
  char entry[256];
  size_t at = strlen(reports);

  ck_assert(err == 0 || (entries == NULL && count == 0));
  if (err != 0)
    at += (size_t)snprintf(reports + at, sizeof reports - at, "%s",
                           lk_error_name(err));
  for (size_t i = 0; i < count; i++) {
    print_entry(entry, sizeof entry, &entries[i]);
    at += (size_t)snprintf(reports + at, sizeof reports - at, "%s%s",
                           i == 0 ? "" : " ", entry);
  }
  snprintf(reports + at, sizeof reports - at, "\n");
  if (++calls == act_at)
    act();
}

static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  ck_assert_ptr_eq(r, roster);
  ck_assert_ptr_eq(arg, &server);
  record(err, entries, count);
}

static void expect(const char *text)
{
  ck_assert_str_eq(reports, text);
  reports[0] = '\0';
}

static void begin(void)
{
  reports[0] = '\0';
  calls = act_at = 0;
  roster = NULL;
  model_init(&server);
  test_client_init(&one, &server, NULL);
  test_client_init(&two, &server, NULL);
  model_turn(&server);
}

static void end(void)
{
  lk_roster_free(roster);
  model_turn(&server);
  test_client_free(&one);
  test_client_free(&two);
  model_done(&server);
}

static int try_subscribe(const lk_roster_config *config)
{
  return lk_roster_subscribe(&roster, one.link->client, DIR, config, on_roster,
                             &server);
}

static void subscribe(void)
{
  ck_assert_int_eq(try_subscribe(NULL), 0);
  model_turn(&server);
}

static void create(const char *path, const char *data)
{
  model_create(&server, path);
  model_set(&server, path, data);
}

/* The directory has two children. */
static void begin_with_two(void)
{
  begin();
  model_create(&server, DIR);
  create(DIR "/b", "2");
  create(DIR "/a", "1");
  subscribe();
  expect("a=1 b=2\n");
  one.link->log[0] = '\0';
}

START_TEST(roster_is_reported_at_first_and_after_each_change)
{
  begin();
  subscribe();
  expect("NO_NODE\n");
  model_create(&server, DIR);
  model_turn(&server);
  expect("\n");
  create(DIR "/b", "2");
  model_turn(&server);
  expect("b=2\n");
  create(DIR "/a", "1");
  model_turn(&server);
  expect("a=1 b=2\n");
  model_set(&server, DIR "/b", "two");
  model_turn(&server);
  expect("a=1 b=two\n");
  model_delete(&server, DIR "/a");
  model_turn(&server);
  expect("b=two\n");
  model_delete(&server, DIR "/b");
  model_turn(&server);
  expect("\n");
  model_delete(&server, DIR);
  model_turn(&server);
  expect("NO_NODE\n");
  end();
}
END_TEST

START_TEST(changes_are_read_and_nothing_else)
{
  begin_with_two();
  model_set(&server, DIR "/b", "two");
  model_turn(&server);
  ck_assert(model_check_log(one.link, "getData"));
  create(DIR "/c", "3");
  model_turn(&server);
  ck_assert(model_check_log(one.link, "getChildren2 | getData"));
  expect("a=1 b=two\na=1 b=two c=3\n");
  end();
}
END_TEST

enum { MEMBERS = 500, MARK = 1 };

static size_t entries_written; /* since the report before */

/* Counts the entries without a mark, and marks all: an entry that the roster
 * writes again has none. */
static void on_marked_roster(lk_roster *r, int err,
                             const lk_roster_entry *entries, size_t count,
                             void *arg)
{
  lk_roster_entry *marked = (lk_roster_entry *)(uintptr_t)entries;

  (void)r;
  (void)err;
  (void)arg;
  ck_assert_uint_eq(count, MEMBERS);
  entries_written = 0;
  for (size_t i = 0; i < count; i++) {
    entries_written += marked[i].err != MARK;
    marked[i].err = MARK;
  }
  calls++;
}

START_TEST(change_of_a_child_writes_its_entry_only)
{
  char path[32];

  begin();
  model_create(&server, DIR);
  for (int i = 0; i < MEMBERS; i++) {
    snprintf(path, sizeof path, DIR "/%03d", i);
    model_create(&server, path);
  }
  ck_assert_int_eq(lk_roster_subscribe(&roster, one.link->client, DIR, NULL,
                                       on_marked_roster, NULL),
                   0);
  model_turn(&server);
  ck_assert_uint_eq(entries_written, MEMBERS);
  for (int i = 0; i < MEMBERS; i += 10) {
    snprintf(path, sizeof path, DIR "/%03d", i);
    model_set(&server, path, "new");
    model_turn(&server);
    ck_assert_uint_eq(entries_written, 1);
  }
  ck_assert_uint_eq(calls, 1 + MEMBERS / 10);
  end();
}
END_TEST

START_TEST(several_changes_are_one_report)
{
  begin_with_two();
  create(DIR "/c", "3");
  create(DIR "/d", "4");
  model_delete(&server, DIR "/a");
  model_turn(&server);
  expect("b=2 c=3 d=4\n");
  end();
}
END_TEST

START_TEST(child_of_the_same_name_that_was_created_anew_is_reported)
{
  begin_with_two();
  model_delete(&server, DIR "/a");
  create(DIR "/a", "new");
  model_turn(&server);
  expect("a=new b=2\n");
  end();
}
END_TEST

static void delete_before_read(model_server *s, model_link *l, int32_t op,
                               const char *path)
{
  (void)l;
  (void)op;
  if (path == NULL || strcmp(path, DIR "/a") != 0)
    return;
  s->before = NULL;
  model_delete(s, DIR "/a");
}

START_TEST(child_deleted_after_the_list_is_not_reported)
{
  begin();
  model_create(&server, DIR);
  create(DIR "/a", "1");
  create(DIR "/b", "2");
  server.before = delete_before_read;
  subscribe();
  expect("b=2\n");
  end();
}
END_TEST

START_TEST(child_that_cannot_be_read_is_in_the_roster)
{
  begin();
  model_create(&server, DIR);
  create(DIR "/a", "secret");
  create(DIR "/b", "2");
  model_deny(&server, DIR "/a", LK_PERM_READ);
  subscribe();
  expect("a!NO_AUTH b=2\n");
  model_deny(&server, DIR "/a", 0);
  model_run(&server, 1000);
  expect("a=secret b=2\n");
  end();
}
END_TEST

START_TEST(children_of_the_root_can_be_a_roster)
{
  begin();
  create("/x", "1");
  ck_assert_int_eq(lk_roster_subscribe(&roster, one.link->client, "/", NULL,
                                       on_roster, &server),
                   0);
  model_turn(&server);
  ck_assert_ptr_nonnull(strstr(reports, "x=1"));
  ck_assert_ptr_nonnull(strstr(reports, "zookeeper="));
  end();
}
END_TEST

/* ---- lists that no server sends ------------------------------------------ */

static const lk_bytes *listed;
static size_t listed_count;

/* Serves `listed` as the children of DIR, instead of the real ones. */
static bool serve_listed(model_link *l, lk_bytes frame)
{
  const sim_node *n = model_node(&server, DIR);
  lk_buf replies = l->out;
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);
  int32_t op = lk__reader_int(&in);

  if (op != LK_OPCODE_GET_CHILDREN2)
    return model_serve(l, frame);
  l->out = wire_buf();
  bool served = model_serve(l, frame);

  lk__buf_free(&l->out);
  l->out = replies;
  wire_list(&l->out, xid, n->stat.pzxid, listed, listed_count, &n->stat);
  return served;
}

static void list(const lk_bytes *names, size_t count)
{
  listed = names;
  listed_count = count;
  server.serve = serve_listed;
  model_create(&server, DIR "/change"); /* so that DIR is listed */
  model_turn(&server);
  model_delete(&server, DIR "/change");
  model_turn(&server);
}

START_TEST(name_that_is_listed_twice_is_one_child)
{
  static const lk_bytes twice[] = {
      {"b", 1}, {"a", 1}, {"b", 1}, {"c", 1}, {"c", 1}};

  begin_with_two();
  create(DIR "/c", "3");
  list(twice, 5);
  expect("a=1 b=2 c=3\n");
  list(twice, 3);
  expect("a=1 b=2\n");
  list(twice, 0);
  expect("\n");
  end();
}
END_TEST

START_TEST(child_whose_data_cannot_be_requested_is_in_the_roster)
{
  static char text[1100000]; /* longer than a request */
  const lk_bytes names[] = {{"a", 1}, {"\x7f", 1}, {text, sizeof text}};

  begin_with_two();
  list(names, 2);
  expect("a=1 \x7f!BAD_PATH\n");
  list(names, 2);
  expect("");
  memset(text, 'x', sizeof text);
  list(names, 3);
  ck_assert_msg(strncmp(reports, "a=1 xxx", 7) == 0, "%s", reports);
  ck_assert_uint_eq(model_count(one.link, "getData"), 0);
  end();
}
END_TEST

/* ---- elections ----------------------------------------------------------- */

START_TEST(candidates_are_in_the_order_of_their_queue)
{
  static const lk_roster_config configs[] = {{.size = sizeof configs[0],
                                              .election = true,
                                              .layout = LK_LAYOUT_LATCH},
                                             {.size = sizeof configs[0],
                                              .election = true,
                                              .layout = LK_LAYOUT_CURATOR},
                                             {.size = sizeof configs[0],
                                              .election = true,
                                              .layout = LK_LAYOUT_KAZOO}};
  static const char *const expected[] = {
      "zlatch-0000000001=z alatch-0000000002=a\n",
      "lock-0000000003=lock __lock__0000000004=kazoo\n",
      "lock-0000000003=lock __lock__0000000004=kazoo\n"};

  begin();
  model_create(&server, DIR);
  create(DIR "/alatch-0000000002", "a");
  create(DIR "/zlatch-0000000001", "z");
  create(DIR "/lock-0000000003", "lock");
  create(DIR "/__lock__0000000004", "kazoo");
  create(DIR "/other", "x");
  for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
    ck_assert_int_eq(try_subscribe(&configs[i]), 0);
    model_turn(&server);
    expect(expected[i]);
    lk_roster_free(roster);
  }
  roster = NULL;
  end();
}
END_TEST

START_TEST(new_data_of_a_candidate_are_reported_at_its_place)
{
  const lk_roster_config config = {
      .size = sizeof config, .election = true, .layout = LK_LAYOUT_LATCH};

  begin();
  model_create(&server, DIR);
  create(DIR "/zlatch-0000000001", "z");
  create(DIR "/blatch-0000000002", "b");
  create(DIR "/alatch-0000000002", "a");
  ck_assert_int_eq(try_subscribe(&config), 0);
  model_turn(&server);
  expect("zlatch-0000000001=z alatch-0000000002=a blatch-0000000002=b\n");
  model_set(&server, DIR "/blatch-0000000002", "new");
  model_turn(&server);
  expect("zlatch-0000000001=z alatch-0000000002=a blatch-0000000002=new\n");
  end();
}
END_TEST

START_TEST(roster_of_an_election_follows_its_candidates)
{
  const lk_roster_config config = {
      .size = sizeof config, .election = true, .layout = LK_LAYOUT_LATCH};
  const lk_lock_config first = {.size = sizeof first, .data = lk_text("first")};
  const lk_lock_config second = {.size = sizeof second,
                                 .data = lk_text("second")};
  lk_candidate *a, *b;

  begin();
  ck_assert_int_eq(try_subscribe(&config), 0);
  ck_assert_int_eq(lk_election_new(&a, one.link->client, DIR, LK_LAYOUT_LATCH,
                                   &first, NULL),
                   0);
  ck_assert_int_eq(lk_election_new(&b, two.link->client, DIR, LK_LAYOUT_LATCH,
                                   &second, NULL),
                   0);
  ck_assert_int_eq(lk_candidate_start(a), 0);
  model_turn(&server);
  ck_assert_int_eq(lk_candidate_start(b), 0);
  model_turn(&server);
  ck_assert_ptr_nonnull(strstr(reports, "latch-0000000000=first _c_"));
  ck_assert_ptr_nonnull(strstr(reports, "latch-0000000001=second\n"));
  reports[0] = '\0';
  lk_candidate_free(a);
  model_turn(&server);
  ck_assert_ptr_null(strstr(reports, "=first"));
  ck_assert_ptr_nonnull(strstr(reports, "latch-0000000001=second\n"));
  lk_candidate_free(b);
  end();
}
END_TEST

/* ---- lost connections, memory, the end ----------------------------------- */

START_TEST(reconnect_reports_only_changes)
{
  begin_with_two();
  server.down = true;
  model_drop(one.link);
  model_run(&server, 100);
  server.down = false;
  model_run(&server, T / 2);
  expect("");
  server.down = true;
  model_drop(one.link);
  model_set(&server, DIR "/a", "one");
  server.down = false;
  model_run(&server, T / 2);
  expect("a=one b=2\n");
  end();
}
END_TEST

START_TEST(roster_survives_the_expiry_of_its_session)
{
  begin_with_two();
  server.down = true;
  model_drop(one.link);
  model_expire(&server, one.link->last_session);
  model_delete(&server, DIR "/b");
  server.down = false;
  model_run(&server, T / 2);
  expect("a=1\n");
  create(DIR "/c", "3");
  model_turn(&server);
  expect("a=1 c=3\n");
  end();
}
END_TEST

START_TEST(roster_is_complete_after_a_failed_allocation)
{
  for (size_t n = 1;; n++) {
    begin();
    model_create(&server, DIR);
    create(DIR "/a", "1");
    create(DIR "/b", "2");
    one.mem.fail_at = one.mem.count + n;
    int err = try_subscribe(NULL);

    ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
    ck_assert_int_eq(roster == NULL, err != 0);
    if (err != 0)
      ck_assert_int_eq(try_subscribe(NULL), 0);
    model_run(&server, 2 * T);
    create(DIR "/c", "3");
    model_set(&server, DIR "/a", "one");
    model_run(&server, 2 * T);
    const char *last = strstr(reports, "a=one b=2 c=3\n");

    ck_assert_msg(last != NULL, "allocation %zu: %s", n, reports);
    bool failed = failing_mem_failed(&one.mem);

    one.mem.fail_at = 0;
    end();
    if (!failed)
      break;
    ck_assert_uint_lt(n, 200);
  }
}
END_TEST

static void free_roster(void)
{
  lk_roster_free(roster);
  roster = NULL;
}

static void free_client(void)
{
  lk_client_free(one.link->client);
}

START_TEST(callback_may_free_the_roster_or_the_client)
{
  static void (*const acts[])(void) = {free_roster, free_client};

  for (size_t i = 0; i < 2; i++) {
    for (unsigned n = 1; n <= 3; n++) {
      begin();
      model_create(&server, DIR);
      create(DIR "/a", "1");
      act = acts[i];
      act_at = n;
      subscribe();
      if (calls < n)
        create(DIR "/b", "2"); /* a list, and a new child */
      model_turn(&server);
      if (calls < n)
        model_delete(&server, DIR "/a");
      model_turn(&server);
      ck_assert_uint_ge(calls, n);
      if (acts[i] == free_client)
        ck_assert_ptr_nonnull(strstr(reports, "CLOSED\n"));
      lk_roster_free(roster);
      ck_assert_int_eq(one.link->client == NULL, acts[i] == free_client);
      test_client_free(&one);
      test_client_free(&two);
      model_done(&server);
    }
  }
}
END_TEST

START_TEST(closed_client_ends_the_roster)
{
  begin_with_two();
  ck_assert_int_eq(lk_client_close(one.link->client, NULL, NULL), 0);
  model_turn(&server);
  expect("CLOSED\n");
  end();
}
END_TEST

/* ---- lk_roster_get() ----------------------------------------------------- */

static unsigned completed;

static void on_read(lk_client *c, int err, const lk_roster_entry *entries,
                    size_t count, void *arg)
{
  ck_assert_ptr_eq(c, one.link->client);
  ck_assert_ptr_eq(arg, &completed);
  completed++;
  record(err, entries, count);
}

static int get(const lk_call *call)
{
  return lk_roster_get(one.link->client, DIR, NULL, call, on_read, &completed);
}

START_TEST(roster_is_read_once)
{
  begin();
  completed = 0;
  ck_assert_int_eq(get(NULL), 0);
  model_turn(&server);
  expect("NO_NODE\n");
  model_create(&server, DIR);
  create(DIR "/a", "1");
  ck_assert_int_eq(get(NULL), 0);
  model_turn(&server);
  expect("a=1\n");
  create(DIR "/b", "2");
  model_run(&server, T);
  expect("");
  ck_assert_uint_eq(completed, 2);
  ck_assert_uint_eq(model_watches(one.link), 0);
  end();
}
END_TEST

START_TEST(read_of_a_roster_has_a_deadline)
{
  const lk_call limit = {.size = sizeof limit, .timeout_ms = 500};
  const lk_call passed = {.size = sizeof passed, .timeout_ms = -5};
  const lk_call watch = {.size = 3};

  begin();
  server.down = true;
  model_drop(one.link);
  ck_assert_int_eq(get(&limit), 0);
  model_run(&server, 400);
  expect("");
  model_run(&server, 200);
  expect("DEADLINE\n");
  ck_assert_int_eq(get(&passed), LK_ERR_DEADLINE);
  ck_assert_int_eq(get(&watch), LK_ERR_BAD_ARGUMENT);
  server.down = false;
  end();
}
END_TEST

START_TEST(read_of_a_roster_continues_on_the_next_connection)
{
  for (unsigned request = 1; request <= 3; request++) {
    begin();
    model_create(&server, DIR);
    create(DIR "/a", "1");
    create(DIR "/b", "2");
    one.link->requests = 0;
    one.link->cut_at = request;
    ck_assert_int_eq(get(NULL), 0);
    model_run(&server, T);
    expect("a=1 b=2\n");
    end();
  }
}
END_TEST

START_TEST(client_may_be_freed_when_a_roster_was_read)
{
  begin();
  act = free_client;
  act_at = 1;
  model_create(&server, DIR);
  create(DIR "/a", "1");
  ck_assert_int_eq(get(NULL), 0);
  model_turn(&server);
  expect("a=1\n");
  end();
}
END_TEST

SUITE("roster", roster_is_reported_at_first_and_after_each_change,
      changes_are_read_and_nothing_else,
      change_of_a_child_writes_its_entry_only, several_changes_are_one_report,
      child_of_the_same_name_that_was_created_anew_is_reported,
      child_deleted_after_the_list_is_not_reported,
      child_that_cannot_be_read_is_in_the_roster,
      name_that_is_listed_twice_is_one_child,
      child_whose_data_cannot_be_requested_is_in_the_roster,
      children_of_the_root_can_be_a_roster,
      candidates_are_in_the_order_of_their_queue,
      new_data_of_a_candidate_are_reported_at_its_place,
      roster_of_an_election_follows_its_candidates,
      reconnect_reports_only_changes, roster_survives_the_expiry_of_its_session,
      roster_is_complete_after_a_failed_allocation,
      callback_may_free_the_roster_or_the_client, closed_client_ends_the_roster,
      roster_is_read_once, read_of_a_roster_has_a_deadline,
      read_of_a_roster_continues_on_the_next_connection,
      client_may_be_freed_when_a_roster_was_read)
