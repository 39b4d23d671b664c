/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include "ev/loop.h"
#include "net/transport_error.h"
#include "net/wakeup.h"

/* ---- connecting ---------------------------------------------------------- */

static void connect_to(const char *literal, const char *host)
{
  uint16_t port;
  int listener = sockets_listen(literal, &port);

  if (listener < 0) {
    ck_assert_ptr_nonnull(strchr(literal, ':')); /* a host without IPv6 */
    return;
  }
  start();
  lk_client *c = new_client();

  engine_want_connection(c, 7, host, port, 0);
  expect(c, "connected 7\n");
  close(sockets_accept(listener));
  close(listener);
  stop();
}

START_TEST(address_literals_are_not_resolved)
{
  connect_to("127.0.0.1", "127.0.0.1");
  connect_to("127.3.2.1", "127.3.2.1");
  connect_to("::1", "::1");
  connect_to("::1", "::1%lo");
}
END_TEST

START_TEST(refused_connection_reports_address_and_errno)
{
  char text[128];
  uint16_t port = sockets_dead_port();

  start();
  lk_client *c = new_client();

  engine_want_connection(c, 1, "127.0.0.1", port, 0);
  snprintf(text, sizeof text,
           "failed 1 CONNECT: connect to 127.0.0.1:%u: Connection refused\n",
           (unsigned)port);
  expect(c, text);
  calls.no_socket = true;
  engine_want_connection(c, 2, "::1", 9, 0);
  expect(c, "failed 2 CONNECT: connect to [::1]:9: Too many open files\n");
  calls.no_socket = false;
  /* connect() itself fails for the broadcast address. */
  engine_want_connection(c, 3, "255.255.255.255", 9, 0);
  expect(c, "failed 3 CONNECT: connect to 255.255.255.255:9: "
            "Network is unreachable\n");
  stop();
}
END_TEST

START_TEST(connection_to_itself_is_refused)
{
  char text[128];

  start();
  lk_client *c = new_client();

  calls.local_port = sockets_dead_port();
  engine_want_connection(c, 1, "127.0.0.1", calls.local_port, 0);
  snprintf(text, sizeof text,
           "failed 1 CONNECT: connect to 127.0.0.1:%u: Connection refused\n",
           (unsigned)calls.local_port);
  expect(c, text);
  calls.local_port = 0;
  stop();
}
END_TEST

START_TEST(new_attempt_closes_the_old_connection)
{
  uint16_t port;
  int first;

  start();
  lk_client *c = new_connected(&first);
  int listener = sockets_listen("127.0.0.1", &port);

  engine_want_connection(c, 2, "127.0.0.1", port, 0);
  expect(c, "connected 2\n");
  ck_assert(sockets_wait_for_end(first));

  int second = sockets_accept(listener);

  ck_assert(ev_run(loop, EVRUN_NOWAIT));
  engine_want_connection(c, 0, "", 0, 0);
  ck_assert(!ev_run(loop, 0)); /* nothing keeps the loop running any more */
  ck_assert(sockets_wait_for_end(second));
  ck_assert(engine_log_was(c, ""));
  close(first);
  close(second);
  close(listener);
  stop();
}
END_TEST

START_TEST(attempt_that_hangs_ends_at_its_deadline)
{
  uint16_t deaf_port, port;
  int deaf = sockets_listen_deaf(&deaf_port);
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  lk_client *c = new_client();

  engine_want_connection(c, 1, "127.0.0.1", deaf_port, 0);
  for (int i = 0; i < 10; i++)
    turn();
  ck_assert(engine_log_was(c, ""));
  engine_want_connection(c, 2, "127.0.0.1", port, 0);
  expect(c, "connected 2\n");
  close(deaf);
  close(listener);
  stop();
}
END_TEST

/* ---- names --------------------------------------------------------------- */

