/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "recipes/locks/lock.h"

/* Locks with several nodes: multi-locks, and semaphores with several
 * permits. */

/* ---- all or nothing ----------------------------------------------------- */

/* The number of nodes of a grant. */
static size_t nodes_needed(const sim_handle *h)
{
  return h->kind == SIM_SEMAPHORE ? (size_t)h->permits : h->nplaces;
}

static void check_grant_is_whole(sim_checker *checker, const sim_handle *h)
{
  if (h->held.count != nodes_needed(h))
    sim_violated(checker, "%s is granted with %zu nodes of %zu", h->name,
                 h->held.count, nodes_needed(h));
  for (size_t i = 0; i < h->held.count; i++) {
    const sim_entry *e = h->held.at[i];

    for (size_t k = 0; k < i && h->kind == SIM_MULTILOCK; k++) {
      if (h->held.at[k]->lock_index == e->lock_index)
        sim_violated(checker, "%s is granted with two nodes of %s", h->name,
                     checker->world->locks[e->lock_index]);
    }
  }
}

/* A node that the handle holds and that is deleted; NULL: there is none. */
static sim_entry *deleted_member(const sim_handle *h)
{
  if (!sim_holds(h))
    return NULL;
  for (size_t i = 0; i < h->held.count; i++) {
    if (h->held.at[i]->deleted_zxid != 0)
      return h->held.at[i];
  }
  return NULL;
}

/* One of the nodes of a multi-lock that has all its nodes and is not granted;
 * else NULL. */
static sim_entry *complete_but_ungranted(const sim_checker *checker,
                                         const sim_handle *h)
{
  const lk_acquisition *a = h->lock->acquisition;
  sim_entry *e = NULL;

  if (!h->acquiring || h->is_reentry || a == NULL ||
      a->count != nodes_needed(h))
    return NULL;
  for (size_t i = 0; i < a->count; i++) {
    if (a->parts[i]->state != LK_CONTENDER_HELD)
      return NULL;
    e = sim_entry_of(checker, a->parts[i]);
    if (e == NULL || e->deleted_zxid != 0)
      return NULL;
  }
  return h->kind == SIM_MULTILOCK ? e : NULL;
}

static void check_overdue_handle(sim_checker *checker, sim_handle *h)
{
  const sim_life *l = sim_life_of(checker, h->process);
  const sim_entry *e = deleted_member(h);

  if (sim_grace_is_over(checker, l, &h->held_node_gone, e))
    sim_violated(checker, "%s still holds without %s", h->name, e->name);
  e = complete_but_ungranted(checker, h);
  if (sim_grace_is_over(checker, l, &h->complete_but_ungranted, e))
    sim_violated(checker, "%s has all its members and is not granted", h->name);
}

/* A violation if a node exists for long whose acquire has ended and that its
 * contender does not delete. */
static void check_left_over_node(sim_checker *checker, sim_contender *a)
{
  const sim_handle *h = a->handle;
  const sim_entry *e = NULL;
  bool is_in_use = h != NULL && h->lock != NULL &&
                   h->acquire_number == a->acquire_number &&
                   (h->acquiring || sim_holds(h));

  if (h != NULL && !is_in_use && a->ct->state != LK_CONTENDER_CLEANING_UP)
    e = sim_entry_of(checker, a->ct);
  if (e != NULL && e->deleted_zxid != 0)
    e = NULL;
  if (sim_grace_is_over(checker, a->life, &a->left_over, e))
    sim_violated(checker, "%s remains of the acquire of %s", e->name, h->name);
}

/* A multi-lock holds all of its members or none. */
void sim_all_or_nothing(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_ACQUIRE_ENDED) {
    if (f->err == 0 && !f->handle->is_reentry)
      check_grant_is_whole(checker, f->handle);
    return;
  }
  for (sim_contender *a = checker->contenders; a != NULL; a = a->next)
    check_left_over_node(checker, a);
  SIM_EACH_HANDLE(checker, h)
  {
    if (h->lock != NULL)
      check_overdue_handle(checker, h);
  }
}

/* ---- circles of waiting acquires ---------------------------------------- */

/* Nodes of one acquire, or of one foreign client. */
static bool have_same_owner(const sim_entry *a, const sim_entry *b)
{
  if (a->handle == NULL || b->handle == NULL)
    return a->handle == b->handle && sim_same_contender(a, b);
  return a->handle == b->handle && a->acquire_number == b->acquire_number;
}

static bool waits_for(const sim_entry *own, const sim_entry *other)
{
  return sim_excludes(other, own) && !have_same_owner(other, own);
}

