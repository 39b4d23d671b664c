/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/config_copy.h"
#include "recipes/common/memory.h"
#include "recipes/lease/session_lease.h"

#include <stdio.h>
#include <stdlib.h>

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

void lk__lease_set_need(lk_session_lease *k, lk_lease_user *u,
                        lk_lease_need need)
{
  k->count[u->need]--;
  k->count[need]++;
  u->need = need;
  lk__heartbeat_plan(k);
}

static void for_each_user(lk_session_lease *k,
                          void (*what)(lk_session_lease *k, lk_lease_user *u))
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

#ifdef LK_DEBUG
/* No callback is running here, so a contender that waits for nothing is stuck.
 */
static void lease_check_users(const lk_session_lease *k)
{
  for (lk_lease_user *u = NULL; (u = lk__lease_next_user(k, u)) != NULL;) {
    bool unreadable;

    if (!u->kind->is_stuck(u))
      continue;
    fprintf(stderr, "latchkey: the contender of %s waits for nothing\n",
            u->kind->node(u, &unreadable));
    abort();
  }
}
#else
static void lease_check_users(const lk_session_lease *k)
{
  (void)k;
}
#endif

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

/* ---- timers ------------------------------------------------------------ */

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
  for_each_user(k, notify_renewed);
}

static void review_user(lk_session_lease *k, lk_lease_user *u)
{
  (void)k;
  u->kind->review(u);
}

/* Each reply moves the deadline, but not the timer: when the timer fires, users
 * compare the deadline as it is by then. */
static void on_watchdog(lk_client *c, void *arg)
{
  lk_session_lease *k = arg;

  (void)c;
  lk__lease_ref(k);
  k->watch_at_ms = INT64_MAX;
  notify_awaiting(k);
  for_each_user(k, review_user);
  if (!k->life.detached)
    watch_held(k);
  lk__lease_unref(k);
}

/* In the next turn of the loop, where callbacks may be invoked. */
static void lease_review_soon(lk_session_lease *k)
{
  k->watch_at_ms = lk_client_input_ms(k->client);
  lk__lease_start_timer(k, &k->watchdog, k->watch_at_ms);
}

static void lease_on_reply(lk_client *c, const lk_reply *a, void *arg)
{
  lk_session_lease *k = arg;
  int64_t deadline = lk__lease_deadline(k);
  bool later = deadline > k->known_deadline_ms;
  bool other_timeout = k->evidence->timeout_ms != k->known_timeout_ms;

  (void)c;
  (void)a;
  lease_check_users(k);
  k->known_deadline_ms = deadline;
  k->known_timeout_ms = k->evidence->timeout_ms;
  if (k->over != 0)
    return;
  if ((k->count[LK_LEASE_UNSURE] > 0 || k->awaited) && later)
    lease_review_soon(k);
  else if (other_timeout)
    watch_held(k); /* deadlines have moved, perhaps to an earlier time */
}

/* ---- the session ------------------------------------------------------- */

bool lk__lease_is_online(const lk_session_lease *k)
{
  return k->over == 0 && lk_client_state(k->client) == LK_STATE_CONNECTED;
}

static void resume_user(lk_session_lease *k, lk_lease_user *u)
{
  (void)k;
  u->kind->connected(u);
}

static void resume_cleanup(lk_session_lease *k, lk_lease_user *u)
{
  if (u->need == LK_LEASE_CLEANUP)
    resume_user(k, u);
}

/* Deletes are sent first: a new contender would queue behind their nodes. The
 * checks of held nodes follow, then the requests of waiters. */
static void on_connected(lk_session_lease *k)
{
  for_each_user(k, resume_cleanup);
  if (lk__lease_count_held(k) > 0)
    (void)lk__heartbeat_now(k);
  for_each_user(k, resume_user);
  lk__heartbeat_plan(k);
}

static void suspend_user(lk_session_lease *k, lk_lease_user *u)
{
  (void)k;
  u->kind->suspended(u);
}

static void on_suspended(lk_session_lease *k)
{
  lk__heartbeat_plan(k);
  for_each_user(k, suspend_user);
}

static void expire_user(lk_session_lease *k, lk_lease_user *u)
{
  (void)k;
  u->kind->expired(u);
}

static void on_expired(lk_session_lease *k)
{
  k->known_deadline_ms = LK_NO_LEASE;
  lk__heartbeat_plan(k);
  lk__lease_start_timer(k, &k->life.no_session, lk_client_input_ms(k->client));
  for_each_user(k, expire_user);
}

static void end_user(lk_session_lease *k, lk_lease_user *u)
{
  (void)k;
  u->kind->no_new_session(u);
}

/* The client starts a new session at once after an expiry, or never. */
static void on_no_session(lk_client *c, void *arg)
{
  lk_session_lease *k = arg;

  if (lk_client_state(c) != LK_STATE_EXPIRED)
    return;
  lk__lease_ref(k);
  k->over = LK_ERR_CLOSED;
  for_each_user(k, end_user);
  lk__lease_unref(k);
}

static void close_user(lk_session_lease *k, lk_lease_user *u)
{
  u->kind->closed(u, k->over);
}

static void stop_timers(lk_session_lease *k)
{
  lk__lease_stop_timer(k, &k->watchdog);
  lk__lease_stop_timer(k, &k->life.no_session);
  lk__lease_stop_timer(k, &k->heartbeat.timer);
  k->heartbeat.planned = false;
  k->watch_at_ms = INT64_MAX;
}

static void lease_end(lk_session_lease *k, int err)
{
  k->over = err;
  stop_timers(k);
  for_each_user(k, close_user);
}

/* From here on no function of the client is called. Acquisitions with a
 * listener of their own stop timers when they are notified of CLOSED, so the
 * session lease is detached only after all of them. */
