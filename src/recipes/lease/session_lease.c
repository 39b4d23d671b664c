/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lease/session_lease.h"

void lk__lease_ref(lk_session_lease *k)
{
  k->refs++;
}

void lk__lease_unref(lk_session_lease *k)
{
  lk_mem mem = k->mem;

  if (--k->refs > 0)
    return;
  lk__mem_free(&mem, k->queues.scratch);
  lk__mem_free(&mem, k);
}

/* ---- users -------------------------------------------------------------- */

void lk__lease_add_user(lk_session_lease *k, lk_lease_user *u)
{
  u->need = LK_LEASE_NOT_NEEDED;
  k->count[u->need]++;
  lk__safe_list_add(&k->users, &u->link);
  lk__lease_ref(k);
}

void lk__lease_remove_user(lk_session_lease *k, lk_lease_user *u)
{
  k->count[u->need]--;
  lk__safe_list_remove(&k->users, &u->link);
}

void lk__lease_for_each_user(lk_session_lease *k,
                             void (*what)(lk_session_lease *k,
                                          lk_lease_user *u))
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &k->users);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_lease_user *u = LK_OWNER(l, lk_lease_user, link);

    u->kind->ref(u);
    what(k, u);
    u->kind->unref(u);
  }
}

int64_t *lk__lease_scratch(lk_session_lease *k, size_t count)
{
  if (count > SIZE_MAX / sizeof *k->queues.scratch)
    return NULL;
  if (count > k->queues.scratch_count || k->queues.scratch == NULL) {
    size_t room = count < 64 ? 64 : count;
    void *p = k->mem.resize(k->mem.arg, k->queues.scratch,
                            room * sizeof *k->queues.scratch);

    if (p == NULL)
      return NULL;
    k->queues.scratch = p;
    k->queues.scratch_count = room;
  }
  return k->queues.scratch;
}

/* ---- timers ------------------------------------------------------------- */

void lk__lease_start_timer(lk_session_lease *k, lk_timer *t, int64_t at_ms)
{
  if (!k->life.detached && lk_client_state(k->client) != LK_STATE_CLOSED)
    lk_timer_start(k->client, t, at_ms);
}

void lk__lease_stop_timer(lk_session_lease *k, lk_timer *t)
{
  if (!k->life.detached)
    lk_timer_stop(k->client, t);
}

/* ---- the lease ---------------------------------------------------------- */

int32_t lk__lease_timeout_ms(const lk_session_lease *k)
{
  return k->evidence->timeout_ms > 0 ? k->evidence->timeout_ms
                                     : lk_client_timeout_ms(k->client);
}

int64_t lk__lease_gap_ms(const lk_session_lease *k)
{
  return k->config.gap_ms > 0 ? k->config.gap_ms : lk__lease_timeout_ms(k) / 4;
}

int64_t lk__lease_unsure_ms(const lk_session_lease *k, int64_t deadline_ms)
{
  int64_t margin =
      k->margin_ms > 0 ? k->margin_ms : lk__lease_timeout_ms(k) / 8;

  return deadline_ms == LK_NO_LEASE ? LK_NO_LEASE : deadline_ms - margin;
}

int64_t lk__lease_deadline(const lk_session_lease *k)
{
  return k->over != 0 ? LK_NO_LEASE /* the client may be gone */
                      : lk__evidence_deadline(k->evidence, k->config.assurance);
}

/* A grant needs a quarter of the session timeout. If the gap exceeds half of
 * the timeout, half of what remains behind the gap suffices. */
static int64_t grant_needs_ms(const lk_session_lease *k)
{
  int64_t timeout = lk__lease_timeout_ms(k);
  int64_t spare = (timeout - lk__lease_gap_ms(k)) / 2;

  return spare < timeout / 4 ? spare : timeout / 4;
}

bool lk__lease_may_grant(const lk_session_lease *k, int64_t now_ms)
{
  int64_t deadline = lk__lease_deadline(k);

  return deadline != LK_NO_LEASE && now_ms < deadline &&
         deadline - now_ms >= grant_needs_ms(k);
}

/* ---- the session -------------------------------------------------------- */

bool lk__lease_is_online(const lk_session_lease *k)
{
  return k->over == 0 && lk_client_state(k->client) == LK_STATE_CONNECTED;
}
