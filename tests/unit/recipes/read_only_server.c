/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/nodes.h>
#include <latchkey/subscribe.h>

/* Leases, writes and subscriptions with a read-only server. The model server
 * aborts the test if a write arrives at it. */

static model_server server;
static test_client one;
static int result; /* of the last call of nodes.h, or NOT_YET */

enum quorum { HAS_QUORUM, NO_QUORUM };

/* Arguments of reliable writes. */
enum { ANY_VERSION = -1 };
static const bool sole_writer = true;

static void make_nodes(void)
{
  model_init(&server);
  model_create(&server, "/locks");
  model_create(&server, LOCKS);
}

static void connect_client(enum quorum quorum, lk_assurance assurance)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .session_timeout_ms = T,
                                    .read_only = true,
                                    .mem = &one.mem.mem};
  lk_lease_config lease_config = {.size = sizeof lease_config,
                                  .assurance = assurance};

  if (quorum == NO_QUORUM)
    model_lose_quorum(&server);
  failing_mem_init(&one.mem);
  one.link = model_client(&server, &client_config);
  ck_assert_int_eq(lk_lease_configure(one.link->client, &lease_config), 0);
  model_turn(&server);
  ck_assert_int_eq(lk_client_state(one.link->client), quorum == NO_QUORUM
                                                          ? LK_STATE_READ_ONLY
                                                          : LK_STATE_CONNECTED);
}

static void finish(void)
{
  test_client_free(&one);
  model_done(&server);
}

static void begin(enum quorum quorum, lk_assurance assurance)
{
  make_nodes();
  connect_client(quorum, assurance);
}

/* The server has a quorum again and closes all connections. */
static void regain_quorum(void)
{
  model_regain_quorum(&server);
  model_drop(one.link);
  model_run(&server, T / 2);
  ck_assert_int_eq(lk_client_state(one.link->client), LK_STATE_CONNECTED);
}

/* ---- the lease ------------------------------------------------------------
 */

START_TEST(replies_of_a_read_only_server_are_no_evidence)
{
  for (int i = LK_ASSURE_QUORUM; i <= LK_ASSURE_PING; i++) {
    begin(NO_QUORUM, (lk_assurance)i);
    ck_assert_int_eq(lk_get(one.link->client, "/", NULL, NULL, NULL), 0);
    model_run(&server, 2 * T);
    ck_assert_int_eq(lk_lease_deadline(one.link->client), INT64_MIN);
    regain_quorum();
    ck_assert_int_gt(lk_lease_deadline(one.link->client), server.now);
    finish();
  }
}
END_TEST

/* ---- nodes -------------------------------------------------------------- */

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  result = err;
}

static void on_deleted(lk_client *c, int err, size_t count, void *arg)
{
  (void)c;
  (void)count;
  (void)arg;
  result = err;
}

/* A read-only server can neither execute the write nor show its outcome, so its
 * deadline ends it. */
START_TEST(reliable_write_without_a_quorum_ends_at_its_deadline)
{
  lk_call call = {.size = sizeof call, .timeout_ms = T};

  make_nodes();
  model_create(&server, "/x");
  connect_client(NO_QUORUM, LK_ASSURE_QUORUM);
  model_drop(one.link);
  result = NOT_YET;
  ck_assert_int_eq(lk_delete_reliable(one.link->client, "/x", ANY_VERSION,
                                      sole_writer, &call, on_done, NULL),
                   0);
  model_run(&server, T / 2);
  ck_assert_int_eq(lk_client_state(one.link->client), LK_STATE_READ_ONLY);
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, T);
  ck_assert_int_eq(result, LK_ERR_DEADLINE);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_without_a_quorum_ends_at_its_deadline)
{
  lk_call call = {.size = sizeof call, .timeout_ms = T, .repeat = true};

  make_nodes();
  model_create(&server, "/x");
  connect_client(NO_QUORUM, LK_ASSURE_QUORUM);
  model_drop(one.link);
  result = NOT_YET;
  ck_assert_int_eq(lk_delete_recursive(one.link->client, "/x", &call, NULL,
                                       on_deleted, NULL),
                   0);
  model_run(&server, T / 2);
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, T);
  ck_assert_int_eq(result, LK_ERR_DEADLINE);
  finish();
}
END_TEST

/* The delete is executed and its reply is lost. The read-only server shows an
 * older state, which proves nothing. */
