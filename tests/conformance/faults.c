/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Connections that break, requests that are refused, memory that is missing. */

/* ---- at the n-th request ------------------------------------------------- */

/* Both clients acquire the lock. Each must get it once, and holds it for 12
   steps of T / 40, which is longer than the pause between two heartbeats. */
static void take_turns(bool own_first)
{
  locker *const lockers[] = {own_first ? &fx.own : &fx.rival,
                             own_first ? &fx.rival : &fx.own};
  int left[2] = {12, 12};

  for (int i = 0; i < 2; i++)
    fixture_acquire(lockers[i]);
  for (int i = 0; i < 400 && left[0] + left[1] > 0; i++) {
    model_run(&fx.server, T / 40);
    ck_assert(!lk_lock_ok(fx.own.lock) || !lk_lock_ok(fx.rival.lock));
    for (int j = 0; j < 2; j++) {
      if (left[j] == 0 || lockers[j]->acquired == NOT_YET)
        continue;
      ck_assert_int_eq(lockers[j]->acquired, 0);
      if (--left[j] == 0)
        ck_assert_int_eq(lk_lock_release(lockers[j]->lock, NULL, NULL), 0);
    }
  }
  ck_assert_int_eq(left[0] + left[1], 0);
  model_run(&fx.server, T / 4);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
}

typedef enum fault { BREAK_BEFORE, BREAK_AFTER, THROTTLE } fault;

static void strike_at(fault f, unsigned n)
{
  fx.ours.link->requests = 0;
  if (f == THROTTLE)
    fx.ours.link->throttle_at = n;
  else
    fx.ours.link->cut_at = n;
  fx.ours.link->cut_after = f == BREAK_AFTER;
}

/* Both take turns while the fault happens at the own client's n-th request.
   false: the client has sent fewer requests. */
static bool survives(const kind *k, fault f, unsigned n, bool own_first)
{
  fixture_begin(k);
  strike_at(f, n);
  take_turns(own_first);
  bool happened = fx.ours.link->requests >= n;

  fixture_end();
  return happened;
}

static void survive_at_any_request(const kind *k, fault f)
{
  for (int own_first = 0; own_first < 2; own_first++) {
    unsigned n = 1;

    while (survives(k, f, n, own_first == 1))
      n++;
    ck_assert_uint_ge(n, 5);
  }
}

SCENARIO(break_before_any_request_loses_no_node_and_no_place)
{
  survive_at_any_request(k, BREAK_BEFORE);
}

SCENARIO(break_after_any_request_loses_no_node_and_no_place)
{
  survive_at_any_request(k, BREAK_AFTER);
}

SCENARIO(throttled_request_is_repeated)
{
  survive_at_any_request(k, THROTTLE);
}

/* A try must be granted although the own client may have left a node before the
   connection broke: that node is not another client's. The directories do not
   exist, so that the fault may also happen while they are created. */
static bool try_survives(const kind *k, fault f, unsigned n)
{
  fixture_begin_empty(k, 0);
  test_client_init(&fx.ours, &fx.server, NULL);
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  ck_assert(fixture_try_init(&fx.own, &fx.ours, &c));
  model_turn(&fx.server);
  test_client_init(&fx.theirs, &fx.server, NULL);
  ck_assert(fixture_try_init(&fx.rival, &fx.theirs, &c));
  strike_at(f, n);
  ck_assert_int_eq(locker_acquire(&fx.own, 0), 0);
  model_run(&fx.server, T / 2);
  bool happened = fx.ours.link->requests >= n;

  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert(lk_lock_ok(fx.own.lock));
  ck_assert_uint_eq(fixture_count_nodes(), k->held_nodes);
  fixture_end();
  return happened;
}

SCENARIO(try_of_a_free_lock_is_granted_with_a_fault_at_any_request)
{
  for (int f = BREAK_BEFORE; f <= THROTTLE; f++) {
    unsigned n = 1;

    while (try_survives(k, (fault)f, n))
      n++;
    ck_assert_uint_gt(n, 3);
  }
}

/* ---- memory -------------------------------------------------------------- */

/* Allocation n of the own client fails, and with `for_good` all later ones.
   With `waits` the rival holds the lock at first. false: the client has made
   fewer allocations. */
static bool survives_without(const kind *k, size_t n, bool for_good, bool waits)
{
  fixture_begin_empty(k, waits ? SIZE_MAX : 0);
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  test_client_init(&fx.theirs, &fx.server, NULL);
  ck_assert(fixture_try_init(&fx.rival, &fx.theirs, &c));
  if (waits)
    fixture_hold(&fx.rival);
  failing_mem_init(&fx.ours.mem);
  fx.ours.mem.fail_at = n;
  fx.ours.mem.for_good = for_good;
  locker_clear(&fx.own, &fx.ours);
  if (test_client_try_init(&fx.ours, &fx.server, NULL) &&
      fixture_try_init(&fx.own, &fx.ours, &c)) {
    model_run(&fx.server, T / 4);
    int err = locker_acquire(&fx.own, 2 * T);

    model_run(&fx.server, T / 2);
    if (waits)
      fixture_release(&fx.rival);
    model_run(&fx.server, T / 2);
    if (err == 0 && !for_good)
      ck_assert(fx.own.acquired == 0 || fx.own.acquired == LK_ERR_NO_MEMORY);
    (void)lk_lock_release(fx.own.lock, NULL, NULL);
    model_run(&fx.server, T);
  }
  bool failed = failing_mem_failed(&fx.ours.mem);

  fx.ours.mem.fail_at = 0;
  if (fx.own.lock != NULL)
    lk_lock_cancel(fx.own.lock); /* without memory it may still be waiting */
  locker_free(&fx.own);
  locker_free(&fx.rival);
  model_run(&fx.server, T);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
  test_client_free(&fx.ours);
  test_client_free(&fx.theirs);
  model_done(&fx.server);
  return failed;
}

static void run_out_at_any_allocation(const kind *k, bool for_good, bool waits)
{
  size_t n = 1;

  while (survives_without(k, n, for_good, waits))
    n++;
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_uint_gt(n, 10);
}

SCENARIO(any_allocation_of_an_acquire_may_fail)
{
  run_out_at_any_allocation(k, false, false);
}

SCENARIO(all_later_allocations_may_fail_too)
{
  run_out_at_any_allocation(k, true, false);
}

SCENARIO(any_allocation_of_a_waiter_may_fail)
{
  run_out_at_any_allocation(k, false, true);
}

const scenario fault_scenarios[] = {
    &break_before_any_request_loses_no_node_and_no_place,
    &break_after_any_request_loses_no_node_and_no_place,
    &try_of_a_free_lock_is_granted_with_a_fault_at_any_request,
    &throttled_request_is_repeated,
    &any_allocation_of_an_acquire_may_fail,
    &all_later_allocations_may_fail_too,
    &any_allocation_of_a_waiter_may_fail,
    NULL};
