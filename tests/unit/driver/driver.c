/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "ev/loop.h"
#include "net/transport.h"
#include "net/wakeup.h"

/* ---- connecting ---------------------------------------------------------- */

/* Check that an address begins with `host`, in brackets if it is IPv6, and has
   a port: `port`, unless that is 0. */
static void expect_address(const char *address, const char *host, uint16_t port)
{
  bool is_ipv6 = strchr(host, ':') != NULL;
  const char *colon = strrchr(address, ':');
  char beginning[64];
  int len =
      snprintf(beginning, sizeof beginning, "%s%s", is_ipv6 ? "[" : "", host);

  ck_assert_int_eq(strncmp(address, beginning, (size_t)len), 0);
  ck_assert_ptr_nonnull(colon);
  ck_assert_int_gt(atoi(colon + 1), 0);
  if (port != 0)
    ck_assert_int_eq(atoi(colon + 1), port);
}

/* Connect to a listener at `address`, by the name `host`. */
static void connect_to(const char *address, const char *host)
{
  const uint16_t any_port = 0;
  uint16_t port;
  int listener = sockets_listen(address, &port);

  if (listener < 0) {
    /* This machine has no IPv6. */
    ck_assert_ptr_nonnull(strchr(address, ':'));
    return;
  }
  start();
  lk_client *c = new_client();

  engine_want_connection(c, 7, host, port, 0);
  expect(c, "connected 7\n");
  expect_address(c->peer, address, port);
  expect_address(c->local, strncmp(address, "127.", 4) == 0 ? "127." : address,
                 any_port);
  close(sockets_accept(listener));
  close(listener);
  stop();
}

START_TEST(client_connects_to_ipv4_and_ipv6_addresses)
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
  snprintf(text, sizeof text, "failed 2 CONNECT: connect to [::1]:9: %s\n",
           strerror(EMFILE)); /* libraries differ in their texts */
  expect(c, text);
  calls.no_socket = false;
  /* connect() itself fails for the broadcast address. */
  engine_want_connection(c, 3, "255.255.255.255", 9, 0);
  snprintf(text, sizeof text,
           "failed 3 CONNECT: connect to 255.255.255.255:9: %s\n",
           strerror(ENETUNREACH));
  expect(c, text);
  stop();
}
END_TEST

/* A socket that is bound to the port of the server, where nobody listens,
   connects to itself. */
START_TEST(connection_to_itself_is_refused)
{
  char text[128];

  start();
  lk_client *c = new_client();

  calls.local_port = sockets_free_port();
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
  want_no_connection(c);
  ck_assert(!ev_run(loop, 0)); /* nothing keeps the loop running any more */
  ck_assert(sockets_wait_for_end(second));
  ck_assert(engine_take_log(c, ""));
  close(first);
  close(second);
  close(listener);
  stop();
}
END_TEST

START_TEST(new_attempt_replaces_one_that_hangs)
{
  uint16_t deaf_port, port;
  int deaf = sockets_listen_deaf(&deaf_port);
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  lk_client *c = new_client();

  engine_want_connection(c, 1, "127.0.0.1", deaf_port, 0);
  for (int i = 0; i < 10; i++)
    turn();
  ck_assert(engine_take_log(c, ""));
  engine_want_connection(c, 2, "127.0.0.1", port, 0);
  expect(c, "connected 2\n");
  close(deaf);
  close(listener);
  stop();
}
END_TEST

/* ---- names --------------------------------------------------------------- */

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

static void want_second_attempt(lk_client *c, const char *line)
{
  if (strncmp(line, "resolved 1", 10) == 0)
    engine_want_connection(c, 2, "127.0.0.1", second_port, 0);
}

START_TEST(attempt_that_replaces_another_when_it_is_resolved_connects)
{
  uint16_t port;
  int first = sockets_listen("127.0.0.1", &port);
  int second = sockets_listen("127.0.0.1", &second_port);

  start();
  lk_client *c = new_client();

  c->on_line = want_second_attempt;
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
  ck_assert(engine_take_log(c, ""));
  engine_want_connection(c, 2, "127.0.0.1", port, 0);
  expect(c, "connected 2\n");
  RUN_UNTIL(fake_names_lookups() == 1);
  for (int i = 0; i < 20; i++)
    turn();
  ck_assert(engine_take_log(c, ""));
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
  ck_assert_int_eq(memcmp(room + sizeof room - 4, "abcd", 4), 0);
  turn();
  ck_assert_uint_eq(calls.send, 1);
  close(peer);
  stop();
}
END_TEST

