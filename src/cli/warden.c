/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guard.h"
#include "cli/tree.h"

/* An order with the largest environment that the socket carries. */
enum { MOST_BYTES = 256 * 1024 };

typedef struct warden {
  cli_job job;
  cli_lease lease;
  int fd;      /* to latchkey */
  int deaths;  /* a signalfd for SIGCHLD */
  int report;  /* from a child that is being executed; -1: none */
  pid_t child; /* 0: not started */
  cli_ended ended;
  bool told_ended;
  bool told_empty;
} warden;

static void tell(const warden *w, cli_news_type type, int value)
{
  cli_news news = {.type = type, .value = value};

  send(w->fd, &news, sizeof news, MSG_NOSIGNAL);
}

/* The group to signal; 0: there is only the child. */
static pid_t group_of(const warden *w)
{
  return w->job.foreground ? 0 : w->child;
}

/* The child is not waited for before it ended, so its number is its own, and
   that of its group while anything is left in it. */
static void signal_it(const warden *w, int number)
{
  if (w->child == 0)
    return;
  if (group_of(w) != 0 && !w->told_empty && kill(-w->child, number) == 0)
    return;
  if (!w->ended.known)
    kill(w->child, number);
}

static void tell_ends(warden *w, bool empty)
{
  if (w->ended.known && !w->told_ended) {
    w->told_ended = true;
    tell(w, CLI_NEWS_ENDED, w->ended.status);
  }
  if (w->told_ended && empty && !w->told_empty) {
    w->told_empty = true;
    tell(w, CLI_NEWS_EMPTY, 0);
  }
}

static void end_all(warden *w)
{
  w->ended.child = w->child;
  cli_tree_end(&w->job.cgroup, group_of(w), &w->ended);
}

/* latchkey is gone, or said goodbye. */
static _Noreturn void leave(warden *w, bool killing)
{
  if (killing && w->child != 0)
    end_all(w);
  else if (w->lease.stage == CLI_STAGE_STOPPED)
    signal_it(w, SIGCONT);
  cli_cgroup_remove(&w->job.cgroup);
  _exit(0);
}

static bool is_ours(const warden *w, int fd)
{
  return fd <= 2 || fd == w->fd || fd == w->deaths || fd == w->report ||
         fd == w->job.cgroup.fd;
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
    w->lease.over_at = cli_guard_clock() + order->max_hold_ms;
  if (cli_guard_clock() >= order->lease) {
    tell(w, CLI_NEWS_FAILED, ETIMEDOUT);
    return;
  }
  cli_cgroup_make(&w->job.cgroup);
  pid_t pid = cli_child_start(&w->job, &w->report);

  if (pid < 0) {
    tell(w, CLI_NEWS_FAILED, errno);
    return;
  }
  w->child = pid;
  w->ended.child = pid;
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
  if (order.type != CLI_ORDER_START)
    leave(w, false);
  set_environment(bytes + sizeof order, (size_t)n - sizeof order);
  start(w, &order);
}

static void obey(warden *w)
{
  cli_order order;
  ssize_t n = recv(w->fd, &order, sizeof order, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n < (ssize_t)sizeof order)
    leave(w, true);
  switch (order.type) {
  case CLI_ORDER_LEASE: w->lease.until = order.lease; break;
  case CLI_ORDER_LOST: cli_lease_lose(&w->lease, cli_guard_clock()); break;
  case CLI_ORDER_SIGNAL: signal_it(w, order.signal); break;
  case CLI_ORDER_BYE: leave(w, false);
  case CLI_ORDER_START: break;
  }
}

/* The child has been executed, or could not be. */
static void hear_child(warden *w)
{
  int error;
  ssize_t n = read(w->report, &error, sizeof error);

  close(w->report);
  w->report = -1;
  if (n == (ssize_t)sizeof error)
    tell(w, CLI_NEWS_NOT_STARTED, error);
  else
    tell(w, CLI_NEWS_STARTED, (int)w->child);
}

static void reap(warden *w)
{
  struct signalfd_siginfo info;
  ssize_t n = read(w->deaths, &info, sizeof info);
  int status;
  pid_t pid;

  (void)n;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (pid != w->child || w->ended.known)
      continue;
    if (WIFSTOPPED(status)) {
      tell(w, CLI_NEWS_STOPPED, WSTOPSIG(status));
    } else {
      w->ended.known = true;
      w->ended.status = status;
      cli_lease_hurry(&w->lease);
    }
  }
  tell_ends(w, pid < 0 && errno == ECHILD);
}

static void act(warden *w, cli_act what)
{
  switch (what) {
  case CLI_ACT_NONE: return;
  case CLI_ACT_TERM:
    signal_it(w, SIGTERM);
    signal_it(w, SIGCONT); /* one that is stopped would not hear it */
    break;
  case CLI_ACT_STOP: signal_it(w, SIGSTOP); break;
  case CLI_ACT_CONT: signal_it(w, SIGCONT); break;
  case CLI_ACT_KILL: break;
  }
  tell(w, CLI_NEWS_ACTED, (int)what);
  if (what == CLI_ACT_KILL) {
    end_all(w);
    tell_ends(w, true);
  }
}

/* Do what the lease asks for; returns how long there is to wait, -1: for
   ever. */
static int mind_lease(warden *w)
{
  int64_t next = INT64_MAX;
  cli_act what = CLI_ACT_NONE;

  if (w->child == 0 || w->told_empty)
    return -1;
  do {
    what = cli_lease_step(&w->lease, cli_guard_clock(), &next);
    act(w, what);
  } while (what != CLI_ACT_NONE);
  int64_t left = next - cli_guard_clock();

  if (next == INT64_MAX)
    return -1;
  return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void run(warden *w)
{
  for (;;) {
    struct pollfd fds[3] = {
        {w->fd, POLLIN, 0}, {w->deaths, POLLIN, 0}, {w->report, POLLIN, 0}};
    int wait_ms = mind_lease(w);

    if (poll(fds, 3, wait_ms) < 0)
      continue;
    /* First whether it was started, then how it ended. */
    if (fds[2].revents != 0)
      hear_child(w);
    else if (fds[1].revents != 0)
      reap(w);
    if (fds[0].revents != 0)
      obey(w);
  }
}

void cli_warden(const cli_job *job, cli_policy on_lost, int fd)
{
  warden w = {.job = *job, .fd = fd, .report = -1};
  sigset_t deaths;

  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  w.lease.policy = on_lost;
  w.deaths = signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK);
  if (w.deaths < 0)
    _exit(1);
  cli_tree_adopt();
  wait_for_start(&w);
  run(&w);
  _exit(1);
}
