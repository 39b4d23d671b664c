/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/heartbeat.h"
#include "recipes/lease/lease_watchdog.h"

/* ---- a server that does not reply ---------------------------------------- */

/* From when on a holder needs a reply. A reply that comes later can be confirmed
 * only by a request one gap behind it, and that would be too late. A connection
 * to another server renews the lease without a gap. In the steady state a
 * heartbeat was sent a little before. */
static int64_t reply_needed_from(const lk_session_lease *lease,
                                 int64_t unsure_ms)
{
  int64_t round_trip_ms = lk__lease_timeout_ms(lease) / 16;

  return unsure_ms == LK_NO_LEASE
             ? LK_NO_LEASE
             : unsure_ms - lk__lease_gap_ms(lease) - round_trip_ms;
}

/* When the watchdog is due. While a reply is needed it fires repeatedly. */
static int64_t watchdog_due(const lk_session_lease *lease)
{
  int64_t now = lk_client_input_ms(lease->client);
  int64_t unsure_ms = lk__lease_unsure_ms(lease, lk__lease_deadline(lease));
  int64_t needed_from = reply_needed_from(lease, unsure_ms);
  int64_t again_at = now + lk__lease_timeout_ms(lease) / 32;

  if (now < needed_from)
    return needed_from;
  return lk__lease_is_online(lease) && again_at < unsure_ms ? again_at
                                                            : unsure_ms;
}

static void lease_need_reply(lk_session_lease *lease)
{
  int64_t now = lk_client_input_ms(lease->client);
  int64_t unsure_ms = lk__lease_unsure_ms(lease, lk__lease_deadline(lease));

  if (now >= reply_needed_from(lease, unsure_ms) && now < unsure_ms &&
      lk__lease_is_online(lease))
    lk__client_need_reply(lease->client, unsure_ms);
}

/* ---- the deadline -------------------------------------------------------- */

void lk__lease_watch_deadline(lk_session_lease *lease)
{
  int64_t at = watchdog_due(lease);

  if (at >= lease->watchdog_due_ms)
    return; /* the timer fires early enough */
  lease->watchdog_due_ms = at;
  lk__lease_start_timer(lease, &lease->watchdog, at);
}

static void watch_deadline_if_held(lk_session_lease *lease)
{
  if (lease->count[LK_LEASE_HELD] > 0)
    lk__lease_watch_deadline(lease);
}

void lk__lease_await(lk_session_lease *lease)
{
  lease->grant_awaited = true;
  (void)lk__heartbeat_now(lease);
}

static void notify_renewed(lk_session_lease *lease, lk_lease_user *u)
{
  (void)lease;
  u->kind->renewed(u);
}

/* Invoke `renewed` of all users if one waits for it and the lease is long
 * enough by now. */
static void notify_if_renewed(lk_session_lease *lease)
{
  if (!lease->grant_awaited ||
      !lk__lease_may_grant(lease, lk_client_clock(lease->client)))
    return;
  lease->grant_awaited = false;
  lk__lease_for_each_user(lease, notify_renewed);
}

static void review_user(lk_session_lease *lease, lk_lease_user *u)
{
  (void)lease;
  u->kind->review(u);
}

/* Replies move the deadline without starting the timer again, which would cost
 * more. So when the timer fires the deadline may be far away, and each user
 * compares the present deadline with the time. */
void lk__watchdog_on_timer(lk_client *c, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  lk__lease_ref(lease);
  lease->watchdog_due_ms = INT64_MAX;
  notify_if_renewed(lease);
  lk__lease_for_each_user(lease, review_user);
  if (!lease->life.detached && lease->count[LK_LEASE_HELD] > 0) {
    lease_need_reply(lease);
    lk__lease_watch_deadline(lease);
  }
  lk__lease_unref(lease);
}

/* The timer fires in the next turn of the loop. */
void lk__watchdog_review_soon(lk_session_lease *lease)
{
  lease->watchdog_due_ms = lk_client_input_ms(lease->client);
  lk__lease_start_timer(lease, &lease->watchdog, lease->watchdog_due_ms);
}

void lk__watchdog_deadline_moved(lk_session_lease *lease)
{
  int64_t deadline = lk__lease_deadline(lease);
  bool deadline_is_later = deadline > lease->known_deadline_ms;
  bool timeout_changed = lease->evidence->timeout_ms != lease->known_timeout_ms;

  lease->known_deadline_ms = deadline;
  lease->known_timeout_ms = lease->evidence->timeout_ms;
  if (lease->end_err != 0)
    return;
  if ((lease->count[LK_LEASE_UNSURE] > 0 || lease->grant_awaited) &&
      deadline_is_later)
    lk__watchdog_review_soon(lease);
  else if (timeout_changed)
    watch_deadline_if_held(lease); /* the deadline may be earlier now */
}
