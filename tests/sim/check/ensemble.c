/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/three_servers.h"

/**
 * @file
 * The simulated ensemble: servers that lag, leaders that are deposed.
 */

/* ---- order -------------------------------------------------------------- */

START_TEST(a_read_sees_the_write_before_it)
{
  setup();
  for (unsigned i = 0; i < 3; i++) {
    connect(&p, i);
    for (int k = 0; k < 50; k++) {
      sim_raw_client_create(&p, "/n-", 2);
      sim_raw_client_read(&p, LK_OPCODE_GET_CHILDREN2, "/", false);
    }
    for (int k = 0; k < 50; k++) {
      int64_t zxid = sim_raw_client_next(&p).zxid;
      sim_reply r = sim_raw_client_next(&p);

      ck_assert_int_ge(r.zxid, zxid);
      ck_assert_int_eq(lk__reader_int(&r.body), (int)(i * 50) + k + 2);
    }
  }
  teardown();
}
END_TEST

START_TEST(a_late_follower_is_stale_until_it_is_synced)
{
  setup();
  connect(&p, near);
  connect(&q, far);
  sim_link_slow(lab.ensemble, leader, far, 50 * SIM_MS);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(exists(&q, "/a"), LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_raw_client_do_sync(&q, "/"), 0);
  ck_assert_int_eq(exists(&q, "/a"), 0);
  teardown();
}
END_TEST

START_TEST(a_late_write_is_awaited_by_a_sync_alone)
{
  for (int synced = 0; synced < 2; synced++) {
    setup_with(20 * SIM_MS);
    connect(&p, near);
    sim_raw_client_create(&p, "/late", 0);
    sim_lab_run(&lab, 2); /* it is proposed, and not logged yet */
    sim_raw_client_hang_up(&p);
    take_over(&q, &p);
    connect(&q, far);
    if (synced != 0)
      ck_assert_int_eq(sim_raw_client_do_sync(&q, "/"), 0);
    ck_assert_int_eq(exists(&q, "/late"), synced != 0 ? 0 : LK_ERR_NO_NODE);
    teardown();
  }
}
END_TEST

START_TEST(a_write_that_comes_after_the_move_is_refused)
{
  setup();
  connect(&p, near);
  sim_link_slow(lab.ensemble, near, leader, 50 * SIM_MS);
  sim_raw_client_create(&p, "/late", 0);
  sim_raw_client_hang_up(&p);
  take_over(&q, &p);
  connect(&q, far);
  sim_lab_run(&lab, 200);
  ck_assert_int_eq(exists(&q, "/late"), LK_ERR_NO_NODE);
  teardown();
}
END_TEST

START_TEST(a_leader_does_not_drain_for_its_own_clients)
{
  setup_with(20 * SIM_MS);
  connect(&p, near);
  connect(&q, leader);
  sim_raw_client_create(&p, "/late", 0);
  sim_lab_run(&lab, 2);
  ck_assert_int_eq(sim_raw_client_do_sync(&q, "/"), 0);
  ck_assert_int_eq(exists(&q, "/late"), LK_ERR_NO_NODE);
  /* But a session waits for what it has asked for elsewhere. */
  sim_raw_client_hang_up(&p);
  sim_raw_client_hang_up(&q);
  take_over(&q, &p);
  connect(&q, leader);
  ck_assert_int_eq(exists(&q, "/late"), 0);
  teardown();
}
END_TEST

/* ---- leaders ------------------------------------------------------------ */

START_TEST(a_deposed_leader_answers_all_but_writes)
{
  setup();
  connect(&p, leader);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  cut(leader, true);
  sim_lab_run(&lab, 3 * TICK);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  ck_assert_int_eq(sim_raw_client_do_sync(&p, "/a"), 0);
  sim_raw_client_hang_up(&p);
  connect(&p, leader); /* a resume does not ask anybody else */
  sim_raw_client_create(&p, "/b", 0);
  expect_closed(&p);
  ck_assert(!sim_raw_client_has(&p));
  int next = sim_lab_wait_leader(&lab, (int)leader);

  ck_assert_int_ge(next, 0);
  cut(leader, false);
  ck_assert(sim_lab_wait_serving(&lab));
  connect(&p, leader);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  ck_assert_int_eq(exists(&p, "/b"), LK_ERR_NO_NODE);
  teardown();
}
END_TEST

