/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- setup and end ------------------------------------------------------ */

static void set_default_range(int64_t range[2], int64_t low, int64_t high)
{
  if (range[0] == 0 && range[1] == 0) {
    range[0] = low;
    range[1] = high;
  }
}

static sim_ensemble_config
config_with_defaults(const sim_ensemble_config *given)
{
  sim_ensemble_config c = *given;

  if (c.servers == 0)
    c.servers = 3;
  if (c.tick_ms == 0)
    c.tick_ms = 2000;
  if (c.sync_limit == 0)
    c.sync_limit = 5;
  if (c.min_timeout_ms == 0)
    c.min_timeout_ms = 2 * c.tick_ms;
  if (c.max_timeout_ms == 0)
    c.max_timeout_ms = 20 * c.tick_ms;
  if (c.sweep_ms == 0)
    c.sweep_ms = 60000;
  set_default_range(c.peer_delay_us, 100, 1000);
  set_default_range(c.disk_delay_us, 50, 500);
  set_default_range(c.election_us, 20000, 200000);
  if (c.wall_clock_start_ms == 0)
    c.wall_clock_start_ms = INT64_C(1800000000000);
  return c;
}

static void init_server(sim_ensemble *e, unsigned i, const sim_rng *rng)
{
  sim_server *s = &e->servers[i];

  s->ensemble = e;
  s->index = i;
  snprintf(s->name, sizeof s->name, "server %u", i);
  s->rng = sim_rng_fork(rng, i + 1);
  s->clock_offset_ms = sim_between(&s->rng, 0, e->config.tick_ms - 1);
  s->epoch = s->promised_epoch = e->config.first_epoch;
  sim_server_init(s);
  sim_tree_init(&s->tree, &e->paths, e->config.members,
                e->config.wall_clock_start_ms);
}

/* Set `has` for the n-th server. */
static void choose_changes(const char *version, unsigned n,
                           bool has[SERVER_DIFFERENCES])
{
  const char *second = version == NULL ? NULL : strchr(version, '+');
  char first[16];

  if (second == NULL) {
    server_changes_of(version, has);
  } else if (n % 2 == 1) {
    server_changes_of(second + 1, has);
  } else {
    snprintf(first, sizeof first, "%.*s", (int)(second - version), version);
    server_changes_of(first, has);
  }
}

bool sim_versions_all_have(const char *version, enum server_difference d)
{
  bool first[SERVER_DIFFERENCES], second[SERVER_DIFFERENCES];

  choose_changes(version, 0, first);
  choose_changes(version, 1, second);
  return first[d] && second[d];
}

bool sim_versions_any_has(const char *version, enum server_difference d)
{
  bool first[SERVER_DIFFERENCES], second[SERVER_DIFFERENCES];

  choose_changes(version, 0, first);
  choose_changes(version, 1, second);
  return first[d] || second[d];
}

sim_ensemble *sim_ensemble_new(const sim_ensemble_config *config,
                               sim_agenda *agenda, sim_rng rng,
                               sim_trace *trace,
                               const sim_ensemble_hooks *hooks)
{
  sim_ensemble *e = calloc(1, sizeof *e);

  e->config = config_with_defaults(config);
  e->agenda = agenda;
  e->trace = trace;
  if (hooks != NULL)
    e->hooks = *hooks;
  e->count = e->config.servers;
  if (e->count > SIM_MOST_SERVERS)
    abort();
  e->arena.mem = e->scratch.mem = &lk__mem_libc;
  sim_paths_init(&e->paths, &e->arena);
  sim_tree_init(&e->committed_tree, &e->paths, e->config.members,
                e->config.wall_clock_start_ms);
  e->servers = calloc(e->count, sizeof *e->servers);
  e->links = calloc((size_t)e->count * e->count, sizeof *e->links);
  for (unsigned i = 0; i < e->count; i++) {
    init_server(e, i, &rng);
    choose_changes(config->version, i, e->servers[i].has);
    for (unsigned k = 0; k < e->count; k++)
      sim_link_init(sim_link_of(e, i, k), &e->servers[i], &e->servers[k]);
  }
  for (unsigned i = 0; i < e->count; i++)
    sim_server_start(&e->servers[i]);
  return e;
}

static void free_server(sim_server *s)
{
  for (int task = 0; task < SIM_TASKS; task++)
    sim_server_cancel(s, (enum sim_task)task);
  sim_unschedule(s->ensemble->agenda, &s->continue_job);
  sim_conns_close_all(s);
  sim_pipeline_free(&s->pipeline);
  sim_watches_free(&s->watches);
  sim_tree_free(&s->tree);
  free(s->log);
  free(s->touches);
  free(s->outstanding.records);
  free(s->tracker.sessions);
  free(s->syncs);
}

