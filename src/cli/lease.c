/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/lease.h"

static int64_t earlier(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

void cli_lease_lose(cli_lease *l, int64_t now)
{
  int64_t kill_at = now + l->margin_ms;

  if (l->lost)
    return;
  l->lost = true;
  if (l->stage != CLI_STAGE_TERMED)
    return;
  l->kill_at = earlier(kill_at, l->late ? l->kill_at : l->until);
  l->late = true;
}

void cli_lease_hurry(cli_lease *l)
{
  if (l->stage != CLI_STAGE_TERMED || l->late)
    return;
  l->kill_at = earlier(l->kill_at, l->until);
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

  if (!l->lost && now < act_at)
    return wait_for(act_at, next);
  switch (l->policy) {
  case CLI_ON_LOST_TERM: return term(l, now);
  case CLI_ON_LOST_KILL: return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
  case CLI_ON_LOST_STOP:
    if (l->lost)
      return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
    return enter(l, CLI_STAGE_STOPPED, CLI_ACT_STOP);
  case CLI_ON_LOST_IGNORE: break;
  }
  return CLI_ACT_NONE;
}

cli_act cli_lease_step(cli_lease *l, int64_t now, int64_t *next)
{
  int64_t kill_at = l->late ? l->kill_at : l->until;

  *next = INT64_MAX;
  if (l->policy == CLI_ON_LOST_IGNORE)
    return CLI_ACT_NONE;
  switch (l->stage) {
  case CLI_STAGE_CALM: return act_calm(l, now, next);
  case CLI_STAGE_TERMED:
    if (now < kill_at)
      return wait_for(kill_at, next);
    return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
  case CLI_STAGE_STOPPED:
    if (l->lost)
      return enter(l, CLI_STAGE_KILLED, CLI_ACT_KILL);
    if (now < l->until - l->margin_ms)
      return enter(l, CLI_STAGE_CALM, CLI_ACT_CONT);
    return CLI_ACT_NONE;
  case CLI_STAGE_KILLED: break;
  }
  return CLI_ACT_NONE;
}
