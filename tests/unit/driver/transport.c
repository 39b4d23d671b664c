/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/driver/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "net/connection.h"
#include "net/transport.h"

/*
 * Tests the driver with a fake transport, which takes the place of TCP in this
 * program. The fake transport waits like TLS: for bytes before it sends, until
 * the descriptor is writable before it receives, and several times before it is
 * connected.
 */
enum { CLIENT, PEER };

static int ends[2];                    /* of the connection: CLIENT and PEER */
static const char *host = "127.0.0.1"; /* of the attempts */

/* What each step of the handshake returns. */
static const lk_flow *handshake_flows;

/* What the next call of send() and of recv() returns. Later calls return DONE.
 */
static lk_flow next_send_flow, next_recv_flow;

/* Numbers of calls of the transport. */
static unsigned handshake_steps, sends, recv_calls, closes;

static lk_flow fake_handshake(lk_transport *t)
{
  snprintf(t->why, sizeof t->why, "no luck");
  t->err = LK_ERR_CONNECT;
  handshake_steps++;
  return *handshake_flows++;
}

static lk_flow fake_open(lk_transport *t, const lk_endpoint *to)
{
  ck_assert_int_eq(to->address->sa_family, AF_INET);
  ck_assert_str_eq(to->host, host);
  ck_assert_ptr_null(to->tls);
  t->fd = dup(ends[CLIENT]);
  return fake_handshake(t);
}

static lk_flow take_flow(lk_flow *next)
{
  lk_flow now = *next;

  *next = LK_FLOW_DONE;
  return now;
}

static lk_flow fake_send(lk_transport *t, const void *bytes, size_t len,
                         size_t *done)
{
  lk_flow flow = take_flow(&next_send_flow);

  sends++;
  t->err = LK_ERR_CONNECTION_LOSS;
  *done = 0;
  if (flow != LK_FLOW_DONE)
    return flow;
  sockets_write(t->fd, bytes, len);
  *done = len;
  return LK_FLOW_DONE;
}

/* How many times recv() can still fill its buffer with bytes that the transport
   already has. The descriptor is not readable because of them. */
static unsigned full_receives_left;

static bool fake_has_more(const lk_transport *t)
{
  (void)t;
  return full_receives_left > 0;
}

/* Bytes that recv() has read from the descriptor and has not returned yet. */
static char held[16];
static ssize_t held_len;

static lk_flow fake_recv(lk_transport *t, void *room, size_t size, size_t *got)
{
  lk_flow flow = take_flow(&next_recv_flow);
  ssize_t n = held_len;

  recv_calls++;
  t->err = LK_ERR_CONNECTION_LOSS;
  *got = 0;
  if (full_receives_left > 0) {
    full_receives_left--;
    /* Discard the byte that has woken the driver. */
    (void)recv(t->fd, room, 1, MSG_DONTWAIT);
    memset(room, 'p', size);
    *got = size;
    return LK_FLOW_DONE;
  }
  if (flow != LK_FLOW_DONE) {
    held_len = read(t->fd, held, sizeof held);
    return flow;
  }
  if (n > 0)
    memcpy(room, held, (size_t)n);
  else
    n = recv(t->fd, room, size, MSG_DONTWAIT);
  held_len = 0;
  if (n < 0)
    return LK_FLOW_READ;
  *got = (size_t)n;
  return n == 0 ? LK_FLOW_END : LK_FLOW_DONE;
}

static void fake_close(lk_transport *t)
{
  if (t->fd < 0)
    return;
  close(t->fd);
  t->fd = -1;
  closes++;
}

static bool use_fake; /* clients use the fake transport instead of TCP */

const lk_transport_type *__real_lk_transport_tcp(void);
const lk_transport_type *__wrap_lk_transport_tcp(void);
const lk_transport_type *__wrap_lk_transport_tcp(void)
{
  static const lk_transport_type type = {
      .size = sizeof type,
      .object_size = sizeof(lk_transport),
      .open = fake_open,
      .handshake = fake_handshake,
      .send = fake_send,
      .recv = fake_recv,
      .has_more = fake_has_more,
      .close = fake_close,
  };

  return use_fake ? &type : __real_lk_transport_tcp();
}

