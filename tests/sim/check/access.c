/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/one_server.h"
#include "support/wire.h"

/**
 * @file The model with one server: permissions, throttling and invalid
 * requests.
 */

START_TEST(operator_can_deny_permissions)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", LK_PERSISTENT), 0);
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_DATA, "/a/b");
  ck_assert(
      sim_operator_deny(lab.ensemble, "/a", LK_PERM_CREATE | LK_PERM_DELETE));
  ck_assert(sim_operator_deny(lab.ensemble, "/a/b", LK_PERM_READ));
  sim_lab_run(&lab, 10);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/c", LK_PERSISTENT),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b"), LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a/b"),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_raw_client_do_watch(&p, LK_OPCODE_EXISTS, "/a/b"), 0);
  /* The watch of a client that may not read the node is removed without an
   * event. */
  ck_assert(sim_operator_delete(lab.ensemble, "/a/b"));
  sim_lab_run(&lab, 10);
  ck_assert(!sim_raw_client_has_bytes(&q));
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

static int authenticate(sim_raw_client *client, const char *text)
{
  struct lk_auth_request r = {0, lk_text("digest"), lk_text(text)};

  sim_raw_client_send_as(client, LK_XID_AUTH, LK_OPCODE_AUTH, &r);
  return sim_raw_client_next(client).err;
}

static int set_acl(sim_raw_client *client, const char *path, lk_acl entry)
{
  struct lk_set_acl_request r = {lk_text(path), lk__vec_of(&entry, 1), -1};
  int32_t xid = sim_raw_client_send(client, LK_OPCODE_SET_ACL, &r);
  sim_reply reply = sim_raw_client_next(client);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(access_needs_an_added_identity)
{
  /* The digest of "bob:secret". */
  const lk_acl bob = {LK_PERM_ALL, lk_text("digest"),
                      lk_text("bob:fyVmFCwVbTJYrznoSu1koqYEYF0=")};
  /* All identities that the client has added. */
  const lk_acl added = {LK_PERM_ALL, lk_text("auth"), lk_text("")};
  const lk_acl loopback = {LK_PERM_ALL, lk_text("ip"), lk_text("127.0.0.0/8")};
  const lk_acl elsewhere = {LK_PERM_ALL, lk_text("ip"), lk_text("128.0.0.0/8")};
  const lk_acl unknown_scheme = {LK_PERM_ALL, lk_text("nosuch"), lk_text("x")};

  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(set_acl(&p, "/a", unknown_scheme), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(&p, "/a", added), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(&p, "/a", loopback), 0);
  ck_assert_int_eq(set_acl(&p, "/a", bob), 0);
  ck_assert_int_eq(set_acl(&p, "/a", loopback), LK_ERR_NO_AUTH);
  ck_assert_int_eq(authenticate(&p, "bob:wrong"), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a"),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(authenticate(&p, "bob:secret"), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a"), 0);
  ck_assert_int_eq(set_acl(&p, "/a", added), 0); /* both identities of p */
  ck_assert_int_eq(authenticate(&q, "bob:wrong"), 0);
  ck_assert_int_eq(set_acl(&q, "/a", elsewhere), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a"),
                   LK_ERR_NO_AUTH);
  teardown();
}
END_TEST

START_TEST(throttled_request_is_not_executed)
{
  enum { SYSTEM_NODES = 4, CREATES = 50 };
  unsigned throttled = 0;

  setup();
  sim_server_throttle(sim_lab_server(&lab, 0), 40);
  for (unsigned i = 0; i < CREATES; i++) {
    int err = sim_raw_client_do_create(&p, "/n-", LK_SEQUENTIAL);

    ck_assert(err == 0 || err == LK_ERR_THROTTLED);
    if (err != 0)
      throttled++;
  }
  /* About half of the first 40. */
  ck_assert_uint_gt(throttled, 5);
  ck_assert_uint_lt(throttled, 35);
  ck_assert_uint_eq(sim_ensemble_committed_tree(lab.ensemble)->count,
                    SYSTEM_NODES + CREATES - throttled);
  teardown();
}
END_TEST

START_TEST(invalid_request_is_refused)
{
  struct lk_auth_request r = {0, lk_text("digest"), lk_text("a:b")};

  setup();
  sim_raw_client_send_as(&p, LK_XID_AUTH, LK_OPCODE_AUTH, &r);
  ck_assert_int_eq(expect_reply(&p, LK_XID_AUTH, 0).zxid, 0);
  r.scheme = lk_text("nosuch");
  sim_raw_client_send_as(&p, LK_XID_AUTH, LK_OPCODE_AUTH, &r);
  expect_reply(&p, LK_XID_AUTH, LK_ERR_AUTH_FAILED);
  ck_assert_ptr_null(p.conn);
  /* A getData (opcode 4) with xid 7 and without a body. */
  sim_conn_input(q.conn, "\0\0\0\x08\0\0\0\x07\0\0\0\x04", 12);
  expect_reply(&q, 7, LK_ERR_MARSHALLING);
  /* The unknown opcode 0x4d with xid 8. */
  sim_conn_input(q.conn, "\0\0\0\x08\0\0\0\x08\0\0\0\x4d", 12);
  ck_assert_int_eq(expect_reply(&q, 8, LK_ERR_UNIMPLEMENTED).zxid, -1);
  ck_assert_ptr_null(q.conn);
  teardown();
}
END_TEST

START_TEST(frames_may_arrive_in_any_two_pieces)
{
  struct lk_path_watch_request r = {.path = lk_text("/"), .watch = false};
  struct lk_request_header h = {.type = LK_OPCODE_EXISTS};
  lk_buf out = wire_buf();

  setup();
  for (int32_t xid = 1; xid <= 2; xid++) {
    size_t mark = wire_begin(&out);

    h.xid = xid;
    wire_record(&out, &lk__request_header_record, &h);
    wire_record(&out, &lk__path_watch_request_record, &r);
    wire_end(&out, mark);
  }
  for (size_t cut = 0; cut <= lk__buf_len(&out); cut++) {
    /* A copy in memory of its own shows reads behind its end. */
    unsigned char *copy = malloc(lk__buf_len(&out) + 1);

    memcpy(copy, lk__buf_bytes(&out), lk__buf_len(&out));
    sim_conn_input(p.conn, copy, cut);
    sim_conn_input(p.conn, copy + cut, lk__buf_len(&out) - cut);
    free(copy);
    expect_reply(&p, 1, 0);
    expect_reply(&p, 2, 0);
    ck_assert(!sim_raw_client_has_bytes(&p));
  }
  lk__buf_free(&out);
  teardown();
}
END_TEST

SUITE("access", operator_can_deny_permissions, access_needs_an_added_identity,
      throttled_request_is_not_executed, invalid_request_is_refused,
      frames_may_arrive_in_any_two_pieces)
