/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/driver/driver.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* ---- freeing in callbacks ------------------------------------------------ */

/* The start of the log line at which free_at_line() frees the client. */
static const char *free_line;
static bool frees_driver; /* free_at_line() frees the driver, too */

static void free_at_line(lk_client *c, const char *line)
{
  const lk_client_config config = {.size = sizeof config};
  lk_client *more;

  if (strncmp(line, free_line, strlen(free_line)) != 0)
    return;
  lk_client_free(c);
  if (!frees_driver)
    return;
  lk_ev_free(ev);
  lk_ev_free(ev); /* allowed: the memory stays until this callback returns */
  ck_assert_int_eq(lk_ev_client_new(&more, ev, &config), LK_ERR_CLOSED);
  ck_assert_ptr_null(more);
  ev = NULL;
}

static bool free_line_is(const char *line)
{
  return strcmp(free_line, line) == 0;
}

/* Make the client log the line `free_line`, and run the loop until only `live`
   blocks of memory are left. */
static void run_until_freed(lk_client *c, size_t live)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);
  int peer = -1;

  c->on_line = free_at_line;
  engine_want_connection(c, 1, "twice.test", port, 0);
  if (free_line_is("failed"))
    engine_want_connection(c, 2, "127.0.0.1", sockets_dead_port(), 0);
  if (free_line_is("failed 3 RESOLVE"))
    engine_want_connection(c, 3, "none.test", port, 0);
  if (free_line_is("tick"))
    engine_want_tick(c, c->hooks.now(c->hooks.arg) + 3);
  if (free_line_is("received") || free_line_is("failed 1 0") ||
      free_line_is("failed 1 CONNECTION_LOSS")) {
    RUN_UNTIL(strstr(c->log, "connected") != NULL);
    peer = sockets_accept(listener);
    sockets_write(peer, "x", 1);
  }
  if (free_line_is("failed 1 0"))
    close(peer);
  if (free_line_is("failed 1 CONNECTION_LOSS"))
    sockets_reset(peer);
  RUN_UNTIL(mem.live == live);
  if (free_line_is("received")) {
    ck_assert(sockets_wait_for_end(peer));
    close(peer);
  }
  close(listener);
}

static const char *const free_lines[] = {
    "resolved",
    "connected",
    "received",
    "failed",                   /* to connect */
    "failed 3 RESOLVE",         /* a name without an address */
    "failed 1 0",               /* the peer has closed */
    "failed 1 CONNECTION_LOSS", /* the peer has reset the connection */
    "tick",
};

/* The driver remembers names, so that later lookups leave no more memory. */
static void look_up_names(void)
{
  lk_client *c = new_client();

  engine_want_connection(c, 1, "twice.test", sockets_dead_port(), 0);
  RUN_UNTIL(strstr(c->log, "failed 1 CONNECT") != NULL);
  engine_want_connection(c, 2, "none.test", 1, 0);
  RUN_UNTIL(strstr(c->log, "failed 2 RESOLVE") != NULL);
  lk_client_free(c);
}

START_TEST(a_client_may_be_freed_in_any_callback)
{
  start();
  free_line = "none";
  frees_driver = false;
  look_up_names();

  size_t live = mem.live;

  for (size_t i = 0; i < sizeof free_lines / sizeof *free_lines; i++) {
    free_line = free_lines[i];
    run_until_freed(new_client(), live);
  }
  stop();
}
END_TEST

START_TEST(the_driver_may_be_freed_in_any_callback)
{
  frees_driver = true;
  for (size_t i = 0; i < sizeof free_lines / sizeof *free_lines; i++) {
    int peer;

    start();
    free_line = "";       /* of no client yet */
    new_connected(&peer); /* the driver frees this client */
    free_line = free_lines[i];
    run_until_freed(new_client(), 0);
    ck_assert_ptr_null(ev);
    ck_assert(sockets_wait_for_end(peer));
    close(peer);
    stop();
  }
}
END_TEST

static void on_wake(lk_ev *e, void *arg)
{
  (void)arg;
  lk_ev_free(e);
  ev = NULL;
}