/* Whether attempt `n`, at an address of the name, reaches the listener. */
static bool connects(lk_client *c, uint64_t n, const char *host, uint16_t port,
                     uint32_t address)
{
  bool yes;

  c->log[0] = '\0';
  engine_want_connection(c, n, host, port, address);
  RUN_UNTIL(strstr(c->log, "connected") != NULL ||
            strstr(c->log, "failed") != NULL);
  yes = strstr(c->log, "connected") != NULL;
  engine_want_connection(c, 0, "", 0, 0);
  turn();
  return yes;
}

START_TEST(each_address_of_a_name_is_an_attempt)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);
  int living = -1;

  start();
  lk_client *c = new_client();

  engine_want_connection(c, 1, "dead.test", port, 0);
  RUN_UNTIL(strstr(c->log, "resolved 1 6\n") != NULL);
  RUN_UNTIL(strlen(c->log) > strlen("resolved 1 6\n"));
  for (uint32_t i = 0; i < 6; i++)
    if (connects(c, 2 + i, "dead.test", port, 6 + i)) {
      ck_assert_int_eq(living, -1);
      living = (int)i;
    }
  ck_assert_int_ge(living, 0);
  ck_assert_uint_eq(fake_names_lookups(), 1);
  connects(c, 10, "dead.test", port, 0);
  ck_assert_uint_eq(fake_names_lookups(), 2);
  connects(c, 11, "twice.test", port, 3);
  ck_assert_uint_eq(fake_names_lookups(), 3); /* only the last name's addresses
                                               are kept */
  close(listener);
  stop();
}
END_TEST

START_TEST(addresses_are_shuffled)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);
  unsigned first = 0;
  uint64_t n;

  start();
  lk_client *c = new_client();

  for (n = 1; n <= 200; n++)
    first += connects(c, n, "dead.test", port, 0);
  ck_assert_uint_gt(first, 0);
  ck_assert_uint_lt(first, 200);
  close(listener);
  stop();
}
END_TEST

/* The name has two addresses, and a server listens at one of them. */
START_TEST(address_used_last_is_tried_last)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  lk_client *c = new_client();
  bool before = connects(c, 1, "two.test", port, 0);

  for (uint64_t n = 2; n <= 40; n++) {
    bool now = connects(c, n, "two.test", port, 0);

    ck_assert(now != before);
    before = now;
  }
  close(listener);
  stop();
}
END_TEST

START_TEST(name_without_address_fails_the_attempt)
{
  start();
  lk_client *c = new_client();

  engine_want_connection(c, 1, "none.test", 1, 0);
  RUN_UNTIL(c->log[0] != '\0');
  ck_assert_msg(strncmp(c->log, "failed 1 RESOLVE: resolve none.test: ", 37) ==
                    0,
                "%s", c->log);
  stop();
}
END_TEST

static uint16_t second_port;

static void dial_second(lk_client *c, const char *line)
{
  if (strncmp(line, "resolved 1", 10) == 0)
    engine_want_connection(c, 2, "127.0.0.1", second_port, 0);
}

START_TEST(attempt_that_changes_after_resolving_is_followed)
{
  uint16_t port;
  int first = sockets_listen("127.0.0.1", &port);
  int second = sockets_listen("127.0.0.1", &second_port);

  start();
  lk_client *c = new_client();

  c->on_line = dial_second;
  engine_want_connection(c, 1, "twice.test", port, 0);
  expect(c, "resolved 1 1\nconnected 2\n");
  ck_assert(sockets_quiet(first));
  close(first);
  close(second);
  stop();
}
END_TEST

START_TEST(result_of_an_outdated_lookup_is_ignored)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  lk_client *c = new_client();

  engine_want_connection(c, 1, "twice.test", port, 0);
  turn(); /* the lookup was sent and has no reply yet */
  ck_assert(engine_log_was(c, ""));
  engine_want_connection(c, 2, "127.0.0.1", port, 0);
  expect(c, "connected 2\n");
  RUN_UNTIL(fake_names_lookups() == 1);
  for (int i = 0; i < 20; i++)
    turn();
  ck_assert(engine_log_was(c, ""));
  close(listener);
  stop();
}
END_TEST

/* ---- sending and receiving ----------------------------------------------- */

