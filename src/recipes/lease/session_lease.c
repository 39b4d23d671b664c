/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/common/sized.h"
#include "recipes/lease/session_lease.h"
#include "recipes/local/local_queue.h"

/* ---- attempts ---------------------------------------------------------- */

void lk__lease_add_contender(lk_keeper *k, lk_contender *ct)
{
  lk__safe_list_add(&k->contends, &ct->link);
  lk__lease_ref(k);
}

void lk__lease_remove_contender(lk_keeper *k, lk_contender *ct)
{
  lk__safe_list_remove(&k->contends, &ct->link);
}

static void for_each(lk_keeper *k, void (*what)(lk_contender *ct))
{
  lk_walk w;

  lk__walk_begin(&w, &k->contends);
  for (lk_link *l; (l = lk__walk_next(&w)) != NULL;) {
    lk_contender *ct = LK_OWNER(l, lk_contender, link);

    lk__contender_ref(ct);
    what(ct);
    lk__contender_unref(ct);
  }
}

/* Who waits for a fixed name has no node, and will be granted by its create. */
static bool is_parked(const lk_contender *ct, lk_contender_state s)
{
  return !lk__contender_is_single_node(ct) && s >= LK_CONTENDER_LISTING &&
         s <= LK_CONTENDER_CHECKING_OWN;
}

static bool is_held(lk_contender_state s)
{
  return s == LK_CONTENDER_HELD || s == LK_CONTENDER_UNSURE;
}

void lk__lease_count_contender(const lk_contender *ct, lk_contender_state from,
                               lk_contender_state to)
{
  lk_keeper *k = ct->lease;

  k->held += is_held(to);
  k->held -= is_held(from);
  k->unsure += to == LK_CONTENDER_UNSURE;
  k->unsure -= from == LK_CONTENDER_UNSURE;
  k->parked += is_parked(ct, to);
  k->parked -= is_parked(ct, from);
  k->leaving += to == LK_CONTENDER_CLEANING_UP;
  k->leaving -= from == LK_CONTENDER_CLEANING_UP;
  lk__heartbeat_plan(k);
}

int64_t *lk__lease_scratch(lk_keeper *k, size_t count)
{
  if (count > SIZE_MAX / sizeof *k->scratch)
    return NULL;
  if (count > k->scratch_count || k->scratch == NULL) {
    size_t room = count < 64 ? 64 : count;
    void *p = k->mem.resize(k->mem.arg, k->scratch, room * sizeof *k->scratch);

    if (p == NULL)
      return NULL;
    k->scratch = p;
    k->scratch_count = room;
  }
  return k->scratch;
}

/* ---- timers ------------------------------------------------------------ */

void lk__lease_start_timer(lk_keeper *k, lk_timer *t, int64_t at_ms)
{
  if (!k->detached && lk_client_state(k->client) != LK_STATE_CLOSED)
    lk_timer_start(k->client, t, at_ms);
}

void lk__lease_stop_timer(lk_keeper *k, lk_timer *t)
{
  if (!k->detached)
    lk_timer_stop(k->client, t);
}

/* ---- the lease --------------------------------------------------------- */

int32_t lk__lease_timeout_ms(const lk_keeper *k)
{
  return k->evidence.timeout_ms > 0 ? k->evidence.timeout_ms
                                    : lk_client_timeout_ms(k->client);
}

int64_t lk__lease_gap_ms(const lk_keeper *k)
{
  return k->config.gap_ms > 0 ? k->config.gap_ms : lk__lease_timeout_ms(k) / 4;
}

int64_t lk__lease_unsure_ms(const lk_keeper *k, int64_t deadline_ms)
{
  int64_t margin = k->config.margin_ms > 0 ? k->config.margin_ms
                                           : lk__lease_timeout_ms(k) / 8;

  return deadline_ms == LK_NO_LEASE ? LK_NO_LEASE : deadline_ms - margin;
}

int64_t lk__lease_deadline(const lk_keeper *k)
{
  return lk__evidence_deadline(&k->evidence, k->config.assurance);
}

