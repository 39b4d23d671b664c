/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <inttypes.h>

/**
 * @file An operator with all permissions, which sends its writes to the leader.
 */

static bool send_write(sim_ensemble *e, int32_t op,
                       const sim_operation *operation)
{
  int leader = sim_ensemble_leader(e);

  if (leader < 0)
    return false;
  sim_server *s = &e->servers[leader];

  SIM_TRACE(e->trace, "operator", "sends server %d opcode %d on %s", leader,
            (int)op, (const char *)operation->path.at);
  sim_pipeline_submit(
      s, NULL,
      sim_write_request_new(SIM_ENSEMBLE_SESSION, op, operation, &e->arena));
  return true;
}

bool sim_operator_create(sim_ensemble *e, const char *path, const char *data)
{
  sim_operation operation = {.path = lk_text(path),
                             .data = lk_text(data),
                             .acl = lk__vec_of(sim_access_open.entries, 1)};

  return send_write(e, LK_OPCODE_CREATE, &operation);
}

bool sim_operator_delete(sim_ensemble *e, const char *path)
{
  sim_operation operation = {.path = lk_text(path), .version = -1};

  return send_write(e, LK_OPCODE_DELETE, &operation);
}

bool sim_operator_set(sim_ensemble *e, const char *path, const char *data)
{
  sim_operation operation = {
      .path = lk_text(path), .data = lk_text(data), .version = -1};

  return send_write(e, LK_OPCODE_SET_DATA, &operation);
}

bool sim_operator_deny(sim_ensemble *e, const char *path, int32_t perms)
{
  const sim_access *remaining =
      sim_access_for_world(LK_PERM_ALL & ~perms, &e->arena);
  sim_operation operation = {.path = lk_text(path),
                             .version = -1,
                             .acl = lk__vec_of(remaining->entries, 1)};

  return send_write(e, LK_OPCODE_SET_ACL, &operation);
}

static void set_counter(sim_tree *t, const sim_path *p, int32_t counter)
{
  sim_node *n = sim_tree_node(t, p);

  if (n == NULL)
    return;
  n->counter = counter;
  sim_node_update_cversion(n);
}

void sim_operator_set_counter(sim_ensemble *e, const char *path,
                              int32_t counter)
{
  const sim_path *p = sim_path_find(&e->paths, lk_text(path));

  set_counter(&e->committed_tree, p, counter);
  for (unsigned i = 0; i < e->count; i++) {
    set_counter(&e->servers[i].tree, p, counter);
    sim_outstanding_set_counter(&e->servers[i].outstanding, p, counter);
  }
}

bool sim_operator_expire(sim_ensemble *e, int64_t session)
{
  int leader = sim_ensemble_leader(e);

  if (leader < 0)
    return false;
  sim_tracked *tracked = sim_tracker_find(&e->servers[leader], session);

  if (tracked == NULL || tracked->closing)
    return true; /* the session has ended or is ending */
  tracked->expires_ms = 0;
  sim_tracker_expire(&e->servers[leader]);
  return true;
}
