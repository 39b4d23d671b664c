/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/supervisor_main.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/system_clocks.h"
#include "cli/run/descendants.h"
#include "cli/run/job.h"
#include "cli/run/supervisor_protocol.h"
#include "cli/session/signal_queue.h"
#include "net/clock.h"

/* ---- inherited descriptors ----------------------------------------------- */

/* Without /proc, only the descriptors below this number are closed. */
enum { MAX_FDS = 1024 };

static bool is_kept_fd(int fd, const int *keep, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (keep[i] == fd)
      return true;
  return fd <= STDERR_FILENO;
}

/* inherited_fds_close() closes the descriptor `null` with the others. */
static void replace_standard_fds(void)
{
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);

  if (null < 0)
    return;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    dup2(null, fd);
}

/* Closes all descriptors but those in `keep`, which may contain -1. The
   descriptors 0, 1 and 2 become /dev/null. */
static void inherited_fds_close(const int *keep, size_t count)
{
  replace_standard_fds();
  DIR *dir = opendir("/proc/self/fd");
  struct dirent *entry;

  if (dir == NULL) {
    for (int fd = STDERR_FILENO + 1; fd < MAX_FDS; fd++)
      if (!is_kept_fd(fd, keep, count))
        close(fd);
    return;
  }
  while ((entry = readdir(dir)) != NULL) {
    int fd = (int)strtol(entry->d_name, NULL, 10);

    if (!is_kept_fd(fd, keep, count) && fd != dirfd(dir))
      close(fd);
  }
  closedir(dir);
}

/* ---- the supervisor ------------------------------------------------------ */

/* Size limit of the first order with the environment of COMMAND: no larger
   message fits the socket. */
enum { MAX_ORDER_BYTES = 256 * 1024 };

typedef struct supervisor {
  cli_job job;
  cli_kill_schedule schedule;
  int fd;                  /* the socket to latchkey */
  cli_signal_queue deaths; /* SIGCHLD */
  lk_clock clock;          /* its timer is for `next_at` */
  int64_t next_at;         /* of the next action; INT64_MAX: none is planned */
  bool command_ended; /* COMMAND stays a zombie then, so that its process id and
                         group id are not reused */
  bool command_stopped; /* by a signal */
  bool none_left_reported;
  int64_t killing_since; /* the first round of KILL; see kill_again() */
  int64_t kill_at;       /* the next round; INT64_MAX: none */
  int64_t kill_pause_ms; /* the last pause between two rounds; 0: none yet */
  bool refusal_reported; /* of KILL */
  cli_supervisor_report waiting; /* the report for which the socket had no room;
                                    `what` is 0 if there is none */
} supervisor;

/* ---- reports ------------------------------------------------------------- */

static void flush_report(supervisor *s)
{
  if (s->waiting.what != 0 &&
      cli_supervisor_socket_send(s->fd, &s->waiting, sizeof s->waiting))
    s->waiting = (cli_supervisor_report){0};
}

static void send_report(supervisor *s, cli_supervisor_report report)
{
  cli_supervisor_report_merge(&s->waiting, &report);
  flush_report(s);
}

static void send_not_started(supervisor *s, int error)
{
  send_report(s, (cli_supervisor_report){.what = CLI_REPORT_NOT_STARTED,
                                         .error = error});
}

/* ---- the end of the supervisor ------------------------------------------- */

/* Exits after CLI_ORDER_EXIT, or before COMMAND was started. */
static _Noreturn void exit_supervisor(supervisor *s)
{
  /* No other process would continue the stopped ones. */
  if (s->schedule.stage == CLI_STAGE_STOPPED)
    cli_job_continue(&s->job);
  cli_cgroup_remove(&s->job.cgroup);
  _exit(0);
}

/* Called when latchkey has ended without CLI_ORDER_EXIT: nothing renews the
   lease. */
