/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/lock_target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/locks/contenders.h"
#include "cli/options/options.h"
#include "cli/output/error_report.h"
#include "cli/output/system_clocks.h"
#include "cli/run/job.h"
#include "cli/run/lock_kind.h"
#include "cli/run/runner.h"
#include "cli/session/session.h"

/* ---- the label of the own node ------------------------------------------- */

void cli_own_label_add(const cli_options *o, cli_text *out)
{
  char host[256] = "localhost";

  if (o->label != NULL) {
    cli_text_puts(out, o->label);
    return;
  }
  gethostname(host, sizeof host - 1);
  cli_text_printf(out, "%s %ld ", host, (long)getpid());
  cli_text_time(out, cli_wall_ms());
}

/* ---- reports of a waiter ------------------------------------------------- */

/* The report of the position in the queue, with the label of the holder, which
   is read from the holder's node first. */

/* Timeout of the request for the holder's label. */
enum { LABEL_WAIT_MS = 2000 };

/* A report of the position in the queue. It is written when the request for the
   holder's label has completed. */
typedef struct waiting_report {
  cli_runner *runner;
  uint64_t request; /* number of the request; see cli_runner.label_requests */
  size_t position;
  char node[]; /* the holder's, or that of the predecessor */
} waiting_report;

/* Writes the report, unless a newer request was sent meanwhile, and frees it.
 */
static void finish_waiting_report(waiting_report *report, lk_bytes label)
{
  cli_runner *r = report->runner;
  bool is_newest = report->request == r->label_requests;

  if (is_newest && r->phase == CLI_PHASE_ACQUIRING &&
      cli_events_wants_waiting(&r->events))
    cli_events_waiting(&r->events, r->waits_for, lk_lock_node(r->lock),
                       report->position, label);
  free(report);
}

bool cli_run_warn_not_ephemeral(cli_runner *r, const char *node,
                                const lk_stat *stat)
{
  if (stat->ephemeral_owner != 0)
    return false;
  if (!r->not_ephemeral_warned)
    cli_events_notice(&r->events,
                      "warning: %s is not ephemeral, so no session holds it: "
                      "the lock is held until a client deletes the node",
                      node);
  r->not_ephemeral_warned = true;
  return true;
}

static void on_holder_label(lk_client *c, int err, const lk_bytes *data,
                            const lk_stat *stat, void *arg)
{
  const waiting_report *report = arg;
  cli_runner *r = report->runner;
  bool has_label = err == 0 && data->at != NULL && !cli_is_revoke_message(data);

  (void)c;
  if (r->phase == CLI_PHASE_ACQUIRING && err == 0)
    (void)cli_run_warn_not_ephemeral(r, report->node, stat);
  finish_waiting_report(arg, has_label ? *data : lk_text(NULL));
}

/* The node of the holder is read in any case, for
   cli_run_warn_not_ephemeral(). */
void cli_run_report_waiting(cli_runner *r, const lk_lock_event *event)
{
  bool is_next = event->position <= 1;
  const char *node = event->node == NULL ? "" : event->node;

  if (!cli_events_wants_waiting(&r->events) && !is_next)
    return;
  waiting_report *report = malloc(sizeof *report + strlen(node) + 1);
  lk_call call = {.size = sizeof call};

  if (report == NULL)
    return;
  call.deadline_ms = lk_client_clock(r->session.client) + LABEL_WAIT_MS;
  *report = (waiting_report){
      .runner = r, .request = ++r->label_requests, .position = event->position};
  memcpy(report->node, node, strlen(node) + 1);
  if (event->node == NULL || lk_get(r->session.client, event->node, &call,
                                    on_holder_label, report) != 0)
    finish_waiting_report(report, lk_text(NULL));
}

/* ---- lock events --------------------------------------------------------- */

static void report_place_lost(cli_runner *r, int err)
{
  if (r->options->single_node)
    cli_events_notice(&r->events, "the own node is gone (%s); trying again",
                      lk_error_text(err));
  else
    cli_events_notice(&r->events,
                      "lost the place in the queue (%s); queueing again",
                      lk_error_text(err));
}

/* With -l, the lock that is held is the directory of the node that the own
   contender waits for. */
