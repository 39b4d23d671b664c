/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/probe.h"
#include "suite.h"

/**
 * @file
 * The simulated ensemble as an ensemble: sessions that move and expire, servers
 * that lag, leaders that are deposed.
 */

enum { TICK = 1000, T = 4000 };

static sim_lab lab;
static sim_probe p, q;
static unsigned leader, near, far; /* two followers */

static struct {
  int64_t ended; /* the last session that did */
  bool expired;
  size_t commits;
  int64_t zxid;
} told;

static void on_committed(const sim_commit *c, const sim_tree *truth, void *arg)
{
  (void)arg;
  ck_assert_int_gt(c->zxid, told.zxid);
  ck_assert_int_eq(truth->zxid, c->zxid);
  told.zxid = c->zxid;
  told.commits++;
}

static void on_ended(int64_t session, bool expired, void *arg)
{
  (void)arg;
  told.ended = session;
  told.expired = expired;
}

static void setup_with(int64_t disk_us)
{
  const sim_ensemble_config config = {.tick_ms = TICK,
                                      .disk_delay_us = {disk_us, disk_us}};
  const sim_ensemble_hooks hooks = {.committed = on_committed,
                                    .session_ended = on_ended};

  memset(&told, 0, sizeof told);
  sim_lab_init(&lab, &config, 7, &hooks);
  leader = (unsigned)sim_ensemble_leader(lab.ensemble);
  near = (leader + 1) % 3;
  far = (leader + 2) % 3;
  sim_probe_init(&p, &lab);
  sim_probe_init(&q, &lab);
}

static void setup(void)
{
  setup_with(300);
}

static void teardown(void)
{
  sim_probe_free(&p);
  sim_probe_free(&q);
  sim_lab_free(&lab);
}

static void connect(sim_probe *who, unsigned server)
{
  ck_assert(sim_probe_connect(who, server, T, 0));
}

/* The same session somewhere else, while the first connection is there. */
static void take_over(sim_probe *by, const sim_probe *from)
{
  by->session = from->session;
  memcpy(by->password, from->password, sizeof by->password);
}

static int exists(sim_probe *who, const char *path)
{
  return sim_probe_do_read(who, LK_OPCODE_EXISTS, path, false);
}

static void expect_closed(sim_probe *who)
{
  ck_assert(sim_probe_next(who).closed);
  ck_assert_ptr_null(who->conn);
}

static void cut(unsigned server, bool yes)
{
  sim_link_cut(lab.ensemble, server, (server + 1) % 3, yes);
  sim_link_cut(lab.ensemble, server, (server + 2) % 3, yes);
}

/* A ping now and then, so long; false: the server hung up. */
static bool ping_for(sim_probe *who, int64_t ms)
{
  for (; ms > 0 && who->conn != NULL; ms -= 100) {
    sim_probe_send_as(who, LK_XID_PING, LK_OPCODE_PING, NULL);
    sim_lab_run(&lab, 100);
  }
  return who->conn != NULL;
}

/* ---- sessions ----------------------------------------------------------- */

START_TEST(timeouts_are_kept_in_bounds)
{
  setup();
  ck_assert(sim_probe_connect(&p, near, 1, 0));
  ck_assert_int_eq(p.timeout_ms, 2 * TICK);
  ck_assert(sim_probe_connect(&p, far, 1000000, 0));
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
    ck_assert(!sim_probe_connect(&p, i, T, 0));
    ck_assert_ptr_null(p.conn);
    p.session = session;
    p.password[3] ^= 1;
    ck_assert(!sim_probe_connect(&p, i, T, 0));
    p.password[3] ^= 1;
    connect(&p, i);
  }
  teardown();
}
END_TEST

START_TEST(a_server_that_is_behind_refuses_without_a_word)
{
  setup();
  ck_assert(!sim_probe_connect(&p, near, T, INT64_MAX));
  ck_assert_ptr_null(p.conn);
  ck_assert(!sim_probe_has(&p));
  /* A new leader is ahead of its followers until the first transaction. */
  ck_assert(!sim_probe_connect(&p, near, T, INT64_C(1) << 32));
  ck_assert(sim_probe_connect(&p, leader, T, INT64_C(1) << 32));
  sim_lab_run(&lab, 10);
  ck_assert(sim_probe_connect(&p, near, T, INT64_C(1) << 32));
  teardown();
}
END_TEST

START_TEST(a_session_ends_after_its_timeout_and_before_another_tick)
{
  for (int i = 0; i < 20; i++) {
    setup();
    connect(&p, near);
    ck_assert_int_eq(sim_probe_do_create(&p, "/e", 1), 0);
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
    ck_assert(!sim_probe_connect(&p, far, T, 0));
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
    sim_probe_send_as(&p, 77, LK_OPCODE_PING, NULL);
    ck_assert_int_eq(sim_probe_next(&p).xid, LK_XID_PING);
    ck_assert(ping_for(&p, 5 * T));
    ck_assert(sim_ensemble_lives(lab.ensemble, p.session));
  }
  teardown();
}
END_TEST