START_TEST(sending_costs_no_call_of_epoll_ctl)
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
    engine_write(c, "abcd", sizeof room);
    turn();
    sockets_read(peer, room, sizeof room);
  }
  ck_assert_uint_eq(calls.epoll_ctl, 0);
  close(peer);
  stop();
}
END_TEST

/* More than the socket takes at once. */
enum { ALL = 16 * 1024 * 1024 };

START_TEST(output_beyond_the_socket_buffer_is_sent_later)
{
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
  ck_assert_uint_eq(calls.recv, 0); /* the driver has read nothing */
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
  unsigned char *all = calloc(1, ALL);
  char room[5];
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);
  int first, second;

  start();
  lk_client *c = new_connected(&first);

  engine_write(c, all, ALL);
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
  ck_assert_uint_eq(calls.recv, 20); /* one for each piece */
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

/* A client receives 16 times in a turn of the loop at most. */
START_TEST(busy_client_does_not_delay_the_others)
{
  enum { MOST_OF_A_TURN = 16 };
  int peer;

  start();
  lk_client *c = new_connected(&peer);

  sockets_write(peer, "x", 1);
  calls.recv_is_endless = true;
  c->log[0] = '\0';
  turn();
  ck_assert_uint_eq(c->received_calls, MOST_OF_A_TURN);
  c->log[0] = '\0';
  turn();
  ck_assert_uint_eq(c->received_calls, 2 * MOST_OF_A_TURN);
  calls.recv_is_endless = false;
  close(peer);
  stop();
}
END_TEST

START_TEST(reset_has_a_reason_and_a_close_has_none)
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
  unsigned char *all = calloc(1, ALL);
  char text[128];
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port), peer;

  start();
  ck_assert_uint_eq(ev_backend(loop), EVBACKEND_EPOLL);
  lk_client *c = new_connected(&peer);

  calls.no_epoll = true;
  engine_write(c, all, ALL); /* more than the socket takes at once */
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
  ck_assert(engine_take_log(c, "tick\n"));
  ck_assert_uint_eq(calls.settime, 0);
  ck_assert(!ev_run(loop, 0)); /* nothing keeps the loop running any more */
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
  ck_assert(engine_take_log(c, ""));
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

START_TEST(a_later_deadline_costs_no_system_call)
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
  ck_assert_uint_eq(calls.settime, FAKE_SETTIME_PER_ALARM);
  engine_want_tick(c, now + 99999);
  turn();
  ck_assert_uint_eq(calls.settime, 2 * FAKE_SETTIME_PER_ALARM);
  engine_want_tick(c, INT64_MAX);
  want_no_connection(c);
  ck_assert(!ev_run(loop, 0));
  ck_assert_uint_eq(calls.settime, 2 * FAKE_SETTIME_PER_ALARM);
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

static unsigned turns; /* of the loop */

static void count_turn(struct ev_loop *l, ev_prepare *w, int revents)
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
  ev_prepare_init(&count, count_turn);
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

static void want_tick_at_once(lk_client *c, const char *line)
{
  (void)line;
  c->log[0] = '\0';
  engine_want_tick(c, 0);
}

START_TEST(client_whose_deadline_has_always_passed_does_not_block_the_loop)
{
  start();
  lk_client *c = new_client();

  c->on_line = want_tick_at_once;
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

/* ---- many clients -------------------------------------------------------- */

START_TEST(five_hundred_clients_cost_one_send_each)
{
  enum { COUNT = 500 };
  lk_client *c[COUNT];
  int peer[COUNT];
  char byte;
  unsigned want_calls_before = 0, want_calls = 0;

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
    want_calls_before += c[i]->want_calls;
  }
  memset(&calls, 0, sizeof calls);
  /* Clients that want nothing cost no call. */
  for (int i = 0; i < 100; i++)
    turn();
  for (size_t i = 0; i < COUNT; i++)
    want_calls += c[i]->want_calls;
  ck_assert_uint_eq(want_calls, want_calls_before);
  ck_assert_uint_eq(calls.send + calls.recv + calls.settime, 0);
  ck_assert(calls.getpid == 0 || kernel_is_emulated());
  for (size_t i = 0; i < COUNT; i++)
    close(peer[i]);
  stop();
}
END_TEST

/* ---- the loop ------------------------------------------------------------ */

static ev_prepare late; /* called after the prepare watcher of the driver */
static lk_client *late_client;

