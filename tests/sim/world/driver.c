/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/driver.h"

#include "sim/world/checker.h"
#include "sim/world/conditions.h"
#include "sim/world/prober.h"

#include <stdlib.h>

enum { MOST_READS = 16, ROOM = 64 * 1024 };

/* ---- what a client asks its surroundings -------------------------------- */

static int64_t hook_now(void *arg)
{
  return sim_process_read_clock(arg);
}

static void hook_random(void *arg, void *out, size_t len)
{
  sim_process *p = arg;
  unsigned char *bytes = out;

  for (size_t i = 0; i < len; i++)
    bytes[i] = (unsigned char)sim_roll(&p->rng, 256);
}

static void act_at_once(sim_process *p);

static void hook_wake(lk_client *c, void *arg)
{
  sim_process *p = arg;

  if (p->eager > 0 && p->client == c && !p->paused)
    act_at_once(p);
  if (p->client == c || p->client == NULL)
    sim_process_settle(p);
}

static void hook_freed(lk_client *c, void *arg)
{
  sim_process *p = arg;

  (void)c;
  p->client = NULL;
  sim_driver_quit(p, false);
  sim_process_gone(p);
}

lk_hooks sim_driver_hooks(sim_process *p)
{
  return (lk_hooks){.now = hook_now,
                    .random = hook_random,
                    .wake = hook_wake,
                    .freed = hook_freed,
                    .arg = p};
}

/* ---- the connection: each of these can end the client ------------------- */

static void on_news(void *arg)
{
  sim_process_settle(arg);
}

static void hang_up(sim_process *p, bool silent)
{
  sim_unschedule(&p->world->agenda, &p->lookup);
  sim_pipe_close(p->pipe, silent);
  p->pipe = NULL;
  p->told_open = false;
}

static void fail(sim_process *p, int err, const char *why)
{
  hang_up(p, false);
  lk_client_failed(p->client, p->attempt, err, why);
}

/* At a dead address nothing ever comes of it. */
static void dial(sim_process *p, unsigned server)
{
  if (server == SIM_DEAD)
    return;
  p->pipe = sim_pipe_open(p->world->network, p->index, server, on_news, p);
}

/* The name has been looked up. */
static void on_lookup(void *arg)
{
  sim_process *p = arg;
  uint64_t attempt = p->attempt;
  lk_want want;

  if (p->paused) { /* the answer waits */
    sim_schedule_at(&p->world->agenda, &p->lookup, p->goes_on_us);
    return;
  }
  if (sim_chance(&p->rng, 10)) {
    fail(p, LK_ERR_RESOLVE, "no such name");
    return;
  }
  lk_client_resolved(p->client, attempt, p->naddresses);
  if (p->client == NULL)
    return;
  lk_client_want(p->client, &want);
  if (want.attempt == attempt)
    dial(p, p->addresses[want.address_index % p->naddresses]);
}

static void follow_wish(sim_process *p)
{
  lk_want want;

  lk_client_want(p->client, &want);
  if (want.attempt == p->attempt)
    return;
  hang_up(p, false);
  p->attempt = want.attempt;
  if (p->attempt == 0)
    return;
  if (want.host[1] >= '0' && want.host[1] <= '9') {
    dial(p, (unsigned)(want.host[1] - '0'));
  } else if (want.address_index > 0) {
    dial(p, p->addresses[want.address_index % p->naddresses]);
  } else if (p->eager > 0) {
    on_lookup(p);
  } else {
    sim_schedule_in(&p->world->agenda, &p->lookup,
                    sim_between(&p->rng, 100, 20 * SIM_MS));
  }
}

/* Whether the connection is still the one of `attempt`. */
static bool stands(const sim_process *p, uint64_t attempt)
{
  return p->client != NULL && p->attempt == attempt && p->pipe != NULL;
}

static void read_some(sim_process *p)
{
  size_t len = sim_pipe_arrived(p->pipe);
  unsigned char *room;

  if (len > ROOM)
    len = ROOM;
  room = malloc(len); /* just so much, for who reads too far or too late */
  sim_pipe_receive(p->pipe, room, len);
  sim_checker_received(p->world->checker, p, room, len);
  lk_client_received(p->client, p->attempt, room, len);
  free(room);
}

static void read_all(sim_process *p)
{
  uint64_t attempt = p->attempt;

  for (int i = 0; i < MOST_READS && stands(p, attempt); i++) {
    if (sim_pipe_arrived(p->pipe) > 0) {
      read_some(p);
      continue;
    }
    switch (sim_pipe_look(p->pipe)) {
    case SIM_PIPE_CLOSED: fail(p, 0, NULL); return;
    case SIM_PIPE_RESET: fail(p, LK_ERR_CONNECTION_LOSS, "reset"); return;
    case SIM_PIPE_REFUSED: fail(p, LK_ERR_CONNECT, "refused"); return;
    case SIM_PIPE_OPEN:
    case SIM_PIPE_DIALING: return;
    }
  }
  if (stands(p, attempt) && sim_pipe_arrived(p->pipe) > 0)
    sim_process_settle(p);
}

/* What a look at the socket shows. */
static void receive(sim_process *p)
{
  if (p->pipe == NULL || sim_pipe_look(p->pipe) == SIM_PIPE_DIALING)
    return;
  if (!p->told_open && sim_pipe_look(p->pipe) != SIM_PIPE_REFUSED) {
    p->told_open = true;
    sim_checker_connected(p->world->checker, p);
    lk_client_connected(p->client, p->attempt);
    if (p->client == NULL || p->pipe == NULL)
      return;
  }
  read_all(p);
}

