/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>

#include "cli/outlet.h"

enum { MOST_QUEUED = 1 << 20, LAST_WAIT_MS = 1000 };

static void forget(cli_outlet *o)
{
  o->queue.len = 0;
  o->sent = 0;
}

/* Write what can be written within `wait_ms`. */
static void pump(cli_outlet *o, int wait_ms)
{
  while (!o->broken && o->sent < o->queue.len) {
    struct pollfd ready = {o->sink.fd, POLLOUT, 0};

    if (poll(&ready, 1, wait_ms) <= 0)
      return;
    ssize_t n =
        cli_sink_write(&o->sink, o->queue.at + o->sent, o->queue.len - o->sent);

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

void cli_outlet_init(cli_outlet *o, int fd, struct ev_loop *loop,
                     void (*say_dropped)(cli_text *out, size_t lines))
{
  memset(o, 0, sizeof *o);
  o->loop = loop;
  o->say_dropped = say_dropped;
  o->broken = cli_sink_open(&o->sink, fd) != 0;
  ev_io_init(&o->watcher, on_ready, o->sink.fd, EV_WRITE);
  o->watcher.data = o;
}

static void tell_dropped(cli_outlet *o)
{
  if (o->dropped > 0 && o->say_dropped != NULL)
    o->say_dropped(&o->queue, o->dropped);
  o->dropped = 0;
}

void cli_outlet_put(cli_outlet *o, lk_bytes line)
{
  if (o->loop == NULL || o->broken)
    return;
  if (o->queue.len - o->sent > MOST_QUEUED) {
    o->dropped++;
    return;
  }
  tell_dropped(o);
  cli_text_add(&o->queue, line.at, line.len);
  if (o->queue.failed) {
    cli_text_free(&o->queue); /* nothing is left that pump() could write */
    o->dropped++;
  }
  pump(o, 0);
  watch(o);
}

void cli_outlet_close(cli_outlet *o)
{
  if (o->loop == NULL)
    return;
  ev_io_stop(o->loop, &o->watcher);
  if (!o->broken)
    tell_dropped(o);
  pump(o, LAST_WAIT_MS);
  cli_sink_close(&o->sink, LAST_WAIT_MS);
  cli_text_free(&o->queue);
  o->loop = NULL;
}