/* A gap above half of the timeout never leaves a quarter: half of what it
 * leaves must do. */
static int64_t grant_needs_ms(const lk_keeper *k)
{
  int64_t timeout = lk__lease_timeout_ms(k);
  int64_t spare = (timeout - lk__lease_gap_ms(k)) / 2;

  return spare < timeout / 4 ? spare : timeout / 4;
}

bool lk__lease_may_grant(const lk_keeper *k, int64_t now_ms)
{
  int64_t deadline = lk__lease_deadline(k);

  return deadline != LK_NO_LEASE && now_ms < deadline &&
         deadline - now_ms >= grant_needs_ms(k);
}

void lk__lease_watch_deadline(lk_keeper *k, const lk_contender *ct)
{
  int64_t at = lk__lease_unsure_ms(k, lk__contender_deadline(ct));

  if (at >= k->watch_at_ms)
    return;
  k->watch_at_ms = at;
  lk__lease_start_timer(k, &k->watchdog, at);
}

static void watch_held(lk_keeper *k)
{
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_contender(k, ct)) != NULL;) {
    if (ct->state == LK_CONTENDER_HELD)
      lk__lease_watch_deadline(k, ct);
  }
}

static void tell_awaiting(lk_keeper *k)
{
  if (!k->awaited || !lk__lease_may_grant(k, lk_client_clock(k->client)))
    return;
  k->awaited = false;
  for_each(k, lk__contender_lease_renewed);
}

/* Deadlines move on all the time; the timer looks only when the one it was set
 * for has come. */
static void on_watchdog(lk_client *c, void *arg)
{
  lk_keeper *k = arg;

  (void)c;
  lk__lease_ref(k);
  k->watch_at_ms = INT64_MAX;
  tell_awaiting(k);
  for_each(k, lk__contender_review_lease);
  if (!k->detached)
    watch_held(k);
  lk__lease_unref(k);
}

/* In the next turn, where all may call the user. */
static void look_now(lk_keeper *k)
{
  k->watch_at_ms = lk_client_now(k->client);
  lk__lease_start_timer(k, &k->watchdog, k->watch_at_ms);
}

static void on_answer(lk_client *c, const lk_reply *a, void *arg)
{
  lk_keeper *k = arg;
  int64_t before = lk__lease_deadline(k);
  int32_t timeout_before = k->evidence.timeout_ms;

  lk__lease_check(k); /* no callback is running */
  if (a->proof == LK_EVIDENCE_NONE)
    return;
  if (a->zxid > 0 && (uint64_t)a->zxid > k->seen_zxid)
    k->seen_zxid = (uint64_t)a->zxid;
  if (k->over != 0)
    return;
  lk__evidence_add(&k->evidence, a, lk_client_timeout_ms(c));
  if ((k->unsure > 0 || k->awaited) && lk__lease_deadline(k) > before)
    look_now(k);
  else if (k->evidence.timeout_ms != timeout_before)
    watch_held(k); /* deadlines and margins are others, perhaps earlier */
}

/* ---- the session ------------------------------------------------------- */

bool lk__lease_is_online(const lk_keeper *k)
{
  return k->over == 0 && lk_client_state(k->client) == LK_STATE_CONNECTED;
}

static void leave(lk_contender *ct)
{
  if (ct->state == LK_CONTENDER_CLEANING_UP)
    lk__contender_resume(ct);
}

/* What is to be deleted goes first: a new attempt would queue behind it. Then
 * what is held, then who waits. */
static void connected(lk_keeper *k)
{
  for_each(k, leave);
  if (k->held > 0)
    (void)lk__heartbeat_now(k);
  for_each(k, lk__contender_resume);
  lk__heartbeat_plan(k);
}

static void suspended(lk_keeper *k)
{
  lk__heartbeat_plan(k);
  for_each(k, lk__contender_suspend);
}

/* The next session may be one of another ensemble, or of the same after it was
 * wiped: its zxids cannot be compared with those seen so far. */
