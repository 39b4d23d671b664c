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

/* Fields of a line of mountinfo: 30 23 0:26 ROOT MOUNTPOINT OPTIONS … - TYPE …
 */
enum { FIELD_ROOT = 3, FIELD_MOUNT_POINT = 4 };

/* Finds the first mount of cgroup version 2. */
static bool find_mount(const char *mounts, char *root, char *point)
{
  while (mounts != NULL && *mounts != '\0') {
    const char *end = strchr(mounts, '\n');
    const char *type = strstr(mounts, " - cgroup2 ");
    bool type_is_in_line = type != NULL && (end == NULL || type < end);

    if (type_is_in_line &&
        copy_field(mounts, FIELD_ROOT, root, CLI_CGROUP_PATH_SIZE) &&
        copy_field(mounts, FIELD_MOUNT_POINT, point, CLI_CGROUP_PATH_SIZE))
      return true;
    mounts = end == NULL ? NULL : end + 1;
  }
  return false;
}

/* Returns the path behind "0::" at the start of a line of /proc/self/cgroup:
   the group of version 2. Returns NULL if there is no such line. */
static const char *find_own_group(const char *groups)
{
  if (strncmp(groups, "0::", strlen("0::")) == 0)
    return groups + strlen("0::");
  const char *line = strstr(groups, "\n0::");

  return line == NULL ? NULL : line + strlen("\n0::");
}

bool cli_cgroup_locate(const char *mounts, const char *groups, char *out,
                       size_t size)
{
  char root[CLI_CGROUP_PATH_SIZE];
  char point[CLI_CGROUP_PATH_SIZE];
  char own[CLI_CGROUP_PATH_SIZE];
  const char *line = find_own_group(groups);

  if (line == NULL || !find_mount(mounts, root, point))
    return false;
  bool mount_point_is_escaped = strchr(point, '\\') != NULL;

  if (!copy_field(line, 0, own, sizeof own) || own[0] != '/' ||
      strstr(own, "/..") != NULL || mount_point_is_escaped)
    return false;
  /* The mount may show only the part of the hierarchy below `root`. The own
     group must be in that part. */
  size_t root_len = strcmp(root, "/") == 0 ? 0 : strlen(root);
  const char *below_root = own + root_len;

  if (strncmp(own, root, root_len) != 0 ||
      (*below_root != '/' && *below_root != '\0'))
    return false;
  const char *rest = strcmp(below_root, "/") == 0 ? "" : below_root;

  return snprintf(out, size, "%s%s", point, rest) < (int)size;
}

/* Returns false if the file is empty, or too long for `out` with a NUL. */
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

void cli_cgroup_choose_path(cli_cgroup *g)
{
  char mounts[32768];
  char groups[4096];
  char base[CLI_CGROUP_PATH_SIZE - sizeof "/latchkey-0123456789abcdef"];
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
    g->path[0] = '\0'; /* COMMAND runs without a cgroup of its own */
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
  /* Before Linux 5.7, or refused by a sandbox. */
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
  if (!read_whole_file(g->fd, "cgroup.events", events, sizeof events))
    return false;
  bool is_frozen = strstr(events, "frozen 1") != NULL;

  return is_frozen == frozen;
}

/* Moves the processes of the group `dir` to the group `parent`. One read may
   not return all of them; cli_cgroup_remove() tries several times. */
static void move_processes(int dir, int parent)
{
  int from = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
  char numbers[4096];
  ssize_t len = from < 0 ? -1 : read(from, numbers, sizeof numbers - 1);

  if (from >= 0)
    close(from);
  if (len <= 0)
    return;
  numbers[len] = '\0';
  char *rest = numbers;

  for (char *s; (s = strsep(&rest, "\n")) != NULL;)
    if (*s != '\0')
      write_cgroup_file(parent, "cgroup.procs", s);
}

/* Removes the groups below the group `dir`, deepest first: a group that has
   others below it cannot be removed. COMMAND may have created some, for example
   by running latchkey. The processes of all these groups and of `dir` are moved
   to the group `parent`. */
static void remove_cgroups_below(int dir, int parent)
{
  /* `dir` is opened with O_PATH and cannot be listed. */
  int readable = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = readable < 0 ? NULL : fdopendir(readable);
  struct dirent *entry;

  if (list == NULL && readable >= 0)
    close(readable);
  while (list != NULL && (entry = readdir(list)) != NULL) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
      continue;
    int sub = openat(dir, entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (sub >= 0) {
      remove_cgroups_below(sub, parent);
      close(sub);
    }
    unlinkat(dir, entry->d_name, AT_REMOVEDIR);
  }
  if (list != NULL)
    closedir(list);
  move_processes(dir, parent);
}

/* Processes can fork while they are moved, so the removal is tried several
   times. */
enum { MAX_TRIES = 4 };

void cli_cgroup_remove(cli_cgroup *g)
{
  if (g->path[0] == '\0')
    return;
  int parent =
      g->fd < 0 ? -1 : openat(g->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

  for (int i = 0; i < MAX_TRIES && rmdir(g->path) != 0 && errno == EBUSY; i++)
    if (parent >= 0)
      remove_cgroups_below(g->fd, parent);
  if (parent >= 0)
    close(parent);
  if (g->fd >= 0)
    close(g->fd);
  g->fd = -1;
  g->path[0] = '\0';
}
