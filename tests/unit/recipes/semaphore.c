/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/semaphore.h>

#include <stdio.h>

/* Semaphores of two permits on one server. Each handle belongs to another
 * session. */

enum { CLIENTS = 4 };

static model_server server;
static test_client clients[CLIENTS];
static locker l[CLIENTS];
static int32_t permits;
static int32_t take;
static const char *limit_path;
static lk_layout layout;
static lk_semaphore_history *memory;
static const char *dir = "/s";
static const char *queue = "/s/locks";
static const char *leases = "/s/leases";
static lk_lock_event_type freeing_event =
    LK_LOCK_EVENT_UNSURE; /* the event in whose callback l[0] is freed */

static void on_event(lk_lock *lock, const lk_lock_event *e, void *arg)
{
  lk_lock_event copy = *e;

  if (e->type == LK_LOCK_EVENT_WAITING && e->node == NULL)
    copy.node = "permits...";
  locker_on_event(lock, &copy, arg);
  if (arg == &l[0] && e->type == freeing_event) {
    lk_lock_free(lock);
    l[0].lock = NULL;
  }
}

static bool try_init(locker *x, test_client *p)
{
  lk_lock_config config = {
      .size = sizeof config, .layout = layout, .on_event = on_event, .arg = x};
  lk_semaphore_config options = {.size = sizeof options,
                                 .permits = permits,
                                 .take = take,
                                 .limit_path = limit_path,
                                 .history = memory};

  locker_clear(x, p);
  return lk_semaphore_new(&x->lock, p->link->client, dir, &config, &options) ==
         0;
}

/* As kazoo leaves them where it says how many. */
static void make_dirs(void)
{
  char number[12];

  snprintf(number, sizeof number, "%d", (int)permits);
  model_create(&server, "/s");
  model_create(&server, queue);
  if (layout == LK_LAYOUT_KAZOO)
    model_set(&server, "/s", number);
  else
    model_create(&server, leases);
}

static void begin(int32_t n)
{
  permits = n;
  take = 1;
  limit_path = NULL;
  freeing_event = LK_LOCK_EVENT_UNSURE; /* this event does not occur */
  model_init(&server);
  make_dirs();
  for (int i = 0; i < CLIENTS; i++) {
    test_client_init(&clients[i], &server, NULL);
    ck_assert(try_init(&l[i], &clients[i]));
  }
  model_turn(&server);
}

static size_t left(void)
{
  return model_children(&server, queue) + model_children(&server, leases);
}

static void end(void)
{
  for (int i = 0; i < CLIENTS; i++)
    locker_free(&l[i]);
  model_run(&server, T);
  ck_assert_uint_eq(left(), 0);
  for (int i = 0; i < CLIENTS; i++)
    test_client_free(&clients[i]);
  model_done(&server);
}

/* Makes handle `i` again; it acquires `n` permits at a time. */
static void change(int i, int32_t n)
{
  locker_free(&l[i]);
  take = n;
  ck_assert(try_init(&l[i], &clients[i]));
}

static void start_acquire(int i)
{
  ck_assert_int_eq(locker_acquire(&l[i], -1), 0);
  model_turn(&server);
}

static void get(int i)
{
  start_acquire(i);
  ck_assert_int_eq(l[i].acquired, 0);
}

static void release_lock(int i)
{
  locker_release(&l[i]);
  model_turn(&server);
  ck_assert_int_eq(l[i].released, 0);
}

/* ---- how many ---------------------------------------------------------- */

START_TEST(number_of_holders_is_the_number_of_permits)
{
  begin(2);
  get(0);
  get(1);
  start_acquire(2);
  start_acquire(3);
  ck_assert_int_eq(l[2].acquired, NOT_YET);
  ck_assert_int_eq(l[3].acquired, NOT_YET);
  ck_assert(locker_check_events(&l[2], "waiting 1 permits...\n"));
  release_lock(1);
  ck_assert_int_eq(l[2].acquired, 0);
  ck_assert_int_eq(l[3].acquired, NOT_YET);
  release_lock(0);
  ck_assert_int_eq(l[3].acquired, 0);
  end();
}
END_TEST