START_TEST(driver_may_be_freed_in_the_wake_callback)
{
  start();
  new_client();
  lk_ev_on_wake(ev, on_wake, NULL);
  lk_ev_wake(ev);
  RUN_UNTIL(ev == NULL);
  stop();
}
END_TEST

START_TEST(remaining_clients_are_freed_with_the_driver)
{
  int peer[2];

  start();
  new_connected(&peer[0]);
  new_connected(&peer[1]);
  engine_want_connection(new_client(), 1, "silent.test", 1, 0);
  turn();
  stop();
  ck_assert(sockets_wait_for_end(peer[0]));
  ck_assert(sockets_wait_for_end(peer[1]));
  lk_ev_free(NULL);
}
END_TEST

/* ---- refusals ------------------------------------------------------------ */

START_TEST(refused_client_config_leaks_nothing)
{
  const lk_client_config config = {.size = sizeof config};
  lk_client *c;

  start();
  size_t live = mem.live;

  engine_new_error = LK_ERR_BAD_HOSTS;
  ck_assert_int_eq(lk_ev_client_new(&c, ev, &config), LK_ERR_BAD_HOSTS);
  ck_assert_ptr_null(c);
  ck_assert_uint_eq(mem.live, live);
  engine_new_error = 0;
  stop();
}
END_TEST

START_TEST(driver_without_memory_is_refused)
{
  size_t n = 0;

  loop = ev_loop_new(EVFLAG_AUTO);
  do {
    failing_mem_init(&mem);
    mem.fail_at = ++n;
    int err = lk_ev_new(&ev, loop, &mem.mem);

    ck_assert_int_eq(err, failing_mem_failed(&mem) ? LK_ERR_NO_MEMORY : 0);
    ck_assert_int_eq(ev == NULL, err != 0);
    lk_ev_free(ev);
    ck_assert_uint_eq(mem.live, 0);
  } while (failing_mem_failed(&mem));
  ck_assert(!ev_run(loop, EVRUN_NOWAIT));
  ev_loop_destroy(loop);
}
END_TEST

START_TEST(client_without_memory_is_refused_or_fails_its_attempt)
{
  const lk_client_config config = {.size = sizeof config};
  size_t n = 0;
  bool all_succeeded = false;
  unsigned refused = 0, failed = 0;
  lk_client *c;
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  mem.for_good = true;
  while (!all_succeeded) {
    mem.count = 0;
    mem.fail_at = ++n;
    if (lk_ev_client_new(&c, ev, &config) != 0) {
      refused++;
      continue;
    }
    engine_want_connection(c, 1, "twice.test", port, 0);
    RUN_UNTIL(strstr(c->log, "connected 1\n") != NULL ||
              strncmp(c->log, "failed 1 ", 9) == 0);
    if (c->log[0] == 'f')
      failed++;
    all_succeeded = !failing_mem_failed(&mem);
    lk_client_free(c);
  }
  /* The allocations of a client, and those of an attempt. */
  ck_assert_uint_eq(refused, 2);
  ck_assert_uint_ge(failed, 3);
  mem.fail_at = 0;
  close(listener);
  stop();
}
END_TEST

static void expect_system_error(void)
{
  failing_mem_init(&mem);
  ck_assert_int_eq(lk_ev_new(&ev, loop, &mem.mem), LK_ERR_SYSTEM);
  ck_assert_ptr_null(ev);
  ck_assert_uint_eq(mem.live, 0);
}

START_TEST(failing_system_calls_are_reported)
{
  loop = ev_loop_new(EVFLAG_AUTO);
  calls.no_random = true;
  expect_system_error();
  calls.no_random = false;
  calls.timer_error = EMFILE;
  if (FAKE_SETTIME_PER_ALARM > 0)
    expect_system_error();
  calls.timer_error = 0;
  ev_loop_destroy(loop);
}
END_TEST

/* ---- fork ---------------------------------------------------------------- */

static void expect_child_ok(pid_t child)
{
  int status;

  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}

