/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/read_only.h"

#include <stdlib.h>

/**
 * @file A server as a process: its timers, and how it crashes, restarts, stops
 * and continues.
 */

int64_t sim_server_now_ms(const sim_server *s)
{
  return s->ensemble->agenda->now_us / SIM_MS + s->clock_offset_ms;
}

/* ---- timers ------------------------------------------------------------- */

void sim_server_schedule_expiry(sim_server *s)
{
  int64_t tick_ms = s->ensemble->config.tick_ms;
  int64_t to_next_tick_ms = tick_ms - sim_server_now_ms(s) % tick_ms;

  sim_server_schedule(s, SIM_TASK_EXPIRE, to_next_tick_ms * SIM_MS);
}

static void run_session_expiry(sim_server *s)
{
  sim_tracker_expire(s);
  sim_server_schedule_expiry(s);
}

static void run_task(sim_server *s, enum sim_task task)
{
  switch (task) {
  case SIM_TASK_DISK: sim_log_flushed(s); break;
  case SIM_TASK_ELECT: sim_elect(s); break;
  case SIM_TASK_TICK: sim_leader_tick(s); break;
  case SIM_TASK_EXPIRE: run_session_expiry(s); break;
  case SIM_TASK_DELETE_UNUSED: sim_leader_delete_unused(s); break;
  case SIM_TASK_SILENCE: sim_follower_check_silence(s); break;
  case SIM_TASK_IDLE: sim_conns_close_idle(s); break;
  case SIM_TASK_READ_ONLY: sim_read_only_begin(s); break;
  case SIM_TASKS: break;
  }
}

static void on_timer(void *arg)
{
  sim_timer *t = arg;

  if (t->server->stopped)
    t->missed = true;
  else
    run_task(t->server, t->task);
}

void sim_server_schedule(sim_server *s, enum sim_task task, int64_t in_us)
{
  s->timers[task].missed = false;
  sim_schedule_in(s->ensemble->agenda, &s->timers[task].job, in_us);
}

void sim_server_cancel(sim_server *s, enum sim_task task)
{
  s->timers[task].missed = false;
  sim_unschedule(s->ensemble->agenda, &s->timers[task].job);
}

void sim_server_init(sim_server *s)
{
  lk__list_init(&s->conns);
  s->min_timeout_ms = s->ensemble->config.min_timeout_ms;
  s->max_timeout_ms = s->ensemble->config.max_timeout_ms;
  for (int task = 0; task < SIM_TASKS; task++)
    s->timers[task] =
        (sim_timer){.job = {.run = on_timer, .arg = &s->timers[task]},
                    .server = s,
                    .task = (enum sim_task)task};
}

/* ---- crash and restart -------------------------------------------------- */

static void resume_links(sim_server *s)
{
  for (unsigned i = 0; i < s->ensemble->count; i++)
    sim_link_resume(sim_link_of(s->ensemble, i, s->index));
}

/* Rebuilds the tree from the transactions that are applied and on disk. */
static void rebuild_tree(sim_server *s)
{
  const sim_txn_hooks no_hooks = {0};
  size_t end = s->applied < s->logged ? s->applied : s->logged;

  sim_tree_free(&s->tree);
  sim_tree_init(&s->tree, &s->ensemble->paths, s->ensemble->config.members,
                s->ensemble->config.wall_clock_start_ms);
  for (s->applied = 0; s->applied < end; s->applied++)
    sim_txn_apply(s->log[s->applied], &s->tree, &no_hooks, NULL);
}

void sim_server_crash(sim_server *s)
{
  if (!s->runs)
    return;
  SIM_TRACE(s->ensemble->trace, s->name,
            "crashes; %zu of %zu proposals are on disk", s->logged,
            s->log_count);
  s->stopped = false;
  resume_links(s);
  sim_unschedule(s->ensemble->agenda, &s->continue_job);
  /* A crash loses what is not on disk, but sim_enter_looking() completes the
   * disk writes. */
  size_t logged = s->logged;

  sim_enter_looking(s, NULL);
  s->runs = false;
  s->logged = s->logging = s->log_count = logged;
  if (s->applied > logged)
    rebuild_tree(s);
  s->tree.zxid = s->applied == 0 ? 0 : s->log[s->applied - 1]->zxid;
  for (int task = 0; task < SIM_TASKS; task++)
    sim_server_cancel(s, (enum sim_task)task);
}