START_TEST(thousand_outputs_leave_in_one_write)
{
  char room[4000];
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  calls.send = 0;
  for (int i = 0; i < 1000; i++)
    engine_write(c, "abcd", 4);
  ck_assert_uint_eq(calls.send, 0);
  turn();
  ck_assert_uint_eq(calls.send, 1);
  sockets_read(peer, room, sizeof room);
  ck_assert_int_eq(memcmp(room + 3996, "abcd", 4), 0);
  turn();
  ck_assert_uint_eq(calls.send, 1);
  close(peer);
  stop();
}
END_TEST

START_TEST(unchanged_watcher_costs_no_system_call)
{
  char room[4];
  int peer;

  start();
  calls.epoll_ctl = 0;
  lk_client *c = new_connected(&peer);

  if (ev_backend(loop) == EVBACKEND_EPOLL)
    ck_assert_uint_ge(calls.epoll_ctl, 1);
  turn();
  calls.epoll_ctl = 0;
  for (int i = 0; i < 10; i++) {
    engine_write(c, "abcd", 4);
    turn();
    sockets_read(peer, room, sizeof room);
  }
  ck_assert_uint_eq(calls.epoll_ctl, 0);
  close(peer);
  stop();
}
END_TEST

START_TEST(output_beyond_the_socket_buffer_is_sent_later)
{
  enum { ALL = 16 * 1024 * 1024 };
  unsigned char *all = malloc(ALL);
  unsigned char *room = malloc(ALL);
  size_t got = 0;
  int peer;

  ck_assert_ptr_nonnull(all);
  ck_assert_ptr_nonnull(room);
  for (size_t i = 0; i < ALL; i++)
    all[i] = (unsigned char)(i % 251);
  start();
  lk_client *c = new_connected(&peer);

  engine_write(c, all, ALL);
  for (int i = 0; i < 10; i++)
    turn();
  ck_assert_uint_lt(c->out_sent, ALL);
  calls.send = 0;
  for (int i = 0; i < 100; i++) {
    engine_write(c, "x", 1);
    turn();
  }
  ck_assert_uint_eq(calls.send, 0);
  calls.recv = 0;
  while (got < ALL) {
    ssize_t n = recv(peer, room + got, ALL - got, MSG_DONTWAIT);

    calls.recv--; /* the test's own call does not count */
    got += n > 0 ? (size_t)n : 0;
    turn();
  }
  ck_assert_uint_eq(calls.recv, 0); /* a writable descriptor is not read */
  ck_assert_int_eq(memcmp(all, room, ALL), 0);
  sockets_read(peer, room, 100);
  calls.send = 0;
  for (int i = 0; i < 10; i++)
    turn();
  ck_assert_uint_eq(calls.send, 0); /* no longer watched for writability */
  close(peer);
  free(all);
  free(room);
  stop();
}
END_TEST

START_TEST(a_full_connection_does_not_block_the_next)
{
  unsigned char *all = calloc(1, 16 * 1024 * 1024);
  char room[5];
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);
  int first, second;

  start();
  lk_client *c = new_connected(&first);

  engine_write(c, all, 16 * 1024 * 1024);
  for (int i = 0; i < 10; i++)
    turn();
  engine_want_connection(c, 2, "127.0.0.1", port, 0);
  expect(c, "connected 2\n");
  second = sockets_accept(listener);
  engine_write(c, "hello", 5);
  turn();
  sockets_read(second, room, 5);
  close(first);
  close(second);
  close(listener);
  free(all);
  stop();
}
END_TEST

START_TEST(received_bytes_are_passed_on_in_order)
{
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  calls.recv = 0;
  for (unsigned i = 1; i <= 20; i++) {
    sockets_write(peer, &"0123456789abcdefghij"[i - 1], 1);
    RUN_UNTIL(c->received == i);
  }
  ck_assert_int_eq(c->last_byte, 'j');
  ck_assert_uint_eq(c->received_calls, 20);
  ck_assert_uint_eq(calls.recv,
                    20); /* one read for each piece, no second one */
  close(peer);
  stop();
}
END_TEST

/* The bytes of a long reply are received where the client keeps them, without a
   copy. */
