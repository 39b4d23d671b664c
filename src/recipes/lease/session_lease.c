/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/common/sized.h"
#include "recipes/lease/session_lease.h"
#include "recipes/local/local_queue.h"
#include "recipes/queue/holding.h"

/* ---- attempts ---------------------------------------------------------- */

void lk__lease_add_contender(lk_session_lease *k, lk_contender *ct)
{
  lk__safe_list_add(&k->contends, &ct->link);
  lk__lease_ref(k);
}

void lk__lease_remove_contender(lk_session_lease *k, lk_contender *ct)
{
  lk__safe_list_remove(&k->contends, &ct->link);
}

static void for_each(lk_session_lease *k, void (*what)(lk_contender *ct))
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
  lk_session_lease *k = ct->lease;

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

int64_t *lk__lease_scratch(lk_session_lease *k, size_t count)
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

void lk__lease_start_timer(lk_session_lease *k, lk_timer *t, int64_t at_ms)
{
  if (!k->detached && lk_client_state(k->client) != LK_STATE_CLOSED)
    lk_timer_start(k->client, t, at_ms);
}

void lk__lease_stop_timer(lk_session_lease *k, lk_timer *t)
{
  if (!k->detached)
    lk_timer_stop(k->client, t);
}

/* ---- the lease --------------------------------------------------------- */

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

/* A gap above half of the timeout never leaves a quarter: half of what it
 * leaves must do. */
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

void lk__lease_watch_deadline(lk_session_lease *k, const lk_contender *ct)
{
  int64_t at = lk__lease_unsure_ms(k, lk__contender_deadline(ct));

  if (at >= k->watch_at_ms)
    return;
  k->watch_at_ms = at;
  lk__lease_start_timer(k, &k->watchdog, at);
}

static void watch_held(lk_session_lease *k)
{
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_contender(k, ct)) != NULL;) {
    if (ct->state == LK_CONTENDER_HELD)
      lk__lease_watch_deadline(k, ct);
  }
}

static void tell_awaiting(lk_session_lease *k)
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
  lk_session_lease *k = arg;

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
static void look_now(lk_session_lease *k)
{
  k->watch_at_ms = lk_client_now(k->client);
  lk__lease_start_timer(k, &k->watchdog, k->watch_at_ms);
}

static void on_answer(lk_client *c, const lk_reply *a, void *arg)
{
  lk_session_lease *k = arg;
  int64_t deadline = lk__lease_deadline(k);
  bool later = deadline > k->known_deadline_ms;
  bool other_timeout = k->evidence->timeout_ms != k->known_timeout_ms;

  (void)c;
  (void)a;
  lk__lease_check(k); /* no callback is running */
  k->known_deadline_ms = deadline;
  k->known_timeout_ms = k->evidence->timeout_ms;
  if (k->over != 0)
    return;
  if ((k->unsure > 0 || k->awaited) && later)
    look_now(k);
  else if (other_timeout)
    watch_held(k); /* deadlines and margins are others, perhaps earlier */
}

/* ---- the session ------------------------------------------------------- */

bool lk__lease_is_online(const lk_session_lease *k)
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
static void connected(lk_session_lease *k)
{
  for_each(k, leave);
  if (k->held > 0)
    (void)lk__heartbeat_now(k);
  for_each(k, lk__contender_resume);
  lk__heartbeat_plan(k);
}

static void suspended(lk_session_lease *k)
{
  lk__heartbeat_plan(k);
  for_each(k, lk__contender_suspend);
}

static void expired(lk_session_lease *k)
{
  k->known_deadline_ms = LK_NO_LEASE;
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
  lk_session_lease *k = arg;

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

static void stop_timers(lk_session_lease *k)
{
  lk__lease_stop_timer(k, &k->watchdog);
  lk__lease_stop_timer(k, &k->final);
  lk__lease_stop_timer(k, &k->beat);
  k->beat_set = false;
  k->watch_at_ms = INT64_MAX;
}

static void ended(lk_session_lease *k, int err)
{
  k->over = err;
  stop_timers(k);
  for_each(k, close_one);
}

/* Who still listens stops its timers, and those of its owner, when it is told:
 * until then the client is there. */
static void detach(lk_session_lease *k)
{
  lk_client_detach(k->client, &k->listener);
  k->detached = true;
}

static void closed(lk_session_lease *k)
{
  ended(k, LK_ERR_CLOSED);
  lk__local_queues_stop_timers(k);
  k->closed = true;
  if (k->listening == 0)
    detach(k);
}

void lk__lease_attach_listener(lk_session_lease *k, lk_listener *l)
{
  k->listening++;
  lk_client_attach(k->client, l);
}

void lk__lease_detach_listener(lk_session_lease *k, lk_listener *l)
{
  lk_client_detach(k->client, l);
  k->listening--;
}

/* Last of all, when what it was told has been done. */
void lk__lease_listener_done(lk_session_lease *k)
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
  lk_session_lease *k = arg;

  (void)c;
  lk__lease_ref(k);
  k->over = LK_ERR_CLOSED;
  stop_timers(k);
  for_each(k, close_unless_leaving);
  lk__lease_unref(k);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_session_lease *k = arg;

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

/* ---- life -------------------------------------------------------------- */

/* A session lease may be late: the client has had its say already. */
static void join(lk_session_lease *k)
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
  lk__client_attach_first(k->client, &k->listener);
}