static lk_client *begin(const lk_flow *flows)
{
  lk_client *c;

  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  handshake_flows = flows;
  next_send_flow = LK_FLOW_DONE;
  next_recv_flow = LK_FLOW_DONE;
  handshake_steps = 0;
  closes = 0;
  full_receives_left = 0;
  use_fake = true;
  start();
  c = new_client();
  engine_want_connection(c, 1, host, 1, 0);
  return c;
}

static void finish(void)
{
  stop();
  use_fake = false;
  ck_assert_uint_eq(closes, 1);
  close(ends[CLIENT]);
  close(ends[PEER]);
}

static const lk_flow connected_at_once[] = {LK_FLOW_DONE};

START_TEST(handshake_waits_for_the_event_it_needs)
{
  static const lk_flow flows[] = {LK_FLOW_WRITE, LK_FLOW_READ, LK_FLOW_READ,
                                  LK_FLOW_WRITE, LK_FLOW_DONE};
  char byte;
  lk_client *c = begin(flows);

  for (int i = 0; i < 5; i++)
    turn();
  ck_assert_uint_eq(handshake_steps, 2); /* the peer is silent */
  sockets_write(ends[PEER], "x", 1);
  turn();
  ck_assert_uint_eq(handshake_steps, 3);
  sockets_read(ends[CLIENT], &byte, 1);
  for (int i = 0; i < 5; i++)
    turn();
  ck_assert_uint_eq(handshake_steps, 3);
  ck_assert(engine_take_log(c, ""));
  sockets_write(ends[PEER], "x", 1);
  expect(c, "connected 1\n");
  expect(c, "received 1\n");
  finish();
}
END_TEST

START_TEST(a_handshake_may_fail)
{
  static const lk_flow hung_up[] = {LK_FLOW_WRITE, LK_FLOW_END};
  static const lk_flow failed[] = {LK_FLOW_WRITE, LK_FLOW_FAILED};

  expect(begin(hung_up),
         "failed 1 CONNECT: the server closed the connection\n");
  finish();
  expect(begin(failed), "failed 1 CONNECT: no luck\n");
  finish();
}
END_TEST

START_TEST(sending_may_wait_until_the_descriptor_is_readable)
{
  char byte;
  lk_client *c = begin(connected_at_once);

  expect(c, "connected 1\n");
  sends = 0;
  next_send_flow = LK_FLOW_READ;
  for (int i = 0; i < 5; i++) {
    engine_write(c, "y", 1);
    turn();
  }
  ck_assert_uint_eq(sends, 1);
  sockets_write(ends[PEER], "x", 1);
  expect(c, "received 1\n");
  turn();
  ck_assert_uint_eq(sends, 2);
  sockets_read(ends[PEER], &byte, 1);
  finish();
}
END_TEST

START_TEST(receiving_may_wait_until_the_descriptor_is_writable)
{
  lk_client *c = begin(connected_at_once);

  expect(c, "connected 1\n");
  recv_calls = 0;
  next_recv_flow = LK_FLOW_WRITE;
  sockets_write(ends[PEER], "x", 1);
  expect(c, "received 1\n");
  for (int i = 0; i < 5; i++)
    turn(); /* the descriptor is writable, which the driver no longer watches */
  ck_assert_uint_eq(recv_calls, 2);
  finish();
}
END_TEST

static void on_enough(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)w;
  (void)revents;
  ev_break(l, EVBREAK_ALL);
}

/* Run the loop for some time, and expect that it sleeps. */
static void expect_sleep(void)
{
  ev_timer enough;
  unsigned before = ev_iteration(loop);

  ev_timer_init(&enough, on_enough, .05, 0);
  ev_timer_start(loop, &enough);
  ev_run(loop, 0);
  ck_assert_uint_le(ev_iteration(loop) - before, 5);
}

