/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "support/harness.h"
#include "support/suite.h"
#include "support/wire.h"

static harness *h;

static void begin(const char *hosts, int32_t timeout_ms)
{
  lk_client_config config = {
      .size = sizeof config, .hosts = hosts, .session_timeout_ms = timeout_ms};

  h = calloc(1, sizeof *h);
  failing_mem_init(&h->mem);
  h->seed = 1;
  ck_assert_int_eq(harness_init(h, &config), 0);
}

static void end(void)
{
  harness_done(h);
  free(h);
}

/* The shortest and the longest of a thousand random pauses. They are close to
   the limits. */
static void measure_pauses(unsigned failed_rounds, unsigned doublings,
                           int64_t *least, int64_t *most)
{
  *least = INT64_MAX;
  *most = INT64_MIN;
  h->client->connection.failed_rounds = failed_rounds;
  for (int i = 0; i < 1000; i++) {
    const lk_client *c = h->client;
    int64_t pause =
        lk__hosts_pause_ms(c->session.timeout_ms, c->connection.failed_rounds,
                           doublings, c->hooks.random, c->hooks.arg);

    if (pause < *least)
      *least = pause;
    if (pause > *most)
      *most = pause;
  }
}

START_TEST(a_pause_is_random_in_its_upper_half_and_grows_with_the_rounds)
{
  /* longest[i]: the longest pause after i failed rounds. A pause has a tenth of
     the session timeout at most. */
  static const int64_t longest[] = {100, 200, 400, 800, 800, 800};
  int64_t least, most;

  begin("a", 8000);
  for (unsigned rounds = 0; rounds < 6; rounds++) {
    measure_pauses(rounds, LK_PAUSE_DOUBLINGS, &least, &most);
    ck_assert_int_ge(least, longest[rounds] / 2);
    ck_assert_int_le(least, longest[rounds] / 2 + 5);
    ck_assert_int_le(most, longest[rounds]);
    ck_assert_int_ge(most, longest[rounds] - 5);
  }
  measure_pauses(UINT32_MAX, LK_PAUSE_DOUBLINGS, &least, &most);
  ck_assert_int_le(most, 800);
  end();
}
END_TEST

START_TEST(the_first_pauses_of_a_holder_last_a_few_ms)
{
  static const int64_t longest[] = {3,   7,   15,  31,   62,
                                    125, 250, 500, 1000, 1000};
  int64_t least, most;

  begin("a", 30000);
  for (unsigned rounds = 0; rounds < 10; rounds++) {
    measure_pauses(rounds, LK_HOLDER_PAUSE_DOUBLINGS, &least, &most);
    ck_assert_int_ge(least, longest[rounds] / 2);
    ck_assert_int_le(most, longest[rounds]);
  }
  end();
}
END_TEST

START_TEST(pause_has_a_lower_and_an_upper_limit)
{
  int64_t least, most;

  begin("a", 60000);
  measure_pauses(9, LK_PAUSE_DOUBLINGS, &least,
                 &most); /* a second is the limit of all */
  ck_assert_int_le(most, 1000);
  ck_assert_int_ge(most, 990);
  end();
  begin("a", 1);
  measure_pauses(0, LK_PAUSE_DOUBLINGS, &least, &most);
  ck_assert_int_ge(least, 1);
  measure_pauses(9, LK_PAUSE_DOUBLINGS, &least, &most);
  ck_assert_int_eq(most, 20); /* the smallest limit */
  end();
}
END_TEST

START_TEST(all_servers_together_have_two_thirds_of_the_timeout)
{
  begin("a", 6000);
  ck_assert_int_eq(lk__connect_timeout_share_ms(h->client), 4000);
  end();
  begin("a,b,c,d", 6000);
  ck_assert_int_eq(lk__connect_timeout_share_ms(h->client), 1000);
  h->client->hosts.address_total = 1;
  ck_assert_int_eq(lk__connect_timeout_share_ms(h->client), 1000);
  h->client->hosts.address_total = 5; /* eight addresses of all hosts */
  ck_assert_int_eq(lk__connect_timeout_share_ms(h->client), 500);
  h->client->hosts.address_total = UINT32_MAX;
  /* No attempt has less. */
  ck_assert_int_eq(lk__connect_timeout_share_ms(h->client), 250);
  end();
  begin("a", INT32_MAX);
  ck_assert_int_eq(lk__connect_timeout_share_ms(h->client),
                   (int64_t)INT32_MAX * 2 / 3);
  end();
}
END_TEST

