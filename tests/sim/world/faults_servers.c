/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/active_fault.h"
#include "sim/world/checker.h"
#include "sim/world/conditions.h"

static sim_server *server_of(sim_faults *f, unsigned i)
{
  return sim_ensemble_server(f->world->ensemble, i);
}

/* For sim_server_close_early(). */
enum { START_CLOSING_EARLY = 1, END_CLOSING_EARLY = -1 };

static bool heal_server(sim_active_fault *x)
{
  TRACE(x->faults, "server %u restarts", x->server);
  if (!sim_server_runs(server_of(x->faults, x->server)))
    sim_server_start(server_of(x->faults, x->server));
  return true;
}

static bool crash_server(sim_faults *f, unsigned i, int64_t for_us)
{
  if (!sim_server_runs(server_of(f, i)) || f->stopped[i])
    return false;
  sim_start_fault(f, heal_server, for_us)->server = i;
  if (sim_one_in(&f->rng, 3)) { /* the machine of the server fails, too */
    sim_network_stop_host(f->world->network, i);
    for (unsigned p = 0; p < f->world->nprocesses; p++)
      sim_cut_both(f, p, i, for_us);
  }
  TRACE(f, "server %u crashes for %" PRId64 " ms", i, for_us / SIM_MS);
  sim_server_crash(server_of(f, i));
  return true;
}

bool sim_inject_server_crash(sim_faults *f)
{
  return crash_server(f, sim_random_server(f), sim_fault_duration(f));
}

static bool heal_stop(sim_active_fault *x)
{
  x->faults->stopped[x->server] = false;
  sim_server_continue(server_of(x->faults, x->server));
  return true;
}

static bool stop_server(sim_faults *f, unsigned i, int64_t for_us)
{
  if (!sim_server_runs(server_of(f, i)) || f->stopped[i])
    return false;
  f->stopped[i] = true;
  sim_start_fault(f, heal_stop, for_us)->server = i;
  TRACE(f, "server %u is stopped for %" PRId64 " ms", i, for_us / SIM_MS);
  sim_server_stop(server_of(f, i));
  return true;
}

bool sim_inject_server_stop(sim_faults *f)
{
  return stop_server(f, sim_random_server(f), sim_fault_duration(f));
}

bool sim_inject_stall(sim_faults *f)
{
  int64_t for_us =
      sim_between(&f->rng, sim_fault_T_us(f) / 20, sim_fault_T_us(f) / 3);
  bool any = false;

  for (unsigned i = 0; i < f->world->config.servers; i++)
    any = stop_server(f, i, for_us) || any;
  return any;
}

static bool heal_mute(sim_active_fault *x)
{
  enum { END_MUTE = -1 };

  sim_server_mute(server_of(x->faults, x->server), END_MUTE);
  return true;
}

static void mute_server(sim_faults *f, unsigned i, int64_t for_us)
{
  enum { START_MUTE = 1 };

  TRACE(f, "server %u replies to pings only for %" PRId64 " ms", i,
        for_us / SIM_MS);
  sim_server_mute(server_of(f, i), START_MUTE);
  sim_start_fault(f, heal_mute, for_us)->server = i;
}

bool sim_inject_mute(sim_faults *f)
{
  mute_server(f, sim_random_server(f), sim_fault_duration(f));
  return true;
}

static void cut_off_from_processes(sim_faults *f, unsigned server,
                                   int64_t for_us)
{
  TRACE(f, "server %u is cut off from all processes for %" PRId64 " ms", server,
        for_us / SIM_MS);
  for (unsigned p = 0; p < f->world->nprocesses; p++)
    sim_cut_both(f, p, server, for_us);
}

/* A follower is stopped, cut off, or replies to pings only, for up to 1.5 T.
 * The scenario waits longer than that between its faults, and a session timeout
 * more, so that each client is at rest again. */
bool sim_inject_one_silent(sim_faults *f)
{
  bool others_have_quorum = f->world->config.servers > 2;
  unsigned i = sim_random_server(f);
  int64_t t = sim_fault_T_us(f);
  int64_t for_us = sim_between(&f->rng, t / 100, t * 3 / 2);

  if (!others_have_quorum || (int)i == sim_ensemble_leader(f->world->ensemble))
    return false;
  switch (sim_roll(&f->rng, 3)) {
  case 0: return stop_server(f, i, for_us);
  case 1: cut_off_from_processes(f, i, for_us); break;
  default: mute_server(f, i, for_us); break;
  }
  return true;
}

/* The end of this fault restarts its server, and starts the same fault for the
 * next server. */
