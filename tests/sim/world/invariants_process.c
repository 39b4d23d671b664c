/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/actor.h"
#include "sim/world/conditions.h"

/* Invariants of a process: its connections, its locks and its close. */

/* ---- close -------------------------------------------------------------- */

static void check_holds_nothing(sim_checker *checker, const sim_life *l)
{
  for (const sim_handle *h = l->handles; h != NULL; h = h->next) {
    if (h->lock != NULL && !h->freeing && sim_lease_lasts(h->process, h->lock))
      sim_violated(checker, "%s holds although its client is closed", h->name);
  }
  for (const sim_actor *a = l->process->actors; a != NULL; a = a->next) {
    if (a->single.lock != NULL && sim_lease_lasts(a->process, a->single.lock))
      sim_violated(checker, "%s holds although its client is closed", a->name);
  }
}

/* When lk_client_close() has completed, no node of the session exists. Nodes
 * that a restore brought back are excluded. */
static void check_has_no_node(sim_checker *checker, const sim_process *p)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->session != 0 && e->session == p->closed_session && !e->restored)
      sim_violated(checker, "%s exists although %s has closed its session",
                   e->path, p->name);
  }
}

/* After lk_client_close() is called nothing is held, and after it has completed
 * no node of the session exists. */
void sim_close_ends(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_CLIENT_CLOSED) {
    if (f->err == 0)
      check_has_no_node(checker, f->life->process);
    return;
  }
  if (f->type == SIM_ACQUIRE_ENDED) {
    if (f->err == 0 && !f->handle->is_reentry && f->handle->process->closing)
      sim_violated(checker, "%s is granted although its client is closed",
                   f->handle->name);
    return;
  }
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_process *p = checker->lives[i].process;

    if (p != NULL && p->closing && sim_process_has_client(p))
      check_holds_nothing(checker, &checker->lives[i]);
  }
}

/* ---- lk_lock_ok() ------------------------------------------------------- */

static const char *missing_property(const sim_handle *h)
{
  if (lk_lock_get_state(h->lock) != LK_LOCK_HELD)
    return "its state";
  if (lk_lock_count(h->lock) == 0)
    return "a count";
  if (lk_lock_token(h->lock) == 0)
    return "a token";
  if (lk_lock_node(h->lock) == NULL)
    return "a node";
  if (lk_lock_deadline(h->lock) <= sim_process_clock(h->process))
    return "a lease";
  return NULL;
}

static void check_ok(sim_checker *checker, const sim_handle *h)
{
  if (h->lock == NULL || h->freeing || !sim_process_has_client(h->process) ||
      !lk_lock_ok(h->lock))
    return;
  const char *what = missing_property(h);

  if (what != NULL)
    sim_violated(checker, "lk_lock_ok() is true for %s without %s", h->name,
                 what);
}

/* lk_lock_ok() implies HELD, count, token, node and lease. */
void sim_lock_ok(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_STATE) {
    for (const sim_handle *h = f->life->handles; h != NULL; h = h->next)
      check_ok(checker, h);
  } else if (f->type == SIM_PERIODIC) {
    SIM_EACH_HANDLE(checker, h)
    {
      check_ok(checker, h);
    }
  } else {
    check_ok(checker, f->handle);
  }
}

/* ---- connections -------------------------------------------------------- */

/* Whether the connection to server `i` has no fault, and little delay. */
static bool route_is_clear(const sim_checker *checker, const sim_life *l,
                           unsigned i)
{
  const sim_route *r =
      sim_network_route(checker->world->network, l->process->index, i);
  int64_t little_us = checker->world->shortest_ms * SIM_MS / 16;

  return r->cut[SIM_UP] == 0 && r->cut[SIM_DOWN] == 0 && r->proxies == 0 &&
         r->us_per_kb == 0 &&
         r->delay_us[SIM_UP] + r->delay_us[SIM_DOWN] < little_us;
}

/* The number of addresses that a round of connection attempts tries; the client
 * divides the time of the round by it. */
static unsigned address_count(const sim_checker *checker, const sim_life *l)
{
  return l->process->naddresses > 0 ? l->process->naddresses
                                    : checker->world->config.servers;
}

enum {
  LEAST_ATTEMPT_MS = 250,  /* the client gives each attempt this much */
  LONGEST_PAUSE_MS = 1000, /* of the client between two rounds */
  USUAL_WRITE_MS = 10      /* of a write in servers with fast links and disks */
};

/* The least time that the client gives an attempt at one address. */
static int64_t attempt_us(const sim_checker *checker, const sim_life *l)
{
  int64_t ms =
      checker->world->shortest_ms * 2 / 3 / (int32_t)address_count(checker, l);

  return (ms > LEAST_ATTEMPT_MS ? ms : LEAST_ATTEMPT_MS) * SIM_MS;
}

/* The time that a handshake with server `i` takes. A createSession through a
 * follower crosses links between servers four times: request, proposal,
 * acknowledgement, commit. The TCP handshake and the connect request cross the
 * route once each way. */
