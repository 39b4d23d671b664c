/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/semaphore.h>

#include <stdio.h>

/* Semaphores on one server. Each handle belongs to another session. */

enum { CLIENTS = 4 };

static model_server server;
static test_client clients[CLIENTS];
static locker handle[CLIENTS];

/* The options of handles that are made from now on. */
static lk_layout layout;
static int32_t permits;
static int32_t take;
static const char *limit_path;

/* The paths in this layout: of the semaphore, and of the directories of the
 * queue and of the permits. */
static const char *semaphore = "/s";
static const char *queue = "/s/locks";
static const char *permit_dir = "/s/leases";

/* locker_on_event() prints the last ten characters of a node's path. This text
 * stands for the path of a waiter that waits for permits, not for a node. */
#define FOR_PERMITS "permits..."

static void on_event(lk_lock *lock, const lk_lock_event *e, void *arg)
{
  lk_lock_event copy = *e;

  if (e->type == LK_LOCK_EVENT_WAITING && e->node == NULL)
    copy.node = FOR_PERMITS;
  locker_on_event(lock, &copy, arg);
}

static bool try_init(locker *x, test_client *p)
{
  lk_lock_config config = {
      .size = sizeof config, .layout = layout, .on_event = on_event, .arg = x};
  lk_semaphore_config options = {.size = sizeof options,
                                 .permits = permits,
                                 .take = take,
                                 .limit_path = limit_path};

  locker_clear(x, p);
  return lk_semaphore_new(&x->lock, p->link->client, semaphore, &config,
                          &options) == 0;
}

/* Creates the directories. Kazoo keeps the number of permits in the data of the
 * semaphore's node. */
static void make_dirs(void)
{
  char number[12];

  snprintf(number, sizeof number, "%d", (int)permits);
  model_create(&server, "/s");
  model_create(&server, queue);
  if (layout == LK_LAYOUT_KAZOO)
    model_set(&server, "/s", number);
  else
    model_create(&server, permit_dir);
}

static void make_clients(void)
{
  for (int i = 0; i < CLIENTS; i++) {
    test_client_init(&clients[i], &server, NULL);
    ck_assert(try_init(&handle[i], &clients[i]));
  }
  model_turn(&server);
}

static void begin(int32_t permit_count)
{
  permits = permit_count;
  take = 1;
  limit_path = NULL;
  model_init(&server);
  make_dirs();
  make_clients();
}

static size_t count_nodes(void)
{
  return model_children(&server, queue) + model_children(&server, permit_dir);
}

static void end(void)
{
  for (int i = 0; i < CLIENTS; i++)
    locker_free(&handle[i]);
  model_run(&server, T);
  ck_assert_uint_eq(count_nodes(), 0);
  for (int i = 0; i < CLIENTS; i++)
    test_client_free(&clients[i]);
  model_done(&server);
}

/* Makes a handle that acquires `permits_at_once`, with the current options. */
static void make_handle_again(int i, int32_t permits_at_once)
{
  locker_free(&handle[i]);
  take = permits_at_once;
  ck_assert(try_init(&handle[i], &clients[i]));
}

static void start_acquire(int i)
{
  locker_request(&handle[i]);
}

static void acquire_at_once(int i)
{
  start_acquire(i);
  ck_assert_int_eq(handle[i].acquired, 0);
}

static void release_lock(int i)
{
  locker_release(&handle[i]);
  model_turn(&server);
  ck_assert_int_eq(handle[i].released, 0);
}

/* ---- the number of holders --------------------------------------------- */

START_TEST(number_of_holders_is_the_number_of_permits)
{
  begin(2);
  acquire_at_once(0);
  acquire_at_once(1);
  start_acquire(2);
  start_acquire(3);
  ck_assert_int_eq(handle[2].acquired, NOT_YET);
  ck_assert_int_eq(handle[3].acquired, NOT_YET);
  ck_assert(locker_check_events(&handle[2], "waiting 1 " FOR_PERMITS "\n"));
  release_lock(1);
  ck_assert_int_eq(handle[2].acquired, 0);
  ck_assert_int_eq(handle[3].acquired, NOT_YET);
  release_lock(0);
  ck_assert_int_eq(handle[3].acquired, 0);
  end();
}
END_TEST

