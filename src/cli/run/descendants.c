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

bool cli_descendants_none(void)
{
  siginfo_t info;

  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0;
}

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

/* A list in which parents come before their children. */
typedef struct descendants {
  pid_t *at;
  size_t count;
  size_t cap;    /* number of entries that `at` has room for */
  bool complete; /* all descendants are in the list */
} descendants;

static void add_descendant(pid_t child, void *arg)
{
  descendants *d = arg;

  if (d->count == d->cap) {
    size_t cap = d->cap == 0 ? 64 : 2 * d->cap;
    void *at = realloc(d->at, cap * sizeof *d->at);

    if (at == NULL) {
      d->complete = false;
      return;
    }
    d->at = at;
    d->cap = cap;
  }
  d->at[d->count++] = child;
}

/* A process that has ended during the walk may have had children that were not
   found. It stays in the list as a zombie, and its group is checked, too. */
static bool all_descendants_are_in(const cli_cgroup *cgroup, pid_t ended)
{
  descendants d = {.complete = true};
  bool all_in =
      cli_proc_children_each(getpid(), add_descendant, &d) && d.complete;

  for (size_t i = 0; all_in && i < d.count; i++) {
    pid_t one = d.at[i]; /* add_descendant() can move the array */

    all_in = (one == ended || cli_cgroup_contains(cgroup, one)) &&
             cli_proc_children_each(one, add_descendant, &d) && d.complete;
  }
  free(d.at);
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

/* Time limit if children cannot be listed. */
enum { MAX_UNLISTED_MS = 1000 };

static void kill_child(pid_t child, void *arg)
{
  (void)arg;
  kill(child, SIGKILL);
}

/* Waits for the death of a child, at most `max_wait_ms`, which is less than a
   second. SIGCHLD is blocked. */
static void await_child_death(int64_t max_wait_ms)
{
  struct timespec t = {.tv_sec = 0, .tv_nsec = (long)max_wait_ms * 1000000};
  sigset_t deaths;

  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  sigtimedwait(&deaths, NULL, &t);
}

/* Reaps all dead children, `command` included; `out` gets its status. For use
   where children cannot be listed. Returns false if no child is left. */
static bool reap_any_child(pid_t command, cli_reaped *out)
{
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid > 0 && pid == command)
      *out = (cli_reaped){.known = true, .status = status};
    if (pid == 0)
      return true;
    if (pid < 0 && errno != EINTR)
      return false;
  }
}

/* `group`: the process group to kill; 0: none. */
static void kill_children(const cli_kill_scope *scope, pid_t group)
{
  cli_cgroup_kill(scope->cgroup);
  if (group > 0)
    kill(-group, SIGKILL);
  if (!cli_proc_children_each(getpid(), kill_child, NULL) &&
      scope->cgroup->fd < 0 && scope->owns_namespace)
    kill(-1, SIGKILL);
}

bool cli_descendants_kill(const cli_kill_scope *scope, cli_reaped *out)
{
  const pid_t no_group = 0;
  int64_t pause_ms = FIRST_PAUSE_MS;
  int64_t unlisted_ms = 0; /* sum of the pauses in which none were listed */

  *out = (cli_reaped){.known = false};
  while (unlisted_ms < MAX_UNLISTED_MS) {
    /* A reaped command's number may be that of another group now. */
    kill_children(scope, scope->leads_group && !out->known ? scope->command
                                                           : no_group);
    cli_descendants_left left = cli_descendants_reap(scope->command);

    if (left == CLI_LEFT_UNKNOWN && reap_any_child(scope->command, out))
      unlisted_ms += pause_ms;
    else if (left != CLI_LEFT_SOME)
      return true;
    /* Children of a dead child are now children of this process, and are killed
       in the next round. */
    await_child_death(pause_ms);
    if (pause_ms < MAX_PAUSE_MS)
      pause_ms *= 2;
  }
  return false;
}