static void lease_detach_client(lk_session_lease *k)
{
  lk_client_detach(k->client, &k->life.listener);
  k->life.detached = true;
}

static void lease_close(lk_session_lease *k)
{
  lease_end(k, LK_ERR_CLOSED);
  for (lk_link *l = k->life.close_hooks.next; l != &k->life.close_hooks;
       l = l->next) {
    lk_close_hook *h = LK_OWNER(l, lk_close_hook, link);

    h->closed(h);
  }
  k->life.closed = true;
  if (k->life.listening == 0)
    lease_detach_client(k);
}

void lk__lease_attach_listener(lk_session_lease *k, lk_listener *l)
{
  k->life.listening++;
  lk_client_attach(k->client, l);
}

void lk__lease_detach_listener(lk_session_lease *k, lk_listener *l)
{
  lk_client_detach(k->client, l);
  k->life.listening--;
}

void lk__lease_listener_done(lk_session_lease *k)
{
  if (k->life.closed && !k->life.detached && k->life.listening == 0)
    lease_detach_client(k);
}

static void close_unless_cleanup(lk_session_lease *k, lk_lease_user *u)
{
  if (u->need != LK_LEASE_CLEANUP)
    close_user(k, u);
}

/* The server may execute closeSession, and other clients may be granted the
 * locks, before its reply arrives: locks are lost from now on. Deletes under
 * way continue. */
static void on_closing(lk_client *c, void *arg)
{
  lk_session_lease *k = arg;

  (void)c;
  lk__lease_ref(k);
  k->over = LK_ERR_CLOSED;
  stop_timers(k);
  for_each_user(k, close_unless_cleanup);
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
  case LK_STATE_CONNECTED: on_connected(k); break;
  case LK_STATE_SUSPENDED: on_suspended(k); break;
  case LK_STATE_EXPIRED: on_expired(k); break;
  case LK_STATE_AUTH_FAILED: lease_end(k, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: lease_close(k); break;
  }
  lk__lease_unref(k);
}

/* ---- creation and destruction ------------------------------------------- */

/* A session lease can be created after the client has reported its last state.
 */
static void lease_attach_client(lk_session_lease *k)
{
  switch (lk_client_state(k->client)) {
  case LK_STATE_EXPIRED:
    lk__lease_start_timer(k, &k->life.no_session,
                          lk_client_input_ms(k->client));
    break;
  case LK_STATE_AUTH_FAILED: k->over = LK_ERR_AUTH_FAILED; break;
  case LK_STATE_CLOSED: /* listeners are not notified any more, not even of the
                           free */
    k->over = LK_ERR_CLOSED;
    k->life.closed = true;
    k->life.detached = true;
    return;
  case LK_STATE_CONNECTING:
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
  case LK_STATE_SUSPENDED: break;
  }
  lk__client_attach_first(k->client, &k->life.listener);
}

/* The client is freed. The session lease remains until its last user ends. */
static void release_by_client(lk_session_lease *k)
{
  k->life.detached = true;
  lk__lease_unref(k);
}

static lk_session_lease *lease_new(lk_client *c, const lk_lease_config *config)
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
  lk__list_init(&k->queues.local);
  lk__list_init(&k->life.close_hooks);
  lk__safe_list_init(&k->users);
  k->life.listener = (lk_listener){.state = on_state,
                                   .reply = lease_on_reply,
                                   .closing = on_closing,
                                   .arg = k};
  k->watchdog = (lk_timer){.fire = on_watchdog, .arg = k};
  k->life.no_session = (lk_timer){.fire = on_no_session, .arg = k};
  k->heartbeat.timer = (lk_timer){.fire = lk__heartbeat_fire, .arg = k};
  lk__client_set_evidence_gap(c, config->gap_ms);
  k->evidence = lk__client_evidence(c);
  lease_attach_client(k);
  k->known_deadline_ms = lk__lease_deadline(k);
  k->known_timeout_ms = k->evidence->timeout_ms;
  lk__client_set_lease(c, k, release_by_client);
  return k;
}

lk_session_lease *lk__lease_of(lk_client *c)
{
  static const lk_lease_config defaults = {.size = sizeof defaults};
  lk_session_lease *k = lk__client_lease(c);

  return k == NULL ? lease_new(c, &defaults) : k;
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
  lk__give(&mem, k->queues.scratch);
  lk__give(&mem, k);
}

/* ---- public functions --------------------------------------------------- */

static bool lease_config_is_valid(const lk_lease_config *config)
{
  return config->margin_ms >= 0 && config->gap_ms >= 0 &&
         (unsigned)config->assurance <= LK_ASSURE_PING;
}

static bool lease_configs_are_equal(const lk_lease_config *a,
                                    const lk_lease_config *b)
{
  return a->assurance == b->assurance && a->margin_ms == b->margin_ms &&
         a->gap_ms == b->gap_ms && a->left_behind == b->left_behind &&
         a->arg == b->arg;
}

int lk_lease_configure(lk_client *c, const lk_lease_config *config)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_lease_config);
  const lk_session_lease *k = lk__client_lease(c);
  lk_lease_config own;

  if (lk__config_copy(c, &what, &own, config) != 0 ||
      !lease_config_is_valid(&own))
    return LK_ERR_BAD_ARGUMENT;
  if (k != NULL)
    return lease_configs_are_equal(&k->config, &own) ? 0 : LK_ERR_STATE;
  return lease_new(c, &own) == NULL ? LK_ERR_NO_MEMORY : 0;
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
  lease_review_soon(k);
  return 0;
}

size_t lk_lease_pending_cleanups(const lk_client *c)
{
  const lk_session_lease *k = lk__client_lease(c);

  return k == NULL ? 0 : k->count[LK_LEASE_CLEANUP];
}