START_TEST(waiter_that_is_not_first_takes_no_permit)
{
  begin(1);
  acquire_at_once(0);
  start_acquire(1);
  start_acquire(2);
  /* The permit of the holder, and the one that the first in the queue has
   * created. */
  ck_assert_uint_eq(model_children(&server, permit_dir), 2);
  ck_assert_uint_eq(model_children(&server, queue), 2);
  end();
}
END_TEST

/* The list of permits is answered before the create of the queue node. */
START_TEST(contender_with_a_late_queue_node_is_notified_that_it_waits)
{
  begin(1);
  acquire_at_once(0);
  model_delete(&server, queue);
  start_acquire(1);
  ck_assert_uint_eq(model_children(&server, permit_dir), 2);
  ck_assert(locker_check_events(&handle[1], "waiting 1 " FOR_PERMITS "\n"));
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

START_TEST(contender_that_becomes_first_sends_no_check)
{
  begin(1);
  acquire_at_once(0);
  start_acquire(1);
  start_acquire(2);
  clients[2].link->log[0] = '\0';
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, 0);
  /* handle[2] is first now. It creates its permit without a check (a multi) of
   * its queue node. */
  ck_assert_uint_eq(model_children(&server, queue), 1);
  ck_assert(strncmp(clients[2].link->log, "create2 getChildren2", 20) == 0);
  ck_assert_uint_eq(model_count(clients[2].link, "multi"), 0);
  release_lock(1);
  ck_assert_int_eq(handle[2].acquired, 0);
  ck_assert_uint_eq(model_count(clients[2].link, "multi"), 0);
  end();
}
END_TEST

START_TEST(several_permits_are_acquired_together)
{
  begin(3);
  make_handle_again(0, 2);
  make_handle_again(1, 2);
  acquire_at_once(0);
  ck_assert_uint_eq(model_children(&server, permit_dir), 2);
  acquire_at_once(2);
  start_acquire(1);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  release_lock(2);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

/* The acquire fails: handle[0] holds, and handle[1] is first in the queue. */
static void try_and_fail(int i)
{
  ck_assert_int_eq(locker_try(&handle[i]), 0);
  model_turn(&server);
  ck_assert_int_eq(handle[i].acquired, LK_ERR_BUSY);
}

START_TEST(after_three_failures_the_queue_node_is_created_first)
{
  begin(1);
  acquire_at_once(0);
  start_acquire(1);
  for (int i = 0; i < 3; i++)
    try_and_fail(2);
  clients[2].link->log[0] = '\0';
  try_and_fail(2);
  ck_assert(model_check_log(clients[2].link,
                            layout == LK_LAYOUT_KAZOO
                                ? "getData create2 getChildren2 | delete"
                                : "create2 getChildren2 | delete"));
  release_lock(0);
  release_lock(1);
  acquire_at_once(2); /* no other contender is left, so it is granted */
  release_lock(2);
  clients[2].link->log[0] = '\0';
  acquire_at_once(2);
  ck_assert_uint_eq(model_count(clients[2].link, "create2"), 2);
  ck_assert_ptr_nonnull(
      strstr(clients[2].link->log, "create2 getChildren2 create2"));
  end();
}
END_TEST

START_TEST(invalid_numbers_of_permits_are_refused)
{
  lk_semaphore_config options = {.size = sizeof options};
  lk_lock *x;

  begin(1);
  ck_assert_int_eq(
      lk_semaphore_new(&x, clients[0].link->client, "/s", NULL, &options),
      LK_ERR_BAD_ARGUMENT);
  options.permits = 1;
  options.take = 2;
  ck_assert_int_eq(
      lk_semaphore_new(&x, clients[0].link->client, "/s", NULL, &options),
      LK_ERR_BAD_ARGUMENT);
  options.limit_path = "n";
  ck_assert_int_eq(
      lk_semaphore_new(&x, clients[0].link->client, "/s", NULL, &options),
      LK_ERR_BAD_PATH);
  options.limit_path = NULL;
  static const struct {
    int32_t permits;
    int32_t take;
    int err;
  } limits[] = {{1000000, 1000, 0},
                {1000001, 1000, LK_ERR_BAD_ARGUMENT},
                {1000000, 1001, LK_ERR_BAD_ARGUMENT}};

  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    options.permits = limits[i].permits;
    options.take = limits[i].take;
    ck_assert_int_eq(
        lk_semaphore_new(&x, clients[0].link->client, "/s", NULL, &options),
        limits[i].err);
    lk_lock_free(x);
  }
  end();
}
END_TEST

