/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- children of a process ----------------------------------------------- */

/* Whether /proc shows the PID namespace of this process. In another namespace
   the same numbers are other processes. */
static bool proc_is_ours(void)
{
  char text[32];
  ssize_t len = readlink("/proc/self", text, sizeof text - 1);

  if (len <= 0)
    return false;
  text[len] = '\0';
  return strtol(text, NULL, 10) == getpid();
}

char cli_proc_state(pid_t pid, pid_t *parent)
{
  char name[64];
  char stat[512];

  snprintf(name, sizeof name, "/proc/%ld/stat", (long)pid);
  int fd = open(name, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    return '\0';
  ssize_t len = read(fd, stat, sizeof stat - 1);

  close(fd);
  if (len <= 0)
    return '\0';
  stat[len] = '\0';
  /* As in "4711 (name) S 1 ...". The name can contain any bytes, so the last
     ")" is sought. */
  const char *name_end = strrchr(stat, ')');

  if (name_end == NULL || strlen(name_end) < strlen(") S 1"))
    return '\0';
  *parent = (pid_t)strtol(name_end + strlen(") S"), NULL, 10);
  return name_end[strlen(") ")];
}

/* Control characters become "?", as the process has chosen the name. */
void cli_proc_name(pid_t pid, char name[CLI_PROC_NAME_SIZE])
{
  char path[64];

  snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t len = fd < 0 ? 0 : read(fd, name, CLI_PROC_NAME_SIZE - 1);

  if (fd >= 0)
    close(fd);
  if (len > 0 && name[len - 1] == '\n')
    len--;
  for (ssize_t i = 0; i < len; i++)
    if (name[i] < ' ' || name[i] > '~')
      name[i] = '?';
  if (len <= 0)
    name[0] = '?';
  name[len <= 0 ? 1 : len] = '\0';
}

/* Reads process ids, each followed by a blank, from `fd`. */
static bool read_child_numbers(int fd, void (*each)(pid_t child, void *arg),
                               void *arg)
{
  char text[1024];
  ssize_t n;
  long number = 0;

  while ((n = read(fd, text, sizeof text)) > 0)
    for (ssize_t i = 0; i < n; i++) {
      if (isdigit((unsigned char)text[i])) {
        number = number * 10 + (text[i] - '0');
      } else if (number > 0) {
        each((pid_t)number, arg);
        number = 0;
      }
    }
  return n == 0;
}

/* Reads the lists of all threads in `tasks`: each thread has its own children.
 */
static bool read_tasks(pid_t parent, DIR *tasks,
                       void (*each)(pid_t child, void *arg), void *arg)
{
  struct dirent *entry;
  bool complete = true;

  while ((entry = readdir(tasks)) != NULL) {
    char name[80];

    if (!isdigit((unsigned char)entry->d_name[0]))
      continue;
    snprintf(name, sizeof name, "/proc/%ld/task/%.20s/children", (long)parent,
             entry->d_name);
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    /* If the thread has ended, another thread has its children now, and its
       list may have been read before. */
    if (fd < 0 || !read_child_numbers(fd, each, arg))
      complete = false;
    if (fd >= 0)
      close(fd);
  }
  return complete;
}

static bool search_all_of_proc(pid_t parent,
                               void (*each)(pid_t child, void *arg), void *arg)
{
  DIR *dir = opendir("/proc");
  struct dirent *entry;
  pid_t its_parent;

  if (dir == NULL)
    return false;
  while ((entry = readdir(dir)) != NULL) {
    pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

    if (pid > 0 && cli_proc_state(pid, &its_parent) != '\0' &&
        its_parent == parent)
      each(pid, arg);
  }
  closedir(dir);
  return true;
}

bool cli_proc_children_each(pid_t parent, void (*each)(pid_t child, void *arg),
                            void *arg)
{
  char name[64];

  if (!proc_is_ours())
    return false;
  /* A kernel without CONFIG_PROC_CHILDREN has no such file. */
  if (access("/proc/thread-self/children", R_OK) != 0)
    return search_all_of_proc(parent, each, arg);
  snprintf(name, sizeof name, "/proc/%ld/task", (long)parent);
  DIR *tasks = opendir(name);

  if (tasks == NULL)
    return false;
  bool complete = read_tasks(parent, tasks, each, arg);

  closedir(tasks);
  return complete;
}

void cli_pids_add(pid_t pid, void *pids)
{
  cli_pids *p = pids;

  if (p->count == p->cap) {
    size_t cap = p->cap == 0 ? 64 : 2 * p->cap;
    void *at = realloc(p->at, cap * sizeof *p->at);

    if (at == NULL) {
      p->failed = true;
      return;
    }
    p->at = at;
    p->cap = cap;
  }
  p->at[p->count++] = pid;
}

void cli_pids_free(cli_pids *pids)
{
  free(pids->at);
  *pids = (cli_pids){.at = NULL};
}

/* ---- orphans and dead children ------------------------------------------- */

bool cli_descendants_adopt(void)
{
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

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
  cli_cgroup_freeze(cgroup);
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