void sim_server_start(sim_server *s)
{
  if (s->runs)
    return;
  s->runs = true;
  sim_conns_close_idle(s); /* schedules the next check */
  sim_enter_looking(s, "has started");
}

void sim_server_limit_timeouts(sim_server *s, int32_t min_ms, int32_t max_ms)
{
  const sim_ensemble_config *c = &s->ensemble->config;

  s->min_timeout_ms = min_ms > 0 ? min_ms : c->min_timeout_ms;
  s->max_timeout_ms = max_ms > 0 ? max_ms : c->max_timeout_ms;
}

void sim_server_close_early(sim_server *s, int more)
{
  s->close_early += more;
}

void sim_server_mute(sim_server *s, int more)
{
  s->mutes += more;
}

bool sim_server_is_mute(const sim_server *s)
{
  return s->mutes > 0;
}

bool sim_server_closes_early(const sim_server *s)
{
  return s->close_early > 0;
}

void sim_server_throttle(sim_server *s, unsigned count)
{
  s->pipeline.throttle = count;
}

void sim_server_refuse(sim_server *s, unsigned count, int32_t err)
{
  s->pipeline.errors = count;
  s->pipeline.error = err;
}

void sim_server_throttle_watches(sim_server *s, unsigned count)
{
  s->pipeline.throttle_watches += count;
}

void sim_server_set_older(sim_server *s, bool older)
{
  s->older = older;
}

bool sim_server_runs(const sim_server *s)
{
  return s->runs;
}

bool sim_server_serves(const sim_server *s)
{
  return s->serves && !s->stopped;
}

void sim_server_stop(sim_server *s)
{
  if (!s->runs || s->stopped)
    return;
  SIM_TRACE(s->ensemble->trace, s->name, "is stopped");
  s->stopped = true;
}

/* ---- stop and continue -------------------------------------------------- */

/* Reads from each connection. Reading may close other connections, in which
 * case they leave the list that they are in: `unread` or the server's list. */
static void read_delayed_bytes(sim_server *s)
{
  lk_link unread;

  lk__list_init(&unread);
  lk__list_move(&unread, &s->conns);
  while (!lk__list_empty(&unread)) {
    sim_conn *c = LK_OWNER(unread.next, sim_conn, link);

    lk__list_remove(&c->link);
    lk__list_add(&s->conns, &c->link);
    sim_conn_resume_reading(c);
  }
}

static void schedule_missed_tasks(sim_server *s)
{
  for (int task = 0; task < SIM_TASKS; task++) {
    if (s->timers[task].missed)
      sim_server_schedule(s, (enum sim_task)task, 0);
  }
}

/* Handles what was due while the server was stopped: timers and bytes of
 * clients. In half of the cases the timers come first; the order is not known
 * in a real server. */
static void continue_work(void *arg)
{
  sim_server *s = arg;

  if (s->stopped || !s->runs)
    return;
  if (sim_roll(&s->rng, 2) == 0)
    schedule_missed_tasks(s);
  read_delayed_bytes(s);
  schedule_missed_tasks(s);
}

bool sim_server_is_stopped(const sim_server *s)
{
  return s->stopped;
}

void sim_server_continue(sim_server *s)
{
  sim_ensemble *e = s->ensemble;

  if (!s->stopped)
    return;
  SIM_TRACE(e->trace, s->name, "continues");
  s->stopped = false;
  resume_links(s);
  s->continue_job =
      (sim_job){.node = s->continue_job.node, .run = continue_work, .arg = s};
  sim_schedule_in(e->agenda, &s->continue_job, 0);
}
