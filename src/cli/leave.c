/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/runner.h"

static void over(cli_runner *r)
{
  r->phase = CLI_PHASE_OVER;
  r->over = true;
  ev_break(r->link.loop, EVBREAK_ALL);
}

static void on_closed(lk_client *c, int err, void *arg)
{
  cli_runner *r = arg;

  (void)c;
  if (err != 0 && err != LK_ERR_SESSION_EXPIRED && lk_client_session(c).id != 0)
    cli_events_detail(&r->events,
                      "the session could not be closed (%s); it ends by itself "
                      "after its timeout",
                      lk_error_text(err));
  over(r);
}

static void close_session(cli_runner *r)
{
  r->phase = CLI_PHASE_CLOSING;
  ev_timer_stop(r->link.loop, &r->timer);
  if (lk_client_close(r->link.client, on_closed, r) != 0)
    over(r);
}

void cli_leave(cli_runner *r, int code, const char *reason, bool silently)
{
  if (r->phase >= CLI_PHASE_RUNNING)
    return;
  r->code = code;
  cli_events_failed(&r->events, code, reason, silently);
  r->phase = CLI_PHASE_CLOSING;
  /* It ends without a call back into an attempt that is of no interest. */
  if (r->lock != NULL)
    lk_lock_cancel(r->lock);
  close_session(r);
}

static void on_released(lk_lock *l, int err, void *arg)
{
  cli_runner *r = arg;

  (void)l;
  if (r->phase != CLI_PHASE_RELEASING)
    return;
  if (err == 0 && lk_client_state(r->link.client) != LK_STATE_CONNECTED)
    cli_events_notice(&r->events,
                      "warning: %s: no server to release the lock at; the "
                      "session timeout has passed, so it is free",
                      r->path);
  if (err == 0)
    cli_events_lock(&r->events, "released", NULL, r->link.client, NULL);
  else
    cli_events_notice(&r->events,
                      "warning: %s: the lock's node could not be deleted (%s); "
                      "it goes with the session",
                      r->path, lk_error_text(err));
  close_session(r);
}

void cli_leave_now(cli_runner *r)
{
  if (r->phase != CLI_PHASE_RELEASING)
    return;
  cli_events_notice(&r->events,
                    "warning: %s: no server to release the lock at; it is free "
                    "when the session timeout has passed",
                    r->path);
  close_session(r);
}

static void on_timeout(struct ev_loop *loop, ev_timer *timer, int events)
{
  (void)loop;
  (void)events;
  cli_leave_now(timer->data);
}

void cli_leave_after(cli_runner *r)
{
  double seconds = (double)lk_client_timeout_ms(r->link.client) / 1000;

  if (r->phase >= CLI_PHASE_RELEASING)
    return;
  r->phase = CLI_PHASE_RELEASING;
  /* What the command left behind is none of its business any more. */
  ev_io_stop(r->link.loop, &r->guard_news);
  cli_guard_close(&r->guard);
  if (lk_lock_release(r->lock, on_released, r) != 0) {
    close_session(r); /* it was lost: there is nothing to release */
    return;
  }
  ev_timer_init(&r->timer, on_timeout, seconds, 0);
  ev_timer_start(r->link.loop, &r->timer);
}