static void expired(lk_keeper *k)
{
  lk__evidence_end(&k->evidence);
  k->seen_zxid = 0;
  lk__heartbeat_plan(k);
  lk__lease_start_timer(k, &k->final, lk_client_now(k->client));
  for_each(k, lk__contender_session_expired);
}

static void end_waiting(lk_contender *ct)
{
  if (ct->state == LK_CONTENDER_PAUSED)
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
}

/* Unless a new session follows an expiry at once, none will. */
static void on_final(lk_client *c, void *arg)
{
  lk_keeper *k = arg;

  if (lk_client_state(c) != LK_STATE_EXPIRED)
    return;
  lk__lease_ref(k);
  k->over = LK_ERR_CLOSED;
  for_each(k, end_waiting);
  lk__lease_unref(k);
}

static void close_one(lk_contender *ct)
{
  lk__contender_client_closed(ct, ct->lease->over);
}

static void stop_timers(lk_keeper *k)
{
  lk__lease_stop_timer(k, &k->watchdog);
  lk__lease_stop_timer(k, &k->final);
  lk__lease_stop_timer(k, &k->beat);
  k->beat_set = false;
  k->watch_at_ms = INT64_MAX;
}

static void ended(lk_keeper *k, int err)
{
  k->over = err;
  lk__evidence_end(&k->evidence);
  stop_timers(k);
  for_each(k, close_one);
}

/* Who still listens stops its timers, and those of its owner, when it is told:
 * until then the client is there. */
static void detach(lk_keeper *k)
{
  if (!k->freed)
    lk_client_detach(k->client, &k->listener);
  k->detached = true;
}

static void closed(lk_keeper *k)
{
  ended(k, LK_ERR_CLOSED);
  lk__local_queues_stop_timers(k);
  k->closed = true;
  if (k->listening == 0)
    detach(k);
}

void lk__lease_attach_listener(lk_keeper *k, lk_listener *l)
{
  k->listening++;
  lk_client_attach(k->client, l);
}

void lk__lease_detach_listener(lk_keeper *k, lk_listener *l)
{
  lk_client_detach(k->client, l);
  k->listening--;
}

/* Last of all, when what it was told has been done. */
void lk__lease_listener_done(lk_keeper *k)
{
  if (k->closed && !k->detached && k->listening == 0)
    detach(k);
}

static void close_unless_leaving(lk_contender *ct)
{
  if (ct->state != LK_CONTENDER_CLEANING_UP)
    close_one(ct);
}

/* The server may execute closeSession, and grant to others, before its reply
 * arrives: nothing is held from now on. Deletes under way go on. */
static void on_closing(lk_client *c, void *arg)
{
  lk_keeper *k = arg;

  (void)c;
  lk__lease_ref(k);
  k->over = LK_ERR_CLOSED;
  lk__evidence_end(&k->evidence);
  stop_timers(k);
  for_each(k, close_unless_leaving);
  lk__lease_unref(k);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_keeper *k = arg;

  (void)c;
  (void)err;
  lk__lease_ref(k);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_READ_ONLY: break;
  case LK_STATE_CONNECTED: connected(k); break;
  case LK_STATE_SUSPENDED: suspended(k); break;
  case LK_STATE_EXPIRED: expired(k); break;
  case LK_STATE_AUTH_FAILED: ended(k, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: closed(k); break;
  }
  lk__lease_unref(k);
}

/* ---- other keepers of the client --------------------------------------- */

static void leave_client(lk_keeper *k)
{
  if (k->present)
    lk_client_detach(k->client, &k->presence);
  k->present = false;
}

static void on_presence(lk_client *c, lk_state state, int err, void *arg)
{
  (void)c;
  (void)err;
  if (state == LK_STATE_CLOSED)
    leave_client(arg);
}

static void enter_client(lk_keeper *k)
{
  k->presence = (lk_listener){.state = on_presence, .arg = k};
  k->present = true;
  lk_client_attach(k->client, &k->presence);
}

/* The keeper behind `k` among those of its client, the first one behind the
 * last. */
