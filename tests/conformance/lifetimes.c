/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Calls for a handle that holds or waits, and the end of handles and clients.

   locker_acquire() and locker_release() only start a call; locker_request() and
   the fixture's functions also let the clients and the server run. */

/* ---- acquired again ----------------------------------------------------- */

SCENARIO(second_acquire_is_counted_or_refused)
{
  fixture_begin(k);
  fixture_hold(&fx.own);
  if (!k->reentrant) {
    ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), LK_ERR_DEADLOCK);
    ck_assert_uint_eq(lk_lock_count(fx.own.lock), 1);
    fixture_end();
    return;
  }
  uint64_t token = lk_lock_token(fx.own.lock);

  fixture_clear_logs();
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  ck_assert_int_eq(lk_lock_acquire(fx.own.lock, FOREVER, NULL, NULL),
                   LK_ERR_STATE);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_uint_eq(lk_lock_count(fx.own.lock), 2);
  ck_assert_uint_eq(lk_lock_token(fx.own.lock), token);
  locker_release(&fx.own);
  ck_assert_uint_eq(lk_lock_count(fx.own.lock), 1);
  /* Only one release at a time can have a callback. */
  ck_assert_int_eq(locker_try_release(&fx.own), LK_ERR_STATE);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.released, 0);
  ck_assert(lk_lock_ok(fx.own.lock));
  ck_assert_str_eq(fx.own_client.link->log, "");
  fixture_release(&fx.own);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
  ck_assert_int_eq(lk_lock_release(fx.own.lock, NULL, NULL), LK_ERR_NOT_HELD);
  fixture_end();
}

SCENARIO(second_acquire_can_be_cancelled)
{
  fixture_begin(k);
  fixture_hold(&fx.own);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  lk_lock_cancel(fx.own.lock);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_CANCELLED);
  ck_assert_uint_eq(lk_lock_count(fx.own.lock), 1);
  /* It keeps the lock after the release of the first hold. */
  for (int cancels = 0; cancels < 2; cancels++) {
    ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
    ck_assert_int_eq(lk_lock_release(fx.own.lock, NULL, NULL), 0);
    ck_assert_int_eq(fx.own.acquired, NOT_YET);
    if (cancels)
      lk_lock_cancel(fx.own.lock);
    else
      ck_assert_int_eq(lk_lock_release(fx.own.lock, NULL, NULL), 0);
    ck_assert_int_eq(fx.own.acquired, LK_ERR_CANCELLED);
    ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
    model_turn(&fx.server);
    ck_assert_uint_eq(fixture_count_nodes(), 0);
    fixture_hold(&fx.own);
  }
  fixture_end();
}

SCENARIO(released_lock_is_acquired_again_at_once)
{
  fixture_begin(k);
  fixture_hold(&fx.own);
  char requests[256];

  fixture_clear_logs();
  locker_release(&fx.own);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.released, 0);
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_uint_eq(fixture_count_nodes(), k->held_nodes);
  snprintf(requests, sizeof requests, "%s %s", k->release, k->acquire);
  /* Both are sent in one write: there is no " | " between them. */
  ck_assert_str_eq(fx.own_client.link->log, requests);
  fixture_end();
}

SCENARIO(reset_lock_is_as_new)
{
  fixture_begin(k);
  fixture_hold(&fx.rival);
  locker_request(&fx.own);
  lk_lock_reset(fx.own.lock);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_CLOSED);
  fixture_release(&fx.rival);
  fixture_hold(&fx.own);
  lk_lock_reset(fx.own.lock);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(lk_lock_count(fx.own.lock), 0);
  lk_lock_reset(fx.own.lock);
  model_turn(&fx.server);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
  fixture_hold(&fx.own);
  locker_release(&fx.own);
  lk_lock_reset(fx.own.lock);
  ck_assert_int_eq(fx.own.released, LK_ERR_CLOSED);
  model_turn(&fx.server);
  fixture_hold(&fx.own);
  if (k->reentrant) {
    ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
    lk_lock_reset(fx.own.lock);
    ck_assert_int_eq(fx.own.acquired, LK_ERR_CLOSED);
  }
  fixture_end();
}