static void welcome(int32_t timeout_ms)
{
  lk_buf b = wire_buf();

  wire_welcome(&b, 7, timeout_ms);
  harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
}

static int64_t attempt_ends_in_ms(void)
{
  return lk_client_deadline(h->client) - h->now;
}

START_TEST(an_attempt_is_limited_when_the_addresses_are_known)
{
  begin("zk", 30000);
  harness_settle(h);
  ck_assert_int_eq(attempt_ends_in_ms(), 20000);
  h->now += 3000; /* the name server takes three seconds */
  harness_resolved(h, 5);
  ck_assert_int_eq(attempt_ends_in_ms(), 1000);
  harness_failed(h, LK_ERR_CONNECT, NULL);
  ck_assert_int_eq(attempt_ends_in_ms(), 1000);
  harness_connected(h);
  ck_assert_int_eq(attempt_ends_in_ms(), 3750);
  end();
}
END_TEST

START_TEST(a_slow_name_server_does_not_shorten_an_attempt)
{
  begin("zk", 30000);
  harness_settle(h);
  h->now += 19000;
  harness_resolved(h, 5);
  ck_assert_uint_eq(h->want.attempt, 1);
  ck_assert_int_eq(attempt_ends_in_ms(), 1000);
  end();
}
END_TEST

/* A driver that tries several addresses at a time reports each of them. */
START_TEST(each_address_has_its_time_and_all_have_a_limit)
{
  begin("zk,zk2", 30000);
  harness_settle(h);
  h->now += 100;
  harness_resolved(h, 4);
  h->now += 250;
  harness_resolved(h, 3);
  ck_assert_int_eq(attempt_ends_in_ms(), 1000);
  h->now += 600;
  harness_resolved(h, 2);
  ck_assert_int_eq(attempt_ends_in_ms(), 1750 - 250 - 600);
  harness_failed(h, LK_ERR_CONNECT, NULL);
  ck_assert_uint_eq(h->want.address_index, 1);
  harness_resolved(h, 2); /* none is left */
  harness_failed(h, LK_ERR_CONNECT, NULL);
  ck_assert_uint_eq(h->want.address_index, 0); /* of the other name */
  end();
}
END_TEST

/* A name server that shows other addresses each time must not keep a client at
   one name. */
START_TEST(later_reports_of_addresses_add_no_attempts)
{
  begin("zk,zk2", 30000);
  harness_settle(h);
  for (uint32_t attempt = 0; attempt < 3; attempt++) {
    ck_assert_uint_eq(h->want.address_index, attempt);
    harness_resolved(h, attempt + 3);
    harness_failed(h, LK_ERR_CONNECT, NULL);
  }
  ck_assert_uint_eq(h->want.address_index, 0);
  end();
}
END_TEST

typedef struct limits {
  const char *hosts;
  int32_t timeout_ms;
  unsigned passes;
  int64_t tcp_ms;
  int64_t handshake_ms;
} limits;

START_TEST(attempts_are_short_at_first)
{
  static const limits all[] = {
      {"10.0.0.1", 30000, 0, 20000, 20000},
      {"10.0.0.1,10.0.0.2", 30000, 0, 1000, 3750},
      {"10.0.0.1,10.0.0.2", 30000, 1, 2000, 7500},
      {"10.0.0.1,10.0.0.2", 30000, 2, 4000, 10000},
      {"10.0.0.1,10.0.0.2", 30000, UINT32_MAX, 10000, 10000},
      {"10.0.0.1,10.0.0.2", 6000, 0, 750, 1000},
      {"10.0.0.1,10.0.0.2", 6000, 1, 1500, 2000},
      {"10.0.0.1,10.0.0.2", 1000, 0, 250, 333},
      {"10.0.0.1,10.0.0.2,10.0.0.3", 60000, 0, 1000, 7500},
  };

  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    begin(all[i].hosts, all[i].timeout_ms);
    h->client->connection.passes = all[i].passes;
    harness_settle(h);
    ck_assert_int_eq(attempt_ends_in_ms(), all[i].tcp_ms);
    harness_connected(h);
    ck_assert_int_eq(attempt_ends_in_ms(), all[i].handshake_ms);
    end();
  }
}
END_TEST

