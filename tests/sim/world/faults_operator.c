/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/active_fault.h"
#include "sim/world/checker.h"
#include "sim/world/lock_styles.h"

#include <stdlib.h>

static const char *random_lock(sim_faults *f)
{
  return f->world->locks[sim_roll(&f->rng, (uint32_t)f->world->nlocks)];
}

/* One of the first nodes of a random queue; NULL: the queue is empty. */
static const sim_node *random_node(sim_faults *f)
{
  const sim_tree *committed = sim_ensemble_committed_tree(f->world->ensemble);
  const sim_node *dir = sim_tree_find(committed, random_lock(f));

  if (dir == NULL || dir->children == NULL)
    return NULL;
  const sim_node *n = dir->children;

  for (uint32_t i = sim_roll(&f->rng, 4); i > 0 && n->next != NULL; i--)
    n = n->next;
  return n;
}

bool sim_inject_delete_node(sim_faults *f)
{
  const sim_node *n = random_node(f);

  if (n == NULL)
    return false;
  TRACE(f, "an operator deletes %s", n->path);
  (void)sim_operator_delete(f->world->ensemble, n->path);
  return true;
}

/* Whether a deleted directory may start its sequence numbers again. If node
 * names have no id, a contender could then take another's node for its own. */
static bool may_reuse_numbers(const sim_faults *f)
{
  return f->world->style->id_len > 0;
}

static bool delete_directory(sim_faults *f, const char *lock)
{
  const sim_node *dir =
      sim_tree_find(sim_ensemble_committed_tree(f->world->ensemble), lock);

  if (dir == NULL)
    return true;
  TRACE(f, "an operator deletes all of %s", lock);
  for (const sim_node *n = dir->children; n != NULL; n = n->next)
    (void)sim_operator_delete(f->world->ensemble, n->path);
  return may_reuse_numbers(f) && sim_operator_delete(f->world->ensemble, lock);
}

bool sim_inject_delete_all(sim_faults *f)
{
  (void)delete_directory(f, random_lock(f));
  return true;
}

bool sim_inject_set_node(sim_faults *f)
{
  const sim_node *n = random_node(f);

  if (n == NULL)
    return false;
  TRACE(f, "an operator changes %s", n->path);
  (void)sim_operator_set(f->world->ensemble, n->path, "x");
  return true;
}

/* Deletes the node until it is certainly gone. Its create may still be
 * outstanding, so at least one delete is sent; a deposed leader may lose a
 * delete, so it is repeated. */
static bool heal_foreign(sim_active_fault *x)
{
  sim_ensemble *e = x->faults->world->ensemble;

  if (sim_tree_find(sim_ensemble_committed_tree(e), x->path) == NULL &&
      x->requests_sent > 0)
    return true;
  x->requests_sent += sim_operator_delete(e, x->path);
  return false;
}

/* Names that no client may take for those of contender nodes. */
bool sim_inject_foreign(sim_faults *f)
{
  static const char *const with_id_names[] = {"lock-", "lock-12x", "0000000000",
                                              "x-latch-0000000000",
                                              "lock-00000000000"};
  static const char *const without_id_names[] = {
      "seq-", "w-000000000x", "xseq-0000000000", "lock-0000000000",
      "r-000000000"};
  const char *const *names =
      sim_names_have_no_id(f->world->style) ? without_id_names : with_id_names;
  sim_active_fault *x = sim_start_fault(f, heal_foreign, sim_fault_duration(f));

  snprintf(x->path, sizeof x->path, "%s/%s", random_lock(f),
           names[sim_roll(&f->rng, 5)]);
  TRACE(f, "an operator creates %s", x->path);
  (void)sim_operator_create(f->world->ensemble, x->path, "", 0, false);
  return true;
}

bool sim_inject_expire(sim_faults *f)
{
  sim_process *p = &f->world->processes[sim_random_process(f)];

  if (p->client == NULL)
    return false;
  int64_t session = lk_client_session(p->client).id;

  TRACE(f, "an operator ends the session of %s", p->name);
  sim_checker_note_ended_by_operator(f->world->checker, session);
  (void)sim_operator_expire(f->world->ensemble, session);
  return true;
}

/* Restores the permissions. Repeats the request until it is committed, since a
 * deposed leader may lose it. */
