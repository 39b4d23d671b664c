/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lease/session_lease.h"

void lk__lease_ref(lk_session_lease *lease)
{
  lease->refs++;
}

void lk__lease_unref(lk_session_lease *lease)
{
  lk_mem mem = lease->mem;

  if (--lease->refs > 0)
    return;
  lk__mem_free(&mem, lease->queues.scratch);
  lk__mem_free(&mem, lease);
}

/* ---- users -------------------------------------------------------------- */

void lk__lease_add_user(lk_session_lease *lease, lk_lease_user *u)
{
  u->need = LK_LEASE_NOT_NEEDED;
  lease->count[u->need]++;
  lk__safe_list_add(&lease->users, &u->link);
  lk__lease_ref(lease);
}

/* The user keeps its reference, and gives it back by lk__lease_unref(). */
void lk__lease_remove_user(lk_session_lease *lease, lk_lease_user *u)
{
  lease->count[u->need]--;
  lk__safe_list_remove(&lease->users, &u->link);
  lk__lease_note_holder(lease);
}

void lk__lease_note_holder(const lk_session_lease *lease)
{
  if (!lease->life.detached)
    lk__client_note_holder(lease->client, lk__lease_count_held(lease) > 0);
}

void lk__lease_for_each_user(lk_session_lease *lease,
                             void (*visit)(lk_session_lease *lease,
                                           lk_lease_user *u))
{
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &lease->users);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lease_user *u = LK_OWNER(l, lk_lease_user, link);

    u->kind->ref(u);
    visit(lease, u);
    u->kind->unref(u);
  }
}

int64_t *lk__lease_scratch(lk_session_lease *lease, size_t count)
{
  enum { MIN_COUNT = 64 };
  bool is_first_use = lease->queues.scratch == NULL;

  if (count > SIZE_MAX / sizeof *lease->queues.scratch)
    return NULL;
  if (count > lease->queues.scratch_count || is_first_use) {
    size_t new_count = count < MIN_COUNT ? MIN_COUNT : count;
    void *resized = lease->mem.resize(lease->mem.arg, lease->queues.scratch,
                                      new_count * sizeof(int64_t));

    if (resized == NULL)
      return NULL;
    lease->queues.scratch = resized;
    lease->queues.scratch_count = new_count;
  }
  return lease->queues.scratch;
}

/* ---- timers ------------------------------------------------------------- */

void lk__lease_start_timer(lk_session_lease *lease, lk_timer *t, int64_t at_ms)
{
  if (!lease->life.detached &&
      lk_client_state(lease->client) != LK_STATE_CLOSED)
    lk_timer_start(lease->client, t, at_ms);
}

void lk__lease_stop_timer(lk_session_lease *lease, lk_timer *t)
{
  if (!lease->life.detached)
    lk_timer_stop(lease->client, t);
}

/* ---- the lease ---------------------------------------------------------- */

int32_t lk__lease_timeout_ms(const lk_session_lease *lease)
{
  return lease->evidence->timeout_ms > 0 ? lease->evidence->timeout_ms
                                         : lk_client_timeout_ms(lease->client);
}

int64_t lk__lease_gap_ms(const lk_session_lease *lease)
{
  return lease->config.gap_ms > 0 ? lease->config.gap_ms
                                  : lk__lease_timeout_ms(lease) / 4;
}

int64_t lk__lease_unsure_ms(const lk_session_lease *lease, int64_t deadline_ms)
{
  int64_t margin =
      lease->margin_ms > 0 ? lease->margin_ms : lk__lease_timeout_ms(lease) / 8;

  return deadline_ms == LK_NO_LEASE ? LK_NO_LEASE : deadline_ms - margin;
}

int64_t lk__lease_deadline(const lk_session_lease *lease)
{
  return lease->end_err != 0
             ? LK_NO_LEASE /* the client may be gone */
             : lk__evidence_deadline(lease->evidence, lease->config.assurance);
}

/* How long the lease must last at a grant: a quarter of the session timeout. No
 * evidence lasts longer than the timeout less the gap. So with a gap above half
 * of the timeout, half of that difference suffices. */
static int64_t grant_min_lease_ms(const lk_session_lease *lease)
{
  int64_t timeout = lk__lease_timeout_ms(lease);
  int64_t half_of_longest = (timeout - lk__lease_gap_ms(lease)) / 2;

  return half_of_longest < timeout / 4 ? half_of_longest : timeout / 4;
}

bool lk__lease_may_grant(const lk_session_lease *lease, int64_t now_ms)
{
  int64_t deadline = lk__lease_deadline(lease);

  return deadline != LK_NO_LEASE && now_ms < deadline &&
         deadline - now_ms >= grant_min_lease_ms(lease);
}

/* The wait leaves three quarters of the time until the holder is unsure to the
 * reply. A wait of a sixteenth of the session timeout is short beside the
 * quarter from one heartbeat to the next. */
int64_t lk__lease_renewal_ms(const lk_session_lease *lease, int64_t due_ms)
{
  int64_t deadline = lk__lease_deadline(lease);
  int64_t longest_wait = lk__lease_timeout_ms(lease) / 16;

  if (deadline == LK_NO_LEASE)
    return due_ms;
  int64_t quarter_of_rest = (lk__lease_unsure_ms(lease, deadline) - due_ms) / 4;

  if (quarter_of_rest < longest_wait)
    longest_wait = quarter_of_rest;
  return lk__evidence_renewal_ms(lease->evidence, lease->config.assurance,
                                 due_ms, due_ms + longest_wait);
}

/* ---- the session -------------------------------------------------------- */

bool lk__lease_is_online(const lk_session_lease *lease)
{
  return lease->end_err == 0 &&
         lk_client_state(lease->client) == LK_STATE_CONNECTED;
}
