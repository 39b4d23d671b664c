/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/runner.h"

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
