/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* What requests do, and what is told where a connection breaks. */

#include "live/client/operations.h"

#include <stdio.h>
#include <string.h>

static const char *left_by(const operation *o)
{
  return o->leaves == NULL ? furniture : o->leaves;
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

/* It was done, and brought what it should. */
static void assert_good(const operation *o, int err, const char *what)
{
  assert_err(o, err, 0, what);
  assert_text(o, said.text, o->brings, what);
}

START_TEST(each_does_what_it_says)
{
  const operation *o = operation_of(_i);

  place_enter(with_chroot(_i));
  furnish("/a");
  assert_good(o, do_ask(o, at("/a", ""), NULL), "done");
  assert_text(o, picture("/a"), left_by(o), "done");
  ck_assert_uint_eq(lk_client_connection(here), 1);
  place_leave();
}
END_TEST

/* ---- over a connection that breaks ----------------------------------------
 */

/* The same session, and a new connection each time. */
static void assert_goes_on(const operation *o, const lk_session *session,
                           uint64_t connection)
{
  ck_assert_msg(lk_client_session(here).id == session->id,
                "%s: another session", o->name);
  ck_assert_msg(lk_client_connection(here) == connection,
                "%s: connection %d instead of %d", o->name,
                (int)lk_client_connection(here), (int)connection);
}

/* What was sent and not answered is not known to have been done, whatever
 * became of it. */
static void break_at(const operation *o, const char *node, bool answered)
{
  const char *what = answered ? "its answer lost" : "lost before the server";
  lk_session session = lk_client_session(here);
  uint64_t connection = lk_client_connection(here);
  int unknown =
      (o->flags & WRITES) != 0 ? LK_ERR_IN_DOUBT : LK_ERR_CONNECTION_LOSS;

  furnish(node);
  wire_break_at(near, o->op, answered);
  assert_err(o, do_ask(o, at(node, ""), NULL), unknown, what);
  ck_assert(wire_has_broken(near));
  wait_for_state(here, LK_STATE_CONNECTED);
  assert_text(o, picture(node), answered ? left_by(o) : furniture, what);
  assert_goes_on(o, &session, connection + 1);
}

START_TEST(a_break_is_told_as_what_it_is)
{
  const operation *o = operation_of(_i);

  place_enter(with_chroot(_i));
  break_at(o, "/a", false);
  break_at(o, "/b", true);
  place_leave();
}
END_TEST

/* Where the caller wants it. */
START_TEST(a_read_is_asked_again)
{
  const lk_call call = {.size = sizeof call, .repeat = true};
  const operation *o = operation_of(_i);

  if ((o->flags & WRITES) != 0)
    return;
  place_enter(with_chroot(_i));
  furnish("/a");
  for (int answered = 0; answered < 2; answered++) {
    wire_break_at(near, o->op, answered == 1);
    assert_good(o, do_ask(o, at("/a", ""), &call), "repeat");
    ck_assert(wire_has_broken(near));
    ck_assert_uint_eq(lk_client_connection(here), (uint64_t)answered + 2);
  }
  place_leave();
}
END_TEST

START_TEST(what_waits_for_a_connection_is_sent_or_ends_in_time)
{
  const lk_call call = {.size = sizeof call, .timeout_ms = 20};
  const operation *o = operation_of(_i);

  place_enter(with_chroot(_i));
  furnish("/a");
  furnish("/b");
  wire_break(near);
  wait_for_state(here, LK_STATE_SUSPENDED);
  assert_err(o, do_ask(o, at("/a", ""), &call), LK_ERR_DEADLINE, "waiting");
  memset(&said, 0, sizeof said);
  ck_assert_int_eq(o->ask(here, at("/b", ""), NULL), 0);
  ck_assert(!said.done);
  wire_mend(near);
  assert_good(o, ended(0), "waiting");
  assert_text(o, picture("/b"), left_by(o), "waiting");
  ck_assert_uint_eq(lk_client_connection(here), 2);
  place_leave();
}
END_TEST

TCase *deed_tests(bool ensemble)
{
  const TTest *const tests[] = {
      each_does_what_it_says,
      a_break_is_told_as_what_it_is,
      a_read_is_asked_again,
      what_waits_for_a_connection_is_sent_or_ends_in_time,
  };
  TCase *t = tcase_create("deeds");
  int count = 2 * (int)operations_in(ensemble);

  tcase_set_timeout(t, 0);
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(t, tests[i], 0, count);
  return t;
}
