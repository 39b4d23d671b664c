/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "recipes/lock/lock.h"

/* Locks that are made of several nodes. */

/* ---- all or nothing ----------------------------------------------------- */

/* How many nodes it takes to hold. */
static size_t parts_of(const sim_handle *h)
{
  return h->kind == SIM_SEMAPHORE ? (size_t)h->take : h->nseats;
}

static void judge_grant(sim_checker *j, const sim_handle *h)
{
  if (h->held.count != parts_of(h))
    sim_violated(j, "%s is granted with %zu nodes of %zu", h->name,
                 h->held.count, parts_of(h));
  for (size_t i = 0; i < h->held.count; i++) {
    const sim_entry *e = h->held.at[i];

    for (size_t k = 0; k < i && h->kind == SIM_MULTILOCK; k++) {
      if (h->held.at[k]->lock_at == e->lock_at)
        sim_violated(j, "%s is granted with two nodes of %s", h->name,
                     j->world->locks[e->lock_at]);
    }
  }
}

static sim_entry *gone_part(const sim_handle *h)
{
  for (size_t i = 0; sim_holds(h) && i < h->held.count; i++) {
    if (h->held.at[i]->removed != 0)
      return h->held.at[i];
  }
  return NULL;
}

/* It has all nodes and lacks the grant only. */
static sim_entry *last_part(const sim_checker *j, const sim_handle *h)
{
  const lk_acquisition *a = h->lock->acquisition;
  sim_entry *e = NULL;

  if (!h->wants || h->again || a == NULL || a->count != parts_of(h))
    return NULL;
  for (size_t i = 0; i < a->count; i++) {
    if (a->parts[i]->state != LK_CONTENDER_HELD)
      return NULL;
    e = sim_entry_of(j, a->parts[i]);
    if (e == NULL || e->removed != 0)
      return NULL;
  }
  return h->kind == SIM_MULTILOCK ? e : NULL;
}

static void patrol_handle(sim_checker *j, sim_handle *h)
{
  const sim_life *l = sim_life_of(j, h->process);
  const sim_entry *e = gone_part(h);

  if (sim_overdue(j, l, &h->torn, e))
    sim_violated(j, "%s goes on without %s", h->name, e->name);
  e = last_part(j, h);
  if (sim_overdue(j, l, &h->whole, e))
    sim_violated(j, "%s has all its members and is not granted", h->name);
}

/* The acquire that made it has ended, and it is not being deleted. */
static void patrol_rest(sim_checker *j, sim_contender *a)
{
  const sim_handle *h = a->handle;
  const sim_entry *e = NULL;

  if (h != NULL && a->ct->state != LK_CONTENDER_CLEANING_UP &&
      !(h->lock != NULL && h->acquire == a->acquire &&
        (h->wants || sim_holds(h))))
    e = sim_entry_of(j, a->ct);
  if (e != NULL && e->removed != 0)
    e = NULL;
  if (sim_overdue(j, a->life, &a->rest, e))
    sim_violated(j, "%s remains of the acquire of %s", e->name, h->name);
}

/* Several nodes are held together, or none of them is. */
void sim_all_or_nothing(sim_checker *j, const sim_fact *f)
{
  if (f->type == SIM_GOT) {
    if (f->err == 0 && !f->handle->again)
      judge_grant(j, f->handle);
    return;
  }
  for (sim_contender *a = j->attempts; a != NULL; a = a->next)
    patrol_rest(j, a);
  SIM_EACH_HANDLE(j, h)
  {
    if (h->lock != NULL)
      patrol_handle(j, h);
  }
}

/* ---- which acquire waits for which -------------------------------------- */

/* Nodes of one acquire, or of one foreign client. */
static bool same_owner(const sim_entry *a, const sim_entry *b)
{
  if (a->of == NULL || b->of == NULL)
    return a->of == b->of && sim_same_contender(a, b);
  return a->of == b->of && a->acquire == b->acquire;
}

static bool waits_for(const sim_entry *own, const sim_entry *other)
{
  return sim_ahead(other, own) && !same_owner(other, own);
}

/* Whether it waits for an acquire that waits, as far as is known. */
static bool is_blocked(const sim_checker *j, const sim_entry *own)
{
  for (const sim_entry *e = j->history.standing; e != NULL && !own->entered;
       e = e->next) {
    if (e->blocked && waits_for(own, e))
      return true;
  }
  return false;
}

