/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/system_clocks.h"
#include "cli/run/descendants.h"
#include "cli/run/supervisor_handle.h"
#include "support/suite.h"
#include "unit/cli/forbidden_call.h"

#ifndef SYS_clone3 /* before Linux 5.3 */
#  define SYS_clone3 0xffffffffU
#endif

/* ---- a supervisor and its command ---------------------------------------- */

static char sh[] = "sh", minus_c[] = "-c";

typedef struct command_run {
  cli_supervisor supervisor;
  char *words[4];
  int out[2];                     /* pipe with the output of the command */
  cli_cgroup cgroup;              /* only the path */
  bool without_cgroup;            /* CLI_REPORT_NO_CGROUP has come */
  cli_supervisor_report received; /* the last message; `what`: its reports that
                                     are not checked yet */
  unsigned unchecked_actions;     /* bits of reported actions */
} command_run;

enum { FIRST_FD = 20 }; /* above the descriptors that a command is given */

/* Makes a pipe with descriptor numbers from FIRST_FD on. */
static void make_pipe(int *ends)
{
  int low[2];

  ck_assert_int_eq(pipe(low), 0);
  for (int i = 0; i < 2; i++) {
    ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, FIRST_FD);
    ck_assert_int_ge(ends[i], FIRST_FD);
    close(low[i]);
  }
}

/* Makes `fd` a copy of `source`. Returns a copy of the old `fd`. */
static int replace_fd(int fd, int source)
{
  int old = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);

  fflush(NULL);
  ck_assert_int_eq(dup2(source, fd), fd);
  return old;
}

static void restore_fd(int fd, int old)
{
  ck_assert_int_eq(dup2(old, fd), fd);
  close(old);
}

enum { MAX_SECONDS = 20 };

/* Why tests are skipped. */
static const char NO_SUBREAPER[] = "this system has no PR_SET_CHILD_SUBREAPER";
static const char NO_CGROUP[] = "no cgroup of version 2 can be made";
static const char NO_SECCOMP[] = "this system has no filters for system calls";

/* Whether this process can wait for orphans of its descendants. qemu-user
   cannot: tests that depend on it are skipped there. */
