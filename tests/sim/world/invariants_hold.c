/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/conditions.h"

/* What holders and waiters are notified of, and when. */

enum {
  SLACK_MS = 3,   /* of timers and of the rounding of clocks */
  MARGIN_PART = 8 /* the default margin is the session timeout / MARGIN_PART */
};

/* ---- the lease deadline ------------------------------------------------- */

/* No session expires before the lease deadline of its locks. */
void sim_lease_deadline(sim_checker *checker, const sim_fact *f)
{
  if (f->entry->deletion_cause != SIM_DELETED_BY_EXPIRY ||
      sim_deletion_is_excused(checker, f->entry))
    return;
  SIM_EACH_HANDLE(checker, h)
  {
    if (sim_nodes_contain(&h->held, f->entry) && sim_holds(h) &&
        (lk_lock_ok(h->lock) ||
         lk_lock_deadline(h->lock) > sim_process_clock(h->process)))
      sim_violated(checker, "%s expires %" PRId64 " ms before its lease",
                   h->name,
                   lk_lock_deadline(h->lock) - sim_process_clock(h->process));
  }
}

/* The holder must have been notified one margin before the lease deadline, so
 * that it has time to stop. */
static void check_deadline_notice(sim_checker *checker, const sim_handle *h)
{
  int64_t margin_ms = h->lease->margin_ms > 0
                          ? h->lease->margin_ms
                          : lk__lease_timeout_ms(h->lease) / MARGIN_PART;
  int64_t latest_notice_ms = lk_lock_deadline(h->lock) - margin_ms + SLACK_MS;

  if (lk_lock_get_state(h->lock) == LK_LOCK_HELD &&
      sim_process_clock(h->process) > latest_notice_ms)
    sim_violated(checker, "%s was not notified that its lease runs out",
                 h->name);
}

/* Since when clock, margin and session timeout of the process have not been
 * disturbed: the end of its last pause; the last change of the margin; if
 * servers change their timeouts, its last reconnect. */
static int64_t undisturbed_from_us(sim_checker *checker, const sim_process *p)
{
  const sim_life *l = sim_life_of(checker, p);
  int64_t from_us =
      l->resumed_us > p->margin_set_us ? l->resumed_us : p->margin_set_us;

  return sim_fault_is_possible(checker->world, SIM_FAULT_BOUNDS) &&
                 l->undisturbed_since_us > from_us
             ? l->undisturbed_since_us
             : from_us;
}

/* Whether an actor is notified that it holds, or holds again. */
static bool is_notice_of_hold(const sim_fact *f)
{
  return (f->type == SIM_ACQUIRE_ENDED && f->err == 0) ||
         (f->type == SIM_LOCK_EVENT &&
          f->lock_event->type == LK_LOCK_EVENT_RENEWED);
}

/* No lock is granted or held after its lease deadline. */
void sim_lease_pause(sim_checker *checker, const sim_fact *f)
{
  if (is_notice_of_hold(f)) {
    if (!f->handle->is_reentry && !lk_lock_ok(f->handle->lock) &&
        lk_lock_deadline(f->handle->lock) <=
            sim_process_clock_before(f->handle->process))
      sim_violated(checker, "%s is notified that it holds without a lease",
                   f->handle->name);
    return;
  }
  if (f->type != SIM_JOB_DONE)
    return;
  SIM_EACH_HANDLE(checker, h)
  {
    if (sim_holds(h) && sim_process_runs(h->process) &&
        sim_now_us(checker) >
            undisturbed_from_us(checker, h->process) + SLACK_MS * SIM_MS)
      check_deadline_notice(checker, h);
  }
}

/* The least time that a grant must have until the lease deadline: T/4. If the
 * heartbeats are more than T/2 apart, half of the remaining time. */
static int64_t least_lease_at_grant(const lk_session_lease *lease)
{
  int64_t timeout = lk__lease_timeout_ms(lease);
  int64_t half_of_rest = (timeout - lk__lease_gap_ms(lease)) / 2;

  return half_of_rest < timeout / 4 ? half_of_rest : timeout / 4;
}

/* Each grant has a quarter of the session timeout until its lease deadline. */
void sim_grant_lease(sim_checker *checker, const sim_fact *f)
{
  const sim_process *p = f->handle->process;
  const lk_session_lease *lease = f->handle->lease;
  const lk_lock *l = f->handle->lock;

  if (f->err != 0 || f->handle->is_reentry || l == NULL)
    return;
  int64_t left = lk_lock_deadline(l) - lk_client_input_ms(p->client);

  if (lk_lock_deadline(l) != lk__lease_deadline(lease) ||
      left < least_lease_at_grant(lease))
    sim_violated(checker, "%s is granted with %" PRId64 " ms left",
                 f->handle->name, left);
}

