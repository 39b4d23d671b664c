/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/descendants.h"
#include "cli/run/supervisor.h"

/* An order with the largest environment that the socket carries. */
enum { MOST_BYTES = 256 * 1024 };

typedef struct warden {
  cli_job job;
  cli_kill_schedule lease;
  int fd;      /* to latchkey */
  int deaths;  /* a signalfd for SIGCHLD */
  int alarm;   /* a timerfd on the lease's clock */
  int report;  /* from a child that is being executed; -1: none */
  pid_t child; /* 0: not started */
  bool ended;  /* COMMAND has; it stays a zombie, so that its number and that of
                  its group stay its own */
  bool reaped; /* it does not, since children cannot be listed */
  bool told_empty;
  cli_supervisor_report waiting; /* for room in the socket */
} warden;

static void flush(warden *w)
{
  if (w->waiting.what != 0 &&
      cli_supervisor_socket_send(w->fd, &w->waiting, sizeof w->waiting))
    w->waiting = (cli_supervisor_report){0};
}

static void tell(warden *w, cli_supervisor_report news)
{
  cli_supervisor_report_merge(&w->waiting, &news);
  flush(w);
}

static void tell_failed(warden *w, int error)
{
  tell(w,
       (cli_supervisor_report){.what = CLI_REPORT_NOT_TRIED, .error = error});
}

static void signal_it(const warden *w, int number)
{
  if (w->child == 0 || w->reaped || w->told_empty)
    return;
  if (w->job.foreground)
    kill(w->child, number);
  else
    kill(-w->child, number);
}

static cli_reaped kill_descendants(const warden *w)
{
  cli_reaped reaped;

  cli_descendants_kill(&w->job.cgroup, w->reaped ? 0 : w->child,
                       !w->job.foreground, &reaped);
  return reaped;
}

/* latchkey is gone, or said goodbye. */
static _Noreturn void leave(warden *w, bool killing)
{
  if (killing && w->child != 0)
    kill_descendants(w);
  else if (w->lease.stage == CLI_STAGE_STOPPED)
    cli_descendants_continue(&w->job.cgroup);
  cli_cgroup_remove(&w->job.cgroup);
  _exit(0);
}

static bool is_ours(const warden *w, int fd)
{
  return fd <= 2 || fd == w->fd || fd == w->deaths || fd == w->alarm ||
         fd == w->report || fd == w->job.cgroup.fd;
}

/* Nothing may stay open because of us that the command closes. */
static void let_go(const warden *w)
{
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  DIR *dir = opendir("/proc/self/fd");
  struct dirent *entry;

  for (int fd = 0; fd <= 2 && null >= 0; fd++)
    dup2(null, fd);
  if (dir == NULL) {
    for (int fd = 3; fd < 1024; fd++)
      if (!is_ours(w, fd))
        close(fd);
    return;
  }
  while ((entry = readdir(dir)) != NULL) {
    int fd = (int)strtol(entry->d_name, NULL, 10);

    if (!is_ours(w, fd) && fd != dirfd(dir))
      close(fd);
  }
  closedir(dir);
}

static void set_environment(char *at, size_t len)
{
  char *end = at + len;

  for (char *s = at; s < end; s += strlen(s) + 1)
    putenv(s);
}

static void start(warden *w, const cli_order *order)
{
  w->lease.until = order->lease;
  w->lease.margin_ms = order->margin_ms;
  if (order->max_hold_ms > 0)
    w->lease.over_at = cli_boottime_ms() + order->max_hold_ms;
  if (cli_boottime_ms() >= order->lease) {
    tell_failed(w, ETIMEDOUT);
    return;
  }
  cli_cgroup_make(&w->job.cgroup);
  pid_t pid = cli_job_start(&w->job, &w->report);

  if (pid < 0) {
    tell_failed(w, errno);
    return;
  }
  w->child = pid;
  let_go(w);
}

/* Wait for the first order. Its environment stays where it was received. */
static void wait_for_start(warden *w)
{
  char *bytes = malloc(MOST_BYTES);
  cli_order order;
  ssize_t n;

  if (bytes == NULL)
    _exit(1);
  do
    n = recv(w->fd, bytes, MOST_BYTES, 0);
  while (n < 0 && errno == EINTR);
  if (n < (ssize_t)sizeof order)
    leave(w, false);
  memcpy(&order, bytes, sizeof order);
  if ((order.what & CLI_ORDER_START) == 0)
    leave(w, false);
  set_environment(bytes + sizeof order, (size_t)n - sizeof order);
  start(w, &order);
}