static void want_tick_in_second_turn(struct ev_loop *l, ev_prepare *w,
                                     int revents)
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
  ev_prepare_init(&late, want_tick_in_second_turn);
  ev_set_priority(&late, EV_MINPRI);
  ev_prepare_start(loop, &late);
  failing_mem_init(&mem);
  fake_names_start();
  ck_assert_int_eq(lk_ev_new(&ev, loop, &mem.mem), 0);
  late_client = new_client();
  turn();
  ck_assert(engine_take_log(late_client, ""));
  turn();
  ck_assert(engine_take_log(late_client, "tick\n"));
  stop();
}
END_TEST

static void want_tick(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)l;
  (void)w;
  (void)revents;
  engine_want_tick(late_client, 0);
}

/* Without the tick, nothing would keep the loop running after the timer. */
START_TEST(tick_wanted_in_the_last_callback_keeps_the_loop_running)
{
  ev_timer last;

  start();
  late_client = new_client();
  turn();
  ev_timer_init(&last, want_tick, 0.001, 0);
  ev_timer_start(loop, &last);
  ev_run(loop, 0);
  ck_assert(engine_take_log(late_client, "tick\n"));
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

static atomic_bool errno_was_kept; /* an assertion would be a cancellation
                                      point */

static void *wake_while_cancelled(void *arg)
{
  (void)arg;
  pthread_cancel(pthread_self());
  errno = 77;
  lk_ev_wake(ev);
  errno_was_kept = errno == 77;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  return NULL;
}

START_TEST(waking_the_loop_is_no_cancellation_point_and_keeps_errno)
{
  pthread_t thread;

  start();
  lk_ev_on_wake(ev, on_wake, &woken);
  ev_ref(loop);
  ck_assert_int_eq(pthread_create(&thread, NULL, wake_while_cancelled, NULL),
                   0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert(errno_was_kept);
  RUN_UNTIL(woken == 1);
  ev_unref(loop);
  stop();
}
END_TEST

/* ---- descriptors and random bytes ---------------------------------------- */

static void count_call(void *arg)
{
  ++*(unsigned *)arg;
}

START_TEST(wakeup_and_transport_may_have_descriptor_0)
{
  unsigned wakeups = 0;
  lk_transport t = {.fd = 0};
  lk_fork_check *fork_check = lk__fork_check_new();
  lk_ev_loop on;
  lk_wakeup b;

  loop = ev_loop_new(EVFLAG_AUTO);
  lk__ev_loop_attach(&on, loop);
  close(0);
  errno = EINVAL;
  ck_assert_int_eq(
      lk__wakeup_open(&b, &on.base, fork_check, count_call, &wakeups), 0);
  ck_assert_int_eq(b.io.fd, 0);
  lk__wakeup_signal(&b);
  ev_run(loop, EVRUN_NOWAIT);
  ck_assert_uint_eq(wakeups, 1);
  lk__wakeup_close(&b);
  lk__fork_check_free(fork_check);
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

SUITE("driver", client_connects_to_ipv4_and_ipv6_addresses,
      refused_connection_reports_address_and_errno,
      connection_to_itself_is_refused, new_attempt_closes_the_old_connection,
      new_attempt_replaces_one_that_hangs,
      name_without_address_fails_the_attempt,
      attempt_that_replaces_another_when_it_is_resolved_connects,
      result_of_an_outdated_lookup_is_ignored,
      thousand_outputs_leave_in_one_write, sending_costs_no_call_of_epoll_ctl,
      output_beyond_the_socket_buffer_is_sent_later,
      a_full_connection_does_not_block_the_next,
      received_bytes_are_passed_on_in_order,
      bytes_are_received_into_the_memory_of_the_client,
      busy_client_does_not_delay_the_others,
      reset_has_a_reason_and_a_close_has_none,
      descriptor_that_the_loop_cannot_watch_ends_the_connection,
      replies_are_received_before_a_failed_write_is_reported,
      client_is_ticked_at_its_deadline,
      after_a_stall_deadlines_are_handled_before_bytes,
      a_later_deadline_costs_no_system_call,
      alarm_that_fires_too_early_is_set_again,
      the_loop_sleeps_when_there_is_nothing_to_do,
      client_whose_deadline_has_always_passed_does_not_block_the_loop,
      five_hundred_clients_cost_one_send_each,
      request_in_a_prepare_watcher_is_handled_before_waiting,
      tick_wanted_in_the_last_callback_keeps_the_loop_running,
      other_threads_and_signal_handlers_wake_the_loop,
      waking_the_loop_is_no_cancellation_point_and_keeps_errno,
      wakeup_and_transport_may_have_descriptor_0, client_draws_random_bytes)