/* ---- a number that changes --------------------------------------------- */

/* A large number in the limit node: four bytes, big-endian. model_set() takes
 * text, so no byte may be 0. */
#define MANY_PERMITS "\x7f\x01\x01\x01"

/* Begins with one permit, whose number handles 0 to 2 read from a limit node.
 */
static void begin_limited(void)
{
  begin(1);
  model_create(&server, "/n");
  limit_path = "/n/limit";
  for (int i = 0; i < 3; i++)
    make_handle_again(i, 1);
}

START_TEST(number_of_permits_is_read_from_a_node)
{
  begin_limited();
  acquire_at_once(0); /* creates the limit node with the number 1 */
  start_acquire(1);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  ck_assert_ptr_nonnull(model_node(&server, "/n/limit"));
  model_set(&server, "/n/limit", MANY_PERMITS);
  model_turn(&server);
  ck_assert_int_eq(handle[1].acquired, 0);
  acquire_at_once(2);
  end();
}
END_TEST

static const char *next_limit; /* set before the count of permits */

static void set_limit_before_count(model_server *s, model_link *link,
                                   int32_t op, const char *path)
{
  if (op != LK_OPCODE_GET_CHILDREN2 || link != clients[1].link ||
      strcmp(path, permit_dir) != 0)
    return;
  model_set(s, "/n/limit", next_limit);
  s->before = NULL;
}

/* The event of the new limit arrives after the reply with the count, and before
 * the reply to the request that follows. */
