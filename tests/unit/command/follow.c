/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Verbs that go on until something happens: watch, wait, members -w and
   create -e. */

#include <signal.h>

#include "support/suite.h"
#include "unit/command/program.h"

#define HOLDER "/lock/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000"

static program p;

static void begin(const char *const *words)
{
  model_server *s = &p.loopback.server;

  program_start(&p);
  loopback_lock(&p.loopback);
  model_create(s, "/d");
  model_create(s, "/d/child");
  model_create(s, "/lock");
  model_create(s, HOLDER);
  loopback_unlock(&p.loopback);
  program_begin(&p, words);
}

static void set_data(const char *data)
{
  loopback_lock(&p.loopback);
  model_set(&p.loopback.server, "/d", data);
  loopback_unlock(&p.loopback);
}

static void create_node(const char *path)
{
  loopback_lock(&p.loopback);
  model_create(&p.loopback.server, path);
  loopback_unlock(&p.loopback);
}

static void delete_node(const char *path)
{
  loopback_lock(&p.loopback);
  model_delete(&p.loopback.server, path);
  loopback_unlock(&p.loopback);
}

/* Waits until the command has so many watches or more. */
static void await_watches(size_t count)
{
  for (int i = 0; i < PROGRAM_TRIES; i++) {
    size_t watches = 0;

    loopback_lock(&p.loopback);
    for (const model_link *l = p.loopback.server.links; l != NULL; l = l->next)
      watches += model_watches(l);
    loopback_unlock(&p.loopback);
    if (watches >= count)
      return;
    program_pause();
  }
  ck_abort_msg("not %zu watches", count);
}

static void expect_end(int code, const char *out)
{
  const command_line line = {.code = code, .out = out};

  program_end(&p);
  ck_assert(program_did(&p, &line));
}

START_TEST(watch_reports_so_many_events)
{
  begin(WORDS("watch", "-n", "2", "/d"));
  program_await_output(&p, "watching /d\n");
  set_data("1");
  delete_node("/d/child");
  expect_end(0, "watching /d\nchanged /d\nchildren /d\n");
  program_stop(&p);
}
END_TEST

START_TEST(watch_reports_children)
{
  begin(WORDS("watch", "--children", "-n", "2", "/d"));
  program_await_output(&p, "child\n\n");
  create_node("/d/other");
  expect_end(0, "child\n\nchild\nother\n\n");
  program_stop(&p);
}
END_TEST

START_TEST(watch_runs_command_with_each_state)
{
  begin(WORDS("watch", "-n", "2", "/d", "cat"));
  program_await_output(&p, "");
  await_watches(1);
  set_data("new");
  expect_end(0, "new");
  program_stop(&p);
}
END_TEST

START_TEST(watch_goes_on_with_a_new_session)
{
  begin(WORDS("watch", "-r", "-n", "1", "/d"));
  program_await_output(&p, "watching /d\n");
  loopback_expire(&p.loopback);
  program_await_output(&p, "watching /d\nexpired /d\nwatching /d\n");
  set_data("1");
  expect_end(0, "watching /d\nexpired /d\nwatching /d\nchanged /d\n");
  program_stop(&p);
}
END_TEST

START_TEST(wait_ends_when_the_lock_is_free)
{
  begin(WORDS("wait", "-v", "/lock"));
  await_watches(1);
  delete_node(HOLDER);
  expect_end(0, "");
  program_stop(&p);
}
END_TEST

START_TEST(members_are_shown_until_a_signal)
{
  begin(WORDS("members", "-w", "/d"));
  program_await_output(&p, "child\n\n");
  delete_node("/d/child");
  program_await_output(&p, "child\n\n\n");
  kill(p.child, SIGTERM);
  expect_end(0, "child\n\n\n");
  program_stop(&p);
}
END_TEST

START_TEST(ephemeral_node_lives_until_a_signal)
{
  begin(WORDS("create", "-e", "-s", "/d/e-", "data"));
  program_await_output(&p, "/d/e-0000000001\n");
  ck_assert_ptr_nonnull(model_ephemeral(&p.loopback.server));
  kill(p.child, SIGINT);
  expect_end(0, "/d/e-0000000001\n");
  ck_assert_ptr_null(model_ephemeral(&p.loopback.server));
  program_stop(&p);
}
END_TEST

START_TEST(deletion_of_the_ephemeral_node_is_reported)
{
  begin(WORDS("create", "-e", "/e"));
  program_await_output(&p, "/e\n");
  await_watches(1);
  delete_node("/e");
  expect_end(1, "/e\n");
  ck_assert_ptr_nonnull(strstr(p.err, "another client deleted the node"));
  program_stop(&p);
}
END_TEST

SUITE("follow", watch_reports_so_many_events, watch_reports_children,
      watch_runs_command_with_each_state, watch_goes_on_with_a_new_session,
      wait_ends_when_the_lock_is_free, members_are_shown_until_a_signal,
      ephemeral_node_lives_until_a_signal,
      deletion_of_the_ephemeral_node_is_reported)
