/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* What is done with a handle while it holds or waits, and how it ends. */

/* ---- again --------------------------------------------------------------- */

SCENARIO(lock_is_released_as_often_as_it_was_acquired)
{
  stage_begin(k);
  stage_hold(&st.own);
  if (!k->counts) {
    ck_assert_int_eq(locker_want(&st.own, -1), LK_ERR_DEADLOCK);
    ck_assert_uint_eq(lk_lock_count(st.own.lock), 1);
    stage_end();
    return;
  }
  uint64_t token = lk_lock_token(st.own.lock);

  stage_forget();
  ck_assert_int_eq(locker_want(&st.own, -1), 0);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  ck_assert_int_eq(lk_lock_acquire(st.own.lock, -1, NULL, NULL), LK_ERR_STATE);
  model_turn(&st.server);
  ck_assert_int_eq(st.own.acquired, 0);
  ck_assert_uint_eq(lk_lock_count(st.own.lock), 2);
  ck_assert_uint_eq(lk_lock_token(st.own.lock), token);
  stage_release(&st.own);
  ck_assert(lk_lock_ok(st.own.lock));
  ck_assert_str_eq(st.ours.link->log, "");
  stage_release(&st.own);
  ck_assert_uint_eq(stage_nodes(), 0);
  ck_assert_int_eq(lk_lock_release(st.own.lock, NULL, NULL), LK_ERR_NOT_HELD);
  stage_end();
}

SCENARIO(released_lock_is_acquired_again_at_once)
{
  stage_begin(k);
  stage_hold(&st.own);
  char requests[256];

  stage_forget();
  locker_release(&st.own);
  ck_assert_int_eq(locker_want(&st.own, -1), 0);
  model_turn(&st.server);
  ck_assert_int_eq(st.own.released, 0);
  ck_assert_int_eq(st.own.acquired, 0);
  ck_assert_uint_eq(stage_nodes(), k->held_nodes);
  snprintf(requests, sizeof requests, "%s %s", k->release, k->acquire);
  ck_assert_str_eq(st.ours.link->log, requests); /* in the same write */
  stage_end();
}

SCENARIO(reset_lock_is_as_new)
{
  stage_begin(k);
  stage_hold(&st.rival);
  stage_want(&st.own);
  lk_lock_reset(st.own.lock);
  ck_assert_int_eq(st.own.acquired, LK_ERR_CLOSED);
  stage_release(&st.rival);
  stage_hold(&st.own);
  lk_lock_reset(st.own.lock);
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(lk_lock_count(st.own.lock), 0);
  lk_lock_reset(st.own.lock);
  model_turn(&st.server);
  ck_assert_uint_eq(stage_nodes(), 0);
  stage_hold(&st.own);
  locker_release(&st.own);
  lk_lock_reset(st.own.lock);
  ck_assert_int_eq(st.own.released, LK_ERR_CLOSED);
  model_turn(&st.server);
  stage_hold(&st.own);
  if (k->counts) {
    ck_assert_int_eq(locker_want(&st.own, -1), 0);
    lk_lock_reset(st.own.lock);
    ck_assert_int_eq(st.own.acquired, LK_ERR_CLOSED);
  }
  stage_end();
}

/* ---- ends ---------------------------------------------------------------- */

static void make_anew(void)
{
  const lk_lock_config c = stage_config((lk_lock_config){0});

  ck_assert(stage_try_init(&st.own, &st.ours, &c));
}

SCENARIO(freed_lock_is_released_and_its_calls_end)
{
  stage_begin(k);
  stage_hold(&st.rival);
  stage_want(&st.own);
  locker_free(&st.own);
  ck_assert_int_eq(st.own.acquired, LK_ERR_CLOSED);
  make_anew();
  stage_release(&st.rival);
  ck_assert_uint_eq(stage_nodes(), 0);
  if (k->counts) {
    stage_hold(&st.own);
    ck_assert_int_eq(locker_want(&st.own, -1), 0);
    locker_free(&st.own);
    ck_assert_int_eq(st.own.acquired, LK_ERR_CLOSED);
    make_anew();
  }
  stage_hold(&st.own);
  stage_want(&st.rival);
  locker_release(&st.own);
  locker_free(&st.own);
  ck_assert_int_eq(st.own.released, LK_ERR_CLOSED);
  model_turn(&st.server);
  ck_assert_int_eq(st.rival.acquired, 0);
  stage_end();
}

static void free_client(lk_client *c)
{
  lk_client_free(c);
}

static void close_client(lk_client *c)
{
  ck_assert_int_eq(lk_client_close(c, NULL, NULL), 0);
}

static void end_with(const kind *k, void (*end)(lk_client *c))
{
  stage_begin(k);
  stage_wait();
  end(st.ours.link->client);
  ck_assert_int_eq(st.own.acquired, LK_ERR_CLOSED);
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_IDLE);
  ck_assert_int_eq(lk_lock_acquire(st.own.lock, -1, NULL, NULL), LK_ERR_CLOSED);
  end(st.theirs.link->client);
  ck_assert(locker_told(&st.rival, "lost CLOSED\n"));
  ck_assert_int_eq(lk_lock_get_state(st.rival.lock), LK_LOCK_LOST);
  ck_assert(!lk_lock_ok(st.rival.lock));
  ck_assert_int_eq(lk_lock_deadline(st.rival.lock), INT64_MIN);
  ck_assert_uint_eq(lk_lock_token(st.rival.lock), 0);
  ck_assert_int_eq(lk_lock_release(st.rival.lock, NULL, NULL), LK_ERR_LOST);
  stage_end_sessions();
}

