/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "sim/check/one_server.h"
#include "support/wire.h"

/**
 * @file The model with one server: nodes and their changes.
 */

/* ---- nodes -------------------------------------------------------------- */

START_TEST(client_creates_and_deletes_nodes)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/a"), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT),
                   LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/b/c", LK_PERSISTENT),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a//b", LK_PERSISTENT),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/.", LK_PERSISTENT),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(sim_raw_client_do_sync(&p, "/a"), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", LK_EPHEMERAL), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b/c", LK_PERSISTENT),
                   LK_ERR_NO_CHILDREN_FOR_EPHEMERALS);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a"), LK_ERR_NOT_EMPTY);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b"), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a"), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a"), LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/zookeeper"),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a"),
                   LK_ERR_NO_NODE);
  teardown();
}
END_TEST

START_TEST(every_write_has_a_zxid_even_if_it_fails)
{
  setup();
  sim_reply r =
      expect_reply(&p, sim_raw_client_create(&p, "/a", LK_PERSISTENT), 0);
  int64_t zxid = r.zxid;

  ck_assert_int_eq(zxid, 3); /* after two createSessions */
  r = expect_reply(&p, sim_raw_client_create(&p, "/a", LK_PERSISTENT),
                   LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(r.zxid, zxid + 1);
  r = expect_reply(&p, sim_raw_client_delete(&p, "/a"), 0);
  ck_assert_int_eq(r.zxid, zxid + 2);
  r = expect_reply(&p, sim_raw_client_read(&p, LK_OPCODE_EXISTS, "/a"),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(r.zxid, zxid + 2);
  teardown();
}
END_TEST

START_TEST(stat_counts_all_changes)
{
  setup();
  ck_assert_int_eq(stat_of(&p, "/").cversion, -1);
  ck_assert_int_eq(stat_of(&p, "/zookeeper").cversion, -2);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", LK_EPHEMERAL), 0);
  ck_assert_int_eq(set_data(&p, "/a", lk_text("four")), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/c", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/c"), 0);
  lk_stat a = stat_of(&p, "/a"), b = stat_of(&p, "/a/b");

  /* Zxids 1 and 2 are the creations of the two sessions. */
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
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  for (int i = 0; i < 2; i++) {
    const bool null = i == 1;

    ck_assert_int_eq(set_data(&p, "/a", lk_text(null ? NULL : "")), 0);
    sim_reply r =
        expect_reply(&p, sim_raw_client_read(&p, LK_OPCODE_GET_DATA, "/a"), 0);
    lk_bytes data = lk__reader_bytes(&r.body);

    ck_assert_int_eq(data.at == NULL, null);
    ck_assert_int_eq(stat_of(&p, "/a").data_length, 0);
  }
  teardown();
}
END_TEST

START_TEST(sequence_number_counts_all_children_ever_created)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  create_as(&p, "/a/n-", LK_SEQUENTIAL, "/a/n-0000000000");
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/x", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/x", LK_PERSISTENT),
                   LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/n-0000000000"), 0);
  create_as(&p, "/a/n-", LK_EPHEMERAL | LK_SEQUENTIAL, "/a/n-0000000002");
  create_as(&p, "/a/", LK_SEQUENTIAL, "/a/0000000003");
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/x"), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/n-0000000002"), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/0000000003"), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a"), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  create_as(&p, "/a/n-", LK_SEQUENTIAL, "/a/n-0000000000");
  teardown();
}
END_TEST