/* What --on-lost has stopped, `fg` and `bg` of a shell do not continue. */
static bool is_undoing(const warden *w, int number)
{
  return number == SIGCONT && w->lease.stage == CLI_STAGE_STOPPED;
}

static void pass_on(warden *w, uint64_t signals)
{
  for (int n = 1; signals >> n != 0; n++)
    if ((signals >> n & 1) != 0 && !is_undoing(w, n))
      signal_it(w, n);
}

static void obey(warden *w)
{
  cli_order order;
  ssize_t n = recv(w->fd, &order, sizeof order, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n < (ssize_t)sizeof order)
    leave(w, true);
  if ((order.what & CLI_ORDER_LEASE) != 0) {
    w->lease.until = order.lease;
    w->lease.margin_ms = order.margin_ms;
  }
  if ((order.what & CLI_ORDER_LOST) != 0)
    cli_kill_schedule_lock_lost(&w->lease, cli_boottime_ms());
  if ((order.what & CLI_ORDER_SIGNAL) != 0)
    pass_on(w, order.signals);
  if ((order.what & CLI_ORDER_EXIT) != 0)
    leave(w, false);
}

/* The child has been executed, or could not be. */
static void hear_child(warden *w)
{
  int error;
  ssize_t n = read(w->report, &error, sizeof error);

  close(w->report);
  w->report = -1;
  if (n == (ssize_t)sizeof error)
    tell(w, (cli_supervisor_report){.what = CLI_REPORT_NOT_EXECUTED,
                                    .error = error});
  else
    tell(w, (cli_supervisor_report){.what = CLI_REPORT_STARTED,
                                    .child = w->child});
}

static void tell_end(warden *w, int status)
{
  w->ended = true;
  cli_kill_schedule_command_ended(&w->lease);
  tell(w, (cli_supervisor_report){.what = CLI_REPORT_ENDED, .status = status});
}

