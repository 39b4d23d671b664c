/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/error_report.h"
#include "cli/locks/contenders.h"
#include "cli/run/runner.h"
#include "cli/session/session_messages.h"
#include "cli/system_clocks.h"

/* Timeout of the request for the holder's label. */
enum { LABEL_WAIT_MS = 2000 };

/* ---- the holder's label -------------------------------------------------- */

/* A request for the holder's label, which completes the report of the position
   in the queue. The reply is ignored if a newer request was sent meanwhile. */
typedef struct waiting_report {
  cli_runner *runner;
  uint64_t number; /* of the request; see cli_runner.label_requests */
  size_t position;
} waiting_report;

static void on_holder_label(lk_client *c, int err, const lk_bytes *data,
                            const lk_stat *stat, void *arg)
{
  waiting_report *report = arg;
  cli_runner *r = report->runner;
  bool shown = err == 0 && data->at != NULL && !cli_is_revoke_message(data);
  lk_bytes label = shown ? *data : lk_text(NULL);

  (void)c;
  (void)stat;
  if (report->number == r->label_requests && r->phase == CLI_PHASE_QUEUEING)
    cli_events_waiting(&r->events, lk_lock_node(r->lock), report->position,
                       label);
  free(report);
}

static void request_holder_label(cli_runner *r, const lk_lock_event *event)
{
  waiting_report *report =
      cli_events_wants_waiting(&r->events) ? malloc(sizeof *report) : NULL;
  lk_call call = {.size = sizeof call};

  call.deadline_ms = lk_client_clock(r->session.client) + LABEL_WAIT_MS;
  if (report == NULL)
    return;
  *report = (waiting_report){r, ++r->label_requests, event->position};
  if (event->node == NULL || lk_get(r->session.client, event->node, &call,
                                    on_holder_label, report) != 0)
    on_holder_label(r->session.client, LK_ERR_NO_NODE, NULL, NULL, report);
}

/* ---- lock events --------------------------------------------------------- */

static void on_lock_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  cli_runner *r = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_WAITING:
    request_holder_label(r, event);
    /* Without a node to wait for, the first contender waits for permits. */
    if (event->position == 1 && event->node == NULL)
      cli_permit_mismatch_check_later(r);
    break;
  case LK_LOCK_EVENT_PLACE_LOST:
    cli_events_notice(&r->events,
                      "lost the place in the queue (%s); queueing again",
                      lk_error_text(event->err));
    break;
  case LK_LOCK_EVENT_MIXED_QUEUE:
    cli_events_notice(&r->events,
                      "warning: %s belongs to another kind of lock or another "
                      "--layout, and perhaps does not wait for this lock; use "
                      "the same options everywhere, or another path",
                      event->node == NULL ? "a node" : event->node);
    break;
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_UNSURE:
  case LK_LOCK_EVENT_RENEWED:
  case LK_LOCK_EVENT_LOST:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: cli_hold_event(r, event); break;
  }
}

static const char *acquire_reason(int err)
{
  switch (err) {
  case LK_ERR_BUSY: return "is held by another client";
  case LK_ERR_DEADLINE: return "is still held by another client";
  case LK_ERR_NO_AUTH:
    return "its access list, or that of a parent node, does not permit READ, "
           "CREATE and DELETE";
  default: return cli_error_reason(err);
  }
}

/* LK_ERR_NO_NODE: the chroot is missing, since the lock creates all other
   parent nodes itself. */
static void say_not_acquired(const cli_runner *r, int err, cli_text *out)
{
  bool busy = err == LK_ERR_BUSY || err == LK_ERR_DEADLINE;

  cli_text_add_printable(out, lk_text(r->path));
  cli_text_puts(out, ": ");
  if (err == LK_ERR_NO_NODE && *lk_client_chroot(r->session.client) != '\0') {
    cli_session_say_no_chroot(&r->session, out);
    return;
  }
  err = cli_session_error(&r->session, err);
  cli_text_puts(out, acquire_reason(err));
  if (!busy)
    cli_text_printf(out, "%s%s", cli_error_advice(err),
                    cli_error_doctor_advice(err));
  else if (r->options->wait_ms == 0)
    cli_text_puts(out, "; -w waits for it");
}

