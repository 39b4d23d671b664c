/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/own_watch.h"

/**
 * @file
 * The beat: what a session asks its server for, a quarter of its timeout after
 * the answer to the last, so that there is proof of its lease: while it holds
 * something a check of all it holds, or a sync. While it only waits, a sync,
 * since thousands of waiters must not each cost a transaction; but a check
 * where one of its nodes is the next to hold.
 */

enum { MULTI_OPS = 64, MULTI_BYTES = 128 * 1024, REST_MS = 100 };

static void on_beat_end(lk_session_lease *k);

static bool holds(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_HELD || ct->state == LK_CONTENDER_UNSURE;
}

/* ---- checks ------------------------------------------------------------ */

/* One of those checked in the multi. Each callback may end others. */
static void judge_one(lk_contender *ct, int err)
{
  if (err == LK_ERR_NO_AUTH)
    lk__contender_own_unreadable(ct);
  lk__contender_own_checked(ct, lk__contender_check_result(ct, err));
}

static void judge_multi(lk_session_lease *k, size_t chunk, int err,
                        const lk_op_result *results, size_t count)
{
  bool named = lk__check_result_of(err) != LK_CHECK_UNKNOWN;
  uint64_t beat = k->beat_no;
  lk_walk w;

  lk__walk_begin(&w, &k->contends);
  for (lk_link *l; (l = lk__walk_next(&w)) != NULL;) {
    lk_contender *ct = LK_OWNER(l, lk_contender, link);

    if (!holds(ct) || ct->holding.heartbeat != beat ||
        ct->holding.heartbeat_chunk != chunk)
      continue;
    int own = ct->holding.heartbeat_index < count
                  ? results[ct->holding.heartbeat_index].err
                  : err;

    if (own == LK_ERR_RUNTIME_INCONSISTENCY && named)
      k->beat_again = true;
    lk__contender_ref(ct);
    judge_one(ct, own);
    lk__contender_unref(ct);
  }
}

static void on_multi(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  lk_session_lease *k = arg;

  (void)c;
  k->beat_out--;
  k->beat_rest = k->beat_rest || err == LK_ERR_THROTTLED;
  judge_multi(k, k->beat_chunk++, err, results, count);
  on_beat_end(k);
  lk__lease_unref(k);
}

static bool send_checks(lk_session_lease *k, const lk_op *ops, size_t count)
{
  if (count == 0)
    return true;
  if (lk_multi(k->client, ops, count, NULL, on_multi, k) != 0)
    return false; /* the next beat tries again */
  k->beat_out++;
  lk__lease_ref(k);
  return true;
}

/* A node that cannot be read makes its multi fail, though the node is there:
 * it comes last in its multi. */
static void ask_checks(lk_session_lease *k)
{
  lk_op ops[MULTI_OPS];
  size_t count = 0;
  size_t bytes = 0;
  size_t chunk = 0;

  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_contender(k, ct)) != NULL;) {
    if (!holds(ct))
      continue;
    ct->holding.heartbeat = k->beat_no;
    ct->holding.heartbeat_chunk = chunk;
    ct->holding.heartbeat_index = count;
    ops[count++] = lk_op_check(ct->own.path, -1);
    bytes += strlen(ct->own.path);
    if (count < MULTI_OPS && bytes < MULTI_BYTES && !ct->own.unreadable)
      continue;
    if (!send_checks(k, ops, count))
      return;
    chunk++;
    count = 0;
    bytes = 0;
  }
  (void)send_checks(k, ops, count);
}

/* ---- sync -------------------------------------------------------------- */

static void on_sync(lk_client *c, int err, void *arg)
{
  lk_session_lease *k = arg;

  (void)c;
  k->beat_out--;
  k->beat_rest = k->beat_rest || err == LK_ERR_THROTTLED;
  on_beat_end(k);
  lk__lease_unref(k);
}

static void ask_sync(lk_session_lease *k)
{
  if (lk_sync(k->client, "/", NULL, on_sync, k) != 0)
    return;
  k->beat_out++;
  lk__lease_ref(k);
}

/* ---- who waits --------------------------------------------------------- */

/* It has exactly one predecessor, whose deletion may grant. There is no other
 * proof of the lease then than what was asked for before. */
static bool is_next(const lk_contender *ct)
{
  return ct->state >= LK_CONTENDER_SETTING_WATCHES &&
         ct->state <= LK_CONTENDER_READING_PREDECESSORS &&
         ct->predecessors.count == 1 && !ct->role->counts &&
         !ct->config->passing && !lk__contender_is_single_node(ct);
}

/* One that is; NULL: none is. */
static const lk_contender *next_to_hold(const lk_session_lease *k)
{
  const lk_contender *ct = NULL;

  do
    ct = lk__lease_next_contender(k, ct);
  while (ct != NULL && !is_next(ct));
  return ct;
}

/* What the beat of those who wait proves. */
static lk_assurance waiting_level(const lk_session_lease *k)
{
  lk_assurance level = k->config.assurance;

  return level == LK_ASSURE_QUORUM && next_to_hold(k) == NULL ? LK_ASSURE_SYNC
                                                              : level;
}

