/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guard.h"
#include "suite.h"

/* ---- a guard and its command -----------------------------------------------
 */

static char sh[] = "sh", minus_c[] = "-c";

typedef struct scene {
  cli_guard guard;
  char *words[4];
  int out[2]; /* what the command writes */
} scene;

/* A pipe out of the way of what the command is given. */
static void make_pipe(int *ends)
{
  int low[2];

  ck_assert_int_eq(pipe(low), 0);
  for (int i = 0; i < 2; i++) {
    ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 20);
    ck_assert_int_ge(ends[i], 20);
    close(low[i]);
  }
}

/* Let `fd` stand for what the command is given; gives what it was. */
static int take(int fd, int given)
{
  int own = fcntl(fd, F_DUPFD_CLOEXEC, 20);

  fflush(NULL);
  ck_assert_int_eq(dup2(given, fd), fd);
  return own;
}

static void give_back(int fd, int own)
{
  ck_assert_int_eq(dup2(own, fd), fd);
  close(own);
}

/* A guard that is ready to run `text`. */
static void set(scene *s, char *text, cli_policy policy)
{
  static char title[] = "check_guard";
  cli_job job = {.argv = s->words, .group = getpgrp(), .cgroup = {.fd = -1}};

  prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that orphans can be waited for */
  s->words[0] = sh;
  s->words[1] = minus_c;
  s->words[2] = text;
  s->words[3] = NULL;
  make_pipe(s->out);
  int own = take(STDOUT_FILENO, s->out[1]);

  ck_assert_int_eq(cli_signals_open(&job.signals), 0);
  ck_assert_int_eq(cli_guard_open(&s->guard, &job, policy,
                                  (cli_title){title, strlen(title)}),
                   0);
  close(s->out[1]);
  give_back(STDOUT_FILENO, own);
}

static void order(const scene *s, cli_order_type type, int signal,
                  int64_t lease_ms)
{
  cli_order o = {.type = type,
                 .signal = signal,
                 .lease = cli_guard_clock() + lease_ms,
                 .margin_ms = 100};

  ck_assert(cli_guard_order(
      &s->guard, &o,
      lk_bytes_of("WORD=from us", type == CLI_ORDER_START ? 13 : 0)));
}

/* The next news, which must be this one; its value. */
static int news(const scene *s, cli_news_type type)
{
  struct pollfd ready = {s->guard.fd, POLLIN, 0};
  cli_news n;

  ck_assert_int_eq(poll(&ready, 1, -1), 1);
  ck_assert_int_eq(cli_guard_news(&s->guard, &n), 1);
  ck_assert_int_eq(n.type, type);
  return n.value;
}

/* The command writes this line next; NULL: nothing more, from nobody. */
static void line(const scene *s, const char *wanted)
{
  char text[64];
  size_t len = 0;
  ssize_t n;

  while ((n = read(s->out[0], text + len, 1)) == 1 && text[len] != '\n' &&
         len < sizeof text - 1)
    len++;
  text[len] = '\0';
  if (wanted == NULL)
    ck_assert_int_eq(n, 0);
  else
    ck_assert_str_eq(text, wanted);
}

static void begin(scene *s, char *text, cli_policy policy)
{
  set(s, text, policy);
  order(s, CLI_ORDER_START, 0, 1000000);
  ck_assert_int_gt(news(s, CLI_NEWS_STARTED), 0);
}

static void end(scene *s)
{
  cli_guard_close(&s->guard);
  close(s->out[0]);
  while (waitpid(-1, NULL, 0) > 0)
    ;
  ck_assert_int_eq(errno, ECHILD);
}

/* ---- life ------------------------------------------------------------------
 */

START_TEST(a_command_runs_with_our_words_and_its_status_comes_back)
{
  static char text[] = "echo $WORD; exit 7";
  scene s;

  begin(&s, text, CLI_ON_LOST_TERM);
  line(&s, "from us");
  ck_assert_int_eq(WEXITSTATUS(news(&s, CLI_NEWS_ENDED)), 7);
  news(&s, CLI_NEWS_EMPTY);
  end(&s);
}
END_TEST

START_TEST(what_cannot_be_executed_is_told_with_its_errno)
{
  static char none[] = "/no/such/command";
  scene s;

  set(&s, none, CLI_ON_LOST_TERM);
  cli_guard_close(&s.guard);
  s.words[0] = none;
  cli_job job = {.argv = s.words, .cgroup = {.fd = -1}};

  ck_assert_int_eq(cli_signals_open(&job.signals), 0);
  ck_assert_int_eq(
      cli_guard_open(&s.guard, &job, CLI_ON_LOST_TERM, (cli_title){NULL, 0}),
      0);
  order(&s, CLI_ORDER_START, 0, 1000000);
  ck_assert_int_eq(news(&s, CLI_NEWS_NOT_STARTED), ENOENT);
  end(&s);
}
END_TEST

START_TEST(a_lease_that_has_run_out_starts_nothing)
{
  static char text[] = "echo wrong";
  scene s;

  set(&s, text, CLI_ON_LOST_IGNORE);
  order(&s, CLI_ORDER_START, 0, 0);
  ck_assert_int_eq(news(&s, CLI_NEWS_FAILED), ETIMEDOUT);
  cli_guard_close(&s.guard);
  line(&s, NULL);
  end(&s);
}
END_TEST

