/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/driver/driver.h"

#include <poll.h>
#include <stdio.h>

#include "net/connection.h"
#include "net/resolver.h"

/* Attempts at names with several addresses. */

static int64_t now_ms(const lk_client *c)
{
  return c->hooks.now(c->hooks.arg);
}

static void on_guard(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)l;
  (void)w;
  (void)revents;
  ck_abort_msg("the attempt does not end");
}

/* Have the client want an attempt, and run the loop until its end. Returns how
   long that took, in ms. */
static int64_t attempt(lk_client *c, uint64_t number, const char *host,
                       uint16_t port, uint32_t address_index)
{
  int64_t began_ms = now_ms(c);
  ev_timer guard;

  ev_timer_init(&guard, on_guard, 10, 0);
  ev_timer_start(loop, &guard);
  c->log[0] = '\0';
  engine_want_connection(c, number, host, port, address_index);
  RUN_UNTIL(strstr(c->log, "connected") != NULL ||
            strstr(c->log, "failed") != NULL);
  ev_timer_stop(loop, &guard);
  return now_ms(c) - began_ms;
}

static bool is_connected(const lk_client *c)
{
  return strstr(c->log, "connected") != NULL;
}

static void disconnect(lk_client *c)
{
  want_no_connection(c);
  turn();
}

/* Listen at the two addresses of two.test. Returns the port. */
static uint16_t listen_at_both(int listeners[2])
{
  uint16_t port;

  listeners[0] = sockets_listen("127.0.0.1", &port);
  listeners[1] = sockets_listen_at("127.0.0.2", port);
  return port;
}

static void close_both(const int listeners[2])
{
  close(listeners[0]);
  close(listeners[1]);
}

/* The listener has one of the six addresses of dead.test. */
START_TEST(refused_addresses_are_followed_at_once)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  lk_client *c = new_client();

  for (uint64_t n = 1; n <= 20; n++) {
    ck_assert_int_lt(attempt(c, n, "dead.test", port, 0), LK_RACE_DELAY_MS);
    ck_assert(is_connected(c));
    disconnect(c);
  }
  close(listener);
  stop();
}
END_TEST

START_TEST(attempt_fails_when_all_addresses_have_refused)
{
  start();
  lk_client *c = new_client();

  attempt(c, 1, "dead.test", sockets_dead_port(), 0);
  ck_assert_ptr_eq(strstr(c->log, "resolved 1 6\nresolved 1 5\nresolved 1 4\n"
                                  "resolved 1 3\nresolved 1 2\nresolved 1 1\n"
                                  "failed 1 CONNECT: connect to 127."),
                   c->log);
  ck_assert_uint_eq(fake_names_lookups(), 1);
  stop();
}
END_TEST

/* Two servers listen at the two addresses of the name. */
START_TEST(address_of_the_last_connection_is_tried_last)
{
  int listeners[2];
  uint16_t port = listen_at_both(listeners);
  int last = -1;

  start();
  lk_client *c = new_client();

  for (uint64_t n = 1; n <= 20; n++) {
    attempt(c, n, "two.test", port, 0);
    int reached = sockets_quiet(listeners[0]) ? 1 : 0;

    ck_assert_int_ne(reached, last);
    last = reached;
    close(sockets_accept(listeners[reached]));
    ck_assert(sockets_quiet(listeners[1 - reached]));
    disconnect(c);
  }
  close_both(listeners);
  stop();
}
END_TEST

/* Which of two clients reaches which server is random. */
START_TEST(clients_spread_over_the_addresses)
{
  int listeners[2];
  uint16_t port = listen_at_both(listeners);
  unsigned reached_first = 0;

  start();
  for (int n = 0; n < 60; n++) {
    lk_client *c = new_client();

    attempt(c, 1, "two.test", port, 0);
    if (sockets_quiet(listeners[0]))
      close(sockets_accept(listeners[1]));
    else {
      close(sockets_accept(listeners[0]));
      reached_first++;
    }
    lk_client_free(c);
    turn();
  }
  ck_assert_uint_gt(reached_first, 0);
  ck_assert_uint_lt(reached_first, 60);
  close_both(listeners);
  stop();
}
END_TEST

/* One of the two addresses does not reply. It counts as not tried then. */
START_TEST(address_without_reply_costs_250_ms)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);
  int deaf = sockets_listen_deaf_at("127.0.0.2", &port);
  unsigned slow = 0;

  start();
  for (int n = 0; n < 10; n++) {
    lk_client *c = new_client();
    int64_t took_ms = attempt(c, 1, "two.test", port, 0);

    ck_assert(is_connected(c));
    ck_assert_int_lt(took_ms, 2 * LK_RACE_DELAY_MS);
    if (took_ms >= LK_RACE_DELAY_MS) {
      slow++;
      ck_assert_str_eq(c->log, "resolved 1 2\nresolved 1 1\nresolved 1 2\n"
                               "connected 1\n");
    }
    lk_client_free(c);
  }
  ck_assert_uint_gt(slow, 0);
  close(listener);
  close(deaf);
  stop();
}
END_TEST