/* ---- ends ---------------------------------------------------------------- */

static void make_own_lock_again(void)
{
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  ck_assert(fixture_try_make(&fx.own, &fx.own_client, &c));
}

SCENARIO(freed_lock_is_released_and_its_calls_end)
{
  fixture_begin(k);
  fixture_hold(&fx.rival);
  locker_request(&fx.own);
  locker_free(&fx.own);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_CLOSED);
  make_own_lock_again();
  fixture_release(&fx.rival);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
  if (k->reentrant) {
    fixture_hold(&fx.own);
    ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
    locker_free(&fx.own);
    ck_assert_int_eq(fx.own.acquired, LK_ERR_CLOSED);
    make_own_lock_again();
  }
  for (int breaks = 0; breaks < 2; breaks++) {
    fixture_hold(&fx.own);
    fixture_clear_logs();
    if (breaks)
      fixture_break_connection(&fx.own_client);
    locker_free(&fx.own);
    fixture_reconnect();
    if (!breaks)
      ck_assert_str_eq(fx.own_client.link->log, k->release);
    ck_assert_uint_eq(fixture_count_nodes(), 0);
    make_own_lock_again();
  }
  fixture_hold(&fx.own);
  locker_request(&fx.rival);
  locker_release(&fx.own);
  locker_free(&fx.own);
  ck_assert_int_eq(fx.own.released, LK_ERR_CLOSED);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.rival.acquired, 0);
  fixture_end();
}

static void free_client(lk_client *c)
{
  lk_client_free(c);
}

static void close_client(lk_client *c)
{
  ck_assert_int_eq(lk_client_close(c, NULL, NULL), 0);
}

/* Ends both clients by `end`: the own one while it waits, the rival while it
   holds. */
static void end_clients(const kind *k, void (*end)(lk_client *c))
{
  fixture_begin(k);
  fixture_wait_behind_rival();
  end(fx.own_client.link->client);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_CLOSED);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
  ck_assert_int_eq(lk_lock_acquire(fx.own.lock, FOREVER, NULL, NULL),
                   LK_ERR_CLOSED);
  end(fx.rival_client.link->client);
  ck_assert(locker_check_events(&fx.rival, "lost CLOSED\n"));
  ck_assert_int_eq(lk_lock_get_state(fx.rival.lock), LK_LOCK_LOST);
  ck_assert(!lk_lock_ok(fx.rival.lock));
  ck_assert_int_eq(lk_lock_deadline(fx.rival.lock), INT64_MIN);
  ck_assert_uint_eq(lk_lock_token(fx.rival.lock), 0);
  ck_assert_int_eq(lk_lock_release(fx.rival.lock, NULL, NULL), LK_ERR_LOST);
  fixture_end_sessions();
}

SCENARIO(freed_client_ends_waits_and_loses_locks)
{
  end_clients(k, free_client);
}

static void free_locker(locker *l, const char *what)
{
  (void)what;
  l->react = NULL;
  locker_free(l);
}

SCENARIO(callback_may_free_the_lock_while_its_client_is_freed)
{
  for (int waits = 0; waits < 2; waits++) {
    fixture_begin(k);
    if (waits) {
      fixture_wait_behind_rival();
    } else {
      fixture_break_connection(&fx.own_client);
      ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
    }
    fx.own.react = free_locker;
    lk_client_free(fx.own_client.link->client);
    ck_assert_ptr_null(fx.own.lock);
    ck_assert_int_eq(fx.own.acquired, LK_ERR_CLOSED);
    fx.server.down = false;
    fixture_end_sessions();
  }
}

SCENARIO(freed_client_ends_calls_of_its_holder)
{
  fixture_begin(k);
  fixture_hold(&fx.own);
  locker_release(&fx.own);
  lk_client_free(fx.own_client.link->client);
  ck_assert_int_eq(fx.own.released, LK_ERR_CLOSED);
  fixture_end_sessions();
  if (!k->reentrant)
    return;
  fixture_begin(k);
  fixture_hold(&fx.own);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  lk_client_free(fx.own_client.link->client);
  /* The held lock is lost first, and a pending acquire fails with that. */
  ck_assert_int_eq(fx.own.acquired, LK_ERR_LOST);
  fixture_end_sessions();
}

