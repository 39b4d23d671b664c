/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/ev.h>

#include <ev.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/failing_mem.h"
#include "support/suite.h"
#include "unit/fake/calls.h"
#include "unit/fake/names.h"
#include "unit/fake/service.h"
#include "unit/fake/sockets.h"

/* The driver and the engine together, with a server on the test's thread. */

static struct ev_loop *loop;
static lk_ev *ev;
static failing_mem mem;
static service *server;
static uint16_t port;

/* A client and the arguments of its callbacks. */
typedef struct user {
  lk_client *client;
  lk_listener listener;
  char states[256];   /* "connecting connected …" */
  unsigned completed; /* requests */
  int last_err;
  bool closed;
  bool frees_in_callback; /* the next callback frees the client */
} user;

/* Called at the end of each callback. */
static void break_loop_and_free_if_wanted(user *u)
{
  ev_break(loop, EVBREAK_ALL);
  if (!u->frees_in_callback)
    return;
  u->frees_in_callback = false;
  lk_client_free(u->client);
  u->client = NULL;
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  user *u = arg;
  size_t len = strlen(u->states);

  (void)c;
  (void)err;
  snprintf(u->states + len, sizeof u->states - len, "%s ",
           lk_state_text(state));
  break_loop_and_free_if_wanted(u);
}

static void on_end(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  user *u = arg;

  (void)c;
  (void)data;
  (void)stat;
  u->completed++;
  u->last_err = err;
  break_loop_and_free_if_wanted(u);
}

static void on_closed(lk_client *c, int err, void *arg)
{
  user *u = arg;

  (void)c;
  u->closed = true;
  u->last_err = err;
  break_loop_and_free_if_wanted(u);
}

static void start(void)
{
  loop = ev_loop_new(EVFLAG_AUTO);
  ck_assert_ptr_nonnull(loop);
  fake_names_start();
  server = service_new(loop, &port);
  failing_mem_init(&mem);
  ck_assert_int_eq(lk_ev_new(&ev, loop, &mem.mem), 0);
}

static void stop(void)
{
  lk_ev_free(ev);
  ck_assert_uint_eq(mem.live, 0);
  service_free(server);
  fake_names_stop();
  ck_assert(!ev_run(loop, EVRUN_NOWAIT));
  ev_loop_destroy(loop);
}

static void new_user_of_hosts(user *u, const char *hosts)
{
  const lk_client_config config = {.size = sizeof config,
                                   .hosts = hosts,
                                   .session_timeout_ms = 600,
                                   .mem = &mem.mem};

  memset(u, 0, sizeof *u);
  u->listener.size = sizeof u->listener;
  u->listener.state = on_state;
  u->listener.arg = u;
  ck_assert_int_eq(lk_ev_client_new(&u->client, ev, &config), 0);
  lk_client_attach(u->client, &u->listener);
}

/* Make a client of the server, which the client finds by this host name. */
static void new_user(user *u, const char *name)
{
  char hosts[64];

  snprintf(hosts, sizeof hosts, "%s:%u", name, (unsigned)port);
  new_user_of_hosts(u, hosts);
}

#define RUN_UNTIL(condition)    \
  do {                          \
    while (!(condition))        \
      ev_run(loop, EVRUN_ONCE); \
  } while (0)

static bool connected(const user *u)
{
  return lk_client_state(u->client) == LK_STATE_CONNECTED;
}

static int send_get(user *u)
{
  return lk_get(u->client, "/x", NULL, on_end, u);
}

/* Close the client, and expect that nothing keeps the loop running then. */
static void close_and_free(user *u)
{
  ck_assert_int_eq(lk_client_close(u->client, on_closed, u), 0);
  RUN_UNTIL(u->closed);
  ck_assert_int_eq(u->last_err, 0);
  while (ev_run(loop, 0))
    ;
  lk_client_free(u->client);
}

static void run_one_session(void)
{
  user u;

  new_user(&u, "127.0.0.1");
  ck_assert_int_eq(send_get(&u), 0);
  RUN_UNTIL(u.completed == 1);
  ck_assert_int_eq(u.last_err, LK_ERR_NO_NODE);
  close_and_free(&u);
  ck_assert_str_eq(u.states, "connected closed ");
}

START_TEST(session_is_created_used_and_closed)
{
  start();
  run_one_session();
  stop();
}
END_TEST

START_TEST(session_works_byte_by_byte)
{
  start();
  service_faults_of(server)->slow = true;
  run_one_session();
  stop();
}
END_TEST

static void connect_and_count_calls(user *u)
{
  start();
  new_user(u, "127.0.0.1");
  RUN_UNTIL(connected(u));
  ev_run(loop, EVRUN_NOWAIT);
  calls.send = 0;
  calls.settime = 0;
}