/* The client is gone. What locks are left keep the memory. */
static void release_by_client(lk_session_lease *k)
{
  k->detached = true;
  lk__lease_unref(k);
}

static lk_session_lease *make(lk_client *c, const lk_lease_config *config)
{
  const lk_mem *mem = lk_client_mem(c);
  lk_session_lease *k = lk__take(mem, sizeof *k);

  if (k == NULL)
    return NULL;
  k->mem = *mem;
  k->client = c;
  k->config = *config;
  k->margin_ms = config->margin_ms;
  k->refs = 1;
  k->watch_at_ms = INT64_MAX;
  lk__list_init(&k->local_queues);
  lk__safe_list_init(&k->contends);
  k->listener = (lk_listener){
      .state = on_state, .reply = on_answer, .closing = on_closing, .arg = k};
  k->watchdog = (lk_timer){.fire = on_watchdog, .arg = k};
  k->final = (lk_timer){.fire = on_final, .arg = k};
  k->beat = (lk_timer){.fire = lk__heartbeat_fire, .arg = k};
  lk__client_set_evidence_gap(c, config->gap_ms);
  k->evidence = lk__client_evidence(c);
  join(k);
  k->known_deadline_ms = lk__lease_deadline(k);
  k->known_timeout_ms = k->evidence->timeout_ms;
  lk__client_set_lease(c, k, release_by_client);
  return k;
}

lk_session_lease *lk__lease_of(lk_client *c)
{
  static const lk_lease_config defaults = {.size = sizeof defaults};
  lk_session_lease *k = lk__client_lease(c);

  return k == NULL ? make(c, &defaults) : k;
}

void lk__lease_ref(lk_session_lease *k)
{
  k->refs++;
}

void lk__lease_unref(lk_session_lease *k)
{
  lk_mem mem = k->mem;

  if (--k->refs > 0)
    return;
  lk__give(&mem, k->scratch);
  lk__give(&mem, k);
}

/* ---- what users call ---------------------------------------------------- */

static bool is_acceptable(const lk_lease_config *config)
{
  return config->margin_ms >= 0 && config->gap_ms >= 0 &&
         (unsigned)config->assurance <= LK_ASSURE_PING;
}

static bool is_same(const lk_lease_config *a, const lk_lease_config *b)
{
  return a->assurance == b->assurance && a->margin_ms == b->margin_ms &&
         a->gap_ms == b->gap_ms && a->left_behind == b->left_behind &&
         a->arg == b->arg;
}

int lk_lease_configure(lk_client *c, const lk_lease_config *config)
{
  static const lk_sized what = LK_SIZED(lk_lease_config);
  const lk_session_lease *k = lk__client_lease(c);
  lk_lease_config own;

  if (lk__sized_take(c, &what, &own, config) != 0 || !is_acceptable(&own))
    return LK_ERR_BAD_ARGUMENT;
  if (k != NULL)
    return is_same(&k->config, &own) ? 0 : LK_ERR_STATE;
  return make(c, &own) == NULL ? LK_ERR_NO_MEMORY : 0;
}

int64_t lk_lease_deadline(const lk_client *c)
{
  const lk_session_lease *k = lk__client_lease(c);

  return k == NULL
             ? lk__evidence_deadline(lk__client_evidence(c), LK_ASSURE_QUORUM)
             : lk__lease_deadline(k);
}

int lk_lease_set_margin(lk_client *c, int32_t margin_ms)
{
  if (margin_ms < 0)
    return LK_ERR_BAD_ARGUMENT;
  lk_session_lease *k = lk__lease_of(c);

  if (k == NULL)
    return LK_ERR_NO_MEMORY;
  k->margin_ms = margin_ms;
  look_now(k);
  return 0;
}

size_t lk_lease_pending_cleanups(const lk_client *c)
{
  const lk_session_lease *k = lk__client_lease(c);

  return k == NULL ? 0 : k->leaving;
}
