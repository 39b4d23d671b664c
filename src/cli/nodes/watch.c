/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/json.h"
#include "cli/output/line_backlog.h"
#include "cli/output/print.h"
#include "cli/session/command.h"
#include "cli/session/interrupt.h"
#include "cli/system_clocks.h"
#include "cli/verbs.h"

/* Size limit of the queue for a slow reader. While it is exceeded, one "missed"
   event replaces all further events. */
enum { MAX_QUEUED_BYTES = 512 << 10 };

typedef struct watch {
  cli_command command;
  cli_line_backlog out;
  lk_listener listener;
  lk_watch *handle;    /* NULL: no watch is set */
  int64_t events_left; /* until the verb ends; INT64_MAX: no limit */
  bool missed; /* the queue is full, and the "missed" event was written */
  bool done;   /* the verb ends */
  int err;     /* why it ends; 0: regularly */
  lk_loop_io stdout_io; /* reports that the other end of the pipe is closed */
} watch;

/* ---- output -------------------------------------------------------------- */

static void add_event_line(cli_text *line, const cli_options *o,
                           const char *event, lk_bytes path)
{
  cli_json j = {.out = line};

  if (!o->json) {
    cli_text_printf(line, "%s ", event);
    cli_text_add_printable(line, path);
  } else {
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "event", lk_text(event));
    cli_json_time(&j, "time", cli_wall_ms());
    cli_json_text(&j, "path", path);
    cli_json_close(&j, '}');
  }
  cli_text_puts(line, "\n");
}

static void write_event(watch *w, const char *event, lk_bytes path)
{
  bool full = w->out.queue.len - w->out.sent > MAX_QUEUED_BYTES;
  cli_text line = {0};

  if (full && w->missed)
    return;
  w->missed = full;
  add_event_line(&line, w->command.options, full ? "missed" : event,
                 full ? lk_text(w->command.path) : path);
  if (line.failed)
    w->err = LK_ERR_NO_MEMORY;
  cli_line_backlog_put(&w->out, lk_bytes_of(line.at, line.len));
  cli_text_free(&line);
  w->done = w->done || w->err != 0 || w->out.broken;
}

/* ---- events -------------------------------------------------------------- */

static const char *event_name(lk_event_type type)
{
  switch (type) {
  case LK_EVENT_CREATED: return "created";
  case LK_EVENT_DELETED: return "deleted";
  case LK_EVENT_CHANGED: return "changed";
  case LK_EVENT_CHILDREN: return "children";
  case LK_EVENT_REREGISTERED: return "missed";
  case LK_EVENT_ENDED: return "expired";
  }
  return "";
}

static void end_watch_verb(watch *w, int err)
{
  w->err = err;
  w->done = true;
}

/* An expired session ends the watch, but not the verb: on_watch_session_state()
   sets a watch in the new session. */
static void on_watch_event(lk_client *c, lk_watch *handle,
                           const lk_event *event, void *arg)
{
  watch *w = arg;

  (void)c;
  (void)handle;
  if (w->done)
    return;
  if (event->type == LK_EVENT_ENDED) {
    w->handle = NULL;
    if (event->err != LK_ERR_SESSION_EXPIRED) {
      end_watch_verb(w, event->err);
      return;
    }
  }
  write_event(w, event_name(event->type), event->path);
  /* COUNT of -n counts events of nodes only. */
  if (event->type != LK_EVENT_ENDED && event->type != LK_EVENT_REREGISTERED)
    w->events_left--;
  if (w->events_left == 0)
    w->done = true;
}

static void on_watch_added(lk_client *c, int err, void *arg)
{
  watch *w = arg;

  (void)c;
  if (w->done)
    return;
  if (err == 0) {
    write_event(w, "watching", lk_text(w->command.path));
    return;
  }
  w->handle = NULL;
  if (err != LK_ERR_SESSION_EXPIRED)
    end_watch_verb(w, err);
}