static const lk_keeper *next_keeper(const lk_keeper *k)
{
  const lk_listener *l = &k->presence;

  if (!k->present)
    return k;
  do {
    if (l->next != NULL) {
      l = l->next;
    } else {
      while (l->prev != NULL)
        l = l->prev;
    }
  } while (l->state != on_presence);
  return l->arg;
}

lk_contender *lk__lease_next_of_all(const lk_keeper *k, const lk_contender *ct)
{
  const lk_keeper *at = ct == NULL ? k : ct->lease;
  lk_contender *next = lk__lease_next_contender(at, ct);

  while (next == NULL && (at = next_keeper(at)) != k)
    next = lk__lease_next_contender(at, NULL);
  return next;
}

/* ---- life -------------------------------------------------------------- */

static bool acceptable(const lk_keeper_config *config)
{
  return config->margin_ms >= 0 && config->gap_ms >= 0 &&
         (unsigned)config->assurance < LK_EVIDENCE_LEVELS;
}

/* A keeper may be late: the client has had its say already. */
static void join(lk_keeper *k)
{
  switch (lk_client_state(k->client)) {
  case LK_STATE_EXPIRED:
    lk__lease_start_timer(k, &k->final, lk_client_now(k->client));
    break;
  case LK_STATE_AUTH_FAILED: k->over = LK_ERR_AUTH_FAILED; break;
  case LK_STATE_CLOSED: /* it tells nothing any more, also when it is freed */
    k->over = LK_ERR_CLOSED;
    k->closed = true;
    k->detached = true;
    return;
  case LK_STATE_CONNECTING:
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
  case LK_STATE_SUSPENDED: break;
  }
  lk_client_attach(k->client, &k->listener);
  enter_client(k);
}

int lk_keeper_new(lk_keeper **out, lk_client *client,
                  const lk_keeper_config *config)
{
  static const lk_sized what = LK_SIZED(lk_keeper_config);
  const lk_mem *mem = lk_client_mem(client);
  lk_keeper_config own;

  *out = NULL;
  if (lk__sized_take(client, &what, &own, config) != 0 || !acceptable(&own))
    return LK_ERR_BAD_ARGUMENT;
  lk_keeper *k = lk__take(mem, sizeof *k);

  if (k == NULL)
    return LK_ERR_NO_MEMORY;
  k->mem = *mem;
  k->client = client;
  k->config = own;
  k->refs = 1;
  k->watch_at_ms = INT64_MAX;
  lk__list_init(&k->local_queues);
  lk__safe_list_init(&k->contends);
  k->listener = (lk_listener){
      .state = on_state, .reply = on_answer, .closing = on_closing, .arg = k};
  k->watchdog = (lk_timer){.fire = on_watchdog, .arg = k};
  k->final = (lk_timer){.fire = on_final, .arg = k};
  k->beat = (lk_timer){.fire = lk__heartbeat_fire, .arg = k};
  lk__evidence_init(&k->evidence, own.gap_ms);
  join(k);
  *out = k;
  return 0;
}

void lk__lease_ref(lk_keeper *k)
{
  k->refs++;
}

void lk__lease_unref(lk_keeper *k)
{
  lk_mem mem = k->mem;

  if (--k->refs > 0)
    return;
  leave_client(k);
  lk__give(&mem, k->scratch);
  lk__give(&mem, k);
}

/* What is left behind goes on by itself until its requests have ended. */
void lk_keeper_free(lk_keeper *k)
{
  if (k == NULL || k->freed)
    return;
  k->freed = true;
  if (!k->detached) {
    stop_timers(k);
    lk_client_detach(k->client, &k->listener);
    for_each(k, leave);
  }
  lk__lease_unref(k);
}

lk_client *lk_keeper_client(const lk_keeper *k)
{
  return k->client;
}

int64_t lk_keeper_deadline(const lk_keeper *k)
{
  return lk__lease_deadline(k);
}

void lk_keeper_set_margin(lk_keeper *k, int32_t margin_ms)
{
  k->config.margin_ms = margin_ms;
  if (!k->detached)
    look_now(k);
}

size_t lk_keeper_unfinished(const lk_keeper *k)
{
  return k->leaving;
}
