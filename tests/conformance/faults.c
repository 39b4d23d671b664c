/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Connections that break, requests that are refused, memory that is missing. */

/* ---- at the n-th request ------------------------------------------------- */

enum { HOLD_STEPS = 12, STEPS_MAX = 400 };

/* Both clients acquire the lock. Each must get it once, and holds it for
   HOLD_STEPS of T / 40, which is longer than the pause between two
   heartbeats. */
static void take_turns(locker *first, locker *second)
{
  locker *const lockers[] = {first, second};
  int steps_left[2] = {HOLD_STEPS, HOLD_STEPS};

  for (int i = 0; i < 2; i++)
    locker_request(lockers[i]);
  for (int i = 0; i < STEPS_MAX && steps_left[0] + steps_left[1] > 0; i++) {
    model_run(&fx.server, T / 40);
    ck_assert(!lk_lock_ok(fx.own.lock) || !lk_lock_ok(fx.rival.lock));
    for (int j = 0; j < 2; j++) {
      if (steps_left[j] == 0 || lockers[j]->acquired == NOT_YET)
        continue;
      ck_assert_int_eq(lockers[j]->acquired, 0);
      if (steps_left[j] == HOLD_STEPS)
        ck_assert_uint_eq(lk_lock_token(lockers[j]->lock),
                          fixture_newest_czxid(lockers[j]->p));
      if (--steps_left[j] == 0)
        ck_assert_int_eq(lk_lock_release(lockers[j]->lock, NULL, NULL), 0);
    }
  }
  ck_assert_int_eq(steps_left[0] + steps_left[1], 0);
  model_run(&fx.server, T / 4);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
}

typedef enum fault { BREAK_BEFORE, BREAK_AFTER, THROTTLE } fault;

/* Lets the fault happen at the own client's n-th request from now. */
static void set_fault(fault f, unsigned n)
{
  fx.own_client.link->requests = 0;
  fx.own_client.link->throttle_at = f == THROTTLE ? n : 0;
  fx.own_client.link->cut_at = f == THROTTLE ? 0 : n;
  fx.own_client.link->cut_after = f == BREAK_AFTER;
}

enum { WHOLE = 0 }; /* replies are not delivered in pieces */

/* Both clients take turns, and the fault happens at the own client's n-th
   request. Its replies arrive in pieces of `piece_len` bytes. false: the client
   has sent fewer requests. */
static bool take_turns_with_fault(const kind *k, fault f, unsigned n,
                                  bool own_first, size_t piece_len)
{
  fixture_begin(k);
  fx.own_client.link->step = piece_len;
  set_fault(f, n);
  if (own_first)
    take_turns(&fx.own, &fx.rival);
  else
    take_turns(&fx.rival, &fx.own);
  bool happened = fx.own_client.link->requests >= n;

  fixture_end();
  return happened;
}

static void take_turns_with_fault_at_each_request(const kind *k, fault f)
{
  for (int i = 0; i < 2; i++) {
    const bool own_first = i == 1;
    unsigned n = 1;

    while (take_turns_with_fault(k, f, n, own_first, WHOLE))
      n++;
    ck_assert_uint_ge(n, 5); /* some requests were struck */
  }
}

SCENARIO(break_before_any_request_loses_no_node_and_no_place)
{
  take_turns_with_fault_at_each_request(k, BREAK_BEFORE);
}

SCENARIO(break_after_any_request_loses_no_node_and_no_place)
{
  take_turns_with_fault_at_each_request(k, BREAK_AFTER);
}

SCENARIO(break_among_replies_in_pieces_prevents_no_grant)
{
  for (size_t piece_len = 1; piece_len < 8; piece_len++) {
    for (int i = 0; i < 2; i++)
      ck_assert(take_turns_with_fault(k, BREAK_AFTER, 3, i == 1, piece_len));
  }
}

SCENARIO(throttled_request_is_repeated)
{
  take_turns_with_fault_at_each_request(k, THROTTLE);
}

/* No reply to an acquire arrives before the connection breaks. The fault
   happens at the n-th request on the next connection, when the rival has
   queued. false: the client has sent fewer requests. */