START_TEST(a_deposed_leader_may_refuse_a_session_that_lives)
{
  setup();
  connect(&p, leader);
  cut(leader, true);
  sim_lab_run(&lab, T + TICK);
  ck_assert(!sim_raw_client_connect(&p, leader, T, 0));
  ck_assert_int_eq(p.timeout_ms, 0); /* it says so */
  ck_assert(sim_ensemble_session_is_alive(lab.ensemble, p.session));
  ck_assert(sim_raw_client_connect(
      &p, (unsigned)sim_lab_wait_leader(&lab, (int)leader), T, 0));
  teardown();
}
END_TEST

START_TEST(a_crash_loses_what_was_not_logged)
{
  setup_with(20 * SIM_MS);
  connect(&p, near);
  sim_raw_client_create(&p, "/a", 0);
  sim_lab_run(&lab, 30);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  sim_raw_client_create(&p, "/b", 0);
  sim_lab_run(&lab, 10);
  for (unsigned i = 0; i < 3; i++)
    sim_server_crash(sim_lab_server(&lab, i));
  expect_closed(&p);
  for (unsigned i = 0; i < 3; i++)
    sim_server_start(sim_lab_server(&lab, i));
  ck_assert(sim_lab_wait_serving(&lab));
  connect(&p, far);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  ck_assert_int_eq(exists(&p, "/b"), LK_ERR_NO_NODE);
  teardown();
}
END_TEST

START_TEST(what_was_answered_outlives_its_leader)
{
  setup();
  connect(&p, near);
  for (int i = 0; i < 20; i++)
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/n-", 2), 0);
  size_t commits = told.commits;

  sim_server_crash(sim_lab_server(&lab, leader));
  expect_closed(&p);
  int next = sim_lab_wait_leader(&lab, (int)leader);

  ck_assert_int_ge(next, 0);
  ck_assert_uint_ge(told.commits, commits);
  connect(&p, (unsigned)next);
  ck_assert_int_eq(exists(&p, "/n-0000000019"), 0);
  ck_assert_int_eq(told.zxid >> 32, 1);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/n-", 2), 0);
  ck_assert_int_eq(told.zxid, (INT64_C(2) << 32) + 1);
  sim_server_start(sim_lab_server(&lab, leader));
  ck_assert(sim_lab_wait_serving(&lab));
  connect(&p, leader);
  ck_assert_int_eq(exists(&p, "/n-0000000020"), 0);
  teardown();
}
END_TEST

START_TEST(timers_begin_anew_with_a_leader)
{
  setup();
  connect(&p, near);
  sim_lab_run(&lab, 3000);
  sim_server_crash(sim_lab_server(&lab, leader));
  sim_lab_run(&lab, T - 500);
  ck_assert(sim_ensemble_session_is_alive(lab.ensemble, p.session));
  sim_lab_run(&lab, 500 + TICK);
  ck_assert(!sim_ensemble_session_is_alive(lab.ensemble, p.session));
  teardown();
}
END_TEST

START_TEST(a_leader_serves_when_a_quorum_has_accepted_it)
{
  setup();
  sim_server_crash(sim_lab_server(&lab, leader));
  sim_link_slow(lab.ensemble, near, far, 500 * SIM_MS);
  sim_lab_run(&lab, 10);
  int64_t begun = lab.agenda.now_us;

  while (!sim_server_serves(sim_lab_server(&lab, near)) &&
         !sim_server_serves(sim_lab_server(&lab, far)))
    sim_lab_run(&lab, 10);
  /* It is asked, it tells, it is told. */
  ck_assert_int_gt(lab.agenda.now_us, begun + 1500 * SIM_MS);
  ck_assert_int_lt(lab.agenda.now_us, begun + 2000 * SIM_MS);
  teardown();
}
END_TEST