/* One of its owner's nodes waits: then so do all. */
static bool owner_is_blocked(const sim_checker *j, const sim_entry *own)
{
  for (const sim_entry *e = j->history.standing; e != NULL; e = e->next) {
    if (same_owner(e, own) && is_blocked(j, e))
      return true;
  }
  return false;
}

/* Who wants nothing any more goes, and so do nodes of the dead and what its
 * owner may not delete: they wait for nobody. */
static bool may_block(sim_checker *j, const sim_entry *e)
{
  if (!e->contends || e->left || sim_owner_of(j, e) == NULL)
    return false;
  return e->of == NULL || (e->of->wants && e->of->acquire == e->acquire);
}

/* Take away who waits for nobody that waits, until there is none: what is left
 * waits in a circle, or for one. */
static bool find_circle(sim_checker *j)
{
  bool some = false, changed = true;

  for (sim_entry *e = j->history.standing; e != NULL; e = e->next)
    e->blocked = may_block(j, e);
  while (changed) {
    changed = false;
    some = false;
    for (sim_entry *e = j->history.standing; e != NULL; e = e->next) {
      if (!e->blocked)
        continue;
      if (owner_is_blocked(j, e)) {
        some = true;
      } else {
        e->blocked = false;
        changed = true;
      }
    }
  }
  return some;
}

/* All of ours that it has caught have had time to give way. */
static void patrol_circle(sim_checker *j)
{
  bool circle = find_circle(j), all = circle;
  const sim_entry *one = NULL;

  for (sim_contender *a = j->attempts; a != NULL; a = a->next) {
    const sim_entry *e = circle ? sim_entry_of(j, a->ct) : NULL;

    if (e != NULL && (e->removed != 0 || !e->blocked))
      e = NULL;
    if (e != NULL) {
      all = sim_overdue(j, a->life, &a->circle, e) && all;
      one = e;
    } else {
      (void)sim_overdue(j, a->life, &a->circle, NULL);
    }
  }
  for (const sim_entry *e = j->history.standing; all && e != NULL;
       e = e->next) {
    if (e->blocked)
      SIM_TRACE(&j->world->trace, "checker", "%s is among them", e->path);
  }
  if (all && one != NULL)
    sim_violated(j, "%s and others wait for each other", one->path);
}

/* ---- which nodes may be kept while one waits ---------------------------- */

static size_t rank_of(const sim_handle *h, const sim_entry *e)
{
  size_t i = 0;

  while (i < h->nseats && (int)h->places[i].lock_at != e->lock_at)
    i++;
  return i;
}

static const sim_entry *earlier_wait(const sim_checker *j, const sim_entry *own)
{
  for (const sim_entry *e = j->history.standing; e != NULL; e = e->next) {
    if (e->of != own->of || e->acquire != own->acquire ||
        rank_of(own->of, e) >= rank_of(own->of, own))
      continue;
    for (const sim_entry *o = j->history.standing; o != NULL; o = o->next) {
      if (waits_for(e, o))
        return e;
    }
  }
  return NULL;
}

/* While it waits for a member, it keeps no member that comes after it. */
static void patrol_kept(sim_checker *j, sim_contender *a)
{
  const sim_handle *h = a->handle;
  const sim_entry *e = NULL;

  if (h != NULL && h->kind == SIM_MULTILOCK && h->wants && !h->again &&
      a->acquire == h->acquire)
    e = sim_entry_of(j, a->ct);
  if (e != NULL && (e->removed != 0 || earlier_wait(j, e) == NULL))
    e = NULL;
  if (sim_overdue(j, a->life, &a->early, e))
    sim_violated(j, "%s keeps %s while it waits for an earlier one", h->name,
                 e->path);
}

/* No two acquires wait for each other. */
void sim_multi_no_deadlock(sim_checker *j, const sim_fact *f)
{
  (void)f;
  if (j->world->lock_mix->kinds[SIM_MULTILOCK] == 0)
    return;
  patrol_circle(j);
  for (sim_contender *a = j->attempts; a != NULL; a = a->next)
    patrol_kept(j, a);
}