START_TEST(sequence_counter_stops_at_its_maximum_but_overflows_in_proposals)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  sim_operator_set_counter(lab.ensemble, "/a", INT32_MAX - 1);
  create_as(&p, "/a/1-", LK_SEQUENTIAL, "/a/1-2147483646");
  create_as(&p, "/a/2-", LK_SEQUENTIAL, "/a/2-2147483647");
  create_as(&p, "/a/3-", LK_SEQUENTIAL, "/a/3-2147483647");
  create_as(&p, "/a/4-", LK_SEQUENTIAL, "/a/4-2147483647");
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/4-", LK_SEQUENTIAL),
                   LK_ERR_NODE_EXISTS);
  static const char *const names[] = {"/a/5-2147483647", "/a/5--2147483648",
                                      "/a/5--2147483647"};
  int32_t xid = p.xid;

  for (int i = 0; i < 3; i++)
    sim_raw_client_create(&p, "/a/5-", LK_SEQUENTIAL);
  for (int i = 0; i < 3; i++) {
    sim_reply r = expect_reply(&p, ++xid, 0);

    expect_text(&r, names[i]);
  }
  create_as(&p, "/a/6-", LK_SEQUENTIAL, "/a/6-2147483647");
  teardown();
}
END_TEST

START_TEST(only_a_container_is_deleted_after_its_last_child)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/c", LK_CONTAINER), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/d", LK_CONTAINER), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/c/x", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/e/x", LK_PERSISTENT), 0);
  sim_lab_run(&lab, 1500);
  ck_assert_int_eq(stat_of(&p, "/c").num_children, 1);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/c/x"), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/e/x"), 0);
  sim_lab_run(&lab, 1500);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/c"),
                   LK_ERR_NO_NODE);
  /* A container that had no child stays, and so does a node that is none. */
  ck_assert_int_eq(stat_of(&p, "/d").num_children, 0);
  ck_assert_int_eq(stat_of(&p, "/e").num_children, 0);
  teardown();
}
END_TEST

/* The flags of createTTL. */
enum { TTL_FLAGS = 5, TTL_SEQUENTIAL_FLAGS = 6 };

static int create_ttl(const char *path, int32_t flags, int64_t ttl_ms)
{
  struct lk_create_ttl_request r = {{lk_text(path), lk_text(""),
                                     lk__vec_of(lk_acl_open()->entries, 1),
                                     flags},
                                    ttl_ms};

  sim_raw_client_send(&p, LK_OPCODE_CREATE_TTL, &r);
  return sim_raw_client_next(&p).err;
}

START_TEST(node_is_deleted_if_not_written_for_its_ttl)
{
  setup();
  ck_assert_int_eq(create_ttl("/a", TTL_FLAGS, 2500), 0);
  ck_assert_int_eq(create_ttl("/b", TTL_FLAGS, 2500), 0);
  ck_assert_int_eq(create_ttl("/c", TTL_FLAGS, 1), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/c/x", LK_PERSISTENT), 0);
  ck_assert_int_eq(create_ttl("/d", LK_PERSISTENT, 1), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(create_ttl("/d", TTL_SEQUENTIAL_FLAGS, LK_TTL_MAX_MS + 1),
                   LK_ERR_BAD_ARGUMENT);
  sim_lab_run(&lab, 2000);
  ck_assert_int_eq(set_data(&p, "/a", lk_text("x")), 0);
  ck_assert_int_eq(stat_of(&p, "/b").version, 0); /* it exists */
  sim_lab_run(&lab, 1500);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/b"),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(stat_of(&p, "/a").version, 1);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/c/x"), 0);
  sim_lab_run(&lab, 2500);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/a"),
                   LK_ERR_NO_NODE);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/c"),
                   LK_ERR_NO_NODE);
  teardown();
}
END_TEST

/* ---- multi -------------------------------------------------------------- */

static int32_t send_multi(sim_raw_client *client, const lk_op *ops,
                          size_t count)
{
  struct lk_request_header h = {++client->xid, LK_OPCODE_MULTI};
  unsigned char body[1000];
  lk_buf out = wire_buf();
  size_t mark = wire_begin(&out);
  lk_writer w;

  wire_record(&out, &lk__request_header_record, &h);
  lk__writer_init(&w, body, sizeof body);
  lk__multi_encode(&w, ops, count, "");
  lk__buf_append(&out, body, w.len);
  wire_end(&out, mark);
  sim_conn_input(client->conn, lk__buf_bytes(&out), lk__buf_len(&out));
  lk__buf_free(&out);
  return client->xid;
}

