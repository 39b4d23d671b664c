/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

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

#include "cli/tree.h"

bool cli_tree_alone(void)
{
  siginfo_t info;

  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0;
}

void cli_tree_adopt(void)
{
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Whether /proc counts processes as we do. It may be another PID namespace's,
   and then its numbers are somebody else's here. */
static bool proc_is_ours(void)
{
  char text[32];
  ssize_t len = readlink("/proc/self", text, sizeof text - 1);

  if (len <= 0)
    return false;
  text[len] = '\0';
  return strtol(text, NULL, 10) == getpid();
}

/* The parent of a process; 0: it is gone. */
static pid_t parent_of(const char *number)
{
  char name[64];
  char stat[512];

  snprintf(name, sizeof name, "/proc/%.20s/stat", number);
  int fd = open(name, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    return 0;
  ssize_t len = read(fd, stat, sizeof stat - 1);

  close(fd);
  if (len <= 0)
    return 0;
  stat[len] = '\0';
  /* 4711 (any ) text) S 1 …: the name may hold anything. */
  const char *s = strrchr(stat, ')');

  if (s == NULL || strlen(s) < 5)
    return 0;
  return (pid_t)strtol(s + 3, NULL, 10);
}

void cli_tree_kill_children(void)
{
  DIR *dir = proc_is_ours() ? opendir("/proc") : NULL;
  struct dirent *entry;

  if (dir == NULL)
    return;
  while ((entry = readdir(dir)) != NULL)
    if (isdigit((unsigned char)entry->d_name[0]) &&
        parent_of(entry->d_name) == getpid())
      kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
  closedir(dir);
}

/* Whether any child is left, dead ones having been waited for. */
static bool any_left(cli_ended *ended)
{
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid == 0)
      return true;
    if (pid < 0 && errno == EINTR)
      continue;
    if (pid < 0)
      return false;
    if (pid == ended->child && !ended->known) {
      ended->known = true;
      ended->status = status;
    }
  }
}

void cli_tree_end(const cli_cgroup *cgroup, pid_t group, cli_ended *ended)
{
  struct timespec pause = {0, 1000000};

  do {
    cli_cgroup_kill(cgroup);
    if (group > 0)
      kill(-group, SIGKILL);
    cli_tree_kill_children();
    /* Killed processes take a moment; what was born meanwhile shows up in the
       next round. */
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 100000000)
      pause.tv_nsec *= 2;
  } while (any_left(ended));
}
