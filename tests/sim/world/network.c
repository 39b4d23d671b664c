/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/pipe.h"

#include "sim/world/allocate.h"
#include "sim/world/scenario.h"

#include <stdlib.h>

enum { RETRANSMIT_MAX_MS = 300 };

/* ---- setup and end ------------------------------------------------------ */

sim_network *sim_network_new(sim_world *w)
{
  sim_network *n = sim_allocate(sizeof *n);
  size_t count = w->nprocesses * w->config.servers;

  n->world = w;
  n->rng = sim_rng_fork(&w->rng, 'n');
  n->has_faults = !w->scenario->calm && !w->scenario->one_silent;
  lk__list_init(&n->pipes);
  lk__list_init(&n->freed_later);
  n->routes = sim_allocate(count * sizeof *n->routes);
  for (size_t i = 0; i < count; i++) {
    n->routes[i].delay_us[SIM_UP] = sim_between(&n->rng, 50, 3000);
    n->routes[i].delay_us[SIM_DOWN] = sim_between(&n->rng, 50, 3000);
  }
  return n;
}

void sim_network_free(sim_network *n)
{
  if (n == NULL)
    return;
  while (!lk__list_empty(&n->pipes)) {
    sim_pipe *p = LK_OWNER(n->pipes.next, sim_pipe, link);

    if (p->conn != NULL)
      sim_conn_close(p->conn);
    p->conn = NULL;
    p->on_ready = NULL;
    sim_pipe_free_if_unused(p);
  }
  sim_pipes_free(n);
  free(n->routes);
  free(n);
}

sim_route *sim_network_route(sim_network *n, unsigned process, unsigned server)
{
  return &n->routes[process * n->world->config.servers + server];
}

/* ---- faults ------------------------------------------------------------- */

/* A route has changed. Bytes that were held back arrive later, since TCP
 * retransmits after some time. */
static void retry_later(sim_network *n, sim_job *job)
{
  if (!lk__heap_has(&job->node))
    sim_schedule_in(&n->world->agenda, job,
                    sim_between(&n->rng, 0, RETRANSMIT_MAX_MS * SIM_MS));
}

void sim_network_changed(sim_network *n)
{
  for (lk_link *l = n->pipes.next; l != &n->pipes; l = l->next) {
    sim_pipe *p = LK_OWNER(l, sim_pipe, link);

    if (p->state == SIM_PIPE_CONNECTING && p->on_ready != NULL)
      retry_later(n, &p->connecting);
    for (int direction = SIM_UP; direction <= SIM_DOWN; direction++) {
      if (p->flows[direction].parts.count > 0)
        retry_later(n, &p->flows[direction].job);
    }
  }
}

void sim_network_remove_bandwidth(sim_network *n, unsigned process,
                                  unsigned server)
{
  sim_network_route(n, process, server)->us_per_kb = 0;
  for (lk_link *l = n->pipes.next; l != &n->pipes; l = l->next) {
    sim_pipe *p = LK_OWNER(l, sim_pipe, link);

    if (p->process == process && p->server == server)
      sim_pipe_remove_bandwidth(p);
  }
}

void sim_network_limit_pieces(sim_network *n, size_t most)
{
  n->max_piece = most;
}

/* The open connection of the process. `on_ready` is NULL if the process has
 * closed it. */
static sim_pipe *open_pipe_of(const sim_network *n, unsigned process)
{
  for (lk_link *l = n->pipes.next; l != &n->pipes; l = l->next) {
    sim_pipe *p = LK_OWNER(l, sim_pipe, link);

    if (p->process == process && p->on_ready != NULL &&
        p->state == SIM_PIPE_OPEN)
      return p;
  }
  return NULL;
}

bool sim_network_reset(sim_network *n, unsigned process)
{
  sim_pipe *p = open_pipe_of(n, process);

  if (p == NULL)
    return false;
  sim_pipe_break(p);
  return true;
}

bool sim_network_reset_after(sim_network *n, unsigned process, int direction,
                             size_t bytes)
{
  sim_pipe *p = open_pipe_of(n, process);

  if (p == NULL)
    return false;
  p->flows[direction].break_after = bytes;
  return true;
}

void sim_network_cancel_resets(sim_network *n)
{
  for (lk_link *l = n->pipes.next; l != &n->pipes; l = l->next) {
    sim_pipe *p = LK_OWNER(l, sim_pipe, link);

    p->flows[SIM_UP].break_after = SIM_NEVER_BREAK;
    p->flows[SIM_DOWN].break_after = SIM_NEVER_BREAK;
  }
}

void sim_network_stop_host(sim_network *n, unsigned server)
{
  for (lk_link *l = n->pipes.next; l != &n->pipes; l = l->next) {
    sim_pipe *p = LK_OWNER(l, sim_pipe, link);

    if (p->server != server)
      continue;
    p->host_is_down = true;
    p->flows[SIM_DOWN].lossy = true;
    sim_pipe_empty(p, SIM_DOWN);
  }
}

int sim_network_server_of(const sim_network *n, unsigned process)
{
  const sim_pipe *p = open_pipe_of(n, process);

  return p == NULL ? -1 : (int)p->server;
}

bool sim_network_is_mute(const sim_network *n, unsigned process)
{
  const sim_pipe *p = open_pipe_of(n, process);

  return p != NULL && p->conn != NULL && sim_conn_is_mute(p->conn);
}
