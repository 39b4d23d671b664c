/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/lease.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "recipes/call.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/heartbeat.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease_deadline.h"

static void watchdog_on_timer(lk_client *c, void *arg);
static void lease_attach_client(lk_session_lease *lease);

/* ---- creation --------------------------------------------------------- */

static void lease_free(lk_session_lease *lease)
{
  lk_mem mem = lease->mem;

  lk__mem_free(&mem, lease->queues.scratch);
  lk__mem_free(&mem, lease);
}

/* NULL: no memory. */
static lk_session_lease *lease_new(lk_client *c, const lk_lease_config *config)
{
  const lk_mem *mem = lk_client_mem(c);
  lk_session_lease *lease = lk__mem_new(mem, sizeof *lease);

  if (lease == NULL)
    return NULL;
  lease->mem = *mem;
  lease->client = c;
  lease->config = *config;
  lease->margin_ms = config->margin_ms;
  lease->watchdog_due_ms = INT64_MAX;
  lk__safe_list_init(&lease->users);
  lease->watchdog = (lk_timer){.fire = watchdog_on_timer, .arg = lease};
  lease->heartbeat.timer =
      (lk_timer){.fire = lk__heartbeat_on_timer, .arg = lease};
  lk__client_set_evidence_gap(c, config->gap_ms);
  lease->evidence = lk__client_evidence(c);
  lease_attach_client(lease);
  lease->known_deadline_ms = lk__lease_deadline(lease);
  lease->known_timeout_ms = lease->evidence->timeout_ms;
  lk__client_set_lease(c, lease, lease_free);
  return lease;
}

lk_session_lease *lk__lease_get_or_new(lk_client *c)
{
  static const lk_lease_config defaults = {.size = sizeof defaults};
  lk_session_lease *lease = lk__client_lease(c);

  return lease == NULL ? lease_new(c, &defaults) : lease;
}

/* ---- users --------------------------------------------------------------- */

void lk__lease_add_user(lk_session_lease *lease, lk_contender *ct)
{
  ct->lease_user.need = LK_LEASE_NOT_NEEDED;
  lease->count[LK_LEASE_NOT_NEEDED]++;
  lk__safe_list_add(&lease->users, &ct->lease_user.link);
}

void lk__lease_remove_user(lk_session_lease *lease, lk_contender *ct)
{
  lease->count[ct->lease_user.need]--;
  lk__safe_list_remove(&lease->users, &ct->lease_user.link);
  lk__lease_note_holder(lease);
}

void lk__lease_note_holder(const lk_session_lease *lease)
{
  lk__client_note_holder(lease->client, lk__lease_count_held(lease) > 0);
}

lk_contender *lk__lease_next_user(const lk_session_lease *lease,
                                  const lk_contender *after)
{
  const lk_link *all = &lease->users.members;
  lk_link *l = after == NULL ? all->next : after->lease_user.link.next;

  return l == all ? NULL : LK_OWNER(l, lk_contender, lease_user.link);
}

/* Call `notify` for each user. `notify` may add and remove users, and may free
 * the client. */
static void lease_for_each_user(lk_session_lease *lease,
                                void (*notify)(lk_contender *ct))
{
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &lease->users);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_contender *ct = LK_OWNER(l, lk_contender, lease_user.link);

    lk__contender_ref(ct);
    notify(ct);
    lk__contender_unref(ct);
  }
}

/* ---- what the users share: the connection, memory ---------------- */

bool lk__lease_is_online(const lk_session_lease *lease)
{
  return lk__client_end_err(lease->client) == 0 &&
         lk_client_state(lease->client) == LK_STATE_CONNECTED;
}