START_TEST(a_guard_that_was_told_nothing_leaves)
{
  static char text[] = "echo wrong";
  scene s;

  set(&s, text, CLI_ON_LOST_TERM);
  close(s.guard.fd);
  s.guard.fd = -1;
  line(&s, NULL);
  end(&s);
}
END_TEST

/* ---- its end ----------------------------------------------------------------
 */

static char family[] =
    "trap '' TERM INT; sleep 600 & setsid sh -c 'echo in; sleep 600' & "
    "wait; sleep 600";

START_TEST(when_we_are_gone_nothing_is_left)
{
  scene s;

  begin(&s, family, CLI_ON_LOST_IGNORE);
  line(&s, "in");
  close(s.guard.fd); /* without a goodbye */
  s.guard.fd = -1;
  line(&s, NULL); /* all who could write have ended */
  end(&s);
}
END_TEST

START_TEST(after_a_goodbye_what_is_left_lives_on)
{
  static char text[] = "exec 4<&0; (read word; echo still here) <&4 & exit 0";
  int in[2];
  scene s;

  make_pipe(in);
  take(STDIN_FILENO, in[0]);
  begin(&s, text, CLI_ON_LOST_TERM);
  news(&s, CLI_NEWS_ENDED);
  cli_guard_close(&s.guard);
  ck_assert_int_eq(write(in[1], "go\n", 3), 3);
  line(&s, "still here");
  end(&s);
}
END_TEST

START_TEST(signals_reach_the_group_and_only_the_group)
{
  static char text[] = "trap 'echo one' USR1; (trap 'echo two' USR1; echo up; "
                       "while :; do sleep 0.05; done) & while :; do wait; done";
  char first[8], second[8];
  scene s;

  begin(&s, text, CLI_ON_LOST_TERM);
  line(&s, "up");
  order(&s, CLI_ORDER_SIGNAL, SIGUSR1, 0);
  ck_assert_int_eq(read(s.out[0], first, 4), 4);
  ck_assert_int_eq(read(s.out[0], second, 4), 4);
  ck_assert_mem_ne(first, second, 3);
  order(&s, CLI_ORDER_SIGNAL, SIGKILL, 0);
  ck_assert_int_eq(WTERMSIG(news(&s, CLI_NEWS_ENDED)), SIGKILL);
  line(&s, NULL);
  end(&s);
}
END_TEST

/* ---- the lease --------------------------------------------------------------
 */

START_TEST(term_and_then_kill_end_all_when_no_news_comes)
{
  scene s;

  begin(&s, family, CLI_ON_LOST_TERM);
  line(&s, "in");
  order(&s, CLI_ORDER_LEASE, 0, 150);
  ck_assert_int_eq(news(&s, CLI_NEWS_ACTED), CLI_ACT_TERM);
  ck_assert_int_eq(news(&s, CLI_NEWS_ACTED), CLI_ACT_KILL);
  ck_assert_int_eq(WTERMSIG(news(&s, CLI_NEWS_ENDED)), SIGKILL);
  news(&s, CLI_NEWS_EMPTY);
  line(&s, NULL);
  end(&s);
}
END_TEST

START_TEST(a_lost_lock_ends_the_command_at_once)
{
  static char text[] = "trap 'echo asked; exit 3' TERM; echo up; "
                       "while :; do sleep 0.05; done";
  scene s;

  begin(&s, text, CLI_ON_LOST_TERM);
  line(&s, "up");
  order(&s, CLI_ORDER_LOST, 0, 0);
  ck_assert_int_eq(news(&s, CLI_NEWS_ACTED), CLI_ACT_TERM);
  line(&s, "asked");
  ck_assert_int_eq(WEXITSTATUS(news(&s, CLI_NEWS_ENDED)), 3);
  news(&s, CLI_NEWS_EMPTY);
  end(&s);
}
END_TEST

START_TEST(a_stopped_command_goes_on_when_news_comes)
{
  static char text[] = "echo up; read word; echo on";
  int in[2];
  scene s;

  make_pipe(in);
  take(STDIN_FILENO, in[0]);
  begin(&s, text, CLI_ON_LOST_STOP);
  line(&s, "up");
  order(&s, CLI_ORDER_LEASE, 0, 50);
  ck_assert_int_eq(news(&s, CLI_NEWS_ACTED), CLI_ACT_STOP);
  ck_assert_int_eq(news(&s, CLI_NEWS_STOPPED), SIGSTOP);
  ck_assert_int_eq(write(in[1], "go\n", 3), 3);
  order(&s, CLI_ORDER_LEASE, 0, 1000000);
  ck_assert_int_eq(news(&s, CLI_NEWS_ACTED), CLI_ACT_CONT);
  line(&s, "on");
  news(&s, CLI_NEWS_ENDED);
  end(&s);
}
END_TEST

SUITE("guard", a_command_runs_with_our_words_and_its_status_comes_back,
      what_cannot_be_executed_is_told_with_its_errno,
      a_lease_that_has_run_out_starts_nothing,
      a_guard_that_was_told_nothing_leaves, when_we_are_gone_nothing_is_left,
      after_a_goodbye_what_is_left_lives_on,
      signals_reach_the_group_and_only_the_group,
      term_and_then_kill_end_all_when_no_news_comes,
      a_lost_lock_ends_the_command_at_once,
      a_stopped_command_goes_on_when_news_comes)