START_TEST(a_thousand_requests_leave_in_one_write)
{
  user u;

  connect_and_count_calls(&u);
  for (int i = 0; i < 1000; i++)
    ck_assert_int_eq(send_get(&u), 0);
  ev_run(loop, EVRUN_NOWAIT);
  ck_assert_uint_eq(calls.send, 1);
  RUN_UNTIL(u.completed == 1000);
  ck_assert_uint_eq(calls.send, 1);
  close_and_free(&u);
  stop();
}
END_TEST

START_TEST(requests_one_by_one_take_one_write_each_and_rarely_set_the_alarm)
{
  user u;

  connect_and_count_calls(&u);
  for (unsigned i = 1; i <= 1000; i++) {
    ck_assert_int_eq(send_get(&u), 0);
    RUN_UNTIL(u.completed == i);
  }
  /* On a busy machine a ping or two are added. */
  ck_assert_uint_ge(calls.send, 1000);
  ck_assert_uint_lt(calls.send, 1010);
  /* The alarm is set again when it fired too early, not for each request. */
  ck_assert_uint_lt(calls.settime, 50);
  close_and_free(&u);
  stop();
}
END_TEST

START_TEST(client_reconnects_after_a_broken_connection)
{
  user u;

  start();
  new_user(&u, "127.0.0.1");
  RUN_UNTIL(connected(&u));
  service_reset(server);
  RUN_UNTIL(!connected(&u));
  RUN_UNTIL(connected(&u));
  ck_assert_str_eq(u.states, "connected suspended connected ");
  ck_assert_uint_eq(service_resumed(server), 1);
  close_and_free(&u);
  stop();
}
END_TEST

START_TEST(client_skips_a_host_that_does_not_respond)
{
  user u;
  char hosts[128];

  start();
  snprintf(hosts, sizeof hosts, "127.0.0.1:%u,127.0.0.1:%u,none.test:%u",
           (unsigned)sockets_dead_port(), (unsigned)port, (unsigned)port);
  new_user_of_hosts(&u, hosts);
  RUN_UNTIL(connected(&u));
  close_and_free(&u);
  stop();
}
END_TEST

START_TEST(client_skips_addresses_that_do_not_respond)
{
  start();
  for (int i = 0; i < 10; i++) {
    user u;

    new_user(&u, "dead.test");
    RUN_UNTIL(connected(&u));
    close_and_free(&u);
  }
  stop();
}
END_TEST

START_TEST(client_leaves_a_silent_server)
{
  user u;

  start();
  service_faults_of(server)->mute = true;
  new_user(&u, "127.0.0.1");
  RUN_UNTIL(service_accepted(server) == 2);
  service_faults_of(server)->mute = false;
  RUN_UNTIL(connected(&u));
  close_and_free(&u);
  stop();
}
END_TEST

START_TEST(silent_name_server_delays_only_its_host)
{
  user u;
  char hosts[64];

  start();
  snprintf(hosts, sizeof hosts, "silent.test:1,127.0.0.1:%u", (unsigned)port);
  new_user_of_hosts(&u, hosts);
  RUN_UNTIL(connected(&u));
  close_and_free(&u);
  stop();
}
END_TEST

START_TEST(a_call_ends_at_its_deadline)
{
  const lk_call call = {.size = sizeof call, .timeout_ms = 10};
  user u;

  start();
  new_user(&u, "127.0.0.1");
  RUN_UNTIL(connected(&u));
  service_faults_of(server)->idle = true;
  ck_assert_int_eq(lk_get(u.client, "/x", &call, on_end, &u), 0);
  RUN_UNTIL(u.completed == 1);
  ck_assert_int_eq(u.last_err, LK_ERR_DEADLINE);
  stop();
}
END_TEST