/* Called in a child process: all calls are refused, and nothing is sent to a
   server. Ends the process. */
static void try_all_calls_and_exit(lk_client *c)
{
  const lk_client_config config = {.size = sizeof config};
  lk_client *more;

  if (!c->hooks.forked(c->hooks.arg) || !lk_ev_forked(ev))
    _exit(1);
  if (lk_ev_client_new(&more, ev, &config) != LK_ERR_FORKED)
    _exit(2);
  engine_write(c, "child", 5);
  lk_ev_wake(ev);
  lk_client_free(c);
  lk_ev_free(ev);
  if (mem.live != 0)
    _exit(3);
  _exit(0);
}

static unsigned woken;

static void count_wake(lk_ev *e, void *arg)
{
  (void)e;
  (void)arg;
  woken++;
}

/* A child has no effect on the connection of its parent. */
static void expect_quiet_fork(void)
{
  char room[6];
  int peer;
  pid_t child;

  start();
  woken = 0;
  lk_ev_on_wake(ev, count_wake, NULL);
  ck_assert(!lk_ev_forked(ev));
  lk_client *c = new_connected(&peer);

  engine_want_tick(c, c->hooks.now(c->hooks.arg) + 30);
  engine_want_connection(new_client(), 1, "silent.test", 1, 0);
  turn();
  child = fork();
  if (child == 0)
    try_all_calls_and_exit(c);
  expect_child_ok(child);
  ck_assert(sockets_quiet(peer));
  expect(c, "tick\n");
  engine_write(c, "parent", 6);
  turn();
  sockets_read(peer, room, 6);
  ck_assert_int_eq(memcmp(room, "parent", 6), 0);
  sockets_write(peer, "x", 1);
  expect(c, "received 1\n");
  ck_assert_uint_eq(woken, 0);
  close(peer);
  stop();
}

START_TEST(forked_child_sends_nothing)
{
  expect_quiet_fork();
}
END_TEST

START_TEST(forked_child_sends_nothing_on_an_old_kernel)
{
  calls.no_wipe_on_fork = true;
  expect_quiet_fork();
  calls.no_wipe_on_fork = false;
}
END_TEST

START_TEST(fork_check_costs_no_system_call)
{
  start();
  lk_client *c = new_client();

  calls.getpid = 0;
  for (int i = 0; i < 1000; i++)
    ck_assert(!c->hooks.forked(c->hooks.arg));
  ck_assert_uint_eq(calls.getpid, kernel_is_emulated() ? 1000 : 0);
  stop();
}
END_TEST

START_TEST(a_child_may_run_the_loop_for_itself)
{
  char byte;
  int peer;
  pid_t child;

  start();
  lk_client *c = new_connected(&peer);
  lk_client *other = new_client();

  engine_want_connection(other, 1, "twice.test", 1, 0);
  while (fake_names_lookups() == 0)
    turn(); /* the name server has been asked */
  engine_want_tick(c, c->hooks.now(c->hooks.arg) + 1);
  engine_write(c, "y", 1);
  sockets_write(peer, "x", 1);
  child = fork();
  if (child == 0) {
    ev_loop_fork(loop);
    for (int i = 0; i < 5; i++)
      turn();
    engine_write(c, "z", 1);
    if (ev_run(loop, EVRUN_NOWAIT))
      _exit(9); /* the driver still keeps the loop running */
    lk_client_free(other);
    try_all_calls_and_exit(c);
  }
  expect_child_ok(child);
  RUN_UNTIL(c->received == 1);
  sockets_read(peer, &byte, 1);
  ck_assert(sockets_quiet(peer));
  RUN_UNTIL(strstr(other->log, "resolved") != NULL);
  ck_assert_uint_eq(fake_names_lookups(), 1);
  close(peer);
  stop();
}
END_TEST

START_TEST(child_does_not_consume_the_wakeup_of_its_parent)
{
  pid_t child;

  start();
  woken = 0;
  lk_ev_on_wake(ev, count_wake, NULL);
  lk_ev_wake(ev);
  child = fork();
  if (child == 0) {
    ev_loop_fork(loop);
    for (int i = 0; i < 3; i++)
      turn();
    _exit(woken != 0);
  }
  expect_child_ok(child);
  turn();
  ck_assert_uint_eq(woken, 1);
  stop();
}
END_TEST

