/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/conditions.h"

/* What holders and waiters are notified of, and when. */

enum { SLACK_MS = 3, MARGIN = 8 };

/* ---- the lease ---------------------------------------------------------- */

/* No session runs out before the lease of its locks. */
void sim_lease_deadline(sim_checker *j, const sim_fact *f)
{
  if (f->entry->deletion_cause != SIM_DELETED_BY_EXPIRY ||
      sim_deletion_is_excused(j, f->entry))
    return;
  SIM_EACH_HANDLE(j, h)
  {
    if (sim_nodes_contain(&h->held, f->entry) && sim_holds(h) &&
        (lk_lock_ok(h->lock) ||
         lk_lock_deadline(h->lock) > sim_process_clock(h->process)))
      sim_violated(j, "%s expires %" PRId64 " ms before its lease", h->name,
                   lk_lock_deadline(h->lock) - sim_process_clock(h->process));
  }
}

/* The lease runs out, and the holder was not notified in time to stop. */
static void check_holder(sim_checker *j, const sim_handle *h)
{
  int64_t margin = h->lease->margin_ms;
  int64_t limit;

  if (margin == 0)
    margin = lk__lease_timeout_ms(h->lease) / MARGIN;
  limit = lk_lock_deadline(h->lock) - margin + SLACK_MS;

  if (lk_lock_get_state(h->lock) == LK_LOCK_HELD &&
      sim_process_clock(h->process) > limit)
    sim_violated(j, "%s was not notified that its lease runs out", h->name);
}

/* When it last went on after a pause, or with another session timeout. */
static int64_t woke_us(sim_checker *j, const sim_process *p)
{
  const sim_life *l = sim_life_of(j, p);

  return sim_fault_is_possible(j->world, SIM_FAULT_BOUNDS) &&
                 l->undisturbed_since_us > l->resumed_us
             ? l->undisturbed_since_us
             : l->resumed_us;
}

/* No lock is granted or held after its lease deadline. */
void sim_lease_pause(sim_checker *j, const sim_fact *f)
{
  if ((f->type == SIM_ACQUIRE_ENDED && f->err == 0) ||
      (f->type == SIM_LOCK_EVENT &&
       f->lock_event->type == LK_LOCK_EVENT_RENEWED)) {
    if (!f->handle->is_reentry && !lk_lock_ok(f->handle->lock) &&
        lk_lock_deadline(f->handle->lock) <=
            sim_process_clock_before(f->handle->process))
      sim_violated(j, "%s is notified that it holds without a lease",
                   f->handle->name);
    return;
  }
  if (f->type != SIM_JOB_DONE)
    return;
  SIM_EACH_HANDLE(j, h)
  {
    if (sim_holds(h) && sim_process_runs(h->process) &&
        sim_now_us(j) > woke_us(j, h->process) + SLACK_MS * SIM_MS)
      check_holder(j, h);
  }
}

/* A gap above half of the timeout leaves less. */
static int64_t quarter_of(const lk_session_lease *k)
{
  int64_t timeout = lk__lease_timeout_ms(k);
  int64_t spare = (timeout - lk__lease_gap_ms(k)) / 2;

  return spare < timeout / 4 ? spare : timeout / 4;
}

/* Of the assurance that its session lease has. */
void sim_grant_lease(sim_checker *j, const sim_fact *f)
{
  const sim_process *p = f->handle->process;
  const lk_session_lease *k = f->handle->lease;
  const lk_lock *l = f->handle->lock;

  if (f->err != 0 || f->handle->is_reentry || l == NULL)
    return;
  int64_t left = lk_lock_deadline(l) - lk_client_input_ms(p->client);

  if (lk_lock_deadline(l) != lk__lease_deadline(k) || left < quarter_of(k))
    sim_violated(j, "%s is granted with %" PRId64 " ms left", f->handle->name,
                 left);
}

/* Its grant left less than a quarter of the timeout until it is unsure, and
 * trouble came before its first beat. */
static bool is_short(const sim_handle *h)
{
  int32_t timeout = lk__lease_timeout_ms(h->lease);

  return h->granted_lease_ms < timeout / 4 + timeout / MARGIN &&
         sim_process_clock(h->process) < h->granted_ms + timeout / 4;
}

/* With quorum assurance a grant has a quarter of the session timeout left; a
 * percent is for clocks. An owner behind a node that is held already has what
 * is left of that. */
void sim_grant_deadline(sim_checker *j, const sim_fact *f)
{
  const sim_handle *h = f->handle;
  const sim_process *p = h->process;

  if (f->err != 0 || h->is_reentry || h->local ||
      h->lease->config.assurance != LK_ASSURE_QUORUM ||
      sim_fault_is_possible(j->world, SIM_FAULT_BOUNDS) || p->closing)
    return;
  int64_t t = lk_client_timeout_ms(p->client);
  int64_t left = lk_lock_deadline(h->lock) - sim_process_clock_before(p);

  if (left < t / 4 - t / 100 - SLACK_MS)
    sim_violated(j, "%s is granted with %" PRId64 " ms left", h->name, left);
}

/* No holder becomes unsure in less than T/4 of trouble. */
void sim_no_needless_unsure(sim_checker *j, const sim_fact *f)
{
  if (f->lock_event->type == LK_LOCK_EVENT_UNSURE && j->world->scenario->calm &&
      !is_short(f->handle))
    sim_violated(j, "%s is unsure without any trouble", f->handle->name);
}

/* ---- counting ----------------------------------------------------------- */

