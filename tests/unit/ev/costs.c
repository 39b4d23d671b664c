/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * What each operation and each kind of lock costs a client that runs on libev:
 * requests, system calls, allocations. The server is the model, which this
 * thread serves between two turns of the loop. So the counts are exact.
 */

#include <latchkey/ev.h>
#include <latchkey/multi.h>
#include <latchkey/multilock.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>

#include <ev.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "support/model_server.h"
#include "support/suite.h"
#include "unit/fake/calls.h"
#include "unit/fake/names.h"
#include "unit/fake/sockets.h"

enum {
  WARM_UP = 3,      /* rounds that are not counted: memory grows */
  QUIET_TURNS = 3,  /* turns without a byte, after which nothing more comes */
  LONGEST_WAIT = 5, /* seconds for one step of a test */
  NOT_YET = 12345   /* stands for the result of what has not completed */
};

static struct ev_loop *loop;
static lk_ev *ev;
static model_server server;
static int listener;
static char hosts[32];
static size_t server_received, server_sent; /* bytes */

/* The only client, its connection at the server, and what it has got. */
static struct {
  lk_client *client;
  failing_mem mem;
  int fd;           /* the server's end of the connection */
  model_link *link; /* the same, of the model */
  int result;       /* of the last call, or NOT_YET */
  unsigned events;  /* of watches */
  char node[64];    /* the node that the last create has created */
  lk_lock *lock;
  lk_rwlock *rw; /* the read-write lock with `lock` as a side; or NULL */
} u;

/* ---- server and loop ----------------------------------------------------- */

/* Serve what the client has sent. false: it has sent nothing. */
static bool take_requests(void)
{
  char bytes[65536];
  ssize_t len = read(u.fd, bytes, sizeof bytes);

  if (len <= 0)
    return false;
  server_received += (size_t)len;
  model_take(u.link, lk_bytes_of(bytes, (size_t)len));
  return true;
}

/* Replies and events leave in one write. false: there are none. */
static bool send_replies(void)
{
  lk_buf *out = &u.link->out;
  size_t len = lk__buf_len(out);

  if (len == 0)
    return false;
  sockets_write(u.fd, lk__buf_bytes(out), len);
  server_sent += len;
  lk__buf_consume(out, len);
  return true;
}

static bool serve(void)
{
  bool received = take_requests();
  bool sent = send_replies();

  return received || sent;
}

/* Whether bytes are between a client and the server, which may take a while
 * even on loopback. */
static bool bytes_are_under_way(void)
{
  return calls.bytes_sent != server_received ||
         calls.bytes_received != server_sent;
}

/* Run until `*result` is set, and then until nothing more is sent. */
static void run_until(const int *result)
{
  time_t end = time(NULL) + LONGEST_WAIT;
  int quiet = 0;

  while (*result == NOT_YET || quiet < QUIET_TURNS) {
    ev_run(loop, EVRUN_NOWAIT);
    quiet = serve() || bytes_are_under_way() ? 0 : quiet + 1;
    ck_assert_int_le(time(NULL), end);
  }
}

static void settle(void)
{
  run_until(&(int){0});
}

/* ---- the client ---------------------------------------------------------- */

static void connect_client(void)
{
  const lk_client_config config = {.size = sizeof config,
                                   .hosts = hosts,
                                   .session_timeout_ms = 30000,
                                   .mem = &u.mem.mem};

  memset(&u, 0, sizeof u);
  failing_mem_init(&u.mem);
  ck_assert_int_eq(lk_ev_client_new(&u.client, ev, &config), 0);
  ev_run(loop, EVRUN_NOWAIT);
  u.fd = sockets_accept(listener);
  ck_assert_int_eq(fcntl(u.fd, F_SETFL, O_NONBLOCK), 0);
  u.link = model_accept(&server);
  for (time_t end = time(NULL) + LONGEST_WAIT;
       lk_client_state(u.client) != LK_STATE_CONNECTED;) {
    settle();
    ck_assert_int_le(time(NULL), end);
  }
}

static void begin(void)
{
  uint16_t port;

  loop = ev_loop_new(EVFLAG_AUTO);
  ck_assert_ptr_nonnull(loop);
  fake_names_start();
  ck_assert_int_eq(lk_ev_new(&ev, loop, NULL), 0);
  model_init(&server);
  memset(&calls, 0, sizeof calls);
  server_received = 0;
  server_sent = 0;
  listener = sockets_listen("127.0.0.1", &port);
  snprintf(hosts, sizeof hosts, "127.0.0.1:%u", (unsigned)port);
  connect_client();
}