int64_t *lk__lease_scratch(lk_session_lease *lease, size_t count)
{
  enum { MIN_COUNT = 64 };
  bool is_first_use = lease->queues.scratch == NULL;

  if (count > SIZE_MAX / sizeof *lease->queues.scratch)
    return NULL;
  if (count > lease->queues.scratch_count || is_first_use) {
    size_t new_count = count < MIN_COUNT ? MIN_COUNT : count;
    void *resized = lease->mem.resize(lease->mem.arg, lease->queues.scratch,
                                      new_count * sizeof(int64_t));

    if (resized == NULL)
      return NULL;
    lease->queues.scratch = resized;
    lease->queues.scratch_count = new_count;
  }
  return lease->queues.scratch;
}

/* ---- the lease deadline -------------------------------------------------- */

int32_t lk__lease_timeout_ms(const lk_session_lease *lease)
{
  return lease->evidence->timeout_ms > 0 ? lease->evidence->timeout_ms
                                         : lk_client_timeout_ms(lease->client);
}

int64_t lk__lease_gap_ms(const lk_session_lease *lease)
{
  return lease->config.gap_ms > 0 ? lease->config.gap_ms
                                  : lk__lease_timeout_ms(lease) / 4;
}

int64_t lk__lease_deadline(const lk_session_lease *lease)
{
  return lk__lease_deadline_by_evidence(lease->evidence,
                                        lease->config.assurance);
}

int64_t lk__lease_unsure_ms(const lk_session_lease *lease, int64_t deadline_ms)
{
  int64_t margin =
      lease->margin_ms > 0 ? lease->margin_ms : lk__lease_timeout_ms(lease) / 8;

  return deadline_ms == LK_NO_LEASE ? LK_NO_LEASE : deadline_ms - margin;
}

/* How long the lease must last at a grant: a quarter of the session timeout. No
 * evidence lasts longer than the timeout less the gap. So with a gap above half
 * of the timeout, half of that difference suffices. */
static int64_t grant_min_lease_ms(const lk_session_lease *lease)
{
  int64_t timeout = lk__lease_timeout_ms(lease);
  int64_t half_of_longest = (timeout - lk__lease_gap_ms(lease)) / 2;

  return half_of_longest < timeout / 4 ? half_of_longest : timeout / 4;
}

bool lk__lease_may_grant(const lk_session_lease *lease, int64_t now_ms)
{
  int64_t deadline = lk__lease_deadline(lease);

  return deadline != LK_NO_LEASE && now_ms < deadline &&
         deadline - now_ms >= grant_min_lease_ms(lease);
}

/* The wait leaves three quarters of the time until the holder is unsure to the
 * reply. A wait of a sixteenth of the session timeout is short beside the
 * quarter from one heartbeat to the next. */
int64_t lk__lease_renewal_ms(const lk_session_lease *lease, int64_t due_ms)
{
  int64_t deadline = lk__lease_deadline(lease);
  int64_t longest_wait = lk__lease_timeout_ms(lease) / 16;

  if (deadline == LK_NO_LEASE)
    return due_ms;
  int64_t quarter_of_rest = (lk__lease_unsure_ms(lease, deadline) - due_ms) / 4;

  if (quarter_of_rest < longest_wait)
    longest_wait = quarter_of_rest;
  return lk__lease_deadline_renewal_ms(lease->evidence, lease->config.assurance,
                                       due_ms, due_ms + longest_wait);
}

/* ---- the watchdog -------------------------------------------------------- */

/* From when on a holder needs a reply. A reply that comes later can be
 * confirmed only by a request one gap behind it, and that would be too late. A
 * connection to another server renews the lease without a gap. In the steady
 * state a heartbeat was sent a little before. */
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

