/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/lease.h"

static int64_t earlier(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Nothing may run at the deadline, and dying takes time. */
enum { KILL_PART = 10 };

static int64_t last_moment(const cli_lease *l)
{
  return l->until - l->margin_ms / KILL_PART;
}

/* It has been held long enough. */
static bool is_over(const cli_lease *l, int64_t now)
{
  return l->over_at != 0 && now >= l->over_at;
}

static int64_t or_over(const cli_lease *l, int64_t at)
{
  return l->over_at == 0 ? at : earlier(at, l->over_at);
}

/* TERM went out: when KILL follows. */
static int64_t kill_time(const cli_lease *l)
{
  if (l->late)
    return l->kill_at;
  return l->over ? earlier(l->kill_at, last_moment(l)) : last_moment(l);
}

void cli_lease_lose(cli_lease *l, int64_t now)
{
  int64_t kill_at = now + l->margin_ms;

  if (l->lost)
    return;
  l->lost = true;
  if (l->stage != CLI_STAGE_TERMED)
    return;
  l->kill_at = earlier(kill_at, kill_time(l));
  l->late = true;
}

void cli_lease_hurry(cli_lease *l)
{
  if (l->stage != CLI_STAGE_TERMED || l->late)
    return;
  l->kill_at = earlier(l->kill_at, last_moment(l));
  l->late = true;
}

static cli_act enter(cli_lease *l, cli_stage stage, cli_act act)
{
  l->stage = stage;
  return act;
}

/* Nobody was there to act in time (the machine slept): the lock is as good as
   lost, and the command still gets its time to stop. */
static cli_act term(cli_lease *l, int64_t now)
{
  l->late = l->lost || now >= l->until;
  l->over = is_over(l, now);
  l->kill_at = now + l->margin_ms;
  return enter(l, CLI_STAGE_TERMED, CLI_ACT_TERM);
}

static cli_act wait_for(int64_t at, int64_t *next)
{
  *next = at;
  return CLI_ACT_NONE;
}

static cli_act act_calm(cli_lease *l, int64_t now, int64_t *next)
{
  int64_t act_at = l->until - l->margin_ms;

  if (!l->lost && now < or_over(l, act_at))
    return wait_for(or_over(l, act_at), next);
  switch (l->policy) {
  case CLI_ON_LOST_TERM: return term(l, now);
  case CLI_ON_LOST_KILL: return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
  case CLI_ON_LOST_STOP:
    if (l->lost || is_over(l, now))
      return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
    l->all_stopped = false;
    return enter(l, CLI_STAGE_STOPPED, CLI_ACT_STOP);
  case CLI_ON_LOST_IGNORE: break;
  }
  return CLI_ACT_NONE;
}

static cli_act act_stopped(cli_lease *l, int64_t now, int64_t *next)
{
  if (l->lost || is_over(l, now))
    return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
  if (now < l->until - l->margin_ms)
    return enter(l, CLI_STAGE_CALM, CLI_ACT_CONT);
  if (!l->all_stopped && now >= last_moment(l))
    return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
  return wait_for(or_over(l, l->all_stopped ? INT64_MAX : last_moment(l)),
                  next);
}

cli_act cli_lease_step(cli_lease *l, int64_t now, int64_t *next)
{
  *next = INT64_MAX;
  if (l->policy == CLI_ON_LOST_IGNORE)
    return CLI_ACT_NONE;
  switch (l->stage) {
  case CLI_STAGE_CALM: return act_calm(l, now, next);
  case CLI_STAGE_TERMED:
    if (now < kill_time(l))
      return wait_for(kill_time(l), next);
    return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
  case CLI_STAGE_STOPPED: return act_stopped(l, now, next);
  case CLI_STAGE_KILLED: break;
  }
  return CLI_ACT_NONE;
}
