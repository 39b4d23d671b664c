/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "recipes/lock/lock.h"

/* Owners of one process behind one node. */

enum { MOST_TURNS = 16 };

/* They queue behind the same node. */
static bool are_mates(const sim_handle *a, const sim_handle *b)
{
  return a != b && a->local && b->local && a->lease == b->lease &&
         a->places[0].lock_at == b->places[0].lock_at;
}

static bool waits(const sim_handle *h)
{
  return h->lock != NULL && h->wants && !h->again;
}

static void judge_order(sim_checker *j, const sim_handle *h)
{
  const sim_life *l = sim_life_of(j, h->process);

  for (const sim_handle *o = l->handles; o != NULL; o = o->next) {
    if (are_mates(o, h) && waits(o) && o->timeout_ms != 0 &&
        o->asked_us < h->asked_us)
      sim_violated(j, "%s is granted before %s, which asked before it", h->name,
                   o->name);
  }
}

/* The same node, which has no local owner any more. */
static void judge_turn(sim_checker *j, const sim_handle *h)
{
  const sim_life *l = sim_life_of(j, h->process);

  if (lk_lock_handoffs(h->lock) > MOST_TURNS)
    sim_violated(j, "%s is the %" PRIu64 ". in a row", h->name,
                 lk_lock_handoffs(h->lock));
  for (const sim_handle *o = l->handles; o != NULL; o = o->next) {
    if (are_mates(o, h) && sim_holds(o))
      sim_violated(j, "%s is granted, and %s holds", h->name, o->name);
  }
}

/* The node behind which it waits is held, and by none of its mates. */
static const sim_entry *idle_node(const sim_checker *j, const sim_life *l,
                                  const sim_handle *h)
{
  if (!h->local || !waits(h))
    return NULL;
  for (const sim_handle *o = l->handles; o != NULL; o = o->next) {
    if (are_mates(o, h) && (sim_holds(o) || o->lost))
      return NULL;
  }
  for (const sim_entry *e = j->history.standing; e != NULL; e = e->next) {
    const sim_contender *a = NULL;

    if (e->behind != l || e->lock_at != (int)h->places[0].lock_at)
      continue;
    a = sim_contender_for(j, e);
    if (a != NULL && a->ct->lease == h->lease && lk__contender_holds(a->ct))
      return e;
  }
  return NULL;
}

/* Owners behind one node have it in turn, and others after sixteen. */
void sim_local_queue(sim_checker *j, const sim_fact *f)
{
  if (f->type == SIM_GOT) {
    if (f->err == 0 && !f->handle->again && f->handle->local) {
      judge_order(j, f->handle);
      judge_turn(j, f->handle);
    }
    return;
  }
  SIM_EACH_HANDLE(j, h)
  {
    const sim_life *l = sim_life_of(j, h->process);

    if (sim_overdue(j, l, &h->idle, idle_node(j, l, h)))
      sim_violated(j, "%s waits behind a node without an owner", h->name);
  }
}
