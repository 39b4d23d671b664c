/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

/* What locks that are more than a place in a queue have come through. */

static void see_grant(const sim_handle *h)
{
  const sim_nodes *n = &h->held;

  if (h->kind == SIM_RWLOCK && n->count > 0 && n->at[0]->beside != NULL)
    sim_coverage_milestone(SIM_MILESTONE_READS_TOO);
  if (h->kind == SIM_SEMAPHORE)
    sim_coverage_milestone(h->waited ? SIM_MILESTONE_PERMITS_LATER
                                     : SIM_MILESTONE_PERMITS_AT_ONCE);
  if (h->kind == SIM_MULTILOCK && n->count > 1)
    sim_coverage_milestone(n->at[0]->made == n->at[n->count - 1]->made
                               ? SIM_MILESTONE_ALL_AT_ONCE
                               : SIM_MILESTONE_ROUNDS);
}

static void see_event(sim_handle *h, const lk_lock_event *e)
{
  if (e->type == LK_LOCK_EVENT_WAITING)
    h->waited = true;
  if (e->type == LK_LOCK_EVENT_WAITING && e->node == NULL)
    sim_coverage_milestone(SIM_MILESTONE_FIRST_AND_WAITS);
  if (e->type == LK_LOCK_EVENT_LOST && h->held.count > 1)
    sim_coverage_milestone(SIM_MILESTONE_WHOLE_LOST);
  if (e->type == LK_LOCK_EVENT_PLACE_LOST && h->kind >= SIM_SEMAPHORE)
    sim_coverage_milestone(SIM_MILESTONE_BEGUN_ANEW);
  if (e->type == LK_LOCK_EVENT_REVOKED)
    sim_coverage_milestone(SIM_MILESTONE_REVOKED);
}

static void see_removal(const sim_entry *e)
{
  const sim_handle *h = e->of;

  if (e->how != SIM_BY_OWNER || h == NULL || !h->wants ||
      h->acquire != e->acquire)
    return;
  if (e->lease)
    sim_coverage_milestone(SIM_MILESTONE_PERMITS_BACK);
  else if (h->kind == SIM_MULTILOCK)
    sim_coverage_milestone(SIM_MILESTONE_LATER_BACK);
}

static void see_made(const sim_entry *e)
{
  if (e->foreign && e->beside != NULL)
    sim_coverage_milestone(SIM_MILESTONE_PEER_READS_TOO);
}

static void see_release(const sim_handle *h)
{
  if (h->kind == SIM_RWLOCK && !h->places[0].shares && h->count == 0 &&
      sim_holds(h->other))
    sim_coverage_milestone(SIM_MILESTONE_TURNED);
}

void sim_milestones_see(const sim_fact *f)
{
  if (f->type == SIM_GOT && f->err == 0 && !f->handle->again)
    see_grant(f->handle);
  else if (f->type == SIM_WANTED && f->err == 0 && !f->handle->again)
    f->handle->waited = false;
  else if (f->type == SIM_WANTED && f->err == LK_ERR_DEADLOCK)
    sim_coverage_milestone(SIM_MILESTONE_REFUSED);
  else if (f->type == SIM_TOLD)
    see_event(f->handle, f->told);
  else if (f->type == SIM_LET_GO && f->err == 0)
    see_release(f->handle);
  else if (f->type == SIM_REMOVED)
    see_removal(f->entry);
  else if (f->type == SIM_MADE)
    see_made(f->entry);
}