START_TEST(increase_during_the_count_of_permits_is_not_missed)
{
  begin_limited();
  acquire_at_once(0);
  next_limit = MANY_PERMITS;
  server.before = set_limit_before_count;
  start_acquire(1);
  ck_assert(server.before == NULL);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

/* The watch of the limit node ends with the session. In the new session the
 * waiter starts again and reads the limit. */
START_TEST(limit_node_is_watched_in_a_new_session)
{
  begin_limited();
  acquire_at_once(0);
  start_acquire(1);
  model_expire(&server, clients[1].link->session);
  model_drop(clients[1].link);
  model_run(&server, T / 4);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  model_set(&server, "/n/limit", MANY_PERMITS);
  model_turn(&server);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

static void set_limit(unsigned char n)
{
  const unsigned char bytes[] = {0, 0, 0, n};
  const int32_t any_version = -1;

  ck_assert_int_eq(lk_set(clients[0].link->client, "/n/limit",
                          lk_bytes_of(bytes, sizeof bytes), any_version, NULL,
                          NULL, NULL),
                   0);
  model_turn(&server);
}

/* A permit is released between the event and the read of the new limit. */
START_TEST(waiter_is_not_granted_by_the_old_number_of_permits)
{
  begin_limited();
  acquire_at_once(0);
  set_limit(2);
  acquire_at_once(1);
  start_acquire(2);
  clients[2].link->requests = 0;
  clients[2].link->throttle_at = 1;
  set_limit(1);
  release_lock(0);
  model_run(&server, T / 4);
  ck_assert_int_eq(handle[2].acquired, NOT_YET);
  release_lock(1);
  model_run(&server, T / 4);
  ck_assert_int_eq(handle[2].acquired, 0);
  end();
}
END_TEST

/* The number -1 in the limit node: there are no permits. */
#define NO_PERMITS "\xff\xff\xff\xff"

/* The replies to the requests before the create of the permit arrive. */
static void lose_replies_from_create(model_server *s, model_link *link,
                                     int32_t op, const char *path)
{
  if (op != LK_OPCODE_CREATE2 || link != clients[1].link ||
      strncmp(path, permit_dir, strlen(permit_dir)) != 0)
    return;
  link->allow = lk__buf_len(&link->out);
  s->before = NULL;
}

/* The reply to the create of the permit is lost. So the own node is read after
 * the count, and the read of the limit completes in between. */
START_TEST(limit_lowered_before_the_own_node_is_read_prevents_the_grant)
{
  begin_limited();
  acquire_at_once(0);
  set_limit(2);
  acquire_at_once(1); /* the handle knows the limit from now on */
  release_lock(1);
  server.before = lose_replies_from_create;
  start_acquire(1);
  ck_assert(server.before == NULL);
  next_limit = NO_PERMITS;
  server.before = set_limit_before_count;
  model_drop(clients[1].link);
  clients[1].link->allow = SIZE_MAX;
  model_run(&server, T / 4);
  ck_assert(server.before == NULL);
  ck_assert_int_eq(handle[1].acquired, NOT_YET);
  set_limit(2);
  model_run(&server, T / 4);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

START_TEST(throttled_read_of_the_limit_is_repeated)
{
  for (unsigned at = 1; at <= 6; at++) {
    begin_limited();
    acquire_at_once(0);
    release_lock(0);
    clients[1].link->requests = 0;
    clients[1].link->throttle_at = at;
    start_acquire(1);
    model_run(&server, T / 2);
    ck_assert_int_eq(handle[1].acquired, 0);
    end();
  }
}
END_TEST

/* The limit is read with each acquire. If it has changed, the first count is
 * repeated. */
START_TEST(only_a_changed_limit_costs_a_second_count)
{
  begin_limited();
  char *log = clients[0].link->log;

  acquire_at_once(0);
  release_lock(0);
  *log = '\0';
  acquire_at_once(0);
  ck_assert_str_eq(log, "getData create2 getChildren2 create2 getChildren2 | "
                        "removeWatches delete removeWatches");
  release_lock(0);
  *log = '\0';
  model_set(&server, "/n/limit", MANY_PERMITS);
  acquire_at_once(0);
  ck_assert_str_eq(log, "getData create2 getChildren2 create2 getChildren2 | "
                        "create2 getChildren2 delete | "
                        "removeWatches delete removeWatches");
  end();
}
END_TEST

/* The create of the permit was throttled, and its list was not; both are
 * repeated. After the grant only the permit is watched. */
START_TEST(repeated_list_leaves_no_watch)
{
  begin(1);
  clients[0].link->requests = 0;
  clients[0].link->throttle_at = 3;
  start_acquire(0);
  model_run(&server, T / 2);
  ck_assert_int_eq(handle[0].acquired, 0);
  ck_assert_uint_eq(model_watches(clients[0].link), 1);
  ck_assert_uint_eq(sim_watches_of_conn(clients[0].link->conn, SIM_WATCH_DATA),
                    1);
  end();
}
END_TEST

START_TEST(limit_node_without_a_number_fails_the_acquire)
{
  begin(1);
  model_create(&server, "/n");
  limit_path = "/n";
  make_handle_again(0, 1);
  model_set(&server, "/n", "many");
  acquire_at_once(0);
  release_lock(0);
  model_set(&server, "/n", "too many");
  start_acquire(0);
  ck_assert_int_eq(handle[0].acquired, LK_ERR_MARSHALLING);
  limit_path = "/x/y";
  make_handle_again(0, 1);
  start_acquire(0);
  ck_assert_int_eq(handle[0].acquired, LK_ERR_NO_NODE);
  end();
}
END_TEST

static int create_err; /* with which the creates are refused */
static unsigned refused_creates;
/* A client that repeats the create without a pause gets no further. */
enum { MOST_REFUSALS = 500 };

/* Refuses the create of the node that holds the number of permits. */
static void refuse_create_of_limit(model_server *s, model_link *link,
                                   int32_t op, const char *path)
{
  (void)s;
  if (op != LK_OPCODE_CREATE || link != clients[0].link ||
      refused_creates == MOST_REFUSALS ||
      strcmp(path, layout == LK_LAYOUT_KAZOO ? "/s" : "/n/limit") != 0)
    return;
  link->answer_at = link->requests;
  link->answer_err = create_err;
  refused_creates++;
}

START_TEST(refused_create_of_the_limit_node_fails_the_acquire)
{
  static const int errors[] = {
      LK_ERR_NO_AUTH, LK_ERR_NO_CHILDREN_FOR_EPHEMERALS, LK_ERR_INVALID_ACL,
      LK_ERR_QUOTA_EXCEEDED, LK_ERR_BAD_ARGUMENT};

  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    begin_limited();
    create_err = errors[i];
    refused_creates = 0;
    server.before = refuse_create_of_limit;
    start_acquire(0);
    ck_assert_int_eq(handle[0].acquired, create_err);
    ck_assert_uint_eq(refused_creates, 1);
    end();
  }
}
END_TEST

/* The request is repeated after a pause, not at once. */
START_TEST(throttled_create_of_the_limit_node_is_repeated_after_a_pause)
{
  begin_limited();
  create_err = LK_ERR_THROTTLED;
  refused_creates = 0;
  server.before = refuse_create_of_limit;
  start_acquire(0);
  ck_assert_uint_eq(refused_creates, 1);
  model_run(&server, T / 2);
  ck_assert_int_eq(handle[0].acquired, NOT_YET);
  const unsigned shortest_pause_ms = 50;

  ck_assert_uint_ge(refused_creates, 5);
  ck_assert_uint_le(refused_creates, T / 2 / shortest_pause_ms);
  server.before = NULL;
  model_run(&server, T / 4);
  ck_assert_int_eq(handle[0].acquired, 0);
  end();
}
END_TEST

/* A read of this path is as long as the client may send, so the create is too
 * long. */
START_TEST(limit_node_too_long_to_create_fails_the_acquire)
{
  enum { PATH_LEN = 200 };

  static char path[PATH_LEN + 1];
  /* A getData request: header, length of the path, path, and watch. */
  lk_client_config cc = {.size = sizeof cc,
                         .session_timeout_ms = T,
                         .send_limit = 8 + 4 + PATH_LEN + 1};
  locker x;
  test_client p;

  begin(1);
  memset(path, 'n', PATH_LEN);
  path[0] = '/';
  limit_path = path;
  memset(&p, 0, sizeof p);
  failing_mem_init(&p.mem);
  cc.mem = &p.mem.mem;
  p.link = model_client(&server, &cc);
  ck_assert(try_init(&x, &p));
  model_turn(&server);
  locker_request(&x);
  ck_assert_int_eq(x.acquired, LK_ERR_TOO_BIG);
  locker_free(&x);
  model_turn(&server);
  test_client_free(&p);
  end();
}
END_TEST

/* The first of two permits is held. The second one, which is counted, waits. */
START_TEST(revocation_of_one_permit_is_reported_when_all_are_held)
{
  begin(2);
  make_handle_again(1, 2);
  acquire_at_once(0);
  start_acquire(1);
  model_run(&server, T / 2);
  model_set(&server, model_child(&server, permit_dir, 1), "__REVOKE__");
  model_turn(&server);
  ck_assert_ptr_null(strstr(handle[1].events, "revoked"));
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, 0);
  ck_assert_ptr_nonnull(strstr(handle[1].events, "revoked\n"));
  end();
}
END_TEST

/* ---- timeouts, faults and losses --------------------------------------- */

enum { NO_BREAK = 0 };

/* Requests two permits while another handle holds one. Request number
 * `throttled` is throttled, and the connection breaks with the reply to request
 * number `cut`, or NO_BREAK. */
static void acquire_two_with_faults(unsigned throttled, unsigned cut)
{
  begin(2);
  make_handle_again(0, 2);
  acquire_at_once(1);
  clients[0].link->requests = 0;
  clients[0].link->throttle_at = throttled;
  clients[0].link->cut_at = cut;
  clients[0].link->cut_after = true;
  start_acquire(0);
  model_run(&server, T / 2);
  ck_assert_int_eq(handle[0].acquired, NOT_YET);
  release_lock(1);
  model_run(&server, T / 2);
  ck_assert_int_eq(handle[0].acquired, 0);
  ck_assert_uint_eq(count_nodes(), 2);
  end();
}

/* The permit whose list is counted may exist before another permit of the same
 * acquire. */
START_TEST(permits_created_late_by_a_throttling_server_are_counted)
{
  for (unsigned throttled = 1; throttled <= 8; throttled++)
    acquire_two_with_faults(throttled, NO_BREAK);
}
END_TEST

/* After a break the own permit is recovered by a list. That list is not used
 * for the count if another permit did not exist yet. */
START_TEST(permits_created_after_a_break_are_counted)
{
  for (unsigned throttled = 1; throttled <= 6; throttled++) {
    for (unsigned cut = throttled + 1; cut <= 8; cut++)
      acquire_two_with_faults(throttled, cut);
  }
}
END_TEST

/* The watch on the directory of the permits reports nothing while the directory
 * may not be read. */
START_TEST(waiter_whose_permit_is_deleted_in_an_unreadable_directory_creates_it)
{
  const int32_t deny_nothing = 0;

  begin(1);
  acquire_at_once(0);
  start_acquire(1);
  model_run(&server, T / 2);
  model_deny(&server, permit_dir, LK_PERM_READ);
  model_delete(&server, model_child(&server, permit_dir, 1));
  model_deny(&server, permit_dir, deny_nothing);
  ck_assert_uint_eq(model_children(&server, permit_dir), 1);
  model_run(&server, T / 2);
  ck_assert_uint_eq(model_children(&server, permit_dir), 2);
  release_lock(0);
  ck_assert_int_eq(handle[1].acquired, 0);
  end();
}
END_TEST

/* ---- the layout of kazoo ------------------------------------------------ */

static const sim_node *node(const char *path)
{
  return model_node(&server, path);
}

/* Nodes as clients of kazoo create them. */
#define KAZOO_PERMIT     "/s/0123456789abcdef0123456789abcdef"
#define KAZOO_QUEUE_NODE "/s-__lock__/0123__lock__0000000000"

static void use_kazoo_layout(void)
{
  layout = LK_LAYOUT_KAZOO;
  semaphore = "/s";
  queue = "/s-__lock__";
  permit_dir = "/s";
}

START_TEST(another_limit_in_the_kazoo_node_fails_and_leaves_nothing)
{
  begin(2);
  model_set(&server, "/s", "3");
  start_acquire(0);
  ck_assert_int_eq(handle[0].acquired, LK_ERR_OTHER_LIMIT);
  model_turn(&server);
  ck_assert_uint_eq(count_nodes(), 0);
  model_set(&server, "/s", "20000000000000000000");
  start_acquire(0);
  ck_assert_int_eq(handle[0].acquired, LK_ERR_OTHER_LIMIT);
  model_set(&server, "/s", " \t\r\n3 \t\r\n");
  start_acquire(0);
  ck_assert_int_eq(handle[0].acquired, LK_ERR_OTHER_LIMIT);
  model_set(&server, "/s", " 2\n");
  acquire_at_once(0);
  end();
}
END_TEST

/* The create of the limit and the creates of permits may each create the node.
 */
START_TEST(kazoo_node_holds_the_limit_in_decimal)
{
  static const char *const paths[][2] = {{"/s", "/s-__lock__"},
                                         {"/far/off/s", "/far/off/s-__lock__"}};

  permits = 12;
  take = 1;
  limit_path = NULL;
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    semaphore = permit_dir = paths[i][0];
    queue = paths[i][1];
    model_init(&server);
    make_clients();
    acquire_at_once(0);
    ck_assert_int_eq(node(semaphore)->stat.data_length, 2);
    ck_assert(memcmp(node(semaphore)->data, "12", 2) == 0);
    ck_assert_int_eq(node(queue)->stat.data_length, 0);
    const char *permit = strrchr(model_child(&server, semaphore, 0), '/') + 1;

    ck_assert_uint_eq(strlen(permit), 32);
    ck_assert_uint_eq(strspn(permit, "0123456789abcdef"), 32);
    end();
  }
}
END_TEST

