/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fake/wire.h"
#include "proto/multi.h"
#include "sim/probe.h"
#include "suite.h"

/**
 * @file
 * The simulated ensemble as one server: what requests do, and what watchers are
 * told.
 */

enum { CREATED = 1, DELETED, CHANGED, CHILDREN };

static sim_lab lab;
static sim_probe p, q;

static void setup_lab(const sim_ensemble_config *config)
{
  sim_lab_init(&lab, config, 1, NULL);
  sim_probe_init(&p, &lab);
  sim_probe_init(&q, &lab);
}

/* A server by itself, with two clients. */
static void setup(void)
{
  const sim_ensemble_config config = {.servers = 1, .sweep_ms = 1000};

  setup_lab(&config);
  ck_assert(sim_probe_connect(&p, 0, 10000, 0));
  ck_assert(sim_probe_connect(&q, 0, 10000, 0));
}

static void teardown(void)
{
  sim_probe_free(&p);
  sim_probe_free(&q);
  sim_lab_free(&lab);
}

static void expect_event(sim_probe *who, int32_t type, const char *path)
{
  sim_reply r = sim_probe_next(who);

  ck_assert(!r.closed);
  ck_assert_int_eq(r.xid, LK_XID_EVENT);
  ck_assert_int_eq(r.zxid, -1);
  ck_assert_int_eq(lk__reader_int(&r.body), type);
  ck_assert_int_eq(lk__reader_int(&r.body), 3);
  lk_bytes text = lk__reader_bytes(&r.body);

  ck_assert_uint_eq(text.len, strlen(path));
  ck_assert_mem_eq(text.at, path, text.len);
}

static sim_reply expect_reply(sim_probe *who, int32_t xid, int err)
{
  sim_reply r = sim_probe_next(who);

  ck_assert(!r.closed);
  ck_assert_int_eq(r.xid, xid);
  ck_assert_int_eq(r.err, err);
  return r;
}

static void expect_text(sim_reply *r, const char *text)
{
  lk_bytes b = lk__reader_bytes(&r->body);

  ck_assert_int_eq(r->body.err, 0);
  ck_assert_uint_eq(b.len, strlen(text));
  ck_assert_mem_eq(b.at, text, b.len);
}

/* Make a node whose name ends as the server says. */
static void create_as(sim_probe *who, const char *path, int32_t flags,
                      const char *made)
{
  sim_reply r = expect_reply(who, sim_probe_create(who, path, flags), 0);

  expect_text(&r, made);
}

static int set(sim_probe *who, const char *path, lk_bytes data)
{
  struct lk_set_data_request r = {lk_text(path), data, -1};
  int32_t xid = sim_probe_send(who, LK_OPCODE_SET_DATA, &r);
  sim_reply reply;

  do
    reply = sim_probe_next(who);
  while (!reply.closed && reply.xid != xid);
  return reply.err;
}

static lk_stat stat_of(sim_probe *who, const char *path)
{
  sim_reply r =
      expect_reply(who, sim_probe_read(who, LK_OPCODE_EXISTS, path, false), 0);
  lk_stat stat;

  lk__reader_stat(&r.body, &stat);
  return stat;
}

/* ---- nodes -------------------------------------------------------------- */

START_TEST(a_client_makes_and_finds_a_node)
{
  setup();
  ck_assert_int_eq(p.timeout_ms, 10000);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_EXISTS, "/a", false), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(sim_probe_do_create(&p, "/b/c", 0), LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a//b", 0), LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/.", 0), LK_ERR_BAD_ARGUMENTS);
  ck_assert_int_eq(sim_probe_do_sync(&p, "/a"), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/b", 1), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/b/c", 0),
                   LK_ERR_NO_CHILDREN_FOR_EPHEMERALS);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a"), LK_ERR_NOT_EMPTY);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/b"), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a"), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a"), LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/zookeeper"), LK_ERR_BAD_ARGUMENTS);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_GET_DATA, "/a", false),
                   LK_ERR_NO_NODE);
  teardown();
}
END_TEST

