/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "cli/output/error_report.h"
#include "cli/output/system_clocks.h"
#include "cli/run/descendants.h"
#include "cli/run/job.h"
#include "cli/run/runner.h"
#include "cli/session/session.h"

/* What a run does between its connection and its end: it supervises COMMAND
   while the lock is held, keeps the lock until --min-hold is over, releases the
   lock and closes the session. --min-hold keeps other clients from repeating a
   run that was completed, for example a cron job that takes less time than the
   clocks of two machines differ. */

/* ---- the session --------------------------------------------------------- */

static void on_first_session(cli_session *s, void *arg)
{
  cli_runner *r = arg;
  bool acl_is_open = r->acl.list.entries == lk_acl_open()->entries;

  (void)s;
  r->phase = CLI_PHASE_ACQUIRING;
  if (acl_is_open)
    r->target->report_open_acl(r);
  r->target->acquire(r);
}

static void on_no_session(cli_session *s, int err, void *arg)
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
  if (r->target->reconnected != NULL)
    r->target->reconnected(r);
}

static void on_run_session_state(lk_client *c, lk_state state, int err,
                                 void *arg)
{
  cli_runner *r = arg;

  (void)c;
  (void)err;
  if (r->phase != CLI_PHASE_ACQUIRING && r->phase != CLI_PHASE_RUNNING)
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

static void on_run_log(cli_session *s, const char *text, void *arg)
{
  cli_runner *r = arg;

  (void)s;
  cli_events_detail(&r->events, "%s", text);
}

static void on_no_session_yet(cli_session *s, const char *text, void *arg)
{
  cli_runner *r = arg;

  (void)s;
  cli_events_notice(&r->events, "%s", text);
}

bool cli_run_session_open(cli_runner *r, cli_text *complaint)
{
  const cli_options *o = r->options;

  r->session.on_session = on_first_session;
  r->session.on_no_session = on_no_session;
  r->session.on_log = on_run_log;
  r->session.on_no_session_yet = on_no_session_yet;
  r->session.arg = r;
  if (!cli_session_open(&r->session, o, complaint))
    return false;
  r->wait_ends_at = cli_session_deadline(&r->session);
  r->listener.size = sizeof r->listener;
  r->listener.state = on_run_session_state;
  r->listener.arg = r;
  int err = r->target->create(r);

  if (err != 0) {
    cli_text_add_printable(complaint, lk_text(r->path));
    cli_text_printf(complaint, ": %s%s", lk_error_text(err),
                    cli_error_advice(err));
    return false;
  }
  lk_client_attach(r->session.client, &r->listener);
  return true;
}

/* ---- --min-hold ---------------------------------------------------------- */

static void end_min_hold(cli_runner *r)
{
  if (r->phase != CLI_PHASE_KEEPING)
    return;
  lk__loop_stop_timer(r->session.loop, &r->timer);
  cli_run_release(r);
}

static void on_min_hold_over(lk_loop_timer *t)
{
  end_min_hold(LK_OWNER(t, cli_runner, timer));
}

/* --min-hold does not apply if COMMAND never ran, if --on-lost acted on COMMAND
   or if the lock was lost: then the run was not completed. */
static bool is_min_hold_wanted(const cli_runner *r)
{
  bool command_ran = r->job.pid != 0;
  bool on_lost_acted = r->code == CLI_EXIT_LOST;

  return command_ran && !on_lost_acted && !r->lock_lost;
}

/* Returns how long the lock must still be kept. 0 or less: it can be released
   now. */
static int64_t min_hold_left_ms(const cli_runner *r)
{
  if (!is_min_hold_wanted(r))
    return 0;
  return r->held_at + r->options->min_hold_ms - cli_boottime_ms();
}

/* Called when COMMAND has ended or could not be started. Releases the lock at
   the end of --min-hold, which counts from the acquisition of the lock. */
static void min_hold_release_later(cli_runner *r)
{
  int64_t left_ms = min_hold_left_ms(r);

  if (left_ms <= 0) {
    cli_run_release(r);
    return;
  }
  r->phase = CLI_PHASE_KEEPING;
  cli_events_detail(&r->events, "%s: held for another %.1f s (--min-hold)",
                    r->path, (double)left_ms / 1000);
  r->timer.on_timer = on_min_hold_over;
  lk__loop_set_timer(r->session.loop, &r->timer, left_ms);
}

void cli_min_hold_signal(cli_runner *r, int number)
{
  if (number == SIGTSTP)
    cli_signals_stop_self();
  if (cli_signal_ends_wait(number))
    end_min_hold(r);
}

/* Reports that the lock was lost in CLI_PHASE_KEEPING, and ends --min-hold.
   COMMAND has ended by itself, so the loss does not change the exit code and
   the message is a notice. */
static void min_hold_lock_lost(cli_runner *r)
{
  cli_events_notice(&r->events, "%s: the lock was lost before --min-hold ended",
                    r->path);
  end_min_hold(r);
}

/* ---- the lease ----------------------------------------------------------- */

/* Membership of a group has no lease. */
static bool has_lease(const cli_runner *r)
{
  return r->lock != NULL;
}

/* Returns the lease deadline on the supervisor's clock, cli_boottime_ms(). That
   clock is read before the client's clock: an interruption between the two
   makes the deadline earlier, not later. */
static int64_t lease_deadline_on_boottime(const cli_runner *r)
{
  if (!has_lease(r))
    return INT64_MAX;
  int64_t now = cli_boottime_ms();
  int64_t deadline = lk_lock_deadline(r->lock);
  bool has_deadline = deadline != INT64_MIN;

  if (!has_deadline)
    return now;
  return now + (deadline - lk_client_clock(r->session.client));
}

/* Watches the socket for writing, too, while an order waits for room. */
static void watch_supervisor(cli_runner *r)
{
  bool is_watched = r->supervisor_io.events != 0;
  bool order_waits = r->supervisor.waiting.what != 0;

  if (is_watched)
    lk__loop_set_io(r->session.loop, &r->supervisor_io,
                    order_waits ? LK_LOOP_READ | LK_LOOP_WRITE : LK_LOOP_READ);
}

static void send_supervisor_order(cli_runner *r, const cli_order *order)
{
  cli_supervisor_send_order(&r->supervisor, order);
  watch_supervisor(r);
}

/* An order for each reply would wake the supervisor often. So a deadline that
   is later by less than a fiftieth of the margin is not sent. An earlier
   deadline is always sent. */
static bool is_lease_order_needed(const cli_runner *r, const cli_order *order)
{
  int64_t unsent_ms = r->margin_ms / 50;

  return order->lease_deadline < r->last_order.lease_deadline ||
         order->lease_deadline > r->last_order.lease_deadline + unsent_ms ||
         order->margin_ms != r->last_order.margin_ms;
}

void cli_hold_lease_moved(cli_runner *r)
{
  if (r->phase != CLI_PHASE_RUNNING || r->lock_lost || r->command_ended)
    return;
  cli_order order = {.what = CLI_ORDER_LEASE,
                     .lease_deadline = lease_deadline_on_boottime(r),
                     .margin_ms = r->margin_ms};

  if (!is_lease_order_needed(r, &order))
    return;
  r->last_order = order;
  send_supervisor_order(r, &order);
}

/* ---- the start of COMMAND ------------------------------------------------ */

/* Called when COMMAND has ended or could not be started. Does nothing if it was
   called before. */
static void end_hold(cli_runner *r)
{
  if (r->phase != CLI_PHASE_RUNNING)
    return;
  /* Descendants that outlive COMMAND are not killed. */
  lk__loop_stop_io(r->session.loop, &r->supervisor_io);
  cli_supervisor_close(&r->supervisor);
  min_hold_release_later(r);
}

static const char *start_error_text(int error)
{
  return error == ETIMEDOUT
             ? "the lease had expired before COMMAND was started; try again"
             : strerror(error);
}

static void report_not_started(cli_runner *r, int code, int error)
{
  cli_text line = {0};

  if (r->command_ended)
    return;
  cli_command_process_say_not_run(r->job.argv[0], start_error_text(error),
                                  cli_command_process_failure_advice(error),
                                  &line);
  const char *text = cli_text_end(&line);

  r->command_ended = true;
  r->not_started = true;
  r->code = code;
  cli_events_failed(&r->events, r->code,
                    text == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : text);
  cli_text_free(&line);
  end_hold(r);
}

void cli_hold_begin(cli_runner *r)
{
  cli_order order = {.what = CLI_ORDER_START,
                     .lease_deadline = lease_deadline_on_boottime(r),
                     .margin_ms = r->margin_ms,
                     .max_hold_ms = r->options->max_hold_ms};
  cli_text *environment = &r->environment;

  r->phase = CLI_PHASE_RUNNING;
  r->held_at = cli_boottime_ms();
  r->target->report_acquired(r);
  r->target->add_environment(r, environment);
  r->last_order = order;
  int error = environment->failed
                  ? ENOMEM
                  : cli_supervisor_start_command(
                        &r->supervisor, &order,
                        lk_bytes_of(environment->at, environment->len));

  if (error != 0) {
    report_not_started(r, CLI_EXIT_FAILED, error);
    return;
  }
  /* lk_lock_verify() also starts to watch the own node and to renew the lease.
     Its result is not needed, so there is no callback. */
  if (has_lease(r))
    lk_lock_verify(r->lock, NULL, NULL);
}

/* ---- lock events --------------------------------------------------------- */

static void report_lock_lost(cli_runner *r, const lk_lock_event *event)
{
  cli_order order = {.what = CLI_ORDER_LOST};

  r->lock_lost = true;
  cli_events_say(
      &r->events, "%s: the lock is lost while COMMAND runs: %s", r->path,
      event->err == LK_ERR_NO_NODE ? "another client deleted its node"
                                   : lk_error_text(event->err));
  send_supervisor_order(r, &order);
}

void cli_hold_event(cli_runner *r, const lk_lock_event *event)
{
  if (event->type == LK_LOCK_EVENT_LOST)
    cli_events_lost(&r->events, lk_error_text(event->err));
  if (r->phase == CLI_PHASE_KEEPING && event->type == LK_LOCK_EVENT_LOST)
    min_hold_lock_lost(r);
  if (r->phase != CLI_PHASE_RUNNING || r->command_ended)
    return;
  switch (event->type) {
  case LK_LOCK_EVENT_UNSURE:
    cli_events_lock(&r->events, "unsure", r->lock, r->session.client);
    cli_events_notice(&r->events,
                      "%s: no reply from the servers: the lease is running out",
                      r->path);
    break;
  case LK_LOCK_EVENT_RENEWED:
    cli_hold_lease_moved(r);
    cli_events_lock(&r->events, "held", r->lock, r->session.client);
    cli_events_notice(&r->events,
                      "%s: the servers reply again: the lock is held", r->path);
    break;
  case LK_LOCK_EVENT_LOST: report_lock_lost(r, event); break;
  case LK_LOCK_EVENT_UNWATCHED:
    cli_events_notice(&r->events,
                      "warning: the own node cannot be read, so its deletion "
                      "would be noticed late; --acl should permit READ");
    break;
  case LK_LOCK_EVENT_REVOKED:
    r->revoked = true;
    cli_events_lock(&r->events, "revoked", r->lock, r->session.client);
    cli_events_say(
        &r->events,
        "%s: another client asked for the lock: sent TERM to COMMAND", r->path);
    cli_hold_signal(r, (cli_signal){.number = SIGTERM});
    break;
  case LK_LOCK_EVENT_SUSPENDED: /* reported by on_run_session_state() */
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_MIXED_QUEUE: break;
  }
}

/* ---- supervisor reports -------------------------------------------------- */

/* Returns why --on-lost has acted. */
static const char *action_reason(const cli_runner *r)
{
  int64_t max_hold_ms = r->options->max_hold_ms;
  bool max_hold_is_over =
      max_hold_ms > 0 && cli_boottime_ms() >= r->held_at + max_hold_ms;

  if (r->lock_lost)
    return "the lock is lost";
  return max_hold_is_over ? "--max-hold is over" : "the lease is running out";
}

/* `signal`: what was sent; 0: none. */
static void report_action(cli_runner *r, cli_action action, int signal,
                          const char *did)
{
  r->on_lost_acted = true;
  if (signal != 0)
    r->killing = true;
  if (action == CLI_ACTION_CONT)
    cli_events_say(&r->events, "%s: the lease is renewed: continued COMMAND",
                   r->path);
  else if (signal != 0 && signal == r->refused_signal)
    cli_events_say(&r->events, "%s: %s: %s did not reach process %ld", r->path,
                   action_reason(r), cli_signal_name(signal), (long)r->refused);
  else
    cli_events_say(&r->events, "%s: %s: %s", r->path, action_reason(r), did);
}

/* Reports the actions in the order in which they can have happened. */
static void report_actions(cli_runner *r, unsigned action_bits)
{
  static const struct {
    cli_action action;
    int signal;
    const char *did;
  } ordered[] = {{CLI_ACTION_STOP, 0, "stopped COMMAND"},
                 {CLI_ACTION_CONT, 0, "continued COMMAND"},
                 {CLI_ACTION_TERM, SIGTERM, "sent TERM"},
                 {CLI_ACTION_KILL, SIGKILL, "sent KILL"}};

  for (size_t i = 0; i < sizeof ordered / sizeof ordered[0]; i++)
    if ((action_bits & 1u << ordered[i].action) != 0)
      report_action(r, ordered[i].action, ordered[i].signal, ordered[i].did);
}

/* A process of another user, such as one that is set-user-ID. */
static void report_refused(cli_runner *r, int signal, cli_refusal refused)
{
  char name[CLI_PROC_NAME_SIZE];

  cli_proc_name(refused.pid, name);
  cli_events_notice(&r->events,
                    "warning: %s: cannot send %s to process %ld (%s): %s",
                    r->path, cli_signal_name(signal), (long)refused.pid, name,
                    strerror(refused.error));
  r->refused = refused.pid;
  r->refused_signal = signal;
}

static void release_after_command(cli_runner *r)
{
  if (r->lock_lost || r->on_lost_acted)
    r->code = CLI_EXIT_LOST;
  end_hold(r);
}

static void report_command_ended(cli_runner *r, int status)
{
  if (r->command_ended)
    return;
  r->command_ended = true;
  r->code = cli_command_process_exit_code(status);
  if (WIFSIGNALED(status) && cli_signal_ends_loops(WTERMSIG(status)))
    r->died_of = WTERMSIG(status);
  /* After TERM or KILL of --on-lost, the run ends only when no descendant is
     left: take_supervisor_report() calls release_after_command() then. */
  if (!r->killing)
    release_after_command(r);
}

/* Continues COMMAND. In the foreground the terminal has stopped the whole
   process group. */
static void continue_command(cli_runner *r)
{
  cli_order order = cli_order_signal(SIGCONT);

  if (r->job.foreground)
    kill(0, SIGCONT);
  send_supervisor_order(r, &order);
}

/* Stops this process, as COMMAND was stopped, unless no shell could continue
   the two. */
static void stop_beside_command(cli_runner *r)
{
  if (cli_signals_stop_self())
    return;
  continue_command(r);
  if (!r->no_shell_told)
    cli_events_notice(&r->events,
                      "%s: continued COMMAND: no shell could continue latchkey "
                      "here, so it cannot be stopped",
                      r->path);
  r->no_shell_told = true;
}

/* Whether COMMAND is still stopped. The terminal stops latchkey as well by TTIN
   and TTOU, and a shell may have continued both since. */
static bool is_command_stopped(const cli_runner *r)
{
  pid_t parent;
  char state = cli_proc_state(r->job.pid, &parent);
  bool is_traced_stop = state == 't';
  bool is_unknown = state == '\0';

  return state == 'T' || is_traced_stop || is_unknown;
}

/* In the foreground latchkey stops when COMMAND does, so that the shell sees
   that its job has stopped. */
static void follow_command_stop(cli_runner *r, int signal)
{
  bool uses_terminal = signal == SIGTTIN || signal == SIGTTOU;

  if (!is_command_stopped(r))
    return;
  if (r->job.foreground && (signal == SIGTSTP || uses_terminal))
    stop_beside_command(r);
  else if (uses_terminal)
    cli_events_notice(&r->events,
                      "warning: %s: COMMAND was stopped, since it uses the "
                      "terminal in the background; --foreground permits that",
                      r->path);
}

static bool is_releasing_or_closed(const cli_runner *r)
{
  return r->phase == CLI_PHASE_RELEASING || r->phase == CLI_PHASE_CLOSING ||
         r->phase == CLI_PHASE_OVER;
}

static void warn_not_found(cli_runner *r)
{
  cli_events_notice(&r->events,
                    "warning: %s: processes that COMMAND has started may still "
                    "run, without the lock: they cannot be found without a "
                    "control group and without /proc; end them by hand",
                    r->path);
}

static void warn_strangers(cli_runner *r, const cli_orphans_left *left)
{
  char name[CLI_PROC_NAME_SIZE];

  for (size_t i = 0; i < left->stranger_count; i++) {
    cli_proc_name(left->strangers[i], name);
    cli_events_notice(&r->events,
                      "warning: %s: process %ld (%s) may be one that COMMAND "
                      "has started; its environment does not tell, so it was "
                      "not killed",
                      r->path, (long)left->strangers[i], name);
  }
}

static void kill_orphans(cli_runner *r)
{
  const cli_orphans_scope scope = {
      .job = &r->job,
      .supervisor = r->supervisor.pid,
      .before = &r->children_before,
      .environment = lk_bytes_of(r->environment.at, r->environment.len)};
  cli_orphans_left left;

  cli_orphans_kill(&scope, &left);
  if (left.not_found)
    warn_not_found(r);
  if (left.refused.pid != 0)
    report_refused(r, SIGKILL, left.refused);
  warn_strangers(r, &left);
}

static void handle_supervisor_exit(cli_runner *r)
{
  lk__loop_stop_io(r->session.loop, &r->supervisor_io);
  if (is_releasing_or_closed(r))
    return;
  if (r->phase == CLI_PHASE_RUNNING) {
    kill_orphans(r);
    r->command_ended = true;
    r->code = CLI_EXIT_FAILED;
    cli_events_failed(&r->events, r->code,
                      "the supervisor process was killed, and COMMAND with it");
    release_after_command(r);
    return;
  }
  cli_run_fail(r, CLI_EXIT_FAILED,
               "the supervisor process was killed; try again");
}

static void report_started(cli_runner *r, pid_t child)
{
  r->job.pid = child;
  cli_service_manager_ready(r->manager);
  cli_events_status(&r->events, "%s %s", r->target->status, r->path);
}

static void report_no_cgroup(cli_runner *r)
{
  if (r->options->on_lost == CLI_ON_LOST_STOP)
    cli_events_notice(&r->events,
                      "warning: %s: there is no control group for COMMAND, so "
                      "--on-lost stop kills it instead of stopping it",
                      r->path);
  else
    cli_events_detail(&r->events,
                      "there is no control group for COMMAND: if latchkey and "
                      "its supervisor are killed together, only COMMAND itself "
                      "ends with them");
}

static void take_supervisor_report(cli_runner *r,
                                   const cli_supervisor_report *report)
{
  if ((report->what & CLI_REPORT_STARTED) != 0)
    report_started(r, report->child);
  if ((report->what & CLI_REPORT_NO_CGROUP) != 0)
    report_no_cgroup(r);
  if ((report->what & CLI_REPORT_NOT_EXECUTED) != 0)
    report_not_started(r, cli_command_process_failure_code(report->error),
                       report->error);
  if ((report->what & CLI_REPORT_NOT_STARTED) != 0)
    report_not_started(r, CLI_EXIT_FAILED, report->error);
  if ((report->what & CLI_REPORT_REFUSED) != 0)
    report_refused(r, report->refused_signal,
                   (cli_refusal){report->refused, report->refused_error});
  if ((report->what & CLI_REPORT_ACTED) != 0)
    report_actions(r, report->action_bits);
  if ((report->what & CLI_REPORT_STOPPED) != 0)
    follow_command_stop(r, report->signal);
  if ((report->what & CLI_REPORT_ENDED) != 0)
    report_command_ended(r, report->status);
  if ((report->what & CLI_REPORT_NOT_FOUND) != 0)
    warn_not_found(r);
  if ((report->what & CLI_REPORT_NONE_LEFT) != 0 &&
      r->phase == CLI_PHASE_RUNNING)
    release_after_command(r);
}

void cli_hold_supervisor_ready(cli_runner *r)
{
  cli_supervisor_report report;
  cli_received received = CLI_RECEIVED_REPORT;

  cli_supervisor_flush(&r->supervisor);
  watch_supervisor(r);
  /* Handling a report can close the socket. */
  while (received == CLI_RECEIVED_REPORT && r->supervisor.fd >= 0) {
    received = cli_supervisor_receive(&r->supervisor, &report);
    if (received == CLI_RECEIVED_REPORT)
      take_supervisor_report(r, &report);
  }
  if (received == CLI_RECEIVED_END)
    handle_supervisor_exit(r);
}

/* ---- signals ------------------------------------------------------------- */

/* A process of COMMAND may not be signalled, and goes on. While the lock is
   held, the run must not end, as nothing else keeps other clients out. */
static void end_beside_process(cli_runner *r, int signal)
{
  bool is_held =
      !r->lock_lost && lease_deadline_on_boottime(r) > cli_boottime_ms();

  if (is_held) {
    cli_events_say(&r->events,
                   "%s: process %ld cannot be ended, and the lock stays held "
                   "until it has ended",
                   r->path, (long)r->refused);
    return;
  }
  cli_events_say(&r->events,
                 "%s: ended by SIG%s; process %ld goes on without the lock",
                 r->path, cli_signal_name(signal), (long)r->refused);
  r->command_ended = true;
  release_after_command(r);
}

static void note_process_in_group(pid_t pid, void *is_in_group)
{
  if (getpgid(pid) == getpgrp())
    *(bool *)is_in_group = true;
}

/* Whether COMMAND runs and is in latchkey's process group. The supervisor
   reports it only when it has been executed, and the signal can come before. */
static bool command_is_in_group(const cli_runner *r)
{
  bool is_in_group = false;

  if (r->job.pid != 0)
    note_process_in_group(r->job.pid, &is_in_group);
  else
    cli_proc_children_each(r->supervisor.pid, note_process_in_group,
                           &is_in_group);
  return is_in_group;
}

/* Whether the terminal has sent the signal to COMMAND as well: it sends it to a
   process group, which COMMAND can have left, and a hang-up to the leader of
   the session alone. */
static bool command_has_signal(const cli_runner *r, cli_signal signal)
{
  bool to_leader_alone = signal.number == SIGHUP && getsid(0) == getpid();

  return signal.from_terminal && !to_leader_alone && command_is_in_group(r);
}

void cli_hold_signal(cli_runner *r, cli_signal signal)
{
  if (r->refused_signal == SIGKILL && cli_signal_ends_wait(signal.number)) {
    end_beside_process(r, signal.number);
    return;
  }
  cli_order order = cli_order_signal(signal.number);

  if (command_has_signal(r, signal))
    order.what = cli_signal_may_end_command(signal.number)
                     ? (unsigned)CLI_ORDER_SIGNALLED
                     : 0;
  if (order.what != 0)
    send_supervisor_order(r, &order);
  /* In the foreground, latchkey stops in follow_command_stop(), when COMMAND
     has stopped. COMMAND cannot stop if its child was stopped in vfork(). */
  if (signal.number == SIGTSTP && signal.from_terminal &&
      (!r->job.foreground || !cli_signals_have_shell()))
    stop_beside_command(r);
}

/* ---- release of the lock ------------------------------------------------- */

/* The client cannot know when the node is gone: without a quorum no session
   expires, and a new leader gives each session its full timeout again. */
void cli_run_warn_not_released(cli_runner *r)
{
  if (!r->warned)
    cli_events_notice(&r->events, "warning: %s: %s", r->path,
                      r->target->not_released);
  cli_events_lost(&r->events, r->target->not_released);
  r->warned = true;
}

void cli_run_stop_releasing(cli_runner *r)
{
  if (r->phase != CLI_PHASE_RELEASING)
    return;
  cli_run_warn_not_released(r);
  cli_run_close_session(r);
}

static void on_run_release_timeout(lk_loop_timer *t)
{
  cli_run_stop_releasing(LK_OWNER(t, cli_runner, timer));
}

void cli_run_limit_release(cli_runner *r)
{
  r->timer.on_timer = on_run_release_timeout;
  lk__loop_set_timer(r->session.loop, &r->timer,
                     lk_client_timeout_ms(r->session.client));
}

void cli_run_release(cli_runner *r)
{
  r->phase = CLI_PHASE_RELEASING;
  cli_events_status(&r->events, "COMMAND has ended; leaving %s", r->path);
  r->target->release(r);
}

/* ---- end of the session -------------------------------------------------- */

static void finish_run(cli_runner *r)
{
  r->phase = CLI_PHASE_OVER;
  r->over = true;
}

static void on_run_closed(lk_client *c, int err, void *arg)
{
  cli_runner *r = arg;
  bool had_session = lk_client_session(c).id != 0;
  bool may_be_open = had_session && err != 0 && err != LK_ERR_SESSION_EXPIRED;
  /* The node of a lock was deleted before; that of a member is not. */
  bool may_have_node = r->membership != NULL && r->command_ended;

  if (may_be_open && may_have_node)
    cli_run_warn_not_released(r);
  else if (may_be_open)
    cli_events_detail(
        &r->events,
        "the session could not be closed (%s); it ends after its timeout",
        lk_error_text(err));
  finish_run(r);
}

static void on_close_timeout(lk_loop_timer *t)
{
  finish_run(LK_OWNER(t, cli_runner, timer));
}

void cli_run_close_session(cli_runner *r)
{
  r->phase = CLI_PHASE_CLOSING;
  lk__loop_stop_timer(r->session.loop, &r->timer);
  if (lk_client_close(r->session.client, on_run_closed, r) != 0)
    finish_run(r);
}

/* Closes the session after a failed acquisition. If the time of -w is over,
   waits at most CLI_SESSION_CLOSE_MS for the reply. The delete of the own node
   has been sent before. */
static void close_session_in_time(cli_runner *r)
{
  cli_run_close_session(r);
  if (r->over || !cli_session_is_past_deadline(&r->session))
    return;
  r->timer.on_timer = on_close_timeout;
  lk__loop_set_timer(r->session.loop, &r->timer, CLI_SESSION_CLOSE_MS);
}

/* Ends the run before COMMAND was started. */
static void give_up_run(cli_runner *r, int code)
{
  r->code = code;
  r->phase = CLI_PHASE_CLOSING;
  if (r->target->cancel != NULL)
    r->target->cancel(r);
  close_session_in_time(r);
}

void cli_run_fail(cli_runner *r, int code, const char *reason)
{
  cli_events_failed(&r->events, code, reason);
  give_up_run(r, code);
}

void cli_run_fail_silently(cli_runner *r, int code, const char *reason)
{
  cli_events_failed_silently(&r->events, code, reason);
  give_up_run(r, code);
}
