/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/kill_schedule.h"

/* The default margin is the session timeout divided by this. */
enum { MARGIN_PART = 6 };

int64_t cli_kill_schedule_margin_ms(int64_t kill_after_ms,
                                    int64_t session_timeout_ms, bool *fits)
{
  bool given = kill_after_ms > 0;

  *fits = 2 * kill_after_ms < session_timeout_ms;
  return given && *fits ? kill_after_ms : session_timeout_ms / MARGIN_PART;
}

static int64_t earlier_time(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* KILL is sent before the lease deadline, as processes take time to die:
   earlier by the margin divided by this. */
enum { KILL_PART = 10 };

static int64_t kill_deadline(const cli_kill_schedule *schedule)
{
  return schedule->lease_deadline - schedule->margin_ms / KILL_PART;
}

static bool is_max_hold_over(const cli_kill_schedule *schedule, int64_t now)
{
  return schedule->max_hold_ends_at != 0 && now >= schedule->max_hold_ends_at;
}

/* Returns `at`, or the end of --max-hold if that is earlier. */
static int64_t not_after_max_hold(const cli_kill_schedule *schedule, int64_t at)
{
  bool limited = schedule->max_hold_ends_at != 0;

  return limited ? earlier_time(at, schedule->max_hold_ends_at) : at;
}

/* Returns the time of the KILL that follows a TERM. */
static int64_t kill_after_term_at(const cli_kill_schedule *schedule)
{
  if (schedule->kill_at_is_fixed)
    return schedule->kill_at;
  /* After --max-hold, a later lease deadline does not delay the KILL. */
  if (schedule->max_hold_is_over)
    return earlier_time(schedule->kill_at, kill_deadline(schedule));
  return kill_deadline(schedule);
}

void cli_kill_schedule_lock_lost(cli_kill_schedule *schedule, int64_t now)
{
  int64_t kill_at = now + schedule->margin_ms;

  if (schedule->lost)
    return;
  schedule->lost = true;
  if (schedule->stage != CLI_STAGE_TERM_SENT)
    return;
  schedule->kill_at = earlier_time(kill_at, kill_after_term_at(schedule));
  schedule->kill_at_is_fixed = true;
}

void cli_kill_schedule_command_ended(cli_kill_schedule *schedule)
{
  if (schedule->stage != CLI_STAGE_TERM_SENT || schedule->kill_at_is_fixed)
    return;
  schedule->kill_at = earlier_time(schedule->kill_at, kill_deadline(schedule));
  schedule->kill_at_is_fixed = true;
}

/* Returns `action`, which belongs to the new stage. */
static cli_action enter_stage(cli_kill_schedule *schedule, cli_kill_stage stage,
                              cli_action action)
{
  schedule->stage = stage;
  return action;
}

/* If the lease deadline has already passed (the machine was suspended), the
   lock counts as lost. COMMAND still gets its margin to end. */
static cli_action send_term(cli_kill_schedule *schedule, int64_t now)
{
  schedule->kill_at_is_fixed =
      schedule->lost || now >= schedule->lease_deadline;
  schedule->max_hold_is_over = is_max_hold_over(schedule, now);
  schedule->kill_at = now + schedule->margin_ms;
  return enter_stage(schedule, CLI_STAGE_TERM_SENT, CLI_ACTION_TERM);
}

/* Stores the time of the next action. */
static cli_action no_action_before(int64_t at, int64_t *next)
{
  *next = at;
  return CLI_ACTION_NONE;
}

static cli_action next_while_running(cli_kill_schedule *schedule, int64_t now,
                                     int64_t *next)
{
  int64_t margin_begins_at = schedule->lease_deadline - schedule->margin_ms;
  int64_t act_at = not_after_max_hold(schedule, margin_begins_at);

  if (!schedule->lost && now < act_at)
    return no_action_before(act_at, next);
  switch (schedule->policy) {
  case CLI_ON_LOST_TERM: return send_term(schedule, now);
  case CLI_ON_LOST_KILL:
    return enter_stage(schedule, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  case CLI_ON_LOST_STOP:
    if (schedule->lost || is_max_hold_over(schedule, now))
      return enter_stage(schedule, CLI_STAGE_KILLED, CLI_ACTION_KILL);
    schedule->all_stopped = false;
    return enter_stage(schedule, CLI_STAGE_STOPPED, CLI_ACTION_STOP);
  case CLI_ON_LOST_IGNORE: break;
  }
  return CLI_ACTION_NONE;
}

static cli_action next_while_stopped(cli_kill_schedule *schedule, int64_t now,
                                     int64_t *next)
{
  int64_t margin_begins_at = schedule->lease_deadline - schedule->margin_ms;
  /* While all processes are stopped, only --max-hold ends the stage. */
  int64_t kill_at = schedule->all_stopped ? INT64_MAX : kill_deadline(schedule);

  if (schedule->lost || is_max_hold_over(schedule, now))
    return enter_stage(schedule, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  if (now < margin_begins_at) /* the lease was renewed */
    return enter_stage(schedule, CLI_STAGE_RUNNING, CLI_ACTION_CONT);
  if (!schedule->all_stopped && now >= kill_deadline(schedule))
    return enter_stage(schedule, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  return no_action_before(not_after_max_hold(schedule, kill_at), next);
}

cli_action cli_kill_schedule_next(cli_kill_schedule *schedule, int64_t now,
                                  int64_t *next)
{
  *next = INT64_MAX;
  if (schedule->policy == CLI_ON_LOST_IGNORE)
    return CLI_ACTION_NONE;
  switch (schedule->stage) {
  case CLI_STAGE_RUNNING: return next_while_running(schedule, now, next);
  case CLI_STAGE_TERM_SENT:
    if (now < kill_after_term_at(schedule))
      return no_action_before(kill_after_term_at(schedule), next);
    return enter_stage(schedule, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  case CLI_STAGE_STOPPED: return next_while_stopped(schedule, now, next);
  case CLI_STAGE_KILLED: break;
  }
  return CLI_ACTION_NONE;
}