START_TEST(every_write_has_a_zxid_also_one_that_fails)
{
  setup();
  sim_reply r = expect_reply(&p, sim_probe_create(&p, "/a", 0), 0);
  int64_t zxid = r.zxid;

  ck_assert_int_eq(zxid, 3); /* behind two sessions */
  r = expect_reply(&p, sim_probe_create(&p, "/a", 0), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(r.zxid, zxid + 1);
  r = expect_reply(&p, sim_probe_delete(&p, "/a"), 0);
  ck_assert_int_eq(r.zxid, zxid + 2);
  r = expect_reply(&p, sim_probe_read(&p, LK_OPCODE_EXISTS, "/a", false),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(r.zxid, zxid + 2);
  teardown();
}
END_TEST

START_TEST(a_stat_tells_all_changes)
{
  setup();
  ck_assert_int_eq(stat_of(&p, "/").cversion, -1);
  ck_assert_int_eq(stat_of(&p, "/zookeeper").cversion, -2);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/b", 1), 0);
  ck_assert_int_eq(set(&p, "/a", lk_text("four")), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/c", 0), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/c"), 0);
  lk_stat a = stat_of(&p, "/a"), b = stat_of(&p, "/a/b");

  ck_assert_int_eq(a.czxid, 3);
  ck_assert_int_eq(a.mzxid, 5);
  ck_assert_int_eq(a.pzxid, 7);
  ck_assert_int_eq(a.version, 1);
  ck_assert_int_eq(a.cversion, 3);
  ck_assert_int_eq(a.num_children, 1);
  ck_assert_int_eq(a.data_length, 4);
  ck_assert_int_eq(a.ephemeral_owner, 0);
  ck_assert_int_eq(b.ephemeral_owner, p.session);
  teardown();
}
END_TEST

START_TEST(null_data_is_not_empty_data)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  for (int null = 0; null < 2; null++) {
    ck_assert_int_eq(set(&p, "/a", lk_text(null == 0 ? "" : NULL)), 0);
    sim_reply r = expect_reply(
        &p, sim_probe_read(&p, LK_OPCODE_GET_DATA, "/a", false), 0);
    lk_bytes data = lk__reader_bytes(&r.body);

    ck_assert_int_eq(data.at == NULL, null);
    ck_assert_int_eq(stat_of(&p, "/a").data_length, 0);
  }
  teardown();
}
END_TEST

START_TEST(a_number_counts_all_children_ever_made)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  create_as(&p, "/a/n-", 2, "/a/n-0000000000");
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/x", 0), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/x", 0), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/n-0000000000"), 0);
  create_as(&p, "/a/n-", 3, "/a/n-0000000002");
  create_as(&p, "/a/", 2, "/a/0000000003");
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/x"), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/n-0000000002"), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/0000000003"), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a"), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  create_as(&p, "/a/n-", 2, "/a/n-0000000000");
  teardown();
}
END_TEST

START_TEST(the_counter_sticks_at_its_end_and_runs_over_in_flight)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  sim_operator_set_counter(lab.ensemble, "/a", INT32_MAX - 1);
  create_as(&p, "/a/1-", 2, "/a/1-2147483646");
  create_as(&p, "/a/2-", 2, "/a/2-2147483647");
  create_as(&p, "/a/3-", 2, "/a/3-2147483647");
  create_as(&p, "/a/4-", 2, "/a/4-2147483647");
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/4-", 2), LK_ERR_NODE_EXISTS);
  static const char *const names[] = {"/a/5-2147483647", "/a/5--2147483648",
                                      "/a/5--2147483647"};
  int32_t xid = p.xid;

  for (int i = 0; i < 3; i++)
    sim_probe_create(&p, "/a/5-", 2);
  for (int i = 0; i < 3; i++) {
    sim_reply r = expect_reply(&p, ++xid, 0);

    expect_text(&r, names[i]);
  }
  create_as(&p, "/a/6-", 2, "/a/6-2147483647");
  teardown();
}
END_TEST

START_TEST(a_container_goes_when_it_has_had_a_child)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/c", 4), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/d", 4), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/e", 0), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/c/x", 0), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/e/x", 0), 0);
  sim_lab_run(&lab, 1500);
  ck_assert_int_eq(stat_of(&p, "/c").num_children, 1);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/c/x"), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/e/x"), 0);
  sim_lab_run(&lab, 1500);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_EXISTS, "/c", false),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(stat_of(&p, "/d").ephemeral_owner, 0);
  ck_assert_int_eq(stat_of(&p, "/e").num_children, 0);
  teardown();
}
END_TEST

