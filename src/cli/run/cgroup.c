/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/run/cgroup.h"

/* Copies field `n`, counted from 0, of a line with blanks between fields. */
static bool copy_field(const char *line, int n, char *out, size_t size)
{
  for (; n > 0; n--) {
    line += strcspn(line, " \n");
    if (*line != ' ')
      return false;
    line++;
  }
  size_t len = strcspn(line, " \n");

  if (len >= size)
    return false;
  memcpy(out, line, len);
  out[len] = '\0';
  return true;
}

/* Finds the first mount of cgroup version 2. A line of mountinfo is: 30 23 0:26
   ROOT MOUNTPOINT OPTIONS … - cgroup2 … */
static bool find_mount(const char *mounts, char *root, char *point)
{
  while (mounts != NULL && *mounts != '\0') {
    const char *end = strchr(mounts, '\n');
    const char *type = strstr(mounts, " - cgroup2 ");

    if (type != NULL && (end == NULL || type < end) &&
        copy_field(mounts, 3, root, CLI_CGROUP_PATH) &&
        copy_field(mounts, 4, point, CLI_CGROUP_PATH))
      return true;
    mounts = end == NULL ? NULL : end + 1;
  }
  return false;
}

bool cli_cgroup_locate(const char *mounts, const char *groups, char *out,
                       size_t size)
{
  char root[CLI_CGROUP_PATH];
  char point[CLI_CGROUP_PATH];
  char own[CLI_CGROUP_PATH];
  const char *line =
      strncmp(groups, "0::", 3) == 0 ? groups : strstr(groups, "\n0::");

  if (line == NULL || !find_mount(mounts, root, point))
    return false;
  line += strlen(*line == '\n' ? "\n0::" : "0::");
  if (!copy_field(line, 0, own, sizeof own) || own[0] != '/' ||
      strstr(own, "/..") != NULL || strchr(point, '\\') != NULL)
    return false;
  /* The mount may show only the part of the hierarchy below `root`. The own
     group must be in that part. */
  size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

  if (strncmp(own, root, len) != 0 || (own[len] != '/' && own[len] != '\0'))
    return false;
  const char *rest = strcmp(own + len, "/") == 0 ? "" : own + len;

  return snprintf(out, size, "%s%s", point, rest) < (int)size;
}

static bool read_whole_file(int dir, const char *name, char *out, size_t size)
{
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  size_t len = 0;
  ssize_t n;

  if (fd < 0)
    return false;
  while (len < size - 1 && (n = read(fd, out + len, size - 1 - len)) > 0)
    len += (size_t)n;
  close(fd);
  out[len] = '\0';
  return len > 0 && len < size - 1;
}

void cli_cgroup_find(cli_cgroup *g)
{
  char mounts[32768];
  char groups[4096];
  char base[CLI_CGROUP_PATH - 32];
  uint64_t random;

  g->path[0] = '\0';
  g->fd = -1;
  /* The name is random. A process id would not be unique: processes of other
     PID namespaces can be in the same cgroup. */
  if (read_whole_file(AT_FDCWD, "/proc/self/mountinfo", mounts,
                      sizeof mounts) &&
      read_whole_file(AT_FDCWD, "/proc/self/cgroup", groups, sizeof groups) &&
      cli_cgroup_locate(mounts, groups, base, sizeof base) &&
      getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random)
    snprintf(g->path, sizeof g->path, "%s/latchkey-%016" PRIx64, base, random);
}