/* Whether the node waits for a node whose owner is blocked. */
static bool is_blocked(const sim_checker *checker, const sim_entry *own)
{
  if (own->foreign_holds)
    return false;
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->blocked && waits_for(own, e))
      return true;
  }
  return false;
}

/* Whether any node of the owner of `own` is blocked. Then all are: the owner
 * does not release one while it waits for another. */
static bool owner_is_blocked(const sim_checker *checker, const sim_entry *own)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (have_same_owner(e, own) && is_blocked(checker, e))
      return true;
  }
  return false;
}

/* Whether a node may block others for ever. A node that will be deleted does
 * not: its acquire or its session has ended, or it is excused. The node of a
 * foreign client has no handle. */
static bool may_block(sim_checker *checker, const sim_entry *e)
{
  if (!e->is_contender || e->is_excused || sim_owner_of(checker, e) == NULL)
    return false;
  return e->handle == NULL || (e->handle->acquiring &&
                               e->handle->acquire_number == e->acquire_number);
}

/* Starts with all nodes that may block, and clears the mark of those whose
 * owner does not wait for a marked node, until nothing changes. The remaining
 * ones wait in a circle, or for nodes in one. */
static bool find_circle(sim_checker *checker)
{
  bool any_blocked = false;
  bool changed = true;

  for (sim_entry *e = checker->history.existing; e != NULL; e = e->next)
    e->blocked = may_block(checker, e);
  while (changed) {
    changed = false;
    any_blocked = false;
    for (sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
      if (!e->blocked)
        continue;
      if (owner_is_blocked(checker, e)) {
        any_blocked = true;
      } else {
        e->blocked = false;
        changed = true;
      }
    }
  }
  return any_blocked;
}

/* A violation if there is a circle, and the grace period of all its contenders
 * is over. */
static void check_overdue_circle(sim_checker *checker)
{
  bool circle = find_circle(checker);
  bool all_overdue = circle;
  const sim_entry *any = NULL;

  for (sim_contender *a = checker->contenders; a != NULL; a = a->next) {
    const sim_entry *e = circle ? sim_entry_of(checker, a->ct) : NULL;

    if (e != NULL && (e->deleted_zxid != 0 || !e->blocked))
      e = NULL;
    if (e != NULL) {
      all_overdue =
          sim_grace_is_over(checker, a->life, &a->in_circle, e) && all_overdue;
      any = e;
    } else {
      a->in_circle.entry = NULL; /* a new grace period */
    }
  }
  for (const sim_entry *e = checker->history.existing; all_overdue && e != NULL;
       e = e->next) {
    if (e->blocked)
      SIM_TRACE(&checker->world->trace, "checker", "%s is in the circle",
                e->path);
  }
  if (all_overdue && any != NULL)
    sim_violated(checker, "%s and others wait for each other in a circle",
                 any->path);
}

/* ---- members kept while waiting ----------------------------------------- */

static size_t member_index(const sim_handle *h, const sim_entry *e)
{
  size_t i = 0;

  while (i < h->nplaces && (int)h->places[i].lock_index != e->lock_index)
    i++;
  return i;
}

static bool waits_for_any(const sim_checker *checker, const sim_entry *own)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (waits_for(own, e))
      return true;
  }
  return false;
}

/* Whether an earlier member of the same acquire still waits. */
static bool earlier_member_waits(const sim_checker *checker,
                                 const sim_entry *own)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    bool is_earlier =
        e->handle == own->handle && e->acquire_number == own->acquire_number &&
        member_index(own->handle, e) < member_index(own->handle, own);

    if (is_earlier && waits_for_any(checker, e))
      return true;
  }
  return false;
}

/* A violation if a multi-lock keeps the node of a member for long while it
 * waits for an earlier member. */
static void check_overdue_kept(sim_checker *checker, sim_contender *a)
{
  const sim_handle *h = a->handle;
  const sim_entry *e = NULL;

  if (h != NULL && h->kind == SIM_MULTILOCK && h->acquiring && !h->is_reentry &&
      a->acquire_number == h->acquire_number)
    e = sim_entry_of(checker, a->ct);
  if (e != NULL && (e->deleted_zxid != 0 || !earlier_member_waits(checker, e)))
    e = NULL;
  if (sim_grace_is_over(checker, a->life, &a->kept_early, e))
    sim_violated(checker, "%s keeps %s while it waits for an earlier one",
                 h->name, e->path);
}

/* Multi-locks do not wait for each other in a circle. */
void sim_multi_no_deadlock(sim_checker *checker, const sim_fact *f)
{
  (void)f;
  if (checker->world->lock_mix->kinds[SIM_MULTILOCK] == 0)
    return;
  check_overdue_circle(checker);
  for (sim_contender *a = checker->contenders; a != NULL; a = a->next)
    check_overdue_kept(checker, a);
}