static bool heal_deny(sim_active_fault *x)
{
  sim_ensemble *e = x->faults->world->ensemble;
  const sim_node *n = sim_tree_find(sim_ensemble_committed_tree(e), x->path);

  if (x->requests_sent > 0 && (n == NULL || n->perms == LK_PERM_ALL))
    return true;
  x->requests_sent += sim_operator_deny(e, x->path, 0);
  return false;
}

bool sim_inject_deny(sim_faults *f)
{
  static const int32_t perms[] = {LK_PERM_READ, LK_PERM_CREATE, LK_PERM_DELETE,
                                  LK_PERM_CREATE | LK_PERM_DELETE, LK_PERM_ALL};
  const sim_node *n = sim_roll(&f->rng, 2) == 0 ? random_node(f) : NULL;
  int32_t denied = perms[sim_roll(&f->rng, 5)];
  int64_t length = sim_fault_duration(f) / 4;
  sim_active_fault *x = sim_start_fault(f, heal_deny, length);

  snprintf(x->path, sizeof x->path, "%s", n == NULL ? random_lock(f) : n->path);
  TRACE(f, "permissions %" PRId32 " of %s are denied", denied, x->path);
  (void)sim_operator_deny(f->world->ensemble, x->path, denied);
  return true;
}

static bool counter_is_near_end(const sim_node *dir)
{
  return dir != NULL && (dir->counter < 0 || dir->counter >= 1 << 30);
}

/* Deletes the directory, so that its counter starts again. It is repeated,
 * since the delete fails while other clients create nodes in the directory. */
static bool heal_counter(sim_active_fault *x)
{
  const sim_tree *committed =
      sim_ensemble_committed_tree(x->faults->world->ensemble);

  if (!counter_is_near_end(sim_tree_find(committed, x->path)))
    return true;
  (void)delete_directory(x->faults, x->path);
  return false;
}

/* Sets the counter of a directory near its end. The directory must be deleted
 * before it is done again, so that no number is used twice. */
bool sim_inject_counter(sim_faults *f)
{
  static const int32_t ends[] = {INT32_MAX - (1 << 20) - 3, INT32_MAX - 1,
                                 INT32_MAX, INT32_MIN + 5, 1 << 30};
  const char *lock = random_lock(f);
  int32_t counter = ends[sim_roll(&f->rng, 5)];
  const sim_node *dir =
      sim_tree_find(sim_ensemble_committed_tree(f->world->ensemble), lock);

  if (dir == NULL || counter_is_near_end(dir) || !may_reuse_numbers(f))
    return false;
  snprintf(sim_start_fault(f, heal_counter, sim_fault_duration(f))->path, 24,
           "%s", lock);
  TRACE(f, "the counter of %s is %" PRId32, lock, counter);
  sim_operator_set_counter(f->world->ensemble, lock, counter);
  return true;
}

/* ---- server lists ------------------------------------------------------- */

bool sim_set_hosts(sim_process *p, unsigned servers)
{
  char hosts[64];
  size_t at = 0;

  if (!sim_process_runs(p) || p->in_loop)
    return false;
  for (unsigned i = 0; i < p->world->config.servers; i++) {
    if ((servers >> i & 1) != 0)
      at += (size_t)snprintf(hosts + at, sizeof hosts - at, "%s%c%u",
                             at == 0 ? "" : ",", sim_first_letter(p->world), i);
  }
  SIM_TRACE(&p->world->trace, "fault", "%s is given the servers %s", p->name,
            hosts);
  int err = lk_client_set_hosts(p->client, hosts);

  if (err != 0 && err != LK_ERR_CLOSED && err != LK_ERR_NO_MEMORY)
    abort();
  sim_process_schedule_loop(p);
  return true;
}

static bool heal_hosts(sim_active_fault *x)
{
  return sim_set_hosts(&x->faults->world->processes[x->process], ~0U);
}

bool sim_inject_hosts(sim_faults *f)
{
  unsigned all = (1U << f->world->config.servers) - 1;
  unsigned some = sim_roll(&f->rng, all) + 1;
  unsigned process = sim_random_process(f);

  if (!sim_set_hosts(&f->world->processes[process], some))
    return false;
  sim_start_fault(f, heal_hosts, sim_fault_duration(f))->process = process;
  return true;
}