/* A holder has left a silent server, and needs a reply within two seconds. */
START_TEST(servers_share_the_time_of_a_holder)
{
  begin("10.0.0.1,10.0.0.2,10.0.0.3", 30000);
  h->client->silence.needed_ms = h->now + 2000;
  harness_settle(h);
  ck_assert_int_eq(attempt_ends_in_ms(), 500);
  harness_failed(h, LK_ERR_CONNECT, NULL);
  ck_assert_int_eq(attempt_ends_in_ms(), 666);
  harness_connected(h);
  ck_assert_int_eq(attempt_ends_in_ms(), 3750);
  end();
}
END_TEST

START_TEST(an_attempt_has_twice_the_time_that_the_last_connection_took)
{
  begin("10.0.0.1,10.0.0.2", 6000);
  h->mute = true;
  harness_settle(h);
  h->now += 700;
  harness_connected(h);
  h->now += 900;
  welcome(6000);
  harness_failed(h, LK_ERR_CONNECTION_LOSS, NULL);
  while (h->want.attempt == 0)
    harness_pass(h, 1);
  ck_assert_int_eq(attempt_ends_in_ms(), 1400);
  harness_connected(h);
  ck_assert_int_eq(attempt_ends_in_ms(), 1800);
  end();
}
END_TEST

START_TEST(an_address_that_connects_keeps_its_time_when_it_is_resolved_late)
{
  begin("zk", 30000);
  harness_settle(h);
  harness_connected(h);
  harness_resolved(h, 5); /* a mistake of the driver: it is connected already */
  ck_assert_int_eq(attempt_ends_in_ms(), 20000);
  end();
}
END_TEST

/* The last reply arrived at `start`, and the session may end 30 s later. */
START_TEST(each_address_has_its_attempt_before_the_session_ends)
{
  begin("zk", 30000);
  h->mute = true;
  harness_settle(h);
  harness_resolved(h, 2);
  harness_failed(h, LK_ERR_CONNECT, NULL);
  int64_t start = h->now;

  harness_connected(h);
  welcome(30000);
  while (lk_client_connection(h->client) != 0)
    harness_pass(h, 1);
  ck_assert_int_eq(h->now - start, 20000);
  while (h->want.attempt == 0)
    harness_pass(h, 1);
  /* The first address gets an attempt, which has no reply either. */
  ck_assert_uint_eq(h->want.address_index, 0);
  harness_resolved(h, 2);
  while (h->want.address_index == 0)
    harness_pass(h, 1);
  ck_assert_int_le(h->now - start, 25500);
  end();
}
END_TEST

/* The share of an attempt is 4 s here, a fifth of two thirds of 30 s. */
START_TEST(an_attempt_has_half_its_share_however_little_time_is_left)
{
  begin("10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5", 30000);
  h->mute = true;
  harness_settle(h);
  harness_connected(h);
  welcome(30000);
  harness_failed(h, 0, NULL);
  h->now += 29999;
  h->client->connection.passes = 9; /* so only the share limits it */
  h->client->now = h->now;
  lk__connect_timeout_begin(h->client);
  ck_assert_int_eq(h->client->connection.attempt_end_ms - h->now, 2000);
  h->client->now++; /* the session may end now, so the usual limit holds */
  lk__connect_timeout_begin(h->client);
  ck_assert_int_eq(h->client->connection.attempt_end_ms - h->client->now, 4000);
  end();
}
END_TEST

