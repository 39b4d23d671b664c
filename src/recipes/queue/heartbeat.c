/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/heartbeat.h"

#include "recipes/error_advice.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/lease_deadline.h"

/**
 * @file
 * The heartbeat: a request that is sent a quarter of the session timeout after
 * the last reply and renews the lease. A client that holds locks sends checks
 * of all held nodes (LK_ASSURE_QUORUM), or a sync (LK_ASSURE_SYNC). A client
 * that only waits sends a sync, since thousands of waiters must not each cost a
 * transaction. With LK_ASSURE_QUORUM, if one of its nodes is the next to hold,
 * it sends a check of that node instead. With LK_ASSURE_PING the client's own
 * pings suffice. With each heartbeat, nodes that are not watched yet are
 * watched or read.
 */

/* A multi is sent when it has so many checks, or so many bytes of paths.
 * Servers refuse requests above jute.maxbuffer, 1 MiB by default. */
enum { MULTI_CHECKS = 64, MULTI_PATH_BYTES = 128 * 1024 };

enum { PAUSE_IF_THROTTLED_MS = 100 };
enum { ANY_VERSION = -1 };

static void heartbeat_request_completed(lk_session_lease *lease);

/* ---- checks ------------------------------------------------------------ */

/* Reports to each user the result of its check in the multi with the index
 * `multi`. A check behind a failed one was not executed: then `incomplete` asks
 * for another heartbeat. */
static void report_checks(lk_session_lease *lease, size_t multi, int err,
                          const lk_op_result *results, size_t count)
{
  uint64_t number = lease->heartbeat.number;
  bool executed = lk__transaction_was_ordered(lease->client);
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &lease->users);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_contender *ct = LK_OWNER(l, lk_contender, lease_user.link);
    const lk_lease_user *u = &ct->lease_user;

    if (!lk__contender_holds(ct) || u->heartbeat != number || u->multi != multi)
      continue;
    int check_err = u->operation < count ? results[u->operation].err : err;

    if (check_err == LK_ERR_RUNTIME_INCONSISTENCY && executed)
      lease->heartbeat.incomplete = true;
    lk__contender_ref(ct);
    lk__contender_take_heartbeat_check(ct, check_err);
    lk__contender_unref(ct);
  }
}

static void heartbeat_count_reply(lk_session_lease *lease, int err)
{
  lease->heartbeat.outstanding--;
  if (err == LK_ERR_THROTTLED)
    lease->heartbeat.throttled = true;
}

static void on_checks(lk_client *c, int err, const lk_op_result *results,
                      size_t count, void *arg)
{
  lk_session_lease *lease = arg;
  /* Multis complete in the order in which they were sent. */
  size_t multi = lease->heartbeat.multis_completed;

  (void)c;
  heartbeat_count_reply(lease, err);
  lease->heartbeat.multis_completed++;
  report_checks(lease, multi, err, results, count);
  heartbeat_request_completed(lease);
}

static bool send_checks(lk_session_lease *lease, const lk_op *ops, size_t count)
{
  if (count == 0)
    return true;
  if (lk_multi(lease->client, ops, count, LK_NO_OPTIONS, on_checks, lease) != 0)
    return false; /* the next heartbeat tries again */
  lease->heartbeat.outstanding++;
  return true;
}

/* Sends checks of all held nodes, in as many multis as needed. The check of a
 * node that cannot be read fails even though the node exists, and the server
 * does not execute the operations behind it. So such a check is the last of its
 * multi. */
static void send_checks_of_held(lk_session_lease *lease)
{
  lk_op ops[MULTI_CHECKS];
  size_t count = 0;
  size_t path_bytes = 0;
  size_t multi = 0;

  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_user(lease, ct)) != NULL;) {
    if (!lk__contender_holds(ct))
      continue;
    ct->lease_user.heartbeat = lease->heartbeat.number;
    ct->lease_user.multi = multi;
    ct->lease_user.operation = count;
    ops[count++] = lk_op_check(ct->own.path, ANY_VERSION);
    path_bytes += strlen(ct->own.path);
    if (count < MULTI_CHECKS && path_bytes < MULTI_PATH_BYTES &&
        !ct->own.unreadable)
      continue;
    if (!send_checks(lease, ops, count))
      return;
    multi++;
    count = 0;
    path_bytes = 0;
  }
  (void)send_checks(lease, ops, count);
}

/* ---- sync -------------------------------------------------------------- */

static void on_single_heartbeat_request(lk_client *c, int err, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  heartbeat_count_reply(lease, err);
  heartbeat_request_completed(lease);
}