/* ---- multi -------------------------------------------------------------- */

static int32_t send_multi(sim_probe *who, const lk_op *ops, size_t count)
{
  struct lk_request_header h = {++who->xid, LK_OPCODE_MULTI};
  unsigned char body[1000];
  lk_buf out = wire_buf();
  size_t mark = wire_begin(&out);
  lk_writer w;

  wire_record(&out, &lk__request_header_record, &h);
  lk__writer_init(&w, body, sizeof body);
  lk__multi_encode(&w, ops, count, "");
  lk__buf_append(&out, body, w.len);
  wire_end(&out, mark);
  sim_conn_input(who->conn, lk__buf_bytes(&out), lk__buf_len(&out));
  lk__buf_free(&out);
  return who->xid;
}

static void expect_part(sim_reply *r, int32_t type, int err)
{
  ck_assert_int_eq(lk__reader_int(&r->body), type);
  lk__reader_bool(&r->body);
  ck_assert_int_eq(lk__reader_int(&r->body), err);
}

START_TEST(a_multi_is_done_whole_under_one_zxid)
{
  setup();
  lk_op ops[] = {lk_op_create("/a", lk_text("1"), NULL, 0),
                 lk_op_create("/a/b-", lk_text(""), NULL, 2),
                 lk_op_set("/a", lk_text("2"), 0), lk_op_check("/a", 1)};
  sim_reply r = expect_reply(&p, send_multi(&p, ops, 4), 0);
  int64_t zxid = r.zxid;

  expect_part(&r, LK_OPCODE_CREATE, 0);
  expect_text(&r, "/a");
  expect_part(&r, LK_OPCODE_CREATE, 0); /* no stat, though it asked for one */
  expect_text(&r, "/a/b-0000000000");
  expect_part(&r, LK_OPCODE_SET_DATA, 0);
  lk_stat stat;

  lk__reader_stat(&r.body, &stat);
  ck_assert_int_eq(stat.version, 1);
  expect_part(&r, LK_OPCODE_CHECK, 0);
  expect_part(&r, -1, -1);
  ck_assert_uint_eq(lk__reader_left(&r.body), 0);
  ck_assert_int_eq(stat.mzxid, zxid);
  ck_assert_int_eq(stat.czxid, zxid);
  ck_assert_int_eq(stat_of(&p, "/a/b-0000000000").czxid, zxid);
  teardown();
}
END_TEST

START_TEST(a_multi_that_fails_does_nothing)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  lk_op ops[] = {lk_op_create("/a/n-", lk_text(""), NULL, 2),
                 lk_op_check("/a", 7), lk_op_delete("/a", -1)};
  int32_t xid = send_multi(&p, ops, 3);

  sim_probe_create(&p, "/a/n-", 2); /* before the multi is done */
  sim_reply r = expect_reply(&p, xid, 0);

  for (int i = 0; i < 3; i++) {
    int err = i == 0   ? 0
              : i == 1 ? LK_ERR_BAD_VERSION
                       : LK_ERR_RUNTIME_INCONSISTENCY;

    expect_part(&r, -1, err);
    ck_assert_int_eq(lk__reader_int(&r.body), err);
  }
  expect_part(&r, -1, -1);
  r = expect_reply(&p, xid + 1, 0);
  expect_text(&r, "/a/n-0000000000");
  ck_assert_int_eq(stat_of(&p, "/a").num_children, 1);
  teardown();
}
END_TEST

/* ---- watches ------------------------------------------------------------ */

