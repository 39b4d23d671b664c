/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/nodes/watch_children.h"
#include "cli/nodes/watch_command.h"
#include "cli/options/verbs.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/output/system_clocks.h"
#include "cli/session/follow.h"

typedef struct watch {
  cli_follow follow;
  lk_listener listener;
  lk_watch *handle;    /* NULL: no watch is set */
  int64_t events_left; /* until the verb ends; INT64_MAX: no limit */
  bool missed; /* the queue is full, and the "missed" event was written */
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

/* While the queue is full, one "missed" event replaces all further events. */
static void write_event(watch *w, const char *event, lk_bytes path)
{
  const cli_command *command = &w->follow.command;
  bool full = cli_follow_is_full(&w->follow);
  cli_text line = {0};

  if (full && w->missed)
    return;
  w->missed = full;
  add_event_line(&line, command->options, full ? "missed" : event,
                 full ? lk_text(command->path) : path);
  cli_follow_put(&w->follow, &line);
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

/* An expired session ends the watch, but not the verb: on_watch_session_state()
   sets a watch in the new session. */
static void on_watch_event(lk_client *c, lk_watch *handle,
                           const lk_event *event, void *arg)
{
  watch *w = arg;

  (void)c;
  (void)handle;
  if (w->follow.done)
    return;
  if (event->type == LK_EVENT_ENDED) {
    w->handle = NULL;
    if (event->err != LK_ERR_SESSION_EXPIRED) {
      cli_follow_stop(&w->follow, event->err);
      return;
    }
  }
  write_event(w, event_name(event->type), event->path);
  /* COUNT of -n counts events of nodes only. */
  if (event->type != LK_EVENT_ENDED && event->type != LK_EVENT_REREGISTERED)
    w->events_left--;
  if (w->events_left == 0)
    w->follow.done = true;
}

static void on_watch_added(lk_client *c, int err, void *arg)
{
  watch *w = arg;

  (void)c;
  if (w->follow.done)
    return;
  if (err == 0) {
    write_event(w, "watching", lk_text(w->follow.command.path));
    return;
  }
  w->handle = NULL;
  if (err != LK_ERR_SESSION_EXPIRED)
    cli_follow_stop(&w->follow, err);
}

static void add_node_watch(watch *w)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_watch_event,
                  .watch_arg = w,
                  .watch = &w->handle};
  lk_watch_mode mode = w->follow.command.options->recursive
                           ? LK_WATCH_RECURSIVE
                           : LK_WATCH_PERSISTENT;
  int err =
      lk_add_watch(w->follow.command.session.client, w->follow.command.path,
                   mode, &call, on_watch_added, w);

  if (err != 0)
    cli_follow_stop(&w->follow, err);
}

static void on_watch_session_state(lk_client *c, lk_state state, int err,
                                   void *arg)
{
  watch *w = arg;

  (void)c;
  if (state == LK_STATE_CONNECTED && w->handle == NULL && !w->follow.done)
    add_node_watch(w);
  if (state == LK_STATE_AUTH_FAILED)
    cli_follow_stop(&w->follow, err);
}

static int watch_events(const cli_options *o, const char *path)
{
  watch w = {.events_left = o->count > 0 ? o->count : INT64_MAX};

  if (!cli_follow_open(&w.follow, o, "watch", path))
    return CLI_EXIT_FAILED;
  lk_client *c = w.follow.command.session.client;

  cli_follow_begin(&w.follow);
  w.listener.state = on_watch_session_state;
  w.listener.arg = &w;
  lk_client_attach(c, &w.listener);
  add_node_watch(&w);
  cli_follow_run(&w.follow);
  lk_client_detach(c, &w.listener);
  return cli_follow_end(&w.follow);
}

/* ---- the verb ------------------------------------------------------------ */

/* Returns a complaint about words that exclude each other, or NULL. */
static const char *find_watch_conflict(const cli_options *o, bool has_command)
{
  if (!o->recursive)
    return NULL;
  if (o->children)
    return "-r and --children exclude each other";
  return has_command ? "-r and COMMAND exclude each other" : NULL;
}

int cli_watch(const cli_options *o, char **operands)
{
  const char *path = operands[0];
  char **command = operands + 1;
  bool has_command = command[0] != NULL;
  const char *conflict = find_watch_conflict(o, has_command);

  if (conflict != NULL)
    return cli_fail(CLI_EXIT_FAILED,
                    "watch: %s; latchkey watch --help shows the usage",
                    conflict);
  if (has_command)
    return cli_watch_command(o, path, command);
  return o->children ? cli_watch_children(o, path) : watch_events(o, path);
}
