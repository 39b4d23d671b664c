/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/three_servers.h"

/**
 * @file The model with three servers: lagging followers and deposed leaders.
 */

/* ---- order -------------------------------------------------------------- */

START_TEST(read_sees_the_write_before_it)
{
  setup();
  for (unsigned i = 0; i < 3; i++) {
    connect(&p, i);
    for (int k = 0; k < 50; k++) {
      sim_raw_client_create(&p, "/n-", LK_SEQUENTIAL);
      sim_raw_client_read(&p, LK_OPCODE_GET_CHILDREN2, "/");
    }
    for (int k = 0; k < 50; k++) {
      int64_t zxid = sim_raw_client_next(&p).zxid;
      sim_reply r = sim_raw_client_next(&p);

      ck_assert_int_ge(r.zxid, zxid);
      /* The number of children, with /zookeeper. */
      ck_assert_int_eq(lk__reader_int(&r.body), (int)(i * 50) + 1 + k + 1);
    }
  }
  teardown();
}
END_TEST

START_TEST(lagging_follower_is_stale_until_sync)
{
  setup();
  connect(&p, near);
  connect(&q, far);
  sim_link_slow(lab.ensemble, leader, far, 50 * SIM_MS);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(exists(&q, "/a"), LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_raw_client_do_sync(&q, "/"), 0);
  ck_assert_int_eq(exists(&q, "/a"), 0);
  teardown();
}
END_TEST

START_TEST(only_sync_waits_for_a_late_write)
{
  for (int i = 0; i < 2; i++) {
    const bool synced = i == 1;

    setup_with_disk_delay(20 * SIM_MS);
    connect(&p, near);
    sim_raw_client_create(&p, "/late", LK_PERSISTENT);
    sim_lab_run(&lab, 2); /* it is proposed, and not logged yet */
    sim_raw_client_hang_up(&p);
    copy_session(&q, &p);
    connect(&q, far);
    if (synced)
      ck_assert_int_eq(sim_raw_client_do_sync(&q, "/"), 0);
    ck_assert_int_eq(exists(&q, "/late"), synced ? 0 : LK_ERR_NO_NODE);
    teardown();
  }
}
END_TEST

START_TEST(write_after_session_moved_is_refused)
{
  setup();
  connect(&p, near);
  sim_link_slow(lab.ensemble, near, leader, 50 * SIM_MS);
  sim_raw_client_create(&p, "/late", LK_PERSISTENT);
  sim_raw_client_hang_up(&p);
  copy_session(&q, &p);
  connect(&q, far);
  sim_lab_run(&lab, 200);
  ck_assert_int_eq(exists(&q, "/late"), LK_ERR_NO_NODE);
  teardown();
}
END_TEST

START_TEST(sync_at_the_leader_does_not_wait_for_proposals)
{
  setup_with_disk_delay(20 * SIM_MS);
  connect(&p, near);
  connect(&q, leader);
  sim_raw_client_create(&p, "/late", LK_PERSISTENT);
  sim_lab_run(&lab, 2);
  ck_assert_int_eq(sim_raw_client_do_sync(&q, "/"), 0);
  ck_assert_int_eq(exists(&q, "/late"), LK_ERR_NO_NODE);
  /* But a session waits for its own writes, also those it sent to another
   * server. */
  sim_raw_client_hang_up(&p);
  sim_raw_client_hang_up(&q);
  copy_session(&q, &p);
  connect(&q, leader);
  ck_assert_int_eq(exists(&q, "/late"), 0);
  teardown();
}
END_TEST

/* ---- leaders ------------------------------------------------------------ */

START_TEST(deposed_leader_answers_all_but_writes)
{
  setup();
  connect(&p, leader);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  cut_off(leader);
  sim_lab_run(&lab, 3 * TICK_MS);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  ck_assert_int_eq(sim_raw_client_do_sync(&p, "/a"), 0);
  sim_raw_client_hang_up(&p);
  connect(&p, leader); /* the leader resumes a session without a quorum */
  sim_raw_client_create(&p, "/b", LK_PERSISTENT);
  expect_closed(&p);
  ck_assert(!sim_raw_client_has_bytes(&p));
  int next = sim_lab_wait_other_leader(&lab, leader);

  ck_assert_int_ge(next, 0);
  restore_links(leader);
  ck_assert(sim_lab_wait_serving(&lab));
  connect(&p, leader);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  ck_assert_int_eq(exists(&p, "/b"), LK_ERR_NO_NODE);
  teardown();
}
END_TEST

START_TEST(deposed_leader_may_refuse_a_living_session)
{
  setup();
  connect(&p, leader);
  cut_off(leader);
  sim_lab_run(&lab, TIMEOUT_MS + TICK_MS);
  ck_assert(!sim_raw_client_connect(&p, leader, TIMEOUT_MS, NO_ZXID_SEEN));
  ck_assert_int_eq(p.timeout_ms, 0); /* the session was refused */
  ck_assert(sim_ensemble_session_is_alive(lab.ensemble, p.session));
  ck_assert(sim_raw_client_connect(
      &p, (unsigned)sim_lab_wait_other_leader(&lab, leader), TIMEOUT_MS,
      NO_ZXID_SEEN));
  teardown();
}
END_TEST