/* During an attempt to connect to a silent server the driver does not call the
   client for seconds. The client's deadline is 1 ms later than the timeout: see
   a_timeout_rounds_up. */
START_TEST(a_timeout_begins_when_the_request_is_made)
{
  const harness_call first = {.name = "first", .timeout_ms = 15000};
  const harness_call second = {.name = "second", .timeout_ms = 2000};

  begin("a", 60000);
  harness_settle(h);
  h->now += 100;
  ck_assert_int_eq(harness_get(h, &first, "/a"), 0);
  h->now += 5000;
  ck_assert_int_eq(harness_get(h, &second, "/a"), 0);
  ck_assert_int_eq(lk_client_deadline(h->client), h->now + 2001);
  end();
}
END_TEST

static void connect_and_block_output(void)
{
  h->mute = true;
  harness_settle(h);
  harness_connected(h);
  welcome(60000);
  h->room = 0;
}

START_TEST(a_timeout_begins_when_the_request_is_made_while_output_is_blocked)
{
  const harness_call first = {.name = "first"};
  const harness_call second = {.name = "second", .timeout_ms = 2000};

  begin("a", 60000);
  connect_and_block_output();
  ck_assert_int_eq(harness_get(h, &first, "/a"), 0);
  h->now += 3000;
  ck_assert_int_eq(harness_get(h, &second, "/a"), 0);
  ck_assert_int_eq(lk_client_deadline(h->client), h->now + 2001);
  end();
}
END_TEST

static int64_t second_deadline_in_ms;

static void make_second_request(harness *of, const char *name,
                                const char *event)
{
  const harness_call second = {.name = "second", .timeout_ms = 2000};

  (void)event;
  if (strcmp(name, "first") != 0)
    return;
  of->now += 3000; /* other callbacks have taken three seconds */
  ck_assert_int_eq(harness_get(of, &second, "/a"), 0);
  second_deadline_in_ms = lk_client_deadline(of->client) - of->now;
}

START_TEST(a_timeout_in_a_callback_begins_when_the_request_is_made)
{
  const harness_call first = {.name = "first", .timeout_ms = 10};

  begin("a", 60000);
  connect_and_block_output();
  h->react = make_second_request;
  ck_assert_int_eq(harness_get(h, &first, "/a"), 0);
  harness_pass(h, 11);
  ck_assert_int_eq(second_deadline_in_ms, 2001);
  end();
}
END_TEST

/* The clock is rounded down to milliseconds: when it says 5, it may be
 * almost 6. */
START_TEST(a_timeout_rounds_up)
{
  const harness_call call = {.name = "call", .timeout_ms = 10};

  begin("a", 60000);
  harness_settle(h);
  ck_assert_int_eq(harness_get(h, &call, "/a"), 0);
  harness_pass(h, 10);
  ck_assert_uint_eq(harness_open_requests(h), 1);
  harness_pass(h, 1);
  ck_assert_uint_eq(harness_open_requests(h), 0);
  end();
}
END_TEST

START_TEST(the_longest_timeout_never_ends)
{
  const harness_call call = {.name = "call", .timeout_ms = INT64_MAX};

  begin("a", 60000);
  connect_and_block_output();
  int64_t before = lk_client_deadline(h->client);

  ck_assert_int_eq(harness_get(h, &call, "/a"), 0);
  ck_assert_int_eq(lk_client_deadline(h->client), before);
  end();
}
END_TEST

static bool hook_has_connected;

/* A hook `wake` that connects, after some time. */
static void connect_in_hook(lk_client *c, void *arg)
{
  lk_want want;

  (void)arg;
  if (hook_has_connected)
    return;
  hook_has_connected = true;
  h->now += 100;
  want = *lk_client_want(c);
  lk_client_connected(c, want.attempt);
}

START_TEST(handshake_begins_when_the_hook_connects)
{
  begin("a", 60000);
  void (*wake)(lk_client * c, void *arg) = h->client->hooks.wake;

  hook_has_connected = false;
  h->client->hooks.wake = connect_in_hook;
  lk_client_tick(h->client);
  ck_assert(hook_has_connected);
  ck_assert_int_eq(h->client->connection.handshake_sent_ms, h->now);
  h->client->hooks.wake = wake;
  end();
}
END_TEST

