/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/wire.h"
#include "sim/check/one_server.h"

/**
 * @file The model with one server: permissions, throttling and invalid
 * requests.
 */

START_TEST(operator_can_deny_permissions)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", 0), 0);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a/b", true);
  ck_assert(
      sim_operator_deny(lab.ensemble, "/a", LK_PERM_CREATE | LK_PERM_DELETE));
  ck_assert(sim_operator_deny(lab.ensemble, "/a/b", LK_PERM_READ));
  sim_lab_run(&lab, 10);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/c", 0), LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b"), LK_ERR_NO_AUTH);
  ck_assert_int_eq(
      sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a/b", false),
      LK_ERR_NO_AUTH);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/a/b", true),
                   0);
  /* The watch of a client that may not read the node is removed without an
   * event. */
  ck_assert(sim_operator_delete(lab.ensemble, "/a/b"));
  sim_lab_run(&lab, 10);
  ck_assert(!sim_raw_client_has(&q));
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

static int add_identity(sim_raw_client *client, const char *text)
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
  const lk_acl bob = {LK_PERM_ALL, lk_text("digest"),
                      lk_text("bob:fyVmFCwVbTJYrznoSu1koqYEYF0=")};
  const lk_acl self = {LK_PERM_ALL, lk_text("auth"), lk_text("")};
  const lk_acl near = {LK_PERM_ALL, lk_text("ip"), lk_text("127.0.0.0/8")};
  const lk_acl far = {LK_PERM_ALL, lk_text("ip"), lk_text("128.0.0.0/8")};
  const lk_acl odd = {LK_PERM_ALL, lk_text("nosuch"), lk_text("x")};

  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(set_acl(&p, "/a", odd), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(&p, "/a", self), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(&p, "/a", near), 0);
  ck_assert_int_eq(set_acl(&p, "/a", bob), 0);
  ck_assert_int_eq(set_acl(&p, "/a", near), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_identity(&p, "bob:wrong"), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a", false),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_identity(&p, "bob:secret"), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a", false),
                   0);
  ck_assert_int_eq(set_acl(&p, "/a", self), 0); /* both identities of p */
  ck_assert_int_eq(add_identity(&q, "bob:wrong"), 0);
  ck_assert_int_eq(set_acl(&q, "/a", far), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a", false),
                   LK_ERR_NO_AUTH);
  teardown();
}
END_TEST

START_TEST(throttled_request_is_not_executed)
{
  unsigned throttled = 0;

  setup();
  sim_server_throttle(sim_lab_server(&lab, 0), 40);
  for (int i = 0; i < 50; i++) {
    int err = sim_raw_client_do_create(&p, "/n-", 2);

    ck_assert(err == 0 || err == LK_ERR_THROTTLED);
    throttled += err != 0;
  }
  ck_assert_uint_gt(throttled, 5);
  ck_assert_uint_lt(throttled, 35);
  ck_assert_uint_eq(sim_ensemble_committed_tree(lab.ensemble)->count,
                    4 + 50 - throttled);
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
  /* A body that is too short, and an unknown opcode. */
  sim_conn_input(q.conn, "\0\0\0\x08\0\0\0\x07\0\0\0\x04", 12);
  expect_reply(&q, 7, LK_ERR_MARSHALLING);
  sim_conn_input(q.conn, "\0\0\0\x08\0\0\0\x08\0\0\0\x4d", 12);
  ck_assert_int_eq(expect_reply(&q, 8, LK_ERR_UNIMPLEMENTED).zxid, -1);
  ck_assert_ptr_null(q.conn);
  teardown();
}
END_TEST

START_TEST(frame_may_arrive_in_any_pieces)
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
    ck_assert(!sim_raw_client_has(&p));
  }
  lk__buf_free(&out);
  teardown();
}
END_TEST

SUITE("access", operator_can_deny_permissions, access_needs_an_added_identity,
      throttled_request_is_not_executed, invalid_request_is_refused,
      frame_may_arrive_in_any_pieces)