void sim_ensemble_free(sim_ensemble *e)
{
  if (e == NULL)
    return;
  for (unsigned i = 0; i < e->count; i++)
    free_server(&e->servers[i]);
  for (unsigned i = 0; i < e->count * e->count; i++)
    sim_link_free(&e->links[i]);
  free(e->servers);
  free(e->links);
  free(e->history);
  free(e->frame);
  free(e->stats);
  sim_tree_free(&e->committed_tree);
  sim_paths_free(&e->paths);
  lk__arena_free(&e->arena);
  lk__arena_free(&e->scratch);
  free(e);
}

/* ---- committed transactions --------------------------------------------- */

static void on_created(const sim_node *n, void *arg)
{
  sim_ensemble *e = arg;

  if (e->hooks.created != NULL)
    e->hooks.created(n, e->hooks.arg);
}

static void on_deleted(const sim_node *n, int64_t zxid, void *arg)
{
  sim_ensemble *e = arg;

  if (e->hooks.deleted != NULL)
    e->hooks.deleted(n, zxid, e->hooks.arg);
}

static void on_data_set(const sim_node *n, void *arg)
{
  sim_ensemble *e = arg;

  if (e->hooks.data_set != NULL)
    e->hooks.data_set(n, e->hooks.arg);
}

static void on_access_set(const sim_node *n, int64_t zxid, void *arg)
{
  sim_ensemble *e = arg;

  if (e->hooks.access_set != NULL)
    e->hooks.access_set(n, zxid, e->hooks.arg);
}

static void apply_to_committed_tree(sim_ensemble *e, const sim_txn *x)
{
  const sim_txn_hooks hooks = {on_created, on_deleted, on_data_set,
                               on_access_set, e};
  sim_commit c = {.zxid = x->zxid,
                  .session = x->session,
                  .xid = x->xid,
                  .op = x->op,
                  .err = x->err};
  bool was_alive = sim_tree_session(&e->committed_tree, x->session) != NULL;

  SIM_TRACE(e->trace, "ensemble", "commits %s %s", sim_zxid_text(x->zxid),
            sim_txn_text(x));
  sim_txn_apply(x, &e->committed_tree, &hooks, NULL);
  if (x->op == LK_OPCODE_CLOSE_SESSION && was_alive &&
      e->hooks.session_ended != NULL)
    e->hooks.session_ended(x->session, x->expired, e->hooks.arg);
  if (e->hooks.committed != NULL)
    e->hooks.committed(&c, &e->committed_tree, e->hooks.arg);
}

void sim_ensemble_commit(sim_ensemble *e, const sim_server *s, size_t end)
{
  if (e->history_cap < end) {
    e->history_cap = end * 2;
    e->history = realloc(e->history, e->history_cap * sizeof *e->history);
  }
  size_t already_committed = end < e->committed ? end : e->committed;

  /* Logs that have the same transaction at one position are equal before it, so
   * comparing one position is enough. */
  if (already_committed > 0 &&
      e->history[already_committed - 1] != s->log[already_committed - 1])
    abort(); /* two leaders committed different transactions */
  while (e->committed < end) {
    const sim_txn *x = s->log[e->committed];

    e->history[e->committed++] = x;
    apply_to_committed_tree(e, x);
  }
}

/* ---- queries ------------------------------------------------------------ */

unsigned sim_ensemble_size(const sim_ensemble *e)
{
  return e->count;
}

sim_server *sim_ensemble_server(sim_ensemble *e, unsigned i)
{
  return &e->servers[i];
}

/* Whether the server follows this leader and serves clients. Both ends must use
 * the same channel: a server may still use one that the other has given up. */
static bool is_serving_follower(const sim_server *s, unsigned leader)
{
  const sim_server *l = &s->ensemble->servers[leader];

  return s->role == SIM_FOLLOWING && s->leader == leader && s->serves &&
         s->channels[leader] == l->channels[s->index];
}

static bool leads_quorum(const sim_server *s)
{
  unsigned count = 1; /* the leader itself */

  if (!s->established || s->stopped)
    return false;
  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (is_serving_follower(&s->ensemble->servers[i], s->index))
      count++;
  }
  return count >= sim_quorum(s->ensemble);
}

int sim_ensemble_leader(const sim_ensemble *e)
{
  for (unsigned i = 0; i < e->count; i++) {
    if (leads_quorum(&e->servers[i]))
      return (int)i;
  }
  return -1;
}

bool sim_server_is_heard(const sim_ensemble *e, unsigned i, int leader)
{
  const sim_server *s = &e->servers[i];

  if (leader < 0 || (unsigned)leader == i)
    return sim_server_serves(s);
  return is_serving_follower(s, (unsigned)leader) && !s->stopped &&
         !sim_link_of(e, i, (unsigned)leader)->cut;
}

const sim_tree *sim_ensemble_committed_tree(const sim_ensemble *e)
{
  return &e->committed_tree;
}

size_t sim_ensemble_watches(const sim_ensemble *e)
{
  size_t count = 0;

  for (unsigned i = 0; i < e->count; i++)
    count += e->servers[i].watches.count;
  return count;
}

bool sim_ensemble_session_is_alive(const sim_ensemble *e, int64_t session)
{
  return sim_tree_session(&e->committed_tree, session) != NULL;
}