static bool restart_next(sim_active_fault *x)
{
  sim_faults *f = x->faults;

  if (f->over)
    return true;
  (void)crash_server(f, x->server, sim_fault_T_us(f) / 4);
  if (x->server + 1 < f->world->config.servers)
    sim_start_fault(f, restart_next, sim_fault_T_us(f) / 2)->server =
        x->server + 1;
  return true;
}

bool sim_inject_restarts(sim_faults *f)
{
  TRACE(f, "all servers are restarted");
  sim_start_fault(f, restart_next, 0);
  return true;
}

static bool heal_close_early(sim_active_fault *x)
{
  sim_server_close_early(server_of(x->faults, x->server), END_CLOSING_EARLY);
  return true;
}

bool sim_inject_close_early(sim_faults *f)
{
  bool all = sim_one_in(&f->rng, 2);
  unsigned only_server = sim_random_server(f);
  int64_t for_us = sim_fault_duration(f);

  TRACE(f, "%s close after the handshake for %" PRId64 " ms",
        all ? "all servers" : "some servers", for_us / SIM_MS);
  for (unsigned i = 0; i < f->world->config.servers; i++) {
    if (!all && i != only_server)
      continue;
    sim_server_close_early(server_of(f, i), START_CLOSING_EARLY);
    sim_start_fault(f, heal_close_early, for_us)->server = i;
  }
  return true;
}

bool sim_inject_throttle_watches(sim_faults *f)
{
  unsigned i = sim_random_server(f);
  unsigned count = 1 + sim_roll(&f->rng, 4);

  TRACE(f, "server %u throttles the next %u setWatches", i, count);
  sim_server_throttle_watches(server_of(f, i), count);
  /* a process whose connection breaks sends setWatches on its next one */
  (void)sim_network_reset(f->world->network, sim_random_process(f));
  return true;
}

static bool heal_older(sim_active_fault *x)
{
  const bool is_older = false;

  sim_server_set_older(server_of(x->faults, x->server), is_older);
  return true;
}

bool sim_inject_older(sim_faults *f)
{
  unsigned i = sim_random_server(f);
  const bool is_older = true;

  TRACE(f, "server %u is of an older version", i);
  sim_server_set_older(server_of(f, i), is_older);
  sim_start_fault(f, heal_older, 2 * sim_fault_duration(f))->server = i;
  return true;
}

static bool heal_bounds(sim_active_fault *x)
{
  enum { OF_ENSEMBLE = 0 }; /* the bound that all servers have */

  sim_server_limit_timeouts(server_of(x->faults, x->server), OF_ENSEMBLE,
                            OF_ENSEMBLE);
  return true;
}

/* A server grants other timeouts after a restart. Two ticks are the minimum
 * that the lease deadline assumes. */
bool sim_inject_bounds(sim_faults *f)
{
  sim_world *w = f->world;
  unsigned i = sim_random_server(f);
  int32_t least = 2 * w->config.tick_ms;
  bool longer = w->timeout_ms == least || sim_one_in(&f->rng, 3);
  int32_t ms =
      (int32_t)(longer ? sim_between(&f->rng, w->timeout_ms,
                                     SIM_TIMEOUT_FACTOR_MAX * w->timeout_ms)
                       : sim_between(&f->rng, least, w->timeout_ms));

  if (!crash_server(f, i, sim_fault_T_us(f) / 8))
    return false;
  TRACE(f, "server %u will grant timeouts of %" PRId32 " ms", i, ms);
  sim_server_limit_timeouts(server_of(f, i), ms, ms);
  sim_start_fault(f, heal_bounds, 4 * sim_fault_duration(f))->server = i;
  return true;
}

static void wipe_ensemble(sim_faults *f)
{
  sim_world *w = f->world;

  w->wipes++;
  sim_checker_note_all_ended_by_operator(w->checker);
  /* each incarnation of the ensemble has smaller epochs than the one before */
  int32_t first_epoch =
      (int32_t)(SIM_MOST_WIPES - w->wipes) * SIM_INCARNATION_EPOCHS;

  sim_ensemble_wipe(w->ensemble, first_epoch);
  sim_checker_note_wiped(w->checker);
  for (unsigned i = 0; i < w->config.servers; i++) {
    f->stopped[i] = false;
    sim_start_fault(f, heal_server, sim_fault_T_us(f) / 8)->server = i;
  }
}

static bool may_wipe(const sim_world *w)
{
  return w->wipes < SIM_MOST_WIPES && !w->all_requests;
}

/* The servers lose all data. In one of three cases another ensemble with other
 * host names replaces them, and all processes are given its names. */
