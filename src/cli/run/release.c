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

  if (had_session && err != 0 && err != LK_ERR_SESSION_EXPIRED)
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

static void close_session(cli_runner *r)
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
  close_session(r);
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
  /* The acquisition ends with LK_ERR_CANCELLED, which on_lock_acquired()
     ignores in this phase. */
  if (r->lock != NULL)
    lk_lock_cancel(r->lock);
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

/* The client cannot know when the lock is free: without a quorum no session
   expires, and a new leader gives each session its full timeout again. */
static void warn_not_released(cli_runner *r)
{
  cli_events_notice(&r->events,
                    "warning: %s: no server is reachable to release the lock; "
                    "the lock is free once the servers have had a quorum for "
                    "one session timeout",
                    r->path);
}

/* Whether the client has given up the session without a reply of a server: the
   servers may keep the session and its node for longer. */
static bool is_session_given_up(const lk_client *c)
{
  bool was_abandoned = lk_client_abandoned_session_end(c) != INT64_MIN;

  return lk_client_state(c) == LK_STATE_EXPIRED && was_abandoned;
}

static void on_lock_released(lk_lock *l, int err, void *arg)
{
  cli_runner *r = arg;
  const lk_lock *not_held = NULL;

  (void)l;
  if (r->phase != CLI_PHASE_RELEASING)
    return;
  if (err == 0 && is_session_given_up(r->session.client))
    warn_not_released(r);
  else if (err == 0)
    cli_events_lock(&r->events, "released", not_held, r->session.client, NULL);
  else
    cli_events_notice(&r->events,
                      "warning: %s: the lock's node could not be deleted (%s); "
                      "it is deleted when the session ends",
                      r->path, lk_error_text(err));
  close_session(r);
}

void cli_run_stop_releasing(cli_runner *r)
{
  if (r->phase != CLI_PHASE_RELEASING)
    return;
  warn_not_released(r);
  close_session(r);
}

static void on_run_release_timeout(lk_loop_timer *t)
{
  cli_run_stop_releasing(LK_OWNER(t, cli_runner, timer));
}

void cli_run_release(cli_runner *r)
{
  r->phase = CLI_PHASE_RELEASING;
  cli_events_status(&r->events, "COMMAND has ended; releasing %s", r->path);
  if (lk_lock_release_until(r->lock, LK_NO_LIMIT, on_lock_released, r) != 0) {
    close_session(r); /* the lock was lost: there is nothing to release */
    return;
  }
  r->timer.on_timer = on_run_release_timeout;
  lk__loop_set_timer(r->session.loop, &r->timer,
                     lk_client_timeout_ms(r->session.client));
}