static bool adopts_orphans(void)
{
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

static bool wants_cgroup; /* of COMMAND */

/* Lets COMMAND run in a cgroup. Returns false if none can be made here. */
static bool use_cgroup(void)
{
  cli_cgroup g;

  cli_cgroup_choose_path(&g);
  cli_cgroup_make(&g);
  wants_cgroup = g.fd >= 0;
  cli_cgroup_remove(&g);
  return wants_cgroup;
}

/* Forks a supervisor that is ready to execute s->words. */
static void prepare_words(command_run *s, cli_on_lost policy)
{
  static char title[] = "check_supervisor";
  cli_job job = {.argv = s->words, .group = getpgrp(), .cgroup = {.fd = -1}};

  if (wants_cgroup)
    cli_cgroup_choose_path(&job.cgroup);
  s->cgroup = job.cgroup;

  alarm(MAX_SECONDS); /* ends this test if it hangs */
  s->received = (cli_supervisor_report){0};
  s->unchecked_actions = 0;
  s->without_cgroup = false;
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that orphans can be waited for */
  make_pipe(s->out);
  int old_stdout = replace_fd(STDOUT_FILENO, s->out[1]);

  ck_assert_int_eq(cli_signals_open(&job.signals), 0);
  ck_assert_int_eq(
      cli_supervisor_fork(&s->supervisor, &job, policy,
                          (cli_process_title){title, strlen(title)}),
      0);
  close(s->out[1]);
  restore_fd(STDOUT_FILENO, old_stdout);
}

/* Forks a supervisor that is ready to run the shell script `text`. */
static void prepare_run(command_run *s, char *text, cli_on_lost policy)
{
  s->words[0] = sh;
  s->words[1] = minus_c;
  s->words[2] = text;
  s->words[3] = NULL;
  prepare_words(s, policy);
}

enum { MARGIN_MS = 10000, LONG_LEASE_MS = 100 * MARGIN_MS };

static void start_command(command_run *s, int64_t lease_ms)
{
  cli_order o = {.what = CLI_ORDER_START,
                 .lease_deadline = cli_boottime_ms() + lease_ms,
                 .margin_ms = MARGIN_MS};

  static const char environment[] = "WORD=from us";

  ck_assert_int_eq(
      cli_supervisor_start_command(
          &s->supervisor, &o, lk_bytes_of(environment, sizeof environment)),
      0);
}

static void order_signal(command_run *s, int number)
{
  cli_order o = cli_order_signal(number);

  cli_supervisor_send_order(&s->supervisor, &o);
}

static void order_lease(command_run *s, int64_t lease_ms, int64_t margin_ms)
{
  cli_order o = {.what = CLI_ORDER_LEASE,
                 .lease_deadline = cli_boottime_ms() + lease_ms,
                 .margin_ms = margin_ms};

  cli_supervisor_send_order(&s->supervisor, &o);
}

static void order_loss(command_run *s)
{
  cli_order o = {.what = CLI_ORDER_LOST};

  cli_supervisor_send_order(&s->supervisor, &o);
}

/* Orders the supervisor to exit, and waits until it has. */
static void order_exit(command_run *s)
{
  cli_supervisor_close(&s->supervisor);
}

static unsigned lowest_bit(unsigned bits)
{
  return bits & (~bits + 1);
}

/* Waits for the next report, which must be `what`, one CLI_REPORT_ constant.
 * The reports of one message are taken in the order of these constants. */
static cli_supervisor_report next_report(command_run *s, unsigned what)
{
  struct pollfd ready = {s->supervisor.fd, POLLIN, 0};

  if (s->received.what == 0) {
    ck_assert_int_eq(poll(&ready, 1, -1), 1);
    ck_assert_int_eq(cli_supervisor_receive(&s->supervisor, &s->received),
                     CLI_RECEIVED_REPORT);
    s->without_cgroup |= (s->received.what & CLI_REPORT_NO_CGROUP) != 0;
    s->received.what &= ~(unsigned)CLI_REPORT_NO_CGROUP;
  }
  ck_assert_uint_eq(lowest_bit(s->received.what), what);
  s->received.what &= ~what;
  return s->received;
}

/* Checks that --on-lost has caused this action. The actions of one message can
 * be checked in any order. */
static void expect_action(command_run *s, cli_action act)
{
  if (s->unchecked_actions == 0)
    s->unchecked_actions = next_report(s, CLI_REPORT_ACTED).action_bits;
  ck_assert_uint_ne(s->unchecked_actions & 1u << act, 0);
  s->unchecked_actions &= ~(1u << act);
}

#define NO_MORE_LINES NULL

/* Reads the next line of the command, without its end. Returns false if all
 * writers have ended. */
static bool read_line(const command_run *s, char *text, size_t size)
{
  size_t len = 0;
  ssize_t n;

  while ((n = read(s->out[0], text + len, 1)) == 1 && text[len] != '\n' &&
         len < size - 1)
    len++;
  text[len] = '\0';
  return n != 0;
}

/* Checks the next line that the command writes; NO_MORE_LINES: all writers must
 * have ended. */
static void expect_line(const command_run *s, const char *expected)
{
  char text[64];
  bool any = read_line(s, text, sizeof text);

  ck_assert_int_eq(any, expected != NO_MORE_LINES);
  if (expected != NO_MORE_LINES)
    ck_assert_str_eq(text, expected);
}

static void begin_run(command_run *s, char *text, cli_on_lost policy)
{
  prepare_run(s, text, policy);
  start_command(s, LONG_LEASE_MS);
  ck_assert_int_gt(next_report(s, CLI_REPORT_STARTED).child, 0);
}

static void end_run(command_run *s)
{
  cli_supervisor_close(&s->supervisor);
  close(s->out[0]);
  while (waitpid(-1, NULL, 0) > 0)
    ;
  ck_assert_int_eq(errno, ECHILD);
}

/* ---- start and end ------------------------------------------------------- */

START_TEST(command_gets_its_environment_and_its_status_is_reported)
{
  static char text[] = "echo $WORD; exit 7";
  command_run s;

  begin_run(&s, text, CLI_ON_LOST_TERM);
  expect_line(&s, "from us");
  ck_assert_int_eq(WEXITSTATUS(next_report(&s, CLI_REPORT_ENDED).status), 7);
  next_report(&s, CLI_REPORT_NONE_LEFT);
  end_run(&s);
}
END_TEST

START_TEST(command_that_cannot_be_executed_is_reported_with_its_errno)
{
  static char none[] = "/no/such/command";
  command_run s = {.words = {none}};

  prepare_words(&s, CLI_ON_LOST_TERM);
  start_command(&s, LONG_LEASE_MS);
  ck_assert_int_eq(next_report(&s, CLI_REPORT_NOT_EXECUTED).error, ENOENT);
  end_run(&s);
}
END_TEST

START_TEST(a_lease_that_has_run_out_starts_nothing)
{
  static char text[] = "echo wrong";
  command_run s;

  prepare_run(&s, text, CLI_ON_LOST_IGNORE);
  start_command(&s, 0);
  ck_assert_int_eq(next_report(&s, CLI_REPORT_NOT_STARTED).error, ETIMEDOUT);
  cli_supervisor_close(&s.supervisor);
  expect_line(&s, NO_MORE_LINES);
  end_run(&s);
}
END_TEST

START_TEST(supervisor_whose_latchkey_ends_before_the_start_runs_nothing)
{
  static char text[] = "echo wrong";
  command_run s;

  prepare_run(&s, text, CLI_ON_LOST_TERM);
  close(s.supervisor.fd);
  s.supervisor.fd = -1;
  expect_line(&s, NO_MORE_LINES);
  end_run(&s);
}
END_TEST

static int64_t cpu_ms_of_children(void)
{
  struct rusage used;

  ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
         (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

START_TEST(a_supervisor_that_waits_uses_no_processor_time)
{
  static char text[] = "echo up; exec sleep 1";
  int64_t before = cpu_ms_of_children();
  command_run s;

  begin_run(&s, text, CLI_ON_LOST_TERM);
  expect_line(&s, "up");
  next_report(&s, CLI_REPORT_ENDED);
  end_run(&s);
  ck_assert_int_lt(cpu_ms_of_children() - before, 250);
}
END_TEST

/* Limits the number of descriptors that this process can still open. */
static void limit_descriptors(int more)
{
  struct rlimit limit;
  int fds[8];

  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  for (int i = 0; i < more; i++)
    fds[i] = dup(STDIN_FILENO);
  limit.rlim_cur = (rlim_t)fds[more - 1] + 1;
  for (int i = 0; i < more; i++)
    close(fds[i]);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Without signalfd or timerfd, the supervisor needs no such descriptor. */
#if defined HAVE_SIGNALFD && defined HAVE_TIMERFD_CREATE
static const bool needs_two_descriptors = true;
#else
static const bool needs_two_descriptors = false;
#endif

/* Two descriptors are free. The socket takes both, and the supervisor closes
 * one of them again. It needs two, for its signals and its clock. */
START_TEST(a_supervisor_without_descriptors_for_its_signals_and_its_clock_ends)
{
  static char *words[] = {sh, NULL};
  cli_job job = {.argv = words, .group = getpgrp(), .cgroup = {.fd = -1}};
  struct pollfd ready = {-1, POLLIN, 0};
  cli_supervisor supervisor;
  cli_supervisor_report got;

  if (!needs_two_descriptors)
    return;
  limit_descriptors(2);
  ck_assert_int_eq(cli_supervisor_fork(&supervisor, &job, CLI_ON_LOST_TERM,
                                       (cli_process_title){NULL, 0}),
                   0);
  ready.fd = supervisor.fd;
  ck_assert_int_eq(poll(&ready, 1, 10000), 1);
  ck_assert_int_eq(cli_supervisor_receive(&supervisor, &got), CLI_RECEIVED_END);
  cli_supervisor_close(&supervisor);
}
END_TEST

/* ---- the end of the supervisor ------------------------------------------- */

/* Processes that ignore TERM, in the group of COMMAND and outside. */
static char term_ignorers[] =
    "trap '' TERM INT; sleep 600 & setsid sh -c 'echo in; sleep 600' & "
    "wait; sleep 600";

START_TEST(end_of_latchkey_kills_all_descendants)
{
  command_run s;

  if (!adopts_orphans())
    SKIP_TEST(NO_SUBREAPER);
  begin_run(&s, term_ignorers, CLI_ON_LOST_IGNORE);
  expect_line(&s, "in");
  close(s.supervisor.fd); /* as if latchkey had died: no exit order was sent */
  s.supervisor.fd = -1;
  expect_line(&s, NO_MORE_LINES);
  end_run(&s);
}
END_TEST

/* The exit order leaves descendants running, but not COMMAND, which dies with
 * its parent (PR_SET_PDEATHSIG). So these tests wait for the end of COMMAND
 * first. */
START_TEST(exit_order_leaves_descendants_running)
{
  /* Descriptor 4: a shell gives background jobs another standard input. */
  static char text[] = "exec 4<&0; (read word; echo still here) <&4 & exit 0";
  int in[2];
  command_run s;

  make_pipe(in);
  replace_fd(STDIN_FILENO, in[0]);
  begin_run(&s, text, CLI_ON_LOST_TERM);
  next_report(&s, CLI_REPORT_ENDED);
  order_exit(&s);
  ck_assert_int_eq(write(in[1], "go\n", 3), 3);
  expect_line(&s, "still here");
  end_run(&s);
}
END_TEST

/* The test does not read the report that COMMAND has ended. */
START_TEST(exit_order_is_executed_while_reports_are_unread)
{
  static char text[] = "exec 4<&0; (read word; echo still here) <&4 & exit 0";
  struct pollfd ready = {-1, POLLIN, 0};
  int in[2];
  command_run s;

  make_pipe(in);
  replace_fd(STDIN_FILENO, in[0]);
  begin_run(&s, text, CLI_ON_LOST_TERM);
  ready.fd = s.supervisor.fd;
  ck_assert_int_eq(poll(&ready, 1, 10000), 1); /* the report has arrived */
  order_exit(&s);
  ck_assert_int_eq(write(in[1], "go\n", 3), 3);
  expect_line(&s, "still here");
  end_run(&s);
}
END_TEST

/* At first the socket has no room for the order. */
START_TEST(exit_order_for_a_full_socket_is_executed)
{
  static char text[] = "exec 4<&0; (read word; echo still here) <&4 & exit 0";
  cli_order o = cli_order_signal(SIGWINCH);
  int in[2];
  command_run s;

  make_pipe(in);
  replace_fd(STDIN_FILENO, in[0]);
  begin_run(&s, text, CLI_ON_LOST_TERM);
  next_report(&s, CLI_REPORT_ENDED);
  /* While the supervisor is stopped, orders fill the socket. */
  kill(s.supervisor.pid, SIGSTOP);
  while (cli_supervisor_socket_send(s.supervisor.fd, &o, sizeof o))
    ;
  order_exit(&s);
  ck_assert_int_eq(write(in[1], "go\n", 3), 3);
  expect_line(&s, "still here");
  end_run(&s);
}
END_TEST

/* No other process gets the process id of COMMAND, so a late signal to COMMAND
 * reaches none. */
START_TEST(process_id_of_the_command_is_not_reused_before_the_supervisor_ends)
{
  static char text[] = "exit 7";
  pid_t pid;
  command_run s;

  if (!adopts_orphans())
    SKIP_TEST(NO_SUBREAPER);
  prepare_run(&s, text, CLI_ON_LOST_TERM);
  start_command(&s, LONG_LEASE_MS);
  pid = next_report(&s, CLI_REPORT_STARTED).child;
  next_report(&s, CLI_REPORT_ENDED);
  next_report(&s, CLI_REPORT_NONE_LEFT);
  ck_assert_int_eq(kill(pid, 0), 0);
  end_run(&s);
  ck_assert_int_eq(kill(pid, 0), -1);
}
END_TEST

START_TEST(signals_reach_each_process_of_the_group)
{
  static char text[] = "trap 'echo one' USR1; (trap 'echo two' USR1; echo up; "
                       "while :; do sleep 0.05; done) & while :; do wait; done";
  char first[8], second[8];
  command_run s;

  begin_run(&s, text, CLI_ON_LOST_TERM);
  expect_line(&s, "up");
  order_signal(&s, SIGUSR1);
  ck_assert_int_eq(read(s.out[0], first, 4), 4);
  ck_assert_int_eq(read(s.out[0], second, 4), 4);
  ck_assert_mem_ne(first, second, 3);
  order_signal(&s, SIGKILL);
  ck_assert_int_eq(WTERMSIG(next_report(&s, CLI_REPORT_ENDED).status), SIGKILL);
  expect_line(&s, NO_MORE_LINES);
  end_run(&s);
}
END_TEST

/* ---- the socket ---------------------------------------------------------- */

/* The supervisor's end is closed, with or without orders that it has not read.
 */
START_TEST(end_of_the_supervisor_is_reported)
{
  for (int unread = 0; unread < 2; unread++) {
    cli_supervisor supervisor = {.fd = -1};
    cli_supervisor_report received;
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    supervisor.fd = ends[0];
    ck_assert_int_eq(cli_supervisor_receive(&supervisor, &received),
                     CLI_RECEIVED_NOTHING);
    if (unread)
      ck_assert_int_eq(write(supervisor.fd, "x", 1), 1);
    close(ends[1]);
    errno = EAGAIN; /* it must not be taken for the errno of this call */
    ck_assert_int_eq(cli_supervisor_receive(&supervisor, &received),
                     CLI_RECEIVED_END);
    close(supervisor.fd);
  }
}
END_TEST

/* ---- the lease ----------------------------------------------------------- */

START_TEST(term_and_kill_end_all_when_the_lease_runs_out)
{
  command_run s;

  if (!adopts_orphans())
    SKIP_TEST(NO_SUBREAPER);
  begin_run(&s, term_ignorers, CLI_ON_LOST_TERM);
  expect_line(&s, "in");
  order_lease(&s, 150, 100); /* TERM after 50 ms */
  expect_action(&s, CLI_ACTION_TERM);
  expect_action(&s, CLI_ACTION_KILL);
  ck_assert_int_eq(WTERMSIG(next_report(&s, CLI_REPORT_ENDED).status), SIGKILL);
  next_report(&s, CLI_REPORT_NONE_LEFT);
  expect_line(&s, NO_MORE_LINES);
  end_run(&s);
}
END_TEST

START_TEST(longest_hold_of_a_millisecond_ends_the_command)
{
  static char text[] = "exec sleep 100";
  cli_order o = {.what = CLI_ORDER_START,
                 .lease_deadline = cli_boottime_ms() + LONG_LEASE_MS,
                 .margin_ms = MARGIN_MS,
                 .max_hold_ms = 1};
  command_run s;

  prepare_run(&s, text, CLI_ON_LOST_TERM);
  ck_assert_int_eq(
      cli_supervisor_start_command(&s.supervisor, &o, lk_bytes_of("", 0)), 0);
  /* COMMAND may be killed before it is executed, so the order of reports
     varies. */
  for (unsigned seen = 0; (seen & CLI_REPORT_ENDED) == 0;
       seen |= s.received.what) {
    struct pollfd ready = {s.supervisor.fd, POLLIN, 0};

    ck_assert_int_eq(poll(&ready, 1, -1), 1);
    ck_assert_int_eq(cli_supervisor_receive(&s.supervisor, &s.received),
                     CLI_RECEIVED_REPORT);
  }
  ck_assert_int_eq(WTERMSIG(s.received.status), SIGTERM);
  end_run(&s);
}
END_TEST

START_TEST(a_lost_lock_ends_the_command_at_once)
{
  static char text[] = "trap 'echo asked; exit 3' TERM; echo up; "
                       "while :; do sleep 0.05; done";
  command_run s;

  begin_run(&s, text, CLI_ON_LOST_TERM);
  expect_line(&s, "up");
  order_loss(&s);
  expect_action(&s, CLI_ACTION_TERM);
  expect_line(&s, "asked");
  ck_assert_int_eq(WEXITSTATUS(next_report(&s, CLI_REPORT_ENDED).status), 3);
  next_report(&s, CLI_REPORT_NONE_LEFT);
  end_run(&s);
}
END_TEST

/* Whether the command writes something within this time. */
static bool writes(const command_run *s, int ms)
{
  struct pollfd ready = {s->out[0], POLLIN, 0};

  return poll(&ready, 1, ms) == 1;
}

/* The lease is unsure from the start, so COMMAND is to be stopped at once. But
 * before exec(), a stopped child may lack PR_SET_PDEATHSIG, and would survive
 * the supervisor. CLI_REPORT_STARTED shows that COMMAND was executed. */
START_TEST(a_command_is_executed_before_it_is_stopped)
{
  if (!use_cgroup())
    SKIP_TEST(NO_CGROUP);
  for (int i = 0; i < 20; i++) {
    static char text[] = "sleep 30";
    unsigned seen = 0; /* CLI_REPORT_ constants */
    command_run s;

    prepare_run(&s, text, CLI_ON_LOST_STOP);
    start_command(&s, MARGIN_MS - 1000);
    while ((seen & CLI_REPORT_STARTED) == 0) {
      struct pollfd ready = {s.supervisor.fd, POLLIN, 0};
      cli_supervisor_report report;

      ck_assert_int_eq(poll(&ready, 1, 5000), 1);
      ck_assert_int_eq(cli_supervisor_receive(&s.supervisor, &report),
                       CLI_RECEIVED_REPORT);
      seen |= report.what;
    }
    order_signal(&s, SIGKILL);
    end_run(&s);
  }
}
END_TEST

/* This test keeps the supervisor's end of the socket open, so the death of the
 * supervisor causes no end of file. */
START_TEST(supervisor_that_died_is_noticed_after_its_reports_are_read)
{
  cli_supervisor_report sent = {.what = CLI_REPORT_NONE_LEFT}, got;
  cli_supervisor supervisor;
  int ends[2];

  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends),
                   0);
  supervisor = (cli_supervisor){.fd = ends[0], .pid = fork()};
  if (supervisor.pid == 0)
    pause();
  ck_assert_int_gt(supervisor.pid, 0);
  ck_assert_int_eq(cli_supervisor_receive(&supervisor, &got),
                   CLI_RECEIVED_NOTHING);
  ck_assert_int_eq(send(ends[1], &sent, sizeof sent, 0), (int)sizeof sent);
  kill(supervisor.pid, SIGKILL);
  siginfo_t info;

  ck_assert_int_eq(
      waitid(P_PID, (id_t)supervisor.pid, &info, WEXITED | WNOWAIT), 0);
  ck_assert_int_eq(cli_supervisor_receive(&supervisor, &got),
                   CLI_RECEIVED_REPORT);
  ck_assert_uint_eq(got.what, CLI_REPORT_NONE_LEFT);
  ck_assert_int_eq(cli_supervisor_receive(&supervisor, &got), CLI_RECEIVED_END);
  waitpid(supervisor.pid, NULL, 0);
  close(ends[0]);
  close(ends[1]);
}
END_TEST

START_TEST(stopped_command_continues_with_a_new_lease)
{
  static char text[] = "echo up; read word; echo on";
  int in[2];
  command_run s;

  if (!use_cgroup())
    SKIP_TEST(NO_CGROUP);
  make_pipe(in);
  replace_fd(STDIN_FILENO, in[0]);
  begin_run(&s, text, CLI_ON_LOST_STOP);
  expect_line(&s, "up");
  order_lease(&s, MARGIN_MS, MARGIN_MS); /* unsure at once */
  expect_action(&s, CLI_ACTION_STOP);
  ck_assert_int_eq(write(in[1], "go\n", 3), 3);
  ck_assert(!writes(&s, 300));
  order_lease(&s, LONG_LEASE_MS, 100);
  expect_action(&s, CLI_ACTION_CONT);
  expect_line(&s, "on");
  next_report(&s, CLI_REPORT_ENDED);
  end_run(&s);
}
END_TEST

/* Processes that are stopped one by one can continue one another. */
START_TEST(stop_kills_without_a_cgroup)
{
  static char text[] = "echo up; sleep 600";
  command_run s;

  prepare_run(&s, text, CLI_ON_LOST_STOP);
  start_command(&s, LONG_LEASE_MS);
  next_report(&s, CLI_REPORT_STARTED);
  ck_assert(s.without_cgroup);
  expect_line(&s, "up");
  int64_t deadline = cli_boottime_ms() + 2000;

  order_lease(&s, 2000, 1500);
  expect_action(&s, CLI_ACTION_KILL);
  ck_assert_int_lt(cli_boottime_ms(), deadline - 1000);
  next_report(&s, CLI_REPORT_ENDED);
  next_report(&s, CLI_REPORT_NONE_LEFT);
  end_run(&s);
}
END_TEST

/* A process that has left the cgroup is not stopped, so all are killed before
 * the deadline, those in the cgroup too. */
static void stop_with_a_process_outside(char *text)
{
  command_run s;
  char line[32];

  if (!use_cgroup())
    SKIP_TEST(NO_CGROUP);
  begin_run(&s, text, CLI_ON_LOST_STOP);
  expect_line(&s, "out");
  int64_t deadline = cli_boottime_ms() + 2000;

  order_lease(&s, 2000, 1500);
  expect_action(&s, CLI_ACTION_STOP);
  expect_action(&s, CLI_ACTION_KILL);
  ck_assert_int_lt(cli_boottime_ms(), deadline);
  while (read_line(&s, line, sizeof line))
    ck_assert_str_eq(line, "out");
  ck_assert_int_lt(cli_boottime_ms(), deadline);
  end_run(&s);
}

#define LEAVE_CGROUP                                            \
  "d=$(sed -n '/ - cgroup2 /{s/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ " \
  "]*\\).*/\\1/p;q}' "                                          \
  "/proc/self/mountinfo); echo 0 >$d/cgroup.procs; "            \
  "while :; do echo out; sleep 0.01; done"

START_TEST(stop_kills_a_command_outside_of_the_cgroup)
{
  static char text[] = LEAVE_CGROUP;

  stop_with_a_process_outside(text);
}
END_TEST

START_TEST(stop_kills_a_descendant_outside_of_the_cgroup)
{
  static char text[] = "setsid sh -c \"$LEAVE\" & sleep 600";

  setenv("LEAVE", LEAVE_CGROUP, 1);
  stop_with_a_process_outside(text);
}
END_TEST

/* ---- messages ------------------------------------------------------------ */

START_TEST(message_waits_for_room_but_not_for_an_ended_process)
{
  cli_order o = cli_order_signal(SIGTERM);
  int ends[2];

  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  alarm(MAX_SECONDS);
  while (cli_supervisor_socket_send(ends[0], &o, sizeof o))
    ;
  ck_assert_int_eq(recv(ends[1], &o, sizeof o, 0), (int)sizeof o);
  ck_assert(cli_supervisor_socket_send(ends[0], &o, sizeof o));
  ck_assert(!cli_supervisor_socket_send(ends[0], &o, sizeof o));
  close(ends[1]);
  /* true: the message is dropped, and need not be kept */
  ck_assert(cli_supervisor_socket_send(ends[0], &o, sizeof o));
  close(ends[0]);
}
END_TEST

/* The later lease replaces the earlier one. Of SIGTSTP and SIGCONT only the
 * later one stays. */
START_TEST(waiting_orders_are_merged_and_later_ones_prevail)
{
  cli_order all = {0};
  cli_order lost = {.what = CLI_ORDER_LOST};
  cli_order lease = {
      .what = CLI_ORDER_LEASE, .lease_deadline = 7, .margin_ms = 2};
  cli_order sooner = {
      .what = CLI_ORDER_LEASE, .lease_deadline = 5, .margin_ms = 1};
  static const int numbers[] = {SIGTERM, SIGTSTP, SIGUSR1, SIGCONT, SIGTERM};

  cli_order_merge(&all, &lease);
  cli_order_merge(&all, &lost);
  for (int i = 0; i < 5; i++) {
    cli_order one = cli_order_signal(numbers[i]);

    cli_order_merge(&all, &one);
  }
  cli_order_merge(&all, &sooner);
  ck_assert_uint_eq(all.what,
                    CLI_ORDER_LEASE | CLI_ORDER_LOST | CLI_ORDER_SIGNAL);
  ck_assert_int_eq(all.lease_deadline, 5);
  ck_assert_int_eq(all.margin_ms, 1);
  ck_assert_uint_eq(all.signals, 1u << SIGTERM | 1u << SIGUSR1 | 1u << SIGCONT);
  cli_order stop = cli_order_signal(SIGTSTP);

  cli_order_merge(&all, &stop);
  ck_assert_uint_eq(all.signals, 1u << SIGTERM | 1u << SIGUSR1 | 1u << SIGTSTP);
}
END_TEST

START_TEST(waiting_reports_are_merged_and_later_ones_prevail)
{
  cli_supervisor_report all = {0};
  static const cli_supervisor_report parts[] = {
      {.what = CLI_REPORT_STARTED, .child = 4711},
      {.what = CLI_REPORT_ACTED, .action_bits = 1u << CLI_ACTION_STOP},
      {.what = CLI_REPORT_STOPPED, .signal = SIGSTOP},
      {.what = CLI_REPORT_ACTED, .action_bits = 1u << CLI_ACTION_CONT},
      {.what = CLI_REPORT_STOPPED, .signal = SIGTSTP},
      {.what = CLI_REPORT_ENDED, .status = 0x700}, /* exit code 7 */
  };

  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    cli_supervisor_report_merge(&all, &parts[i]);
  ck_assert_uint_eq(all.what, CLI_REPORT_STARTED | CLI_REPORT_ACTED |
                                  CLI_REPORT_STOPPED | CLI_REPORT_ENDED);
  ck_assert_int_eq(all.child, 4711);
  ck_assert_int_eq(all.signal, SIGTSTP);
  ck_assert_int_eq(all.status, 0x700);
  ck_assert_uint_eq(all.action_bits,
                    1u << CLI_ACTION_STOP | 1u << CLI_ACTION_CONT);
  /* The receiver takes STOP to be before CONT. So a STOP that follows a CONT
     removes it. */
  cli_supervisor_report_merge(&all, &parts[1]);
  ck_assert_uint_eq(all.action_bits, 1u << CLI_ACTION_STOP);
}
END_TEST

static int unread_bytes(int fd)
{
  int bytes;

  ck_assert_int_eq(ioctl(fd, FIONREAD, &bytes), 0);
  return bytes;
}

/* Stops COMMAND, waits for the report of that, and continues COMMAND. Returns
   false if no report arrives within 500 ms: the socket has no room. */
static bool stop_and_await_report(const command_run *s, pid_t pid)
{
  int before = unread_bytes(s->supervisor.fd);
  bool reported = false;

  kill(pid, SIGSTOP);
  for (int ms = 0; ms < 500 && !reported; ms++) {
    usleep(1000);
    reported = unread_bytes(s->supervisor.fd) > before;
  }
  kill(pid, SIGCONT);
  return reported;
}

static char process_state(pid_t pid)
{
  char path[32], stat[256] = "";

  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *f = fopen(path, "r");

  ck_assert_ptr_nonnull(f);
  ck_assert_ptr_nonnull(fgets(stat, sizeof stat, f));
  fclose(f);
  const char *name_end = strrchr(stat, ')');

  ck_assert_ptr_nonnull(name_end);
  return name_end[2];
}

/* Waits until COMMAND is a zombie and the supervisor waits for input. Then it
 * has tried to send all its reports. */
static void await_idle_supervisor(const command_run *s, pid_t command)
{
  int idle = 0;

  while (process_state(command) != 'Z')
    usleep(1000);
  while (idle < 10) {
    usleep(1000);
    idle = process_state(s->supervisor.pid) == 'S' ? idle + 1 : 0;
  }
}

/* COMMAND is stopped again and again, until the socket has no room for another
 * report. */
START_TEST(unread_reports_do_not_block_the_supervisor)
{
  static char text[] = "echo up; while :; do sleep 600; done";
  int reported = 0;   /* stops with a report */
  int unreported = 0; /* stops without a report since the last one with it */
  int pid;
  command_run s;

  prepare_run(&s, text, CLI_ON_LOST_KILL);
  start_command(&s, LONG_LEASE_MS);
  pid = next_report(&s, CLI_REPORT_STARTED).child;
  expect_line(&s, "up");
  while (unreported < 3) {
    bool arrived = stop_and_await_report(&s, pid);

    if (arrived) {
      reported++;
      unreported = 0;
    } else {
      unreported++;
    }
  }
  ck_assert_int_gt(reported, 10);
  order_lease(&s, 150, 100);
  expect_line(&s, NO_MORE_LINES);
  await_idle_supervisor(&s, pid);
  cli_supervisor_report all = {0};

  while ((all.what & CLI_REPORT_NONE_LEFT) == 0) {
    struct pollfd ready = {s.supervisor.fd, POLLIN, 0};
    cli_supervisor_report more;

    ck_assert_int_eq(poll(&ready, 1, 10000), 1);
    ck_assert_int_eq(cli_supervisor_receive(&s.supervisor, &more),
                     CLI_RECEIVED_REPORT);
    cli_supervisor_report_merge(&all, &more);
  }
  ck_assert_int_eq(WTERMSIG(all.status), SIGKILL);
  end_run(&s);
}
END_TEST

/* More orders are sent than the socket holds, faster than they are read. */
START_TEST(order_behind_a_flood_of_signals_is_executed)
{
  static char text[] = "trap '' USR1 USR2 WINCH; echo up; "
                       "while :; do sleep 600; done";
  int waited = 0; /* how many orders had to wait for room in the socket */
  command_run s;

  begin_run(&s, text, CLI_ON_LOST_KILL);
  expect_line(&s, "up");
  for (int i = 0; i < 20000; i++) {
    order_signal(&s, i % 2 == 0 ? SIGUSR1 : SIGWINCH);
    if (s.supervisor.waiting.what != 0)
      waited++;
  }
  order_loss(&s);
  ck_assert_int_gt(waited, 0);
  while (s.supervisor.waiting.what != 0) {
    struct pollfd ready = {s.supervisor.fd, POLLOUT, 0};

    ck_assert_int_eq(poll(&ready, 1, 10000), 1);
    cli_supervisor_flush(&s.supervisor);
  }
  expect_action(&s, CLI_ACTION_KILL);
  expect_line(&s, NO_MORE_LINES);
  end_run(&s);
}
END_TEST

/* ---- the tree ------------------------------------------------------------ */

/* A tree of 40 levels. */
static char deep_tree[] =
    "t='if [ $1 = 0 ]; then echo in; exec sleep 600; fi; "
    "setsid sh -c \"$t\" x $(($1 - 1)) & wait'; export t; "
    "sh -c \"$t\" x 40";

/* Each level of the tree is a session of its own, so the levels are killed one
 * after the other. */
START_TEST(deep_tree_of_processes_is_killed_within_a_second)
{
  command_run s;

  if (!adopts_orphans())
    SKIP_TEST(NO_SUBREAPER);
  begin_run(&s, deep_tree, CLI_ON_LOST_KILL);
  expect_line(&s, "in");
  int64_t before = cli_boottime_ms();

  order_loss(&s);
  expect_action(&s, CLI_ACTION_KILL);
  expect_line(&s, NO_MORE_LINES);
  ck_assert_int_lt(cli_boottime_ms() - before, 1000);
  end_run(&s);
}
END_TEST

/* The process that writes is in another session than COMMAND. */
static char writers[] =
    "setsid sh -c 'while :; do echo on; sleep 0.01; done' & "
    "while :; do sleep 600; done";

START_TEST(stop_reaches_processes_outside_the_group_and_ignores_sigcont)
{
  char text[4096];
  command_run s;

  if (!use_cgroup())
    SKIP_TEST(NO_CGROUP);
  prepare_run(&s, writers, CLI_ON_LOST_STOP);
  start_command(&s, LONG_LEASE_MS);
  int pid = next_report(&s, CLI_REPORT_STARTED).child;

  expect_line(&s, "on");
  order_lease(&s, MARGIN_MS, MARGIN_MS); /* unsure at once */
  expect_action(&s, CLI_ACTION_STOP);
  fcntl(s.out[0], F_SETFL, O_NONBLOCK);
  while (writes(&s, 300))
    ck_assert_int_ge(read(s.out[0], text, sizeof text), 1);
  order_signal(&s, SIGCONT); /* to the group, as the shell's fg sends it */
  kill(pid, SIGCONT);        /* and to COMMAND itself */
  ck_assert(!writes(&s, 300));
  order_lease(&s, LONG_LEASE_MS, 100);
  ck_assert(writes(&s, 10000));
  order_signal(&s, SIGKILL);
  close(s.supervisor.fd);
  s.supervisor.fd = -1;
  end_run(&s);
}
END_TEST

/* The supervisor enters the cgroup for the fork, and leaves it again. */
START_TEST(command_is_in_its_cgroup_without_clone3)
{
  static char text[] = "echo up; sleep 600";
  command_run s;

  if (!use_cgroup())
    SKIP_TEST(NO_CGROUP);
  if (!forbid_call(SYS_clone3))
    SKIP_TEST(NO_SECCOMP);
  prepare_run(&s, text, CLI_ON_LOST_STOP);
  start_command(&s, LONG_LEASE_MS);
  int pid = next_report(&s, CLI_REPORT_STARTED).child;

  ck_assert(!s.without_cgroup);
  cli_cgroup_open(&s.cgroup);
  ck_assert(cli_cgroup_contains(&s.cgroup, pid));
  ck_assert(!cli_cgroup_contains(&s.cgroup, s.supervisor.pid));
  ck_assert(!cli_cgroup_contains(&s.cgroup, getpid()));
  order_signal(&s, SIGKILL);
  end_run(&s);
}
END_TEST

/* The orphan is in another session than COMMAND. */
START_TEST(supervisor_needs_no_signalfd_and_no_timerfd)
{
  static char text[] = "(setsid sleep 600 &); echo on; exit 7";
  static char stubborn[] = "trap '' TERM; echo on; while :; do sleep 1; done";
  command_run s;

  if (!forbid_call(SYS_signalfd4) || !forbid_call(SYS_timerfd_create))
    SKIP_TEST(NO_SECCOMP);
  begin_run(&s, text, CLI_ON_LOST_KILL);
  expect_line(&s, "on");
  ck_assert_int_eq(WEXITSTATUS(next_report(&s, CLI_REPORT_ENDED).status), 7);
  order_lease(&s, 1000, 100);
  expect_action(&s, CLI_ACTION_KILL);
  next_report(&s, CLI_REPORT_NONE_LEFT);
  end_run(&s);
  begin_run(&s, stubborn, CLI_ON_LOST_TERM);
  expect_line(&s, "on");
  int64_t deadline = cli_boottime_ms() + 1000;

  order_lease(&s, 1000, 500);
  expect_action(&s, CLI_ACTION_TERM);
  ck_assert_int_ge(cli_boottime_ms(), deadline - 500);
  expect_action(&s, CLI_ACTION_KILL);
  ck_assert_int_ge(cli_boottime_ms(), deadline - 50);
  ck_assert_int_eq(WTERMSIG(next_report(&s, CLI_REPORT_ENDED).status), SIGKILL);
  next_report(&s, CLI_REPORT_NONE_LEFT);
  expect_line(&s, NO_MORE_LINES);
  end_run(&s);
}
END_TEST

/* Leaves bytes on the stack that the next function may wrongly read. */
__attribute__((noinline)) static void fill_stack(char with)
{
  volatile char bytes[8192];

  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = with;
}

START_TEST(state_and_parent_are_those_of_the_process)
{
  pid_t parent = 0;
  pid_t busy = fork();

  if (busy == 0)
    for (;;)
      ;
  fill_stack(')');
  char state = cli_proc_state(busy, &parent);

  kill(busy, SIGKILL);
  ck_assert_int_eq(waitpid(busy, NULL, 0), busy);
  ck_assert_int_eq(state, 'R');
  ck_assert_int_eq(parent, getpid());
  ck_assert_int_eq(cli_proc_state(INT32_MAX, &parent), '\0');
}
END_TEST

SUITE("supervisor", command_gets_its_environment_and_its_status_is_reported,
      command_that_cannot_be_executed_is_reported_with_its_errno,
      a_lease_that_has_run_out_starts_nothing,
      supervisor_whose_latchkey_ends_before_the_start_runs_nothing,
      a_supervisor_that_waits_uses_no_processor_time,
      a_supervisor_without_descriptors_for_its_signals_and_its_clock_ends,
      end_of_latchkey_kills_all_descendants,
      exit_order_leaves_descendants_running,
      exit_order_is_executed_while_reports_are_unread,
      exit_order_for_a_full_socket_is_executed,
      process_id_of_the_command_is_not_reused_before_the_supervisor_ends,
      signals_reach_each_process_of_the_group,
      term_and_kill_end_all_when_the_lease_runs_out,
      longest_hold_of_a_millisecond_ends_the_command,
      a_lost_lock_ends_the_command_at_once, end_of_the_supervisor_is_reported,
      a_command_is_executed_before_it_is_stopped,
      supervisor_that_died_is_noticed_after_its_reports_are_read,
      stopped_command_continues_with_a_new_lease, stop_kills_without_a_cgroup,
      stop_kills_a_command_outside_of_the_cgroup,
      stop_kills_a_descendant_outside_of_the_cgroup,
      message_waits_for_room_but_not_for_an_ended_process,
      waiting_orders_are_merged_and_later_ones_prevail,
      waiting_reports_are_merged_and_later_ones_prevail,
      unread_reports_do_not_block_the_supervisor,
      order_behind_a_flood_of_signals_is_executed,
      deep_tree_of_processes_is_killed_within_a_second,
      stop_reaches_processes_outside_the_group_and_ignores_sigcont,
      command_is_in_its_cgroup_without_clone3,
      supervisor_needs_no_signalfd_and_no_timerfd,
      state_and_parent_are_those_of_the_process)