static _Noreturn void kill_job_and_exit(supervisor *s)
{
  if (s->job.pid == 0)
    exit_supervisor(s);
  cli_job_kill(&s->job);
  cli_cgroup_remove(&s->job.cgroup);
  _exit(0);
}

/* ---- the start of COMMAND ------------------------------------------------ */

/* When COMMAND closes its end of a pipe, the reader must see end-of-file. So
   the supervisor does not keep inherited descriptors open. */
static void close_inherited_fds(const supervisor *s)
{
  const int keep[] = {s->fd, s->deaths.fd, s->clock.timer_fd,
                      s->job.exec_result, s->job.cgroup.fd};

  inherited_fds_close(keep, sizeof keep / sizeof keep[0]);
}

/* A variable can occur twice in the environment, and shells take the last one;
   putenv() replaces the first. */
static void set_variable(char *assignment)
{
  char *equals = strchr(assignment, '=');

  *equals = '\0';
  unsetenv(assignment);
  *equals = '=';
  putenv(assignment);
}

/* Sets the variables of an order: "NAME=VALUE", each followed by a NUL. */
static void set_environment(char *variables, size_t len)
{
  char *end = variables + len;

  for (char *s = variables; s < end; s += strlen(s) + 1)
    set_variable(s);
}

static void start_command(supervisor *s, const cli_order *order)
{
  s->schedule.lease_deadline = order->lease_deadline;
  s->schedule.margin_ms = order->margin_ms;
  if (order->max_hold_ms > 0)
    s->schedule.max_hold_ends_at = cli_boottime_ms() + order->max_hold_ms;
  if (cli_boottime_ms() >= order->lease_deadline) {
    send_not_started(s, ETIMEDOUT);
    return;
  }
  int error = cli_job_start(&s->job);

  /* Processes that are stopped one by one can continue one another. */
  if (s->schedule.policy == CLI_ON_LOST_STOP && !cli_job_has_cgroup(&s->job))
    s->schedule.policy = CLI_ON_LOST_KILL;
  if (error == 0)
    close_inherited_fds(s);
  else
    send_not_started(s, error);
}

/* Waits for the first order. putenv() keeps pointers into the received bytes,
   so they are not freed. */
static void wait_for_start(supervisor *s)
{
  char *bytes = malloc(MAX_ORDER_BYTES);
  cli_order order;
  ssize_t n;

  if (bytes == NULL)
    _exit(1);
  do
    n = recv(s->fd, bytes, MAX_ORDER_BYTES, 0);
  while (n < 0 && errno == EINTR);
  if (n < (ssize_t)sizeof order) /* latchkey has ended */
    exit_supervisor(s);
  memcpy(&order, bytes, sizeof order);
  if ((order.what & CLI_ORDER_START) == 0) /* it is CLI_ORDER_EXIT */
    exit_supervisor(s);
  set_environment(bytes + sizeof order, (size_t)n - sizeof order);
  start_command(s, &order);
}

/* ---- orders -------------------------------------------------------------- */

static void report_refusal(supervisor *s, int number, cli_refusal refusal)
{
  send_report(s, (cli_supervisor_report){.what = CLI_REPORT_REFUSED,
                                         .refused = refusal.pid,
                                         .refused_signal = number,
                                         .refused_error = refusal.error});
}

static void report_if_refused(supervisor *s, int number, int error)
{
  if (error == EPERM)
    report_refusal(s, number, (cli_refusal){.pid = s->job.pid, .error = error});
}

/* A stopped process acts on a signal only when it is continued. */
static void continue_if_stopped(supervisor *s)
{
  if (s->command_stopped && !s->none_left_reported)
    (void)cli_job_signal(&s->job, SIGCONT);
}

static void pass_signals_on(supervisor *s, uint64_t signals)
{
  if (s->none_left_reported)
    return;
  for (int number = 1; (signals >> number) != 0; number++) {
    bool is_set = ((signals >> number) & 1) != 0;

    if (!is_set)
      continue;
    report_if_refused(s, number, cli_job_signal(&s->job, number));
    if (cli_signal_may_end_command(number))
      continue_if_stopped(s);
  }
}