/* The server throttles the read of the limit, but no other request. */
START_TEST(no_permit_is_granted_before_the_limit_is_known)
{
  begin(2);
  model_set(&server, "/s", "3");
  clients[0].link->requests = 0;
  clients[0].link->throttle_at = 1;
  start_acquire(0);
  ck_assert_int_eq(handle[0].acquired, NOT_YET);
  model_run(&server, T / 4);
  ck_assert_int_eq(handle[0].acquired, LK_ERR_OTHER_LIMIT);
  end();
}
END_TEST

START_TEST(kazoo_node_without_a_number_sets_no_limit)
{
  static const char *const texts[] = {"", "many", "2.0", "-2", "0x2", " "};

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    begin(2);
    model_set(&server, "/s", texts[i]);
    acquire_at_once(0);
    acquire_at_once(1);
    start_acquire(2);
    ck_assert_int_eq(handle[2].acquired, NOT_YET);
    end();
  }
}
END_TEST

START_TEST(permits_of_kazoo_are_counted)
{
  begin(1);
  model_create(&server, KAZOO_PERMIT);
  start_acquire(0);
  ck_assert(locker_check_events(&handle[0], "waiting 1 " FOR_PERMITS "\n"));
  model_delete(&server, KAZOO_PERMIT);
  model_turn(&server);
  ck_assert_int_eq(handle[0].acquired, 0);
  end();
}
END_TEST

