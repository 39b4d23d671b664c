/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/outlet.h"

enum { MOST_QUEUED = 1 << 20, LAST_WAIT_MS = 1000 };

static void forget(cli_outlet *o)
{
  o->queue.len = 0;
  o->sent = 0;
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking. Sockets are
   told not to block. */
static ssize_t write_some(int fd, const char *at, size_t len)
{
  size_t part = len < PIPE_BUF ? len : PIPE_BUF;
  ssize_t n = send(fd, at, part, MSG_DONTWAIT | MSG_NOSIGNAL);

  return n < 0 && errno == ENOTSOCK ? write(fd, at, part) : n;
}

/* Write what can be written within `wait_ms`. */
static void pump(cli_outlet *o, int wait_ms)
{
  while (!o->broken && o->sent < o->queue.len) {
    struct pollfd ready = {o->fd, POLLOUT, 0};

    if (poll(&ready, 1, wait_ms) <= 0)
      return;
    ssize_t n =
        write_some(o->fd, o->queue.at + o->sent, o->queue.len - o->sent);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n < 0)
      o->broken = true;
    else
      o->sent += (size_t)n;
  }
  forget(o);
}

static void watch(cli_outlet *o)
{
  if (o->sent < o->queue.len)
    ev_io_start(o->loop, &o->watcher);
  else
    ev_io_stop(o->loop, &o->watcher);
}

static void on_ready(struct ev_loop *loop, ev_io *watcher, int events)
{
  (void)loop;
  (void)events;
  pump(watcher->data, 0);
  watch(watcher->data);
}

void cli_outlet_init(cli_outlet *o, int fd, struct ev_loop *loop)
{
  memset(o, 0, sizeof *o);
  o->fd = fd;
  o->loop = loop;
  ev_io_init(&o->watcher, on_ready, fd, EV_WRITE);
  o->watcher.data = o;
}

void cli_outlet_put(cli_outlet *o, lk_bytes line)
{
  if (o->loop == NULL || o->broken || o->queue.len - o->sent > MOST_QUEUED)
    return;
  cli_text_add(&o->queue, line.at, line.len);
  if (o->queue.failed) {
    cli_text_free(&o->queue);
    o->sent = 0;
  }
  pump(o, 0);
  watch(o);
}

void cli_outlet_close(cli_outlet *o)
{
  if (o->loop == NULL)
    return;
  ev_io_stop(o->loop, &o->watcher);
  pump(o, LAST_WAIT_MS);
  cli_text_free(&o->queue);
  o->loop = NULL;
}