START_TEST(a_watch_is_told_once_and_before_the_reply)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_GET_DATA, "/a", true), 0);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_EXISTS, "/a", true), 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  struct lk_set_data_request r = {lk_text("/a"), lk_text("x"), -1};
  int32_t xid = sim_probe_send(&p, LK_OPCODE_SET_DATA, &r);

  expect_event(&p, CHANGED, "/a");
  expect_reply(&p, xid, 0);
  ck_assert_int_eq(set(&p, "/a", lk_text("y")), 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

START_TEST(a_deletion_is_told_of_the_node_then_of_its_parent)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/b", 0), 0);
  sim_probe_do_read(&q, LK_OPCODE_GET_CHILDREN, "/a", true);
  sim_probe_do_read(&q, LK_OPCODE_GET_CHILDREN2, "/a/b", true);
  sim_probe_do_read(&q, LK_OPCODE_GET_DATA, "/a/b", true);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/b"), 0);
  expect_event(&q, DELETED, "/a/b"); /* once, for both kinds */
  expect_event(&q, CHILDREN, "/a");
  ck_assert(!sim_probe_has(&q));
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

START_TEST(only_exists_watches_what_is_not_there)
{
  setup();
  sim_probe_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  sim_probe_do_read(&q, LK_OPCODE_GET_CHILDREN, "/a", true);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  sim_probe_do_read(&q, LK_OPCODE_EXISTS, "/a", true);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  expect_event(&q, CREATED, "/a");
  teardown();
}
END_TEST

START_TEST(watches_go_with_their_connection)
{
  setup();
  sim_probe_do_read(&q, LK_OPCODE_EXISTS, "/a", true);
  sim_probe_do_read(&p, LK_OPCODE_EXISTS, "/a", true);
  sim_probe_do_read(&q, LK_OPCODE_GET_CHILDREN, "/", true);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 3);
  sim_probe_hang_up(&q);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  teardown();
}
END_TEST

START_TEST(missed_changes_are_told_in_the_order_of_the_request)
{
  static const char *const paths[] = {"/b", "/a", "/gone"};
  lk_bytes data[3], exist[2] = {lk_text("/b"), lk_text("/no")},
                    child[1] = {lk_text("/a")};

  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  int64_t since = expect_reply(&p, sim_probe_create(&p, "/b", 0), 0).zxid;

  ck_assert_int_eq(set(&p, "/a", lk_text("x")), 0);
  ck_assert_int_eq(set(&p, "/b", lk_text("x")), 0);
  for (int i = 0; i < 3; i++)
    data[i] = lk_text(paths[i]);
  struct lk_set_watches_request r = {
      since, lk__vec_of(data, 3), lk__vec_of(exist, 2), lk__vec_of(child, 1)};

  sim_probe_send_as(&q, LK_XID_SET_WATCHES, LK_OPCODE_SET_WATCHES, &r);
  expect_event(&q, CHANGED, "/b");
  expect_event(&q, CHANGED, "/a");
  expect_event(&q, DELETED, "/gone");
  expect_event(&q, CREATED, "/b");
  expect_reply(&q, LK_XID_SET_WATCHES, 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 2);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/x", 0), 0);
  expect_event(&q, CHILDREN, "/a");
  teardown();
}
END_TEST

static int add_watch(sim_probe *who, const char *path, int32_t mode)
{
  struct lk_add_watch_request r = {lk_text(path), mode};
  int32_t xid = sim_probe_send(who, LK_OPCODE_ADD_WATCH, &r);
  sim_reply reply = sim_probe_next(who);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(persistent_watches_stay)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(add_watch(&q, "/a", 0), 0);
  ck_assert_int_eq(add_watch(&q, "/a", 2), LK_ERR_MARSHALLING);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(sim_probe_do_create(&p, "/a/b", 0), 0);
    expect_event(&q, CHILDREN, "/a");
    ck_assert_int_eq(set(&p, "/a", lk_text("x")), 0);
    expect_event(&q, CHANGED, "/a");
    ck_assert_int_eq(sim_probe_do_delete(&p, "/a/b"), 0);
    expect_event(&q, CHILDREN, "/a");
  }
  /* A watch of one time takes its place, and is gone with it. */
  sim_probe_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  ck_assert_int_eq(set(&p, "/a", lk_text("y")), 0);
  expect_event(&q, CHANGED, "/a");
  ck_assert_int_eq(set(&p, "/a", lk_text("z")), 0);
  ck_assert(!sim_probe_has(&q));
  teardown();
}
END_TEST

START_TEST(recursive_watches_tell_of_all_below_but_not_of_children)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(add_watch(&q, "/a", 1), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/b", 0), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/b/c", 0), 0);
  ck_assert_int_eq(set(&p, "/a", lk_text("x")), 0);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/b/c"), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/ab", 0), 0);
  expect_event(&q, CREATED, "/a/b");
  expect_event(&q, CREATED, "/a/b/c");
  expect_event(&q, CHANGED, "/a");
  expect_event(&q, DELETED, "/a/b/c");
  ck_assert(!sim_probe_has(&q));
  teardown();
}
END_TEST

