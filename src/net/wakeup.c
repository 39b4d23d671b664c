/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/wakeup.h"

#include <errno.h>
#include <pthread.h>

#include "base/list.h"

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