void lk__lease_watch_deadline(lk_session_lease *lease)
{
  int64_t at = watchdog_due(lease);

  if (at >= lease->watchdog_due_ms)
    return; /* the timer fires early enough */
  lease->watchdog_due_ms = at;
  lk_timer_start(lease->client, &lease->watchdog, at);
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

/* Notify all users if one waits for the lease and it is long enough by now. */
static void notify_if_renewed(lk_session_lease *lease)
{
  if (!lease->grant_awaited ||
      !lk__lease_may_grant(lease, lk_client_clock(lease->client)))
    return;
  lease->grant_awaited = false;
  lease_for_each_user(lease, lk__contender_lease_renewed);
}

/* The callback of `watchdog`; `arg` is the session lease. Replies move the
   deadline without starting the timer again, which would cost more. So when the
   timer fires the deadline may be far away, and each user compares the present
   deadline with the time. */
static void watchdog_on_timer(lk_client *c, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  lease->watchdog_due_ms = INT64_MAX;
  notify_if_renewed(lease);
  lease_for_each_user(lease, lk__contender_review_lease);
  if (lease->count[LK_LEASE_HELD] > 0) {
    lease_need_reply(lease);
    lk__lease_watch_deadline(lease);
  }
}

/* Let all users compare the deadline with the time. The timer fires in the next
   turn of the loop, where callbacks may be invoked. */
static void watchdog_review_soon(lk_session_lease *lease)
{
  lease->watchdog_due_ms = lk_client_input_ms(lease->client);
  lk_timer_start(lease->client, &lease->watchdog, lease->watchdog_due_ms);
}

/* A reply was received, so the deadline may have changed. */
static void watchdog_deadline_moved(lk_session_lease *lease)
{
  int64_t deadline = lk__lease_deadline(lease);
  bool deadline_is_later = deadline > lease->known_deadline_ms;
  bool timeout_changed = lease->evidence->timeout_ms != lease->known_timeout_ms;

  lease->known_deadline_ms = deadline;
  lease->known_timeout_ms = lease->evidence->timeout_ms;
  if (lk__client_end_err(lease->client) != 0)
    return;
  if ((lease->count[LK_LEASE_UNSURE] > 0 || lease->grant_awaited) &&
      deadline_is_later)
    watchdog_review_soon(lease);
  else if (timeout_changed)
    watch_deadline_if_held(lease); /* the deadline may be earlier now */
}

/* ---- public functions ---------------------------------------------------- */

static bool assurance_is_valid(lk_assurance assurance)
{
  return assurance == LK_ASSURE_QUORUM || assurance == LK_ASSURE_SYNC ||
         assurance == LK_ASSURE_PING;
}

static bool lease_config_is_valid(const lk_lease_config *config)
{
  return config->margin_ms >= 0 && config->gap_ms >= 0 &&
         assurance_is_valid(config->assurance);
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
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_lease_config);
  const lk_session_lease *lease = lk__client_lease(c);
  lk_lease_config copy;

  if (lk__client_copy_options(c, &sized, &copy, config) != 0 ||
      !lease_config_is_valid(&copy))
    return LK_ERR_BAD_ARGUMENT;
  if (lease != NULL)
    return lease_configs_are_equal(&lease->config, &copy) ? 0 : LK_ERR_STATE;
  return lease_new(c, &copy) == NULL ? LK_ERR_NO_MEMORY : 0;
}

int lk_lease_set_margin(lk_client *c, int32_t margin_ms)
{
  if (margin_ms < 0)
    return LK_ERR_BAD_ARGUMENT;
  lk_session_lease *lease = lk__lease_get_or_new(c);

  if (lease == NULL)
    return LK_ERR_NO_MEMORY;
  lease->margin_ms = margin_ms;
  watchdog_review_soon(lease);
  return 0;
}

int64_t lk_lease_deadline(const lk_client *c)
{
  const lk_session_lease *lease = lk__client_lease(c);

  if (lk__client_is_forked(c))
    return LK_NO_LEASE;
  if (lease == NULL) /* the default assurance applies */
    return lk__lease_deadline_by_evidence(lk__client_evidence(c),
                                          LK_ASSURE_QUORUM);
  return lk__lease_deadline(lease);
}

size_t lk_lease_pending_cleanups(const lk_client *c)
{
  const lk_session_lease *lease = lk__client_lease(c);

  return lease == NULL ? 0 : lease->count[LK_LEASE_CLEANUP];
}

/* ---- replies ------------------------------------------------------------- */