static void send_sync(lk_session_lease *lease)
{
  if (lk_server_sync(lease->client, "/", LK_NO_OPTIONS,
                     on_single_heartbeat_request, lease) != 0)
    return;
  lease->heartbeat.outstanding++;
}

/* ---- while nothing is held ---------------------------------------------- */

/* Returns a waiter with one predecessor, or NULL if there is none. The deletion
 * of that predecessor may grant the lock at once, and such a grant needs a
 * lease that was proven before. */
static lk_contender *next_to_hold(const lk_session_lease *lease)
{
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_user(lease, ct)) != NULL;) {
    if (lk__contender_is_next(ct))
      return ct;
  }
  return NULL;
}

/* The assurance of the heartbeat of a client that only waits. A sync suffices
 * unless a waiter may be granted the lock without another request. */
static lk_assurance assurance_of_waiters(const lk_session_lease *lease)
{
  lk_assurance assurance = lease->config.assurance;

  return assurance == LK_ASSURE_QUORUM && next_to_hold(lease) == NULL
             ? LK_ASSURE_SYNC
             : assurance;
}

static void on_waiting_check(lk_client *c, int err, const lk_op_result *results,
                             size_t count, void *arg)
{
  (void)results;
  (void)count;
  on_single_heartbeat_request(c, err, arg);
}

/* The result is ignored: the watch on the node reports its deletion. */
static void send_check_of_waiter(lk_session_lease *lease,
                                 const lk_contender *ct)
{
  lk_op check = lk_op_check(ct->own.path, ANY_VERSION);

  if (lk_multi(lease->client, &check, 1, LK_NO_OPTIONS, on_waiting_check,
               lease) != 0)
    return;
  lease->heartbeat.outstanding++;
}

static void send_heartbeat_of_waiters(lk_session_lease *lease)
{
  lk_assurance assurance = lease->config.assurance;
  const lk_contender *next =
      assurance == LK_ASSURE_QUORUM ? next_to_hold(lease) : NULL;

  if (next != NULL)
    send_check_of_waiter(lease, next);
  else if (assurance != LK_ASSURE_PING)
    send_sync(lease);
}

static void send_heartbeat_of_holders(lk_session_lease *lease)
{
  switch (lease->config.assurance) {
  case LK_ASSURE_QUORUM: send_checks_of_held(lease); break;
  case LK_ASSURE_SYNC: send_sync(lease); break;
  case LK_ASSURE_PING: break; /* the client pings */
  }
}

/* ---- when a heartbeat is due ------------------------------------------- */

/* Holders come before the checks of their nodes. The reads of waiters come
 * behind all that renews the lease, as there may be many. */
static void heartbeat_supervise(lk_session_lease *lease, bool holders)
{
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_user(lease, ct)) != NULL;) {
    if (lk__contender_holds(ct) == holders)
      lk__contender_on_heartbeat(ct);
  }
}

static void send_heartbeat(lk_session_lease *lease)
{
  const bool holders = true;

  lease->heartbeat.number++;
  lease->heartbeat.multis_completed = 0;
  lease->heartbeat.incomplete = false;
  lease->heartbeat.throttled = false;
  heartbeat_supervise(lease, holders);
  if (lk__lease_count_held(lease) == 0)
    send_heartbeat_of_waiters(lease);
  else
    send_heartbeat_of_holders(lease);
  heartbeat_supervise(lease, !holders);
}

static void heartbeat_start_timer(lk_session_lease *lease, int64_t at_ms)
{
  lk_timer_start(lease->client, &lease->heartbeat.timer, at_ms);
  lease->heartbeat.timer_runs = true;
  lease->heartbeat.has_waited = false;
}

/* When the heartbeat is due that renews a lease which ends at `deadline_ms`: a
 * quarter of the session timeout from now. It is due earlier if the holder
 * would become unsure within half of the timeout, so that the reply has a
 * quarter of the timeout to arrive. It is due a sixteenth of the timeout from
 * now at the earliest. */
static int64_t heartbeat_due_for(const lk_session_lease *lease,
                                 int64_t deadline_ms)
{
  int64_t now = lk_client_input_ms(lease->client);
  int64_t quarter = lk__lease_timeout_ms(lease) / 4;
  int64_t shortest_wait = quarter / 4;

  if (deadline_ms == LK_NO_LEASE)
    return now + quarter;
  int64_t until_unsure = lk__lease_unsure_ms(lease, deadline_ms) - now;

  if (until_unsure <= 0 || until_unsure >= 2 * quarter)
    return now + quarter;
  int64_t wait = until_unsure - quarter;

  return now + (wait < shortest_wait ? shortest_wait : wait);
}