START_TEST(write_in_doubt_is_not_decided_by_a_read_only_server)
{
  begin(HAS_QUORUM, LK_ASSURE_QUORUM);
  model_create(&server, "/x");
  one.link->requests = 0;
  one.link->cut_at = 2; /* the delete; a read of "/" is sent before it */
  one.link->cut_after = true;
  result = NOT_YET;
  ck_assert_int_eq(lk_delete_reliable(one.link->client, "/x", ANY_VERSION,
                                      sole_writer, NULL, on_done, NULL),
                   0);
  server.down = true;
  model_turn(&server);
  server.down = false;
  ck_assert_ptr_null(model_node(&server, "/x"));
  model_create(&server, "/x");
  model_backdate(&server, "/x");
  model_lose_quorum(&server);
  model_run(&server, 3 * T);
  ck_assert_int_eq(lk_client_state(one.link->client), LK_STATE_READ_ONLY);
  ck_assert_int_eq(result, NOT_YET);
  model_regain_quorum(&server);
  model_delete(&server, "/x");
  regain_quorum();
  ck_assert_int_eq(result, 0);
  finish();
}
END_TEST

START_TEST(reliable_write_waits_for_a_quorum)
{
  make_nodes();
  model_create(&server, "/x");
  connect_client(NO_QUORUM, LK_ASSURE_QUORUM);
  ck_assert_int_eq(lk_delete_reliable(one.link->client, "/x", ANY_VERSION,
                                      sole_writer, NULL, on_done, NULL),
                   LK_ERR_NOT_READ_ONLY);
  model_drop(one.link);
  result = NOT_YET;
  ck_assert_int_eq(lk_delete_reliable(one.link->client, "/x", ANY_VERSION,
                                      sole_writer, NULL, on_done, NULL),
                   0);
  model_run(&server, T);
  ck_assert_int_eq(lk_client_state(one.link->client), LK_STATE_READ_ONLY);
  ck_assert_int_eq(result, NOT_YET);
  regain_quorum();
  ck_assert_int_eq(result, 0);
  ck_assert_ptr_null(model_node(&server, "/x"));
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_waits_for_a_quorum)
{
  make_nodes();
  model_create(&server, "/x");
  model_create(&server, "/x/y");
  connect_client(NO_QUORUM, LK_ASSURE_QUORUM);
  model_drop(one.link);
  result = NOT_YET;
  ck_assert_int_eq(
      lk_delete_recursive(one.link->client, "/x", NULL, NULL, on_deleted, NULL),
      0);
  model_run(&server, T);
  ck_assert_int_eq(lk_client_state(one.link->client), LK_STATE_READ_ONLY);
  ck_assert_int_eq(result, NOT_YET);
  regain_quorum();
  ck_assert_int_eq(result, 0);
  ck_assert_ptr_null(model_node(&server, "/x"));
  finish();
}
END_TEST

static size_t reports;
static size_t child_count; /* in the last report */

static void on_children(lk_subscription *s, int err, const lk_bytes *names,
                        size_t count, const lk_stat *stat, void *arg)
{
  (void)s;
  (void)names;
  (void)stat;
  (void)arg;
  ck_assert_int_eq(err, 0);
  reports++;
  child_count = count;
}

START_TEST(subscription_reports_changes_at_a_read_only_server)
{
  lk_subscription *s;

  begin(NO_QUORUM, LK_ASSURE_QUORUM);
  reports = 0;
  ck_assert_int_eq(lk_subscribe_children(&s, one.link->client, "/locks", NULL,
                                         on_children, NULL),
                   0);
  model_turn(&server);
  ck_assert_uint_eq(reports, 1);
  ck_assert_uint_eq(child_count, 1);
  model_regain_quorum(&server);
  model_create(&server, "/locks/y");
  regain_quorum();
  ck_assert_uint_eq(reports, 2);
  ck_assert_uint_eq(child_count, 2);
  model_create(&server, "/locks/z");
  model_turn(&server);
  ck_assert_uint_eq(reports, 3);
  model_drop(one.link);
  model_create(&server, "/locks/zz"); /* committed before the quorum is lost */
  model_lose_quorum(&server);
  model_drop(one.link);
  model_run(&server, 2 * T); /* until the client gives up its session */
  ck_assert_int_eq(lk_client_state(one.link->client), LK_STATE_READ_ONLY);
  ck_assert_uint_eq(reports, 4);
  lk_subscription_free(s);
  finish();
}
END_TEST

SUITE("read_only_server", replies_of_a_read_only_server_are_no_evidence,
      write_in_doubt_is_not_decided_by_a_read_only_server,
      reliable_write_waits_for_a_quorum,
      reliable_write_without_a_quorum_ends_at_its_deadline,
      delete_of_a_tree_without_a_quorum_ends_at_its_deadline,
      delete_of_a_tree_waits_for_a_quorum,
      subscription_reports_changes_at_a_read_only_server)