START_TEST(waiter_that_is_not_first_takes_no_permit)
{
  begin(1);
  get(0);
  start_acquire(1);
  start_acquire(2);
  /* The permit of the holder, and the one that the first in the queue has
   * created. */
  ck_assert_uint_eq(model_children(&server, leases), 2);
  ck_assert_uint_eq(model_children(&server, queue), 2);
  end();
}
END_TEST

/* The list of permits is answered before the create of the queue node. */
START_TEST(contender_that_is_first_late_is_notified_that_it_waits)
{
  begin(1);
  get(0);
  model_delete(&server, queue);
  start_acquire(1);
  ck_assert_uint_eq(model_children(&server, leases), 2);
  ck_assert(locker_check_events(&l[1], "waiting 1 permits...\n"));
  release_lock(0);
  ck_assert_int_eq(l[1].acquired, 0);
  end();
}
END_TEST

START_TEST(first_queue_node_does_not_prove_itself)
{
  begin(1);
  get(0);
  start_acquire(1);
  start_acquire(2);
  clients[2].link->log[0] = '\0';
  release_lock(0);
  ck_assert_int_eq(l[1].acquired, 0);
  /* It is first now: the create of its permit is proof. */
  ck_assert_uint_eq(model_children(&server, queue), 1);
  ck_assert(strncmp(clients[2].link->log, "create2 getChildren2", 20) == 0);
  ck_assert_uint_eq(model_count(clients[2].link, "multi"), 0);
  release_lock(1);
  ck_assert_int_eq(l[2].acquired, 0);
  ck_assert_uint_eq(model_count(clients[2].link, "multi"), 0);
  end();
}
END_TEST

START_TEST(several_permits_are_acquired_together)
{
  begin(3);
  change(0, 2);
  change(1, 2);
  get(0);
  ck_assert_uint_eq(model_children(&server, leases), 2);
  get(2);
  start_acquire(1);
  ck_assert_int_eq(l[1].acquired, NOT_YET);
  release_lock(2);
  ck_assert_int_eq(l[1].acquired, NOT_YET);
  release_lock(0);
  ck_assert_int_eq(l[1].acquired, 0);
  end();
}
END_TEST

START_TEST(two_contenders_for_all_permits_do_not_deadlock)
{
  begin(2);
  change(0, 2);
  change(1, 2);
  ck_assert_int_eq(locker_acquire(&l[0], -1), 0);
  ck_assert_int_eq(locker_acquire(&l[1], -1), 0);
  model_turn(&server);
  int first = l[0].acquired == 0 ? 0 : 1;

  ck_assert_int_eq(l[first].acquired, 0);
  ck_assert_int_eq(l[1 - first].acquired, NOT_YET);
  release_lock(first);
  ck_assert_int_eq(l[1 - first].acquired, 0);
  end();
}
END_TEST

/* Handle `i` tries in vain: l[0] holds, and l[1] is first in the queue. */
static void try_and_fail(int i)
{
  ck_assert_int_eq(locker_acquire(&l[i], 0), 0);
  model_turn(&server);
  ck_assert_int_eq(l[i].acquired, LK_ERR_BUSY);
}

START_TEST(after_three_failures_the_queue_node_is_created_first)
{
  begin(1);
  get(0);
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
  get(2); /* no other contender is left, so it is granted */
  release_lock(2);
  clients[2].link->log[0] = '\0';
  get(2);
  ck_assert_uint_eq(model_count(clients[2].link, "create2"), 2);
  ck_assert_ptr_nonnull(
      strstr(clients[2].link->log, "create2 getChildren2 create2"));
  end();
}
END_TEST

