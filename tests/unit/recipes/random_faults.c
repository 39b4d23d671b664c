/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * Locks under random faults. Clients acquire, cancel and release. Connections
 * break anywhere; the server hangs, throttles and ends sessions; an operator
 * deletes nodes. A seed determines the schedule. At its end all acquires
 * complete, and no node is left. In every second schedule the operator does
 * nothing and no session is ended. Then two clients never hold at the same
 * time, and tokens grow.
 */

enum { LOCKERS = 5, STEPS = 300 };

static model_server server;
static test_client clients[LOCKERS];
static locker lockers[LOCKERS];
static uint64_t random_state;
static uint64_t largest_token; /* the largest one granted so far */
static bool without_operator;

/* A random number below `sides`, of a linear congruential generator. */
static unsigned roll(unsigned sides)
{
  random_state = random_state * 6364136223846793005U + 1442695040888963407U;
  return (unsigned)(random_state >> 33) % sides;
}

static void check_holders(void)
{
  const locker *holder = NULL;

  if (!without_operator)
    return;
  for (int i = 0; i < LOCKERS; i++) {
    if (!lk_lock_ok(lockers[i].lock))
      continue;
    ck_assert_msg(holder == NULL, "two clients hold the lock");
    holder = &lockers[i];
  }
  if (holder == NULL)
    return;
  /* The token is the same as before if it is still the same holder. */
  ck_assert_uint_ge(lk_lock_token(holder->lock), largest_token);
  largest_token = lk_lock_token(holder->lock);
}

static void try_acquire(locker *l)
{
  int64_t timeouts_ms[] = {LK_NO_LIMIT, LK_NO_LIMIT, 0, 100, 2 * T};

  if (lk_lock_get_state(l->lock) == LK_LOCK_IDLE)
    ck_assert_int_eq(locker_acquire(l, timeouts_ms[roll(5)]), 0);
}

static void try_release(locker *l)
{
  if (lk_lock_count(l->lock) > 0)
    (void)lk_lock_release(l->lock, NULL, NULL);
}

static void inject_fault(model_link *l)
{
  switch (roll(7)) {
  case 0:
    if (l->up)
      model_drop(l);
    break;
  case 1: l->allow = roll(400); break; /* the bytes that follow do not arrive */
  case 2: l->frozen = true; break;
  case 3:
    l->cut_at = l->requests + 1 + roll(4);
    l->cut_after = roll(2);
    break;
  case 4: l->throttle_at = l->requests + 1 + roll(4); break;
  case 5: l->step = roll(30); break;
  case 6:
    if (!without_operator)
      model_expire(&server, l->last_session);
    break;
  }
}

/* The bytes that both sides send arrive again. */
static void deliver_again(model_link *l)
{
  if (l->allow < SIZE_MAX && l->up)
    model_drop(l); /* what did not arrive is lost with the connection */
  l->allow = SIZE_MAX;
  l->frozen = false;
}

static void change_a_node(void)
{
  size_t count = model_children(&server, LOCKS);
  const char *node =
      count == 0 ? NULL : model_child(&server, LOCKS, roll((unsigned)count));

  if (node == NULL)
    return;
  if (!without_operator && roll(2) == 0)
    model_delete(&server, node);
  else
    model_set(&server, node, "x");
}

static void run_step(void)
{
  unsigned index = roll(LOCKERS);
  locker *l = &lockers[index];
  model_link *link = clients[index].link;

  switch (roll(10)) {
  case 0:
  case 1: try_acquire(l); break;
  case 2:
  case 3: try_release(l); break;
  case 4: lk_lock_cancel(l->lock); break;
  case 5: inject_fault(link); break;
  case 6:
  case 7: deliver_again(link); break;
  case 8:
    if (roll(4) == 0)
      change_a_node();
    break;
  case 9:
    if (roll(8) == 0)
      server.down = !server.down;
    else
      (void)lk_lock_verify(l->lock, NULL, NULL);
    break;
  }
  model_run(&server, roll(4) == 0 ? roll(T / 2) : roll(40));
  check_holders();
}

static void end_faults_and_release_all(void)
{
  server.down = false;
  for (int i = 0; i < LOCKERS; i++) {
    deliver_again(clients[i].link);
    lk_lock_cancel(lockers[i].lock);
    while (lk_lock_count(lockers[i].lock) > 0)
      (void)lk_lock_release(lockers[i].lock, NULL, NULL);
  }
  model_run(&server, 2 * T);
  ck_assert_uint_eq(model_children(&server, LOCKS), 0);
}

/* All lockers acquire, are granted one after the other, and release. */
static void grant_and_release_all(void)
{
  int granted = 0;

  for (int i = 0; i < LOCKERS; i++)
    ck_assert_int_eq(locker_acquire(&lockers[i], LK_NO_LIMIT), 0);
  for (int i = 0; i < 100 && granted < LOCKERS; i++) {
    model_run(&server, T / 10);
    check_holders();
    for (int j = 0; j < LOCKERS; j++) {
      if (lk_lock_get_state(lockers[j].lock) != LK_LOCK_HELD)
        continue;
      (void)lk_lock_release(lockers[j].lock, NULL, NULL);
      granted++;
    }
  }
  ck_assert_int_eq(granted, LOCKERS);
}

static void run_schedule(uint64_t seed)
{
  random_state = seed;
  largest_token = 0;
  without_operator = seed % 2 == 0;
  model_init(&server);
  server.expires = true;
  model_create(&server, "/locks");
  model_create(&server, LOCKS);
  for (int i = 0; i < LOCKERS; i++) {
    const unsigned assurances = LK_ASSURE_PING + 1;
    lk_lease_config lease_config = {.size = sizeof lease_config,
                                    .assurance =
                                        (lk_assurance)roll(assurances)};
    lk_lock_config lock_config = {.size = sizeof lock_config,
                                  .unsure_when_suspended = roll(2)};

    test_client_init(&clients[i], &server, &lease_config);
    locker_init(&lockers[i], &clients[i], &lock_config);
  }
  for (int i = 0; i < STEPS; i++) {
    run_step();
    for (int j = 0; j < LOCKERS; j++) /* room for those of the next step */
      lockers[j].events[0] = clients[j].link->log[0] = '\0';
  }
  end_faults_and_release_all();
  grant_and_release_all();
  for (int i = 0; i < LOCKERS; i++)
    locker_free(&lockers[i]);
  model_run(&server, T);
  ck_assert_uint_eq(model_children(&server, LOCKS), 0);
  for (int i = 0; i < LOCKERS; i++)
    test_client_free(&clients[i]);
  model_done(&server);
}

/* LATCHKEY_STORM=FIRST,LAST in the environment selects other seeds. */
START_TEST(locks_survive_random_faults)
{
  const char *range = getenv("LATCHKEY_STORM");
  uint64_t first = 1, last = 200;

  if (range != NULL)
    ck_assert(sscanf(range, "%" SCNu64 ",%" SCNu64, &first, &last) == 2);
  for (uint64_t seed = first; seed <= last; seed++) {
    mark_point();
    if (range != NULL)
      fprintf(stderr, "storm %" PRIu64 "\n", seed);
    run_schedule(seed);
  }
}
END_TEST

SUITE("random_faults", locks_survive_random_faults)