/* Whether the grant left little more than T/4, and its first heartbeat is not
 * due yet. Any delay may then make the holder unsure. */
static bool was_granted_with_little_time(const sim_handle *h)
{
  int32_t timeout = lk__lease_timeout_ms(h->lease);

  return h->granted_lease_ms < timeout / 4 + timeout / MARGIN_PART &&
         sim_process_clock(h->process) < h->granted_ms + timeout / 4;
}

/* With quorum assurance a grant has a quarter of the session timeout left. The
 * time left is measured when the callback is invoked. One percent is for clock
 * drift. */
void sim_grant_deadline(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h = f->handle;
  const sim_process *p = h->process;

  if (f->err != 0 || h->is_reentry ||
      h->lease->config.assurance != LK_ASSURE_QUORUM ||
      sim_fault_is_possible(checker->world, SIM_FAULT_BOUNDS) || p->closing)
    return;
  int64_t t = lk_client_timeout_ms(p->client);
  int64_t left = lk_lock_deadline(h->lock) - sim_process_clock_before(p);

  if (left < t / 4 - t / 100 - SLACK_MS)
    sim_violated(checker, "%s is granted with %" PRId64 " ms left", h->name,
                 left);
}

/* No holder becomes unsure by delays below T/4. */
void sim_no_needless_unsure(sim_checker *checker, const sim_fact *f)
{
  if (f->lock_event->type == LK_LOCK_EVENT_UNSURE &&
      checker->world->scenario->calm &&
      !was_granted_with_little_time(f->handle))
    sim_violated(checker, "%s is unsure without a delay of T/4",
                 f->handle->name);
}

/* Whether the grant came shortly after a silent server was left or replied
 * again: the first reply since then can be confirmed a gap (T/4) later, which
 * may be too late for such a lease. */
static bool was_granted_after_silence(const sim_handle *h)
{
  int32_t timeout = lk__lease_timeout_ms(h->lease);

  return h->granted_lease_ms < timeout * 7 / 16 &&
         sim_process_clock(h->process) < h->granted_ms + timeout / 2;
}

/* Whether a request of the program has just cost the client a connection, which
 * is a second failure. */
static bool was_rejected_lately(const sim_handle *h)
{
  const sim_process *p = h->process;
  int64_t span_us = lk__lease_timeout_ms(h->lease) * SIM_MS;

  return p->rejected_us > 0 &&
         p->world->agenda.now_us < p->rejected_us + span_us;
}

/* While one follower is silent and the others serve, no holder becomes unsure.
 * With pings as assurance a holder sends no requests, and does not notice. */
void sim_survives_one_silent(sim_checker *checker, const sim_fact *f)
{
  bool is_lost = f->lock_event->type == LK_LOCK_EVENT_LOST &&
                 f->lock_event->err != LK_ERR_CLOSED;
  bool is_bad = is_lost || f->lock_event->type == LK_LOCK_EVENT_UNSURE;

  if (checker->world->scenario->one_silent && is_bad &&
      f->handle->lease->config.assurance != LK_ASSURE_PING &&
      !was_granted_after_silence(f->handle) && !was_rejected_lately(f->handle))
    sim_violated(checker, "%s is %s although a quorum serves", f->handle->name,
                 is_lost ? "lost" : "unsure");
}

/* ---- reentry ------------------------------------------------------------ */

static void check_deleted_while_held(sim_checker *checker, const sim_entry *e)
{
  if (e->deletion_cause != SIM_DELETED_BY_OWNER)
    return;
  SIM_EACH_HANDLE(checker, h)
  {
    if (sim_nodes_contain(&h->held, e) && sim_holds(h))
      sim_violated(checker, "%s is deleted, and %s has count %zu", e->name,
                   h->name, h->count);
  }
}

/* Whether one side is acquired while the other side is held, which
 * sim_rw_upgrade() checks. */
static bool is_for_other_side(const sim_fact *f)
{
  return f->expected_err == LK_ERR_DEADLOCK && f->handle->kind == SIM_RWLOCK;
}

static bool may_be_starved(const sim_checker *checker, int err)
{
  return err == LK_ERR_NO_MEMORY &&
         sim_fault_is_possible(checker->world, SIM_FAULT_STARVE);
}

static bool is_refusal(int err)
{
  return err == LK_ERR_STATE || err == LK_ERR_DEADLOCK ||
         err == LK_ERR_NOT_CONNECTED;
}

/* Whether lk_lock_acquire() returned a wrong error. Where success is expected,
 * only a refusal is wrong: other errors may have other reasons. */
static bool is_wrong_acquire_err(const sim_checker *checker, const sim_fact *f)
{
  return f->err != f->expected_err && !is_for_other_side(f) &&
         (f->expected_err != 0 || is_refusal(f->err)) &&
         f->err != LK_ERR_CLOSED && !may_be_starved(checker, f->err);
}