/* A program that makes a handle for each acquire. */
START_TEST(next_handle_does_not_create_the_directories_again)
{
  lk_semaphore_history shared = {0};

  begin(1);
  get(0);
  start_acquire(1);
  for (int i = 0; i < 4; i++) {
    memory = &shared;
    change(2, 1);
    clients[2].link->log[0] = '\0';
    try_and_fail(2);
    memory = NULL;
    ck_assert_uint_eq(shared.failures, i < 3 ? (unsigned)i + 1 : 3);
    ck_assert_uint_eq(model_count(clients[2].link, "create2"), i < 3 ? 2 : 1);
  }
  locker_free(&l[2]);
  change(3, 1);
  clients[3].link->log[0] = '\0';
  try_and_fail(3); /* the history is kept for each client */
  ck_assert_uint_eq(model_count(clients[3].link, "create2"), 2);
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
  for (int beyond = 0; beyond < 4; beyond++) {
    options.permits = 1000000 + beyond % 2;
    options.take = 1000 + beyond / 2;
    ck_assert_int_eq(
        lk_semaphore_new(&x, clients[0].link->client, "/s", NULL, &options),
        beyond == 0 ? 0 : LK_ERR_BAD_ARGUMENT);
    lk_lock_free(x);
  }
  end();
}
END_TEST

/* ---- a number that changes --------------------------------------------- */

START_TEST(number_of_permits_is_read_from_a_node)
{
  begin(1);
  model_create(&server, "/n");
  limit_path = "/n/limit";
  for (int i = 0; i < 3; i++)
    change(i, 1);
  get(0); /* the limit node was missing, and is created with the number 1 */
  start_acquire(1);
  ck_assert_int_eq(l[1].acquired, NOT_YET);
  ck_assert_ptr_nonnull(model_node(&server, "/n/limit"));
  /* model_set() takes text, so no byte may be 0 */
  model_set(&server, "/n/limit", "\x7f\x01\x01\x01");
  model_turn(&server);
  ck_assert_int_eq(l[1].acquired, 0);
  get(2);
  end();
}
END_TEST

static void grow_before_count(model_server *s, model_link *link, int32_t op,
                              const char *path)
{
  if (op != 12 || link != clients[1].link || strcmp(path, leases) != 0)
    return;
  model_set(s, "/n/limit", "\x7f\x01\x01\x01");
  s->before = NULL;
}

/* The event of the new limit arrives after the reply with the count, and before
 * the reply to the request that follows. */
START_TEST(increase_during_the_count_of_permits_is_not_missed)
{
  begin(1);
  model_create(&server, "/n");
  limit_path = "/n/limit";
  for (int i = 0; i < 2; i++)
    change(i, 1);
  get(0);
  server.before = grow_before_count;
  start_acquire(1);
  ck_assert(server.before == NULL);
  ck_assert_int_eq(l[1].acquired, 0);
  end();
}
END_TEST

static void begin_limited(void)
{
  begin(1);
  model_create(&server, "/n");
  limit_path = "/n/limit";
  for (int i = 0; i < 3; i++)
    change(i, 1);
}

/* The watch of the limit node ends with the session. In the new session the
 * waiter starts again and reads the limit. */
START_TEST(limit_node_is_watched_in_a_new_session)
{
  begin_limited();
  get(0);
  start_acquire(1);
  model_expire(&server, clients[1].link->session);
  model_drop(clients[1].link);
  model_run(&server, T / 4);
  ck_assert_int_eq(l[1].acquired, NOT_YET);
  model_set(&server, "/n/limit", "\x7f\x01\x01\x01");
  model_turn(&server);
  ck_assert_int_eq(l[1].acquired, 0);
  end();
}
END_TEST

static void set_limit(unsigned char n)
{
  const unsigned char bytes[] = {0, 0, 0, n};

  ck_assert_int_eq(lk_set(clients[0].link->client, "/n/limit",
                          lk_bytes_of(bytes, sizeof bytes), -1, NULL, NULL,
                          NULL),
                   0);
  model_turn(&server);
}

