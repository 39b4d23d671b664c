/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>

#include "cli/output/system_clocks.h"
#include "cli/run/min_hold.h"
#include "cli/run/runner.h"

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

void cli_min_hold_release_later(cli_runner *r)
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

/* COMMAND has ended by itself, so the loss does not change the exit code and
   the message is a notice. */
void cli_min_hold_lock_lost(cli_runner *r)
{
  cli_events_notice(&r->events, "%s: the lock was lost before --min-hold ended",
                    r->path);
  end_min_hold(r);
}