/* None of the six addresses replies. */
START_TEST(at_most_three_addresses_are_tried_at_a_time)
{
  uint16_t port = 0;
  int deaf[6] = {sockets_listen_deaf(&port)};

  for (int i = 1; i < 6; i++) {
    char address[24];

    snprintf(address, sizeof address, "127.9.9.%d", i);
    deaf[i] = sockets_listen_deaf_at(address, &port);
  }
  start();
  lk_client *c = new_client();
  int64_t began_ms = now_ms(c);

  c->tcp_limit_ms = 1400;
  calls.socket = 0;
  engine_want_connection(c, 1, "dead.test", port, 0);
  RUN_UNTIL(calls.socket == 1);
  RUN_UNTIL(calls.socket == 2);
  ck_assert_int_ge(now_ms(c) - began_ms, LK_RACE_DELAY_MS);
  RUN_UNTIL(calls.socket == 3);
  ck_assert_int_ge(now_ms(c) - began_ms, 3 * LK_RACE_DELAY_MS);
  RUN_UNTIL(calls.socket == 4); /* the first one is ended */
  ck_assert_int_ge(now_ms(c) - began_ms, c->tcp_limit_ms);
  disconnect(c);
  for (int i = 0; i < 6; i++)
    close(deaf[i]);
  stop();
}
END_TEST

START_TEST(address_without_reply_is_given_up_in_time)
{
  uint16_t port = 0;
  int deaf[2] = {sockets_listen_deaf(&port), -1};

  deaf[1] = sockets_listen_deaf_at("127.0.0.2", &port);
  start();
  lk_client *c = new_client();

  c->tcp_limit_ms = 100;
  int64_t took_ms = attempt(c, 1, "two.test", port, 0);

  ck_assert_ptr_eq(strstr(c->log, "resolved 1 2\nresolved 1 1\n"
                                  "failed 1 CONNECT: connect to 127.0.0."),
                   c->log);
  ck_assert_ptr_nonnull(strstr(c->log, ": no connection in time\n"));
  ck_assert_int_ge(took_ms, 200);
  close(deaf[0]);
  close(deaf[1]);
  stop();
}
END_TEST

/* The client wants another attempt at the same name: the address that was in
   use has failed, and the others are tried. */
START_TEST(later_attempts_use_the_addresses_that_are_left)
{
  int listeners[2];
  uint16_t port = listen_at_both(listeners);

  start();
  lk_client *c = new_client();

  attempt(c, 1, "two.test", port, 0);
  int first = sockets_quiet(listeners[0]) ? 1 : 0;

  ck_assert_str_eq(c->log, "resolved 1 2\nconnected 1\n");
  attempt(c, 2, "two.test", port, 1);
  ck_assert_str_eq(c->log, "resolved 2 2\nconnected 2\n");
  ck_assert(!sockets_quiet(listeners[1 - first]));
  attempt(c, 3, "two.test", port, 2); /* none is left: all are tried again */
  ck_assert_str_eq(c->log, "resolved 3 4\nconnected 3\n");
  ck_assert_uint_eq(fake_names_lookups(), 1);
  close_both(listeners);
  stop();
}
END_TEST

/* The remembered address does not reply. The name server does, later. */
START_TEST(addresses_that_come_late_are_tried)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);
  int deaf = sockets_listen_deaf_at("127.0.0.2", &port);

  start();
  lk_client *c = new_client();

  engine_want_connection(c, 1, "moved.test", port, 0);
  RUN_UNTIL(c->log[0] != '\0');
  disconnect(c);
  poll(NULL, 0, LK_LOOKUP_INTERVAL_MS);
  fake_names_moved = true;
  int64_t took_ms = attempt(c, 2, "moved.test", port, 0);

  ck_assert(is_connected(c));
  ck_assert_int_ge(took_ms, FAKE_NAMES_LATE_MS);
  ck_assert_int_lt(took_ms, c->tcp_limit_ms);
  close(listener);
  close(deaf);
  stop();
}
END_TEST

START_TEST(attempt_waits_for_a_name_server_when_its_addresses_have_refused)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  lk_client *c = new_client();

  attempt(c, 1, "moved.test", port, 0);
  ck_assert(!is_connected(c));
  poll(NULL, 0, LK_LOOKUP_INTERVAL_MS);
  fake_names_moved = true;
  attempt(c, 2, "moved.test", port, 0);
  ck_assert_str_eq(c->log, "resolved 2 1\nresolved 2 1\nconnected 2\n");
  close(listener);
  stop();
}
END_TEST

/* The name server is down, and the server may be up again soon. */
START_TEST(attempt_does_not_wait_long_for_a_name_server)
{
  uint16_t port = sockets_dead_port();

  start();
  lk_client *c = new_client();

  attempt(c, 1, "moved.test", port, 0);
  poll(NULL, 0, LK_LOOKUP_INTERVAL_MS);
  fake_names_hang = true;
  int64_t took_ms = attempt(c, 2, "moved.test", port, 0);

  ck_assert(!is_connected(c));
  ck_assert_int_ge(took_ms, LK_LOOKUP_REMEMBERED_MS + LK_RACE_WAIT_MS);
  ck_assert_int_lt(took_ms, 2 * LK_RACE_WAIT_MS);
  stop();
}
END_TEST

START_TEST(address_in_place_of_a_name_is_not_looked_up)
{
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);

  start();
  lk_client *c = new_client();

  attempt(c, 1, "127.0.0.1", port, 0);
  ck_assert_str_eq(c->log, "connected 1\n");
  ck_assert_uint_eq(fake_names_lookups(), 0);
  close(listener);
  stop();
}
END_TEST

SUITE("race", refused_addresses_are_followed_at_once,
      attempt_fails_when_all_addresses_have_refused,
      address_of_the_last_connection_is_tried_last,
      clients_spread_over_the_addresses, address_without_reply_costs_250_ms,
      at_most_three_addresses_are_tried_at_a_time,
      address_without_reply_is_given_up_in_time,
      later_attempts_use_the_addresses_that_are_left,
      addresses_that_come_late_are_tried,
      attempt_waits_for_a_name_server_when_its_addresses_have_refused,
      attempt_does_not_wait_long_for_a_name_server,
      address_in_place_of_a_name_is_not_looked_up)
