/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/candidate_state.h"

/* Whether a candidate leads, until when, and its term: written by the thread of
   the handle, read by all. */

/* A doubt is stored before anything else. */
void lk__sync_candidate_publish(lk_sync_candidate *c)
{
  const lk_lock *lock = c->source_lock;
  lk_candidate_state state = lk_candidate_get_state(c->source);
  int64_t deadline_ms = lk_lock_deadline(lock);

  if (state != LK_CANDIDATE_LEADING)
    atomic_store(&c->sure_until_ms, LK_NOT_LEADING);
  atomic_store(&c->term, lk_lock_token(lock));
  atomic_store(&c->lease_deadline_ms, deadline_ms);
  atomic_store(&c->state, (int)state);
  if (state == LK_CANDIDATE_LEADING)
    atomic_store(&c->sure_until_ms, deadline_ms);
}

/* Whether no candidate leads here: there is none, or this is a child process.
 */
static bool is_unusable(const lk_sync_candidate *c)
{
  return c == NULL || lk__driver_in_child(&c->client->driver);
}

/* The clock is read last, as in lk_sync_lock_ok(). */
bool lk_sync_candidate_ok(const lk_sync_candidate *c)
{
  if (is_unusable(c))
    return false;
  int64_t sure_until_ms =
      atomic_load_explicit(&c->sure_until_ms, memory_order_acquire);

  return sure_until_ms != LK_NOT_LEADING &&
         lk__driver_clock(&c->client->driver) < sure_until_ms;
}

int64_t lk_sync_candidate_deadline(const lk_sync_candidate *c)
{
  return is_unusable(c) ? INT64_MIN : atomic_load(&c->lease_deadline_ms);
}

uint64_t lk_sync_candidate_term(const lk_sync_candidate *c)
{
  return is_unusable(c) ? 0 : atomic_load(&c->term);
}

lk_candidate_state lk_sync_candidate_get_state(const lk_sync_candidate *c)
{
  return is_unusable(c) ? LK_CANDIDATE_STOPPED
                        : (lk_candidate_state)atomic_load(&c->state);
}
