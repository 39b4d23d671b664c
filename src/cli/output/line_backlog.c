/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>

#include "base/list.h"
#include "cli/output/line_backlog.h"

/* Limit of the queue in bytes, and of each wait while the backlog is closed. */
enum { MAX_QUEUED_BYTES = 1 << 20, CLOSE_WAIT_MS = 1000 };

static void clear_line_queue(cli_line_backlog *o)
{
  o->queue.len = 0;
  o->sent = 0;
}

/* Writes until the queue is empty. Returns early if the descriptor takes
   nothing for `wait_ms`. */
static void write_queued_lines(cli_line_backlog *o, int wait_ms)
{
  while (!o->broken && o->sent < o->queue.len) {
    struct pollfd ready = {o->out.fd, POLLOUT, 0};

    if (poll(&ready, 1, wait_ms) <= 0)
      return;
    ssize_t n = cli_nonblocking_fd_write(&o->out, o->queue.at + o->sent,
                                         o->queue.len - o->sent);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n < 0)
      o->broken = true;
    else
      o->sent += (size_t)n;
  }
  clear_line_queue(o);
}

/* The loop reports when the descriptor is writable, while the queue is not
   empty. */
static void watch_for_room(cli_line_backlog *o)
{
  lk__loop_set_io(o->loop, &o->io, o->sent < o->queue.len ? LK_LOOP_WRITE : 0);
}

static void on_room_for_lines(lk_loop_io *io, int events)
{
  cli_line_backlog *o = LK_OWNER(io, cli_line_backlog, io);

  (void)events;
  write_queued_lines(o, 0);
  watch_for_room(o);
}

void cli_line_backlog_init(cli_line_backlog *o, int fd, lk_loop *loop,
                           void (*say_dropped)(cli_text *out, size_t lines))
{
  memset(o, 0, sizeof *o);
  o->loop = loop;
  o->say_dropped = say_dropped;
  o->broken = cli_nonblocking_fd_open(&o->out, fd) != 0;
  o->io.on_events = on_room_for_lines;
  o->io.fd = o->out.fd;
}

static void report_dropped_lines(cli_line_backlog *o)
{
  if (o->dropped > 0 && o->say_dropped != NULL)
    o->say_dropped(&o->queue, o->dropped);
  o->dropped = 0;
}

void cli_line_backlog_put(cli_line_backlog *o, lk_bytes line)
{
  if (o->loop == NULL || o->broken)
    return;
  if (o->queue.len - o->sent > MAX_QUEUED_BYTES) {
    o->dropped++;
    return;
  }
  report_dropped_lines(o);
  cli_text_add(&o->queue, line.at, line.len);
  if (o->queue.failed) {
    /* Out of memory: the queue is discarded. */
    cli_text_free(&o->queue);
    o->dropped++;
  }
  write_queued_lines(o, 0);
  watch_for_room(o);
}

void cli_line_backlog_close(cli_line_backlog *o)
{
  if (o->loop == NULL)
    return;
  lk__loop_set_io(o->loop, &o->io, 0);
  if (!o->broken)
    report_dropped_lines(o);
  write_queued_lines(o, CLOSE_WAIT_MS);
  cli_nonblocking_fd_close(&o->out, CLOSE_WAIT_MS);
  cli_text_free(&o->queue);
  o->loop = NULL;
}
