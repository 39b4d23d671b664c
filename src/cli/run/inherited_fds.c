/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/run/inherited_fds.h"

/* Without /proc, the descriptors below this number are closed. */
enum { MOST_FDS = 1024 };

static bool is_kept_fd(int fd, const int *keep, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (keep[i] == fd)
      return true;
  return fd <= STDERR_FILENO;
}

/* The descriptor `null` itself is closed with the other descriptors. */
static void replace_standard_fds(void)
{
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);

  for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
    dup2(null, fd);
}

void cli_inherited_fds_close(const int *keep, size_t count)
{
  replace_standard_fds();
  DIR *dir = opendir("/proc/self/fd");
  struct dirent *entry;

  if (dir == NULL) {
    for (int fd = STDERR_FILENO + 1; fd < MOST_FDS; fd++)
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