START_TEST(a_server_that_looks_for_a_leader_hangs_up)
{
  setup();
  sim_server_crash(sim_lab_server(&lab, near));
  sim_server_crash(sim_lab_server(&lab, far));
  ck_assert(sim_lab_server(&lab, near) != NULL);
  sim_raw_client_open(&p, near);
  ck_assert_ptr_null(p.conn);
  sim_lab_run(&lab, 10 * TICK);
  ck_assert_int_eq(sim_ensemble_leader(lab.ensemble), -1);
  ck_assert(!sim_operator_create(lab.ensemble, "/a", "", 0, false));
  ck_assert(!sim_raw_client_connect(&p, leader, T, 0));
  ck_assert(!sim_raw_client_has(&p));
  teardown();
}
END_TEST

START_TEST(a_server_that_stood_still_goes_on_where_it_was)
{
  setup();
  connect(&p, near);
  sim_server_stop(sim_lab_server(&lab, near));
  sim_raw_client_create(&p, "/a", 0);
  sim_lab_run(&lab, 1000);
  ck_assert(!sim_raw_client_has(&p));
  sim_server_continue(sim_lab_server(&lab, near));
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  /* A leader that stands still for long is another's follower afterwards. */
  sim_server_stop(sim_lab_server(&lab, leader));
  sim_lab_run(&lab, 7 * TICK);
  sim_server_continue(sim_lab_server(&lab, leader));
  ck_assert_int_ge(sim_lab_wait_leader(&lab, (int)leader), 0);
  ck_assert(sim_lab_wait_serving(&lab));
  connect(&p, leader);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  teardown();
}
END_TEST

/* ---- matching ----------------------------------------------------------- */

START_TEST(a_client_that_counts_anew_is_told_of_an_older_request)
{
  struct lk_create_request r = {.path = lk_text("/old"),
                                .data = lk_text(""),
                                .acl = lk__vec_of(lk_acl_open.entries, 1)};

  setup_with(20 * SIM_MS);
  connect(&p, near);
  take_over(&q, &p);
  sim_raw_client_send_as(&p, 1, LK_OPCODE_CREATE, &r);
  sim_lab_run(&lab, 2);
  sim_raw_client_hang_up(&p);
  connect(&q, far);
  r.path = lk_text("/new");
  sim_raw_client_send_as(&q, 1, LK_OPCODE_CREATE, &r);
  sim_reply reply = sim_raw_client_next(&q);
  lk_bytes path = lk__reader_bytes(&reply.body);

  ck_assert_int_eq(reply.xid, 1);
  ck_assert_mem_eq(path.at, "/old", 4);
  sim_lab_run(&lab, 300);
  ck_assert_ptr_nonnull(
      sim_tree_find(sim_ensemble_committed_tree(lab.ensemble), "/new"));
  teardown();
}
END_TEST

SUITE("ensemble", a_read_sees_the_write_before_it,
      a_late_follower_is_stale_until_it_is_synced,
      a_late_write_is_awaited_by_a_sync_alone,
      a_write_that_comes_after_the_move_is_refused,
      a_leader_does_not_drain_for_its_own_clients,
      a_deposed_leader_answers_all_but_writes,
      a_deposed_leader_may_refuse_a_session_that_lives,
      a_crash_loses_what_was_not_logged, what_was_answered_outlives_its_leader,
      timers_begin_anew_with_a_leader,
      a_leader_serves_when_a_quorum_has_accepted_it,
      a_server_that_looks_for_a_leader_hangs_up,
      a_server_that_stood_still_goes_on_where_it_was,
      a_client_that_counts_anew_is_told_of_an_older_request)