static void add_node_watch(watch *w)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_watch_event,
                  .watch_arg = w,
                  .watch = &w->handle};
  lk_watch_mode mode =
      w->command.options->recursive ? LK_WATCH_RECURSIVE : LK_WATCH_PERSISTENT;
  int err = lk_add_watch(w->command.session.client, w->command.path, mode,
                         &call, on_watch_added, w);

  if (err != 0)
    end_watch_verb(w, err);
}

static void on_watch_session_state(lk_client *c, lk_state state, int err,
                                   void *arg)
{
  watch *w = arg;

  (void)c;
  if (state == LK_STATE_CONNECTED && w->handle == NULL && !w->done)
    add_node_watch(w);
  if (state == LK_STATE_AUTH_FAILED)
    end_watch_verb(w, err);
}

/* ---- the reader ---------------------------------------------------------- */

/* poll() with an empty set of events reports only an error or a hang-up: then
   the reader is gone. An event with another cause would be reported without
   end, so the loop stops watching the descriptor. */
static void on_stdout_event(lk_loop_io *io, int events)
{
  watch *w = LK_OWNER(io, watch, stdout_io);
  struct pollfd errors_of_stdout = {STDOUT_FILENO, .events = 0};

  (void)events;
  if (poll(&errors_of_stdout, 1, 0) > 0) {
    w->out.broken = true;
    w->done = true;
  } else {
    lk__loop_stop_io(w->command.session.loop, io);
  }
}

/* The loop reports an error of a descriptor as readable, and a pipe without a
   reader has an error. So latchkey notices without a write that the reader is
   gone. */
static void watch_reader(watch *w)
{
  struct stat st;

  w->stdout_io.on_events = on_stdout_event;
  w->stdout_io.fd = STDOUT_FILENO;
  if (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
    lk__loop_set_io(w->command.session.loop, &w->stdout_io, LK_LOOP_READ);
}

/* Dies of SIGPIPE, as other programs do. If SIGPIPE was ignored when latchkey
   was started, prints a complaint and returns the exit code. */
static int end_without_reader(bool sigpipe_was_ignored)
{
  if (!sigpipe_was_ignored) {
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  return cli_fail(CLI_EXIT_FAILED,
                  "watch: standard output was closed by its reader");
}

static void run_watch(watch *w)
{
  lk_loop *loop = w->command.session.loop;
  void (*say_dropped)(cli_text *, size_t) = NULL; /* write_event() says it */
  cli_interrupt interrupt;

  /* The signals are blocked first, since the thread that may copy the output
     must inherit the blocked signals. */
  cli_interrupt_open(&interrupt, loop, &w->done);
  cli_line_backlog_init(&w->out, STDOUT_FILENO, loop, say_dropped);
  watch_reader(w);
  w->listener.state = on_watch_session_state;
  w->listener.arg = w;
  lk_client_attach(w->command.session.client, &w->listener);
  add_node_watch(w);
  cli_session_run(&w->command.session, &w->done);
  lk_client_detach(w->command.session.client, &w->listener);
  lk__loop_stop_io(loop, &w->stdout_io);
  cli_session_close(&w->command.session);
  cli_interrupt_close(&interrupt);
}

/* Writes the rest of the queue, and waits for the reader without limit. */
static int write_queued_events(watch *w)
{
  cli_line_backlog *backlog = &w->out;
  cli_text rest = {.at = backlog->queue.at, .len = backlog->queue.len};

  rest.at += backlog->sent;
  rest.len -= backlog->sent;
  int code = cli_print(&rest);

  backlog->sent = backlog->queue.len;
  return code;
}

int cli_watch(const cli_options *o, char **operands)
{
  bool sigpipe_was_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
  watch w = {.events_left = o->count > 0 ? o->count : INT64_MAX};

  if (!cli_command_open(&w.command, o, "watch", operands[0]))
    return CLI_EXIT_FAILED;
  run_watch(&w);
  bool broken = w.out.broken;
  int write_code = broken ? CLI_EXIT_FAILED : write_queued_events(&w);

  cli_line_backlog_close(&w.out);
  int close_code = cli_command_close(&w.command, w.err);

  if (broken)
    return end_without_reader(sigpipe_was_ignored);
  return close_code != CLI_EXIT_DONE ? close_code : write_code;
}
