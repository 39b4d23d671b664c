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

/* A report of the position in the queue. It is written when the request for the
   holder's label has completed. */
typedef struct waiting_report {
  cli_runner *runner;
  uint64_t request; /* number of the request; see cli_runner.label_requests */
  size_t position;
} waiting_report;

/* Writes the report, unless a newer request was sent meanwhile, and frees it.
 */
static void finish_waiting_report(waiting_report *report, lk_bytes label)
{
  cli_runner *r = report->runner;
  bool is_newest = report->request == r->label_requests;

  if (is_newest && r->phase == CLI_PHASE_QUEUEING)
    cli_events_waiting(&r->events, lk_lock_node(r->lock), report->position,
                       label);
  free(report);
}

static void on_holder_label(lk_client *c, int err, const lk_bytes *data,
                            const lk_stat *stat, void *arg)
{
  bool has_label = err == 0 && data->at != NULL && !cli_is_revoke_message(data);

  (void)c;
  (void)stat;
  finish_waiting_report(arg, has_label ? *data : lk_text(NULL));
}

static void report_waiting(cli_runner *r, const lk_lock_event *event)
{
  if (!cli_events_wants_waiting(&r->events))
    return;
  waiting_report *report = malloc(sizeof *report);
  lk_call call = {.size = sizeof call};

  if (report == NULL)
    return;
  call.deadline_ms = lk_client_clock(r->session.client) + LABEL_WAIT_MS;
  *report = (waiting_report){
      .runner = r, .request = ++r->label_requests, .position = event->position};
  if (event->node == NULL || lk_get(r->session.client, event->node, &call,
                                    on_holder_label, report) != 0)
    finish_waiting_report(report, lk_text(NULL));
}

/* ---- lock events --------------------------------------------------------- */

static void on_lock_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  cli_runner *r = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_WAITING:
    report_waiting(r, event);
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

static bool is_busy(int err)
{
  return err == LK_ERR_BUSY || err == LK_ERR_DEADLINE;
}

static void say_not_acquired(const cli_runner *r, int err, cli_text *out)
{
  bool has_chroot = *lk_client_chroot(r->session.client) != '\0';

  cli_text_add_printable(out, lk_text(r->path));
  cli_text_puts(out, ": ");
  /* The lock creates all missing parent nodes but the chroot. */
  if (err == LK_ERR_NO_NODE && has_chroot) {
    cli_session_say_no_chroot(&r->session, out);
    return;
  }
  err = cli_session_error(&r->session, err);
  cli_text_puts(out, acquire_reason(err));
  if (!is_busy(err))
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
  say_not_acquired(r, err, &text);
  const char *line = cli_text_end(&text);

  if (line == NULL)
    line = lk_error_text(LK_ERR_NO_MEMORY);
  if (!is_busy(err))
    cli_run_fail(r, CLI_EXIT_FAILED, line);
  else if (r->options->quiet)
    cli_run_fail_silently(r, r->options->conflict_code, line);
  else
    cli_run_fail(r, r->options->conflict_code, line);
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

/* Called before COMMAND is started. If --kill-after is too long for the session
   timeout, ends the run and returns false. */
static bool compute_kill_margin_or_fail(cli_runner *r)
{
  int64_t timeout_ms = lk_client_timeout_ms(r->session.client);
  char line[160];

  if (compute_kill_margin(r))
    return true;
  snprintf(line, sizeof line,
           "--kill-after must be less than half the session timeout, which is "
           "%d.%03d s; -T requests another",
           (int)(timeout_ms / 1000), (int)(timeout_ms % 1000));
  cli_run_fail(r, CLI_EXIT_FAILED, line);
  return false;
}

/* A reconnect can change the session timeout while COMMAND runs. The run goes
   on even if --kill-after is too long now. */
static void adapt_kill_margin(cli_runner *r)
{
  int64_t timeout_ms = lk_client_timeout_ms(r->session.client);

  if (!compute_kill_margin(r))
    cli_events_notice(&r->events,
                      "warning: the session timeout is %d.%03d s now: TERM is "
                      "sent only %d.%03d s before KILL",
                      (int)(timeout_ms / 1000), (int)(timeout_ms % 1000),
                      (int)(r->margin_ms / 1000), (int)(r->margin_ms % 1000));
  cli_hold_lease_moved(r);
}

static void on_reply_timeout(lk_loop_timer *t)
{
  cli_runner *r = LK_OWNER(t, cli_runner, timer);

  if (r->phase == CLI_PHASE_QUEUEING)
    cli_run_fail(r, CLI_EXIT_FAILED,
                 "connected, but the servers did not reply in time; try again, "
                 "or wait with -w; latchkey doctor tells more");
}

void cli_acquire_on_session(cli_session *s, void *arg)
{
  cli_runner *r = arg;
  int64_t wait_ms = r->options->wait_ms;
  bool acl_is_open = r->acl.list.entries == lk_acl_open.entries;

  if (acl_is_open)
    cli_events_detail(&r->events,
                      "if this run creates the queue, every client may read, "
                      "create and delete in it; --acl creator with "
                      "--auth-file or --cert restricts that");
  if (!compute_kill_margin_or_fail(r))
    return;
  r->phase = CLI_PHASE_QUEUEING;
  if (wait_ms == 0) {
    r->timer.on_timer = on_reply_timeout;
    lk__loop_set_timer(s->loop, &r->timer, r->options->connect_timeout_ms);
  }
  /* A limited -w began with the connection; `wait_ends_at` is its end. Without
     a limit `wait_ms` is -1. */
  int err =
      wait_ms > 0
          ? lk_lock_acquire_until(r->lock, r->wait_ends_at, on_lock_acquired, r)
          : lk_lock_acquire(r->lock, wait_ms, on_lock_acquired, r);

  if (err != 0)
    cli_run_fail(r, CLI_EXIT_FAILED, lk_error_text(err));
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
               line == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : line);
  cli_text_free(&text);
}

/* Each reply can move the lease deadline. */
static void on_run_reply(lk_client *c, const lk_reply *reply, void *arg)
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

static void handle_reconnect(cli_runner *r)
{
  if (r->suspended)
    cli_events_notice(&r->events, "reconnected");
  r->suspended = false;
  if (r->phase == CLI_PHASE_RUNNING)
    adapt_kill_margin(r);
  else
    compute_kill_margin_or_fail(r);
}

static void on_run_session_state(lk_client *c, lk_state state, int err,
                                 void *arg)
{
  cli_runner *r = arg;

  (void)c;
  (void)err;
  if (r->phase != CLI_PHASE_QUEUEING && r->phase != CLI_PHASE_RUNNING)
    return;
  if (state == LK_STATE_CONNECTED)
    handle_reconnect(r);
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

/* Configures the session lease for the requested session timeout;
   compute_kill_margin() adapts it to the granted one. */
static int configure_lease(cli_runner *r)
{
  bool ignored_fits;
  int64_t margin_ms = cli_kill_schedule_margin_ms(
      r->options->kill_after_ms, r->options->session_timeout_ms, &ignored_fits);
  lk_lease_config lease = {.size = sizeof lease,
                           .assurance = r->options->assurance,
                           .margin_ms = margin_ms < 1 ? 1 : (int32_t)margin_ms};

  return lk_lease_configure(r->session.client, &lease);
}

static int create_run_lock(cli_runner *r)
{
  lk_lock_config lock = {.size = sizeof lock};
  cli_text label = {0};
  int err = configure_lease(r);

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
  r->listener.reply = on_run_reply;
  r->listener.state = on_run_session_state;
  r->listener.arg = r;
  lk_client_attach(r->session.client, &r->listener);
  return true;
}
