/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/missing_call.h"
#include "cli/session/signal_queue.h"

#ifdef HAVE_SIGNALFD
#  include <sys/signalfd.h>

static int open_signalfd(const sigset_t *set)
{
  const int new_signalfd = -1;

  return signalfd(new_signalfd, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

#else

static int open_signalfd(const sigset_t *set)
{
  (void)set;
  errno = ENOSYS;
  return -1;
}

#endif

int cli_signal_queue_open(cli_signal_queue *q, const sigset_t *set)
{
  q->set = *set;
  q->fd = open_signalfd(set);
  return q->fd >= 0 || lk__call_is_missing(errno) ? 0 : errno;
}

bool cli_signal_queue_take(const cli_signal_queue *q, siginfo_t *out)
{
  const struct timespec no_wait = {0, 0};

  return sigtimedwait(&q->set, out, &no_wait) > 0;
}

void cli_signal_queue_close(cli_signal_queue *q)
{
  if (q->fd >= 0)
    close(q->fd);
  q->fd = -1;
}

/* ---- in a loop ----------------------------------------------------------- */

static void on_signalfd(lk_loop_io *io, int events)
{
  cli_signal_watcher *w = LK_OWNER(io, cli_signal_watcher, io);

  (void)events;
  w->on_signals(w);
}

static void on_poll_timer(lk_loop_timer *t)
{
  cli_signal_watcher *w = LK_OWNER(t, cli_signal_watcher, timer);

  lk__loop_set_timer(w->loop, t, CLI_SIGNAL_POLL_MS);
  w->on_signals(w); /* can stop the watcher */
}

void cli_signal_watcher_start(cli_signal_watcher *w, lk_loop *loop,
                              const cli_signal_queue *q)
{
  w->loop = loop;
  w->io.on_events = on_signalfd;
  w->io.fd = q->fd;
  w->timer.on_timer = on_poll_timer;
  if (q->fd >= 0)
    lk__loop_set_io(loop, &w->io, LK_LOOP_READ);
  else
    lk__loop_set_timer(loop, &w->timer, CLI_SIGNAL_POLL_MS);
}

void cli_signal_watcher_stop(cli_signal_watcher *w)
{
  if (w->loop == NULL)
    return;
  lk__loop_stop_io(w->loop, &w->io);
  lk__loop_stop_timer(w->loop, &w->timer);
}
