/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "cli/nodes/watch_command.h"
#include "poll/loop.h"
#include "support/suite.h"

enum { MAX_SECONDS = 20, PIPE_BYTES = 64 * 1024, LONG_INPUT = 10 * PIPE_BYTES };

/* A command in a loop that ends with it. */
typedef struct command_in_loop {
  cli_piped_command command;
  cli_signals signals;
  cli_signal_watcher watcher;
  cli_piped_command_end end;
  bool done;
} command_in_loop;

static void on_signals_of_command(cli_signal_watcher *w)
{
  command_in_loop *c = LK_OWNER(w, command_in_loop, watcher);
  cli_signal signal;

  while (cli_signals_next(&c->signals, &signal))
    if (signal.number == SIGCHLD &&
        cli_piped_command_reap(&c->command, &c->end))
      c->done = true;
}

static void open_command_in_loop(command_in_loop *c)
{
  lk_loop *loop;

  alarm(MAX_SECONDS); /* ends this test if it hangs */
  *c = (command_in_loop){.watcher.on_signals = on_signals_of_command};
  ck_assert_int_eq(lk__poll_loop_new(&loop, &lk__mem_libc), 0);
  ck_assert_int_eq(cli_signals_open(&c->signals), 0);
  cli_signal_watcher_start(&c->watcher, loop, &c->signals.queue);
  lk__loop_ref(loop);
  c->command.loop = loop;
  c->command.signals = &c->signals;
}

static void close_command_in_loop(command_in_loop *c)
{
  cli_signal_watcher_stop(&c->watcher);
  lk__poll_loop_free(c->command.loop);
  cli_signal_queue_close(&c->signals.queue);
  cli_signals_restore(&c->signals);
  alarm(0);
}

/* Runs `$ sh -c script` until it ends. Returns its exit code. */
static int run_script(command_in_loop *c, char *script, cli_text *variables,
                      cli_text *input)
{
  static char sh[] = "sh", minus_c[] = "-c";
  char *argv[] = {sh, minus_c, script, NULL};

  c->command.argv = argv;
  c->done = false;
  ck_assert_int_eq(cli_piped_command_start(&c->command, variables, input), 0);
  ck_assert_ptr_null(input->at);
  ck_assert(cli_piped_command_runs(&c->command));
  lk__poll_loop_run(c->command.loop, &c->done);
  ck_assert(!cli_piped_command_runs(&c->command));
  ck_assert_ptr_null(c->command.input.at);
  ck_assert_int_eq(c->end.exec_error, 0);
  ck_assert(WIFEXITED(c->end.status));
  cli_text_free(variables);
  return WEXITSTATUS(c->end.status);
}

static void fill_input(cli_text *input)
{
  for (int i = 0; i < LONG_INPUT / 8; i++)
    cli_text_printf(input, "%07d\n", i);
  ck_assert_uint_eq(input->len, LONG_INPUT);
}

START_TEST(long_input_arrives_whole)
{
  char script[200];
  command_in_loop c;
  cli_text variables = {0};
  cli_text input = {0};

  fill_input(&input);
  snprintf(script, sizeof script,
           "test \"$(sed -n '$p;$=' | tr -d '\\n')\" "
           "= %07d%d",
           LONG_INPUT / 8 - 1, LONG_INPUT / 8);
  open_command_in_loop(&c);
  ck_assert_int_eq(run_script(&c, script, &variables, &input), 0);
  close_command_in_loop(&c);
}
END_TEST

/* The loop waits while a command runs that has closed its standard input. */
START_TEST(input_that_is_not_read_is_discarded)
{
  char *const scripts[] = {(char[]){"exit 7"},
                           (char[]){"exec <&-; sleep .5; exit 7"}};
  command_in_loop c;
  cli_text variables = {0};
  cli_text input = {0};

  open_command_in_loop(&c);
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    fill_input(&input);
    clock_t began = clock();

    ck_assert_int_eq(run_script(&c, scripts[i], &variables, &input), 7);
    ck_assert_int_lt(clock() - began, CLOCKS_PER_SEC / 4);
  }
  close_command_in_loop(&c);
}
END_TEST

START_TEST(variables_replace_those_of_the_same_name)
{
  char script[] = "test \"$LK_TEST $LK_TESTS $LK_TEST_ADDED\" = 'new kept = ' "
                  "&& test $(env | grep -c '^LK_TEST=') = 1 && ! read line";
  const char added[] = "LK_TEST=new\0LK_TEST_ADDED== ";
  command_in_loop c;
  cli_text variables = {0};
  cli_text input = {0};

  setenv("LK_TEST", "old", 1);
  setenv("LK_TESTS", "kept", 1);
  cli_text_add(&variables, added, sizeof added);
  open_command_in_loop(&c);
  ck_assert_int_eq(run_script(&c, script, &variables, &input), 0);
  ck_assert_str_eq(getenv("LK_TEST"), "old");
  close_command_in_loop(&c);
  unsetenv("LK_TEST");
  unsetenv("LK_TESTS");
}
END_TEST

START_TEST(command_that_cannot_be_executed_has_an_errno)
{
  static char name[] = "/nowhere/command";
  char *argv[] = {name, NULL};
  command_in_loop c;
  cli_text variables = {0};
  cli_text input = {0};

  open_command_in_loop(&c);
  fill_input(&input);
  c.command.argv = argv;
  ck_assert_int_eq(cli_piped_command_start(&c.command, &variables, &input), 0);
  lk__poll_loop_run(c.command.loop, &c.done);
  ck_assert_int_eq(c.end.exec_error, ENOENT);
  close_command_in_loop(&c);
}
END_TEST

START_TEST(without_memory_nothing_is_started)
{
  command_in_loop c;
  cli_text variables = {0};
  cli_text input = {.failed = true};

  open_command_in_loop(&c);
  ck_assert_int_eq(cli_piped_command_start(&c.command, &variables, &input),
                   ENOMEM);
  ck_assert(!cli_piped_command_runs(&c.command));
  cli_piped_command_signal(&c.command, SIGKILL);
  close_command_in_loop(&c);
}
END_TEST

SUITE("piped_command", long_input_arrives_whole,
      input_that_is_not_read_is_discarded,
      variables_replace_those_of_the_same_name,
      command_that_cannot_be_executed_has_an_errno,
      without_memory_nothing_is_started)
