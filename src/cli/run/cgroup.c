/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "cli/run/cgroup.h"

#ifndef SYS_clone3        /* before Linux 5.3 */
#  define SYS_clone3 (-1) /* every kernel refuses this call */
#endif

/* ---- the path ------------------------------------------------------------ */

/* Replaces "\040" and the like in a field of mountinfo: a backslash and three
   octal digits stand for a character. */
static void decode_octal(char *text)
{
  char *out = text;

  for (const char *s = text; *s != '\0'; out++) {
    if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
      *out = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
      s += 4;
    } else {
      *out = *s++;
    }
  }
  *out = '\0';
}

/* Copies field `n`, counted from 0, of a line of mountinfo. */
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
  decode_octal(out);
  return true;
}

/* Fields of a line of mountinfo: 30 23 0:26 ROOT MOUNTPOINT OPTIONS … - TYPE …
 */
enum { FIELD_ROOT = 3, FIELD_MOUNT_POINT = 4 };

bool cli_cgroup_below_mount(const char *line, const char *own, char *out,
                            size_t size)
{
  char root[CLI_CGROUP_PATH_SIZE];
  char point[CLI_CGROUP_PATH_SIZE];

  if (strstr(line, " - cgroup2 ") == NULL ||
      !copy_field(line, FIELD_ROOT, root, sizeof root) ||
      !copy_field(line, FIELD_MOUNT_POINT, point, sizeof point))
    return false;
  /* A group outside of the cgroup namespace has such a path. */
  if (own[0] != '/' || strstr(own, "/..") != NULL)
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

/* Gets the path of a process's group, as the kernel shows it to this process:
   the text behind "0::" in /proc/PID/cgroup. */
static bool read_group_of(const char *process, char *out, size_t size)
{
  char name[64];
  char *line = NULL;
  size_t room = 0;
  bool found = false;

  snprintf(name, sizeof name, "/proc/%s/cgroup", process);
  FILE *file = fopen(name, "re");

  while (file != NULL && !found && getline(&line, &room, file) > 0)
    if (strncmp(line, "0::", strlen("0::")) == 0) {
      const char *path = line + strlen("0::");
      size_t len = strcspn(path, "\n");

      found = len < size;
      snprintf(out, size, "%.*s", (int)len, path);
    }
  free(line);
  if (file != NULL)
    fclose(file);
  return found;
}

/* Whether a group can probably be made in `dir`. Another mount may cover the
   one that mountinfo names. */
static bool is_writable_cgroup(const char *dir)
{
  enum { MAGIC = 0x63677270 }; /* CGROUP2_SUPER_MAGIC */
  struct statfs s;

  return statfs(dir, &s) == 0 && (unsigned long)s.f_type == MAGIC &&
         faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0;
}

/* Finds the directory of the own group in the first mount that shows it
   writable. */
static bool find_own_directory(const char *own, char *out, size_t size)
{
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  char *line = NULL;
  size_t room = 0;
  bool found = false;

  while (mounts != NULL && !found && getline(&line, &room, mounts) > 0)
    found =
        cli_cgroup_below_mount(line, own, out, size) && is_writable_cgroup(out);
  free(line);
  if (mounts != NULL)
    fclose(mounts);
  return found;
}

void cli_cgroup_choose_path(cli_cgroup *g)
{
  char own[CLI_CGROUP_PATH_SIZE - CLI_CGROUP_NAME_SIZE];
  char base[CLI_CGROUP_PATH_SIZE - CLI_CGROUP_NAME_SIZE];
  uint64_t random;

  g->path[0] = '\0';
  g->fd = -1;
  if (!read_group_of("self", own, sizeof own) ||
      !find_own_directory(own, base, sizeof base) ||
      getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
    return;
  /* The name is random. A process id would not be unique: processes of other
     PID namespaces can be in the same cgroup. */
  snprintf(g->path, sizeof g->path, "%s/latchkey-%016" PRIx64, base, random);
  snprintf(g->shown, sizeof g->shown, "%s/latchkey-%016" PRIx64,
           strcmp(own, "/") == 0 ? "" : own, random);
}

bool cli_cgroup_contains(const cli_cgroup *g, pid_t pid)
{
  char process[32];
  char group[CLI_CGROUP_PATH_SIZE];
  size_t len = strlen(g->shown);

  snprintf(process, sizeof process, "%ld", (long)pid);
  return g->fd >= 0 && read_group_of(process, group, sizeof group) &&
         strncmp(group, g->shown, len) == 0 &&
         (group[len] == '\0' || group[len] == '/');
}

/* ---- making, entering ---------------------------------------------------- */

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

void cli_cgroup_open(cli_cgroup *g)
{
  if (g->path[0] != '\0')
    g->fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool is_name_of_group(const char *name)
{
  static const char prefix[] = "latchkey-";
  const char *digits = name + sizeof prefix - 1;

  return strncmp(name, prefix, sizeof prefix - 1) == 0 &&
         strlen(name) == CLI_CGROUP_NAME_SIZE - sizeof "/" &&
         strspn(digits, "0123456789abcdef") == strlen(digits);
}

/* An empty group that is not locked is of a supervisor that was killed together
   with latchkey. In its first minute it may not be locked yet. */
static void remove_if_abandoned(int parent, const char *name)
{
  enum { YOUNG_SECONDS = 60 };
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat s;

  if (fd < 0)
    return;
  if (fstat(fd, &s) == 0 && time(NULL) > s.st_mtime + YOUNG_SECONDS &&
      flock(fd, LOCK_EX | LOCK_NB) == 0)
    unlinkat(parent, name, AT_REMOVEDIR); /* fails if it has processes */
  close(fd);
}

static void remove_abandoned_groups(const cli_cgroup *g)
{
  int parent = openat(g->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = parent < 0 ? NULL : fdopendir(parent);
  struct dirent *entry;

  if (list == NULL && parent >= 0)
    close(parent);
  while (list != NULL && (entry = readdir(list)) != NULL)
    if (is_name_of_group(entry->d_name))
      remove_if_abandoned(parent, entry->d_name);
  if (list != NULL)
    closedir(list);
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
  if (g->fd < 0 || faccessat(g->fd, "cgroup.kill", W_OK, 0) != 0) {
    cli_cgroup_remove(g);
    return;
  }
  (void)flock(g->fd, LOCK_SH); /* see remove_if_abandoned() */
  remove_abandoned_groups(g);
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

/* Moves this process to the group in the directory `name` below `g`. */
static bool move_self(const cli_cgroup *g, const char *name)
{
  int dir = openat(g->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  bool moved = dir >= 0 && write_cgroup_file(dir, "cgroup.procs", "0");

  if (dir >= 0)
    close(dir);
  return moved;
}

/* Forks a child while this process is in the group. */
static pid_t fork_inside(cli_cgroup *g)
{
  if (!move_self(g, ".")) {
    cli_cgroup_remove(g); /* the group takes no process */
    return fork();
  }
  pid_t pid = fork();
  int error = errno;

  if (pid != 0 && !move_self(g, ".."))
    cli_cgroup_remove(g);
  errno = error;
  return pid;
}

pid_t cli_cgroup_fork(cli_cgroup *g)
{
  if (g->fd < 0)
    return fork();
  struct clone_args_of_linux args = {.flags = clone_into_cgroup,
                                     .exit_signal = SIGCHLD,
                                     .cgroup = (uint64_t)g->fd};
  /* clone3() creates the child in the group. Moving a process into a group
     takes the kernel tens of milliseconds. */
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

  /* Before Linux 5.7, or refused by a sandbox or by the group. */
  return pid >= 0 ? pid : fork_inside(g);
}

void cli_cgroup_kill(const cli_cgroup *g)
{
  if (g->fd >= 0)
    write_cgroup_file(g->fd, "cgroup.kill", "1");
}

void cli_cgroup_freeze(const cli_cgroup *g)
{
  if (g->fd >= 0)
    write_cgroup_file(g->fd, "cgroup.freeze", "1");
}

void cli_cgroup_thaw(const cli_cgroup *g)
{
  if (g->fd >= 0)
    write_cgroup_file(g->fd, "cgroup.freeze", "0");
}

bool cli_cgroup_is_frozen(const cli_cgroup *g)
{
  char events[256];

  return g->fd >= 0 &&
         read_whole_file(g->fd, "cgroup.events", events, sizeof events) &&
         strstr(events, "frozen 1") != NULL;
}

/* ---- the end ------------------------------------------------------------- */

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