static void store_waits_for(cli_runner *r, const char *node)
{
  const char *slash = node == NULL ? NULL : strrchr(node, '/');

  if (!r->kind.is_multilock || slash == NULL)
    return;
  free(r->waits_for);
  r->waits_for = strndup(node, (size_t)(slash - node));
}

static void on_lock_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  cli_runner *r = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_WAITING:
    r->blocked_in_session = lk_client_session(r->session.client).id;
    store_waits_for(r, event->node);
    cli_run_report_waiting(r, event);
    /* Without a node to wait for, the first contender waits for permits. */
    if (event->position == 1 && event->node == NULL)
      cli_run_check_permits_later(r);
    break;
  case LK_LOCK_EVENT_PLACE_LOST:
    r->blocked_in_session = 0;
    report_place_lost(r, event->err);
    break;
  case LK_LOCK_EVENT_MIXED_QUEUE:
    cli_run_warn_mixed_queue(r, event->node == NULL ? "a node" : event->node);
    break;
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_UNSURE:
  case LK_LOCK_EVENT_RENEWED:
  case LK_LOCK_EVENT_LOST:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: cli_hold_event(r, event); break;
  }
}

/* Whether another client holds the lock at the end of -w, or is before us in
 * the queue. It counts only if it was seen in the present session, and if the
 * servers have replied lately: without replies the lock can have become free.
 */
static bool is_still_held(const cli_runner *r)
{
  const lk_client *c = r->session.client;
  int64_t silent_ms = lk_client_clock(c) - r->answered_ms;

  return r->blocked_in_session != 0 &&
         r->blocked_in_session == lk_client_session(c).id &&
         silent_ms <= (int64_t)lk_client_timeout_ms(c) * 2 / 3;
}

/* Whether an acquire that ended with `err` shows that another client holds the
 * lock. */
static bool is_busy(const cli_runner *r, int err)
{
  return err == LK_ERR_BUSY || (err == LK_ERR_DEADLINE && is_still_held(r));
}

static const char *acquire_reason(const cli_runner *r, int err)
{
  switch (err) {
  case LK_ERR_BUSY:
    return r->kind.is_multilock ? "it or a lock of -l is held by another client"
                                : "is held by another client";
  case LK_ERR_DEADLINE:
    return is_still_held(r) ? "is still held by another client"
                            : cli_error_reason(err);
  case LK_ERR_NO_AUTH:
    return "its access list, or that of a parent node, does not permit READ, "
           "CREATE and DELETE";
  default: return cli_error_reason(err);
  }
}

/* `can_wait`: the lock can become free without the help of a person. */
static void say_not_acquired(const cli_runner *r, int err, bool can_wait,
                             cli_text *out)
{
  bool has_chroot = *lk_client_chroot(r->session.client) != '\0';
  bool is_other = err == LK_ERR_DEADLINE && r->waits_for != NULL;

  cli_text_add_printable(out, lk_text(is_other ? r->waits_for : r->path));
  cli_text_puts(out, ": ");
  /* The lock creates all missing parent nodes but the chroot. */
  if (err == LK_ERR_NO_NODE && has_chroot) {
    cli_session_say_no_chroot(&r->session, out);
    return;
  }
  err = cli_session_error(&r->session, err);
  cli_text_puts(out, acquire_reason(r, err));
  if (!is_busy(r, err))
    cli_text_printf(out, "%s%s", cli_error_advice(err),
                    cli_error_doctor_advice(err));
  else if (r->options->wait_ms == 0 && can_wait)
    cli_text_puts(out, "; -w waits for it");
}

static void fail_to_acquire(cli_runner *r, int err, bool can_wait)
{
  cli_text text = {0};

  say_not_acquired(r, err, can_wait, &text);
  const char *line = cli_text_end(&text);

  if (line == NULL)
    line = lk_error_text(LK_ERR_NO_MEMORY);
  if (!is_busy(r, err))
    cli_run_fail(r, CLI_EXIT_FAILED, line);
  else if (r->options->quiet)
    cli_run_fail_silently(r, r->options->conflict_code, line);
  else
    cli_run_fail(r, r->options->conflict_code, line);
  cli_text_free(&text);
}

static void on_node_of_holder(lk_client *c, int err, const lk_stat *stat,
                              void *arg)
{
  cli_runner *r = arg;

  (void)c;
  if (r->phase != CLI_PHASE_ACQUIRING)
    return;
  bool is_left = err == 0 && cli_run_warn_not_ephemeral(r, r->path, stat);

  fail_to_acquire(r, LK_ERR_BUSY, !is_left);
}