/* A permit is released between the event and the read of the new limit. */
START_TEST(waiter_is_not_granted_by_the_old_number_of_permits)
{
  begin_limited();
  get(0);
  set_limit(2);
  get(1);
  start_acquire(2);
  clients[2].link->requests = 0;
  clients[2].link->throttle_at = 1;
  set_limit(1);
  release_lock(0);
  model_run(&server, T / 4);
  ck_assert_int_eq(l[2].acquired, NOT_YET);
  release_lock(1);
  model_run(&server, T / 4);
  ck_assert_int_eq(l[2].acquired, 0);
  end();
}
END_TEST

START_TEST(throttled_read_of_the_limit_is_repeated)
{
  for (unsigned at = 1; at <= 6; at++) {
    begin_limited();
    get(0);
    release_lock(0);
    clients[1].link->requests = 0;
    clients[1].link->throttle_at = at;
    start_acquire(1);
    model_run(&server, T / 2);
    ck_assert_int_eq(l[1].acquired, 0);
    end();
  }
}
END_TEST

/* The limit is read with each acquire. If it has changed, the first count is
 * repeated. */
START_TEST(unchanged_limit_costs_no_second_count)
{
  begin_limited();
  char *log = clients[0].link->log;

  get(0);
  release_lock(0);
  *log = '\0';
  get(0);
  ck_assert_str_eq(log, "getData create2 getChildren2 create2 getChildren2 | "
                        "removeWatches delete removeWatches");
  release_lock(0);
  *log = '\0';
  model_set(&server, "/n/limit", "\x7f\x01\x01\x01");
  get(0);
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
  ck_assert_int_eq(l[0].acquired, 0);
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
  change(0, 1);
  model_set(&server, "/n", "many");
  get(0);
  release_lock(0);
  model_set(&server, "/n", "too many");
  start_acquire(0);
  ck_assert_int_eq(l[0].acquired, LK_ERR_MARSHALLING);
  limit_path = "/x/y";
  change(0, 1);
  start_acquire(0);
  ck_assert_int_eq(l[0].acquired, LK_ERR_NO_NODE);
  end();
}
END_TEST

static int refusal;
static unsigned refused;

/* Refuses the create of the limit node, or of the semaphore's path, for some
 * time. */
static void refuse_number(model_server *s, model_link *link, int32_t op,
                          const char *path)
{
  (void)s;
  if (op != 1 || link != clients[0].link || refused == 500 ||
      strcmp(path, layout == LK_LAYOUT_KAZOO ? "/s" : "/n/limit") != 0)
    return;
  link->answer_at = link->requests;
  link->answer_err = refusal;
  refused++;
}

START_TEST(refused_create_of_the_limit_node_fails_the_acquire)
{
  static const int errors[] = {
      LK_ERR_NO_AUTH, LK_ERR_NO_CHILDREN_FOR_EPHEMERALS, LK_ERR_INVALID_ACL,
      LK_ERR_QUOTA_EXCEEDED, LK_ERR_BAD_ARGUMENT};

  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    begin_limited();
    refusal = errors[i];
    refused = 0;
    server.before = refuse_number;
    start_acquire(0);
    ck_assert_int_eq(l[0].acquired, refusal);
    ck_assert_uint_eq(refused, 1);
    end();
  }
}
END_TEST

/* The request is repeated after a pause, not at once. */
START_TEST(throttled_create_of_the_limit_node_is_repeated_after_a_pause)
{
  begin_limited();
  refusal = LK_ERR_THROTTLED;
  refused = 0;
  server.before = refuse_number;
  start_acquire(0);
  ck_assert_uint_eq(refused, 1);
  model_run(&server, T / 2);
  ck_assert_int_eq(l[0].acquired, NOT_YET);
  ck_assert_uint_ge(refused, 5);
  ck_assert_uint_le(refused, T / 2 / 50);
  server.before = NULL;
  model_run(&server, T / 4);
  ck_assert_int_eq(l[0].acquired, 0);
  end();
}
END_TEST