START_TEST(closing_deletes_what_is_ephemeral)
{
  setup();
  connect(&p, near);
  ck_assert_int_eq(sim_probe_do_create(&p, "/e", 1), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/n", 0), 0);
  sim_probe_create(&p, "/f", 1); /* still on its way */
  sim_probe_send(&p, LK_OPCODE_CLOSE_SESSION, NULL);
  ck_assert_int_eq(sim_probe_next(&p).err, 0);
  ck_assert_int_eq(sim_probe_next(&p).err, 0);
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
    ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
    take_over(&q, &p);
    connect(&q, far);
    ck_assert_int_eq(sim_probe_do_create(&q, "/b", 0), 0);
    /* Only the leader looks at its own clients' reads. */
    ck_assert_int_eq(exists(&p, "/a"), i == 0 ? 0 : LK_ERR_LOSS);
    sim_probe_create(&p, "/c", 0);
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
  ck_assert_int_eq(sim_probe_do_create(&p, "/e", 1), 0);
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

  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
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
  sim_probe_dial(&p, near);
  sim_lab_run(&lab, 9000);
  ck_assert_ptr_nonnull(p.conn);
  sim_lab_run(&lab, 12000);
  ck_assert_ptr_null(p.conn);
  teardown();
}
END_TEST

/* ---- order -------------------------------------------------------------- */

START_TEST(a_read_sees_the_write_before_it)
{
  setup();
  for (unsigned i = 0; i < 3; i++) {
    connect(&p, i);
    for (int k = 0; k < 50; k++) {
      sim_probe_create(&p, "/n-", 2);
      sim_probe_read(&p, LK_OPCODE_GET_CHILDREN2, "/", false);
    }
    for (int k = 0; k < 50; k++) {
      int64_t zxid = sim_probe_next(&p).zxid;
      sim_reply r = sim_probe_next(&p);

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
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(exists(&q, "/a"), LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_probe_do_sync(&q, "/"), 0);
  ck_assert_int_eq(exists(&q, "/a"), 0);
  teardown();
}
END_TEST

START_TEST(a_late_write_is_awaited_by_a_sync_alone)
{
  for (int synced = 0; synced < 2; synced++) {
    setup_with(20 * SIM_MS);
    connect(&p, near);
    sim_probe_create(&p, "/late", 0);
    sim_lab_run(&lab, 2); /* it is proposed, and not logged yet */
    sim_probe_hang_up(&p);
    take_over(&q, &p);
    connect(&q, far);
    if (synced != 0)
      ck_assert_int_eq(sim_probe_do_sync(&q, "/"), 0);
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
  sim_probe_create(&p, "/late", 0);
  sim_probe_hang_up(&p);
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
  sim_probe_create(&p, "/late", 0);
  sim_lab_run(&lab, 2);
  ck_assert_int_eq(sim_probe_do_sync(&q, "/"), 0);
  ck_assert_int_eq(exists(&q, "/late"), LK_ERR_NO_NODE);
  /* But a session waits for what it has asked for elsewhere. */
  sim_probe_hang_up(&p);
  sim_probe_hang_up(&q);
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
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  cut(leader, true);
  sim_lab_run(&lab, 3 * TICK);
  ck_assert_int_eq(exists(&p, "/a"), 0);
  ck_assert_int_eq(sim_probe_do_sync(&p, "/a"), 0);
  sim_probe_hang_up(&p);
  connect(&p, leader); /* a resume does not ask anybody else */
  sim_probe_create(&p, "/b", 0);
  expect_closed(&p);
  ck_assert(!sim_probe_has(&p));
  int next = sim_lab_leader(&lab, (int)leader);

  ck_assert_int_ge(next, 0);
  cut(leader, false);
  ck_assert(sim_lab_settle(&lab));
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
  ck_assert(!sim_probe_connect(&p, leader, T, 0));
  ck_assert_int_eq(p.timeout_ms, 0); /* it says so */
  ck_assert(sim_ensemble_lives(lab.ensemble, p.session));
  ck_assert(
      sim_probe_connect(&p, (unsigned)sim_lab_leader(&lab, (int)leader), T, 0));
  teardown();
}
END_TEST

START_TEST(a_crash_loses_what_was_not_logged)
{
  setup_with(20 * SIM_MS);
  connect(&p, near);
  sim_probe_create(&p, "/a", 0);
  sim_lab_run(&lab, 30);
  ck_assert_int_eq(sim_probe_next(&p).err, 0);
  sim_probe_create(&p, "/b", 0);
  sim_lab_run(&lab, 10);
  for (unsigned i = 0; i < 3; i++)
    sim_server_crash(sim_lab_server(&lab, i));
  expect_closed(&p);
  for (unsigned i = 0; i < 3; i++)
    sim_server_start(sim_lab_server(&lab, i));
  ck_assert(sim_lab_settle(&lab));
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
    ck_assert_int_eq(sim_probe_do_create(&p, "/n-", 2), 0);
  size_t commits = told.commits;

  sim_server_crash(sim_lab_server(&lab, leader));
  expect_closed(&p);
  int next = sim_lab_leader(&lab, (int)leader);

  ck_assert_int_ge(next, 0);
  ck_assert_uint_ge(told.commits, commits);
  connect(&p, (unsigned)next);
  ck_assert_int_eq(exists(&p, "/n-0000000019"), 0);
  ck_assert_int_eq(told.zxid >> 32, 1);
  ck_assert_int_eq(sim_probe_do_create(&p, "/n-", 2), 0);
  ck_assert_int_eq(told.zxid, (INT64_C(2) << 32) + 1);
  sim_server_start(sim_lab_server(&lab, leader));
  ck_assert(sim_lab_settle(&lab));
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
  ck_assert(sim_ensemble_lives(lab.ensemble, p.session));
  sim_lab_run(&lab, 500 + TICK);
  ck_assert(!sim_ensemble_lives(lab.ensemble, p.session));
  teardown();
}
END_TEST

START_TEST(a_server_that_looks_for_a_leader_hangs_up)
{
  setup();
  sim_server_crash(sim_lab_server(&lab, near));
  sim_server_crash(sim_lab_server(&lab, far));
  ck_assert(sim_lab_server(&lab, near) != NULL);
  sim_probe_dial(&p, near);
  ck_assert_ptr_null(p.conn);
  sim_lab_run(&lab, 10 * TICK);
  ck_assert_int_eq(sim_ensemble_leader(lab.ensemble), -1);
  ck_assert(!sim_operator_create(lab.ensemble, "/a", "", 0, false));
  ck_assert(!sim_probe_connect(&p, leader, T, 0));
  ck_assert(!sim_probe_has(&p));
  teardown();
}
END_TEST

START_TEST(a_server_that_stood_still_goes_on_where_it_was)
{
  setup();
  connect(&p, near);
  sim_server_stop(sim_lab_server(&lab, near));
  sim_probe_create(&p, "/a", 0);
  sim_lab_run(&lab, 1000);
  ck_assert(!sim_probe_has(&p));
  sim_server_continue(sim_lab_server(&lab, near));
  ck_assert_int_eq(sim_probe_next(&p).err, 0);
  /* A leader that stands still for long is another's follower afterwards. */
  sim_server_stop(sim_lab_server(&lab, leader));
  sim_lab_run(&lab, 7 * TICK);
  sim_server_continue(sim_lab_server(&lab, leader));
  ck_assert_int_ge(sim_lab_leader(&lab, (int)leader), 0);
  ck_assert(sim_lab_settle(&lab));
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
  sim_probe_send_as(&p, 1, LK_OPCODE_CREATE, &r);
  sim_lab_run(&lab, 2);
  sim_probe_hang_up(&p);
  connect(&q, far);
  r.path = lk_text("/new");
  sim_probe_send_as(&q, 1, LK_OPCODE_CREATE, &r);
  sim_reply reply = sim_probe_next(&q);
  lk_bytes path = lk__reader_bytes(&reply.body);

  ck_assert_int_eq(reply.xid, 1);
  ck_assert_mem_eq(path.at, "/old", 4);
  sim_lab_run(&lab, 300);
  ck_assert_ptr_nonnull(
      sim_tree_find(sim_ensemble_truth(lab.ensemble), "/new"));
  teardown();
}
END_TEST

SUITE("sim_ensemble", timeouts_are_kept_in_bounds,
      a_session_that_is_not_known_is_refused,
      a_server_that_is_behind_refuses_without_a_word,
      a_session_ends_after_its_timeout_and_before_another_tick,
      pings_keep_a_session, closing_deletes_what_is_ephemeral,
      a_server_drops_the_older_connection_of_a_session,
      a_connection_that_is_left_behind_may_read_but_not_write,
      a_cut_off_follower_answers_when_the_session_has_long_ended,
      what_is_passed_on_does_not_touch, a_connection_without_a_word_is_closed,
      a_read_sees_the_write_before_it,
      a_late_follower_is_stale_until_it_is_synced,
      a_late_write_is_awaited_by_a_sync_alone,
      a_write_that_comes_after_the_move_is_refused,
      a_leader_does_not_drain_for_its_own_clients,
      a_deposed_leader_answers_all_but_writes,
      a_deposed_leader_may_refuse_a_session_that_lives,
      a_crash_loses_what_was_not_logged, what_was_answered_outlives_its_leader,
      timers_begin_anew_with_a_leader,
      a_server_that_looks_for_a_leader_hangs_up,
      a_server_that_stood_still_goes_on_where_it_was,
      a_client_that_counts_anew_is_told_of_an_older_request)
