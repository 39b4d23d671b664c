/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "recipes/locks/lock.h"

/* Local queues: owners of one process that share a node. */

enum { HANDOFFS_MAX = 16 };

/* Whether both handles are owners behind one node. */
static bool share_node(const sim_handle *a, const sim_handle *b)
{
  return a != b && a->local && b->local && a->lease == b->lease &&
         a->places[0].lock_index == b->places[0].lock_index;
}

static bool is_waiting(const sim_handle *h)
{
  return h->lock != NULL && h->acquiring && !h->is_reentry;
}

static void check_order(sim_checker *checker, const sim_handle *h)
{
  const sim_life *l = sim_life_of(checker, h->process);

  for (const sim_handle *o = l->handles; o != NULL; o = o->next) {
    bool only_tries = o->timeout_ms == 0; /* it does not queue */

    if (share_node(o, h) && is_waiting(o) && !only_tries &&
        o->acquire_called_us < h->acquire_called_us)
      sim_violated(checker,
                   "%s is granted before %s, which called acquire before it",
                   h->name, o->name);
  }
}

/* There are at most sixteen local handoffs in a row, and no other owner behind
 * the node holds. */
static void check_handoffs(sim_checker *checker, const sim_handle *h)
{
  const sim_life *l = sim_life_of(checker, h->process);

  if (lk_lock_handoffs(h->lock) > HANDOFFS_MAX)
    sim_violated(checker, "%s is handoff %" PRIu64 " of one node", h->name,
                 lk_lock_handoffs(h->lock));
  for (const sim_handle *o = l->handles; o != NULL; o = o->next) {
    if (share_node(o, h) && sim_holds(o))
      sim_violated(checker, "%s is granted, and %s holds", h->name, o->name);
  }
}

/* The node behind which the handle waits, if the node is held and no owner in
 * the process holds or has to release a lost lock; else NULL. */
static const sim_entry *idle_node(const sim_checker *checker, const sim_life *l,
                                  const sim_handle *h)
{
  if (!h->local || !is_waiting(h))
    return NULL;
  for (const sim_handle *o = l->handles; o != NULL; o = o->next) {
    if (share_node(o, h) && (sim_holds(o) || o->lost))
      return NULL;
  }
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->local_queue_life != l ||
        e->lock_index != (int)h->places[0].lock_index)
      continue;
    const sim_contender *a = sim_contender_for(checker, e);

    if (a != NULL && a->ct->lease == h->lease && lk__contender_holds(a->ct))
      return e;
  }
  return NULL;
}

/* Owners of a local queue are granted in the order of their acquires, and the
 * node is released after sixteen handoffs. */
void sim_local_queue(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_ACQUIRE_ENDED) {
    if (f->err == 0 && !f->handle->is_reentry && f->handle->local) {
      check_order(checker, f->handle);
      check_handoffs(checker, f->handle);
    }
    return;
  }
  SIM_EACH_HANDLE(checker, h)
  {
    const sim_life *l = sim_life_of(checker, h->process);

    if (sim_grace_is_over(checker, l, &h->idle_node, idle_node(checker, l, h)))
      sim_violated(checker, "%s waits behind a node without an owner", h->name);
  }
}