/* n acquires of a handle need n releases. */
void sim_reentry_count(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (f->type == SIM_NODE_DELETED) {
    check_deleted_while_held(checker, f->entry);
    return;
  }
  if (f->type == SIM_ACQUIRE_CALLED && is_wrong_acquire_err(checker, f))
    sim_violated(checker, "%s: the acquire ends with %s, not %s", h->name,
                 lk_error_name(f->err), lk_error_name(f->expected_err));
  if (f->type == SIM_RELEASE_CALLED && f->err != f->expected_err)
    sim_violated(checker, "%s: the release ends with %s, not %s", h->name,
                 lk_error_name(f->err), lk_error_name(f->expected_err));
  if (h->lock != NULL && !h->freeing && lk_lock_count(h->lock) != h->count)
    sim_violated(checker, "%s has count %zu, not %zu", h->name,
                 lk_lock_count(h->lock), h->count);
}

/* ---- completion --------------------------------------------------------- */

/* An acquire ends at its deadline, neither earlier nor later. The time runs
 * from the call to the callback. It may end as late as the call took to
 * return. */
void sim_timeout_bound(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h = f->handle;
  const sim_process *p = h->process;
  int64_t now = sim_process_clock(p);
  int64_t due_ms = h->acquire_called_ms + h->timeout_ms;
  int64_t latest_ms = h->acquire_returned_ms + h->timeout_ms;

  if (h->timeout_ms <= 0 || h->is_reentry)
    return;
  if (f->err == LK_ERR_DEADLINE && now < due_ms)
    sim_violated(checker, "%s ends %" PRId64 " ms before its time", h->name,
                 due_ms - now);
  if (now > latest_ms + SLACK_MS && !sim_life_of(checker, p)->was_paused &&
      p->busy_until_us <= sim_now_us(checker) &&
      sim_life_of(checker, p)->resumed_us < sim_process_true_us(p, latest_ms))
    sim_violated(checker, "%s ends %" PRId64 " ms after its time", h->name,
                 now - latest_ms);
}

/* Each callback is invoked once, and never for a freed handle. */
void sim_callback_safety(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_STRAY_CALLBACK) {
    sim_violated(checker, "%s: %s", f->handle->name, f->why);
    return;
  }
  SIM_EACH_HANDLE(checker, h)
  {
    if (h->lock != NULL &&
        (h->releasing || h->verifying || h->guarded_writes > 0))
      sim_violated(checker, "%s never got its callback", h->name);
  }
}

/* A guarded write is executed if and only if the own node exists. */
void sim_guarded_write(sim_checker *checker, const sim_fact *f)
{
  const lk_reply *reply = lk_client_reply(f->handle->process->client);
  bool existed = true;

  if (reply == NULL || reply->err != 0 || f->nodes->count == 0)
    return;
  for (size_t i = 0; i < f->nodes->count; i++)
    existed = existed && sim_entry_existed_at(f->nodes->at[i], reply->zxid);
  if ((f->err == 0 && !existed) || (f->err == LK_ERR_LOST && existed))
    sim_violated(checker, "%s gets %s, and its node %s", f->handle->name,
                 lk_error_name(f->err), existed ? "exists" : "is deleted");
  if (sim_is_written(checker, f->data) != (f->err == 0))
    sim_violated(checker, "%s gets %s, and it was%s written", f->handle->name,
                 lk_error_name(f->err), f->err == 0 ? " not" : "");
}

/* ---- revocation --------------------------------------------------------- */

static const sim_entry *revoked_node(const sim_handle *h)
{
  for (size_t i = 0; sim_holds(h) && i < h->held.count; i++) {
    if (h->held.at[i]->revoked && h->held.at[i]->deleted_zxid == 0)
      return h->held.at[i];
  }
  return NULL;
}

static void check_revoked(sim_checker *checker, sim_handle *h)
{
  if (!sim_holds(h))
    sim_violated(checker, "%s gets a revocation and holds nothing", h->name);
  if (h->revoked++ > 0)
    sim_violated(checker, "%s gets the same revocation again", h->name);
}

/* A revocation is reported to the holder it names and to no other. */
void sim_revoke(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_LOCK_EVENT) {
    if (f->lock_event->type == LK_LOCK_EVENT_REVOKED)
      check_revoked(checker, f->handle);
    return;
  }
  SIM_EACH_HANDLE(checker, h)
  {
    const sim_entry *e = h->revoked == 0 ? revoked_node(h) : NULL;

    if (e != NULL && sim_handle_was_denied(checker, h, h->acquire_called_us))
      e = NULL;
    if (sim_grace_is_over(checker, sim_life_of(checker, h->process),
                          &h->unreported_revocation, e))
      sim_violated(checker, "%s gets no notice of the revocation of %s",
                   h->name, e->name);
  }
}
