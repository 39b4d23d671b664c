/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/conditions.h"

#include "sim/world/actor.h"
#include "sim/world/faults.h"

#include <string.h>

/* Semaphores: permits and their queue. */

static bool is_semaphore(const sim_fact *f)
{
  return f->handle->kind == SIM_SEMAPHORE;
}

/* ---- limit -------------------------------------------------------------- */

/* The data are a number of four bytes, the most significant first. */
static int32_t permits_in(const sim_version *v)
{
  const unsigned char *b = (const unsigned char *)v->data;

  return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
                   (uint32_t)b[2] << 8 | b[3]);
}

int32_t sim_limit_since(const sim_checker *checker, int64_t us)
{
  const sim_entry *e = checker->world->has_limit_node
                           ? sim_history_find(&checker->history, SIM_LIMIT)
                           : NULL;
  int32_t most = 0;

  if (e == NULL)
    return checker->world->permits;
  for (const sim_version *v = e->newest; v != NULL; v = v->older) {
    if (permits_in(v) > most)
      most = permits_in(v);
    if (v->at_us <= us)
      return most;
  }
  /* before the node existed, the initial number counted */
  return most > checker->world->permits ? most : checker->world->permits;
}

/* Never more permits are held than there are. Waiters may take a while to learn
 * of a new number, so the largest recent one counts. */
void sim_sem_limit(sim_checker *checker, const sim_fact *f)
{
  size_t held = 0;
  int32_t limit =
      sim_limit_since(checker, sim_now_us(checker) - sim_grace_us(checker));

  if (!is_semaphore(f) || f->err != 0)
    return;
  SIM_EACH_HANDLE(checker, h)
  {
    if (h->kind == SIM_SEMAPHORE && sim_certainly_holds(checker, h))
      held += h->held.count;
  }
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->is_permit && e->foreign_holds)
      held++;
  }
  if ((int64_t)held > limit)
    sim_violated(checker, "%s is granted, and %zu of %d permits are held",
                 f->handle->name, held, limit);
}

/* ---- queue -------------------------------------------------------------- */

/* The queue node of the handle's acquire; NULL: it was never queued. */
static const sim_entry *queue_node_of(const sim_checker *checker,
                                      const sim_handle *h)
{
  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (e->handle == h && e->acquire_number == h->acquire_number &&
        e->is_contender)
      return e;
  }
  return NULL;
}

static const sim_entry *any_predecessor(const sim_checker *checker,
                                        const sim_entry *own)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (sim_excludes(e, own))
      return e;
  }
  return NULL;
}

static void check_semaphore_grant(sim_checker *checker, const sim_handle *h)
{
  const sim_entry *queue_node = queue_node_of(checker, h);
  const sim_entry *predecessor =
      queue_node == NULL || queue_node->deleted_zxid != 0
          ? NULL
          : any_predecessor(checker, queue_node);

  if (queue_node == NULL)
    sim_violated(checker, "%s has permits and was never queued", h->name);
  else if (predecessor != NULL)
    sim_violated(checker, "%s has permits, and %s is its predecessor", h->name,
                 predecessor->name);
}

/* A contender that is not first must not keep a permit. */
static void check_overdue_permit(sim_checker *checker, sim_contender *a)
{
  const sim_handle *h = a->handle;
  const sim_entry *e = NULL;

  if (h != NULL && h->acquiring && !h->is_reentry && a->ct->role->is_permit &&
      a->acquire_number == h->acquire_number &&
      a->ct->state != LK_CONTENDER_CLEANING_UP) {
    const sim_entry *queue_node = queue_node_of(checker, h);

    if (queue_node != NULL && queue_node->deleted_zxid == 0 &&
        any_predecessor(checker, queue_node) != NULL)
      e = sim_entry_of(checker, a->ct);
  }
  if (e != NULL && e->deleted_zxid != 0)
    e = NULL;
  if (sim_grace_is_over(checker, a->life, &a->kept_early, e))
    sim_violated(checker, "%s keeps %s and is not first", h->name, e->name);
}

/* Whether there is an excused node. It may stay until its session ends, and
 * blocks others. */
static bool any_node_is_excused(const sim_checker *checker)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->is_excused)
      return true;
  }
  return false;
}

static bool waits_as_foreign(const sim_actor *a)
{
  return (a->kind == &sim_foreign_locker || a->kind == &sim_foreign_waiter) &&
         !a->idle;
}

static bool has_foreign_waiter(const sim_process *p)
{
  const sim_actor *a = p->actors;

  while (a != NULL && !waits_as_foreign(a))
    a = a->next;
  return a != NULL;
}

/* When the run is quiescent, foreign lockers have had time enough to be
 * granted. A holder without memory may not release, so runs with that fault are
 * excluded. A long list remains if a deposed leader lost its deletion, and not
 * its creation: the foreign semaphore counts all children as permits. */
static void check_foreign_waiters(sim_checker *checker)
{
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_process *p = &checker->world->processes[i];

    if (sim_process_has_client(p) && has_foreign_waiter(p) &&
        !any_node_is_excused(checker) &&
        !sim_long_list_remains(checker->world) &&
        !sim_fault_is_possible(checker->world, SIM_FAULT_STARVE))
      sim_violated(checker, "a foreign locker in %s still waits", p->name);
  }
}

/* A contender that is not first has permits for a short time at most. */
void sim_sem_speculation(sim_checker *checker, const sim_fact *f)
{
  if (checker->world->lock_mix->kinds[SIM_SEMAPHORE] == 0)
    return;
  if (f->type == SIM_QUIESCENT) {
    check_foreign_waiters(checker);
  } else if (f->type == SIM_PERIODIC) {
    for (sim_contender *a = checker->contenders; a != NULL; a = a->next)
      check_overdue_permit(checker, a);
  } else if (is_semaphore(f) && f->err == 0) {
    check_semaphore_grant(checker, f->handle);
  }
}
