/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/run/inherited_fds.h"

/* Without /proc, only the descriptors below this number are closed. */
enum { MAX_FDS = 1024 };

static bool is_kept_fd(int fd, const int *keep, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (keep[i] == fd)
      return true;
  return fd <= STDERR_FILENO;
}

/* cli_inherited_fds_close() closes the descriptor `null` with the others. */
static void replace_standard_fds(void)
{
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);

  if (null < 0)
    return;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    dup2(null, fd);
}

void cli_inherited_fds_close(const int *keep, size_t count)
{
  replace_standard_fds();
  DIR *dir = opendir("/proc/self/fd");
  struct dirent *entry;

  if (dir == NULL) {
    for (int fd = STDERR_FILENO + 1; fd < MAX_FDS; fd++)
      if (!is_kept_fd(fd, keep, count))
        close(fd);
    return;
  }
  while ((entry = readdir(dir)) != NULL) {
    int fd = (int)strtol(entry->d_name, NULL, 10);

    if (!is_kept_fd(fd, keep, count) && fd != dirfd(dir))
      close(fd);
  }
  closedir(dir);
}
