/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/kill_schedule.h"

static int64_t earlier(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Nothing may run at the deadline, and dying takes time. */
enum { KILL_PART = 10 };

static int64_t last_moment(const cli_kill_schedule *l)
{
  return l->until - l->margin_ms / KILL_PART;
}

/* It has been held long enough. */
static bool is_over(const cli_kill_schedule *l, int64_t now)
{
  return l->over_at != 0 && now >= l->over_at;
}

static int64_t or_over(const cli_kill_schedule *l, int64_t at)
{
  return l->over_at == 0 ? at : earlier(at, l->over_at);
}

/* TERM went out: when KILL follows. */
static int64_t kill_time(const cli_kill_schedule *l)
{
  if (l->late)
    return l->kill_at;
  return l->over ? earlier(l->kill_at, last_moment(l)) : last_moment(l);
}

void cli_kill_schedule_lock_lost(cli_kill_schedule *l, int64_t now)
{
  int64_t kill_at = now + l->margin_ms;

  if (l->lost)
    return;
  l->lost = true;
  if (l->stage != CLI_STAGE_TERM_SENT)
    return;
  l->kill_at = earlier(kill_at, kill_time(l));
  l->late = true;
}

void cli_kill_schedule_command_ended(cli_kill_schedule *l)
{
  if (l->stage != CLI_STAGE_TERM_SENT || l->late)
    return;
  l->kill_at = earlier(l->kill_at, last_moment(l));
  l->late = true;
}

static cli_action enter(cli_kill_schedule *l, cli_kill_stage stage,
                        cli_action act)
{
  l->stage = stage;
  return act;
}

/* Nobody was there to act in time (the machine slept): the lock is as good as
   lost, and the command still gets its time to stop. */
static cli_action term(cli_kill_schedule *l, int64_t now)
{
  l->late = l->lost || now >= l->until;
  l->over = is_over(l, now);
  l->kill_at = now + l->margin_ms;
  return enter(l, CLI_STAGE_TERM_SENT, CLI_ACTION_TERM);
}

static cli_action wait_for(int64_t at, int64_t *next)
{
  *next = at;
  return CLI_ACTION_NONE;
}

static cli_action act_calm(cli_kill_schedule *l, int64_t now, int64_t *next)
{
  int64_t act_at = l->until - l->margin_ms;

  if (!l->lost && now < or_over(l, act_at))
    return wait_for(or_over(l, act_at), next);
  switch (l->policy) {
  case CLI_ON_LOST_TERM: return term(l, now);
  case CLI_ON_LOST_KILL: return enter(l, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  case CLI_ON_LOST_STOP:
    if (l->lost || is_over(l, now))
      return enter(l, CLI_STAGE_KILLED, CLI_ACTION_KILL);
    l->all_stopped = false;
    return enter(l, CLI_STAGE_STOPPED, CLI_ACTION_STOP);
  case CLI_ON_LOST_IGNORE: break;
  }
  return CLI_ACTION_NONE;
}

static cli_action act_stopped(cli_kill_schedule *l, int64_t now, int64_t *next)
{
  if (l->lost || is_over(l, now))
    return enter(l, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  if (now < l->until - l->margin_ms)
    return enter(l, CLI_STAGE_RUNNING, CLI_ACTION_CONT);
  if (!l->all_stopped && now >= last_moment(l))
    return enter(l, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  return wait_for(or_over(l, l->all_stopped ? INT64_MAX : last_moment(l)),
                  next);
}

cli_action cli_kill_schedule_next(cli_kill_schedule *l, int64_t now,
                                  int64_t *next)
{
  *next = INT64_MAX;
  if (l->policy == CLI_ON_LOST_IGNORE)
    return CLI_ACTION_NONE;
  switch (l->stage) {
  case CLI_STAGE_RUNNING: return act_calm(l, now, next);
  case CLI_STAGE_TERM_SENT:
    if (now < kill_time(l))
      return wait_for(kill_time(l), next);
    return enter(l, CLI_STAGE_KILLED, CLI_ACTION_KILL);
  case CLI_STAGE_STOPPED: return act_stopped(l, now, next);
  case CLI_STAGE_KILLED: break;
  }
  return CLI_ACTION_NONE;
}
