/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/run/descendants.h"
#include "cli/run/proc_children.h"

bool cli_descendants_adopt(void)
{
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* ---- dead children ------------------------------------------------------- */

typedef struct reap_counts {
  pid_t command; /* this child is not reaped */
  size_t reaped; /* number of children that were reaped */
  size_t left;   /* number of children that run */
} reap_counts;

static bool is_dead_child(pid_t child)
{
  siginfo_t info = {.si_pid = 0};

  return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

static void reap_child(pid_t child, void *arg)
{
  reap_counts *c = arg;

  if (child == c->command) {
    if (!is_dead_child(child))
      c->left++;
    return;
  }
  pid_t got = waitpid(child, NULL, WNOHANG);

  if (got > 0)
    c->reaped++;
  else if (got == 0)
    c->left++;
}

cli_descendants_left cli_descendants_reap(pid_t command)
{
  reap_counts c;
  bool listed;

  /* If a child is reaped meanwhile, the list can lack another child: it is read
     again. */
  do {
    c = (reap_counts){.command = command};
    listed = cli_proc_children_each(getpid(), reap_child, &c);
  } while (c.reaped > 0);
  if (!listed)
    return CLI_LEFT_UNKNOWN;
  return c.left > 0 ? CLI_LEFT_SOME : CLI_LEFT_NONE;
}

/* ---- stop and continue --------------------------------------------------- */

/* A process that has ended during the walk may have had children that were not
   found. It stays in the list as a zombie, and its group is checked, too. */
static bool all_descendants_are_in(const cli_cgroup *cgroup, pid_t ended)
{
  cli_pids found = {.at = NULL}; /* parents before their children */
  bool all_in = cli_proc_children_each(getpid(), cli_pids_add, &found);

  for (size_t i = 0; all_in && i < found.count; i++) {
    pid_t one = found.at[i]; /* cli_pids_add() can move the array */

    all_in = (one == ended || cli_cgroup_contains(cgroup, one)) &&
             cli_proc_children_each(one, cli_pids_add, &found);
  }
  all_in = all_in && !found.failed;
  cli_pids_free(&found);
  return all_in;
}

bool cli_descendants_stop(const cli_cgroup *cgroup, pid_t ended)
{
  const bool frozen = true;

  cli_cgroup_freeze(cgroup, frozen);
  return cli_cgroup_is_frozen(cgroup) && all_descendants_are_in(cgroup, ended);
}

/* ---- kill ---------------------------------------------------------------- */

/* Pauses between two rounds of KILL: each is twice as long as the one before,
   until one is not shorter than MAX_PAUSE_MS. */
enum { FIRST_PAUSE_MS = 1, MAX_PAUSE_MS = 100 };

int64_t cli_descendants_kill_pause(int64_t pause_ms)
{
  if (pause_ms == 0)
    return FIRST_PAUSE_MS;
  return pause_ms < MAX_PAUSE_MS ? 2 * pause_ms : pause_ms;
}

typedef struct kill_round {
  const cli_cgroup *cgroup;
  cli_killed *out;
} kill_round;

/* A child in the cgroup dies by the write to `cgroup.kill`. */
static void kill_child(pid_t child, void *arg)
{
  const kill_round *round = arg;
  bool refused = kill(child, SIGKILL) != 0 && errno == EPERM;

  if (is_dead_child(child))
    return;
  if (refused && !cli_cgroup_contains(round->cgroup, child))
    round->out->refused = (cli_refusal){.pid = child, .error = EPERM};
  else
    round->out->others_left = true;
}

void cli_descendants_await_death(int64_t max_wait_ms)
{
  struct timespec t = {.tv_sec = 0, .tv_nsec = (long)max_wait_ms * 1000000};
  sigset_t deaths;

  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  sigtimedwait(&deaths, NULL, &t);
}

/* Reaps all dead children, `command` included; `out` gets its status. For use
   where children cannot be listed. Returns false if no child is left. */
static bool reap_any_child(pid_t command, cli_killed *out)
{
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid > 0 && pid == command) {
      out->reaped = true;
      out->status = status;
    }
    if (pid == 0)
      return true;
    if (pid < 0 && errno != EINTR)
      return false;
  }
}

static void kill_children(const cli_kill_scope *scope, cli_killed *out)
{
  kill_round round = {.cgroup = scope->cgroup, .out = out};

  cli_cgroup_kill(scope->cgroup);
  if (scope->command > 0 && scope->leads_group)
    kill(-scope->command, SIGKILL);
  if (!cli_proc_children_each(getpid(), kill_child, &round) &&
      scope->cgroup->fd < 0 && scope->owns_namespace)
    kill(-1, SIGKILL);
}

cli_descendants_left cli_descendants_kill_round(const cli_kill_scope *scope,
                                                cli_killed *out)
{
  *out = (cli_killed){.reaped = false};
  kill_children(scope, out);
  cli_descendants_left left = cli_descendants_reap(scope->command);

  if (left != CLI_LEFT_UNKNOWN)
    return left;
  return reap_any_child(scope->command, out) ? CLI_LEFT_UNKNOWN : CLI_LEFT_NONE;
}

bool cli_descendants_kill(const cli_kill_scope *scope, cli_killed *out)
{
  cli_kill_scope rest = *scope;
  int64_t pause_ms = 0;
  int64_t futile_ms = 0; /* sum of the pauses after rounds that reached none */

  while (futile_ms < CLI_MAX_KILL_MS) {
    cli_descendants_left left = cli_descendants_kill_round(&rest, out);

    if (left == CLI_LEFT_NONE)
      return true;
    if (out->reaped)
      rest.command = 0; /* its number may be that of another group now */
    pause_ms = cli_descendants_kill_pause(pause_ms);
    if (left == CLI_LEFT_UNKNOWN ||
        (out->refused.pid != 0 && !out->others_left))
      futile_ms += pause_ms;
    cli_descendants_await_death(pause_ms);
  }
  return false;
}