/* A read of this path is as long as the client may send, so the create is too
 * long. */
START_TEST(limit_node_too_long_to_create_fails_the_acquire)
{
  static char path[201];
  lk_client_config cc = {.size = sizeof cc,
                         .session_timeout_ms = T,
                         .send_limit = 8 + 4 + 200 + 1};
  locker x;
  test_client p;

  begin(1);
  memset(path, 'n', 200);
  path[0] = '/';
  limit_path = path;
  memset(&p, 0, sizeof p);
  failing_mem_init(&p.mem);
  cc.mem = &p.mem.mem;
  p.link = model_client(&server, &cc);
  ck_assert(try_init(&x, &p));
  model_turn(&server);
  ck_assert_int_eq(locker_acquire(&x, -1), 0);
  model_turn(&server);
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
  change(1, 2);
  get(0);
  start_acquire(1);
  model_run(&server, T / 2);
  model_set(&server, model_child(&server, leases, 1), "__REVOKE__");
  model_turn(&server);
  ck_assert_ptr_null(strstr(l[1].events, "revoked"));
  release_lock(0);
  ck_assert_int_eq(l[1].acquired, 0);
  ck_assert_ptr_nonnull(strstr(l[1].events, "revoked\n"));
  end();
}
END_TEST

/* ---- not at all -------------------------------------------------------- */

START_TEST(timed_out_waiter_leaves_no_node)
{
  begin(1);
  get(0);
  ck_assert_int_eq(locker_acquire(&l[1], 100), 0);
  ck_assert_int_eq(locker_acquire(&l[2], 100), 0);
  model_run(&server, 150);
  ck_assert_int_eq(l[1].acquired, LK_ERR_DEADLINE);
  ck_assert_int_eq(l[2].acquired, LK_ERR_DEADLINE);
  ck_assert_uint_eq(left(), 1);
  end();
}
END_TEST

/* Requests two permits while another handle holds one. Request number `busy` is
 * throttled, and the connection breaks with the reply to request `cut` (0: not
 * at all). */
static void acquire_two_with_faults(unsigned busy, unsigned cut)
{
  begin(2);
  change(0, 2);
  get(1);
  clients[0].link->requests = 0;
  clients[0].link->throttle_at = busy;
  clients[0].link->cut_at = cut;
  clients[0].link->cut_after = true;
  start_acquire(0);
  model_run(&server, T / 2);
  ck_assert_int_eq(l[0].acquired, NOT_YET);
  release_lock(1);
  model_run(&server, T / 2);
  ck_assert_int_eq(l[0].acquired, 0);
  ck_assert_uint_eq(left(), 2);
  end();
}

/* The permit whose list is counted may exist before another permit of the same
 * acquire. */
START_TEST(permits_created_late_by_a_throttling_server_are_counted)
{
  for (unsigned busy = 1; busy <= 8; busy++)
    acquire_two_with_faults(busy, 0);
}
END_TEST

/* After a break the own permit is recovered by a list. That list is not used
 * for the count if another permit did not exist yet. */
START_TEST(permits_created_after_a_break_are_counted)
{
  for (unsigned busy = 1; busy <= 6; busy++) {
    for (unsigned cut = busy + 1; cut <= 8; cut++)
      acquire_two_with_faults(busy, cut);
  }
}
END_TEST

START_TEST(semaphore_may_be_freed_when_its_queue_node_is_lost)
{
  begin(1);
  get(1);
  freeing_event = LK_LOCK_EVENT_PLACE_LOST;
  start_acquire(0);
  model_expire(&server, clients[0].link->session);
  model_drop(clients[0].link);
  model_run(&server, T / 4);
  ck_assert_ptr_null(l[0].lock);
  ck_assert_int_eq(l[0].acquired, LK_ERR_CLOSED);
  end();
}
END_TEST