/* With -n no waiting contender has seen the node of a single-node lock. Returns
   whether it is read now. */
static bool look_at_single_node(cli_runner *r)
{
  enum { LOOK_MS = 2000 };
  lk_call call = {.size = sizeof call};

  call.deadline_ms = lk_client_clock(r->session.client) + LOOK_MS;
  return r->options->single_node && lk_exists(r->session.client, r->path, &call,
                                              on_node_of_holder, r) == 0;
}

static void on_lock_acquired(lk_lock *l, int err, void *arg)
{
  cli_runner *r = arg;
  const bool can_wait = true;

  (void)l;
  if (r->phase != CLI_PHASE_ACQUIRING)
    return;
  lk__loop_stop_timer(r->session.loop, &r->timer);
  if (err == 0)
    cli_hold_begin(r);
  else if (err == LK_ERR_DEADLINE && r->options->wait_ms == 0)
    cli_run_fail(r, CLI_EXIT_FAILED,
                 "connected, but the servers did not reply in time; try again, "
                 "or wait with -w; latchkey doctor tells more");
  else if (err != LK_ERR_BUSY || !look_at_single_node(r))
    fail_to_acquire(r, err, can_wait);
}

/* ---- after the acquire --------------------------------------------------- */

static void report_lock_acquired(cli_runner *r)
{
  cli_events_acquired(&r->events, &r->kind, r->session.client);
  cli_events_detail(&r->events, "%s: obtained, token %" PRIu64, r->path,
                    r->events.token);
}

static void add_lock_environment(const cli_runner *r, cli_text *out)
{
  const char *node = cli_lock_kind_node(&r->kind, r->path);
  char token[32];

  snprintf(token, sizeof token, "%" PRIu64,
           cli_lock_kind_token(&r->kind, r->path));
  cli_environment_add(out, "LATCHKEY_FENCING_TOKEN", token);
  cli_text_puts(out, "LATCHKEY_FENCING_TOKENS=");
  cli_lock_kind_tokens(&r->kind, r->options, r->path, out);
  cli_text_add(out, "", 1);
  cli_environment_add_session(out, r->session.client);
  cli_environment_add(out, "LATCHKEY_LOCK", r->path);
  cli_environment_add(out, "LATCHKEY_NODE", node == NULL ? "" : node);
  cli_environment_add(out, "LATCHKEY_MODE", cli_lock_kind_mode(r->options));
}

/* ---- the session is established ------------------------------------------ */

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

static void report_open_lock_acl(cli_runner *r)
{
  if (r->options->single_node)
    cli_events_detail(&r->events,
                      "if this run creates the parent of the lock's node, "
                      "every client may create and delete in it; --acl creator "
                      "with --auth-file or --cert restricts that");
  else
    cli_events_detail(&r->events,
                      "if this run creates the queue, every client may read, "
                      "create and delete in it; --acl creator with "
                      "--auth-file or --cert restricts that");
}

/* A limited -w began with the connection; `wait_ends_at` is its end. */
static int begin_acquire(cli_runner *r)
{
  const lk_client *c = r->session.client;
  int64_t wait_ms = r->options->wait_ms;
  int64_t replies_until = lk_client_clock(c) + r->options->connect_timeout_ms;

  if (wait_ms == 0)
    return lk_lock_try_until(r->lock, replies_until, on_lock_acquired, r);
  return wait_ms > 0
             ? lk_lock_acquire_until(r->lock, r->wait_ends_at, on_lock_acquired,
                                     r)
             : lk_lock_acquire(r->lock, LK_NO_LIMIT, on_lock_acquired, r);
}

static void acquire_run_lock(cli_runner *r)
{
  const bool can_wait = true;

  if (!compute_kill_margin_or_fail(r))
    return;
  cli_run_check_other_kind(r);
  int err = begin_acquire(r);

  if (err != 0)
    fail_to_acquire(r, err, can_wait);
}

static void adapt_to_session_timeout(cli_runner *r)
{
  if (r->phase == CLI_PHASE_RUNNING)
    adapt_kill_margin(r);
  else
    compute_kill_margin_or_fail(r);
}

/* Whether a reply shows that the servers serve waiters. A waiter's heartbeats
 * are requests that need the leader, unless it waits for a single node or pings
 * suffice for the lease: then the client only pings. */