/* The contender of kazoo may create its permit at any time, so it counts as a
 * predecessor. */
START_TEST(queue_node_of_kazoo_is_a_predecessor)
{
  begin(1);
  model_create(&server, KAZOO_QUEUE_NODE);
  start_acquire(0);
  ck_assert_int_eq(handle[0].acquired, NOT_YET);
  ck_assert_uint_eq(model_children(&server, "/s"), 0);
  model_create(&server, KAZOO_PERMIT);
  model_delete(&server, KAZOO_QUEUE_NODE);
  model_turn(&server);
  ck_assert_int_eq(handle[0].acquired, NOT_YET);
  model_delete(&server, KAZOO_PERMIT);
  model_turn(&server);
  ck_assert_int_eq(handle[0].acquired, 0);
  end();
}
END_TEST

START_TEST(options_that_kazoo_lacks_are_refused)
{
  lk_lock_config config = {.size = sizeof config, .layout = LK_LAYOUT_KAZOO};
  lk_semaphore_config options = {
      .size = sizeof options, .permits = 1, .limit_path = "/n"};
  lk_lock *x;

  begin(1);
  ck_assert_int_eq(
      lk_semaphore_new(&x, clients[0].link->client, "/s", &config, &options),
      LK_ERR_BAD_ARGUMENT);
  end();
}
END_TEST