static bool recover_with_fault(const kind *k, fault f, unsigned n)
{
  fixture_begin(k);
  fx.own_client.link->allow = 0;
  locker_request(&fx.own);
  fixture_break_connection(&fx.own_client);
  fx.own_client.link->allow = SIZE_MAX;
  set_fault(f, n);
  locker_request(&fx.rival);
  fixture_reconnect();
  model_run(&fx.server, T / 4);
  bool happened = fx.own_client.link->requests >= n;

  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_int_eq(fx.rival.acquired, NOT_YET);
  locker_release(&fx.own);
  model_run(&fx.server, T / 2);
  ck_assert_int_eq(fx.rival.acquired, 0);
  ck_assert_ptr_null(fixture_node_of(&fx.own_client, 0));
  fixture_end();
  return happened;
}

SCENARIO(fault_at_any_request_of_a_recovery_loses_no_place)
{
  for (int f = BREAK_BEFORE; f <= THROTTLE; f++) {
    unsigned n = 1;

    while (recover_with_fault(k, (fault)f, n))
      n++;
    ck_assert_uint_gt(n, 2); /* some requests were struck */
  }
}

typedef enum giving_up { CANCEL, FREE, FREE_UNSENT } giving_up;

static void give_up(giving_up how)
{
  if (how != CANCEL) {
    locker_free(&fx.own);
    return;
  }
  lk_lock_cancel(fx.own.lock);
  (void)lk_lock_release(fx.own.lock, NULL, NULL); /* if it was granted */
}

/* The connection breaks at the n-th request, and the acquire is given up after
   `bytes` on the next connection have arrived, or before its first request is
   sent. Sets whether more bytes would have arrived. false: the client has sent
   fewer requests. */
static bool give_up_after_fault(const kind *k, fault f, unsigned n,
                                giving_up how, size_t bytes, bool *more)
{
  fixture_begin(k);
  set_fault(f, n);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  if (how == FREE_UNSENT)
    give_up(how);
  model_turn(&fx.server);
  fx.own_client.link->allow = bytes;
  model_run(&fx.server, T / 10);
  *more = fx.own_client.link->allow == 0;
  if (how != FREE_UNSENT)
    give_up(how);
  fx.own_client.link->allow = SIZE_MAX;
  model_run(&fx.server, T / 2);
  bool happened = fx.own_client.link->requests >= n;

  ck_assert_uint_eq(fixture_count_nodes(), 0);
  fixture_end();
  return happened;
}

SCENARIO(acquire_given_up_after_a_break_leaves_nothing)
{
  for (int how = CANCEL; how <= FREE_UNSENT; how++) {
    for (int f = BREAK_BEFORE; f <= BREAK_AFTER; f++) {
      unsigned n = 0;
      bool happened = true;

      while (happened) {
        bool more = true;

        n++;
        for (size_t bytes = 0; more; bytes += 19) /* less than a reply has */
          happened =
              give_up_after_fault(k, (fault)f, n, (giving_up)how, bytes, &more);
      }
      ck_assert_uint_gt(n, 2); /* some requests were struck */
    }
  }
}

/* Connect both clients, whose locks have no directories yet: a fault can also
   happen while these are created. */
static void begin_without_directories(const kind *k)
{
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  fixture_begin_empty(k);
  test_client_init(&fx.own_client, &fx.server, NULL);
  ck_assert(fixture_try_make(&fx.own, &fx.own_client, &c));
  model_turn(&fx.server);
  test_client_init(&fx.rival_client, &fx.server, NULL);
  ck_assert(fixture_try_make(&fx.rival, &fx.rival_client, &c));
}

/* A try must be granted although the own client may have left a node before the
   connection broke: the node does not belong to another client.
   false: the client has sent fewer requests than n. */
static bool try_with_fault(const kind *k, fault f, unsigned n)
{
  begin_without_directories(k);
  set_fault(f, n);
  ck_assert_int_eq(locker_try_with_next_connection(&fx.own), 0);
  model_run(&fx.server, T / 2);
  bool happened = fx.own_client.link->requests >= n;

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

    while (try_with_fault(k, (fault)f, n))
      n++;
    ck_assert_uint_gt(n, 3); /* some requests were struck */
  }
}

/* The connection breaks at the n-th request of a try that needs it. Returns the
   result of the try. */
static int try_on_one_connection(const kind *k, fault f, unsigned n)
{
  begin_without_directories(k);
  model_turn(&fx.server);
  set_fault(f, n);
  ck_assert_int_eq(locker_try(&fx.own), 0);
  model_turn(&fx.server);
  int result = fx.own.acquired;

  model_run(&fx.server, T / 2);
  ck_assert_int_eq(fx.own.acquired, result);
  ck_assert_uint_eq(fixture_count_nodes(), result == 0 ? k->held_nodes : 0);
  fixture_end();
  return result;
}