/* ---- kazoo's ----------------------------------------------------------- */

static const sim_node *node(const char *path)
{
  return model_node(&server, path);
}

static void kazoo(void)
{
  layout = LK_LAYOUT_KAZOO;
  dir = "/s";
  queue = "/s-__lock__";
  leases = "/s";
}

START_TEST(kazoo_node_holds_the_limit_in_decimal)
{
  permits = 12;
  take = 1;
  limit_path = NULL;
  model_init(&server);
  for (int i = 0; i < CLIENTS; i++) {
    test_client_init(&clients[i], &server, NULL);
    ck_assert(try_init(&l[i], &clients[i]));
  }
  model_turn(&server);
  clients[0].link->log[0] = '\0';
  get(0);
  ck_assert(model_check_log(
      clients[0].link,
      "getData create2 getChildren2 create2 getChildren2 | create getData "
      "create create2 getChildren2 create create2 getChildren2 | "
      "removeWatches delete"));
  ck_assert_int_eq(node("/s")->stat.data_length, 2);
  ck_assert(memcmp(node("/s")->data, "12", 2) == 0);
  ck_assert(!node("/s")->container && !node("/s-__lock__")->container);
  ck_assert_int_eq(node("/s-__lock__")->stat.data_length, 0);
  const char *lease = model_child(&server, "/s", 0);

  ck_assert_uint_eq(strlen(lease), strlen("/s/") + 32);
  ck_assert_uint_eq(strspn(lease + 3, "0123456789abcdef"), 32);
  ck_assert_int_ne(node(lease)->stat.ephemeral_owner, 0);
  ck_assert_uint_eq(lk_lock_token(l[0].lock),
                    (uint64_t)node(lease)->stat.czxid);
  end();
}
END_TEST

START_TEST(another_limit_in_the_kazoo_node_fails_and_leaves_nothing)
{
  begin(2);
  model_set(&server, "/s", "3");
  start_acquire(0);
  ck_assert_int_eq(l[0].acquired, LK_ERR_OTHER_LIMIT);
  model_turn(&server);
  ck_assert_uint_eq(left(), 0);
  model_set(&server, "/s", "20000000000000000000");
  start_acquire(0);
  ck_assert_int_eq(l[0].acquired, LK_ERR_OTHER_LIMIT);
  model_set(&server, "/s", " \t\r\n3 \t\r\n");
  start_acquire(0);
  ck_assert_int_eq(l[0].acquired, LK_ERR_OTHER_LIMIT);
  model_set(&server, "/s", " 2\n");
  get(0);
  end();
}
END_TEST

/* Whichever request creates the node: the one for the limit, or the one for the
 * permits. */
START_TEST(kazoo_node_below_missing_parents_holds_the_limit)
{
  permits = 2;
  take = 1;
  limit_path = NULL;
  dir = "/far/off/s";
  queue = "/far/off/s-__lock__";
  leases = dir;
  model_init(&server);
  for (int i = 0; i < CLIENTS; i++) {
    test_client_init(&clients[i], &server, NULL);
    ck_assert(try_init(&l[i], &clients[i]));
  }
  model_turn(&server);
  get(0);
  ck_assert_int_eq(node(dir)->stat.data_length, 1);
  ck_assert(memcmp(node(dir)->data, "2", 1) == 0);
  end();
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
  ck_assert_int_eq(l[0].acquired, NOT_YET);
  model_run(&server, T / 4);
  ck_assert_int_eq(l[0].acquired, LK_ERR_OTHER_LIMIT);
  end();
}
END_TEST

START_TEST(kazoo_node_without_a_number_sets_no_limit)
{
  static const char *const texts[] = {"", "many", "2.0", "-2", "0x2", " "};

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    begin(2);
    model_set(&server, "/s", texts[i]);
    get(0);
    get(1);
    start_acquire(2);
    ck_assert_int_eq(l[2].acquired, NOT_YET);
    end();
  }
}
END_TEST

