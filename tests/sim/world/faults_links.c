/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/active_fault.h"
#include "sim/world/checker.h"
#include "sim/world/driver.h"

#include "sim/world/scenario.h"

/* ---- between processes and servers -------------------------------------- */

static sim_route *route_of(sim_active_fault *x)
{
  return sim_network_route(x->faults->world->network, x->process, x->server);
}

static bool heal_delay(sim_active_fault *x)
{
  route_of(x)->delay_us[x->direction] -= x->amount;
  return true;
}

void sim_slow_route(sim_faults *f, unsigned process, unsigned server,
                    int direction, int64_t by_us, int64_t for_us)
{
  sim_active_fault *x = sim_start_fault(f, heal_delay, for_us);

  x->process = process;
  x->server = server;
  x->direction = direction;
  x->amount = by_us;
  route_of(x)->delay_us[direction] += by_us;
  TRACE(f, "p%u - server %u: %" PRId64 " ms slower %s", process, server,
        by_us / SIM_MS, sim_direction_name(direction));
}

/* Delays the connection of a random process. In scenario "calm" each direction
 * is delayed by less than T/8, so that no round trip takes longer than T/4. */
bool sim_inject_delay(sim_faults *f)
{
  int64_t t = sim_fault_T_us(f);
  bool calm = f->world->scenario->calm;
  int64_t for_us = calm ? t / 8 : sim_fault_duration(f);
  unsigned process = sim_random_process(f);
  int connected_to = sim_network_server_of(f->world->network, process);
  unsigned server =
      connected_to < 0 ? sim_random_server(f) : (unsigned)connected_to;

  for (int direction = SIM_UP; direction <= SIM_DOWN; direction++) {
    if (calm)
      sim_slow_route(f, process, server, direction,
                     sim_between(&f->rng, t / 160, t / 9), for_us);
    else if (!sim_one_in(&f->rng, 3))
      sim_slow_route(f, process, server, direction,
                     sim_between(&f->rng, t / 100, t / 5), for_us);
  }
  return true;
}

static bool heal_pieces(sim_active_fault *x)
{
  sim_world *w = x->faults->world;

  sim_network_limit_pieces(w->network, w->scenario->pieces);
  return true;
}

static bool heal_slow_lookups(sim_active_fault *x)
{
  x->faults->world->slow_lookups--;
  return true;
}

/* A lookup that has begun takes as long as it was chosen to. */
bool sim_inject_slow_lookups(sim_faults *f)
{
  int64_t for_us = sim_fault_duration(f);

  TRACE(f, "lookups are slow for %" PRId64 " ms", for_us / SIM_MS);
  f->world->slow_lookups++;
  sim_start_fault(f, heal_slow_lookups, for_us);
  return true;
}

bool sim_inject_pieces(sim_faults *f)
{
  size_t largest = 1 + sim_roll(&f->rng, 60);

  sim_start_fault(f, heal_pieces, sim_fault_T_us(f) / 8);
  sim_network_limit_pieces(f->world->network, largest);
  TRACE(f, "bytes arrive in pieces of at most %zu", largest);
  return true;
}

bool sim_inject_cut(sim_faults *f)
{
  return sim_network_reset(f->world->network, sim_random_process(f));
}

static int random_direction(sim_faults *f)
{
  return sim_one_in(&f->rng, 2) ? SIM_UP : SIM_DOWN;
}

bool sim_inject_cut_at(sim_faults *f)
{
  unsigned process = sim_random_process(f);
  int direction = random_direction(f);
  size_t bytes = 1 + sim_roll(&f->rng, 700);

  /* it counts as a fault also if the process has no connection */
  if (sim_network_reset_after(f->world->network, process, direction, bytes))
    TRACE(f, "p%u: breaks after %zu more bytes %s", process, bytes,
          sim_direction_name(direction));
  return true;
}

static bool heal_cut(sim_active_fault *x)
{
  route_of(x)->cut[x->direction]--;
  sim_network_changed(x->faults->world->network);
  return true;
}

void sim_cut_route(sim_faults *f, unsigned process, unsigned server,
                   int direction, int64_t for_us)
{
  sim_active_fault *x = sim_start_fault(f, heal_cut, for_us);

  x->process = process;
  x->server = server;
  x->direction = direction;
  route_of(x)->cut[direction]++;
}

bool sim_inject_half(sim_faults *f)
{
  unsigned process = sim_random_process(f);
  int server = sim_network_server_of(f->world->network, process);
  int direction = random_direction(f);

  if (server < 0)
    return false;
  sim_cut_route(f, process, (unsigned)server, direction, sim_fault_duration(f));
  TRACE(f, "p%u - server %d: no bytes arrive %s", process, server,
        sim_direction_name(direction));
  return true;
}

void sim_cut_both(sim_faults *f, unsigned process, unsigned server,
                  int64_t for_us)
{
  sim_cut_route(f, process, server, SIM_UP, for_us);
  sim_cut_route(f, process, server, SIM_DOWN, for_us);
}

bool sim_inject_partition(sim_faults *f)
{
  /* the number of sets of processes and of servers that are not empty; a set
   * has a bit for each */
  enum {
    PROCESS_SETS = (1 << SIM_MOST_PROCESSES) - 1,
    SERVER_SETS = (1 << SIM_WORLD_SERVERS) - 1
  };
  uint32_t processes = 1 + sim_roll(&f->rng, PROCESS_SETS);
  uint32_t servers = 1 + sim_roll(&f->rng, SERVER_SETS);
  int64_t for_us = sim_fault_duration(f);

  for (unsigned p = 0; p < f->world->nprocesses; p++) {
    for (unsigned s = 0; s < f->world->config.servers; s++) {
      if ((processes >> p & 1) != 0 && (servers >> s & 1) != 0)
        sim_cut_both(f, p, s, for_us);
    }
  }
  TRACE(f,
        "processes 0x%" PRIx32 " lose servers 0x%" PRIx32 " for %" PRId64 " ms",
        processes, servers, for_us / SIM_MS);
  return true;
}