static bool shows_service(const cli_runner *r, const lk_reply *reply)
{
  bool only_pings =
      r->options->single_node || r->options->assurance == LK_ASSURE_PING;

  return reply->evidence >=
         (only_pings ? LK_EVIDENCE_CONTACT : LK_EVIDENCE_LEADER);
}

/* If replies take longer than a quarter of the session timeout, no lease ever
   has enough time left for a grant; see lk_lease_config. */
static void warn_of_slow_replies(cli_runner *r, const lk_reply *reply)
{
  enum { SLOW_IN_A_ROW = 3 };
  int64_t took_ms = reply->received_ms - reply->sent_ms;
  int64_t timeout_ms = lk_client_timeout_ms(r->session.client);

  r->slow_replies = took_ms > timeout_ms / 4 ? r->slow_replies + 1 : 0;
  if (r->slow_replies != SLOW_IN_A_ROW || r->slow_replies_warned)
    return;
  r->slow_replies_warned = true;
  cli_events_notice(&r->events,
                    "warning: %s: a reply takes %.2g s, and a lock needs "
                    "replies within a quarter of the session timeout, which "
                    "is %g s; raise -T",
                    r->path, (double)took_ms / 1000, (double)timeout_ms / 1000);
}

/* Each reply can move the lease deadline. */
static void on_run_reply(lk_client *c, const lk_reply *reply, void *arg)
{
  cli_runner *r = arg;

  (void)c;
  if (r->phase == CLI_PHASE_ACQUIRING &&
      r->options->assurance != LK_ASSURE_PING)
    warn_of_slow_replies(r, reply);
  if (shows_service(r, reply))
    r->answered_ms = reply->received_ms;
  cli_hold_lease_moved(r);
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
  cli_own_label_add(r->options, &label);
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
  r->listener.reply = on_run_reply;
  cli_text_free(&label);
  return err;
}

/* ---- end ----------------------------------------------------------------- */

/* The acquisition ends with LK_ERR_CANCELLED, which on_lock_acquired() ignores
   in this phase. */
static void cancel_run_lock(cli_runner *r)
{
  if (r->lock != NULL)
    lk_lock_cancel(r->lock);
}

/* Whether the client has given up the session without a reply of a server: the
   servers may keep the session and its node for longer. */
static bool is_session_given_up(const lk_client *c)
{
  bool was_abandoned = lk_client_abandoned_session_end(c) != INT64_MIN;

  return lk_client_state(c) == LK_STATE_EXPIRED && was_abandoned;
}

static void report_not_deleted(cli_runner *r, int err)
{
  cli_events_notice(&r->events,
                    "warning: %s: the lock's node could not be deleted (%s); "
                    "it is deleted when the session ends",
                    r->path, lk_error_text(err));
  cli_events_lost(&r->events, lk_error_text(err));
}

static void on_lock_released(lk_lock *l, int err, void *arg)
{
  cli_runner *r = arg;

  (void)l;
  if (r->phase != CLI_PHASE_RELEASING)
    return;
  if (err == 0 && is_session_given_up(r->session.client))
    cli_run_warn_not_released(r);
  else if (err == 0)
    cli_events_released(&r->events);
  else
    report_not_deleted(r, err);
  cli_run_close_session(r);
}

static void release_run_lock(cli_runner *r)
{
  if (lk_lock_release_until(r->lock, LK_NO_LIMIT, on_lock_released, r) == 0)
    cli_run_limit_release(r);
  else
    cli_run_close_session(r); /* the lock was lost: nothing is to be released */
}

static void free_run_lock(cli_runner *r)
{
  free(r->waits_for);
  cli_lock_kind_free(&r->kind);
}

const cli_run_target cli_lock_target = {
    .path_key = "lock",
    .status = "COMMAND runs and holds",
    .create = create_run_lock,
    .report_open_acl = report_open_lock_acl,
    .acquire = acquire_run_lock,
    .reconnected = adapt_to_session_timeout,
    .report_acquired = report_lock_acquired,
    .add_environment = add_lock_environment,
    .cancel = cancel_run_lock,
    .release = release_run_lock,
    .free = free_run_lock,
    .not_released = "no server is reachable to release the lock; the lock is "
                    "free once the servers have had a quorum for one session "
                    "timeout"};
