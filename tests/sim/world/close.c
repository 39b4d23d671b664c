/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/process.h"

#include "sim/world/checker.h"

/* A process closes its client, and frees it in the callback or at a random
 * time. `close_job` first closes the client, and later frees it. */

enum { AT_ONCE = 0 }; /* a time in microseconds from now */

static void free_client_and_restart(sim_process *p)
{
  sim_process_free_client(p);
  sim_process_start_in(p, p->restart_after_us);
}

static void on_free_job(void *arg)
{
  sim_process *p = arg;

  if (p->paused)
    sim_schedule_at(&p->world->agenda, &p->close_job, p->paused_until_us + 1);
  else if (p->closing)
    free_client_and_restart(p);
}

static void free_client_in(sim_process *p, int64_t in_us)
{
  sim_schedule_in(&p->world->agenda, &p->close_job, in_us);
}

static void on_closed(lk_client *c, int err, void *arg)
{
  sim_process *p = arg;

  (void)c;
  SIM_TRACE(&p->world->trace, p->name, "has closed its client: %s",
            err == 0 ? "0" : lk_error_name(err));
  sim_checker_note_closed(p->world->checker, p, err);
  if (p->freeing_client)
    return;
  switch (sim_roll(&p->rng, 3)) {
  case 0: free_client_and_restart(p); break;
  case 1: free_client_in(p, AT_ONCE); break;
  case 2:
    free_client_in(p, sim_between(&p->rng, 0, p->world->timeout_ms * SIM_MS));
  }
}

static void on_close_job(void *arg)
{
  sim_process *p = arg;

  if (p->paused)
    sim_schedule_at(&p->world->agenda, &p->close_job, p->paused_until_us + 1);
  else
    (void)sim_process_close(p, AT_ONCE);
}

void sim_process_close_in(sim_process *p, int64_t in_us)
{
  p->close_job.run = on_close_job;
  p->close_job.arg = p;
  sim_schedule_in(&p->world->agenda, &p->close_job, in_us);
}

bool sim_process_close(sim_process *p, int64_t restart_after_us)
{
  if (!sim_process_runs(p) || p->closing)
    return false;
  SIM_TRACE(&p->world->trace, p->name, "closes its client");
  p->closing = true;
  p->close_job.run = on_free_job;
  p->close_job.arg = p;
  p->closed_session = lk_client_session(p->client).id;
  p->restart_after_us = restart_after_us;
  /* one process in four does not wait for the callback */
  if (sim_one_in(&p->rng, 4))
    free_client_in(p, sim_between(&p->rng, 0, 20 * SIM_MS));
  /* if the close is refused, on_closed() will not be called */
  if (lk_client_close(p->client, on_closed, p) != 0)
    free_client_in(p, AT_ONCE);
  sim_process_schedule_loop(p);
  return true;
}
