/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

void cli_descendants_adopt(void)
{
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* ---- dead children ------------------------------------------------------- */

typedef struct reap_counts {
  pid_t command;
  size_t reaped;
  size_t left;
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
  pid_t got = 0;

  if (child == c->command)
    got = is_dead_child(child) ? -1 : 0;
  else
    got = waitpid(child, NULL, WNOHANG);
  c->reaped += got > 0 ? 1 : 0;
  c->left += got == 0 ? 1 : 0;
}

cli_descendants_left cli_descendants_reap(pid_t command)
{
  reap_counts c;
  bool listed;

  /* If a child was reaped, the list may have lacked another one, so it is read
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

typedef struct descendant {
  pid_t pid;
  pid_t parent;
  bool parent_waits;
} descendant;

/* Parents come before their children. */
typedef struct descendants {
  descendant *at;
  size_t count;
  size_t size;
  pid_t parent; /* parent of the entries that are added next */
  bool parent_waits;
  bool complete;
} descendants;

static void add_descendant(pid_t child, void *arg)
{
  descendants *d = arg;

  if (d->count == d->size) {
    size_t size = d->size == 0 ? 64 : 2 * d->size;
    void *more = realloc(d->at, size * sizeof *d->at);

    d->complete = d->complete && more != NULL;
    if (more == NULL)
      return;
    d->at = more;
    d->size = size;
  }
  d->at[d->count++] = (descendant){child, d->parent, d->parent_waits};
}

static void add_children(descendants *d, pid_t parent)
{
  d->parent = parent;
  if (!cli_proc_children_each(parent, add_descendant, d))
    d->complete = false;
}

/* Signals a descendant if its parent is still the same. A descendant that is
   not a child of this process may be dead, and its process id reused. */
static void signal_descendant(const descendant *d, int number)
{
  pid_t parent = 0;

#ifdef SYS_pidfd_open
  int fd = (int)syscall(SYS_pidfd_open, d->pid, 0);

  if (fd >= 0) {
    if (cli_proc_state(d->pid, &parent) != '\0' && parent == d->parent)
      syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
    close(fd);
    return;
  }
#endif
  if (cli_proc_state(d->pid, &parent) != '\0' && parent == d->parent)
    kill(d->pid, number);
}

static bool is_stopped(char state)
{
  return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

/* Continues a stopped descendant whose parent is in state 'D'. The parent may
   be in vfork(), where it cannot stop before this one calls exec(). */
static void continue_for_parent(const descendant *d, char state)
{
  if (state == 'T')
    signal_descendant(d, SIGCONT);
}

/* Repeated until complete: a descendant that was already stopped creates no
   more children. */
static bool stop_descendants(void)
{
  descendants d = {.complete = true};

  add_children(&d, getpid());
  for (size_t i = 0; i < d.count; i++) {
    descendant one = d.at[i];
    char state = cli_proc_state(one.pid, &one.parent);

    if (one.parent_waits) {
      continue_for_parent(&d.at[i], state);
      continue;
    }
    if (!is_stopped(state)) {
      signal_descendant(&d.at[i], SIGSTOP);
      d.complete = false;
    }
    d.parent_waits = state == 'D';
    add_children(&d, one.pid);
  }
  free(d.at);
  return d.complete;
}

bool cli_descendants_stop(const cli_cgroup *cgroup)
{
  return cgroup->fd >= 0 ? cli_cgroup_freeze(cgroup, true) : stop_descendants();
}

/* Continues children first: a continued parent may wait for them. */
void cli_descendants_continue(const cli_cgroup *cgroup)
{
  descendants d = {.complete = true};

  if (cgroup->fd >= 0) {
    cli_cgroup_freeze(cgroup, false);
    return;
  }
  add_children(&d, getpid());
  for (size_t i = 0; i < d.count; i++)
    add_children(&d, d.at[i].pid);
  while (d.count > 0)
    signal_descendant(&d.at[--d.count], SIGCONT);
  free(d.at);
}

/* ---- kill ---------------------------------------------------------------- */

enum { SHORT_PAUSE_MS = 1, LONG_PAUSE_MS = 100, BLIND_MS = 1000 };

static void kill_child(pid_t child, void *arg)
{
  (void)arg;
  kill(child, SIGKILL);
}

/* Waits for the death of a child. The caller has SIGCHLD blocked. */
static void await_death(int64_t most_ms)
{
  struct timespec t = {0, most_ms * 1000000};
  sigset_t deaths;

  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  sigtimedwait(&deaths, NULL, &t);
}

/* Reaps any dead child, `command` included, since children cannot be listed.
   Returns false if none is left. */
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

static void kill_children(const cli_cgroup *cgroup, pid_t group)
{
  cli_cgroup_kill(cgroup);
  if (group > 0)
    kill(-group, SIGKILL);
  cli_proc_children_each(getpid(), kill_child, NULL);
}

void cli_descendants_kill(const cli_cgroup *cgroup, pid_t command,
                          bool own_group, cli_reaped *out)
{
  int64_t pause_ms = SHORT_PAUSE_MS;
  int64_t blind_ms = 0;

  *out = (cli_reaped){.known = false};
  while (blind_ms < BLIND_MS) {
    kill_children(cgroup, own_group && !out->known ? command : 0);
    cli_descendants_left left = cli_descendants_reap(command);

    if (left == CLI_LEFT_UNKNOWN && reap_any_child(command, out))
      blind_ms += pause_ms;
    else if (left != CLI_LEFT_SOME)
      return;
    /* The death of a child ends the wait; its children are then children of
       this process. */
    await_death(pause_ms);
    if (pause_ms < LONG_PAUSE_MS)
      pause_ms *= 2;
  }
}
