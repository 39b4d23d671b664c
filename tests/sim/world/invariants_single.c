/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/actor.h"

#include <string.h>

/* Single-node locks. */

/* The first single locker with a lock, from `a` on in the list of its process;
 * NULL: none. */
static sim_actor *single_locker_from(sim_actor *a)
{
  while (a != NULL && (a->kind != &sim_single_locker || a->single.lock == NULL))
    a = a->next;
  return a;
}

/* The first single locker with a lock, in the processes with clients from
 * `index` on; NULL: none. */
static sim_actor *first_single_locker(const sim_checker *checker, size_t index)
{
  for (; index < checker->world->nprocesses; index++) {
    const sim_process *p = &checker->world->processes[index];
    sim_actor *a =
        sim_process_has_client(p) ? single_locker_from(p->actors) : NULL;

    if (a != NULL)
      return a;
  }
  return NULL;
}

static sim_actor *next_single_locker(const sim_checker *checker,
                                     const sim_actor *a)
{
  sim_actor *next = single_locker_from(a->next);

  return next != NULL ? next
                      : first_single_locker(checker, a->process->index + 1);
}

#define EACH_SINGLE_LOCKER(checker, a)                              \
  for (sim_actor *a = first_single_locker(checker, 0); (a) != NULL; \
       (a) = next_single_locker(checker, a))

/* Only its owner, or the end of its session, may delete the node. */
static void check_single_deletion(sim_checker *checker, const sim_entry *e)
{
  if (strcmp(e->path, SIM_SINGLE_PATH) != 0)
    return;
  if (e->deletion_cause == SIM_DELETED_BY_OTHERS)
    sim_violated(checker, "the node of one session is deleted by another");
  EACH_SINGLE_LOCKER(checker, a)
  {
    if (lk_lock_token(a->single.lock) == (uint64_t)e->created_zxid &&
        sim_lease_lasts(a->process, a->single.lock) &&
        !sim_deletion_is_excused(checker, e))
      sim_violated(checker, "%s holds, and its node was deleted", a->name);
  }
}

static void check_single_holders(sim_checker *checker)
{
  const sim_actor *holder = NULL;

  EACH_SINGLE_LOCKER(checker, a)
  {
    if (!sim_lease_lasts(a->process, a->single.lock))
      continue;
    const sim_entry *e = sim_history_by_zxid(
        &checker->history, (int64_t)lk_lock_token(a->single.lock));

    if (e == NULL)
      sim_violated(checker, "%s holds a node that was never created", a->name);
    else if (e->deleted_zxid != 0 && sim_deletion_is_excused(checker, e))
      continue; /* its client cannot know of the deletion */
    if (holder != NULL)
      sim_violated(checker, "%s and %s both hold the lock", holder->name,
                   a->name);
    holder = a;
  }
}

/* At the end all holders have released, and no acquire is outstanding. */
static void check_single_end(sim_checker *checker)
{
  sim_entry *e = sim_history_find(&checker->history, SIM_SINGLE_PATH);

  if (e != NULL && !e->is_excused && sim_owner_of(checker, e) != NULL)
    sim_violated(checker, "the node exists without an owner");
  EACH_SINGLE_LOCKER(checker, a)
  {
    if (a->single.acquiring)
      sim_violated(checker, "%s still waits for the node", a->name);
  }
}

/* No delete removes the next holder's node, and only one holds. */
void sim_single_node_no_steal(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_NODE_DELETED)
    check_single_deletion(checker, f->entry);
  else if (f->type == SIM_QUIESCENT)
    check_single_end(checker);
  else
    check_single_holders(checker);
}