static void receive_order(supervisor *s)
{
  cli_order order;
  ssize_t n = recv(s->fd, &order, sizeof order, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n < (ssize_t)sizeof order)
    kill_job_and_exit(s);
  if ((order.what & CLI_ORDER_LEASE) != 0) {
    s->schedule.lease_deadline = order.lease_deadline;
    s->schedule.margin_ms = order.margin_ms;
  }
  if ((order.what & CLI_ORDER_LOST) != 0)
    cli_kill_schedule_lock_lost(&s->schedule, cli_boottime_ms());
  if ((order.what & CLI_ORDER_SIGNAL) != 0)
    pass_signals_on(s, order.signals);
  if ((order.what & CLI_ORDER_SIGNALLED) != 0)
    continue_if_stopped(s);
  if ((order.what & CLI_ORDER_EXIT) != 0)
    exit_supervisor(s);
}

/* ---- ended and stopped processes ----------------------------------------- */

static void report_exec_result(supervisor *s)
{
  int error = cli_job_read_exec_result(&s->job);

  if (error != 0)
    send_report(s, (cli_supervisor_report){.what = CLI_REPORT_NOT_EXECUTED,
                                           .error = error});
  else
    send_report(s, (cli_supervisor_report){
                       .what = CLI_REPORT_STARTED |
                               (cli_job_has_cgroup(&s->job)
                                    ? 0
                                    : (unsigned)CLI_REPORT_NO_CGROUP),
                       .child = s->job.pid});
}

static void report_command_end(supervisor *s, int status)
{
  s->command_ended = true;
  cli_kill_schedule_command_ended(&s->schedule);
  send_report(
      s, (cli_supervisor_report){.what = CLI_REPORT_ENDED, .status = status});
}

/* Converts the result of waitid() to a status of waitpid(): the exit code is in
   the second byte, or the signal in the first one. */
static int to_wait_status(const siginfo_t *info)
{
  enum { CORE_DUMPED = 0x80 };

  if (info->si_code == CLD_EXITED)
    return (info->si_status & 0xff) << 8;
  return info->si_status | (info->si_code == CLD_DUMPED ? CORE_DUMPED : 0);
}

/* Looks again whether all descendants are stopped, and stops new ones. */
static void stop_command_again(supervisor *s)
{
  if (s->schedule.stage == CLI_STAGE_STOPPED)
    s->schedule.all_stopped = cli_job_stop(&s->job, s->command_ended);
}

