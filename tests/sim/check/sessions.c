/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/three_servers.h"

/**
 * @file The model: sessions that are created, resumed, expired and closed.
 */

START_TEST(session_timeouts_are_within_bounds)
{
  setup();
  ck_assert(sim_raw_client_connect(&p, near, 1, NO_ZXID_SEEN));
  ck_assert_int_eq(p.timeout_ms, 2 * TICK_MS);
  ck_assert(sim_raw_client_connect(&p, far, 1000000, NO_ZXID_SEEN));
  ck_assert_int_eq(p.timeout_ms, 20 * TICK_MS);
  teardown();
}
END_TEST

START_TEST(unknown_session_or_wrong_password_is_refused)
{
  setup();
  for (unsigned i = 0; i < 3; i++) {
    connect(&p, i);
    int64_t session = p.session;

    p.session += 1000; /* no such session */
    ck_assert(!sim_raw_client_connect(&p, i, TIMEOUT_MS, NO_ZXID_SEEN));
    ck_assert_ptr_null(p.conn);
    p.session = session;
    p.password[3] ^= 1; /* any bit */
    ck_assert(!sim_raw_client_connect(&p, i, TIMEOUT_MS, NO_ZXID_SEEN));
    p.password[3] ^= 1;
    connect(&p, i);
  }
  teardown();
}
END_TEST

START_TEST(server_behind_the_client_closes_without_reply)
{
  setup();
  ck_assert(!sim_raw_client_connect(&p, near, TIMEOUT_MS, INT64_MAX));
  ck_assert_ptr_null(p.conn);
  ck_assert(!sim_raw_client_has_bytes(&p));
  /* A new leader has a larger zxid than its followers until the first
   * transaction. */
  ck_assert(!sim_raw_client_connect(&p, near, TIMEOUT_MS, INT64_C(1) << 32));
  ck_assert(sim_raw_client_connect(&p, leader, TIMEOUT_MS, INT64_C(1) << 32));
  sim_lab_run(&lab, 10);
  ck_assert(sim_raw_client_connect(&p, near, TIMEOUT_MS, INT64_C(1) << 32));
  teardown();
}
END_TEST

START_TEST(session_expires_within_a_tick_after_its_timeout)
{
  for (int i = 0; i < 20; i++) {
    setup();
    connect(&p, near);
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", LK_EPHEMERAL), 0);
    int64_t touched = lab.agenda.now_us;

    /* The follower reports the touch to the leader in half a tick. The runs
     * differ in the time since the leader's last tick. */
    sim_lab_run(&lab, TICK_MS / 2 + i * 50);
    ck_assert_int_eq(reported.ended, 0);
    while (reported.ended == 0)
      sim_lab_run(&lab, 1);
    ck_assert_int_eq(reported.ended, p.session);
    ck_assert(reported.expired);
    ck_assert_int_gt(lab.agenda.now_us, touched + TIMEOUT_MS * SIM_MS);
    ck_assert_int_lt(lab.agenda.now_us,
                     touched +
                         (TIMEOUT_MS + TICK_MS + TICK_MS / 2 + 10) * SIM_MS);
    sim_lab_run(&lab, 10);
    ck_assert_ptr_null(p.conn);
    ck_assert(!sim_raw_client_connect(&p, far, TIMEOUT_MS, NO_ZXID_SEEN));
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
    ck_assert(ping_for(&p, 5 * TIMEOUT_MS));
    ck_assert(sim_ensemble_session_is_alive(lab.ensemble, p.session));
  }
  teardown();
}
END_TEST

START_TEST(reply_to_a_ping_has_the_xid_of_pings)
{
  setup();
  for (unsigned i = 0; i < 3; i++) {
    connect(&p, i);
    sim_raw_client_send_as(&p, 77, LK_OPCODE_PING, NULL);
    ck_assert_int_eq(sim_raw_client_next(&p).xid, LK_XID_PING);
  }
  teardown();
}
END_TEST

START_TEST(close_deletes_ephemeral_nodes)
{
  setup();
  connect(&p, near);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", LK_EPHEMERAL), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/n", LK_PERSISTENT), 0);
  sim_raw_client_create(&p, "/f", LK_EPHEMERAL); /* proposed, not committed */
  sim_raw_client_send(&p, LK_OPCODE_CLOSE_SESSION, NULL);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0); /* of the create */
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0); /* of the close */
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
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", LK_EPHEMERAL), 0);
  sim_raw_client_delete(&q, "/e"); /* none of these is committed yet */
  sim_raw_client_create(&q, "/e", LK_PERSISTENT);
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
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
    copy_session(&q, &p);
    connect(&q, far);
    ck_assert_int_eq(sim_raw_client_do_create(&q, "/b", LK_PERSISTENT), 0);
    /* Only the leader checks the sessions of its clients' reads. */
    ck_assert_int_eq(exists(&p, "/a"), i == 0 ? 0 : LK_ERR_CONNECTION_LOSS);
    sim_raw_client_create(&p, "/c", LK_PERSISTENT);
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
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", LK_EPHEMERAL), 0);
  ck_assert(ping_for(&p, 1000));
  cut_off(near);
  ck_assert(ping_for(&p, TIMEOUT_MS + TICK_MS - 100));
  ck_assert_int_eq(reported.ended, p.session);
  ck_assert_int_eq(exists(&p, "/e"), 0);
  ck_assert(
      !ping_for(&p, TIMEOUT_MS)); /* until the follower gives up its leader */
  teardown();
}
END_TEST

START_TEST(forwarded_request_does_not_touch_session)
{
  setup();
  connect(&p, near);
  sim_lab_run(&lab, TICK_MS / 2 + 20); /* the follower reports this touch */
  int64_t touched = lab.agenda.now_us;

  sim_lab_run(&lab, 2 * TICK_MS);
  int64_t written = lab.agenda.now_us;

  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  cut_off(near); /* before the next ping */
  while (reported.ended == 0)
    sim_lab_run(&lab, 10);
  ck_assert_int_lt(lab.agenda.now_us,
                   touched + (TIMEOUT_MS + TICK_MS) * SIM_MS);
  ck_assert_int_lt(lab.agenda.now_us, written + TIMEOUT_MS * SIM_MS);
  teardown();
}
END_TEST

START_TEST(idle_connection_is_closed)
{
  setup();
  sim_raw_client_open(&p, near);
  /* The server checks every 10 s for connections that were idle for 10 s. */
  sim_lab_run(&lab, 9000);
  ck_assert_ptr_nonnull(p.conn);
  sim_lab_run(&lab, 12000);
  ck_assert_ptr_null(p.conn);
  teardown();
}
END_TEST

SUITE("sessions", session_timeouts_are_within_bounds,
      unknown_session_or_wrong_password_is_refused,
      server_behind_the_client_closes_without_reply,
      session_expires_within_a_tick_after_its_timeout, pings_keep_session_alive,
      reply_to_a_ping_has_the_xid_of_pings, close_deletes_ephemeral_nodes,
      close_keeps_a_node_that_replaced_an_ephemeral_one,
      server_closes_older_connection_of_session,
      connection_of_moved_session_can_read_but_not_write,
      cut_off_follower_answers_after_the_session_has_expired,
      forwarded_request_does_not_touch_session, idle_connection_is_closed)
