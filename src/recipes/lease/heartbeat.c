/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/heartbeat.h"

/**
 * @file
 * The heartbeat: a request that is sent a quarter of the session timeout after
 * the last reply and renews the lease. A client that holds locks sends checks
 * of all held nodes, or a sync. A client that only waits sends a sync, since
 * thousands of waiters must not each cost a transaction. If one of its nodes is
 * the next to hold, it sends a check of that node instead.
 */

/* One multi has at most so many checks. It may exceed the number of bytes by
 * one path. Servers refuse requests above jute.maxbuffer, 1 MiB by default. */
enum { MULTI_OPS = 64, MULTI_BYTES = 128 * 1024 };

/* The pause after LK_ERR_THROTTLED. */
enum { PAUSE_MS = 100 };

static void heartbeat_request_completed(lk_session_lease *lease);

/* ---- checks ------------------------------------------------------------ */

/* Whether `err`, the error of a multi, is that of one of its operations. Any
 * other error means that the multi failed as a whole. */
static bool error_is_of_operation(int err)
{
  return err == 0 || err == LK_ERR_BAD_VERSION || err == LK_ERR_NO_AUTH ||
         err == LK_ERR_NO_NODE;
}

/* Reports to each user the result of its check in the multi with the index
 * `multi`. A check behind a failed one was not executed: then `incomplete` asks
 * for another heartbeat. Each callback may remove other users. */
static void report_checks(lk_session_lease *lease, size_t multi, int err,
                          const lk_op_result *results, size_t count)
{
  uint64_t number = lease->heartbeat.number;
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &lease->users);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lease_user *u = LK_OWNER(l, lk_lease_user, link);

    if (!lk__lease_user_holds(u) || u->heartbeat != number || u->multi != multi)
      continue;
    int own = u->operation < count ? results[u->operation].err : err;

    if (own == LK_ERR_RUNTIME_INCONSISTENCY && error_is_of_operation(err))
      lease->heartbeat.incomplete = true;
    u->kind->ref(u);
    u->kind->checked(u, own);
    u->kind->unref(u);
  }
}

static void on_checks(lk_client *c, int err, const lk_op_result *results,
                      size_t count, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  lease->heartbeat.requests--;
  lease->heartbeat.throttled =
      lease->heartbeat.throttled || err == LK_ERR_THROTTLED;
  report_checks(lease, lease->heartbeat.replied++, err, results, count);
  heartbeat_request_completed(lease);
  lk__lease_unref(lease);
}

static bool send_checks(lk_session_lease *lease, const lk_op *ops, size_t count)
{
  if (count == 0)
    return true;
  if (lk_multi(lease->client, ops, count, NULL, on_checks, lease) != 0)
    return false; /* the next heartbeat tries again */
  lease->heartbeat.requests++;
  lk__lease_ref(lease);
  return true;
}

/* Sends checks of all held nodes, in as many multis as needed. The check of a
 * node that cannot be read fails even though the node exists, and the server
 * does not execute the operations behind it. So such a check is the last of its
 * multi. */
static void send_checks_of_held(lk_session_lease *lease)
{
  lk_op ops[MULTI_OPS];
  size_t count = 0;
  size_t bytes = 0;
  size_t multi = 0;

  for (lk_lease_user *u = NULL; (u = lk__lease_next_user(lease, u)) != NULL;) {
    bool unreadable;

    if (!lk__lease_user_holds(u))
      continue;
    const char *node = u->kind->node(u, &unreadable);

    u->heartbeat = lease->heartbeat.number;
    u->multi = multi;
    u->operation = count;
    ops[count++] = lk_op_check(node, -1);
    bytes += strlen(node);
    if (count < MULTI_OPS && bytes < MULTI_BYTES && !unreadable)
      continue;
    if (!send_checks(lease, ops, count))
      return;
    multi++;
    count = 0;
    bytes = 0;
  }
  (void)send_checks(lease, ops, count);
}

/* ---- sync -------------------------------------------------------------- */

static void on_heartbeat_sync(lk_client *c, int err, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  lease->heartbeat.requests--;
  lease->heartbeat.throttled =
      lease->heartbeat.throttled || err == LK_ERR_THROTTLED;
  heartbeat_request_completed(lease);
  lk__lease_unref(lease);
}

static void send_sync(lk_session_lease *lease)
{
  if (lk_sync(lease->client, "/", NULL, on_heartbeat_sync, lease) != 0)
    return;
  lease->heartbeat.requests++;
  lk__lease_ref(lease);
}

/* ---- while nothing is held ---------------------------------------------- */

/* Returns a waiter with one predecessor, or NULL if there is none. The deletion
 * of that predecessor may grant the lock at once, and such a grant needs a
 * lease that was proven before. */
static lk_lease_user *next_to_hold(const lk_session_lease *lease)
{
  lk_lease_user *u = NULL;

  do
    u = lk__lease_next_user(lease, u);
  while (u != NULL && !u->kind->is_next(u));
  return u;
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
  on_heartbeat_sync(c, err, arg);
}

/* The result is ignored: the watch on the node reports its deletion. */
static void send_check_of_waiter(lk_session_lease *lease, lk_lease_user *u)
{
  bool unreadable;
  lk_op check = lk_op_check(u->kind->node(u, &unreadable), -1);

  if (lk_multi(lease->client, &check, 1, NULL, on_waiting_check, lease) != 0)
    return;
  lease->heartbeat.requests++;
  lk__lease_ref(lease);
}