/* Expects the header of a result: its type and error. */
static void expect_result_header(sim_reply *r, int32_t type, int err)
{
  ck_assert_int_eq(lk__reader_int(&r->body), type);
  lk__reader_bool(&r->body); /* done */
  ck_assert_int_eq(lk__reader_int(&r->body), err);
}

static void expect_end_of_results(sim_reply *r)
{
  expect_result_header(r, -1, -1);
}

START_TEST(multi_is_executed_whole_with_one_zxid)
{
  setup();
  lk_op ops[] = {lk_op_create("/a", lk_text("1"), NULL, LK_PERSISTENT),
                 lk_op_create("/a/b-", lk_text(""), NULL, LK_SEQUENTIAL),
                 lk_op_set("/a", lk_text("2"), 0), lk_op_check("/a", 1),
                 lk_op_create("/c", lk_text(""), NULL, LK_CONTAINER)};
  sim_reply r = expect_reply(&p, send_multi(&p, ops, 5), 0);
  int64_t zxid = r.zxid;

  expect_result_header(&r, LK_OPCODE_CREATE, 0);
  expect_text(&r, "/a");
  /* A create in a multi has no stat in its result. */
  expect_result_header(&r, LK_OPCODE_CREATE, 0);
  expect_text(&r, "/a/b-0000000000");
  expect_result_header(&r, LK_OPCODE_SET_DATA, 0);
  lk_stat stat;

  lk__reader_stat(&r.body, &stat);
  ck_assert_int_eq(stat.version, 1);
  expect_result_header(&r, LK_OPCODE_CHECK, 0);
  /* A container has the result of create2. */
  expect_result_header(&r, LK_OPCODE_CREATE2, 0);
  expect_text(&r, "/c");
  lk_stat ignored;

  lk__reader_stat(&r.body, &ignored);
  expect_end_of_results(&r);
  ck_assert_uint_eq(lk__reader_left(&r.body), 0);
  ck_assert_int_eq(stat.mzxid, zxid);
  ck_assert_int_eq(stat.czxid, zxid);
  ck_assert_int_eq(stat_of(&p, "/a/b-0000000000").czxid, zxid);
  teardown();
}
END_TEST

START_TEST(failed_multi_changes_nothing)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  lk_op ops[] = {lk_op_create("/a/n-", lk_text(""), NULL, LK_SEQUENTIAL),
                 lk_op_check("/a", 7), lk_op_delete("/a", -1)};
  const int errors[] = {0, LK_ERR_BAD_VERSION, LK_ERR_RUNTIME_INCONSISTENCY};
  int32_t xid = send_multi(&p, ops, 3);

  sim_raw_client_create(&p, "/a/n-",
                        LK_SEQUENTIAL); /* sent before the multi is executed */
  sim_reply r = expect_reply(&p, xid, 0);

  for (int i = 0; i < 3; i++) {
    expect_result_header(&r, LK_OPCODE_ERROR, errors[i]);
    ck_assert_int_eq(lk__reader_int(&r.body), errors[i]); /* the body */
  }
  expect_end_of_results(&r);
  r = expect_reply(&p, xid + 1, 0);
  expect_text(&r, "/a/n-0000000000");
  ck_assert_int_eq(stat_of(&p, "/a").num_children, 1);
  teardown();
}
END_TEST

SUITE("nodes", client_creates_and_deletes_nodes,
      every_write_has_a_zxid_even_if_it_fails, stat_counts_all_changes,
      null_data_is_not_empty_data,
      sequence_number_counts_all_children_ever_created,
      sequence_counter_stops_at_its_maximum_but_overflows_in_proposals,
      only_a_container_is_deleted_after_its_last_child,
      node_is_deleted_if_not_written_for_its_ttl,
      multi_is_executed_whole_with_one_zxid, failed_multi_changes_nothing)