SCENARIO(closed_client_ends_waits_and_loses_locks)
{
  end_clients(k, close_client);
}

/* Makes the server refuse a request with AUTH_REQUIRED. The client then ends
   with AUTH_FAILED. */
static void refuse_credentials(test_client *p)
{
  p->link->answer_at = p->link->requests + 1;
  p->link->answer_err = LK_ERR_AUTH_REQUIRED;
  lk_get(p->link->client, "/", NULL, NULL, NULL);
  model_turn(&fx.server);
}

SCENARIO(refused_credentials_end_waits_and_lose_locks)
{
  fixture_begin(k);
  fixture_wait_behind_rival();
  refuse_credentials(&fx.own_client);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_AUTH_FAILED);
  ck_assert_int_eq(lk_lock_acquire(fx.own.lock, FOREVER, NULL, NULL),
                   LK_ERR_AUTH_FAILED);
  refuse_credentials(&fx.rival_client);
  ck_assert(locker_check_events(&fx.rival, "lost AUTH_FAILED\n"));
  lk_client_free(fx.own_client.link->client); /* before its lock */
  fixture_end_sessions();
}

/* Acquires the lock at the callback that locker.arg names. */
static void acquire_in_callback(locker *l, const char *what)
{
  const char *awaited = l->arg;

  if (strncmp(what, awaited, strlen(awaited)) != 0)
    return;
  l->react = NULL;
  (void)lk_lock_release(l->lock, NULL, NULL); /* a lost lock must be released */
  ck_assert_int_eq(locker_acquire(l, FOREVER), 0);
}

SCENARIO(acquire_in_the_callback_of_an_end_survives_that_end)
{
  static char verified[] = "verified", lost[] = "lost", acquired[] = "acquired";

  fixture_begin(k);
  fixture_hold(&fx.own);
  fx.own.arg = verified;
  fx.own.react = acquire_in_callback;
  ck_assert_int_eq(locker_verify(&fx.own), 0);
  ck_assert_int_eq(lk_lock_release(fx.own.lock, NULL, NULL), 0);
  ck_assert_int_eq(fx.own.verified, LK_ERR_NOT_HELD);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_uint_eq(lk_lock_count(fx.own.lock), 1);
  fx.own.arg = lost;
  fx.own.react = acquire_in_callback;
  ck_assert_int_eq(locker_verify(&fx.own), 0);
  model_delete(&fx.server, fixture_node_of(&fx.own_client, 0));
  model_turn(&fx.server);
  ck_assert(locker_check_events(&fx.own, "lost NO_NODE\n"));
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_uint_eq(lk_lock_count(fx.own.lock), 1);
  fixture_end();

  fixture_begin_with(k, (lk_lock_config){.fail_on_expiry = true});
  fixture_wait_behind_rival();
  fx.own.arg = acquired;
  fx.own.react = acquire_in_callback;
  unsigned calls = fx.own.calls;

  fixture_expire(&fx.own_client);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  /* the end of the acquire, and the event of the next one */
  ck_assert_uint_eq(fx.own.calls, calls + 2);
  fixture_release(&fx.rival);
  ck_assert_int_eq(fx.own.acquired, 0);
  fixture_end();
}

/* ---- while it is held ---------------------------------------------------- */

SCENARIO(verify_succeeds_while_held_and_reports_a_loss)
{
  for (size_t i = 0; i < k->held_nodes; i++) {
    fixture_begin(k);
    ck_assert_int_eq(locker_verify(&fx.own), LK_ERR_NOT_HELD);
    fixture_hold(&fx.own);
    ck_assert_int_eq(locker_verify(&fx.own), 0);
    ck_assert_int_eq(lk_lock_verify(fx.own.lock, NULL, NULL), LK_ERR_STATE);
    model_turn(&fx.server);
    ck_assert_int_eq(fx.own.verified, 0);
    fixture_release(&fx.own);
    fixture_hold(&fx.own);
    model_delete(&fx.server, fixture_node_of(&fx.own_client, i));
    ck_assert_int_eq(locker_verify(&fx.own), 0);
    model_turn(&fx.server);
    ck_assert(locker_check_events(&fx.own, "lost NO_NODE\n"));
    ck_assert_int_eq(fx.own.verified, LK_ERR_LOST);
    ck_assert_int_eq(locker_verify(&fx.own), LK_ERR_LOST);
    fixture_end();
  }
}

