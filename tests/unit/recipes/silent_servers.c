/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "support/locks.h"
#include "support/suite.h"

/* Holders whose server does not reply. Three names lead to the model server; a
 * test lets the server be silent at one of them, or at all. */

enum { PHASES = 16, STEADY = 3 * T, LONGEST = 10 * T };

static lock_pair lp;
static int64_t begun_ms;

static void begin_at(const char *hosts)
{
  model_init(&lp.server);
  begun_ms = lp.server.now;
  lp.server.hosts = hosts;
  lock_pair_open(&lp, NULL, NULL);
}

static void hold_until(int phase)
{
  lock_pair_hold(&lp);
  model_run(&lp.server, STEADY + phase * T / PHASES);
}

static void begin_held_at(const char *hosts, int phase)
{
  begin_at(hosts);
  hold_until(phase);
}

/* One step of a loop that waits for an event, which comes before LONGEST. */
static void run_one_ms(void)
{
  ck_assert_int_lt(lp.server.now, begun_ms + LONGEST);
  model_run(&lp.server, 1);
}

static const char *server_in_use(void)
{
  static char host[sizeof lp.one.link->host];

  memcpy(host, lp.one.link->host, sizeof host);
  return host;
}

/* The holder has moved at most once, and was never unsure. */
static void expect_moves(int most)
{
  bool stayed = strcmp(lp.a.events, "") == 0;
  bool moved = strcmp(lp.a.events, "suspended\n") == 0;

  ck_assert_msg(stayed || (moved && most > 0), "%s", lp.a.events);
  ck_assert(lk_lock_ok(lp.a.lock));
}

static uint64_t connections(void)
{
  return lk_client_connection(lp.one.link->client);
}

/* The server in use is silent from now on. */
static void expect_a_move_from_silent_server(void)
{
  lp.server.silent = server_in_use();
  model_run(&lp.server, 3 * T);
  ck_assert(locker_check_events(&lp.a, "suspended\n"));
  ck_assert(lk_lock_ok(lp.a.lock));
}

/* The larger margin is that of latchkey run, where TERM is sent a sixth of the
 * timeout before the deadline. */
START_TEST(holder_moves_to_another_server_before_it_is_unsure)
{
  static const int32_t margins_ms[] = {T / 8, T / 6};

  for (int i = 0; i < 2; i++) {
    for (int phase = 0; phase < PHASES; phase++) {
      begin_at("a,b,c");
      ck_assert_int_eq(lk_lease_set_margin(lp.one.link->client, margins_ms[i]),
                       0);
      hold_until(phase);
      expect_a_move_from_silent_server();
      ck_assert_uint_eq(connections(), 2);
      lock_pair_end(&lp);
    }
  }
}
END_TEST

/* The client of `b` has no holder. */
START_TEST(client_that_waits_stays_at_a_silent_server)
{
  begin_at("a,b,c");
  lock_pair_queue(&lp);
  model_run(&lp.server, STEADY);
  lp.two.link->frozen = true;
  model_run(&lp.server, T / 2);
  lp.two.link->frozen = false;
  model_run(&lp.server, T / 10);
  ck_assert_uint_eq(lk_client_connection(lp.two.link->client), 1);
  lock_pair_end(&lp);
}
END_TEST

/* The names other than `silent`, one of which is next in turn. */
static const char *other_name(const char *silent, int which)
{
  static const char *const names[] = {"a", "b", "c"};
  int skipped = 0;

  for (int i = 0; i < 3; i++) {
    if (strcmp(names[i], silent) != 0 && skipped++ == which)
      return names[i];
  }
  return NULL;
}

START_TEST(holder_reaches_the_third_server_if_the_second_is_unreachable)
{
  for (int which = 0; which < 2; which++) {
    for (int phase = 0; phase < PHASES; phase++) {
      begin_held_at("a,b,c", phase);
      lp.server.unreachable = other_name(server_in_use(), which);
      expect_a_move_from_silent_server();
      lp.server.unreachable = NULL;
      lock_pair_end(&lp);
    }
  }
}
END_TEST

/* The other servers refuse clients for a while, as in an election. */
START_TEST(silent_server_is_not_tried_again_while_a_holder_needs_another)
{
  begin_held_at("a,b,c", 0);
  const char *silent = server_in_use();

  lp.server.silent = silent;
  lp.server.down = true;
  while (connections() == 1)
    run_one_ms();
  for (int64_t ms = 0; ms < T / 10; ms++) {
    model_run(&lp.server, 1);
    ck_assert_str_ne(lp.one.link->host, silent);
  }
  lp.server.down = false;
  model_run(&lp.server, 2 * T);
  expect_moves(1);
  lock_pair_end(&lp);
}
END_TEST

/* For `ms`, one server or all of them do not reply. */
static void stall(bool all, int64_t ms)
{
  lp.server.silent = all ? "*" : server_in_use();
  model_run(&lp.server, ms);
  lp.server.silent = NULL;
  model_run(&lp.server, 2 * T);
}

START_TEST(stall_costs_one_move_at_most)
{
  static const struct {
    int64_t ms;
    int moves;
  } stalls[] = {{T * 15 / 100, 0}, {T / 5, 1}, {T / 4, 1}, {T * 3 / 10, 1}};

  for (int all = 0; all <= 1; all++) {
    for (size_t i = 0; i < sizeof stalls / sizeof stalls[0]; i++) {
      for (int phase = 0; phase < PHASES; phase++) {
        begin_held_at("a,b,c", phase);
        stall(all, stalls[i].ms);
        expect_moves(stalls[i].moves);
        ck_assert_uint_le(connections(), (uint64_t)stalls[i].moves + 1);
        lock_pair_end(&lp);
      }
    }
  }
}
END_TEST

