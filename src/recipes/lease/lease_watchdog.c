/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/heartbeat.h"
#include "recipes/lease/lease_watchdog.h"

void lk__lease_watch_deadline(lk_session_lease *k)
{
  int64_t at = lk__lease_unsure_ms(k, lk__lease_deadline(k));

  if (at >= k->watch_at_ms)
    return;
  k->watch_at_ms = at;
  lk__lease_start_timer(k, &k->watchdog, at);
}

static void watch_held(lk_session_lease *k)
{
  if (k->count[LK_LEASE_HELD] > 0)
    lk__lease_watch_deadline(k);
}

void lk__lease_await(lk_session_lease *k)
{
  k->awaited = true;
  (void)lk__heartbeat_now(k);
}

static void notify_renewed(lk_session_lease *k, lk_lease_user *u)
{
  (void)k;
  u->kind->renewed(u);
}

static void notify_awaiting(lk_session_lease *k)
{
  if (!k->awaited || !lk__lease_may_grant(k, lk_client_clock(k->client)))
    return;
  k->awaited = false;
  lk__lease_for_each_user(k, notify_renewed);
}

static void review_user(lk_session_lease *k, lk_lease_user *u)
{
  (void)k;
  u->kind->review(u);
}

/* Each reply moves the deadline, but not the timer: when the timer fires, users
 * compare the deadline as it is by then. */
void lk__watchdog_fire(lk_client *c, void *arg)
{
  lk_session_lease *k = arg;

  (void)c;
  lk__lease_ref(k);
  k->watch_at_ms = INT64_MAX;
  notify_awaiting(k);
  lk__lease_for_each_user(k, review_user);
  if (!k->life.detached)
    watch_held(k);
  lk__lease_unref(k);
}

void lk__watchdog_review_soon(lk_session_lease *k)
{
  k->watch_at_ms = lk_client_input_ms(k->client);
  lk__lease_start_timer(k, &k->watchdog, k->watch_at_ms);
}

void lk__watchdog_deadline_moved(lk_session_lease *k)
{
  int64_t deadline = lk__lease_deadline(k);
  bool later = deadline > k->known_deadline_ms;
  bool other_timeout = k->evidence->timeout_ms != k->known_timeout_ms;

  k->known_deadline_ms = deadline;
  k->known_timeout_ms = k->evidence->timeout_ms;
  if (k->over != 0)
    return;
  if ((k->count[LK_LEASE_UNSURE] > 0 || k->awaited) && later)
    lk__watchdog_review_soon(k);
  else if (other_timeout)
    watch_held(k); /* deadlines have moved, perhaps to an earlier time */
}