static void transmit(sim_process *p)
{
  lk_bytes bytes = lk_client_pending(p->client);

  if (bytes.len == 0 || !p->told_open)
    return;
  size_t taken = sim_pipe_send(p->pipe, bytes.at, bytes.len);

  if (taken == 0)
    return;
  sim_checker_sent(p->world->checker, p, bytes.at, taken);
  lk_client_sent(p->client, p->attempt, taken);
}

/* What a driver may do while it is being woken: look up and dial, and send. A
 * dial that is refused at once is told at once. */
static void act_at_once(sim_process *p)
{
  follow_wish(p);
  if (p->client == NULL)
    return;
  if (p->pipe != NULL && !p->told_open &&
      !sim_server_runs(
          sim_ensemble_server(p->world->ensemble, sim_pipe_server(p->pipe)))) {
    fail(p, LK_ERR_CONNECT, "refused at once");
    return;
  }
  if (p->pipe != NULL)
    transmit(p);
}

/* ---- the turn ----------------------------------------------------------- */

static void tick(sim_process *p)
{
  if (lk_client_deadline(p->client) <= sim_process_clock(p))
    lk_client_tick(p->client);
}

static void set_alarm(sim_process *p)
{
  int64_t at = sim_process_true_us(p, lk_client_deadline(p->client));

  if (at == INT64_MAX)
    sim_unschedule(&p->world->agenda, &p->alarm);
  else /* timers are never early */
    sim_schedule_at(&p->world->agenda, &p->alarm,
                    at + sim_between(&p->rng, 0, SIM_MS / 4));
}

static void read_both(sim_process *p)
{
  receive(p);
  if (p->client != NULL)
    sim_prober_look(p);
}

static void follow_both(sim_process *p)
{
  follow_wish(p);
  if (p->client != NULL)
    sim_prober_follow(p);
}

static void do_step(sim_process *p, enum sim_step step)
{
  switch (step) {
  case SIM_STEP_TICK:
  case SIM_STEP_TICK_AGAIN: tick(p); break;
  case SIM_STEP_READ: read_both(p); break;
  case SIM_STEP_WISH: follow_both(p); break;
  case SIM_STEP_WRITE: transmit(p); break;
  case SIM_STEP_ALARM: set_alarm(p); break;
  case SIM_STEP_END: break;
  }
}

/* Whether it stands still before its next step. */
static bool halts(sim_process *p)
{
  int64_t for_us = p->ahead_us - p->world->agenda.now_us;

  if (p->step == p->trip)
    for_us = p->trip_us;
  else if (for_us <= 0)
    return false;
  if (p->step == p->trip)
    p->trip = 0;
  sim_process_pause(p, for_us, 0);
  return true;
}

void sim_driver_turn(sim_process *p)
{
  p->turning = true;
  while (sim_process_runs(p) && p->step <= SIM_STEP_END && !halts(p))
    do_step(p, (enum sim_step)p->step++);
  p->turning = false;
  if (!p->paused)
    p->step = SIM_STEP_TICK;
}

static void on_turn(void *arg)
{
  sim_process *p = arg;

  if (sim_process_runs(p))
    sim_driver_turn(p);
}

void sim_process_settle(sim_process *p)
{
  bool still_to_come = p->turning && p->step <= SIM_STEP_WISH;

  if (!still_to_come && !lk__heap_has(&p->turn.node))
    sim_schedule_in(&p->world->agenda, &p->turn, 0);
}

void sim_driver_init(sim_process *p)
{
  sim_world *w = p->world;

  p->turn = (sim_job){.run = on_turn, .arg = p};
  p->alarm = (sim_job){.run = on_turn, .arg = p};
  p->lookup = (sim_job){.run = on_lookup, .arg = p};
  p->step = SIM_STEP_TICK;
  if (sim_has_condition(w, SIM_ADDRESSES)) {
    sim_rng r = sim_rng_fork(&p->rng, 'a');

    sim_driver_name(p, &r, SIM_MOST_DEAD);
  }
  if (sim_roll(&p->rng, 3) > 0)
    return;
  /* One name for all servers: addresses in an order of its own. */
  unsigned first = sim_roll(&p->rng, w->config.servers);

  if (p->naddresses > 0)
    return;
  p->naddresses = w->config.servers;
  for (unsigned i = 0; i < w->config.servers; i++)
    p->addresses[i] = (first + i) % w->config.servers;
}

void sim_driver_name(sim_process *p, sim_rng *r, unsigned dead)
{
  unsigned servers = p->world->config.servers;

  p->naddresses = servers + dead;
  for (unsigned i = 0; i < p->naddresses; i++) {
    unsigned k = sim_roll(r, i + 1);

    p->addresses[i] = p->addresses[k];
    p->addresses[k] = i < servers ? i : SIM_DEAD;
  }
}

void sim_driver_quit(sim_process *p, bool silent)
{
  sim_agenda *a = &p->world->agenda;

  hang_up(p, silent);
  sim_prober_quit(p, silent);
  sim_unschedule(a, &p->turn);
  sim_unschedule(a, &p->alarm);
  p->attempt = 0;
  p->trip = 0;
  p->ahead_us = 0;
  p->step_after = 0;
  p->step = SIM_STEP_TICK;
}