/* Servers that are slow for long must not be loaded with the moves of all their
 * clients. */
START_TEST(holder_moves_once_in_a_session_timeout)
{
  begin_held_at("a,b,c", 0);
  lp.server.silent = server_in_use();
  while (connections() != 2)
    run_one_ms();
  int64_t moved_ms = lp.server.now;

  model_run(&lp.server, T * 4 / 10);
  lp.server.silent = server_in_use();
  while (connections() == 2)
    run_one_ms();
  /* by the rule for all clients */
  ck_assert_int_gt(lp.server.now - moved_ms, T * 9 / 10);
  lp.server.silent = NULL;
  lock_pair_end(&lp);
}
END_TEST

START_TEST(client_of_one_server_does_not_move)
{
  begin_held_at("a", 0);
  lp.server.silent = "a";
  while (lk_lock_get_state(lp.a.lock) == LK_LOCK_HELD)
    run_one_ms();
  ck_assert_uint_eq(connections(), 1);
  ck_assert(locker_check_events(&lp.a, "unsure\n"));
  lp.server.silent = NULL;
  model_run(&lp.server, T / 10);
  ck_assert(locker_check_events(&lp.a, "held\n"));
  lock_pair_end(&lp);
}
END_TEST

/* Let the server reply to the next heartbeat, whose reply is not delivered
 * until `allow` is SIZE_MAX again. */
static void hold_back_a_heartbeat(void)
{
  lp.one.link->allow = 0;
  lp.one.link->log[0] = '\0';
  while (model_count(lp.one.link, "multi") == 0)
    run_one_ms();
}

/* The reply waits in the kernel while the process stands still, until shortly
 * before the holder is unsure. The tick comes before the bytes are read. */
START_TEST(process_that_stood_still_reads_the_reply_before_it_moves)
{
  begin_held_at("a,b,c", 0);
  hold_back_a_heartbeat();
  lp.one.link->allow = SIZE_MAX;
  lp.server.now += T * 3 / 10;
  model_run(&lp.server, 2 * T);
  expect_moves(0);
  ck_assert_uint_eq(connections(), 1);
  lock_pair_end(&lp);
}
END_TEST

/* The process stands still between the two looks at the server, whose reply
 * arrives meanwhile. */
START_TEST(look_that_comes_late_is_repeated)
{
  begin_held_at("a,b,c", 0);
  hold_back_a_heartbeat();
  while (lp.one.link->client->silence.look_ms == LK_NEVER)
    run_one_ms();
  lp.one.link->allow = SIZE_MAX;
  lp.server.now += T / 10; /* the tick comes before the bytes are read */
  model_run(&lp.server, T);
  ck_assert_uint_eq(connections(), 1);
  expect_moves(0);
  lock_pair_end(&lp);
}
END_TEST

/* Bytes of a reply that takes long to arrive. */
START_TEST(holder_does_not_leave_a_server_whose_reply_arrives_slowly)
{
  begin_held_at("a,b,c", 0);
  char data[100000] = "";

  ck_assert_int_eq(lk_set(lp.one.link->client, "/locks",
                          lk_bytes_of(data, sizeof data), -1, NULL, NULL, NULL),
                   0);
  model_turn(&lp.server);
  lk_get(lp.one.link->client, "/locks", NULL, NULL, NULL);
  lp.one.link->allow = 0;
  for (int64_t ms = 0; ms < T * 66 / 100; ms += T / 100) {
    lp.one.link->allow = 1000;
    model_run(&lp.server, T / 100);
  }
  ck_assert_uint_eq(connections(), 1);
  lp.one.link->allow = SIZE_MAX;
  lock_pair_end(&lp);
}
END_TEST

/* A request of 1 MiB needs 8 s at 1 Mbit/s, longer than the session timeout. */
START_TEST(holder_does_not_leave_because_of_a_request_that_is_sent_slowly)
{
  begin_held_at("a,b,c", 0);
  static char data[1000 * 1000];

  ck_assert_int_eq(lk_set(lp.one.link->client, "/locks",
                          lk_bytes_of(data, sizeof data), -1, NULL, NULL, NULL),
                   0);
  lp.one.link->frozen = true;
  model_run(&lp.server, T * 65 / 100);
  ck_assert_uint_eq(connections(), 1);
  lp.one.link->frozen = false;
  lock_pair_end(&lp);
}
END_TEST

SUITE("silent_servers", holder_moves_to_another_server_before_it_is_unsure,
      client_that_waits_stays_at_a_silent_server,
      holder_reaches_the_third_server_if_the_second_is_unreachable,
      silent_server_is_not_tried_again_while_a_holder_needs_another,
      stall_costs_one_move_at_most, holder_moves_once_in_a_session_timeout,
      client_of_one_server_does_not_move,
      process_that_stood_still_reads_the_reply_before_it_moves,
      look_that_comes_late_is_repeated,
      holder_does_not_leave_a_server_whose_reply_arrives_slowly,
      holder_does_not_leave_because_of_a_request_that_is_sent_slowly)