static int64_t handshake_us(const sim_checker *checker, const sim_life *l,
                            unsigned i)
{
  const sim_route *r =
      sim_network_route(checker->world->network, l->process->index, i);

  return 2 * (r->delay_us[SIM_UP] + r->delay_us[SIM_DOWN]) +
         4 * sim_links_slowest_us(checker->world->ensemble) +
         USUAL_WRITE_MS * SIM_MS;
}

/* Whether a lookup may take longer than the attempt that waits for it. A lookup
 * that began while lookups were slow lasts beyond that. If the addresses are
 * known, the client does not wait. */
static bool lookup_is_slow(const sim_checker *checker, const sim_life *l)
{
  const sim_process *p = l->process;

  return p->resolving != NULL ? !p->resolving->known
                              : checker->world->slow_lookups > 0;
}

/* Whether the client must be able to connect: all servers serve, the routes are
 * clear, and a handshake fits into one attempt. */
static bool is_within_reach(const sim_checker *checker, const sim_life *l)
{
  sim_ensemble *e = checker->world->ensemble;

  if (sim_ensemble_leader(e) < 0 || !sim_links_whole(e) ||
      !sim_process_runs(l->process) || lookup_is_slow(checker, l) ||
      sim_now_us(checker) <= checker->links_last_slow_us + sim_T_us(checker))
    return false;
  for (unsigned i = 0; i < checker->world->config.servers; i++) {
    const sim_server *s = sim_ensemble_server(e, i);

    if (!sim_server_serves(s) || sim_server_closes_early(s) ||
        !route_is_clear(checker, l, i) ||
        handshake_us(checker, l, i) >= attempt_us(checker, l))
      return false;
  }
  return true;
}

/* The longest time until the client is connected: a round of attempts, a pause,
 * and the attempt that succeeds, which takes a part of its time. A round takes
 * two thirds of the session timeout, or LEAST_ATTEMPT_MS for each address if
 * that is longer. */
static int64_t connect_limit_us(const sim_checker *checker, const sim_life *l)
{
  int64_t usual_us = checker->world->longest_ms * SIM_MS * 2 / 3;
  int64_t least_us =
      (int64_t)address_count(checker, l) * LEAST_ATTEMPT_MS * SIM_MS;
  int64_t round_us = usual_us > least_us ? usual_us : least_us;
  int64_t limit_us = round_us + (LONGEST_PAUSE_MS + LEAST_ATTEMPT_MS) * SIM_MS;

  /* addresses that change within a round can lead to dead ones again */
  if (sim_fault_is_possible(checker->world, SIM_FAULT_ADDRESSES))
    limit_us += round_us;
  /* after a wipe, servers refuse clients that have seen a later zxid */
  if (checker->world->wipes > 0)
    limit_us += sim_T_us(checker) * 4 / 3;
  return limit_us;
}

static bool seeks_connection(const sim_life *l)
{
  return l->process != NULL && sim_process_has_client(l->process) &&
         (l->state == LK_STATE_CONNECTING || l->state == LK_STATE_SUSPENDED) &&
         !l->process->closing;
}

/* A client with a reachable quorum is connected soon. States are checked when
 * they change, too: a connection may begin and break between two periodic
 * checks. */
void sim_reconnects(sim_checker *checker, const sim_fact *f)
{
  (void)f;
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    sim_life *l = &checker->lives[i];

    if (!seeks_connection(l) || !is_within_reach(checker, l)) {
      l->reachable_since_us = 0;
      continue;
    }
    if (l->reachable_since_us == 0)
      l->reachable_since_us = sim_now_us(checker);
    if (sim_now_us(checker) - l->reachable_since_us >
        connect_limit_us(checker, l)) {
      sim_violated(checker, "%s has no connection for %" PRId64 " ms",
                   l->process->name,
                   (sim_now_us(checker) - l->reachable_since_us) / SIM_MS);
      l->reachable_since_us = 0;
    }
  }
}

/* Whether the client gave up its connection, while the connection was neither
 * closed nor reset. */
static bool gave_up_connection(const sim_fact *f)
{
  const sim_process *p = f->life->process;

  return f->state == LK_STATE_SUSPENDED && f->err == LK_ERR_CONNECTION_LOSS &&
         p->pipe != NULL && sim_pipe_get_state(p->pipe) == SIM_PIPE_OPEN;
}

/* Whether the client has left its server because a request got no reply. */
static bool left_without_reply(const sim_process *p)
{
  const char *why;

  (void)lk_client_last_error(p->client, &why);
  return strstr(why, ": no reply to ") != NULL;
}

/* No connection is given up as silent while bytes arrive, or because of a
 * missing reply while parts of replies arrive. Bytes that have waited during a
 * pause come too late. Only routes with limited bandwidth are checked: on
 * others a whole frame arrives at once. */