START_TEST(permits_of_kazoo_are_counted)
{
  begin(1);
  model_create(&server, "/s/0123456789abcdef0123456789abcdef");
  start_acquire(0);
  ck_assert(locker_check_events(&l[0], "waiting 1 permits...\n"));
  model_delete(&server, "/s/0123456789abcdef0123456789abcdef");
  model_turn(&server);
  ck_assert_int_eq(l[0].acquired, 0);
  end();
}
END_TEST

/* The contender of kazoo may create its permit at any time, so it counts as a
 * predecessor. */
START_TEST(queue_node_of_kazoo_is_a_predecessor)
{
  begin(1);
  model_create(&server, "/s-__lock__/0123__lock__0000000000");
  start_acquire(0);
  ck_assert_int_eq(l[0].acquired, NOT_YET);
  ck_assert_uint_eq(model_children(&server, "/s"), 0);
  model_create(&server, "/s/0123456789abcdef0123456789abcdef");
  model_delete(&server, "/s-__lock__/0123__lock__0000000000");
  model_turn(&server);
  ck_assert_int_eq(l[0].acquired, NOT_YET);
  model_delete(&server, "/s/0123456789abcdef0123456789abcdef");
  model_turn(&server);
  ck_assert_int_eq(l[0].acquired, 0);
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
  options.limit_path = NULL;
  config.layout = LK_LAYOUT_NATIVE;
  ck_assert_int_eq(
      lk_semaphore_new(&x, clients[0].link->client, "/s", &config, &options),
      LK_ERR_BAD_ARGUMENT);
  end();
}
END_TEST

/* ---- all --------------------------------------------------------------- */

/* Tests that are run with both layouts. */
#define EITHER_LAYOUT                                          \
  number_of_holders_is_the_number_of_permits,                  \
      waiter_that_is_not_first_takes_no_permit,                \
      contender_that_is_first_late_is_notified_that_it_waits,  \
      first_queue_node_does_not_prove_itself,                  \
      several_permits_are_acquired_together,                   \
      two_contenders_for_all_permits_do_not_deadlock,          \
      after_three_failures_the_queue_node_is_created_first,    \
      next_handle_does_not_create_the_directories_again,       \
      timed_out_waiter_leaves_no_node,                         \
      permits_created_late_by_a_throttling_server_are_counted, \
      permits_created_after_a_break_are_counted,               \
      semaphore_may_be_freed_when_its_queue_node_is_lost

SUITE("semaphore", EITHER_LAYOUT, number_of_permits_is_read_from_a_node,
      increase_during_the_count_of_permits_is_not_missed,
      limit_node_is_watched_in_a_new_session,
      waiter_is_not_granted_by_the_old_number_of_permits,
      throttled_read_of_the_limit_is_repeated,
      unchanged_limit_costs_no_second_count, repeated_list_leaves_no_watch,
      limit_node_without_a_number_fails_the_acquire,
      refused_create_of_the_limit_node_fails_the_acquire,
      throttled_create_of_the_limit_node_is_repeated_after_a_pause,
      limit_node_too_long_to_create_fails_the_acquire,
      revocation_of_one_permit_is_reported_when_all_are_held,
      invalid_numbers_of_permits_are_refused)

SUITE_WITH("semaphore_kazoo", kazoo, EITHER_LAYOUT,
           kazoo_node_holds_the_limit_in_decimal,
           another_limit_in_the_kazoo_node_fails_and_leaves_nothing,
           kazoo_node_without_a_number_sets_no_limit,
           kazoo_node_below_missing_parents_holds_the_limit,
           no_permit_is_granted_before_the_limit_is_known,
           permits_of_kazoo_are_counted, queue_node_of_kazoo_is_a_predecessor,
           options_that_kazoo_lacks_are_refused)