static void on_waiting_check(lk_client *c, int err, const lk_op_result *results,
                             size_t count, void *arg)
{
  (void)results;
  (void)count;
  on_sync(c, err, arg);
}

/* Whether own stands is not looked at: it is watched. */
static void ask_check(lk_session_lease *k, const lk_contender *ct)
{
  lk_op check = lk_op_check(ct->own.path, -1);

  if (lk_multi(k->client, &check, 1, NULL, on_waiting_check, k) != 0)
    return;
  k->beat_out++;
  lk__lease_ref(k);
}

static void beat_waiting(lk_session_lease *k)
{
  const lk_contender *next =
      k->config.assurance == LK_ASSURE_QUORUM ? next_to_hold(k) : NULL;

  if (next != NULL)
    ask_check(k, next);
  else
    ask_sync(k);
}

/* ---- when -------------------------------------------------------------- */

static void beat(lk_session_lease *k)
{
  k->beat_no++;
  k->beat_chunk = 0;
  k->beat_again = false;
  k->beat_rest = false;
  if (k->held == 0) {
    beat_waiting(k);
    return;
  }
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_contender(k, ct)) != NULL;) {
    if (holds(ct))
      lk__contender_supervise_own(ct);
  }
  switch (k->config.assurance) {
  case LK_ASSURE_QUORUM: ask_checks(k); break;
  case LK_ASSURE_SYNC: ask_sync(k); break;
  case LK_ASSURE_PING: break; /* the client pings */
  }
}

static void start(lk_session_lease *k, int64_t at_ms)
{
  lk__lease_start_timer(k, &k->beat, at_ms);
  k->beat_set = true;
}

/* A quarter of the session timeout from now; or sooner, so that as much is left
 * for the answer before a lease until `until_ms` becomes unsure, where what it
 * rests on is older than usual. */
static int64_t due_for(const lk_session_lease *k, int64_t until_ms)
{
  int64_t now = lk_client_now(k->client);
  int64_t quarter = lk__lease_timeout_ms(k) / 4;

  if (until_ms == LK_NO_LEASE)
    return now + quarter;
  int64_t left = lk__lease_unsure_ms(k, until_ms) - now - quarter;

  if (left <= -quarter || left >= quarter)
    return now + quarter;
  return now + (left < quarter / 4 ? quarter / 4 : left);
}

static int64_t due(const lk_session_lease *k)
{
  int64_t waits = LK_NO_LEASE;

  if (k->parked > 0)
    waits = lk__evidence_deadline(k->evidence, waiting_level(k));
  int64_t at = due_for(k, waits);

  if (k->held == 0)
    return at;
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_contender(k, ct)) != NULL;) {
    int64_t his = ct->state == LK_CONTENDER_HELD
                      ? due_for(k, lk__contender_deadline(ct))
                      : at;

    if (his < at)
      at = his;
  }
  return at;
}

static bool wanted(const lk_session_lease *k)
{
  if (k->detached || !lk__lease_is_online(k))
    return false;
  return k->held > 0 ||
         (k->parked > 0 && k->config.assurance != LK_ASSURE_PING);
}

void lk__heartbeat_plan(lk_session_lease *k)
{
  if (!wanted(k)) {
    if (k->beat_set)
      lk__lease_stop_timer(k, &k->beat);
    k->beat_set = false;
  } else if (!k->beat_set && k->beat_out == 0) {
    start(k, due(k));
  }
}

/* A lease that leaves less than a quarter until its holder becomes unsure is
 * renewed at once. */
static int64_t first_due(const lk_session_lease *k)
{
  int64_t now = lk_client_now(k->client);
  int64_t deadline = lk__lease_deadline(k);

  if (deadline == LK_NO_LEASE)
    return due_for(k, deadline);
  int64_t left = lk__lease_unsure_ms(k, deadline) - now;

  if (left > 0 && left < lk__lease_timeout_ms(k) / 4)
    return now;
  return due_for(k, deadline);
}

void lk__heartbeat_granted(lk_contender *ct)
{
  lk_session_lease *k = ct->lease;
  int64_t at = first_due(k);

  if (at < ct->holding.watch_due_ms)
    ct->holding.watch_due_ms = at;
  if (k->beat_set && at < k->beat.node.at)
    start(k, at);
}

void lk__heartbeat_put_off(lk_session_lease *k)
{
  if (k->beat_set && k->held == 1)
    start(k, due(k));
}

bool lk__heartbeat_now(lk_session_lease *k)
{
  if (!wanted(k) || k->beat_out > 0)
    return false;
  if (k->beat_set)
    lk__lease_stop_timer(k, &k->beat);
  k->beat_set = false;
  beat(k);
  lk__heartbeat_plan(k);
  return true;
}

void lk__heartbeat_fire(lk_client *c, void *arg)
{
  lk_session_lease *k = arg;

  (void)c;
  k->beat_set = false;
  (void)lk__heartbeat_now(k);
}

/* One of a beat's requests has ended. */
static void on_beat_end(lk_session_lease *k)
{
  if (k->beat_out > 0)
    return;
  if (k->beat_again)
    (void)lk__heartbeat_now(k);
  else if (k->beat_rest && wanted(k) && !k->beat_set)
    start(k, lk_client_now(k->client) + REST_MS);
  else
    lk__heartbeat_plan(k);
}