static void end(void)
{
  lk_client_free(u.client);
  ck_assert_uint_eq(u.mem.live, 0);
  model_hang_up(u.link);
  close(u.fd);
  lk_ev_free(ev);
  close(listener);
  model_done(&server);
  fake_names_stop();
  ev_loop_destroy(loop);
}

/* ---- costs --------------------------------------------------------------- */

typedef struct cost {
  const char *requests; /* " | " separates two writes to the socket */
  unsigned reads;       /* of the socket */
  unsigned allocations;
  bool pauses; /* for random times, for which alarms may be set */
} cost;

static size_t allocations_before;

/* Only what the client does from here on counts. */
static void begin_counting(void)
{
  settle();
  u.link->log[0] = '\0';
  calls.send = 0;
  calls.recv = 0;
  calls.settime = 0;
  calls.epoll_ctl = 0;
  allocations_before = u.mem.count;
}

static unsigned writes_in(const char *requests)
{
  unsigned count = requests[0] == '\0' ? 0 : 1;

  for (const char *p = requests; (p = strstr(p, " | ")) != NULL; p++)
    count++;
  return count;
}

/* A check for each count would show only the first that differs. */
static const char *cost_text(const char *what, const cost *c, unsigned writes,
                             unsigned other_calls)
{
  static char texts[2][sizeof((model_link *)0)->log + 256];
  static size_t next;
  char *text = texts[next++ % 2];

  snprintf(text, sizeof texts[0],
           "%s: \"%s\"; %u writes, %u reads, %u other calls, %u allocations",
           what, c->requests, writes, c->reads, other_calls, c->allocations);
  return text;
}

/* `what`: the step, for the message. An alarm that was set before stays, since
 * the deadlines of later requests follow, and no descriptor is watched anew. */
static void expect_cost(const char *what, const cost *expected)
{
  const cost is = {.requests = u.link->log,
                   .reads = calls.recv,
                   .allocations = (unsigned)(u.mem.count - allocations_before)};
  unsigned alarms = expected->pauses ? 0 : calls.settime;

  ck_assert_str_eq(cost_text(what, &is, calls.send, calls.epoll_ctl + alarms),
                   cost_text(what, expected, writes_in(expected->requests), 0));
}

/* ---- operations ---------------------------------------------------------- */

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  u.result = err;
}

static void on_get(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  (void)c;
  (void)data;
  (void)stat;
  (void)arg;
  u.result = err;
}

static void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  (void)arg;
  u.result = err;
}

static void on_children(lk_client *c, int err, const lk_bytes *names,
                        size_t count, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)names;
  (void)count;
  (void)stat;
  (void)arg;
  u.result = err;
}

static void on_create(lk_client *c, int err, const char *path,
                      const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  (void)arg;
  u.result = err;
  snprintf(u.node, sizeof u.node, "%s", path);
}

static void on_multi(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  (void)c;
  (void)results;
  (void)count;
  (void)arg;
  u.result = err;
}

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  if (event->type == LK_EVENT_CHANGED)
    u.events++;
}

static int call_exists(void)
{
  return lk_exists(u.client, "/a", NULL, on_stat, NULL);
}

static int call_get(void)
{
  return lk_get(u.client, "/a", NULL, on_get, NULL);
}

static int call_get_in_time(void)
{
  const lk_call call = {.size = sizeof call, .timeout_ms = 1000};

  return lk_get(u.client, "/a", &call, on_get, NULL);
}

static int call_children(void)
{
  return lk_get_children(u.client, "/a", NULL, on_children, NULL);
}

static int call_set(void)
{
  return lk_set(u.client, "/a", lk_text("data"), -1, NULL, on_stat, NULL);
}

static int call_create(void)
{
  return lk_create2(u.client, "/a/n-", lk_text("data"), NULL,
                    LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_create, NULL);
}

static int call_delete(void)
{
  return lk_delete(u.client, u.node, -1, NULL, on_done, NULL);
}

static int call_sync(void)
{
  return lk_server_sync(u.client, "/a", NULL, on_done, NULL);
}

static int call_multi(void)
{
  const lk_op ops[] = {lk_op_set("/a", lk_text("data"), -1),
                       lk_op_check("/a", -1)};

  return lk_multi(u.client, ops, 2, NULL, on_multi, NULL);
}

