/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The effects of requests, and their errors when a connection breaks. */

#include "live/client/operations.h"
#include "support/every_call.h"
#include "support/shown.h"

#include <stdio.h>
#include <string.h>

enum { SYNC = 9 }; /* the opcode */

/* The tree that the operation leaves of a test node. */
static const char *tree_left_by(const operation *o)
{
  return o->tree_after == NULL ? test_node_tree : o->tree_after;
}

static void assert_err(const operation *o, int err, int expected,
                       const char *what)
{
  ck_assert_msg(err == expected, "%s, %s: %s (%d), not %s", o->name, what,
                lk_error_text(err), err, lk_error_text(expected));
}

static void assert_text(const operation *o, const char *text,
                        const char *expected, const char *what)
{
  ck_assert_msg(strcmp(text, expected) == 0, "%s, %s: \"%s\", not \"%s\"",
                o->name, what, text, expected);
}

/* Check that the request succeeded, with the result of the table. */
static void assert_succeeded(const operation *o, int err, const char *what)
{
  assert_err(o, err, 0, what);
  assert_text(o, shown_text(), result_of(o), what);
}

/* Check what the reply to a request that succeeded proves. */
static void assert_evidence(const operation *o)
{
  const lk_evidence expected =
      (o->flags & WRITES) != 0
          ? LK_EVIDENCE_COMMIT
          : (o->op == SYNC ? LK_EVIDENCE_LEADER : LK_EVIDENCE_CONTACT);

  ck_assert_msg(last_reply.evidence == expected, "%s: evidence %d", o->name,
                (int)last_reply.evidence);
}

START_TEST(each_request_has_its_documented_effect)
{
  const operation *o = operation_of(_i);

  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  assert_succeeded(o, send_and_wait(o, path_here("/a", ""), NULL), "done");
  assert_evidence(o);
  assert_text(o, tree_of("/a"), tree_left_by(o), "done");
  ck_assert_uint_eq(lk_client_connection(here), 1);
  fixture_tear_down();
}
END_TEST

START_TEST(each_blocking_request_has_the_same_effect)
{
  const operation *o = operation_of(_i);
  lk_client_config config = {.size = sizeof config};
  lk_sync_config sync_config = {.size = sizeof sync_config, .client = &config};
  every_object b = {.path = NULL};

  if (o->blocking == NULL)
    return;
  fixture_set_up(with_chroot(_i));
  make_node_and_kid("/a");
  config.hosts = hosts_of_here();
  ck_assert_int_eq(lk_sync_client_new(&b.client, &sync_config), 0);
  ck_assert_int_eq(lk_sync_create(b.client, NULL, path_here("/a", "/mine"),
                                  lk_text(""), NULL, LK_EPHEMERAL, NULL),
                   0);
  b.path = path_here("/a", "");
  shown_clear();
  assert_succeeded(o, every_call_named(o->blocking)->call(&b), "blocking");
  assert_text(o, tree_of("/a"), tree_left_by(o), "blocking");
  lk_sync_client_free(b.client);
  fixture_tear_down();
}
END_TEST

/* ---- over a connection that breaks -------------------------------------- */

/* Check that the client still has this session, and is on the connection with
 * this number. */
static void assert_session_and_connection(const operation *o,
                                          const lk_session *session,
                                          uint64_t connection)
{
  ck_assert_msg(lk_client_session(here).id == session->id,
                "%s: another session", o->name);
  ck_assert_msg(lk_client_connection(here) == connection,
                "%s: connection %d instead of %d", o->name,
                (int)lk_client_connection(here), (int)connection);
}

/* Break the connection at the request or at its reply. The client cannot
 * distinguish the two cases, so the error is the same: IN_DOUBT of a write,
 * CONNECTION_LOSS of a read. */
static void assert_error_of_break(const operation *o, const char *node,
                                  lost_message lost)
{
  const bool is_executed = lost == LOSE_REPLY;
  const char *what = is_executed ? "the reply lost" : "the request lost";
  lk_session session = lk_client_session(here);
  uint64_t connection = lk_client_connection(here);
  int expected =
      (o->flags & WRITES) != 0 ? LK_ERR_IN_DOUBT : LK_ERR_CONNECTION_LOSS;

  make_test_node(node);
  wire_break_at_request(wire_of_here, o->op, lost);
  assert_err(o, send_and_wait(o, path_here(node, ""), NULL), expected, what);
  ck_assert(wire_has_broken(wire_of_here));
  wait_for_state(here, LK_STATE_CONNECTED);
  assert_text(o, tree_of(node), is_executed ? tree_left_by(o) : test_node_tree,
              what);
  assert_session_and_connection(o, &session, connection + 1);
}

START_TEST(broken_connection_ends_a_request_with_its_error)
{
  const operation *o = operation_of(_i);

  fixture_set_up(with_chroot(_i));
  assert_error_of_break(o, "/a", LOSE_REQUEST);
  assert_error_of_break(o, "/b", LOSE_REPLY);
  fixture_tear_down();
}
END_TEST

static void assert_sent_again(const operation *o, lost_message lost)
{
  const lk_call call = {.size = sizeof call, .repeat = true};
  uint64_t connection = lk_client_connection(here);

  wire_break_at_request(wire_of_here, o->op, lost);
  assert_succeeded(o, send_and_wait(o, path_here("/a", ""), &call), "repeat");
  ck_assert(wire_has_broken(wire_of_here));
  ck_assert_uint_eq(lk_client_connection(here), connection + 1);
}

START_TEST(read_with_repeat_is_sent_again)
{
  const operation *o = operation_of(_i);

  if ((o->flags & WRITES) != 0)
    return; /* `repeat` is for reads only */
  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  assert_sent_again(o, LOSE_REQUEST);
  assert_sent_again(o, LOSE_REPLY);
  fixture_tear_down();
}
END_TEST

START_TEST(request_without_connection_is_sent_later_or_times_out)
{
  const lk_call with_timeout = {.size = sizeof with_timeout, .timeout_ms = 20};
  const operation *o = operation_of(_i);

  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  make_test_node("/b");
  wire_break(wire_of_here);
  wait_for_state(here, LK_STATE_SUSPENDED);
  assert_err(o, send_and_wait(o, path_here("/a", ""), &with_timeout),
             LK_ERR_DEADLINE, "with a timeout");
  reset_last_reply();
  ck_assert_int_eq(o->send(here, path_here("/b", ""), NULL), 0);
  ck_assert(!last_reply.done);
  wire_mend(wire_of_here);
  assert_succeeded(o, wait_for_completion(0), "sent later");
  assert_text(o, tree_of("/b"), tree_left_by(o), "sent later");
  ck_assert_uint_eq(lk_client_connection(here), 2);
  fixture_tear_down();
}
END_TEST

TCase *effect_tests(bool ensemble)
{
  const TTest *const tests[] = {
      each_request_has_its_documented_effect,
      each_blocking_request_has_the_same_effect,
      broken_connection_ends_a_request_with_its_error,
      read_with_repeat_is_sent_again,
      request_without_connection_is_sent_later_or_times_out,
  };
  TCase *t = tcase_create("effects");
  int count = turns_of_operations(ensemble);

  tcase_set_timeout(t, 0);
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(t, tests[i], 0, count);
  return t;
}
