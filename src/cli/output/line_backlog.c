/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>

#include "base/list.h"
#include "cli/output/line_backlog.h"

enum {
  /* While more bytes are queued, lines are dropped. */
  MAX_QUEUED_BYTES = 1 << 20,
  /* Limit of each wait while the backlog is closed. */
  CLOSE_WAIT_MS = 1000,
  NO_WAIT_MS = 0
};

static void clear_line_queue(cli_line_backlog *backlog)
{
  backlog->queue.len = 0;
  backlog->sent = 0;
}

/* Writes until the queue is empty. Returns early if the descriptor takes
   nothing for `wait_ms`. After an error, discards the queue. */
static void write_queued_lines(cli_line_backlog *backlog, int wait_ms)
{
  while (backlog->error == 0 && backlog->sent < backlog->queue.len) {
    struct pollfd ready = {backlog->out.fd, POLLOUT, 0};

    if (poll(&ready, 1, wait_ms) <= 0)
      return;
    ssize_t n = cli_nonblocking_fd_write(&backlog->out,
                                         backlog->queue.at + backlog->sent,
                                         backlog->queue.len - backlog->sent);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n < 0)
      backlog->error = errno;
    else
      backlog->sent += (size_t)n;
  }
  clear_line_queue(backlog);
}

/* The loop reports when the descriptor is writable, while the queue is not
   empty. */
static void watch_for_room(cli_line_backlog *backlog)
{
  if (backlog->loop == NULL)
    return;
  lk__loop_set_io(backlog->loop, &backlog->io,
                  backlog->sent < backlog->queue.len ? LK_LOOP_WRITE : 0);
}

static void on_room_for_lines(lk_loop_io *io, int events)
{
  cli_line_backlog *backlog = LK_OWNER(io, cli_line_backlog, io);

  (void)events;
  write_queued_lines(backlog, NO_WAIT_MS);
  watch_for_room(backlog);
}

void cli_line_backlog_init(cli_line_backlog *backlog, int fd, lk_loop *loop,
                           void (*say_dropped)(cli_text *out, size_t lines))
{
  memset(backlog, 0, sizeof *backlog);
  backlog->is_open = true;
  backlog->loop = loop;
  backlog->say_dropped = say_dropped;
  backlog->error = cli_nonblocking_fd_open(&backlog->out, fd);
  backlog->io.on_events = on_room_for_lines;
  backlog->io.fd = backlog->out.fd;
}

void cli_line_backlog_set_loop(cli_line_backlog *backlog, lk_loop *loop)
{
  if (backlog->loop != NULL)
    lk__loop_stop_io(backlog->loop, &backlog->io);
  backlog->loop = loop;
  if (backlog->is_open)
    watch_for_room(backlog);
}

static void report_dropped_lines(cli_line_backlog *backlog)
{
  if (backlog->dropped > 0 && backlog->say_dropped != NULL)
    backlog->say_dropped(&backlog->queue, backlog->dropped);
  backlog->dropped = 0;
}

void cli_line_backlog_put(cli_line_backlog *backlog, lk_bytes line)
{
  if (!backlog->is_open || backlog->error != 0)
    return;
  if (backlog->queue.len - backlog->sent > MAX_QUEUED_BYTES) {
    backlog->dropped++;
    return;
  }
  report_dropped_lines(backlog);
  cli_text_add(&backlog->queue, line.at, line.len);
  if (backlog->queue.failed) {
    /* Out of memory: the queue is discarded. */
    cli_text_free(&backlog->queue);
    backlog->dropped++;
  }
  write_queued_lines(backlog, NO_WAIT_MS);
  watch_for_room(backlog);
}

void cli_line_backlog_close(cli_line_backlog *backlog)
{
  if (!backlog->is_open)
    return;
  cli_line_backlog_set_loop(backlog, NULL);
  if (backlog->error == 0)
    report_dropped_lines(backlog);
  write_queued_lines(backlog, CLOSE_WAIT_MS);
  cli_nonblocking_fd_close(&backlog->out, CLOSE_WAIT_MS);
  cli_text_free(&backlog->queue);
  backlog->is_open = false;
}
