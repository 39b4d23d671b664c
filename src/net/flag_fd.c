/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/flag_fd.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/missing_call.h"

#ifdef HAVE_EVENTFD
#  include <sys/eventfd.h>

static int open_eventfd(void)
{
  return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

#else

static int open_eventfd(void)
{
  errno = ENOSYS;
  return -1;
}

#endif

/* The indices of the descriptors of pipe2(). */
enum { READ_END, WRITE_END };

int lk__flag_fd_open(lk_flag_fd *f)
{
  int ends[2];
  int fd = open_eventfd();

  *f = (lk_flag_fd){fd, fd};
  if (fd >= 0)
    return 0;
  if (!lk__call_is_missing(errno) || pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
    return errno;
  *f = (lk_flag_fd){ends[READ_END], ends[WRITE_END]};
  return 0;
}

/* An eventfd takes eight bytes in a write, and a pipe takes them as well. A
   failed write means that the counter or the pipe is full: the descriptor is
   readable then. */
void lk__flag_fd_set(const lk_flag_fd *f)
{
  const uint64_t one = 1;
  ssize_t ignored = write(f->write_fd, &one, sizeof one);

  (void)ignored;
}

/* One read empties an eventfd, and returns eight bytes. A pipe is empty when a
   read does not fill the room. */
void lk__flag_fd_clear(const lk_flag_fd *f)
{
  uint64_t room[64];

  while (read(f->read_fd, room, sizeof room) == (ssize_t)sizeof room)
    ;
}

void lk__flag_fd_close(lk_flag_fd *f)
{
  if (f->read_fd < 0)
    return;
  close(f->read_fd);
  if (f->write_fd != f->read_fd)
    close(f->write_fd);
  *f = LK_FLAG_FD_NONE;
}