START_TEST(bytes_are_received_into_the_memory_of_the_client)
{
  static unsigned char room[70000], sent[80000];
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  for (size_t i = 0; i < sizeof sent; i++)
    sent[i] = (unsigned char)(i / 251);
  c->room = room;
  c->room_size = sizeof room;
  sockets_write(peer, sent, sizeof sent);
  RUN_UNTIL(c->received == sizeof sent);
  ck_assert_uint_gt(c->received_in_room, 0);
  ck_assert_uint_le(c->received_in_room, sizeof room); /* the bytes behind the
                                                 room are received as usual */
  ck_assert_mem_eq(room, sent, c->received_in_room);
  ck_assert_int_eq(c->last_byte, sent[sizeof sent - 1]);
  close(peer);
  stop();
}
END_TEST

START_TEST(busy_client_does_not_delay_the_others)
{
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  sockets_write(peer, "x", 1);
  calls.recv_is_endless = true;
  c->log[0] = '\0';
  turn();
  ck_assert_uint_eq(c->received_calls, 16);
  c->log[0] = '\0';
  turn();
  ck_assert_uint_eq(c->received_calls, 32);
  calls.recv_is_endless = false;
  close(peer);
  stop();
}
END_TEST

START_TEST(close_and_reset_are_reported_differently)
{
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  close(peer);
  expect(c, "failed 1 0: -\n");
  c = new_connected(&peer);
  sockets_reset(peer);
  expect(c, "failed 1 CONNECTION_LOSS: receive: Connection reset by peer\n");
  stop();
}
END_TEST

/* With calls.no_epoll set, epoll refuses descriptors, and the loop cannot watch
   them. */
START_TEST(descriptor_that_the_loop_cannot_watch_ends_the_connection)
{
  static const char reason[] = "the event loop cannot watch the descriptor";
  unsigned char *all = calloc(1, 16 * 1024 * 1024);
  char text[128];
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port), peer;

  start();
  ck_assert_uint_eq(ev_backend(loop), EVBACKEND_EPOLL);
  lk_client *c = new_connected(&peer);

  calls.no_epoll = true;
  engine_write(c, all,
               16 * 1024 * 1024); /* more than the socket takes at once */
  snprintf(text, sizeof text, "failed 1 CONNECTION_LOSS: %s\n", reason);
  expect(c, text);
  engine_want_connection(c, 2, "127.0.0.1", port, 0);
  snprintf(text, sizeof text, "failed 2 CONNECT: %s\n", reason);
  expect(c, text);
  calls.no_epoll = false;
  close(peer);
  close(listener);
  free(all);
  stop();
}
END_TEST

START_TEST(replies_are_received_before_a_failed_write_is_reported)
{
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  sockets_write(peer, "bye!!", 5);
  calls.send_error = EPIPE;
  engine_write(c, "x", 1);
  turn();
  ck_assert_str_eq(c->log,
                   "received 5\nfailed 1 CONNECTION_LOSS: send: Broken pipe\n");
  close(peer);
  stop();
}
END_TEST

/* ---- time ---------------------------------------------------------------- */

static int64_t now_of(const lk_client *c)
{
  return c->hooks.now(c->hooks.arg);
}

START_TEST(client_is_ticked_at_its_deadline)
{
  start();
  lk_client *c = new_client();
  int64_t due = now_of(c) + 20;

  ck_assert_int_ge(lk_ev_clock(ev), due - 20);
  ck_assert_int_lt(lk_ev_clock(ev), due + 10000);
  engine_want_tick(c, due + 100000);
  ck_assert(ev_run(loop, EVRUN_NOWAIT)); /* there is something to wait for */
  engine_want_tick(c, due);
  expect(c, "tick\n");
  ck_assert_int_ge(c->tick_ms, due);
  calls.settime = 0;
  usleep(3000);
  engine_want_tick(
      c, now_of(c)); /* already due: the driver ticks without the alarm */
  turn();
  ck_assert(engine_log_was(c, "tick\n"));
  ck_assert_uint_eq(calls.settime, 0);
  ck_assert(!ev_run(loop, 0)); /* without a deadline nothing keeps the loop
                                  running */
  stop();
}
END_TEST

