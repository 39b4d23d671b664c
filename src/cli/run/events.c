/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/output/system_clocks.h"
#include "cli/run/events.h"

/* COMMAND must inherit the descriptors 0 to 2, so events go to a close-on-exec
   copy of these. Other descriptors become close-on-exec themselves. */
int cli_events_take_fd(int fd)
{
  if (fd < 0)
    return -1;
  if (fd <= STDERR_FILENO)
    return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

void cli_events_open(cli_events *e, const cli_options *o, int fd,
                     const cli_service_manager *manager, const char *path_key,
                     const char *path, lk_loop *loop)
{
  memset(e, 0, sizeof *e);
  e->path_key = path_key;
  e->path = path;
  e->manager = manager;
  e->verbose = o->verbose && !o->quiet;
  e->quiet = o->quiet;
  e->progress = e->verbose || (!o->quiet && isatty(STDERR_FILENO) != 0);
  e->json_only = fd < 0 && o->json;
  cli_line_backlog_init(&e->people, STDERR_FILENO, loop,
                        e->json_only ? cli_dropped_json : cli_dropped_text);
  if (fd >= 0)
    cli_line_backlog_init(&e->programs, fd, loop, cli_dropped_json);
  if (fd >= 0)
    e->json = &e->programs;
  else if (o->json)
    e->json = &e->people;
}

void cli_events_close(cli_events *e)
{
  cli_line_backlog_close(&e->people);
  cli_line_backlog_close(&e->programs);
  cli_text_free(&e->node);
}

static void write_people_line(cli_events *e, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void write_people_line(cli_events *e, const char *format, va_list args)
{
  char text[4085]; /* a longer text is cut */
  char line[sizeof text + sizeof "latchkey: \n"];

  if (vsnprintf(text, sizeof text, format, args) < 0)
    text[0] = '\0';
  cli_text_mask_controls(text);
  int len = snprintf(line, sizeof line, "latchkey: %s\n", text);

  cli_line_backlog_put(&e->people, lk_bytes_of(line, (size_t)len));
}

void cli_events_detail(cli_events *e, const char *format, ...)
{
  va_list args;

  if (e->json_only || !e->verbose)
    return;
  va_start(args, format);
  write_people_line(e, format, args);
  va_end(args);
}

void cli_events_status(cli_events *e, const char *format, ...)
{
  cli_text text = {0};
  va_list args;

  va_start(args, format);
  cli_text_vprintf(&text, format, args);
  va_end(args);
  cli_service_manager_status(e->manager, cli_text_end(&text));
  cli_text_free(&text);
}

bool cli_events_wants_waiting(const cli_events *e)
{
  return e->json != NULL || e->progress || e->manager->fd >= 0;
}

static cli_json begin_json_event(const cli_events *e, cli_text *line,
                                 const char *event)
{
  cli_json j = {.out = line};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "event", lk_text(event));
  cli_json_time(&j, "time", cli_wall_ms());
  cli_json_text(&j, e->path_key, lk_text(e->path));
  return j;
}

static void end_json_event(cli_events *e, cli_json *j)
{
  cli_json_close(j, '}');
  cli_text_puts(j->out, "\n");
  if (!j->out->failed)
    cli_line_backlog_put(e->json, lk_bytes_of(j->out->at, j->out->len));
  cli_text_free(j->out);
}

static void write_json_notice(cli_events *e, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void write_json_notice(cli_events *e, const char *format, va_list args)
{
  char reason[4096];
  cli_text line = {0};
  cli_json j = begin_json_event(e, &line, "notice");

  vsnprintf(reason, sizeof reason, format, args);
  cli_json_text(&j, "reason", lk_text(reason));
  end_json_event(e, &j);
}

static void write_notice(cli_events *e, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void write_notice(cli_events *e, const char *format, va_list args)
{
  if (e->json_only)
    write_json_notice(e, format, args);
  else
    write_people_line(e, format, args);
}

void cli_events_say(cli_events *e, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  write_notice(e, format, args);
  va_end(args);
}

void cli_events_notice(cli_events *e, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  if (!e->quiet)
    write_notice(e, format, args);
  va_end(args);
}

static void write_waiting_line(cli_events *e, const char *waits_for,
                               size_t position, lk_bytes holder)
{
  cli_text printable = {0}, text = {0};

  cli_text_add_printable(&printable, holder);
  const char *label = cli_text_end(&printable);

  if (label == NULL || *label == '\0')
    label = "another client";
  if (position > 0)
    cli_text_printf(&text, "waiting for %s: position %zu, held by %s",
                    waits_for, position, label);
  else
    cli_text_printf(&text, "waiting for %s: held by %s", waits_for, label);
  const char *line = cli_text_end(&text);

  if (line != NULL && e->progress && !e->json_only)
    cli_events_say(e, "%s", line);
  cli_service_manager_status(e->manager, line);
  cli_text_free(&text);
  cli_text_free(&printable);
}

void cli_events_waiting(cli_events *e, const char *waits_for, const char *node,
                        size_t position, lk_bytes holder)
{
  write_waiting_line(e, waits_for == NULL ? e->path : waits_for, position,
                     holder);
  if (e->json == NULL)
    return;
  cli_text line = {0};
  cli_json j = begin_json_event(e, &line, "waiting");

  if (node != NULL)
    cli_json_text(&j, "node", lk_text(node));
  if (position > 0)
    cli_json_number(&j, "position", (int64_t)position);
  if (waits_for != NULL)
    cli_json_text(&j, "waits_for", lk_text(waits_for));
  if (holder.at != NULL)
    cli_json_data(&j, "holder", holder);
  end_json_event(e, &j);
}

void cli_events_acquired(cli_events *e, const cli_lock_kind *kind,
                         const lk_client *c)
{
  const char *node = cli_lock_kind_node(kind, e->path);

  e->token = cli_lock_kind_token(kind, e->path);
  e->session = lk_client_session(c).id;
  e->node.len = 0;
  cli_text_puts(&e->node, node == NULL ? "" : node);
  e->holds = true;
  cli_events_lock(e, "acquired", kind->lock, c);
}

static cli_json begin_lock_event(const cli_events *e, cli_text *line,
                                 const char *event)
{
  cli_json j = begin_json_event(e, line, event);

  cli_json_text(&j, "node", lk_bytes_of(e->node.at, e->node.len));
  cli_json_uint64(&j, "token", e->token);
  cli_json_hex(&j, "session", (uint64_t)e->session);
  return j;
}

void cli_events_lock(cli_events *e, const char *event, const lk_lock *l,
                     const lk_client *c)
{
  if (e->json == NULL)
    return;
  cli_text line = {0};
  cli_json j = begin_lock_event(e, &line, event);
  const int64_t no_deadline = INT64_MIN; /* as lk_lock_deadline() returns it */
  int64_t deadline = lk_lock_deadline(l);

  if (deadline != no_deadline) {
    int64_t left_ms = deadline - lk_client_clock(c);

    cli_json_number(&j, "lease_ms", left_ms < 0 ? 0 : left_ms);
  }
  end_json_event(e, &j);
}

/* The last event of a lock. `reason` may be NULL. */
static void write_lock_end(cli_events *e, const char *event, const char *reason)
{
  bool is_first_end = e->holds;

  e->holds = false;
  if (e->json == NULL || !is_first_end)
    return;
  cli_text line = {0};
  cli_json j = begin_lock_event(e, &line, event);

  if (reason != NULL)
    cli_json_text(&j, "reason", lk_text(reason));
  end_json_event(e, &j);
}

void cli_events_lost(cli_events *e, const char *reason)
{
  write_lock_end(e, "lost", reason);
}

void cli_events_released(cli_events *e)
{
  write_lock_end(e, "released", NULL);
}

void cli_events_member(cli_events *e, const char *event, const lk_membership *m,
                       const lk_client *c, const char *reason)
{
  if (e->json == NULL)
    return;
  cli_text line = {0};
  cli_json j = begin_json_event(e, &line, event);

  cli_json_text(&j, "node", lk_text(lk_membership_path(m)));
  if (reason == NULL)
    cli_json_hex(&j, "session", (uint64_t)lk_client_session(c).id);
  else
    cli_json_text(&j, "reason", lk_text(reason));
  end_json_event(e, &j);
}

void cli_events_failed(cli_events *e, int code, const char *reason)
{
  if (!e->json_only)
    cli_events_say(e, "%s", reason);
  cli_events_failed_silently(e, code, reason);
}

void cli_events_failed_silently(cli_events *e, int code, const char *reason)
{
  if (e->json == NULL)
    return;
  cli_text line = {0};
  cli_json j = begin_json_event(e, &line, "failed");

  cli_json_text(&j, "reason", lk_text(reason));
  cli_json_number(&j, "code", code);
  end_json_event(e, &j);
}