START_TEST(crash_loses_unlogged_proposals)
{
  setup_with_disk_delay(20 * SIM_MS);
  connect(&p, near);
  sim_raw_client_create(&p, "/a", LK_PERSISTENT);
  sim_lab_run(&lab, 30);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  sim_raw_client_create(&p, "/b", LK_PERSISTENT);
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

START_TEST(answered_write_survives_the_leader)
{
  setup();
  connect(&p, near);
  for (int i = 0; i < 20; i++)
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/n-", LK_SEQUENTIAL), 0);
  size_t commits = reported.commits;

  sim_server_crash(sim_lab_server(&lab, leader));
  expect_closed(&p);
  int next = sim_lab_wait_other_leader(&lab, leader);

  ck_assert_int_ge(next, 0);
  ck_assert_uint_ge(reported.commits, commits);
  connect(&p, (unsigned)next);
  ck_assert_int_eq(exists(&p, "/n-0000000019"), 0);
  ck_assert_int_eq(reported.zxid >> 32, 1); /* the epoch */
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/n-", LK_SEQUENTIAL), 0);
  ck_assert_int_eq(reported.zxid, (INT64_C(2) << 32) + 1); /* of epoch 2 */
  sim_server_start(sim_lab_server(&lab, leader));
  ck_assert(sim_lab_wait_serving(&lab));
  connect(&p, leader);
  ck_assert_int_eq(exists(&p, "/n-0000000020"), 0);
  teardown();
}
END_TEST

START_TEST(new_leader_restarts_session_timeouts)
{
  setup();
  connect(&p, near);
  sim_lab_run(&lab, 3000);
  sim_server_crash(sim_lab_server(&lab, leader));
  sim_lab_run(&lab, TIMEOUT_MS - 500);
  ck_assert(sim_ensemble_session_is_alive(lab.ensemble, p.session));
  sim_lab_run(&lab, 500 + TICK_MS);
  ck_assert(!sim_ensemble_session_is_alive(lab.ensemble, p.session));
  teardown();
}
END_TEST

START_TEST(leader_serves_when_a_quorum_has_accepted_it)
{
  setup();
  sim_server_crash(sim_lab_server(&lab, leader));
  sim_link_slow(lab.ensemble, near, far, 500 * SIM_MS);
  sim_lab_run(&lab, 10);
  int64_t begun = lab.agenda.now_us;

  while (!sim_server_serves(sim_lab_server(&lab, near)) &&
         !sim_server_serves(sim_lab_server(&lab, far)))
    sim_lab_run(&lab, 10);
  /* A leader serves after JOIN, NEW_LEADER and ACCEPT. */
  ck_assert_int_gt(lab.agenda.now_us, begun + 1500 * SIM_MS);
  ck_assert_int_lt(lab.agenda.now_us, begun + 2000 * SIM_MS);
  teardown();
}
END_TEST

START_TEST(looking_server_closes_connections)
{
  setup();
  sim_server_crash(sim_lab_server(&lab, near));
  sim_server_crash(sim_lab_server(&lab, far));
  sim_lab_run(&lab, 10 * TICK_MS);
  ck_assert_int_eq(sim_ensemble_leader(lab.ensemble), -1); /* none */
  ck_assert(!sim_operator_create(lab.ensemble, "/a", ""));
  ck_assert(!sim_raw_client_connect(&p, leader, TIMEOUT_MS, NO_ZXID_SEEN));
  ck_assert(!sim_raw_client_has_bytes(&p));
  teardown();
}
END_TEST

START_TEST(crashed_server_refuses_connections)
{
  setup();
  sim_server_crash(sim_lab_server(&lab, near));
  sim_raw_client_open(&p, near);
  ck_assert_ptr_null(p.conn);
  teardown();
}
END_TEST

START_TEST(continued_server_keeps_its_state)
{
  setup();
  connect(&p, near);
  sim_server_stop(sim_lab_server(&lab, near));
  sim_raw_client_create(&p, "/a", LK_PERSISTENT);
  sim_lab_run(&lab, 1000);
  ck_assert(!sim_raw_client_has_bytes(&p));
  sim_server_continue(sim_lab_server(&lab, near));
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  /* A leader that is stopped for long is a follower afterwards. */
  sim_server_stop(sim_lab_server(&lab, leader));
  sim_lab_run(&lab, 7 * TICK_MS);
  sim_server_continue(sim_lab_server(&lab, leader));
  ck_assert_int_ge(sim_lab_wait_other_leader(&lab, leader), 0);
  ck_assert(sim_lab_wait_serving(&lab));
  connect(&p, leader);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  teardown();
}
END_TEST

/* ---- matching replies to requests --------------------------------------- */

START_TEST(reused_xid_gets_the_reply_of_an_older_request)
{
  struct lk_create_request r = {.path = lk_text("/old"),
                                .data = lk_text(""),
                                .acl = lk__vec_of(lk_acl_open()->entries, 1)};

  setup_with_disk_delay(20 * SIM_MS);
  connect(&p, near);
  copy_session(&q, &p);
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

SUITE("ensemble", read_sees_the_write_before_it,
      lagging_follower_is_stale_until_sync, only_sync_waits_for_a_late_write,
      write_after_session_moved_is_refused,
      sync_at_the_leader_does_not_wait_for_proposals,
      deposed_leader_answers_all_but_writes,
      deposed_leader_may_refuse_a_living_session,
      crash_loses_unlogged_proposals, answered_write_survives_the_leader,
      new_leader_restarts_session_timeouts,
      leader_serves_when_a_quorum_has_accepted_it,
      looking_server_closes_connections, crashed_server_refuses_connections,
      continued_server_keeps_its_state,
      reused_xid_gets_the_reply_of_an_older_request)