#ifdef LK_DEBUG
/* This runs after each reply, outside of all callbacks. So a contender that
 * waits for no reply, event or timer now would wait for ever. */
static void lease_check_users(const lk_session_lease *lease)
{
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_user(lease, ct)) != NULL;) {
    if (!lk__contender_is_stuck(ct))
      continue;
    fprintf(stderr, "latchkey: the contender of %s waits for nothing\n",
            ct->own.path);
    abort();
  }
}
#else
static void lease_check_users(const lk_session_lease *lease)
{
  (void)lease;
}
#endif

static void on_reply(lk_client *c, const lk_reply *reply, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  (void)reply;
  lease_check_users(lease);
  watchdog_deadline_moved(lease);
}

/* ---- the connection and the session -------------------------------------- */

static void notify_connected_if_cleanup(lk_contender *ct)
{
  if (ct->lease_user.need == LK_LEASE_CLEANUP)
    lk__contender_resume(ct);
}

/* Nodes of released locks are deleted first: a new contender of this client
 * would queue behind them. The checks of held nodes follow, then the requests
 * of waiters. Users in cleanup are notified a second time, which has no effect
 * while their deletes are under way. */
static void on_connected(lk_session_lease *lease)
{
  lease_for_each_user(lease, notify_connected_if_cleanup);
  if (lk__lease_count_held(lease) > 0)
    (void)lk__heartbeat_now(lease);
  lease_for_each_user(lease, lk__contender_resume);
  lk__heartbeat_update_timer(lease);
}

static void on_suspended(lk_session_lease *lease)
{
  lk__heartbeat_update_timer(lease);
  lease_for_each_user(lease, lk__contender_suspend);
}

static void on_expired(lk_session_lease *lease)
{
  lease->known_deadline_ms = LK_NO_LEASE;
  lk__heartbeat_update_timer(lease);
  lease_for_each_user(lease, lk__contender_session_expired);
}

/* ---- the end of the client ----------------------------------------------- */

static void notify_closed(lk_contender *ct)
{
  lk__contender_client_closed(ct, lk__client_end_err(ct->lease->client));
}

static void stop_timers(lk_session_lease *lease)
{
  lk_timer_stop(lease->client, &lease->watchdog);
  lk_timer_stop(lease->client, &lease->heartbeat.timer);
  lease->heartbeat.timer_runs = false;
  lease->watchdog_due_ms = INT64_MAX;
}

static void notify_closed_unless_cleanup(lk_contender *ct)
{
  if (ct->lease_user.need != LK_LEASE_CLEANUP)
    notify_closed(ct);
}

/* The client is about to send closeSession. Locks are lost from now on: the
 * server may execute closeSession, and grant the locks to other clients, before
 * its reply arrives. Deletes under way continue. */
static void on_closing(lk_client *c, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  stop_timers(lease);
  lease_for_each_user(lease, notify_closed_unless_cleanup);
}

static void on_closed(lk_session_lease *lease)
{
  lease_for_each_user(lease, notify_closed);
  lk__mem_free(&lease->mem, lease->queues.scratch);
  lease->queues.scratch = NULL;
  lease->queues.scratch_count = 0;
}

/* ---- the listener -------------------------------------------------------- */

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  (void)err;
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_READ_ONLY:
  case LK_STATE_AUTH_FAILED: break; /* CLOSED follows */
  case LK_STATE_CONNECTED: on_connected(lease); break;
  case LK_STATE_SUSPENDED: on_suspended(lease); break;
  case LK_STATE_EXPIRED: on_expired(lease); break;
  case LK_STATE_CLOSED: on_closed(lease); break;
  }
}

/* All other listeners are notified after the session lease. */
static void lease_attach_client(lk_session_lease *lease)
{
  lease->listener = (lk_listener){.size = sizeof(lk_listener),
                                  .state = on_state,
                                  .reply = on_reply,
                                  .closing = on_closing,
                                  .arg = lease};
  lk__client_attach_first(lease->client, &lease->listener);
}