static bool heal_proxy(sim_active_fault *x)
{
  sim_world *w = x->faults->world;

  route_of(x)->proxies--;
  sim_checker_note_reachable(w->checker, &w->processes[x->process]);
  return true;
}

bool sim_inject_proxy(sim_faults *f)
{
  sim_active_fault *x = sim_start_fault(f, heal_proxy, sim_fault_duration(f));

  x->process = sim_random_process(f);
  x->server = sim_random_server(f);
  route_of(x)->proxies++;
  (void)sim_network_reset(f->world->network, x->process);
  TRACE(f, "p%u - server %u: a proxy that never answers", x->process,
        x->server);
  return true;
}

static bool heal_narrow(sim_active_fault *x)
{
  sim_network_remove_bandwidth(x->faults->world->network, x->process,
                               x->server);
  return true;
}

/* Limits the bandwidth of all routes of a process, so that the large node takes
 * T/3 to 3 T. */
bool sim_inject_narrow(sim_faults *f)
{
  int64_t t = sim_fault_T_us(f);
  int64_t us_per_kb = sim_between(&f->rng, t / 3, 3 * t) / (SIM_LARGE / 1024);
  unsigned process = sim_random_process(f);
  int64_t for_us = 4 * sim_fault_duration(f);

  TRACE(f, "p%u: a KB takes %" PRId64 " us", process, us_per_kb);
  for (unsigned i = 0; i < f->world->config.servers; i++) {
    sim_active_fault *x = sim_start_fault(f, heal_narrow, for_us);

    x->process = process;
    x->server = i;
    route_of(x)->us_per_kb = us_per_kb;
  }
  return true;
}

/* ---- processes ---------------------------------------------------------- */

bool sim_inject_pause(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_likely_holder(f)];

  unsigned step = sim_roll(&f->rng, SIM_LOOP_END);

  sim_process_pause_at_step(p, sim_fault_duration(f), step);
  return true;
}

static sim_close_mode random_close_mode(sim_faults *f)
{
  return sim_one_in(&f->rng, 3) ? SIM_CLOSE_SILENTLY : SIM_CLOSE;
}

bool sim_inject_crash(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_random_process(f)];

  sim_process_crash(p, random_close_mode(f));
  sim_process_start_in(p, sim_fault_duration(f));
  return true;
}

bool sim_inject_resume(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_likely_holder(f)];

  if (!sim_process_runs(p) || p->closing ||
      lk_client_session(p->client).id == 0)
    return false;
  p->session_to_resume = lk_client_session(p->client);
  sim_process_crash(p, random_close_mode(f));
  sim_process_start_in(p, sim_between(&f->rng, 0, sim_fault_T_us(f) / 2));
  return true;
}

bool sim_inject_leave(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_random_process(f)];

  if (!sim_process_runs(p))
    return false;
  sim_process_free_client(p);
  sim_process_start_in(p, sim_fault_duration(f));
  return true;
}

bool sim_inject_addresses(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_random_process(f)];

  sim_driver_set_addresses(p, &f->rng, 1 + sim_roll(&f->rng, SIM_MOST_DEAD));
  sim_checker_note_reachable(f->world->checker, p);
  TRACE(f, "%s: other addresses, %u in all", p->name, p->naddresses);
  return true;
}

bool sim_inject_starve(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_likely_holder(f)];

  if (!sim_process_runs(p))
    return false;
  p->allocations_until_failure = 1 + sim_roll(&f->rng, 30);
  p->failing_allocations = 1 + sim_roll(&f->rng, 3);
  TRACE(f, "%s: no memory for %u allocations after %u", p->name,
        p->failing_allocations, p->allocations_until_failure);
  return true;
}

static bool heal_eager(sim_active_fault *x)
{
  x->faults->world->processes[x->process].eager_faults--;
  return true;
}

bool sim_inject_eager(sim_faults *f)
{
  sim_active_fault *x =
      sim_start_fault(f, heal_eager, 2 * sim_fault_duration(f));

  x->process = sim_random_process(f);
  f->world->processes[x->process].eager_faults++;
  return true;
}

bool sim_inject_close(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_likely_holder(f)];

  return sim_process_close(p, sim_fault_duration(f));
}

/* The clock jumps at a random reading from now on. A call may read the clock
 * several times, so time also passes between two readings of one call. */
bool sim_inject_clock_step(sim_faults *f)
{
  enum { MOST_READINGS = 24 };

  sim_process *p = &f->world->processes[sim_likely_holder(f)];
  int64_t t = sim_fault_T_us(f);

  if (!sim_process_runs(p))
    return false;
  p->jump_after_readings = 1 + sim_roll(&f->rng, MOST_READINGS);
  switch (sim_roll(&f->rng, 4)) {
  case 0: p->jump_us = sim_between(&f->rng, t / 8, 3 * t / 2); break;
  case 1: p->jump_us = sim_between(&f->rng, 0, t / 8); break;
  case 2: p->jump_us = sim_between(&f->rng, 1, 4) * SIM_MS; break;
  default: p->jump_us = 0; break; /* 0: to the next deadline of the client */
  }
  return true;
}