static void on_lock_acquired(lk_lock *l, int err, void *arg)
{
  cli_runner *r = arg;
  cli_text text = {0};

  (void)l;
  if (r->phase != CLI_PHASE_QUEUEING)
    return;
  lk__loop_stop_timer(r->session.loop, &r->timer);
  if (err == 0) {
    cli_hold_begin(r);
    return;
  }
  bool busy = err == LK_ERR_BUSY || err == LK_ERR_DEADLINE;

  say_not_acquired(r, err, &text);
  const char *line = cli_text_end(&text);

  cli_run_fail(r, busy ? r->options->conflict_code : CLI_EXIT_FAILED,
               line == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : line,
               busy && r->options->quiet);
  cli_text_free(&text);
}

/* ---- session established ------------------------------------------------- */

/* Computes the margin from the session timeout that the server has granted.
   Returns false if --kill-after is not less than half of this timeout. */
static bool compute_kill_margin(cli_runner *r)
{
  bool fits;

  r->margin_ms = cli_kill_schedule_margin_ms(
      r->options->kill_after_ms, lk_client_timeout_ms(r->session.client),
      &fits);
  (void)lk_lease_set_margin(r->session.client, (int32_t)r->margin_ms);
  return fits;
}

/* For the time before COMMAND is started: ends the run, and returns false, if
   --kill-after is too long for the session timeout. */
static bool check_kill_margin(cli_runner *r)
{
  int64_t timeout = lk_client_timeout_ms(r->session.client);
  char line[160];

  if (compute_kill_margin(r))
    return true;
  snprintf(line, sizeof line,
           "--kill-after must be less than half the session timeout, which is "
           "%d.%03d s; -T requests another",
           (int)(timeout / 1000), (int)(timeout % 1000));
  cli_run_fail(r, CLI_EXIT_FAILED, line, false);
  return false;
}

/* A reconnect can change the session timeout while COMMAND runs. The run goes
   on even if --kill-after is too long now. */
static void adapt_kill_margin(cli_runner *r)
{
  int64_t timeout = lk_client_timeout_ms(r->session.client);

  if (!compute_kill_margin(r))
    cli_events_notice(&r->events,
                      "warning: the session timeout is %d.%03d s now: TERM is "
                      "sent only %d.%03d s before KILL",
                      (int)(timeout / 1000), (int)(timeout % 1000),
                      (int)(r->margin_ms / 1000), (int)(r->margin_ms % 1000));
  cli_hold_lease_moved(r);
}

static void on_reply_timeout(lk_loop_timer *t)
{
  cli_runner *r = LK_OWNER(t, cli_runner, timer);

  if (r->phase == CLI_PHASE_QUEUEING)
    cli_run_fail(r, CLI_EXIT_FAILED,
                 "connected, but the servers did not reply in time; try again, "
                 "or wait with -w; latchkey doctor tells more",
                 false);
}

void cli_acquire_on_session(cli_session *s, void *arg)
{
  cli_runner *r = arg;
  int64_t wait_ms = r->options->wait_ms;

  /* --acl open, which is the default */
  if (r->acl.list.entries == lk_acl_open.entries)
    cli_events_detail(&r->events,
                      "if this run creates the queue, every client may read, "
                      "create and delete in it; --acl creator with "
                      "--auth-file or --cert restricts that");
  if (!check_kill_margin(r))
    return;
  r->phase = CLI_PHASE_QUEUEING;
  if (wait_ms == 0) {
    r->timer.on_timer = on_reply_timeout;
    lk__loop_set_timer(s->loop, &r->timer, r->options->connect_timeout_ms);
  }
  int err =
      wait_ms > 0
          ? lk_lock_acquire_until(r->lock, r->wait_ends_at, on_lock_acquired, r)
          : lk_lock_acquire(r->lock, wait_ms, on_lock_acquired, r);

  if (err != 0)
    cli_run_fail(r, CLI_EXIT_FAILED, lk_error_text(err), false);
}

