/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/proc_children.h"

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