SCENARIO(freed_client_ends_waits_and_loses_locks)
{
  end_with(k, free_client);
}

SCENARIO(freed_client_ends_calls_of_its_holder)
{
  for (int releases = 0; releases <= k->counts; releases++) {
    stage_begin(k);
    stage_hold(&st.own);
    if (releases == 0)
      locker_release(&st.own);
    else
      ck_assert_int_eq(locker_want(&st.own, -1), 0);
    lk_client_free(st.ours.link->client);
    if (releases == 0)
      ck_assert_int_eq(st.own.released, LK_ERR_CLOSED);
    else
      ck_assert_int_eq(st.own.acquired, LK_ERR_LOST);
    stage_end_sessions();
  }
}

SCENARIO(closed_client_ends_waits_and_loses_locks)
{
  end_with(k, close_client);
}

static void refuse_credentials(party *p)
{
  p->link->answer_at = p->link->requests + 1;
  p->link->answer_err = LK_ERR_AUTH_REQUIRED;
  lk_get(p->link->client, "/", NULL, NULL, NULL);
  model_turn(&st.server);
}

SCENARIO(refused_credentials_end_waits_and_lose_locks)
{
  stage_begin(k);
  stage_wait();
  refuse_credentials(&st.ours);
  ck_assert_int_eq(st.own.acquired, LK_ERR_AUTH_FAILED);
  ck_assert_int_eq(lk_lock_acquire(st.own.lock, -1, NULL, NULL),
                   LK_ERR_AUTH_FAILED);
  refuse_credentials(&st.theirs);
  ck_assert(locker_told(&st.rival, "lost AUTH_FAILED\n"));
  stage_end_sessions();
}

/* ---- while it is held ---------------------------------------------------- */

SCENARIO(verify_succeeds_while_held_and_reports_a_loss)
{
  for (size_t i = 0; i < k->held_nodes; i++) {
    stage_begin(k);
    ck_assert_int_eq(locker_verify(&st.own), LK_ERR_NOT_HELD);
    stage_hold(&st.own);
    ck_assert_int_eq(locker_verify(&st.own), 0);
    ck_assert_int_eq(lk_lock_verify(st.own.lock, NULL, NULL), LK_ERR_STATE);
    model_turn(&st.server);
    ck_assert_int_eq(st.own.verified, 0);
    stage_release(&st.own);
    stage_hold(&st.own);
    model_delete(&st.server, stage_node_of(&st.ours, i));
    ck_assert_int_eq(locker_verify(&st.own), 0);
    model_turn(&st.server);
    ck_assert(locker_told(&st.own, "lost NO_NODE\n"));
    ck_assert_int_eq(st.own.verified, LK_ERR_LOST);
    ck_assert_int_eq(locker_verify(&st.own), LK_ERR_LOST);
    stage_end();
  }
}

SCENARIO(verify_ends_with_the_hold)
{
  stage_begin(k);
  stage_hold(&st.own);
  ck_assert_int_eq(locker_verify(&st.own), 0);
  locker_release(&st.own);
  ck_assert_int_eq(st.own.verified, LK_ERR_NOT_HELD);
  model_turn(&st.server);
  ck_assert_int_eq(st.own.released, 0);
  stage_end();
}

SCENARIO(revoked_holder_is_told_once)
{
  for (size_t i = 0; i < k->held_nodes; i++) {
    stage_begin_with(k, (lk_lock_config){.revocable = true});
    stage_hold(&st.own);
    model_run(&st.server, T / 10);
    model_set(&st.server, stage_node_of(&st.ours, i), "let go");
    model_turn(&st.server);
    ck_assert(locker_told(&st.own, ""));
    for (int n = 0; n < 2; n++) {
      model_set(&st.server, stage_node_of(&st.ours, i), LK_REVOKE_MESSAGE);
      model_turn(&st.server);
    }
    ck_assert(locker_told(&st.own, "revoked\n"));
    ck_assert(lk_lock_ok(st.own.lock));
    stage_end();
  }
}

SCENARIO(revoked_waiter_is_told_when_it_holds)
{
  for (size_t i = k->places; i < k->waiting_nodes; i++) {
    stage_begin(k);
    stage_wait();
    model_run(&st.server, T / 2);
    model_set(&st.server, stage_node_of(&st.ours, i), LK_REVOKE_MESSAGE);
    model_turn(&st.server);
    ck_assert(locker_told(&st.own, ""));
    stage_release(&st.rival);
    ck_assert_int_eq(st.own.acquired, 0);
    ck_assert(locker_told(&st.own, "revoked\n"));
    stage_end();
  }
}

const scenario lifetime_scenarios[] = {
    &lock_is_released_as_often_as_it_was_acquired,
    &released_lock_is_acquired_again_at_once,
    &reset_lock_is_as_new,
    &freed_lock_is_released_and_its_calls_end,
    &freed_client_ends_waits_and_loses_locks,
    &freed_client_ends_calls_of_its_holder,
    &closed_client_ends_waits_and_loses_locks,
    &refused_credentials_end_waits_and_lose_locks,
    &verify_succeeds_while_held_and_reports_a_loss,
    &verify_ends_with_the_hold,
    &revoked_holder_is_told_once,
    &revoked_waiter_is_told_when_it_holds,
    NULL};
