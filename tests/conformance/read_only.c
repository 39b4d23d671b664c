/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* A client that accepts a read-only server. The model server aborts the test if
   a write arrives at it. */

/* Makes the own client and its lock. false: no memory. */
static bool try_make(lk_assurance assurance)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .session_timeout_ms = T,
                                    .read_only = true,
                                    .mem = &fx.own_client.mem.mem};
  lk_lease_config lease_config = {.size = sizeof lease_config,
                                  .assurance = assurance};
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  locker_clear(&fx.own, &fx.own_client);
  fx.own_client.link = model_client(&fx.server, &client_config);
  return fx.own_client.link != NULL &&
         lk_lease_configure(fx.own_client.link->client, &lease_config) == 0 &&
         fixture_try_make(&fx.own, &fx.own_client, &c);
}

/* Makes them on a server that is set up. */
static void make(lk_assurance assurance)
{
  failing_mem_init(&fx.own_client.mem);
  ck_assert(try_make(assurance));
  model_turn(&fx.server);
}

static void end(void)
{
  locker_free(&fx.own);
  test_client_free(&fx.own_client);
  model_done(&fx.server);
}

static void expect_state(lk_state state)
{
  ck_assert_int_eq(lk_client_state(fx.own_client.link->client), state);
}

/* The server has a quorum again and closes all connections. `lost_session`, if
   not 0, expires. */
static void regain_quorum(int64_t lost_session)
{
  model_regain_quorum(&fx.server);
  model_drop(fx.own_client.link);
  if (lost_session != 0)
    model_expire(&fx.server, lost_session);
  model_run(&fx.server, T / 2);
}

enum { NO_SESSION = 0 };

static bool is_held(void)
{
  return fx.own.acquired == 0 && lk_lock_ok(fx.own.lock) &&
         lk_lock_deadline(fx.own.lock) > fx.server.now;
}

SCENARIO(acquire_waits_for_a_quorum)
{
  for (int connected = 0; connected < 2; connected++) {
    if (connected)
      fixture_begin_server(k);
    else
      fixture_begin_empty(k);
    model_lose_quorum(&fx.server);
    make(LK_ASSURE_QUORUM);
    if (!connected)
      fixture_break_connection(&fx.own_client);
    ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
    model_run(&fx.server, T);
    fx.server.down = false;
    model_run(&fx.server, 2 * T);
    expect_state(LK_STATE_READ_ONLY);
    ck_assert_int_eq(fx.own.acquired, NOT_YET);
    ck_assert(locker_check_events(&fx.own, ""));
    regain_quorum(NO_SESSION);
    ck_assert(is_held());
    end();
  }
}

SCENARIO(lock_is_lost_before_a_read_only_server_serves_reads)
{
  fixture_begin_server(k);
  make(LK_ASSURE_PING);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  model_run(&fx.server, T);
  ck_assert(is_held());
  fx.own.events[0] = '\0';
  int64_t session = fx.own_client.link->last_session;

  model_lose_quorum(&fx.server);
  model_drop(fx.own_client.link);
  model_run(&fx.server, T);
  expect_state(LK_STATE_SUSPENDED);
  model_run(&fx.server, T);
  expect_state(LK_STATE_READ_ONLY);
  ck_assert(locker_check_events(&fx.own,
                                "suspended\nunsure\nlost SESSION_EXPIRED\n"));
  ck_assert(!lk_lock_ok(fx.own.lock));
  ck_assert_int_eq(lk_lease_deadline(fx.own_client.link->client), INT64_MIN);
  ck_assert_int_eq(locker_try_release(&fx.own), LK_ERR_LOST);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  model_run(&fx.server, T);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  regain_quorum(session);
  ck_assert(is_held());
  end();
}

/* Acquires the lock at a read-only server while allocation n fails. false: the
   client has made fewer. */
static bool acquire_without_allocation(const kind *k, size_t n)
{
  fixture_begin_server(k);
  model_lose_quorum(&fx.server);
  failing_mem_init(&fx.own_client.mem);
  fx.own_client.mem.fail_at = n;
  bool started =
      try_make(LK_ASSURE_QUORUM) && locker_acquire(&fx.own, FOREVER) == 0;

  model_run(&fx.server, T);
  if (started) {
    ck_assert(fx.own.acquired == NOT_YET ||
              fx.own.acquired == LK_ERR_NO_MEMORY);
    regain_quorum(NO_SESSION);
    model_run(&fx.server, 2 * T);
    ck_assert(is_held() || fx.own.acquired == LK_ERR_NO_MEMORY);
  }
  bool failed = failing_mem_failed(&fx.own_client.mem);

  end();
  return failed;
}

SCENARIO(any_allocation_of_an_acquire_without_a_quorum_may_fail)
{
  size_t n = 1;

  while (acquire_without_allocation(k, n))
    n++;
  ck_assert_int_eq(fx.own.acquired, 0); /* the last one had all memory */
}

const scenario read_only_scenarios[] = {
    &acquire_waits_for_a_quorum,
    &lock_is_lost_before_a_read_only_server_serves_reads,
    &any_allocation_of_an_acquire_without_a_quorum_may_fail, NULL};
