/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Which requests an acquire sends, and in how many writes. */

static void expect_log(const party *p, const char *requests)
{
  ck_assert_str_eq(p->link->log, requests);
  p->link->log[0] = '\0';
}

SCENARIO(free_lock_is_acquired_with_these_requests)
{
  stage_begin(k);
  ck_assert_int_eq(locker_want(&st.own, -1), 0);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  model_turn(&st.server);
  ck_assert_int_eq(st.own.acquired, 0);
  expect_log(&st.ours, k->acquire);
  ck_assert_uint_eq(stage_nodes(), k->held_nodes);
  model_run(&st.server, T / 4 - 1); /* no heartbeat before that */
  stage_release(&st.own);
  model_run(&st.server, T);
  expect_log(&st.ours, k->release);
  ck_assert_uint_eq(stage_nodes(), 0);
  stage_end();
}

SCENARIO(missing_directories_are_made_with_these_requests)
{
  stage_begin_empty(k, 0);
  party_join(&st.ours, &st.server, NULL);
  party_join(&st.theirs, &st.server, NULL);
  const lk_lock_config c = stage_config((lk_lock_config){0});

  ck_assert(stage_try_init(&st.own, &st.ours, &c));
  ck_assert(stage_try_init(&st.rival, &st.theirs, &c));
  model_turn(&st.server);
  stage_forget();
  stage_hold(&st.own);
  expect_log(&st.ours, k->cold);
  stage_release(&st.own);
  for (size_t i = 0; k->dirs[i] != NULL; i++)
    ck_assert_int_eq(model_node(&st.server, k->dirs[i])->container,
                     k->containers);
  stage_hold(&st.rival); /* in the same directories */
  stage_end();
}

SCENARIO(held_lock_is_waited_for_and_granted_with_these_requests)
{
  stage_begin(k);
  stage_hold(&st.rival);
  stage_want(&st.own);
  expect_log(&st.ours, k->wait);
  stage_release(&st.rival);
  ck_assert_int_eq(st.own.acquired, 0);
  expect_log(&st.ours, k->grant);
  stage_end();
}

const scenario request_scenarios[] = {
    &free_lock_is_acquired_with_these_requests,
    &missing_directories_are_made_with_these_requests,
    &held_lock_is_waited_for_and_granted_with_these_requests, NULL};