/* While the program does not run the loop, a deadline passes and bytes come.
   The tick must come first, no matter which was ready first. */
static void stall(bool bytes_first)
{
  int peer;

  start();
  lk_client *other = new_client();
  lk_client *c = new_connected(&peer);

  engine_want_tick(c, now_of(c) + 50);
  engine_want_tick(other, now_of(c) + 51);
  turn();
  ck_assert(engine_log_was(c, ""));
  if (bytes_first)
    sockets_write(peer, "x", 1);
  usleep(80000);
  if (!bytes_first)
    sockets_write(peer, "x", 1);
  turn();
  ck_assert_str_eq(c->log, "tick\nreceived 1\n");
  ck_assert_str_eq(other->log, "tick\n");
  close(peer);
  stop();
}

START_TEST(after_a_stall_deadlines_are_handled_before_bytes)
{
  stall(true);
  stall(false);
}
END_TEST

START_TEST(a_deadline_that_moves_on_costs_no_system_call)
{
  int peer;

  start();
  lk_client *c = new_connected(&peer);
  int64_t now = now_of(c);

  calls.settime = 0;
  for (int i = 0; i < 1000; i++) {
    engine_want_tick(c, now + 100000 + i);
    turn();
  }
  ck_assert_uint_eq(calls.settime, 1);
  engine_want_tick(c, now + 99999);
  turn();
  ck_assert_uint_eq(calls.settime, 2);
  engine_want_tick(c, INT64_MAX);
  engine_want_connection(c, 0, "", 0, 0);
  ck_assert(!ev_run(loop, 0));
  ck_assert_uint_eq(calls.settime, 2);
  close(peer);
  stop();
}
END_TEST

START_TEST(alarm_that_fires_too_early_is_set_again)
{
  start();
  lk_client *c = new_client();
  int64_t now = now_of(c);

  engine_want_tick(c, now + 50);
  turn();
  engine_want_tick(c, now + 80);
  RUN_UNTIL(c->log[0] != '\0');
  ck_assert_int_ge(c->tick_ms, now + 80);
  stop();
}
END_TEST

static unsigned turns;

static void on_turn(struct ev_loop *l, ev_prepare *w, int revents)
{
  (void)l;
  (void)w;
  (void)revents;
  turns++;
}

static void on_enough(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)w;
  (void)revents;
  ev_break(l, EVBREAK_ALL);
}

START_TEST(the_loop_sleeps_when_there_is_nothing_to_do)
{
  ev_prepare count;
  ev_timer enough;
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  engine_want_tick(c, now_of(c) + 1);
  expect(c, "tick\n");
  engine_write(c, "x", 1);
  ev_prepare_init(&count, on_turn);
  ev_prepare_start(loop, &count);
  ev_timer_init(&enough, on_enough, 0.03, 0);
  ev_timer_start(loop, &enough);
  ev_run(loop, 0);
  ck_assert_uint_le(turns, 5);
  ev_prepare_stop(loop, &count);
  close(peer);
  stop();
}
END_TEST

static void due_again(lk_client *c, const char *line)
{
  (void)line;
  c->log[0] = '\0';
  engine_want_tick(c, 0);
}

START_TEST(client_whose_deadline_is_always_over_does_not_block_the_loop)
{
  start();
  lk_client *c = new_client();

  c->on_line = due_again;
  engine_want_tick(c, 0);
  for (int i = 0; i < 3; i++) {
    int64_t before = c->tick_ms;

    usleep(2000);
    turn();
    ck_assert_int_gt(c->tick_ms, before);
  }
  stop();
}
END_TEST

/* ---- many ---------------------------------------------------------------- */