static int unwatch(sim_probe *who, int32_t op, int32_t type)
{
  struct lk_path_type_request r = {lk_text("/a"), type};
  int32_t xid = sim_probe_send(who, op, &r);
  sim_reply reply = sim_probe_next(who);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(watches_can_be_removed_and_looked_for)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  sim_probe_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_REMOVE_WATCHES, 1), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_CHECK_WATCHES, 2), 0);
  /* What it says is true of anybody's. */
  ck_assert_int_eq(unwatch(&p, LK_OPCODE_CHECK_WATCHES, 2), 0);
  ck_assert_int_eq(unwatch(&p, LK_OPCODE_REMOVE_WATCHES, 2), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_REMOVE_WATCHES, 2), 0);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_REMOVE_WATCHES, 3), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_CHECK_WATCHES, 4), LK_ERR_MARSHALLING);
  teardown();
}
END_TEST

/* ---- refusals ----------------------------------------------------------- */

START_TEST(an_operator_can_deny)
{
  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/b", 0), 0);
  sim_probe_do_read(&q, LK_OPCODE_GET_DATA, "/a/b", true);
  ck_assert(
      sim_operator_deny(lab.ensemble, "/a", LK_PERM_CREATE | LK_PERM_DELETE));
  ck_assert(sim_operator_deny(lab.ensemble, "/a/b", LK_PERM_READ));
  sim_lab_run(&lab, 10);
  ck_assert_int_eq(sim_probe_do_create(&p, "/a/c", 0), LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_probe_do_delete(&p, "/a/b"), LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_GET_DATA, "/a/b", false),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_EXISTS, "/a/b", true), 0);
  /* The watches of those who may not read are used up and nothing is said. */
  ck_assert(sim_operator_delete(lab.ensemble, "/a/b"));
  sim_lab_run(&lab, 10);
  ck_assert(!sim_probe_has(&q));
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

static int prove(sim_probe *who, const char *text)
{
  struct lk_auth_request r = {0, lk_text("digest"), lk_text(text)};

  sim_probe_send_as(who, LK_XID_AUTH, LK_OPCODE_AUTH, &r);
  return sim_probe_next(who).err;
}

static int set_acl(sim_probe *who, const char *path, lk_acl entry)
{
  struct lk_set_acl_request r = {lk_text(path), lk__vec_of(&entry, 1), -1};
  int32_t xid = sim_probe_send(who, LK_OPCODE_SET_ACL, &r);
  sim_reply reply = sim_probe_next(who);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(who_may_is_who_has_proved_it)
{
  const lk_acl bob = {LK_PERM_ALL, lk_text("digest"),
                      lk_text("bob:fyVmFCwVbTJYrznoSu1koqYEYF0=")};
  const lk_acl self = {LK_PERM_ALL, lk_text("auth"), lk_text("")};
  const lk_acl near = {LK_PERM_ALL, lk_text("ip"), lk_text("127.0.0.0/8")};
  const lk_acl far = {LK_PERM_ALL, lk_text("ip"), lk_text("128.0.0.0/8")};
  const lk_acl odd = {LK_PERM_ALL, lk_text("nosuch"), lk_text("x")};

  setup();
  ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(set_acl(&p, "/a", odd), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(&p, "/a", self), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(&p, "/a", near), 0);
  ck_assert_int_eq(set_acl(&p, "/a", bob), 0);
  ck_assert_int_eq(set_acl(&p, "/a", near), LK_ERR_NO_AUTH);
  ck_assert_int_eq(prove(&p, "bob:wrong"), 0);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_GET_DATA, "/a", false),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(prove(&p, "bob:secret"), 0);
  ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_GET_DATA, "/a", false), 0);
  ck_assert_int_eq(set_acl(&p, "/a", self), 0); /* both of p */
  ck_assert_int_eq(prove(&q, "bob:wrong"), 0);
  ck_assert_int_eq(set_acl(&q, "/a", far), 0);
  ck_assert_int_eq(sim_probe_do_read(&q, LK_OPCODE_GET_DATA, "/a", false),
                   LK_ERR_NO_AUTH);
  teardown();
}
END_TEST

