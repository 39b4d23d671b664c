/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/print.h"
#include "cli/session/follow.h"

enum {
  /* Size limit of the queue for a slow reader. */
  MAX_QUEUED_BYTES = 512 << 10,
  /* The pause before the size of the queue is compared again. */
  SLOW_READER_MS = 1000
};

bool cli_follow_open(cli_follow *f, const cli_options *o, const char *verb,
                     const char *path)
{
  f->sigpipe_was_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
  f->reports_left = o->count;
  return cli_command_open(&f->command, o, verb, path);
}

/* ---- output -------------------------------------------------------------- */

bool cli_follow_is_full(const cli_follow *f)
{
  return f->out.queue.len - f->out.sent > MAX_QUEUED_BYTES;
}

void cli_follow_put(cli_follow *f, cli_text *line)
{
  if (line->failed)
    cli_follow_stop(f, LK_ERR_NO_MEMORY);
  cli_line_backlog_put(&f->out, lk_bytes_of(line->at, line->len));
  cli_text_free(line);
  f->done = f->done || f->out.error != 0;
}

/* Queues `newest` if there is room. */
static void write_newest_report(cli_follow *f)
{
  lk_loop *loop = f->command.session.loop;

  if (cli_follow_is_full(f)) {
    lk__loop_set_timer(loop, &f->newest_timer, SLOW_READER_MS);
    return;
  }
  lk__loop_stop_timer(loop, &f->newest_timer);
  cli_follow_put(f, &f->newest);
  if (f->reports_left > 0 && --f->reports_left == 0)
    f->done = true;
}

static void on_newest_timer(lk_loop_timer *t)
{
  write_newest_report(LK_OWNER(t, cli_follow, newest_timer));
}

void cli_follow_put_newest(cli_follow *f, cli_text *report)
{
  cli_text_free(&f->newest);
  f->newest = *report;
  *report = (cli_text){0};
  write_newest_report(f);
}

void cli_follow_stop(cli_follow *f, int err)
{
  f->err = err;
  f->done = true;
}

/* ---- the reader ---------------------------------------------------------- */

/* poll() with an empty set of events reports only an error or a hang-up: then
   the reader is gone. An event with another cause would be reported without
   end, so the loop stops watching the descriptor. */
static void on_stdout_event(lk_loop_io *io, int events)
{
  cli_follow *f = LK_OWNER(io, cli_follow, stdout_io);
  struct pollfd errors_of_stdout = {STDOUT_FILENO, .events = 0};

  (void)events;
  if (poll(&errors_of_stdout, 1, 0) > 0) {
    f->out.error = EPIPE;
    f->done = true;
  } else {
    lk__loop_stop_io(f->command.session.loop, io);
  }
}

/* The loop reports an error of a descriptor as readable, and a pipe without a
   reader has an error. So latchkey notices without a write that the reader is
   gone. */
static void watch_reader(cli_follow *f)
{
  struct stat st;

  f->stdout_io.on_events = on_stdout_event;
  f->stdout_io.fd = STDOUT_FILENO;
  if (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
    lk__loop_set_io(f->command.session.loop, &f->stdout_io, LK_LOOP_READ);
}

/* Dies of SIGPIPE if the reader is gone, as other programs do. If SIGPIPE was
   ignored when latchkey was started, and after other errors, prints a complaint
   and returns the exit code. */
static int end_without_output(bool sigpipe_was_ignored, const char *verb,
                              int error)
{
  if (error == EPIPE && !sigpipe_was_ignored) {
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  if (error != EPIPE)
    return cli_fail_to_print(error);
  return cli_fail(CLI_EXIT_FAILED,
                  "%s: standard output was closed by its reader", verb);
}

/* ---- the run ------------------------------------------------------------- */

void cli_follow_begin(cli_follow *f)
{
  lk_loop *loop = f->command.session.loop;
  void (*say_dropped)(cli_text *, size_t) = NULL; /* see cli_follow_is_full() */

  /* The signals are blocked first, since the thread that may copy the output
     must inherit the blocked signals. */
  cli_interrupt_open(&f->interrupt, loop, &f->done);
  f->newest_timer.on_timer = on_newest_timer;
  cli_line_backlog_init(&f->out, STDOUT_FILENO, loop, say_dropped);
  f->done = f->out.error != 0;
  watch_reader(f);
}

void cli_follow_run(cli_follow *f)
{
  cli_session_run(&f->command.session, &f->done);
}

/* Writes the rest of the queue, and waits for the reader without limit. */
static int write_queued_lines(cli_follow *f)
{
  cli_line_backlog *backlog = &f->out;
  cli_text rest = {.at = backlog->queue.at, .len = backlog->queue.len};

  rest.at += backlog->sent;
  rest.len -= backlog->sent;
  int code = cli_print(&rest);

  backlog->sent = backlog->queue.len;
  return code;
}

int cli_follow_end(cli_follow *f)
{
  const char *verb = f->command.verb;

  lk__loop_stop_io(f->command.session.loop, &f->stdout_io);
  lk__loop_stop_timer(f->command.session.loop, &f->newest_timer);
  cli_text_free(&f->newest);
  cli_session_close(&f->command.session);
  cli_interrupt_close(&f->interrupt);
  int error = f->out.error;
  int write_code = error != 0 ? CLI_EXIT_FAILED : write_queued_lines(f);

  cli_line_backlog_close(&f->out);
  int close_code = cli_command_close(&f->command, f->err);

  if (error != 0)
    return end_without_output(f->sigpipe_was_ignored, verb, error);
  return close_code != CLI_EXIT_DONE ? close_code : write_code;
}
