/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/predecessors.h"
#include "sim/world/active_fault.h"
#include "sim/world/checker.h"
#include "sim/world/lock_styles.h"

#include <stdlib.h>
#include <string.h>

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

/* Whether a deleted directory may start its sequence numbers again: only if
 * node names begin with an id. Otherwise a contender could take the node of
 * another contender for its own. */
static bool may_reuse_numbers(const sim_faults *f)
{
  return !sim_id_is_in_data(f->world->style);
}

static void delete_directory(sim_faults *f, const char *lock)
{
  const sim_node *dir =
      sim_tree_find(sim_ensemble_committed_tree(f->world->ensemble), lock);

  if (dir == NULL)
    return;
  TRACE(f, "an operator deletes all of %s", lock);
  for (const sim_node *n = dir->children; n != NULL; n = n->next)
    (void)sim_operator_delete(f->world->ensemble, n->path);
  if (may_reuse_numbers(f))
    (void)sim_operator_delete(f->world->ensemble, lock);
}

bool sim_inject_delete_all(sim_faults *f)
{
  delete_directory(f, random_lock(f));
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
static bool delete_foreign_node(sim_active_fault *x)
{
  sim_ensemble *e = x->faults->world->ensemble;

  if (sim_tree_find(sim_ensemble_committed_tree(e), x->path) == NULL &&
      x->requests_sent > 0)
    return true;
  if (sim_operator_delete(e, x->path))
    x->requests_sent++;
  return false;
}

/* Creates a node whose name no client may take for that of a contender node,
 * though it has parts of such a name. */
bool sim_inject_foreign(sim_faults *f)
{
  enum { NAMES = 5 };

  static const char *const beside_names_with_id[NAMES] = {
      "lock-", "lock-12x", "0000000000", "x-latch-0000000000",
      "lock-00000000000"};
  static const char *const beside_names_without_id[NAMES] = {
      "seq-", "w-000000000x", "xseq-0000000000", "lock-0000000000",
      "r-000000000"};
  const char *const *names = sim_names_have_no_id(f->world->style)
                                 ? beside_names_without_id
                                 : beside_names_with_id;
  sim_active_fault *x =
      sim_start_fault(f, delete_foreign_node, sim_fault_duration(f));

  snprintf(x->path, sizeof x->path, "%s/%s", random_lock(f),
           names[sim_roll(&f->rng, NAMES)]);
  TRACE(f, "an operator creates %s", x->path);
  (void)sim_operator_create(f->world->ensemble, x->path, "");
  return true;
}

/* ---- long lists ---------------------------------------------------------- */

/* One more than a short list has. */
enum { OTHERS = LK_SHORT_LIST + 1 };

typedef bool (*operator_fn)(sim_ensemble *e, const char *path);

static bool create_empty(sim_ensemble *e, const char *path)
{
  return sim_operator_create(e, path, "");
}

/* Call `f` for each of the nodes in `dir`. false: a call has failed. */
static bool for_others(sim_ensemble *e, const char *dir, operator_fn f)
{
  char path[128];
  bool sent = true;

  for (unsigned i = 0; i < OTHERS; i++) {
    snprintf(path, sizeof path, "%s/other-%u", dir, i);
    sent = f(e, path) && sent;
  }
  return sent;
}

static bool has_other(const sim_ensemble *e, const char *dir)
{
  const sim_node *n = sim_tree_find(sim_ensemble_committed_tree(e), dir);

  for (n = n == NULL ? NULL : n->children; n != NULL; n = n->next) {
    if (strncmp(strrchr(n->path, '/'), "/other-", strlen("/other-")) == 0)
      return true;
  }
  return false;
}

bool sim_long_list_remains(const sim_world *w)
{
  for (size_t i = 0; i < w->nlocks; i++) {
    if (has_other(w->ensemble, w->locks[i]))
      return true;
  }
  return false;
}

/* As delete_foreign_node(). */
static bool delete_others(sim_active_fault *x)
{
  sim_ensemble *e = x->faults->world->ensemble;

  if (x->requests_sent > 0 && !has_other(e, x->path))
    return true;
  if (for_others(e, x->path, sim_operator_delete))
    x->requests_sent++;
  return false;
}

bool sim_inject_long_list(sim_faults *f)
{
  sim_active_fault *x =
      sim_start_fault(f, delete_others, sim_fault_duration(f));

  snprintf(x->path, sizeof x->path, "%s", random_lock(f));
  TRACE(f, "an operator creates %d nodes in %s", OTHERS, x->path);
  (void)for_others(f->world->ensemble, x->path, create_empty);
  return true;
}

/* ---- sessions and permissions -------------------------------------------- */

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

enum { NO_PERMISSIONS = 0 }; /* of the enum lk_perm */

/* Restores the permissions: denies none. Repeats the request until it is
 * committed, since a deposed leader may lose it. */
static bool heal_deny(sim_active_fault *x)
{
  sim_ensemble *e = x->faults->world->ensemble;
  const sim_node *n = sim_tree_find(sim_ensemble_committed_tree(e), x->path);

  if (x->requests_sent > 0 && (n == NULL || n->perms == LK_PERM_ALL))
    return true;
  if (sim_operator_deny(e, x->path, NO_PERMISSIONS))
    x->requests_sent++;
  return false;
}

bool sim_inject_deny(sim_faults *f)
{
  enum { CHOICES = 5 };

  static const int32_t perms[CHOICES] = {
      LK_PERM_READ, LK_PERM_CREATE, LK_PERM_DELETE,
      LK_PERM_CREATE | LK_PERM_DELETE, LK_PERM_ALL};
  const sim_node *n = sim_one_in(&f->rng, 2) ? random_node(f) : NULL;
  int32_t denied = perms[sim_roll(&f->rng, CHOICES)];
  int64_t for_us = sim_fault_duration(f) / 4;
  sim_active_fault *x = sim_start_fault(f, heal_deny, for_us);

  snprintf(x->path, sizeof x->path, "%s", n == NULL ? random_lock(f) : n->path);
  TRACE(f, "permissions %" PRId32 " of %s are denied", denied, x->path);
  (void)sim_operator_deny(f->world->ensemble, x->path, denied);
  return true;
}

/* The library warns of numbers from WARNED_NUMBER on, and does not trust
 * numbers above LAST_TRUSTED_NUMBER. */
enum { WARNED_NUMBER = 1 << 30, LAST_TRUSTED_NUMBER = INT32_MAX - (1 << 20) };

static bool counter_is_near_end(const sim_node *dir)
{
  bool has_overflowed = dir != NULL && dir->counter < 0;

  return has_overflowed || (dir != NULL && dir->counter >= WARNED_NUMBER);
}

/* Deletes the directory, so that its counter starts again. Repeats the delete,
 * which fails while other clients create nodes in the directory. */
static bool heal_counter(sim_active_fault *x)
{
  const sim_tree *committed =
      sim_ensemble_committed_tree(x->faults->world->ensemble);

  if (!counter_is_near_end(sim_tree_find(committed, x->path)))
    return true;
  delete_directory(x->faults, x->path);
  return false;
}

/* Sets the counter of a directory near its end, or behind its overflow. Before
 * the counter is set again, the directory must be deleted, so that no number is
 * used twice. */
bool sim_inject_counter(sim_faults *f)
{
  enum { CHOICES = 5 };

  static const int32_t counters[CHOICES] = {LAST_TRUSTED_NUMBER - 3,
                                            INT32_MAX - 1, INT32_MAX,
                                            INT32_MIN + 5, WARNED_NUMBER};
  const char *lock = random_lock(f);
  int32_t counter = counters[sim_roll(&f->rng, CHOICES)];
  const sim_node *dir =
      sim_tree_find(sim_ensemble_committed_tree(f->world->ensemble), lock);

  if (dir == NULL || counter_is_near_end(dir) || !may_reuse_numbers(f))
    return false;
  sim_active_fault *x = sim_start_fault(f, heal_counter, sim_fault_duration(f));

  snprintf(x->path, sizeof x->path, "%s", lock);
  TRACE(f, "the counter of %s is %" PRId32, lock, counter);
  sim_operator_set_counter(f->world->ensemble, lock, counter);
  return true;
}

/* ---- server lists ------------------------------------------------------- */

bool sim_set_hosts(sim_process *p, unsigned servers)
{
  char hosts[64];
  size_t at = 0;

  if (!sim_process_runs(p) || p->in_loop) /* not in a call of the client */
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
  return sim_set_hosts(&x->faults->world->processes[x->process],
                       SIM_ALL_SERVERS);
}

bool sim_inject_hosts(sim_faults *f)
{
  /* a random set of servers that is not empty, with a bit for each */
  unsigned all = (1U << f->world->config.servers) - 1;
  unsigned some = sim_roll(&f->rng, all) + 1;
  unsigned process = sim_random_process(f);

  if (!sim_set_hosts(&f->world->processes[process], some))
    return false;
  sim_start_fault(f, heal_hosts, sim_fault_duration(f))->process = process;
  return true;
}