static void heartbeat_of_waiters(lk_session_lease *lease)
{
  lk_lease_user *next =
      lease->config.assurance == LK_ASSURE_QUORUM ? next_to_hold(lease) : NULL;

  if (next != NULL)
    send_check_of_waiter(lease, next);
  else
    send_sync(lease);
}

static void heartbeat_of_holders(lk_session_lease *lease)
{
  for (lk_lease_user *u = NULL; (u = lk__lease_next_user(lease, u)) != NULL;) {
    if (lk__lease_user_holds(u))
      u->kind->supervise(u);
  }
  switch (lease->config.assurance) {
  case LK_ASSURE_QUORUM: send_checks_of_held(lease); break;
  case LK_ASSURE_SYNC: send_sync(lease); break;
  case LK_ASSURE_PING: break; /* the client pings */
  }
}

/* ---- when -------------------------------------------------------------- */

static void send_heartbeat(lk_session_lease *lease)
{
  lease->heartbeat.number++;
  lease->heartbeat.replied = 0;
  lease->heartbeat.incomplete = false;
  lease->heartbeat.throttled = false;
  if (lk__lease_count_held(lease) == 0)
    heartbeat_of_waiters(lease);
  else
    heartbeat_of_holders(lease);
}

static void heartbeat_start_timer(lk_session_lease *lease, int64_t at_ms)
{
  lk__lease_start_timer(lease, &lease->heartbeat.timer, at_ms);
  lease->heartbeat.planned = true;
}

/* When the heartbeat is due that renews a lease until `until_ms`: a quarter of
 * the session timeout from now. It is due earlier if the holder would become
 * unsure within half of the timeout, so that the reply has a quarter of the
 * timeout to arrive. It is due a sixteenth of the timeout from now at the
 * earliest. */
static int64_t heartbeat_due_for(const lk_session_lease *lease,
                                 int64_t until_ms)
{
  int64_t now = lk_client_input_ms(lease->client);
  int64_t quarter = lk__lease_timeout_ms(lease) / 4;

  if (until_ms == LK_NO_LEASE)
    return now + quarter;
  int64_t left = lk__lease_unsure_ms(lease, until_ms) - now - quarter;

  if (left <= -quarter || left >= quarter)
    return now + quarter;
  return now + (left < quarter / 4 ? quarter / 4 : left);
}

static int64_t heartbeat_due(const lk_session_lease *lease)
{
  int64_t waits = LK_NO_LEASE;

  if (lease->count[LK_LEASE_WAITING] > 0)
    waits = lk__evidence_deadline(lease->evidence, assurance_of_waiters(lease));
  int64_t at = heartbeat_due_for(lease, waits);

  if (lease->count[LK_LEASE_HELD] == 0)
    return at;
  int64_t held = heartbeat_due_for(lease, lk__lease_deadline(lease));

  return held < at ? held : at;
}

static bool heartbeat_is_needed(const lk_session_lease *lease)
{
  if (lease->life.detached || !lk__lease_is_online(lease))
    return false;
  return lk__lease_count_held(lease) > 0 ||
         (lease->count[LK_LEASE_WAITING] > 0 &&
          lease->config.assurance != LK_ASSURE_PING);
}

static void heartbeat_stop_timer(lk_session_lease *lease)
{
  if (lease->heartbeat.planned)
    lk__lease_stop_timer(lease, &lease->heartbeat.timer);
  lease->heartbeat.planned = false;
}

void lk__heartbeat_plan(lk_session_lease *lease)
{
  if (!heartbeat_is_needed(lease))
    heartbeat_stop_timer(lease);
  else if (!lease->heartbeat.planned && lease->heartbeat.requests == 0)
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
  int64_t left = lk__lease_unsure_ms(lease, deadline) - now;

  if (left > 0 && left < lk__lease_timeout_ms(lease) / 4)
    return now;
  return heartbeat_due_for(lease, deadline);
}

int64_t lk__heartbeat_granted(lk_session_lease *lease)
{
  int64_t at = first_heartbeat_due(lease);

  if (lease->heartbeat.planned && at < lease->heartbeat.timer.node.at)
    heartbeat_start_timer(lease, at);
  return at;
}

void lk__heartbeat_put_off(lk_session_lease *lease)
{
  if (lease->heartbeat.planned && lk__lease_count_held(lease) == 1)
    heartbeat_start_timer(lease, heartbeat_due(lease));
}

bool lk__heartbeat_now(lk_session_lease *lease)
{
  if (!heartbeat_is_needed(lease) || lease->heartbeat.requests > 0)
    return false;
  heartbeat_stop_timer(lease);
  send_heartbeat(lease);
  lk__heartbeat_plan(lease);
  return true;
}

void lk__heartbeat_on_timer(lk_client *c, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  lease->heartbeat.planned = false;
  (void)lk__heartbeat_now(lease);
}

/* A request of the heartbeat has completed. After the last one the next
 * heartbeat is planned. */
static void heartbeat_request_completed(lk_session_lease *lease)
{
  if (lease->heartbeat.requests > 0)
    return;
  if (lease->heartbeat.incomplete)
    (void)lk__heartbeat_now(lease);
  else if (lease->heartbeat.throttled && heartbeat_is_needed(lease) &&
           !lease->heartbeat.planned)
    heartbeat_start_timer(lease, lk_client_input_ms(lease->client) + PAUSE_MS);
  else
    lk__heartbeat_plan(lease);
}

/* ---- needs of the users ------------------------------------------------- */

void lk__lease_set_need(lk_session_lease *lease, lk_lease_user *u,
                        lk_lease_need need)
{
  lease->count[u->need]--;
  lease->count[need]++;
  u->need = need;
  lk__heartbeat_plan(lease);
}