void cli_acquire_on_no_session(cli_session *s, int err, void *arg)
{
  cli_runner *r = arg;
  cli_text text = {0};

  (void)err;
  if (r->phase != CLI_PHASE_CONNECTING)
    return;
  cli_session_say_no_session(s, &text);
  const char *line = cli_text_end(&text);

  cli_run_fail(r, CLI_EXIT_FAILED,
               line == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : line, false);
  cli_text_free(&text);
}

static void on_lease_reply(lk_client *c, const lk_reply *reply, void *arg)
{
  (void)c;
  (void)reply;
  cli_hold_lease_moved(arg);
}

static void report_connection_lost(cli_runner *r)
{
  cli_text text = {0};

  cli_session_say_connection_lost(&r->session, &text);
  const char *line = cli_text_end(&text);

  if (line != NULL)
    cli_events_notice(&r->events, "%s; reconnecting", line);
  cli_text_free(&text);
}

static void on_run_session_state(lk_client *c, lk_state state, int err,
                                 void *arg)
{
  cli_runner *r = arg;

  (void)c;
  (void)err;
  if (r->phase != CLI_PHASE_QUEUEING && r->phase != CLI_PHASE_RUNNING)
    return;
  if (state == LK_STATE_CONNECTED && r->suspended)
    cli_events_notice(&r->events, "reconnected");
  if (state == LK_STATE_CONNECTED)
    r->suspended = false;
  if (state == LK_STATE_CONNECTED && r->phase == CLI_PHASE_RUNNING)
    adapt_kill_margin(r);
  else if (state == LK_STATE_CONNECTED && !check_kill_margin(r))
    return;
  if (state != LK_STATE_SUSPENDED)
    return;
  r->suspended = true;
  /* With -v the library's log reports the lost connection. */
  if (!r->events.verbose)
    report_connection_lost(r);
}

static void add_own_label(const cli_runner *r, cli_text *out)
{
  char host[256] = "localhost";

  if (r->options->label != NULL) {
    cli_text_puts(out, r->options->label);
    return;
  }
  gethostname(host, sizeof host - 1);
  cli_text_printf(out, "%s %ld ", host, (long)getpid());
  cli_text_time(out, cli_wall_ms());
}

static int create_run_lock(cli_runner *r)
{
  bool fits; /* not used: the server has not granted a timeout yet */
  int64_t margin = cli_kill_schedule_margin_ms(
      r->options->kill_after_ms, r->options->session_timeout_ms, &fits);
  lk_lease_config lease = {.size = sizeof lease};
  lk_lock_config lock = {.size = sizeof lock};
  cli_text label = {0};

  lease.assurance = r->options->assurance;
  lease.margin_ms = margin < 1 ? 1 : (int32_t)margin;
  int err = lk_lease_configure(r->session.client, &lease);

  if (err != 0)
    return err;
  add_own_label(r, &label);
  lock.data = lk_bytes_of(label.failed ? "" : label.at, label.len);
  lock.acl = &r->acl.list;
  lock.on_event = on_lock_event;
  lock.arg = r;
  lock.revocable = true;
  lock.layout = r->options->layout;
  lock.prefix = r->options->prefix;
  err = cli_lock_kind_open(&r->kind, r->options, r->session.client, r->path,
                           &lock);
  r->lock = r->kind.lock;
  cli_text_free(&label);
  return err;
}

bool cli_acquire_prepare(cli_runner *r, cli_text *complaint)
{
  const cli_options *o = r->options;

  if (!cli_session_open(&r->session, o, complaint))
    return false;
  r->wait_ends_at = cli_session_deadline(&r->session);
  int err = create_run_lock(r);

  if (err != 0) {
    cli_text_add_printable(complaint, lk_text(r->path));
    cli_text_printf(complaint, ": %s%s", lk_error_text(err),
                    cli_error_advice(err));
    return false;
  }
  r->listener.reply = on_lease_reply;
  r->listener.state = on_run_session_state;
  r->listener.arg = r;
  lk_client_attach(r->session.client, &r->listener);
  return true;
}
