/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/three_servers.h"

/**
 * @file The model: sessions that are created, resumed, expired and closed.
 */

START_TEST(session_timeouts_are_within_bounds)
{
  setup();
  ck_assert(sim_raw_client_connect(&p, near, 1, 0));
  ck_assert_int_eq(p.timeout_ms, 2 * TICK);
  ck_assert(sim_raw_client_connect(&p, far, 1000000, 0));
  ck_assert_int_eq(p.timeout_ms, 20 * TICK);
  teardown();
}
END_TEST

START_TEST(unknown_session_is_refused)
{
  setup();
  for (unsigned i = 0; i < 3; i++) {
    connect(&p, i);
    int64_t session = p.session;

    p.session += 1000;
    ck_assert(!sim_raw_client_connect(&p, i, T, 0));
    ck_assert_ptr_null(p.conn);
    p.session = session;
    p.password[3] ^= 1;
    ck_assert(!sim_raw_client_connect(&p, i, T, 0));
    p.password[3] ^= 1;
    connect(&p, i);
  }
  teardown();
}
END_TEST

START_TEST(server_behind_the_client_closes_without_reply)
{
  setup();
  ck_assert(!sim_raw_client_connect(&p, near, T, INT64_MAX));
  ck_assert_ptr_null(p.conn);
  ck_assert(!sim_raw_client_has(&p));
  /* A new leader has a larger zxid than its followers until the first
   * transaction. */
  ck_assert(!sim_raw_client_connect(&p, near, T, INT64_C(1) << 32));
  ck_assert(sim_raw_client_connect(&p, leader, T, INT64_C(1) << 32));
  sim_lab_run(&lab, 10);
  ck_assert(sim_raw_client_connect(&p, near, T, INT64_C(1) << 32));
  teardown();
}
END_TEST

START_TEST(session_expires_within_a_tick_after_its_timeout)
{
  for (int i = 0; i < 20; i++) {
    setup();
    connect(&p, near);
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
    int64_t touched = lab.agenda.now_us;

    sim_lab_run(
        &lab, i * 50 + 500); /* the follower reports the touch to the leader */
    ck_assert_int_eq(reported.ended, 0);
    while (reported.ended == 0)
      sim_lab_run(&lab, 1);
    ck_assert_int_eq(reported.ended, p.session);
    ck_assert(reported.expired);
    ck_assert_int_gt(lab.agenda.now_us, touched + T * SIM_MS);
    ck_assert_int_lt(lab.agenda.now_us,
                     touched + (T + TICK + TICK / 2 + 10) * SIM_MS);
    sim_lab_run(&lab, 10);
    ck_assert_ptr_null(p.conn);
    ck_assert(!sim_raw_client_connect(&p, far, T, 0));
    connect(&q, near);
    ck_assert_int_eq(exists(&q, "/e"), LK_ERR_NO_NODE);
    teardown();
  }
}
END_TEST

START_TEST(pings_keep_session_alive)
{
  setup();
  for (unsigned i = 0; i < 3; i++) {
    connect(&p, i);
    sim_raw_client_send_as(&p, 77, LK_OPCODE_PING, NULL);
    ck_assert_int_eq(sim_raw_client_next(&p).xid, LK_XID_PING);
    ck_assert(ping_for(&p, 5 * T));
    ck_assert(sim_ensemble_session_is_alive(lab.ensemble, p.session));
  }
  teardown();
}
END_TEST

START_TEST(close_deletes_ephemeral_nodes)
{
  setup();
  connect(&p, near);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/n", 0), 0);
  sim_raw_client_create(&p, "/f", 1); /* proposed, not committed */
  sim_raw_client_send(&p, LK_OPCODE_CLOSE_SESSION, NULL);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  expect_closed(&p);
  ck_assert_int_eq(reported.ended, p.session);
  ck_assert(!reported.expired);
  connect(&q, near);
  ck_assert_int_eq(exists(&q, "/e"), LK_ERR_NO_NODE);
  ck_assert_int_eq(exists(&q, "/f"), LK_ERR_NO_NODE);
  ck_assert_int_eq(exists(&q, "/n"), 0);
  teardown();
}
END_TEST