/* What waitpid() would have given. */
static int status_of(const siginfo_t *info)
{
  if (info->si_code == CLD_EXITED)
    return (info->si_status & 0xff) << 8;
  return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

/* A child that is stopped ahead of exec() would outlive a guard that is killed
   then: it may not have asked for a signal at its parent's death yet. */
static void stop_all(warden *w)
{
  w->lease.all_stopped = w->report < 0 && cli_descendants_stop(&w->job.cgroup);
}

/* SIGCONT may have continued what --on-lost has stopped. */
static void look_again(warden *w)
{
  if (w->lease.stage == CLI_STAGE_STOPPED)
    stop_all(w);
}

/* Whether COMMAND was stopped, was continued, or has ended. */
static void look_at_command(warden *w)
{
  siginfo_t info = {.si_pid = 0};
  id_t child = (id_t)w->child;

  while (waitid(P_PID, child, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         info.si_pid != 0) {
    if (info.si_code == CLD_CONTINUED)
      look_again(w);
    else
      tell(w, (cli_supervisor_report){.what = CLI_REPORT_STOPPED,
                                      .signal = info.si_status});
    info.si_pid = 0;
  }
  info.si_pid = 0;
  if (!w->ended &&
      waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0)
    tell_end(w, status_of(&info));
}

/* Where children cannot be listed, COMMAND is waited for like others. Gives
   whether any is left. */
static bool reap_any(warden *w)
{
  pid_t pid;

  if (!w->ended)
    return true;
  while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
    w->reaped = w->reaped || pid == w->child;
  return pid == 0;
}

static void tell_empty(warden *w)
{
  if (w->ended && !w->told_empty) {
    w->told_empty = true;
    tell(w, (cli_supervisor_report){.what = CLI_REPORT_NONE_LEFT});
  }
}

static void reap(warden *w)
{
  struct signalfd_siginfo info;
  ssize_t n = read(w->deaths, &info, sizeof info);

  (void)n;
  if (w->child == 0)
    return;
  look_at_command(w);
  cli_descendants_left left = cli_descendants_reap(w->child);

  if (left == CLI_LEFT_NONE || (left == CLI_LEFT_UNKNOWN && !reap_any(w)))
    tell_empty(w);
}

static void end_all(warden *w)
{
  cli_reaped reaped = kill_descendants(w);

  if (!reaped.known)
    look_at_command(w);
  else if (!w->ended)
    tell_end(w, reaped.status);
  w->reaped = w->reaped || reaped.known;
  tell_empty(w);
}

static void act(warden *w, cli_action what)
{
  switch (what) {
  case CLI_ACTION_NONE: return;
  case CLI_ACTION_TERM:
    signal_it(w, SIGTERM);
    signal_it(w, SIGCONT); /* one that is stopped would not hear it */
    break;
  case CLI_ACTION_STOP: stop_all(w); break;
  case CLI_ACTION_CONT: cli_descendants_continue(&w->job.cgroup); break;
  case CLI_ACTION_KILL: break;
  }
  tell(w,
       (cli_supervisor_report){.what = CLI_REPORT_ACTED, .acts = 1u << what});
  if (what == CLI_ACTION_KILL)
    end_all(w);
}

/* ---- time ---------------------------------------------------------------- */

/* While not all is stopped, and where a signal can continue what is. */
enum { RESTOP_MS = 20, LOOK_MS = 100 };

static int64_t next_look(const warden *w, int64_t now)
{
  if (w->lease.stage != CLI_STAGE_STOPPED)
    return INT64_MAX;
  if (!w->lease.all_stopped)
    return now + RESTOP_MS;
  return w->job.cgroup.fd < 0 ? now + LOOK_MS : INT64_MAX;
}

/* Let the alarm ring at `at`, on the lease's clock. */
static void set_alarm(const warden *w, int64_t at)
{
  struct itimerspec when = {{0, 0}, {0, 0}};

  if (at != INT64_MAX) {
    when.it_value.tv_sec = (time_t)(at / 1000);
    when.it_value.tv_nsec = at > 0 ? at % 1000 * 1000000 : 1;
  }
  timerfd_settime(w->alarm, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Do what the lease asks for, and set the alarm for the next time. */
static void mind_lease(warden *w)
{
  int64_t next = INT64_MAX;
  cli_action what = CLI_ACTION_NONE;
  int64_t now = cli_boottime_ms();

  if (w->child != 0 && !w->told_empty) {
    look_again(w);
    do {
      what = cli_kill_schedule_next(&w->lease, now, &next);
      act(w, what);
      now = cli_boottime_ms();
    } while (what != CLI_ACTION_NONE);
    int64_t look = next_look(w, now);

    next = look < next ? look : next;
  }
  set_alarm(w, next);
}

static void run(warden *w)
{
  for (;;) {
    short events = w->waiting.what != 0 ? POLLIN | POLLOUT : POLLIN;
    struct pollfd fds[4] = {{w->fd, events, 0},
                            {w->deaths, POLLIN, 0},
                            {w->report, POLLIN, 0},
                            {w->alarm, POLLIN, 0}};

    mind_lease(w);
    if (poll(fds, 4, -1) < 0)
      continue;
    flush(w);
    /* First whether it was started, then how it ended. */
    if (fds[2].revents != 0)
      hear_child(w);
    else if (fds[1].revents != 0)
      reap(w);
    if ((fds[0].revents & ~POLLOUT) != 0)
      obey(w);
  }
}

static int open_alarm(void)
{
  int flags = TFD_CLOEXEC | TFD_NONBLOCK;
  int fd = timerfd_create(CLOCK_BOOTTIME, flags);

  return fd >= 0 ? fd : timerfd_create(CLOCK_MONOTONIC, flags);
}

void cli_supervisor_main(const cli_job *job, cli_on_lost on_lost, int fd)
{
  warden w = {.job = *job, .fd = fd, .report = -1};
  sigset_t deaths;

  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  w.lease.policy = on_lost;
  w.deaths = signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK);
  w.alarm = open_alarm();
  if (w.deaths < 0 || w.alarm < 0)
    _exit(1);
  cli_descendants_adopt();
  wait_for_start(&w);
  run(&w);
  _exit(1);
}
