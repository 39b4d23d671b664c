/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/wakeup.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"

static void on_eventfd(lk_loop_io *io, int events)
{
  lk_wakeup *w = LK_OWNER(io, lk_wakeup, io);
  eventfd_t ignored;

  (void)events;
  (void)eventfd_read(io->fd, &ignored); /* resets the counter */
  w->on_wakeup(w->arg);
}

int lk__wakeup_open(lk_wakeup *w, lk_loop *loop, void (*on_wakeup)(void *arg),
                    void *arg)
{
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

  if (fd < 0)
    return errno;
  *w = (lk_wakeup){.loop = loop,
                   .io = {.on_events = on_eventfd, .fd = fd},
                   .on_wakeup = on_wakeup,
                   .arg = arg};
  lk__loop_set_io(loop, &w->io, LK_LOOP_READ);
  return 0;
}

/* A failed write needs no handling: it means that the counter of the eventfd is
   full, so the loop is going to wake up anyway. */
void lk__wakeup_signal(const lk_wakeup *w)
{
  int cancel_state, saved_errno = errno;

  /* A write is a cancellation point. */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  (void)eventfd_write(w->io.fd, 1);
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
  close(w->io.fd);
}
