/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/subscribe.h>

#include "cli/nodes/child_names.h"
#include "cli/nodes/watch_command.h"
#include "cli/options/options.h"
#include "cli/options/verbs.h"
#include "cli/output/exit_code.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/output/system_clocks.h"
#include "cli/session/follow.h"

/* ---- lists of children --------------------------------------------------- */

/* Appends one object in a line. */
static void add_children_json(cli_text *out, const char *path, bool missing,
                              const lk_bytes *names, size_t count)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(path));
  cli_json_bool(&j, "missing", missing);
  cli_json_time(&j, "time", cli_wall_ms());
  cli_child_names_json(&j, "children", names, count);
  cli_json_close(&j, '}');
  cli_text_puts(out, "\n");
}

/* Appends the names, one a line, and an empty line. */
static void add_children_text(cli_text *out, const lk_bytes *names,
                              size_t count)
{
  cli_child_names_text(out, names, count);
  cli_text_puts(out, "\n");
}

/* A missing node is reported as an empty list. */
static void on_watched_children(lk_subscription *s, int err,
                                const lk_bytes *names, size_t count,
                                const lk_stat *stat, void *arg)
{
  cli_follow *f = arg;
  bool missing = err == LK_ERR_NO_NODE;
  cli_text report = {0};

  (void)s;
  (void)stat;
  if (f->done)
    return;
  if (err != 0 && !missing) {
    cli_follow_stop(f, err);
    return;
  }
  if (f->command.options->json)
    add_children_json(&report, f->command.path, missing, names, count);
  else
    add_children_text(&report, names, count);
  cli_follow_put_newest(f, &report);
}

/* `latchkey watch --children PATH`: prints the list now and after each change.
   Returns the exit code. */
static int watch_children(const cli_options *o, const char *path)
{
  cli_follow f = {.done = false};
  lk_subscription *subscription;

  if (!cli_follow_open(&f, o, "watch", path))
    return CLI_EXIT_FAILED;
  cli_follow_begin(&f);
  int err = lk_subscribe_children(&subscription, f.command.session.client, path,
                                  NULL, on_watched_children, &f);

  if (err != 0)
    cli_follow_stop(&f, err);
  cli_follow_run(&f);
  lk_subscription_free(subscription);
  return cli_follow_end(&f);
}

/* ---- lines of events ----------------------------------------------------- */

typedef struct watch {
  cli_follow follow;
  lk_listener listener;
  lk_watch *handle;    /* NULL: no watch is set */
  int64_t events_left; /* until the verb ends; INT64_MAX: no limit */
  bool missed; /* the queue is full, and the "missed" event was written */
} watch;

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
  w.listener.size = sizeof w.listener;
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
  return o->children ? watch_children(o, path) : watch_events(o, path);
}
