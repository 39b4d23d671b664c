/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "base/list.h"
#include "base/missing_call.h"
#include "net/fork_check.h"

/* ---- a descriptor as a flag ---------------------------------------------- */

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

/* ---- waking a loop ------------------------------------------------------- */

static void on_flag(lk_loop_io *io, int events)
{
  lk_wakeup *w = LK_OWNER(io, lk_wakeup, io);

  (void)events;
  /* The child of a fork in another callback still has this one before it. */
  if (lk__fork_check_in_child(w->fork_check))
    return;
  lk__flag_fd_clear(&w->flag);
  w->on_wakeup(w->arg);
}

int lk__wakeup_open(lk_wakeup *w, lk_loop *loop,
                    const lk_fork_check *fork_check,
                    void (*on_wakeup)(void *arg), void *arg)
{
  lk_flag_fd flag;
  int error = lk__flag_fd_open(&flag);

  if (error != 0)
    return error;
  *w = (lk_wakeup){.loop = loop,
                   .flag = flag,
                   .io = {.on_events = on_flag, .fd = flag.read_fd},
                   .fork_check = fork_check,
                   .on_wakeup = on_wakeup,
                   .arg = arg};
  lk__loop_set_io(loop, &w->io, LK_LOOP_READ);
  return 0;
}

void lk__wakeup_signal(const lk_wakeup *w)
{
  int cancel_state, saved_errno = errno;

  /* A write is a cancellation point. */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  lk__flag_fd_set(&w->flag);
  pthread_setcancelstate(cancel_state, NULL);
  errno = saved_errno;
}

void lk__wakeup_stop(lk_wakeup *w)
{
  lk__loop_stop_io(w->loop, &w->io);
}

void lk__wakeup_close(lk_wakeup *w)
{
  lk__wakeup_stop(w);
  lk__flag_fd_close(&w->flag);
}