bool sim_inject_wipe(sim_faults *f)
{
  sim_world *w = f->world;
  bool is_replaced = sim_one_in(&f->rng, 3);

  if (!may_wipe(w))
    return false;
  TRACE(f, "%s",
        is_replaced ? "another ensemble replaces the servers"
                    : "all servers are wiped");
  wipe_ensemble(f);
  for (size_t i = 0; is_replaced && i < w->nprocesses; i++)
    sim_set_hosts(&w->processes[i], SIM_ALL_SERVERS);
  return true;
}

/* Restores an older snapshot, so clients have seen later zxids than the servers
 * know. Denied permissions and counters near their end would stay as they are
 * in the snapshot, so runs with these faults are excluded. */
bool sim_inject_restore(sim_faults *f)
{
  sim_world *w = f->world;
  size_t transactions = sim_ensemble_committed(w->ensemble);

  if (!may_wipe(w) || transactions == 0 ||
      sim_fault_is_possible(w, SIM_FAULT_DENY) ||
      sim_fault_is_possible(w, SIM_FAULT_COUNTER))
    return false;
  size_t in_snapshot = (size_t)sim_between(&f->rng, 1, (int64_t)transactions);

  TRACE(f, "all servers are restored from a snapshot");
  wipe_ensemble(f);
  sim_checker_begin_restore(w->checker);
  sim_ensemble_restore(w->ensemble, in_snapshot, SIM_INCARNATION_EPOCHS);
  sim_checker_end_restore(w->checker);
  return true;
}

static bool heal_link(sim_active_fault *x)
{
  if (--x->faults->link_cuts[x->server][x->other_server] == 0)
    sim_link_restore(x->faults->world->ensemble, x->server, x->other_server);
  return true;
}

static void cut_link(sim_faults *f, unsigned a, unsigned b, int64_t for_us)
{
  sim_active_fault *x = sim_start_fault(f, heal_link, for_us);

  x->server = a < b ? a : b;
  x->other_server = a < b ? b : a;
  if (f->link_cuts[x->server][x->other_server]++ == 0)
    sim_link_cut(f->world->ensemble, x->server, x->other_server);
}

static void cut_all_links(sim_faults *f, unsigned server, int64_t for_us)
{
  TRACE(f, "server %u is cut off from the others for %" PRId64 " ms", server,
        for_us / SIM_MS);
  for (unsigned i = 0; i < f->world->config.servers; i++) {
    if (i != server)
      cut_link(f, server, i, for_us);
  }
}

/* Cuts the routes of the process to all other servers, so that it connects to
 * this one. */
static void restrict_to_server(sim_faults *f, unsigned process, unsigned server,
                               int64_t for_us)
{
  int connected_to = sim_network_server_of(f->world->network, process);

  for (unsigned s = 0; s < f->world->config.servers; s++) {
    if (s != server)
      sim_cut_both(f, process, s, for_us);
  }
  TRACE(f, "p%u reaches only server %u", process, server);
  if (connected_to != (int)server)
    (void)sim_network_reset(f->world->network, process);
}

/* A duration mostly longer than T, so that the session of a process expires
 * meanwhile. */
static int64_t random_long_duration(sim_faults *f)
{
  int64_t t = sim_fault_T_us(f);

  return sim_one_in(&f->rng, 4) ? sim_fault_duration(f)
                                : sim_between(&f->rng, t, 3 * t);
}

/* The second step of restrict_and_cut_off(): the end of a fault that only
 * waits. */
static bool cut_server_off(sim_active_fault *x)
{
  if (!x->faults->over)
    cut_all_links(x->faults, x->server, x->amount);
  return true;
}

/* Restricts a process to this server. When the process has had time to connect
 * to it, cuts the server off from the other servers. */
static void restrict_and_cut_off(sim_faults *f, unsigned server)
{
  int64_t t = sim_fault_T_us(f);
  int64_t for_us = random_long_duration(f);
  unsigned process = sim_likely_holder(f);
  bool replies_are_late = sim_one_in(&f->rng, 3);
  int64_t wait_us = 0; /* enough if it is connected to the server already */

  if (replies_are_late)
    wait_us = sim_between(&f->rng, t / 2, 3 * t / 2);
  else if (sim_network_server_of(f->world->network, process) != (int)server)
    wait_us = sim_between(&f->rng, 0, t);
  sim_active_fault *x = sim_start_fault(f, cut_server_off, wait_us);

  x->server = server;
  x->amount = for_us;
  restrict_to_server(f, process, server, wait_us + for_us);
  if (replies_are_late)
    sim_slow_route(f, process, server, SIM_DOWN, t / 5, wait_us + for_us);
}

