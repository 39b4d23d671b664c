/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sasl/password.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include <latchkey/error.h>

#include "base/mem.h"

/* Read one byte. Returns 1; 0 at the end of the file; -1 with errno set. */
static ssize_t read_byte(int fd, char *out)
{
  ssize_t n;

  do
    n = read(fd, out, 1);
  while (n < 0 && errno == EINTR);
  return n;
}

/* Read one byte at a time, since other readers of the descriptor may need the
 * bytes behind the line. Returns what lk__password_read() returns. */
static int read_line(char *out, size_t size, int fd)
{
  size_t len = 0;
  char byte = '\0';
  ssize_t n;

  while ((n = read_byte(fd, &byte)) > 0 && byte != '\n') {
    if (len == size)
      return LK_ERR_TOO_BIG;
    out[len++] = byte;
  }
  lk__mem_wipe(&byte, 1);
  if (n < 0)
    return LK_ERR_SYSTEM;
  if (len > 0 && out[len - 1] == '\r')
    len--;
  return len == 0 ? LK_ERR_BAD_ARGUMENT : (int)len;
}

int lk__password_read(char *out, size_t size, const char *file, int fd)
{
  bool opened = file != NULL;

  if (opened)
    fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0)
    return LK_ERR_SYSTEM;
  int result = read_line(out, size, fd);
  int error = errno;

  if (opened)
    close(fd);
  if (result < 0)
    lk__mem_wipe(out, size);
  errno = error;
  return result;
}
