/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

/* Counts milestones, mostly of locks with several nodes. */

static void note_grant(const sim_handle *h)
{
  const sim_nodes *n = &h->held;

  if (h->kind == SIM_RWLOCK && n->count > 0 &&
      n->at[0]->downgraded_from != NULL)
    sim_coverage_milestone(SIM_MILESTONE_WRITER_READS);
  if (h->kind == SIM_SEMAPHORE)
    sim_coverage_milestone(h->was_waiting ? SIM_MILESTONE_PERMITS_LATER
                                          : SIM_MILESTONE_PERMITS_AT_ONCE);
  if (h->kind == SIM_MULTILOCK && n->count > 1) {
    bool in_one_transaction =
        n->at[0]->created_zxid == n->at[n->count - 1]->created_zxid;

    sim_coverage_milestone(in_one_transaction ? SIM_MILESTONE_MEMBERS_AT_ONCE
                                              : SIM_MILESTONE_MEMBERS_IN_TURN);
  }
}

static void note_event(sim_handle *h, const lk_lock_event *e)
{
  bool waits_for_permits = e->type == LK_LOCK_EVENT_WAITING && e->node == NULL;
  bool has_several_nodes = h->kind == SIM_SEMAPHORE || h->kind == SIM_MULTILOCK;

  if (e->type == LK_LOCK_EVENT_WAITING)
    h->was_waiting = true;
  if (waits_for_permits)
    sim_coverage_milestone(SIM_MILESTONE_FIRST_WAITS_FOR_PERMITS);
  if (e->type == LK_LOCK_EVENT_LOST && h->held.count > 1)
    sim_coverage_milestone(SIM_MILESTONE_LOST_WITH_ONE_NODE);
  if (e->type == LK_LOCK_EVENT_PLACE_LOST && has_several_nodes)
    sim_coverage_milestone(SIM_MILESTONE_STARTED_AGAIN);
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
    sim_coverage_milestone(SIM_MILESTONE_PERMITS_GIVEN_BACK);
  else if (h->kind == SIM_MULTILOCK)
    sim_coverage_milestone(SIM_MILESTONE_MEMBERS_GIVEN_BACK);
}

static void note_creation(const sim_entry *e)
{
  if (e->is_foreign && e->downgraded_from != NULL)
    sim_coverage_milestone(SIM_MILESTONE_FOREIGN_DOWNGRADED);
}

static void note_release(const sim_handle *h)
{
  if (h->kind == SIM_RWLOCK && !h->places[0].shares && h->count == 0 &&
      sim_holds(h->other))
    sim_coverage_milestone(SIM_MILESTONE_DOWNGRADED);
}

void sim_milestones_note(const sim_fact *f)
{
  if (f->type == SIM_ACQUIRE_ENDED && f->err == 0 && !f->handle->is_reentry)
    note_grant(f->handle);
  else if (f->type == SIM_ACQUIRE_CALLED && f->err == 0 &&
           !f->handle->is_reentry)
    f->handle->was_waiting = false;
  else if (f->type == SIM_ACQUIRE_CALLED && f->err == LK_ERR_DEADLOCK)
    sim_coverage_milestone(SIM_MILESTONE_REFUSED_AS_DEADLOCK);
  else if (f->type == SIM_LOCK_EVENT)
    note_event(f->handle, f->lock_event);
  else if (f->type == SIM_RELEASE_CALLED && f->err == 0)
    note_release(f->handle);
  else if (f->type == SIM_NODE_DELETED)
    note_deletion(f->entry);
  else if (f->type == SIM_NODE_CREATED)
    note_creation(f->entry);
}
