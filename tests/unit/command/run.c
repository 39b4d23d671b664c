/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* run, elect and join: what they do with COMMAND, and that nothing is left of
   their nodes if an allocation, a connection or a request fails. */

#include <signal.h>

#include "support/suite.h"
#include "unit/command/program.h"

#define HOLDER "/held/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000"

/* The node of the holder belongs to no session: the command's are the only
   ephemerals. */
static void create_nodes(model_server *s)
{
  model_create(s, "/held");
  model_create(s, HOLDER);
  model_create(s, "/group");
}

/* The lock of all lines is /l, with /l2 of some. */
static const command_line runs[] = {
    {{"run", "/l", "echo", "x"}, 0, "x\n"},
    {{"run", "-v", "/l", "sh", "-c", "echo $LATCHKEY_MODE; exit 3"},
     3,
     "exclusive\n"},
    {{"run", "--json", "-s", "/l", "sh", "-c", "echo $LATCHKEY_MODE"},
     0,
     "shared\n"},
    {{"run", "-q", "-p", "3", "--take", "2", "/l", "echo", "x"}, 0, "x\n"},
    {{"run", "-l", "/l2", "/l", "-c", "echo x"}, 0, "x\n"},
    {{"run", "--layout", "single", "/l", "echo", "x"}, 0, "x\n"},
    {{"run", "/l", "/nonexistent"}, 127, ""},
    {{"run", "-n", "-l", "/l", "/held", "echo", "x"}, 124, ""},
    {{"run", "--max-hold", "0.1", "/l", "sleep", "60"}, 123, ""},
    {{"run", "--min-hold", "0.1", "--json", "/l", "echo", "x"}, 0, "x\n"},
    {{"elect", "--restarts", "0", "/l", "sh", "-c", "echo x; exit 4"},
     4,
     "x\n"},
    {{"elect", "-v", "--restarts", "0", "-i", "me", "/l", "echo", "x"},
     0,
     "x\n"},
    {{"join", "--name", "me", "-d", "data", "/group", "echo", "x"}, 0, "x\n"},
    {{"join", "--json", "/new/group", "echo", "x"}, 0, "x\n"},
    {{"run", "-v", "-w", "0.3", "/held", "echo", "x"}, 124, ""},
};

/* The last line waits for a time that a broken connection may use up. */
enum { RUNS = sizeof runs / sizeof *runs, UNTIMED_RUNS = RUNS - 1 };

static bool left_nothing(const program *p)
{
  return model_ephemeral(&p->loopback.server) == NULL;
}

static void begin(program *p, const char *const *words)
{
  program_start(p);
  loopback_lock(&p->loopback);
  create_nodes(&p->loopback.server);
  loopback_unlock(&p->loopback);
  program_begin(p, words);
}

/* ---- each fault in turn -------------------------------------------------- */

static void expect_result(const program *p, const command_line *line)
{
  ck_assert(program_did(p, line));
}

START_TEST(run_ends_with_exit_code_of_command)
{
  static program p;

  for (size_t i = 0; i < RUNS; i++) {
    begin(&p, runs[i].words);
    program_end(&p);
    ck_assert(program_did(&p, &runs[i]) && left_nothing(&p));
    program_stop(&p);
  }
}
END_TEST

START_TEST(run_has_its_result_if_the_connection_breaks)
{
  program_sweep(runs, UNTIMED_RUNS, PROGRAM_BREAK_BEFORE, create_nodes,
                expect_result);
  program_sweep(runs, UNTIMED_RUNS, PROGRAM_BREAK_AFTER, create_nodes,
                expect_result);
}
END_TEST

/* With -q there is no message. */
static void expect_result_or_failure(const program *p, const command_line *line)
{
  bool is_quiet = strcmp(line->words[1], "-q") == 0;
  bool failed = p->code == 125 && (is_quiet || p->err[0] != '\0');

  ck_assert(failed || program_did(p, line));
}

START_TEST(run_without_memory_has_its_result_or_fails)
{
  program_sweep(runs, RUNS, PROGRAM_NO_MEMORY, create_nodes,
                expect_result_or_failure);
}
END_TEST

START_TEST(run_without_permission_has_its_result_or_fails)
{
  program_sweep(runs, RUNS, PROGRAM_REFUSE, create_nodes,
                expect_result_or_failure);
}
END_TEST

/* ---- while COMMAND runs, or waits ---------------------------------------- */