static pid_t forked = -1;

static void fork_once(lk_client *c, const char *line)
{
  (void)c;
  (void)line;
  if (forked == -1)
    forked = fork();
}

START_TEST(child_forked_in_a_callback_receives_nothing_more)
{
  lk_client *c[2];
  int peer[2];

  start();
  forked = -1;
  for (size_t i = 0; i < 2; i++)
    c[i] = new_connected(&peer[i]);
  for (size_t i = 0; i < 2; i++) {
    c[i]->on_line = fork_once;
    sockets_write(peer[i], "x", 1);
  }
  calls.recv_is_endless = true;
  turn(); /* both connections have bytes */
  if (forked == 0) {
    engine_write(c[0], "child", 5);
    ev_loop_fork(loop);
    turn();
    if (c[0]->received_calls + c[1]->received_calls != 1)
      _exit(1);
    try_all_calls_and_exit(c[0]);
  }
  expect_child_ok(forked);
  /* 16 for each client, as in busy_client_does_not_delay_the_others. */
  ck_assert_uint_eq(c[0]->received_calls + c[1]->received_calls, 32);
  ck_assert(sockets_quiet(peer[0]));
  calls.recv_is_endless = false;
  close(peer[0]);
  close(peer[1]);
  stop();
}
END_TEST

static void fork_on_events(struct ev_loop *l, ev_io *w, int revents)
{
  (void)revents;
  forked = fork();
  ev_io_stop(l, w);
}

/* A callback of the program forks, while the wakeup is still before both
   processes. */
START_TEST(child_forked_in_a_callback_leaves_the_wakeup_to_its_parent)
{
  int pair[2];
  ev_io writable;

  start();
  woken = 0;
  lk_ev_on_wake(ev, count_wake, NULL);
  lk_ev_wake(ev);
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ev_io_init(&writable, fork_on_events, pair[0], EV_WRITE);
  ev_set_priority(&writable, EV_MAXPRI);
  ev_io_start(loop, &writable);
  turn();
  if (forked == 0)
    _exit(woken != 0);
  expect_child_ok(forked);
  RUN_UNTIL(woken == 1);
  close(pair[0]);
  close(pair[1]);
  stop();
}
END_TEST

START_TEST(child_forked_in_a_callback_resolves_nothing_more)
{
  lk_client *c[2];

  start();
  forked = -1;
  for (size_t i = 0; i < 2; i++) {
    c[i] = new_client();
    c[i]->on_line = fork_once;
    engine_want_connection(c[i], 1, "twice.test", 1, 0);
  }
  RUN_UNTIL(forked != -1);
  if (forked == 0) {
    if (c[0]->log[0] != '\0' && c[1]->log[0] != '\0')
      _exit(9);
    lk_client_free(c[1]);
    try_all_calls_and_exit(c[0]);
  }
  expect_child_ok(forked);
  RUN_UNTIL(c[0]->log[0] != '\0' && c[1]->log[0] != '\0');
  stop();
}
END_TEST

SUITE("driver_lifetime", a_client_may_be_freed_in_any_callback,
      the_driver_may_be_freed_in_any_callback,
      driver_may_be_freed_in_the_wake_callback,
      remaining_clients_are_freed_with_the_driver,
      refused_client_config_leaks_nothing, driver_without_memory_is_refused,
      client_without_memory_is_refused_or_fails_its_attempt,
      failing_system_calls_are_reported, forked_child_sends_nothing,
      forked_child_sends_nothing_on_an_old_kernel,
      fork_check_costs_no_system_call, a_child_may_run_the_loop_for_itself,
      child_does_not_consume_the_wakeup_of_its_parent,
      child_forked_in_a_callback_receives_nothing_more,
      child_forked_in_a_callback_leaves_the_wakeup_to_its_parent,
      child_forked_in_a_callback_resolves_nothing_more)