bool sim_inject_follower_cut(sim_faults *f)
{
  int leader = sim_ensemble_leader(f->world->ensemble);
  int connected_to =
      sim_network_server_of(f->world->network, sim_likely_holder(f));
  unsigned i = connected_to < 0 ? sim_random_server(f) : (unsigned)connected_to;

  if (leader < 0 || i == (unsigned)leader)
    i = sim_random_server(f);
  bool is_follower = leader >= 0 && i != (unsigned)leader;

  if (!is_follower)
    return false;
  if (!sim_one_in(&f->rng, 4))
    restrict_and_cut_off(f, i);
  else
    cut_link(f, i, (unsigned)leader, sim_fault_duration(f));
  return true;
}

bool sim_inject_leader_cut(sim_faults *f)
{
  int leader = sim_ensemble_leader(f->world->ensemble);

  if (leader < 0)
    return false;
  cut_all_links(f, (unsigned)leader, sim_fault_duration(f));
  return true;
}

/* The others elect a new leader, while a process stays connected to the old
 * one. In half of the cases the old leader is stopped meanwhile. When it
 * continues, it does not know at once that it was deposed. */
bool sim_inject_deposed(sim_faults *f)
{
  int leader = sim_ensemble_leader(f->world->ensemble);
  int64_t for_us = random_long_duration(f);

  if (leader < 0 || f->stopped[leader])
    return false;
  if (sim_one_in(&f->rng, 2)) {
    restrict_and_cut_off(f, (unsigned)leader);
    return true;
  }
  restrict_to_server(f, sim_likely_holder(f), (unsigned)leader, 2 * for_us);
  cut_all_links(f, (unsigned)leader, 2 * for_us);
  (void)stop_server(f, (unsigned)leader, for_us);
  return true;
}

static bool heal_lag(sim_active_fault *x)
{
  enum { NO_DELAY = 0 };

  sim_link_slow(x->faults->world->ensemble, x->server, x->other_server,
                NO_DELAY);
  return true;
}

static void slow_links(sim_faults *f, unsigned server, int64_t by_us,
                       int64_t for_us)
{
  for (unsigned i = 0; i < f->world->config.servers; i++) {
    if (i == server)
      continue;
    sim_active_fault *x = sim_start_fault(f, heal_lag, for_us);

    x->server = server;
    x->other_server = i;
    sim_link_slow(f->world->ensemble, server, i, by_us);
  }
}

bool sim_inject_lag(sim_faults *f)
{
  unsigned server = sim_random_server(f);
  int64_t by_us =
      sim_between(&f->rng, sim_fault_T_us(f) / 100, sim_fault_T_us(f) / 8);

  TRACE(f, "messages of server %u are delayed by %" PRId64 " ms", server,
        by_us / SIM_MS);
  slow_links(f, server, by_us, sim_fault_duration(f));
  return true;
}

/* The connection of a process breaks after about its next write. The write is
 * delayed between the servers, so it is committed after the process has
 * connected to another server. */
bool sim_inject_late_write(sim_faults *f)
{
  unsigned process = sim_random_process(f);
  int server = sim_network_server_of(f->world->network, process);
  int64_t by_us =
      sim_between(&f->rng, sim_fault_T_us(f) / 50, sim_fault_T_us(f) / 4);

  if (server < 0)
    return false;
  TRACE(f, "p%u: its next write is committed late by %" PRId64 " ms", process,
        by_us / SIM_MS);
  if (sim_one_in(&f->rng, 2)) {
    slow_links(f, (unsigned)server, by_us, sim_fault_T_us(f) / 2);
  } else {
    for (unsigned s = 0; s < f->world->config.servers; s++)
      slow_links(f, s, by_us, sim_fault_T_us(f) / 2);
  }
  size_t about_a_request = 60 + sim_roll(&f->rng, 300);

  (void)sim_network_reset_after(f->world->network, process, SIM_UP,
                                about_a_request);
  return true;
}

/* Errors that a server gives to any request: it is not served. */
bool sim_inject_errors(sim_faults *f)
{
  static const int32_t errors[] = {LK_ERR_SYSTEM, LK_ERR_UNIMPLEMENTED,
                                   LK_ERR_OPERATION_TIMEOUT,
                                   LK_ERR_REQUEST_TIMEOUT};
  unsigned i = sim_random_server(f);
  unsigned count = 1 + sim_roll(&f->rng, 8);
  int32_t err = errors[sim_roll(&f->rng, sizeof errors / sizeof errors[0])];

  TRACE(f, "server %u refuses %u requests with %s", i, count,
        lk_error_name(err));
  sim_server_refuse(server_of(f, i), count, err);
  return true;
}

bool sim_inject_throttle(sim_faults *f)
{
  unsigned i = sim_random_server(f);
  unsigned count = 1 + sim_roll(&f->rng, 8);

  TRACE(f, "server %u throttles %u requests", i, count);
  sim_server_throttle(server_of(f, i), count);
  return true;
}
