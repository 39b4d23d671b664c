/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/wakeup.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_ring(struct ev_loop *loop, ev_io *w, int revents)
{
  lk_wakeup *b = w->data;
  eventfd_t rings;

  (void)loop;
  (void)revents;
  (void)eventfd_read(w->fd, &rings);
  b->rung(b->arg);
}

int lk__wakeup_open(lk_wakeup *b, struct ev_loop *loop, void (*rung)(void *arg),
                    void *arg)
{
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

  if (fd < 0)
    return errno;
  b->loop = loop;
  b->rung = rung;
  b->arg = arg;
  ev_io_init(&b->io, on_ring, fd, EV_READ);
  b->io.data = b;
  ev_io_start(loop, &b->io);
  ev_unref(loop);
  return 0;
}

/* A bell that cannot take another ring has not been heard yet. */
void lk__wakeup_signal(const lk_wakeup *b)
{
  int cancelling, before = errno;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
  (void)eventfd_write(b->io.fd, 1);
  pthread_setcancelstate(cancelling, NULL);
  errno = before;
}

void lk__wakeup_stop(lk_wakeup *b)
{
  if (!ev_is_active(&b->io))
    return;
  ev_ref(b->loop);
  ev_io_stop(b->loop, &b->io);
}

void lk__wakeup_close(lk_wakeup *b)
{
  lk__wakeup_stop(b);
  close(b->io.fd);
}
