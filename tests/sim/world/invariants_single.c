/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/actor.h"

#include <string.h>

/* The lock of a single node. */

/* The single locker after `a`, or the first, of all that live; NULL: none. */
static sim_actor *next_sitter(const sim_checker *j, const sim_actor *a)
{
  size_t at = a == NULL ? 0 : a->process->index;
  sim_actor *next = a == NULL ? NULL : a->next;

  if (a == NULL && sim_process_lives(&j->world->processes[0]))
    next = j->world->processes[0].actors;
  for (;;) {
    for (; next != NULL; next = next->next) {
      if (next->kind == &sim_single_locker && next->sitting.lock != NULL)
        return next;
    }
    if (++at >= j->world->nprocesses)
      return NULL;
    if (sim_process_lives(&j->world->processes[at]))
      next = j->world->processes[at].actors;
  }
}

#define EACH_SITTER(j, a)                                \
  for (sim_actor *a = next_sitter(j, NULL); (a) != NULL; \
       (a) = next_sitter(j, a))

/* Only its releasing owner or the end of the session may delete the node. */
static void judge_removal(sim_checker *j, const sim_entry *e)
{
  if (strcmp(e->path, SIM_SINGLE) != 0)
    return;
  if (e->how == SIM_BY_OTHERS)
    sim_violated(j, "the node of one session is deleted by another");
  EACH_SITTER(j, a)
  {
    if (lk_lock_token(a->sitting.lock) == (uint64_t)e->made &&
        lk_lock_ok(a->sitting.lock) && !sim_beyond_promise(j, e))
      sim_violated(j, "%s sits, and its node is taken away", a->name);
  }
}

static void judge_pairs(sim_checker *j)
{
  const sim_actor *holder = NULL;

  EACH_SITTER(j, a)
  {
    const sim_entry *e;

    if (!lk_lock_ok(a->sitting.lock))
      continue;
    e = sim_history_by_zxid(&j->history,
                            (int64_t)lk_lock_token(a->sitting.lock));
    if (e == NULL)
      sim_violated(j, "%s sits on a node that was never made", a->name);
    else if (e->removed != 0 && sim_beyond_promise(j, e))
      continue;
    if (holder != NULL)
      sim_violated(j, "%s and %s sit on one node", holder->name, a->name);
    holder = a;
  }
}

/* All holders have released, and no acquire is left. */
static void judge_end(sim_checker *j)
{
  sim_entry *e = sim_history_find(&j->history, SIM_SINGLE);

  if (e != NULL && sim_owner_of(j, e) != NULL)
    sim_violated(j, "the node exists without an owner");
  EACH_SITTER(j, a)
  {
    if (a->sitting.wants)
      sim_violated(j, "%s still waits for the node", a->name);
  }
}

/* A delete never removes the next holder's node; one sits at a time. */
void sim_single_node_no_steal(sim_checker *j, const sim_fact *f)
{
  if (f->type == SIM_REMOVED)
    judge_removal(j, f->entry);
  else if (f->type == SIM_CALM)
    judge_end(j);
  else
    judge_pairs(j);
}