static unsigned fires;

static void fire_again(lk_client *c, void *arg)
{
  fires++;
  lk_timer_start(c, arg, h->now);
}

START_TEST(timers_that_restart_themselves_do_not_block_the_loop)
{
  lk_timer t = {.fire = fire_again, .arg = &t};

  begin("a", 60000);
  fires = 0;
  lk_timer_start(h->client, &t, h->now);
  lk_client_tick(h->client);
  ck_assert_uint_eq(fires, 10000); /* as many as one tick allows */
  ck_assert_int_eq(lk_client_deadline(h->client), h->now);
  lk_timer_stop(h->client, &t);
  end();
}
END_TEST

static void count_fire(lk_client *c, void *arg)
{
  unsigned *fired = arg;

  (void)c;
  ++*fired;
}

START_TEST(an_ended_client_runs_no_timer)
{
  unsigned fired = 0;
  lk_timer far = {.fire = count_fire, .arg = &fired};
  lk_timer due = {.fire = count_fire, .arg = &fired};

  begin("a", 8000);
  lk_timer_start(h->client, &far, h->now + 3600000);
  ck_assert_int_eq(lk_client_close(h->client, NULL, NULL), 0);
  harness_settle(h);
  ck_assert_int_eq(lk_client_state(h->client), LK_STATE_CLOSED);
  ck_assert_int_eq(lk_client_deadline(h->client), INT64_MAX);
  lk_timer_start(h->client, &due, h->now);
  ck_assert_int_eq(lk_client_deadline(h->client), INT64_MAX);
  h->now += 3600000;
  lk_client_tick(h->client);
  ck_assert_uint_eq(fired, 0);
  end();
}
END_TEST

static unsigned fired_by_tick;

/* The other timer that is due fires when the callback has returned. */
static void tick_in_a_callback(lk_client *c, void *arg)
{
  (void)arg;
  lk_client_tick(c);
  ck_assert_uint_eq(fired_by_tick, 0);
}

START_TEST(a_tick_inside_a_callback_is_lost)
{
  lk_timer first = {.fire = tick_in_a_callback};
  lk_timer other = {.fire = count_fire, .arg = &fired_by_tick};

  fired_by_tick = 0;
  begin("a", 8000);
  lk_timer_start(h->client, &first, h->now - 1);
  lk_timer_start(h->client, &other, h->now);
  lk_client_tick(h->client);
  ck_assert_uint_eq(fired_by_tick, 1);
  end();
}
END_TEST

SUITE("timing", a_pause_is_random_in_its_upper_half_and_grows_with_the_rounds,
      the_first_pauses_of_a_holder_last_a_few_ms,
      pause_has_a_lower_and_an_upper_limit,
      all_servers_together_have_two_thirds_of_the_timeout,
      an_attempt_is_limited_when_the_addresses_are_known,
      a_slow_name_server_does_not_shorten_an_attempt,
      each_address_has_its_time_and_all_have_a_limit,
      later_reports_of_addresses_add_no_attempts, attempts_are_short_at_first,
      servers_share_the_time_of_a_holder,
      an_attempt_has_twice_the_time_that_the_last_connection_took,
      an_address_that_connects_keeps_its_time_when_it_is_resolved_late,
      each_address_has_its_attempt_before_the_session_ends,
      an_attempt_has_half_its_share_however_little_time_is_left,
      a_timeout_begins_when_the_request_is_made,
      a_timeout_begins_when_the_request_is_made_while_output_is_blocked,
      a_timeout_in_a_callback_begins_when_the_request_is_made,
      a_timeout_rounds_up, the_longest_timeout_never_ends,
      handshake_begins_when_the_hook_connects,
      timers_that_restart_themselves_do_not_block_the_loop,
      an_ended_client_runs_no_timer, a_tick_inside_a_callback_is_lost)