START_TEST(a_throttled_request_is_not_done)
{
  unsigned throttled = 0;

  setup();
  sim_server_throttle(sim_lab_server(&lab, 0), 40);
  for (int i = 0; i < 50; i++) {
    int err = sim_probe_do_create(&p, "/n-", 2);

    ck_assert(err == 0 || err == LK_ERR_THROTTLED);
    throttled += err != 0;
  }
  ck_assert_uint_gt(throttled, 5);
  ck_assert_uint_lt(throttled, 35);
  ck_assert_uint_eq(sim_ensemble_truth(lab.ensemble)->count,
                    4 + 50 - throttled);
  teardown();
}
END_TEST

START_TEST(what_is_not_understood_is_refused)
{
  struct lk_auth_request r = {0, lk_text("digest"), lk_text("a:b")};

  setup();
  sim_probe_send_as(&p, LK_XID_AUTH, LK_OPCODE_AUTH, &r);
  ck_assert_int_eq(expect_reply(&p, LK_XID_AUTH, 0).zxid, 0);
  r.scheme = lk_text("nosuch");
  sim_probe_send_as(&p, LK_XID_AUTH, LK_OPCODE_AUTH, &r);
  expect_reply(&p, LK_XID_AUTH, LK_ERR_AUTH_FAILED);
  ck_assert_ptr_null(p.conn);
  /* A body that is too short, and an opcode that nobody has. */
  sim_conn_input(q.conn, "\0\0\0\x08\0\0\0\x07\0\0\0\x04", 12);
  expect_reply(&q, 7, LK_ERR_MARSHALLING);
  sim_conn_input(q.conn, "\0\0\0\x08\0\0\0\x08\0\0\0\x4d", 12);
  ck_assert_int_eq(expect_reply(&q, 8, LK_ERR_UNIMPLEMENTED).zxid, -1);
  ck_assert_ptr_null(q.conn);
  teardown();
}
END_TEST

START_TEST(a_frame_may_come_in_any_pieces)
{
  struct lk_path_watch_request r = {lk_text("/"), false};
  struct lk_request_header h = {1, LK_OPCODE_EXISTS};
  lk_buf out = wire_buf();

  setup();
  for (int i = 0; i < 2; i++) {
    size_t mark = wire_begin(&out);

    h.xid = i + 1;
    wire_record(&out, &lk__request_header_record, &h);
    wire_record(&out, &lk__path_watch_request_record, &r);
    wire_end(&out, mark);
  }
  for (size_t cut = 0; cut <= lk__buf_len(&out); cut++) {
    unsigned char *copy = malloc(lk__buf_len(&out) + 1);

    memcpy(copy, lk__buf_bytes(&out), lk__buf_len(&out));
    sim_conn_input(p.conn, copy, cut);
    sim_conn_input(p.conn, copy + cut, lk__buf_len(&out) - cut);
    free(copy);
    expect_reply(&p, 1, 0);
    expect_reply(&p, 2, 0);
    ck_assert(!sim_probe_has(&p));
  }
  lk__buf_free(&out);
  teardown();
}
END_TEST

SUITE("sim", a_client_makes_and_finds_a_node,
      every_write_has_a_zxid_also_one_that_fails, a_stat_tells_all_changes,
      null_data_is_not_empty_data, a_number_counts_all_children_ever_made,
      the_counter_sticks_at_its_end_and_runs_over_in_flight,
      a_container_goes_when_it_has_had_a_child,
      a_multi_is_done_whole_under_one_zxid, a_multi_that_fails_does_nothing,
      a_watch_is_told_once_and_before_the_reply,
      a_deletion_is_told_of_the_node_then_of_its_parent,
      only_exists_watches_what_is_not_there, watches_go_with_their_connection,
      missed_changes_are_told_in_the_order_of_the_request,
      persistent_watches_stay,
      recursive_watches_tell_of_all_below_but_not_of_children,
      watches_can_be_removed_and_looked_for, an_operator_can_deny,
      who_may_is_who_has_proved_it, a_throttled_request_is_not_done,
      what_is_not_understood_is_refused, a_frame_may_come_in_any_pieces)