START_TEST(five_hundred_clients_cost_one_send_each)
{
  enum { COUNT = 500 };
  lk_client *c[COUNT];
  int peer[COUNT];
  char byte;
  unsigned wants = 0;

  sockets_raise_descriptor_limit();
  start();
  for (size_t i = 0; i < COUNT; i++) {
    c[i] = new_connected(&peer[i]);
    engine_want_tick(c[i], now_of(c[i]) + 100000 - (int64_t)i);
  }
  turn();
  calls.send = 0;
  for (size_t i = 0; i < COUNT; i++)
    for (size_t k = 0; k < 10; k++)
      engine_write(c[i], "y", 1);
  turn();
  ck_assert_uint_eq(calls.send, COUNT);
  for (size_t i = 0; i < COUNT; i++) {
    sockets_read(peer[i], &byte, 1);
    wants += c[i]->want_calls;
  }
  memset(&calls, 0, sizeof calls);
  for (int i = 0; i < 100; i++)
    turn(); /* clients without output cost no system call */
  for (size_t i = 0; i < COUNT; i++)
    wants -= c[i]->want_calls;
  ck_assert_uint_eq(wants, 0);
  ck_assert_uint_eq(calls.send + calls.recv + calls.settime + calls.getpid, 0);
  for (size_t i = 0; i < COUNT; i++)
    close(peer[i]);
  stop();
}
END_TEST

/* ---- the loop ------------------------------------------------------------ */

static ev_prepare late;
static lk_client *late_client;

static void on_late(struct ev_loop *l, ev_prepare *w, int revents)
{
  (void)revents;
  if (ev_iteration(l) == 0)
    return;
  engine_want_tick(late_client, 0);
  ev_prepare_stop(l, w);
}

START_TEST(request_in_a_prepare_watcher_is_handled_before_waiting)
{
  loop = ev_loop_new(EVFLAG_AUTO);
  /* libev calls prepare watchers of equal priority in the reverse order of
     their start. */
  ev_prepare_init(&late, on_late);
  ev_set_priority(&late, EV_MINPRI);
  ev_prepare_start(loop, &late);
  failing_mem_init(&mem);
  fake_names_start(loop);
  ck_assert_int_eq(lk_ev_new(&ev, loop, &mem.mem), 0);
  late_client = new_client();
  turn();
  ck_assert(engine_log_was(late_client, ""));
  turn();
  ck_assert(engine_log_was(late_client, "tick\n"));
  stop();
}
END_TEST

static void on_last(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)l;
  (void)w;
  (void)revents;
  engine_want_tick(late_client, 0);
}

START_TEST(new_attempt_in_the_last_callback_keeps_the_loop_running)
{
  ev_timer last;

  start();
  late_client = new_client();
  turn();
  ev_timer_init(&last, on_last, 0.001, 0);
  ev_timer_start(loop, &last);
  ev_run(loop, 0);
  ck_assert(engine_log_was(late_client, "tick\n"));
  stop();
}
END_TEST

static atomic_uint woken;

static void on_wake(lk_ev *e, void *arg)
{
  ck_assert_ptr_eq(e, ev);
  ck_assert_ptr_eq(arg, &woken);
  woken++;
}

static void *wake_from_thread(void *arg)
{
  (void)arg;
  lk_ev_wake(ev);
  return NULL;
}

static void wake_from_signal(int number)
{
  (void)number;
  lk_ev_wake(ev);
}

START_TEST(other_threads_and_signal_handlers_wake_the_loop)
{
  struct sigaction action = {.sa_handler = wake_from_signal};
  pthread_t thread;

  start();
  ck_assert(!ev_run(loop, 0)); /* the wakeup does not keep the loop running */
  lk_ev_on_wake(ev, on_wake, &woken);
  ev_ref(loop);
  ck_assert_int_eq(pthread_create(&thread, NULL, wake_from_thread, NULL), 0);
  RUN_UNTIL(woken == 1);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
  ck_assert_int_eq(raise(SIGUSR1), 0);
  RUN_UNTIL(woken == 2);
  for (int i = 0; i < 3; i++)
    lk_ev_wake(ev);
  RUN_UNTIL(woken == 3);
  lk_ev_on_wake(ev, NULL, NULL);
  lk_ev_wake(ev);
  turn();
  ck_assert_uint_eq(woken, 3);
  ev_unref(loop);
  stop();
}
END_TEST

static atomic_bool outlived;