static int64_t now_us(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

START_TEST(no_call_ends_before_its_deadline)
{
  const lk_call call = {.size = sizeof call, .timeout_ms = 3};
  user u;

  start();
  new_user(&u, "127.0.0.1");
  RUN_UNTIL(connected(&u));
  service_faults_of(server)->idle = true;
  for (unsigned i = 1, ended_at_deadline = 0; ended_at_deadline < 60; i++) {
    int64_t asked_us = now_us();

    ck_assert_int_eq(lk_get(u.client, "/x", &call, on_end, &u), 0);
    RUN_UNTIL(u.completed == i);
    if (u.last_err != LK_ERR_DEADLINE) /* silence broke the connection */
      continue;
    ck_assert_int_ge(now_us() - asked_us, 3000);
    ended_at_deadline++;
  }
  stop();
}
END_TEST

START_TEST(close_completes_without_a_connection)
{
  user u;
  char hosts[64];

  start();
  snprintf(hosts, sizeof hosts, "127.0.0.1:%u", (unsigned)sockets_dead_port());
  new_user_of_hosts(&u, hosts);
  ck_assert_int_eq(send_get(&u), 0);
  ck_assert_int_eq(lk_client_close(u.client, on_closed, &u), 0);
  while (ev_run(loop, 0))
    ;
  ck_assert(u.closed);
  ck_assert_uint_eq(u.completed, 1);
  stop();
}
END_TEST

START_TEST(client_may_be_freed_in_its_own_callbacks)
{
  user u;

  start();
  new_user(&u, "127.0.0.1");
  u.frees_in_callback = true;
  RUN_UNTIL(u.client == NULL);
  ck_assert_str_eq(u.states, "connected closed ");

  new_user(&u, "127.0.0.1");
  RUN_UNTIL(connected(&u));
  u.frees_in_callback = true;
  for (int i = 0; i < 10; i++)
    ck_assert_int_eq(send_get(&u), 0);
  RUN_UNTIL(u.client == NULL);
  ck_assert_uint_eq(u.completed, 10);

  new_user(&u, "127.0.0.1");
  RUN_UNTIL(connected(&u));
  u.frees_in_callback = true;
  service_reset(server);
  RUN_UNTIL(u.client == NULL);

  new_user(&u, "127.0.0.1");
  ck_assert_int_eq(lk_client_close(u.client, on_closed, &u), 0);
  u.frees_in_callback = true;
  RUN_UNTIL(u.client == NULL);
  while (ev_run(loop, 0))
    ;
  stop();
}
END_TEST

static void on_state_free_all(lk_client *c, lk_state state, int err, void *arg)
{
  (void)c;
  (void)state;
  (void)err;
  (void)arg;
  lk_ev_free(ev);
  ev = NULL;
}

START_TEST(driver_may_be_freed_in_a_client_callback)
{
  user u[3];

  start();
  for (size_t i = 0; i < 3; i++) {
    new_user(&u[i], "127.0.0.1");
    u[i].listener.state = on_state_free_all;
    ck_assert_int_eq(send_get(&u[i]), 0);
  }
  RUN_UNTIL(ev == NULL);
  for (size_t i = 0; i < 3; i++)
    ck_assert_uint_eq(u[i].completed, 1);
  stop();
}
END_TEST

START_TEST(fifty_sessions_share_a_loop)
{
  enum { COUNT = 50 };
  static user u[COUNT];
  unsigned completed = 0;

  start();
  for (size_t i = 0; i < COUNT; i++) {
    new_user(&u[i], "two.test");
    for (int k = 0; k < 20; k++)
      ck_assert_int_eq(send_get(&u[i]), 0);
  }
  while (completed < 20 * COUNT) {
    ev_run(loop, EVRUN_ONCE);
    completed = 0;
    for (size_t i = 0; i < COUNT; i++)
      completed += u[i].completed;
  }
  for (size_t i = 0; i < COUNT; i++)
    ck_assert_int_eq(lk_client_close(u[i].client, on_closed, &u[i]), 0);
  while (ev_run(loop, 0))
    ;
  for (size_t i = 0; i < COUNT; i++)
    ck_assert(u[i].closed);
  stop();
}
END_TEST

START_TEST(a_forked_child_is_refused)
{
  user u;
  pid_t child;
  int status;

  start();
  new_user(&u, "127.0.0.1");
  RUN_UNTIL(connected(&u));
  ck_assert_int_eq(send_get(&u), 0);
  child = fork();
  if (child == 0) {
    if (send_get(&u) != LK_ERR_FORKED)
      _exit(1);
    lk_client_free(u.client);
    lk_ev_free(ev);
    _exit(mem.live == 0 ? 0 : 2);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  RUN_UNTIL(u.completed == 1);
  ck_assert_uint_eq(service_requests(server), 1);
  ck_assert_uint_eq(service_accepted(server), 1);
  close_and_free(&u);
  stop();
}
END_TEST

SUITE("sessions", session_is_created_used_and_closed,
      session_works_byte_by_byte, a_thousand_requests_leave_in_one_write,
      requests_one_by_one_take_one_write_each_and_rarely_set_the_alarm,
      client_reconnects_after_a_broken_connection,
      client_skips_a_host_that_does_not_respond,
      client_skips_addresses_that_do_not_respond, client_leaves_a_silent_server,
      silent_name_server_delays_only_its_host, a_call_ends_at_its_deadline,
      no_call_ends_before_its_deadline, close_completes_without_a_connection,
      client_may_be_freed_in_its_own_callbacks,
      driver_may_be_freed_in_a_client_callback, fifty_sessions_share_a_loop,
      a_forked_child_is_refused)