START_TEST(close_keeps_a_node_that_replaced_an_ephemeral_one)
{
  setup();
  connect(&p, leader);
  connect(&q, leader);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
  sim_raw_client_delete(&q, "/e"); /* none of these is committed yet */
  sim_raw_client_create(&q, "/e", 0);
  sim_raw_client_send(&p, LK_OPCODE_CLOSE_SESSION, NULL);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(sim_raw_client_next(&q).err, 0);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  ck_assert_int_eq(reported.ended, p.session);
  ck_assert_int_eq(exists(&q, "/e"), 0);
  teardown();
}
END_TEST

START_TEST(server_closes_older_connection_of_session)
{
  setup();
  connect(&p, near);
  copy_session(&q, &p);
  connect(&q, near);
  expect_closed(&p);
  ck_assert_int_eq(exists(&q, "/"), 0);
  teardown();
}
END_TEST

START_TEST(connection_of_moved_session_can_read_but_not_write)
{
  for (unsigned i = 0; i < 2; i++) {
    setup();
    unsigned from = i == 0 ? near : leader;

    connect(&p, from);
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
    copy_session(&q, &p);
    connect(&q, far);
    ck_assert_int_eq(sim_raw_client_do_create(&q, "/b", 0), 0);
    /* Only the leader checks the sessions of its clients' reads. */
    ck_assert_int_eq(exists(&p, "/a"), i == 0 ? 0 : LK_ERR_CONNECTION_LOSS);
    sim_raw_client_create(&p, "/c", 0);
    expect_closed(&p);
    ck_assert_int_eq(exists(&q, "/c"), LK_ERR_NO_NODE);
    teardown();
  }
}
END_TEST

START_TEST(cut_off_follower_answers_after_the_session_has_expired)
{
  setup();
  connect(&p, near);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
  ck_assert(ping_for(&p, 1000));
  cut(near, true);
  ck_assert(ping_for(&p, T + TICK - 100));
  ck_assert_int_eq(reported.ended, p.session);
  ck_assert_int_eq(exists(&p, "/e"), 0);
  ck_assert(!ping_for(&p, T)); /* until the follower gives up its leader */
  teardown();
}
END_TEST

START_TEST(forwarded_request_does_not_touch_session)
{
  setup();
  connect(&p, near);
  sim_lab_run(&lab, TICK / 2 + 20); /* the follower reports this touch */
  int64_t touched = lab.agenda.now_us;

  sim_lab_run(&lab, 2 * TICK);
  int64_t written = lab.agenda.now_us;

  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  cut(near, true); /* before the next ping */
  while (reported.ended == 0)
    sim_lab_run(&lab, 10);
  ck_assert_int_lt(lab.agenda.now_us, touched + (T + TICK) * SIM_MS);
  ck_assert_int_lt(lab.agenda.now_us, written + T * SIM_MS);
  teardown();
}
END_TEST

START_TEST(idle_connection_is_closed)
{
  setup();
  sim_raw_client_open(&p, near);
  sim_lab_run(&lab, 9000);
  ck_assert_ptr_nonnull(p.conn);
  sim_lab_run(&lab, 12000);
  ck_assert_ptr_null(p.conn);
  teardown();
}
END_TEST

SUITE("sessions", session_timeouts_are_within_bounds,
      unknown_session_is_refused, server_behind_the_client_closes_without_reply,
      session_expires_within_a_tick_after_its_timeout, pings_keep_session_alive,
      close_deletes_ephemeral_nodes,
      close_keeps_a_node_that_replaced_an_ephemeral_one,
      server_closes_older_connection_of_session,
      connection_of_moved_session_can_read_but_not_write,
      cut_off_follower_answers_after_the_session_has_expired,
      forwarded_request_does_not_touch_session, idle_connection_is_closed)
