/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"
#include "sim/world/allocate.h"

/**
 * @file Wipe and restore: all servers restart with empty logs, or with the log
 * of an older snapshot.
 */

enum { NO_SESSION = 0 };

/* The zxid of deletions that no transaction has made. */
static const int64_t after_all_zxids = INT64_MAX;

/* Reports the deletion of all nodes of `owner` at or below `n`, children before
 * their parents. NO_SESSION: nodes without an owner. */
static void notify_of_deleted_nodes(const sim_ensemble *e, const sim_node *n,
                                    int64_t owner)
{
  for (const sim_node *child = n->children; child != NULL; child = child->next)
    notify_of_deleted_nodes(e, child, owner);
  if (n->parent != NULL && n->stat.ephemeral_owner == owner &&
      e->hooks.deleted != NULL)
    e->hooks.deleted(n, after_all_zxids, e->hooks.arg);
}

static void notify_of_commit(const sim_ensemble *e, int64_t session, int32_t op)
{
  sim_commit c = {.zxid = e->committed_tree.zxid, .session = session, .op = op};

  if (e->hooks.committed != NULL)
    e->hooks.committed(&c, &e->committed_tree, e->hooks.arg);
}

/* Reports the end of all sessions, then the deletion of all nodes. */
static void notify_of_end(const sim_ensemble *e)
{
  const bool expired = true;

  for (size_t i = 0; i < e->committed_tree.nsessions; i++) {
    int64_t id = e->committed_tree.sessions[i].id;

    notify_of_deleted_nodes(e, e->committed_tree.root, id);
    if (e->hooks.session_ended != NULL)
      e->hooks.session_ended(id, expired, e->hooks.arg);
    notify_of_commit(e, id, LK_OPCODE_CLOSE_SESSION);
  }
  notify_of_deleted_nodes(e, e->committed_tree.root, NO_SESSION);
  notify_of_commit(e, NO_SESSION, LK_OPCODE_DELETE);
}

static void reset_tree(sim_tree *t, const sim_ensemble *e, int64_t zxid)
{
  sim_paths *paths = t->paths;

  sim_tree_free(t);
  sim_tree_init(t, paths, e->config.members, e->config.wall_clock_start_ms);
  t->zxid = zxid;
}

static void wipe_server(sim_server *s, int32_t epoch)
{
  sim_server_crash(s);
  reset_tree(&s->tree, s->ensemble, 0);
  s->log_count = s->logged = s->logging = s->applied = 0;
  s->committed = 0;
  s->epoch = s->promised_epoch = epoch;
}

void sim_ensemble_wipe(sim_ensemble *e, int32_t epoch)
{
  SIM_TRACE(e->trace, "ensemble", "is wiped, epoch %d", (int)epoch);
  for (unsigned i = 0; i < e->count; i++)
    wipe_server(&e->servers[i], epoch);
  notify_of_end(e);
  e->committed = 0;
  reset_tree(&e->committed_tree, e, (int64_t)epoch << 32);
  notify_of_commit(e, NO_SESSION, LK_OPCODE_DELETE);
}

/* ---- restore ------------------------------------------------------------ */

size_t sim_ensemble_committed(const sim_ensemble *e)
{
  return e->committed;
}

/* A copy of the transaction whose epoch is smaller by `epochs`. */
static const sim_txn *with_older_epoch(sim_ensemble *e, const sim_txn *x,
                                       int32_t epochs)
{
  sim_txn *older = lk__arena_take(&e->arena, 1, sizeof *older);

  *older = *x;
  older->zxid -= (int64_t)epochs << 32;
  return older;
}

static void restore_server(sim_server *s, const sim_txn **log, size_t count)
{
  const sim_txn_hooks no_hooks = {0};

  if (s->log_cap < count) {
    s->log_cap = count;
    s->log = realloc(s->log, s->log_cap * sizeof *s->log);
    if (s->log == NULL)
      abort();
  }
  memcpy(s->log, log, count * sizeof *log);
  for (size_t i = 0; i < count; i++)
    sim_txn_apply(log[i], &s->tree, &no_hooks, NULL);
  s->log_count = s->logged = s->logging = s->applied = s->committed = count;
  s->epoch = s->promised_epoch = (int32_t)(log[count - 1]->zxid >> 32);
}

void sim_ensemble_restore(sim_ensemble *e, size_t count, int32_t epochs)
{
  const sim_txn **log = sim_allocate(count * sizeof *log);

  SIM_TRACE(e->trace, "ensemble", "is restored with %zu transactions", count);
  for (size_t i = 0; i < count; i++)
    log[i] = with_older_epoch(e, e->history[i], epochs);
  for (unsigned i = 0; i < e->count; i++)
    restore_server(&e->servers[i], log, count);
  sim_ensemble_commit(e, &e->servers[0], count);
  free(log);
}