void cli_cgroup_open(cli_cgroup *g)
{
  if (g->path[0] != '\0')
    g->fd = open(g->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void cli_cgroup_make(cli_cgroup *g)
{
  if (g->path[0] == '\0')
    return;
  if (mkdir(g->path, 0755) != 0) {
    g->path[0] = '\0';
    return;
  }
  cli_cgroup_open(g);
  /* Without cgroup.kill (before Linux 5.14) the group is of no use. */
  if (g->fd >= 0 && faccessat(g->fd, "cgroup.kill", W_OK, 0) == 0)
    return;
  cli_cgroup_remove(g);
}

static bool write_cgroup_file(int dir, const char *name, const char *text)
{
  int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

  if (fd < 0)
    return false;
  bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);

  close(fd);
  return ok;
}

/* The kernel's struct clone_args; its header is not installed everywhere. */
struct clone_args_of_linux {
  uint64_t flags;
  uint64_t pidfd;
  uint64_t child_tid;
  uint64_t parent_tid;
  uint64_t exit_signal;
  uint64_t stack;
  uint64_t stack_size;
  uint64_t tls;
  uint64_t set_tid;
  uint64_t set_tid_size;
  uint64_t cgroup;
};

static const uint64_t clone_into_cgroup = 0x200000000; /* CLONE_INTO_CGROUP */

pid_t cli_cgroup_fork(const cli_cgroup *g)
{
  if (g->fd < 0)
    return fork();
  struct clone_args_of_linux args = {.flags = clone_into_cgroup,
                                     .exit_signal = SIGCHLD,
                                     .cgroup = (uint64_t)g->fd};
  /* clone3() creates the child in the group. Moving a process into a group
     takes the kernel tens of milliseconds. */
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

  if (pid >= 0)
    return pid;
  pid = fork();
  if (pid == 0)
    write_cgroup_file(g->fd, "cgroup.procs", "0");
  return pid;
}

void cli_cgroup_kill(const cli_cgroup *g)
{
  if (g->fd >= 0)
    write_cgroup_file(g->fd, "cgroup.kill", "1");
}

bool cli_cgroup_freeze(const cli_cgroup *g, bool frozen)
{
  char events[256];

  if (g->fd < 0 ||
      !write_cgroup_file(g->fd, "cgroup.freeze", frozen ? "1" : "0"))
    return false;
  return read_whole_file(g->fd, "cgroup.events", events, sizeof events) &&
         (strstr(events, "frozen 1") != NULL) == frozen;
}

/* Moves the processes of the group `dir` to the group `above`. One read may not
   return all of them; cli_cgroup_remove() tries several times. */
static void move_processes(int dir, int above)
{
  int from = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
  char numbers[4096];
  ssize_t len = from < 0 ? -1 : read(from, numbers, sizeof numbers - 1);

  if (from >= 0)
    close(from);
  if (len <= 0)
    return;
  numbers[len] = '\0';
  for (char *s = numbers; *s != '\0';) {
    char *end = s + strcspn(s, "\n");
    bool last = *end == '\0';

    *end = '\0';
    write_cgroup_file(above, "cgroup.procs", s);
    s = last ? end : end + 1;
  }
}

/* Removes the groups below the group `dir`, deepest first: a group that has
   others below it cannot be removed. COMMAND may have created some, for example
   by running latchkey. The processes of all these groups and of `dir` are moved
   to the group `above`. */
static void remove_cgroups_below(int dir, int above)
{
  int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = own < 0 ? NULL : fdopendir(own);
  struct dirent *entry;

  if (list == NULL && own >= 0)
    close(own);
  while (list != NULL && (entry = readdir(list)) != NULL) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
      continue;
    int sub = openat(dir, entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (sub >= 0)
      remove_cgroups_below(sub, above);
    if (sub >= 0)
      close(sub);
    unlinkat(dir, entry->d_name, AT_REMOVEDIR);
  }
  if (list != NULL)
    closedir(list);
  move_processes(dir, above);
}

/* Processes can fork while they are moved, so it is tried several times. */
enum { MOST_TRIES = 4 };

void cli_cgroup_remove(cli_cgroup *g)
{
  if (g->path[0] == '\0')
    return;
  int above =
      g->fd < 0 ? -1 : openat(g->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

  for (int i = 0; i < MOST_TRIES && rmdir(g->path) != 0 && errno == EBUSY; i++)
    if (above >= 0)
      remove_cgroups_below(g->fd, above);
  if (above >= 0)
    close(above);
  if (g->fd >= 0)
    close(g->fd);
  g->fd = -1;
  g->path[0] = '\0';
}