SCENARIO(try_ends_with_the_connection_at_any_request_and_leaves_nothing)
{
  for (int f = BREAK_BEFORE; f <= BREAK_AFTER; f++) {
    unsigned n = 1;
    int result;

    while ((result = try_on_one_connection(k, (fault)f, n)) != 0) {
      ck_assert_int_eq(result, LK_ERR_NOT_CONNECTED);
      n++;
    }
    ck_assert_uint_gt(n, 2); /* some requests were struck */
  }
}

/* ---- memory -------------------------------------------------------------- */

/* An acquire in which allocations of the own client fail. */
typedef struct starved_acquire {
  bool for_good;    /* all allocations after the first that fails do so, too */
  bool rival_holds; /* the rival holds the lock at first, in directories that
                       exist */
  bool breaks;      /* the connection breaks after the second request of the
                       acquire; the directories exist */
} starved_acquire;

/* Allocation n of the own client fails. false: it has made fewer. */
static bool acquire_without_allocation(const kind *k, size_t n,
                                       const starved_acquire *how)
{
  if (how->rival_holds || how->breaks)
    fixture_begin_server(k);
  else
    fixture_begin_empty(k);
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  test_client_init(&fx.rival_client, &fx.server, NULL);
  ck_assert(fixture_try_make(&fx.rival, &fx.rival_client, &c));
  if (how->rival_holds)
    fixture_hold(&fx.rival);
  failing_mem_init(&fx.own_client.mem);
  fx.own_client.mem.fail_at = n;
  fx.own_client.mem.for_good = how->for_good;
  locker_clear(&fx.own, &fx.own_client);
  if (test_client_try_init(&fx.own_client, &fx.server, NULL) &&
      fixture_try_make(&fx.own, &fx.own_client, &c)) {
    model_run(&fx.server, T / 4);
    if (how->breaks)
      set_fault(BREAK_AFTER, 2);
    int err = locker_acquire(&fx.own, 2 * T);

    model_run(&fx.server, T / 2);
    if (how->rival_holds)
      fixture_release(&fx.rival);
    model_run(&fx.server, T / 2);
    if (err == 0 && !how->for_good)
      ck_assert(fx.own.acquired == 0 || fx.own.acquired == LK_ERR_NO_MEMORY);
    (void)lk_lock_release(fx.own.lock, NULL, NULL); /* if it is held */
    model_run(&fx.server, T);
  }
  bool failed = failing_mem_failed(&fx.own_client.mem);

  fx.own_client.mem.fail_at = 0;
  if (fx.own.lock != NULL)
    lk_lock_cancel(fx.own.lock); /* without memory it may still be waiting */
  locker_free(&fx.own);
  locker_free(&fx.rival);
  model_run(&fx.server, T);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
  test_client_free(&fx.own_client);
  test_client_free(&fx.rival_client);
  model_done(&fx.server);
  return failed;
}

static void acquire_without_each_allocation(const kind *k, starved_acquire how)
{
  size_t n = 1;

  while (acquire_without_allocation(k, n, &how))
    n++;
  ck_assert_int_eq(fx.own.acquired, 0); /* the last acquire had all memory */
  ck_assert_uint_gt(n, 10);
}

SCENARIO(any_allocation_of_an_acquire_may_fail)
{
  acquire_without_each_allocation(k, (starved_acquire){.for_good = false});
}

SCENARIO(all_later_allocations_may_fail_too)
{
  acquire_without_each_allocation(k, (starved_acquire){.for_good = true});
}

SCENARIO(any_allocation_of_a_waiter_may_fail)
{
  acquire_without_each_allocation(k, (starved_acquire){.rival_holds = true});
}

SCENARIO(any_allocation_of_a_recovery_may_fail)
{
  acquire_without_each_allocation(k, (starved_acquire){.breaks = true});
}

const scenario fault_scenarios[] = {
    &break_before_any_request_loses_no_node_and_no_place,
    &break_after_any_request_loses_no_node_and_no_place,
    &break_among_replies_in_pieces_prevents_no_grant,
    &try_of_a_free_lock_is_granted_with_a_fault_at_any_request,
    &try_ends_with_the_connection_at_any_request_and_leaves_nothing,
    &throttled_request_is_repeated,
    &fault_at_any_request_of_a_recovery_loses_no_place,
    &acquire_given_up_after_a_break_leaves_nothing,
    &any_allocation_of_an_acquire_may_fail,
    &all_later_allocations_may_fail_too,
    &any_allocation_of_a_waiter_may_fail,
    &any_allocation_of_a_recovery_may_fail,
    NULL};