/* Checks whether COMMAND was stopped, was continued or has ended. */
static void check_command_state(supervisor *s)
{
  siginfo_t info = {.si_pid = 0};
  id_t child = (id_t)s->job.pid;

  while (waitid(P_PID, child, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         info.si_pid != 0) {
    s->command_stopped = info.si_code != CLD_CONTINUED;
    if (s->command_stopped)
      send_report(s, (cli_supervisor_report){.what = CLI_REPORT_STOPPED,
                                             .signal = info.si_status});
    info.si_pid = 0;
  }
  info.si_pid = 0;
  if (!s->command_ended &&
      waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0)
    report_command_end(s, to_wait_status(&info));
}

/* Reaps all dead children; COMMAND only after its end was reported. For use
   where children cannot be listed. Returns whether a child is left. */
static bool reap_dead_children(supervisor *s)
{
  for (;;) {
    siginfo_t info = {.si_pid = 0};

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
      return false;
    bool none_is_dead = info.si_pid == 0;
    bool is_command = info.si_pid == s->job.pid && !s->job.reaped;

    if (none_is_dead || (is_command && !s->command_ended))
      return true;
    waitpid(info.si_pid, NULL, WNOHANG);
    if (is_command)
      s->job.reaped = true;
  }
}

/* `all_found`: no descendant can have been overlooked. */
static void report_none_left(supervisor *s, bool all_found)
{
  bool was_killed = s->schedule.stage == CLI_STAGE_KILLED;

  if (!s->command_ended || s->none_left_reported)
    return;
  s->none_left_reported = true;
  if (was_killed && !all_found)
    send_report(s, (cli_supervisor_report){.what = CLI_REPORT_NOT_FOUND});
  send_report(s, (cli_supervisor_report){.what = CLI_REPORT_NONE_LEFT});
}

static void handle_child_changes(supervisor *s)
{
  siginfo_t ignored; /* the children are asked for by waitid() */

  cli_signal_queue_take(&s->deaths, &ignored);
  if (s->job.pid == 0)
    return;
  check_command_state(s);
  cli_descendants_left left = cli_descendants_reap(s->job.pid);

  if (left == CLI_LEFT_NONE ||
      (left == CLI_LEFT_UNKNOWN && !reap_dead_children(s)))
    report_none_left(s, cli_job_finds_orphans(&s->job));
  else if (s->schedule.stage == CLI_STAGE_KILLED)
    s->kill_at = cli_boottime_ms(); /* the children of the dead are found now */
}

/* ---- the kill schedule --------------------------------------------------- */

static void report_action(supervisor *s, cli_action action)
{
  send_report(s, (cli_supervisor_report){.what = CLI_REPORT_ACTED,
                                         .action_bits = 1u << action});
}

/* Does a round of KILL, and plans the next one. In between orders are
   received. */
static void kill_again(supervisor *s, int64_t now)
{
  bool is_first = s->kill_pause_ms == 0;
  cli_killed killed;
  cli_descendants_left left = cli_job_kill_round(&s->job, &killed);
  bool gives_up =
      left == CLI_LEFT_UNKNOWN && now - s->killing_since >= CLI_MAX_KILL_MS;

  if (killed.refused.pid != 0 && !s->refusal_reported) {
    s->refusal_reported = true;
    report_refusal(s, SIGKILL, killed.refused);
  }
  if (is_first)
    report_action(s, CLI_ACTION_KILL);
  if (!killed.reaped)
    check_command_state(s);
  else if (!s->command_ended)
    report_command_end(s, killed.status);
  s->kill_pause_ms = cli_descendants_kill_pause(s->kill_pause_ms);
  s->kill_at = now + s->kill_pause_ms;
  if (left == CLI_LEFT_NONE || gives_up)
    report_none_left(s, !gives_up && cli_job_finds_orphans(&s->job));
}

static void act_on_command(supervisor *s, cli_action action)
{
  switch (action) {
  case CLI_ACTION_NONE: return;
  case CLI_ACTION_TERM:
    report_if_refused(s, SIGTERM, cli_job_terminate(&s->job));
    break;
  case CLI_ACTION_STOP: stop_command_again(s); break;
  case CLI_ACTION_CONT: cli_job_continue(&s->job); break;
  case CLI_ACTION_KILL:
    s->killing_since = cli_boottime_ms();
    kill_again(s, s->killing_since);
    return;
  }
  report_action(s, action);
}

/* ---- time and the loop --------------------------------------------------- */

/* Interval in which it is checked whether all descendants are stopped. */
enum { RESTOP_MS = 20 };

/* Interval in which stopped descendants are checked: another process can move
   one out of the cgroup. */
enum { RECHECK_MS = 100 };

static int64_t earlier_time(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int64_t next_stop_check(const supervisor *s, int64_t now)
{
  if (s->schedule.stage != CLI_STAGE_STOPPED)
    return INT64_MAX;
  return now + (s->schedule.all_stopped ? RECHECK_MS : RESTOP_MS);
}

/* Does all actions of the kill schedule that are due, and sets the timer for
   the next one. */
static void follow_schedule(supervisor *s)
{
  int64_t next_at = INT64_MAX;
  cli_action action = CLI_ACTION_NONE;
  int64_t now = cli_boottime_ms();

  if (s->job.pid != 0 && !s->none_left_reported) {
    stop_command_again(s);
    if (s->schedule.stage == CLI_STAGE_KILLED && now >= s->kill_at)
      kill_again(s, now);
    do {
      action = cli_kill_schedule_next(&s->schedule, now, &next_at);
      act_on_command(s, action);
      now = cli_boottime_ms();
    } while (action != CLI_ACTION_NONE);
    next_at = earlier_time(next_at, next_stop_check(s, now));
    if (!s->none_left_reported)
      next_at = earlier_time(next_at, s->kill_at);
  }
  s->next_at = next_at;
  lk__clock_set_timer(&s->clock, next_at);
}

/* Without a timerfd, poll() waits for the next action. Its clock may stand
   still while the machine is suspended, so it waits a second at most. */
enum { MAX_POLL_MS = 1000 };

/* Returns the time limit for poll(); -1: none. */
static int poll_timeout_ms(const supervisor *s)
{
  const int no_timeout = -1;
  int max_ms = s->deaths.fd < 0 ? CLI_SIGNAL_POLL_MS : MAX_POLL_MS;

  if (s->deaths.fd >= 0 && s->clock.timer_fd >= 0)
    return no_timeout;
  int64_t now = cli_boottime_ms();
  int64_t left_ms = s->next_at > now ? s->next_at - now : 0;

  return left_ms < max_ms ? (int)left_ms : max_ms;
}

/* Whether no descriptor tells of ended children. The result of exec() must have
   been read before: it is reported before the end of COMMAND. */
static bool must_look_for_deaths(const supervisor *s)
{
  return s->deaths.fd < 0 && s->job.exec_result < 0;
}

static void run_supervisor_loop(supervisor *s)
{
  enum { LATCHKEY, SIGCHLD_FD, EXEC_RESULT, TIMER, POLL_COUNT };

  for (;;) {
    bool report_waits = s->waiting.what != 0;
    struct pollfd fds[POLL_COUNT] = {
        [LATCHKEY] = {s->fd, report_waits ? POLLIN | POLLOUT : POLLIN, 0},
        [SIGCHLD_FD] = {s->deaths.fd, POLLIN, 0},
        [EXEC_RESULT] = {s->job.exec_result, POLLIN, 0},
        [TIMER] = {s->clock.timer_fd, POLLIN, 0}};

    follow_schedule(s);
    if (poll(fds, POLL_COUNT, poll_timeout_ms(s)) < 0)
      continue;
    flush_report(s);
    /* If COMMAND has ended, both descriptors are readable. */
    if (fds[EXEC_RESULT].revents != 0)
      report_exec_result(s);
    else if (fds[SIGCHLD_FD].revents != 0 || must_look_for_deaths(s))
      handle_child_changes(s);
    if ((fds[LATCHKEY].revents & ~POLLOUT) != 0)
      receive_order(s);
  }
}

void cli_supervisor_main(const cli_job *job, cli_on_lost on_lost, int fd)
{
  supervisor s = {.job = *job, .fd = fd, .kill_at = INT64_MAX};
  sigset_t deaths;

  /* If this process is stopped when latchkey is killed, the kernel continues
     it. */
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  s.job.exec_result = -1;
  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  s.schedule.policy = on_lost;
  /* Without CLOCK_BOOTTIME, cli_boottime_ms() reads CLOCK_MONOTONIC, as
     `clock` does then. */
  if (cli_signal_queue_open(&s.deaths, &deaths) != 0 ||
      lk__clock_open(&s.clock) != 0)
    _exit(1);
  s.job.adopts_orphans = cli_descendants_adopt();
  wait_for_start(&s);
  run_supervisor_loop(&s);
  _exit(1);
}