static const struct {
  const char *what;
  int (*call)(void);
  cost cost;
} operations[] = {
    {"exists", call_exists, {"exists", 1, 0, false}},
    {"get", call_get, {"getData", 1, 0, false}},
    {"get with a timeout", call_get_in_time, {"getData", 1, 0, false}},
    {"get_children", call_children, {"getChildren2", 1, 0, false}},
    {"set", call_set, {"setData", 1, 0, false}},
    {"create", call_create, {"create2", 1, 0, false}},
    {"delete", call_delete, {"delete", 1, 0, false}},
    {"sync", call_sync, {"sync", 1, 0, false}},
    {"multi", call_multi, {"multi", 1, 0, false}},
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void complete(int (*call)(void))
{
  u.result = NOT_YET;
  ck_assert_int_eq(call(), 0);
  run_until(&u.result);
  ck_assert_int_eq(u.result, 0);
}

START_TEST(an_operation_is_one_request_in_one_write_and_one_read)
{
  begin();
  model_create(&server, "/a");
  for (int round = 0; round < WARM_UP; round++) {
    for (size_t i = 0; i < COUNT(operations); i++)
      complete(operations[i].call);
  }
  for (size_t i = 0; i < COUNT(operations); i++) {
    begin_counting();
    complete(operations[i].call);
    expect_cost(operations[i].what, &operations[i].cost);
  }
  end();
}
END_TEST

START_TEST(a_burst_of_requests_is_one_write_and_one_read)
{
  enum { BURST = 20 };
  static const cost expected = {
      "getData getData getData getData getData getData getData getData getData "
      "getData getData getData getData getData getData getData getData getData "
      "getData getData",
      1, 0, false};

  begin();
  model_create(&server, "/a");
  for (int round = 0; round <= WARM_UP; round++) {
    begin_counting();
    for (int i = 0; i < BURST; i++)
      ck_assert_int_eq(call_get(), 0);
    u.result = NOT_YET;
    run_until(&u.result);
  }
  expect_cost("burst", &expected);
  end();
}
END_TEST

START_TEST(an_event_is_one_read)
{
  static const cost expected = {.requests = "", .reads = 1};
  const lk_call call = {.size = sizeof call, .on_event = on_event};

  begin();
  model_create(&server, "/a");
  for (int round = 0; round <= WARM_UP; round++) {
    ck_assert_int_eq(lk_get(u.client, "/a", &call, on_get, NULL), 0);
    begin_counting();
    model_set(&server, "/a", "changed");
    settle();
    ck_assert_uint_eq(u.events, (unsigned)round + 1);
  }
  expect_cost("event", &expected);
  end();
}
END_TEST

/* ---- locks --------------------------------------------------------------- */

static void make_mutex(void)
{
  ck_assert_int_eq(lk_lock_new(&u.lock, u.client, "/queue", NULL), 0);
}

static void make_single(void)
{
  ck_assert_int_eq(lk_single_new(&u.lock, u.client, "/single/a", NULL, NULL),
                   0);
}

static void make_read_side(void)
{
  ck_assert_int_eq(lk_rwlock_new(&u.rw, u.client, "/queue", NULL), 0);
  u.lock = lk_rwlock_read_side(u.rw);
}

static void make_write_side(void)
{
  ck_assert_int_eq(lk_rwlock_new(&u.rw, u.client, "/queue", NULL), 0);
  u.lock = lk_rwlock_write_side(u.rw);
}

static void make_semaphore(void)
{
  const lk_semaphore_config one_permit = {.size = sizeof one_permit,
                                          .permits = 1};

  ck_assert_int_eq(
      lk_semaphore_new(&u.lock, u.client, "/semaphore", NULL, &one_permit), 0);
}

static void make_multilock(void)
{
  const lk_multilock_part members[] = {{"/queue", LK_MULTILOCK_MUTEX},
                                       {"/single", LK_MULTILOCK_MUTEX}};

  ck_assert_int_eq(lk_multilock_new(&u.lock, u.client, members, 2, NULL, NULL),
                   0);
}

static void free_lock(void)
{
  if (u.rw != NULL)
    lk_rwlock_free(u.rw);
  else
    lk_lock_free(u.lock);
  settle();
}

/* `wait` is the cost of an acquire until it waits for `predecessor`, and
 * `grant` the cost from the deletion of that node until the lock is held. */
typedef struct kind {
  const char *name;
  void (*make)(void);
  const char *predecessor;
  cost acquire, release, wait, grant;
} kind;

static const kind kinds[] = {
    {"mutex", make_mutex, "/queue/x-lock-0000000000",
     .acquire = {"create2 getChildren2", 1, 1, false},
     .release = {"delete", 1, 0, false},
     .wait = {"create2 getChildren2 | getData getData", 2, 2, false},
     .grant = {"", 1, 0, false}},
    {"single node", make_single, "/single/a",
     .acquire = {"create2 getData", 1, 1, false},
     .release = {"delete", 1, 0, false},
     .wait = {"create2 getData", 1, 1, false},
     .grant = {"getData | create2 getData", 3, 0, true}},
    {"read side", make_read_side, "/queue/x-__WRIT__0000000000",
     .acquire = {"create2 getChildren2", 1, 1, false},
     .release = {"delete", 1, 0, false},
     .wait = {"create2 getChildren2 | getData getData", 2, 2, false},
     .grant = {"", 1, 0, false}},
    {"write side", make_write_side, "/queue/x-__READ__0000000000",
     .acquire = {"create2 getChildren2", 1, 1, false},
     .release = {"delete", 1, 0, false},
     .wait = {"create2 getChildren2 | getData getData", 2, 2, false},
     .grant = {"", 1, 0, false}},
    {"semaphore", make_semaphore, "/semaphore/leases/x-lease-0000000000",
     .acquire = {"create2 getChildren2 create2 getChildren2 | "
                 "removeWatches delete",
                 2, 3, false},
     .release = {"delete", 1, 0, false},
     .wait = {"create2 getChildren2 create2 getChildren2", 1, 3, false},
     .grant = {"getChildren2 | removeWatches delete", 3, 0, false}},
    {"multi-lock of two", make_multilock, "/queue/x-lock-0000000000",
     .acquire = {"multi getChildren2 getChildren2", 1, 4, false},
     .release = {"delete delete", 1, 0, false},
     .wait = {"multi getChildren2 getChildren2 | getData getData delete", 2, 5,
              false},
     .grant = {"multi getChildren2", 2, 2, false}},
};

static void on_lock_done(lk_lock *lock, int err, void *arg)
{
  (void)lock;
  (void)arg;
  u.result = err;
}

static int call_acquire(void)
{
  return lk_lock_acquire(u.lock, LK_NO_LIMIT, on_lock_done, NULL);
}

static int call_release(void)
{
  return lk_lock_release(u.lock, on_lock_done, NULL);
}

/* End a step of a round. In a round that is counted, check its cost. */
static void end_step(const kind *k, const char *step, const cost *expected,
                     bool counted)
{
  char what[64];

  snprintf(what, sizeof what, "%s, %s", k->name, step);
  if (counted)
    expect_cost(what, expected);
  begin_counting();
}

/* A round of one kind: acquire the free lock, release it, wait, get it. */
static void use_lock(const kind *k, bool counted)
{
  begin_counting();
  complete(call_acquire);
  end_step(k, "acquire", &k->acquire, counted);
  complete(call_release);
  end_step(k, "release", &k->release, counted);

  model_create(&server, k->predecessor);
  u.result = NOT_YET;
  ck_assert_int_eq(call_acquire(), 0);
  settle();
  ck_assert_int_eq(u.result, NOT_YET);
  end_step(k, "wait", &k->wait, counted);

  model_delete(&server, k->predecessor);
  run_until(&u.result);
  ck_assert_int_eq(u.result, 0);
  end_step(k, "grant", &k->grant, counted);
  complete(call_release);
}

static void count_costs_of(const kind *k)
{
  begin();
  model_create(&server, "/queue");
  model_create(&server, "/single");
  model_create(&server, "/semaphore");
  model_create(&server, "/semaphore/locks");
  model_create(&server, "/semaphore/leases");
  k->make();
  for (int round = 0; round < WARM_UP; round++)
    use_lock(k, false);
  use_lock(k, true);
  free_lock();
  end();
}

START_TEST(each_lock_has_its_requests_and_system_calls)
{
  for (size_t i = 0; i < COUNT(kinds); i++)
    count_costs_of(&kinds[i]);
}
END_TEST

SUITE("costs", an_operation_is_one_request_in_one_write_and_one_read,
      a_burst_of_requests_is_one_write_and_one_read, an_event_is_one_read,
      each_lock_has_its_requests_and_system_calls)