static int64_t heartbeat_due(const lk_session_lease *lease)
{
  int64_t waiters_deadline = LK_NO_LEASE;

  if (lease->count[LK_LEASE_WAITING] > 0)
    waiters_deadline = lk__lease_deadline_by_evidence(
        lease->evidence, assurance_of_waiters(lease));
  int64_t due_for_waiters = heartbeat_due_for(lease, waiters_deadline);

  if (lease->count[LK_LEASE_HELD] == 0)
    return due_for_waiters;
  int64_t due_for_holders = heartbeat_due_for(lease, lk__lease_deadline(lease));

  return due_for_holders < due_for_waiters ? due_for_holders : due_for_waiters;
}

static bool heartbeat_is_needed(const lk_session_lease *lease)
{
  if (!lk__lease_is_online(lease))
    return false;
  return lk__lease_count_held(lease) > 0 || lease->count[LK_LEASE_WAITING] > 0;
}

static void heartbeat_stop_timer(lk_session_lease *lease)
{
  if (lease->heartbeat.timer_runs)
    lk_timer_stop(lease->client, &lease->heartbeat.timer);
  lease->heartbeat.timer_runs = false;
}

void lk__heartbeat_update_timer(lk_session_lease *lease)
{
  if (!heartbeat_is_needed(lease))
    heartbeat_stop_timer(lease);
  else if (!lease->heartbeat.timer_runs && lease->heartbeat.outstanding == 0)
    heartbeat_start_timer(lease, heartbeat_due(lease));
}

/* When the first heartbeat after a grant is due. It is due at once if the
 * holder would become unsure within a quarter of the session timeout. */
static int64_t first_heartbeat_due(const lk_session_lease *lease)
{
  int64_t now = lk_client_input_ms(lease->client);
  int64_t deadline = lk__lease_deadline(lease);

  if (deadline == LK_NO_LEASE)
    return heartbeat_due_for(lease, deadline);
  int64_t until_unsure = lk__lease_unsure_ms(lease, deadline) - now;

  if (until_unsure > 0 && until_unsure < lk__lease_timeout_ms(lease) / 4)
    return now;
  return heartbeat_due_for(lease, deadline);
}

int64_t lk__heartbeat_after_grant(lk_session_lease *lease)
{
  int64_t due = first_heartbeat_due(lease);
  int64_t timer_fires_at = lease->heartbeat.timer.node.at;

  if (lease->heartbeat.timer_runs && due < timer_fires_at)
    heartbeat_start_timer(lease, due);
  return due;
}

bool lk__heartbeat_now(lk_session_lease *lease)
{
  if (!heartbeat_is_needed(lease) || lease->heartbeat.outstanding > 0)
    return false;
  heartbeat_stop_timer(lease);
  send_heartbeat(lease);
  lk__heartbeat_update_timer(lease);
  return true;
}

/* A heartbeat that would prove hardly anything new waits, once, if it can soon
 * confirm a newer reply. Otherwise that reply is confirmed by the next
 * heartbeat, whose own reply may come too late. Returns whether it waits. */
static bool heartbeat_wait_for_evidence(lk_session_lease *lease)
{
  int64_t now = lk_client_input_ms(lease->client);
  int64_t at_ms = lk__lease_renewal_ms(lease, now);

  if (at_ms <= now || lease->heartbeat.has_waited ||
      lease->count[LK_LEASE_HELD] == 0 || !heartbeat_is_needed(lease))
    return false;
  heartbeat_start_timer(lease, at_ms);
  lease->heartbeat.has_waited = true;
  return true;
}

void lk__heartbeat_on_timer(lk_client *c, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  lease->heartbeat.timer_runs = false;
  if (!heartbeat_wait_for_evidence(lease))
    (void)lk__heartbeat_now(lease);
}

/* A request of the heartbeat has completed. After the last one the next
 * heartbeat is planned. */
static void heartbeat_request_completed(lk_session_lease *lease)
{
  if (lease->heartbeat.outstanding > 0)
    return;
  if (lease->heartbeat.incomplete)
    (void)lk__heartbeat_now(lease);
  else if (lease->heartbeat.throttled && heartbeat_is_needed(lease) &&
           !lease->heartbeat.timer_runs)
    heartbeat_start_timer(lease, lk_client_input_ms(lease->client) +
                                     PAUSE_IF_THROTTLED_MS);
  else
    lk__heartbeat_update_timer(lease);
}

/* ---- needs of the users ------------------------------------------------- */

void lk__heartbeat_set_need(lk_session_lease *lease, lk_contender *ct,
                            lk_lease_need need)
{
  lease->count[ct->lease_user.need]--;
  lease->count[need]++;
  ct->lease_user.need = need;
  lk__lease_note_holder(lease);
  lk__heartbeat_update_timer(lease);
}
