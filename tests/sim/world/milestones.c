/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

/* Counts milestones, mostly of locks with several nodes. */

static void note_grant(const sim_handle *h)
{
  const sim_nodes *n = &h->held;

  if (h->kind == SIM_RWLOCK && n->count > 0 &&
      n->at[0]->downgraded_from != NULL)
    sim_coverage_milestone(SIM_MILESTONE_READS_TOO);
  if (h->kind == SIM_SEMAPHORE)
    sim_coverage_milestone(h->was_waiting ? SIM_MILESTONE_PERMITS_LATER
                                          : SIM_MILESTONE_PERMITS_AT_ONCE);
  if (h->kind == SIM_MULTILOCK && n->count > 1)
    sim_coverage_milestone(n->at[0]->created_zxid ==
                                   n->at[n->count - 1]->created_zxid
                               ? SIM_MILESTONE_ALL_AT_ONCE
                               : SIM_MILESTONE_ROUNDS);
}

static void note_event(sim_handle *h, const lk_lock_event *e)
{
  if (e->type == LK_LOCK_EVENT_WAITING)
    h->was_waiting = true;
  if (e->type == LK_LOCK_EVENT_WAITING && e->node == NULL)
    sim_coverage_milestone(SIM_MILESTONE_FIRST_AND_WAITS);
  if (e->type == LK_LOCK_EVENT_LOST && h->held.count > 1)
    sim_coverage_milestone(SIM_MILESTONE_WHOLE_LOST);
  if (e->type == LK_LOCK_EVENT_PLACE_LOST && h->kind >= SIM_SEMAPHORE)
    sim_coverage_milestone(SIM_MILESTONE_BEGUN_ANEW);
  if (e->type == LK_LOCK_EVENT_REVOKED)
    sim_coverage_milestone(SIM_MILESTONE_REVOKED);
}

static void note_deletion(const sim_entry *e)
{
  const sim_handle *h = e->handle;

  if (e->deletion_cause != SIM_DELETED_BY_OWNER || h == NULL || !h->acquiring ||
      h->acquire_number != e->acquire_number)
    return;
  if (e->is_permit)
    sim_coverage_milestone(SIM_MILESTONE_PERMITS_BACK);
  else if (h->kind == SIM_MULTILOCK)
    sim_coverage_milestone(SIM_MILESTONE_LATER_BACK);
}

static void note_creation(const sim_entry *e)
{
  if (e->is_foreign && e->downgraded_from != NULL)
    sim_coverage_milestone(SIM_MILESTONE_PEER_READS_TOO);
}

static void note_release(const sim_handle *h)
{
  if (h->kind == SIM_RWLOCK && !h->places[0].shares && h->count == 0 &&
      sim_holds(h->other))
    sim_coverage_milestone(SIM_MILESTONE_TURNED);
}

void sim_milestones_note(const sim_fact *f)
{
  if (f->type == SIM_ACQUIRE_ENDED && f->err == 0 && !f->handle->is_reentry)
    note_grant(f->handle);
  else if (f->type == SIM_ACQUIRE_CALLED && f->err == 0 &&
           !f->handle->is_reentry)
    f->handle->was_waiting = false;
  else if (f->type == SIM_ACQUIRE_CALLED && f->err == LK_ERR_DEADLOCK)
    sim_coverage_milestone(SIM_MILESTONE_REFUSED);
  else if (f->type == SIM_LOCK_EVENT)
    note_event(f->handle, f->lock_event);
  else if (f->type == SIM_RELEASE_CALLED && f->err == 0)
    note_release(f->handle);
  else if (f->type == SIM_NODE_DELETED)
    note_deletion(f->entry);
  else if (f->type == SIM_NODE_CREATED)
    note_creation(f->entry);
}
