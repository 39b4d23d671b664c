/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/three_servers.h"

/**
 * @file
 * The simulated ensemble: sessions that begin, move, expire and end.
 */

START_TEST(timeouts_are_kept_in_bounds)
{
  setup();
  ck_assert(sim_raw_client_connect(&p, near, 1, 0));
  ck_assert_int_eq(p.timeout_ms, 2 * TICK);
  ck_assert(sim_raw_client_connect(&p, far, 1000000, 0));
  ck_assert_int_eq(p.timeout_ms, 20 * TICK);
  teardown();
}
END_TEST

START_TEST(a_session_that_is_not_known_is_refused)
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

START_TEST(a_server_that_is_behind_refuses_without_a_word)
{
  setup();
  ck_assert(!sim_raw_client_connect(&p, near, T, INT64_MAX));
  ck_assert_ptr_null(p.conn);
  ck_assert(!sim_raw_client_has(&p));
  /* A new leader is ahead of its followers until the first transaction. */
  ck_assert(!sim_raw_client_connect(&p, near, T, INT64_C(1) << 32));
  ck_assert(sim_raw_client_connect(&p, leader, T, INT64_C(1) << 32));
  sim_lab_run(&lab, 10);
  ck_assert(sim_raw_client_connect(&p, near, T, INT64_C(1) << 32));
  teardown();
}
END_TEST

START_TEST(a_session_ends_after_its_timeout_and_before_another_tick)
{
  for (int i = 0; i < 20; i++) {
    setup();
    connect(&p, near);
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
    int64_t touched = lab.agenda.now_us;

    sim_lab_run(&lab, i * 50 + 500); /* the touch is reported */
    ck_assert_int_eq(told.ended, 0);
    while (told.ended == 0)
      sim_lab_run(&lab, 1);
    ck_assert_int_eq(told.ended, p.session);
    ck_assert(told.expired);
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

START_TEST(pings_keep_a_session)
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

START_TEST(closing_deletes_what_is_ephemeral)
{
  setup();
  connect(&p, near);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/n", 0), 0);
  sim_raw_client_create(&p, "/f", 1); /* still on its way */
  sim_raw_client_send(&p, LK_OPCODE_CLOSE_SESSION, NULL);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  expect_closed(&p);
  ck_assert_int_eq(told.ended, p.session);
  ck_assert(!told.expired);
  connect(&q, near);
  ck_assert_int_eq(exists(&q, "/e"), LK_ERR_NO_NODE);
  ck_assert_int_eq(exists(&q, "/f"), LK_ERR_NO_NODE);
  ck_assert_int_eq(exists(&q, "/n"), 0);
  teardown();
}
END_TEST

START_TEST(closing_leaves_what_another_made_in_the_place_of_an_ephemeral)
{
  setup();
  connect(&p, leader);
  connect(&q, leader);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
  sim_raw_client_delete(&q, "/e"); /* all still on its way */
  sim_raw_client_create(&q, "/e", 0);
  sim_raw_client_send(&p, LK_OPCODE_CLOSE_SESSION, NULL);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(sim_raw_client_next(&q).err, 0);
  ck_assert_int_eq(sim_raw_client_next(&p).err, 0);
  ck_assert_int_eq(told.ended, p.session);
  ck_assert_int_eq(exists(&q, "/e"), 0);
  teardown();
}
END_TEST

START_TEST(a_server_drops_the_older_connection_of_a_session)
{
  setup();
  connect(&p, near);
  take_over(&q, &p);
  connect(&q, near);
  expect_closed(&p);
  ck_assert_int_eq(exists(&q, "/"), 0);
  teardown();
}
END_TEST

START_TEST(a_connection_that_is_left_behind_may_read_but_not_write)
{
  for (unsigned i = 0; i < 2; i++) {
    setup();
    unsigned from = i == 0 ? near : leader;

    connect(&p, from);
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
    take_over(&q, &p);
    connect(&q, far);
    ck_assert_int_eq(sim_raw_client_do_create(&q, "/b", 0), 0);
    /* Only the leader looks at its own clients' reads. */
    ck_assert_int_eq(exists(&p, "/a"), i == 0 ? 0 : LK_ERR_CONNECTION_LOSS);
    sim_raw_client_create(&p, "/c", 0);
    expect_closed(&p);
    ck_assert_int_eq(exists(&q, "/c"), LK_ERR_NO_NODE);
    teardown();
  }
}
END_TEST

START_TEST(a_cut_off_follower_answers_when_the_session_has_long_ended)
{
  setup();
  connect(&p, near);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", 1), 0);
  ck_assert(ping_for(&p, 1000));
  cut(near, true);
  ck_assert(ping_for(&p, T + TICK - 100));
  ck_assert_int_eq(told.ended, p.session);
  ck_assert_int_eq(exists(&p, "/e"), 0);
  ck_assert(!ping_for(&p, T)); /* until it gives its leader up */
  teardown();
}
END_TEST

START_TEST(what_is_passed_on_does_not_touch)
{
  setup();
  connect(&p, near);
  sim_lab_run(&lab, TICK / 2 + 20); /* this touch is reported */
  int64_t reported = lab.agenda.now_us;

  sim_lab_run(&lab, 2 * TICK);
  int64_t written = lab.agenda.now_us;

  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  cut(near, true); /* before the next ping */
  while (told.ended == 0)
    sim_lab_run(&lab, 10);
  ck_assert_int_lt(lab.agenda.now_us, reported + (T + TICK) * SIM_MS);
  ck_assert_int_lt(lab.agenda.now_us, written + T * SIM_MS);
  teardown();
}
END_TEST

START_TEST(a_connection_without_a_word_is_closed)
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

SUITE("sessions", timeouts_are_kept_in_bounds,
      a_session_that_is_not_known_is_refused,
      a_server_that_is_behind_refuses_without_a_word,
      a_session_ends_after_its_timeout_and_before_another_tick,
      pings_keep_a_session, closing_deletes_what_is_ephemeral,
      closing_leaves_what_another_made_in_the_place_of_an_ephemeral,
      a_server_drops_the_older_connection_of_a_session,
      a_connection_that_is_left_behind_may_read_but_not_write,
      a_cut_off_follower_answers_when_the_session_has_long_ended,
      what_is_passed_on_does_not_touch, a_connection_without_a_word_is_closed)