/* Tests that are run with both layouts. */
#define TESTS_OF_BOTH_LAYOUTS                                     \
  number_of_holders_is_the_number_of_permits,                     \
      waiter_that_is_not_first_takes_no_permit,                   \
      contender_with_a_late_queue_node_is_notified_that_it_waits, \
      contender_that_becomes_first_sends_no_check,                \
      several_permits_are_acquired_together,                      \
      after_three_failures_the_queue_node_is_created_first,       \
      permits_created_late_by_a_throttling_server_are_counted,    \
      permits_created_after_a_break_are_counted

/* The acquire is cancelled before its replies have arrived: the create and the
 * list that sets a watch have failed. The list of the cleanup, which follows,
 * sets a watch, too, before the reply to the first list. */
START_TEST(watch_of_a_cleanup_ends_with_it)
{
  enum { CREATE_OF_PERMIT = 3, LIST_OF_PERMITS = 4 };

  begin(1);
  clients[0].link->requests = 0;
  clients[0].link->answer_at = CREATE_OF_PERMIT;
  clients[0].link->answer_err = LK_ERR_REQUEST_TIMEOUT;
  clients[0].link->throttle_at = LIST_OF_PERMITS;
  clients[0].link->allow = 0;
  start_acquire(0);
  lk_lock_cancel(handle[0].lock);
  clients[0].link->allow = SIZE_MAX;
  model_run(&server, T);
  ck_assert_uint_eq(model_watches(clients[0].link), 0);
  end();
}
END_TEST

SUITE("semaphore", watch_of_a_cleanup_ends_with_it, TESTS_OF_BOTH_LAYOUTS,
      number_of_permits_is_read_from_a_node,
      increase_during_the_count_of_permits_is_not_missed,
      limit_node_is_watched_in_a_new_session,
      waiter_is_not_granted_by_the_old_number_of_permits,
      limit_lowered_before_the_own_node_is_read_prevents_the_grant,
      throttled_read_of_the_limit_is_repeated,
      only_a_changed_limit_costs_a_second_count, repeated_list_leaves_no_watch,
      limit_node_without_a_number_fails_the_acquire,
      refused_create_of_the_limit_node_fails_the_acquire,
      throttled_create_of_the_limit_node_is_repeated_after_a_pause,
      limit_node_too_long_to_create_fails_the_acquire,
      revocation_of_one_permit_is_reported_when_all_are_held,
      waiter_whose_permit_is_deleted_in_an_unreadable_directory_creates_it,
      invalid_numbers_of_permits_are_refused)

SUITE_WITH("semaphore_kazoo", use_kazoo_layout, TESTS_OF_BOTH_LAYOUTS,
           kazoo_node_holds_the_limit_in_decimal,
           another_limit_in_the_kazoo_node_fails_and_leaves_nothing,
           kazoo_node_without_a_number_sets_no_limit,
           no_permit_is_granted_before_the_limit_is_known,
           permits_of_kazoo_are_counted, queue_node_of_kazoo_is_a_predecessor,
           options_that_kazoo_lacks_are_refused)