/* Waits until the node has so many children. */
static void await_children(program *p, const char *path, size_t count)
{
  for (int i = 0; i < PROGRAM_TRIES; i++) {
    loopback_lock(&p->loopback);
    bool has_them = model_children(&p->loopback.server, path) == count;

    loopback_unlock(&p->loopback);
    if (has_them)
      return;
    program_pause();
  }
  ck_abort_msg("%s does not get %zu children", path, count);
}

#define PRINT_AND_SLEEP "sh", "-c", "echo go; exec sleep 60"

START_TEST(loss_of_the_lock_ends_command_as_on_lost_says)
{
  static const struct {
    const char *words[COMMAND_LINE_WORDS + 1];
    const char *message;
  } rows[] = {
      {{"run", "/l", PRINT_AND_SLEEP}, "lost"},
      {{"run", "--on-lost", "kill", "-p", "2", "/l", PRINT_AND_SLEEP}, "lost"},
      {{"run", "--json", "-s", "/l", PRINT_AND_SLEEP}, "\"event\":\"lost\""},
      {{"run", "-l", "/l2", "/l", PRINT_AND_SLEEP}, "lost"},
      {{"run", "--layout", "single", "/l", PRINT_AND_SLEEP}, "lost"},
      {{"run", "--on-lost", "ignore", "/l", "sh", "-c",
        "echo go; exec sleep 1"},
       "lost"},
  };
  static program p;

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    begin(&p, rows[i].words);
    program_await_output(&p, "go\n");
    loopback_expire(&p.loopback);
    ck_assert_msg(program_end(&p) == 123 &&
                      strstr(p.err, rows[i].message) != NULL,
                  "row %zu: exit code %d, %s", i, p.code, p.err);
    program_stop(&p);
  }
}
END_TEST

START_TEST(signal_reaches_command_and_ends_run)
{
  static program p;

  begin(&p, WORDS("run", "/l", PRINT_AND_SLEEP));
  program_await_output(&p, "go\n");
  kill(p.child, SIGTERM);
  ck_assert_int_eq(program_end(&p), 128 + SIGTERM);
  ck_assert(left_nothing(&p));
  program_stop(&p);

  begin(&p, WORDS("join", "/group", PRINT_AND_SLEEP));
  program_await_output(&p, "go\n");
  kill(p.child, SIGINT);
  ck_assert_int_eq(program_end(&p), -SIGINT); /* as a shell expects it */
  ck_assert(left_nothing(&p));
  program_stop(&p);
}
END_TEST

START_TEST(signal_ends_the_wait_for_the_lock)
{
  static program p;

  begin(&p, WORDS("run", "--json", "/held", "echo", "x"));
  await_children(&p, "/held", 2);
  kill(p.child, SIGTERM);
  ck_assert_int_eq(program_end(&p), 128 + SIGTERM);
  ck_assert_ptr_nonnull(strstr(p.err, "ended by SIGTERM while waiting"));
  ck_assert_str_eq(p.out, "");
  ck_assert(left_nothing(&p));
  program_stop(&p);
}
END_TEST

START_TEST(waiter_runs_command_when_the_lock_is_free)
{
  static program p;

  begin(&p, WORDS("run", "-v", "-w", "20", "/held", "echo", "x"));
  await_children(&p, "/held", 2);
  loopback_lock(&p.loopback);
  model_delete(&p.loopback.server, HOLDER);
  loopback_unlock(&p.loopback);
  ck_assert_int_eq(program_end(&p), 0);
  ck_assert_str_eq(p.out, "x\n");
  ck_assert_uint_eq(model_children(&p.loopback.server, "/held"), 0);
  program_stop(&p);
}
END_TEST

START_TEST(elect_runs_command_again_after_it_has_failed)
{
  static program p;

  begin(&p,
        WORDS("elect", "--restarts", "1", "/l", "sh", "-c", "echo x; exit 4"));
  ck_assert_int_eq(program_end(&p), 4);
  ck_assert_str_eq(p.out, "x\nx\n");
  ck_assert(left_nothing(&p));
  program_stop(&p);
}
END_TEST

SUITE("run", run_ends_with_exit_code_of_command,
      run_has_its_result_if_the_connection_breaks,
      run_without_memory_has_its_result_or_fails,
      run_without_permission_has_its_result_or_fails,
      loss_of_the_lock_ends_command_as_on_lost_says,
      signal_reaches_command_and_ends_run, signal_ends_the_wait_for_the_lock,
      waiter_runs_command_when_the_lock_is_free,
      elect_runs_command_again_after_it_has_failed)