START_TEST(receiving_that_waits_for_writability_does_not_spin)
{
  enum { LEN = 1024 * 1024 };
  char *bytes = calloc(1, LEN);
  ssize_t n = 1;
  lk_client *c = begin(connected_at_once);

  expect(c, "connected 1\n");
  ck_assert_ptr_nonnull(bytes);
  ck_assert_int_eq(fcntl(ends[CLIENT], F_SETFL, O_NONBLOCK), 0);
  while (n > 0)
    n = write(ends[CLIENT], bytes, LEN);
  recv_calls = 0;
  next_recv_flow = LK_FLOW_WRITE;
  sockets_write(ends[PEER], "x", 1);
  for (int i = 0; i < 5; i++)
    turn();
  sockets_write(ends[PEER], "y", 1);
  expect_sleep();
  ck_assert_uint_eq(recv_calls, 1);
  for (int i = 0; i < 100 && !engine_take_log(c, "received 1\n"); i++) {
    ck_assert_int_gt(read(ends[PEER], bytes, LEN), 0);
    turn();
  }
  ck_assert_uint_gt(recv_calls, 1);
  free(bytes);
  finish();
}
END_TEST

/* TLS does so when the peer asks for new keys: the reply has to wait until the
   descriptor is writable, and no data follows. */
START_TEST(receiving_that_waited_for_writability_waits_for_bytes_again)
{
  lk_client *c = begin(connected_at_once);

  expect(c, "connected 1\n");
  recv_calls = 0;
  next_recv_flow = LK_FLOW_WRITE;
  sockets_write(ends[PEER], "x", 1);
  for (int i = 0; i < 5 && recv_calls < 1; i++)
    turn();
  held_len = 0;
  for (int i = 0; i < 5; i++)
    turn();
  ck_assert_uint_eq(recv_calls, 2);
  expect_sleep();
  ck_assert(engine_take_log(c, ""));
  sockets_write(ends[PEER], "y", 1);
  expect(c, "received 1\n");
  finish();
}
END_TEST

START_TEST(bytes_held_by_the_transport_are_received_before_waiting)
{
  lk_client *c = begin(connected_at_once);

  expect(c, "connected 1\n");
  full_receives_left = 40;
  sockets_write(ends[PEER], "x", 1);
  for (int i = 0; i < 10; i++)
    turn();
  ck_assert_uint_eq(full_receives_left, 0);
  ck_assert_uint_eq(c->received_calls, 40);
  finish();
}
END_TEST

START_TEST(receive_without_bytes_is_not_the_end)
{
  lk_client *c = begin(connected_at_once);

  expect(c, "connected 1\n");
  next_recv_flow = LK_FLOW_READ;
  sockets_write(ends[PEER], "x", 1);
  for (int i = 0; i < 5; i++)
    turn();
  ck_assert(engine_take_log(c, ""));
  sockets_write(ends[PEER], "y", 1);
  expect(c, "received 1\n");
  expect(c, "received 1\n");
  shutdown(ends[PEER], SHUT_WR);
  expect(c, "failed 1 0: -\n");
  finish();
}
END_TEST

/* TCP is connected to the first address, and TLS is under way. Another
   handshake would be one more for the servers. */
START_TEST(next_address_waits_a_second_for_a_tls_handshake)
{
  static const lk_flow flows[] = {LK_FLOW_READ, LK_FLOW_READ};

  host = "two.test";
  lk_client *c = begin(flows);

  c->tcp_limit_ms = 10 * LK_RACE_MAX_DELAY_MS;
  RUN_UNTIL(handshake_steps == 1);
  c->log[0] = '\0'; /* the report of the second address comes, or a tick */
  int64_t began_ms = c->hooks.now(c->hooks.arg);

  engine_want_tick(c, began_ms + 2 * LK_RACE_MAX_DELAY_MS);
  RUN_UNTIL(handshake_steps == 2 || c->log[0] != '\0');
  int64_t took_ms = c->hooks.now(c->hooks.arg) - began_ms;

  ck_assert_int_ge(took_ms, LK_RACE_MAX_DELAY_MS);
  ck_assert_int_lt(took_ms, 2 * LK_RACE_MAX_DELAY_MS);
  want_no_connection(c);
  turn();
  closes--; /* of two connections */
  finish();
  host = "127.0.0.1";
}
END_TEST

SUITE("transport", next_address_waits_a_second_for_a_tls_handshake,
      handshake_waits_for_the_event_it_needs, a_handshake_may_fail,
      sending_may_wait_until_the_descriptor_is_readable,
      receiving_may_wait_until_the_descriptor_is_writable,
      receiving_that_waits_for_writability_does_not_spin,
      receiving_that_waited_for_writability_waits_for_bytes_again,
      bytes_held_by_the_transport_are_received_before_waiting,
      receive_without_bytes_is_not_the_end)