void sim_bytes_arrive(sim_checker *checker, const sim_fact *f)
{
  const sim_life *l = f->life;
  const sim_process *p = l->process;
  int64_t now = sim_now_us(checker);
  int64_t last_us = /* before the bytes that arrive now */
      l->last_bytes_us < now ? l->last_bytes_us : l->previous_bytes_us;
  int64_t t = lk_client_timeout_ms(p->client) * SIM_MS;
  int64_t least_us = t / 4;

  if (left_without_reply(p)) {
    last_us = l->progress_us;
    least_us = t / 8;
  }
  if (sim_fault_is_possible(checker->world, SIM_FAULT_NARROW) &&
      gave_up_connection(f) && now - last_us < least_us &&
      p->busy_until_us <= now)
    sim_violated(checker,
                 "%s gives up a connection %" PRId64 " ms after bytes came",
                 p->name, (now - last_us) / SIM_MS);
}

/* Whether the client has left its server earlier than a client without holders
 * would. */
static bool left_for_holder(const sim_process *p)
{
  const char *why;
  int waited_ms = 0;

  (void)lk_client_last_error(p->client, &why);
  why = strstr(why, ": no reply to ");
  return why != NULL &&
         sscanf(why, ": no reply to %*s for %d ms", &waited_ms) == 1 &&
         waited_ms < lk_client_timeout_ms(p->client) * 2 / 3;
}

/* A client leaves a server for its holders once in a session timeout. The time
 * is measured by the clock of the process, so pauses are excluded, which let it
 * run in one step. */
void sim_moves_bounded(sim_checker *checker, const sim_fact *f)
{
  sim_life *l = sim_life_of(checker, f->life->process);
  const sim_process *p = l->process;
  int64_t now = sim_now_us(checker);

  if (!gave_up_connection(f) || !left_for_holder(p))
    return;
  if (l->left_us != 0 && l->resumed_us < l->left_us &&
      !sim_fault_is_possible(checker->world, SIM_FAULT_BOUNDS) &&
      now - l->left_us < lk_client_timeout_ms(p->client) * SIM_MS * 98 / 100)
    sim_violated(checker,
                 "%s leaves a server for its holders again after "
                 "%" PRId64 " ms",
                 p->name, (now - l->left_us) / SIM_MS);
  l->left_us = now;
}

/* ---- number of requests and connections --------------------------------- */

/* The bound of requests in a session timeout: three times what the busiest
 * actors send and a client repeats on new connections. */
enum { MOST_SENT = 2500, USUAL_LONGEST_MS = 6000 /* session timeout */ };

/* The bound of connections in a session timeout. A round connects to each
 * server once. After the first rounds have failed, rounds are a twentieth of
 * the session timeout apart. If servers grant shorter timeouts, the counted
 * time contains several of them. */
static size_t most_connects(const sim_checker *checker)
{
  const sim_world *w = checker->world;
  int32_t rounded_up = (w->timeout_ms + w->shortest_ms - 1) / w->shortest_ms;
  size_t timeouts = (size_t)rounded_up;

  /* With a longer timeout than 10 s, rounds are still half a second apart. */
  size_t rounds = w->timeout_ms > 10000 ? (size_t)w->timeout_ms / 500 : 20;

  return timeouts * (24 + 12 * (size_t)w->config.servers) * rounds / 20;
}

/* Each of many readers sends a list and a watch on each connection. In a long
 * session timeout, contenders that poll send more requests. */
static size_t most_sent(const sim_checker *checker)
{
  const sim_world *w = checker->world;
  size_t times = sim_has_condition(w, SIM_MANY_READERS) ? 8 : 1;
  int32_t usual_ms =
      w->timeout_ms < USUAL_LONGEST_MS ? USUAL_LONGEST_MS : w->timeout_ms;

  return times * MOST_SENT * (size_t)usual_ms / USUAL_LONGEST_MS;
}

static void check_count(sim_checker *checker, const sim_life *l)
{
  if (l->nsent > most_sent(checker))
    sim_violated(checker, "%s sends %zu requests in a session timeout",
                 l->process->name, l->nsent);
  if (l->nconnects > most_connects(checker))
    sim_violated(checker, "%s connects %zu times in a session timeout",
                 l->process->name, l->nconnects);
}

static void check_and_reset_counts(sim_checker *checker)
{
  int64_t T = checker->world->timeout_ms * SIM_MS;

  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    sim_life *l = &checker->lives[i];

    if (l->process == NULL || sim_now_us(checker) - l->count_us < T)
      continue;
    /* If the check itself was late, more than one T was counted. */
    bool counted_for_one_T = sim_now_us(checker) - l->count_us < T + T / 8;

    if (counted_for_one_T)
      check_count(checker, l);
    l->nsent = l->nconnects = 0;
    l->count_us = sim_now_us(checker);
  }
}

/* Requests and connections in a session timeout are bounded. */
void sim_budget(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_SENT)
    f->life->nsent++;
  else if (f->type == SIM_CONNECTED)
    f->life->nconnects++;
  else
    check_and_reset_counts(checker);
}
