/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/candidate.h"

/* Whether a candidate leads, until when, and its term. */

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