static void *wake_while_cancelled(void *arg)
{
  (void)arg;
  pthread_cancel(pthread_self());
  errno = 77;
  lk_ev_wake(ev);
  outlived =
      errno == 77; /* an assertion of Check would be a cancellation point */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  return NULL;
}

START_TEST(waking_the_loop_is_no_cancellation_point)
{
  pthread_t thread;

  start();
  lk_ev_on_wake(ev, on_wake, &woken);
  ev_ref(loop);
  ck_assert_int_eq(pthread_create(&thread, NULL, wake_while_cancelled, NULL),
                   0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert(outlived);
  RUN_UNTIL(woken == 1);
  ev_unref(loop);
  stop();
}
END_TEST

/* ---- descriptors and random bytes ---------------------------------------- */

static void count_ring(void *arg)
{
  ++*(unsigned *)arg;
}

START_TEST(descriptor_0_is_a_valid_descriptor)
{
  unsigned rings = 0;
  lk_transport t = {.fd = 0};
  lk_ev_loop on;
  lk_wakeup b;

  loop = ev_loop_new(EVFLAG_AUTO);
  lk__ev_loop_attach(&on, loop);
  close(0);
  errno = EINVAL;
  ck_assert_int_eq(lk__wakeup_open(&b, &on.base, count_ring, &rings), 0);
  ck_assert_int_eq(b.io.fd, 0);
  lk__wakeup_signal(&b);
  ev_run(loop, EVRUN_NOWAIT);
  ck_assert_uint_eq(rings, 1);
  lk__wakeup_close(&b);
  ck_assert_int_eq(dup(1), 0);
  lk_transport_tcp()->close(&t);
  ck_assert_int_eq(fcntl(0, F_GETFD), -1);
  ev_loop_destroy(loop);
}
END_TEST

START_TEST(client_draws_random_bytes)
{
  unsigned char drawn[2][32] = {{0}}, zero[32] = {0};

  start();
  lk_client *c = new_client();

  for (int i = 0; i < 2; i++)
    c->hooks.random(c->hooks.arg, drawn[i], sizeof drawn[i]);
  ck_assert_mem_ne(drawn[0], zero, sizeof zero);
  ck_assert_mem_ne(drawn[0], drawn[1], sizeof zero);
  stop();
}
END_TEST

SUITE("driver", address_literals_are_not_resolved,
      refused_connection_reports_address_and_errno,
      connection_to_itself_is_refused, new_attempt_closes_the_old_connection,
      attempt_that_hangs_ends_at_its_deadline,
      each_address_of_a_name_is_an_attempt, addresses_are_shuffled,
      address_used_last_is_tried_last, name_without_address_fails_the_attempt,
      attempt_that_changes_after_resolving_is_followed,
      result_of_an_outdated_lookup_is_ignored,
      thousand_outputs_leave_in_one_write,
      unchanged_watcher_costs_no_system_call,
      output_beyond_the_socket_buffer_is_sent_later,
      a_full_connection_does_not_block_the_next,
      received_bytes_are_passed_on_in_order,
      bytes_are_received_into_the_memory_of_the_client,
      busy_client_does_not_delay_the_others,
      close_and_reset_are_reported_differently,
      descriptor_that_the_loop_cannot_watch_ends_the_connection,
      replies_are_received_before_a_failed_write_is_reported,
      client_is_ticked_at_its_deadline,
      after_a_stall_deadlines_are_handled_before_bytes,
      a_deadline_that_moves_on_costs_no_system_call,
      alarm_that_fires_too_early_is_set_again,
      the_loop_sleeps_when_there_is_nothing_to_do,
      client_whose_deadline_is_always_over_does_not_block_the_loop,
      five_hundred_clients_cost_one_send_each,
      request_in_a_prepare_watcher_is_handled_before_waiting,
      new_attempt_in_the_last_callback_keeps_the_loop_running,
      other_threads_and_signal_handlers_wake_the_loop,
      waking_the_loop_is_no_cancellation_point,
      descriptor_0_is_a_valid_descriptor, client_draws_random_bytes)