SCENARIO(verify_ends_with_the_hold_and_with_the_connection)
{
  fixture_begin(k);
  fixture_hold(&fx.own);
  ck_assert_int_eq(locker_verify(&fx.own), 0);
  locker_release(&fx.own);
  ck_assert_int_eq(fx.own.verified, LK_ERR_NOT_HELD);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.released, 0);
  fixture_hold(&fx.own);
  fx.own_client.link->cut_at = fx.own_client.link->requests + 1;
  fx.own_client.link->cut_after = true;
  ck_assert_int_eq(locker_verify(&fx.own), 0);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.verified, LK_ERR_UNSURE);
  fixture_reconnect();
  ck_assert_int_eq(locker_verify(&fx.own), 0);
  locker_free(&fx.own);
  ck_assert_int_eq(fx.own.verified, LK_ERR_CLOSED);
  fixture_end();
}

SCENARIO(revoked_holder_is_notified_once)
{
  /* Any of the holder's nodes may be used. */
  for (size_t i = 0; i < 2 * k->held_nodes; i++) {
    const bool revocable = i >= k->held_nodes;
    const size_t node = i % k->held_nodes;

    fixture_begin_with(k, (lk_lock_config){.revocable = revocable});
    fixture_hold(&fx.own);
    /* Until the node is watched: otherwise a heartbeat does it. */
    model_run(&fx.server, revocable ? T / 10 : T / 2);
    model_set(&fx.server, fixture_node_of(&fx.own_client, node), "other data");
    model_turn(&fx.server);
    ck_assert(locker_check_events(&fx.own, ""));
    for (int n = 0; n < 2; n++) {
      model_set(&fx.server, fixture_node_of(&fx.own_client, node),
                LK_REVOKE_MESSAGE);
      model_turn(&fx.server);
    }
    ck_assert(locker_check_events(&fx.own, "revoked\n"));
    ck_assert(lk_lock_ok(fx.own.lock));
    fixture_end();
  }
}

SCENARIO(revoked_waiter_is_notified_when_it_holds)
{
  /* The first k->places nodes are left out: a holder does not keep them. */
  for (size_t i = k->places; i < k->waiting_nodes; i++) {
    fixture_begin(k);
    fixture_wait_behind_rival();
    model_run(&fx.server, T / 2);
    model_set(&fx.server, fixture_node_of(&fx.own_client, i),
              LK_REVOKE_MESSAGE);
    model_turn(&fx.server);
    ck_assert(locker_check_events(&fx.own, ""));
    fixture_release(&fx.rival);
    ck_assert_int_eq(fx.own.acquired, 0);
    /* A waiter with a watch knows it already; others read the node with the
     * first heartbeat, if the lock is not `revocable`. */
    model_run(&fx.server, T / 4);
    ck_assert(locker_check_events(&fx.own, "revoked\n"));
    fixture_end();
  }
}

const scenario lifetime_scenarios[] = {
    &second_acquire_is_counted_or_refused,
    &second_acquire_can_be_cancelled,
    &released_lock_is_acquired_again_at_once,
    &reset_lock_is_as_new,
    &freed_lock_is_released_and_its_calls_end,
    &freed_client_ends_waits_and_loses_locks,
    &callback_may_free_the_lock_while_its_client_is_freed,
    &freed_client_ends_calls_of_its_holder,
    &closed_client_ends_waits_and_loses_locks,
    &refused_credentials_end_waits_and_lose_locks,
    &acquire_in_the_callback_of_an_end_survives_that_end,
    &verify_succeeds_while_held_and_reports_a_loss,
    &verify_ends_with_the_hold_and_with_the_connection,
    &revoked_holder_is_notified_once,
    &revoked_waiter_is_notified_when_it_holds,
    NULL};