static void check_removal(sim_checker *j, const sim_entry *e)
{
  if (e->deletion_cause != SIM_DELETED_BY_OWNER)
    return;
  SIM_EACH_HANDLE(j, h)
  {
    if (sim_nodes_contain(&h->held, e) && sim_holds(h))
      sim_violated(j, "%s is deleted, and %s counts %zu", e->name, h->name,
                   h->count);
  }
}

/* Of one side beside the other: see RW-UPGRADE. */
static bool is_upgrade(const sim_fact *f)
{
  return f->expected_err == LK_ERR_DEADLOCK && f->handle->kind == SIM_RWLOCK;
}

static bool may_be_starved(const sim_checker *j, int err)
{
  return err == LK_ERR_NO_MEMORY &&
         sim_fault_is_possible(j->world, SIM_FAULT_STARVE);
}

static bool is_refusal(int err)
{
  return err == LK_ERR_STATE || err == LK_ERR_DEADLOCK;
}

/* n acquires need n releases by the same handle. */
void sim_reentry_count(sim_checker *j, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (f->type == SIM_NODE_DELETED) {
    check_removal(j, f->entry);
    return;
  }
  if (f->type == SIM_ACQUIRE_CALLED && f->err != f->expected_err &&
      !is_upgrade(f) && (f->expected_err != 0 || is_refusal(f->err)) &&
      f->err != LK_ERR_CLOSED && !may_be_starved(j, f->err))
    sim_violated(j, "%s: the acquire ends with %s, not %s", h->name,
                 lk_error_name(f->err), lk_error_name(f->expected_err));
  if (f->type == SIM_RELEASE_CALLED && f->err != f->expected_err)
    sim_violated(j, "%s: the release ends with %s, not %s", h->name,
                 lk_error_name(f->err), lk_error_name(f->expected_err));
  if (h->lock != NULL && !h->freeing && lk_lock_count(h->lock) != h->count)
    sim_violated(j, "%s counts %zu, not %zu", h->name, lk_lock_count(h->lock),
                 h->count);
}

/* ---- ends --------------------------------------------------------------- */

/* An acquire ends when its time is up, and not before. */
void sim_timeout_bound(sim_checker *j, const sim_fact *f)
{
  const sim_handle *h = f->handle;
  const sim_process *p = h->process;
  int64_t now = sim_process_clock(p);
  int64_t due = h->acquire_called_ms + h->timeout_ms;
  int64_t late = h->acquire_returned_ms + h->timeout_ms;

  if (h->timeout_ms <= 0 || h->is_reentry)
    return;
  if (f->err == LK_ERR_DEADLINE && now < due)
    sim_violated(j, "%s ends %" PRId64 " ms before its time", h->name,
                 due - now);
  if (now > late + SLACK_MS && !sim_life_of(j, p)->was_paused &&
      p->busy_until_us <= sim_now_us(j) &&
      sim_life_of(j, p)->resumed_us < sim_process_true_us(p, late))
    sim_violated(j, "%s ends %" PRId64 " ms after its time", h->name,
                 now - late);
}

/* Each callback is invoked once, and never for a freed handle. */
void sim_callback_safety(sim_checker *j, const sim_fact *f)
{
  if (f->type == SIM_STRAY_CALLBACK) {
    sim_violated(j, "%s: %s", f->handle->name, f->why);
    return;
  }
  SIM_EACH_HANDLE(j, h)
  {
    if (h->lock != NULL &&
        (h->releasing || h->verifying || h->guarded_writes > 0))
      sim_violated(j, "%s was never called back", h->name);
  }
}

/* It is executed if and only if the node stands. */
void sim_guarded_write(sim_checker *j, const sim_fact *f)
{
  const lk_reply *a = lk_client_reply(f->handle->process->client);
  bool stood = true;

  if (a == NULL || a->err != 0 || f->nodes->count == 0)
    return;
  for (size_t i = 0; i < f->nodes->count; i++)
    stood = stood && sim_entry_existed_at(f->nodes->at[i], a->zxid);
  if ((f->err == 0 && !stood) || (f->err == LK_ERR_LOST && stood))
    sim_violated(j, "%s gets %s, and its node %s", f->handle->name,
                 lk_error_name(f->err), stood ? "stands" : "is gone");
  if (sim_is_written(j, f->data) != (f->err == 0))
    sim_violated(j, "%s gets %s, and it was%s written", f->handle->name,
                 lk_error_name(f->err), f->err == 0 ? " not" : "");
}

/* ---- revocation --------------------------------------------------------- */

static const sim_entry *revoked_part(const sim_handle *h)
{
  for (size_t i = 0; sim_holds(h) && i < h->held.count; i++) {
    if (h->held.at[i]->revoked && h->held.at[i]->deleted_zxid == 0)
      return h->held.at[i];
  }
  return NULL;
}

static void check_revoked(sim_checker *j, sim_handle *h)
{
  if (!sim_holds(h))
    sim_violated(j, "%s gets a revocation and holds nothing", h->name);
  if (h->revoked++ > 0)
    sim_violated(j, "%s gets the same revocation again", h->name);
}

/* A revocation is reported to the holder it names and to no other. */
void sim_revoke(sim_checker *j, const sim_fact *f)
{
  if (f->type == SIM_LOCK_EVENT) {
    if (f->lock_event->type == LK_LOCK_EVENT_REVOKED)
      check_revoked(j, f->handle);
    return;
  }
  SIM_EACH_HANDLE(j, h)
  {
    const sim_entry *e = h->revoked == 0 ? revoked_part(h) : NULL;

    if (e != NULL && sim_handle_was_denied(j, h, h->acquire_called_us))
      e = NULL;
    if (sim_grace_is_over(j, sim_life_of(j, h->process),
                          &h->unreported_revocation, e))
      sim_violated(j, "%s gets no notice of the revocation of %s", h->name,
                   e->name);
  }
}
