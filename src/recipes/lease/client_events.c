/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/client_events.h"
#include "recipes/lease/heartbeat.h"
#include "recipes/lease/lease_watchdog.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- replies ------------------------------------------------------------ */

#ifdef LK_DEBUG
/* This runs after each reply, outside of all callbacks. So a contender that
 * waits for no reply, event or timer now would wait for ever. */
static void lease_check_users(const lk_session_lease *lease)
{
  for (lk_lease_user *u = NULL; (u = lk__lease_next_user(lease, u)) != NULL;) {
    bool unreadable;

    if (!u->kind->is_stuck(u))
      continue;
    fprintf(stderr, "latchkey: the contender of %s waits for nothing\n",
            u->kind->node(u, &unreadable));
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
  lk__watchdog_deadline_moved(lease);
}

/* ---- connection and session --------------------------------------------- */

static void notify_connected(lk_session_lease *lease, lk_lease_user *u)
{
  (void)lease;
  u->kind->connected(u);
}

static void notify_connected_if_cleanup(lk_session_lease *lease,
                                        lk_lease_user *u)
{
  if (u->need == LK_LEASE_CLEANUP)
    notify_connected(lease, u);
}

/* Nodes of released locks are deleted first: a new contender of this client
 * would queue behind them. The checks of held nodes follow, then the requests
 * of waiters. Users in cleanup are notified a second time, which has no effect
 * while their deletes are under way. */
static void on_connected(lk_session_lease *lease)
{
  lk__lease_for_each_user(lease, notify_connected_if_cleanup);
  if (lk__lease_count_held(lease) > 0)
    (void)lk__heartbeat_now(lease);
  lk__lease_for_each_user(lease, notify_connected);
  lk__heartbeat_update_timer(lease);
}

static void notify_suspended(lk_session_lease *lease, lk_lease_user *u)
{
  (void)lease;
  u->kind->suspended(u);
}

static void on_suspended(lk_session_lease *lease)
{
  lk__heartbeat_update_timer(lease);
  lk__lease_for_each_user(lease, notify_suspended);
}

static void notify_expired(lk_session_lease *lease, lk_lease_user *u)
{
  (void)lease;
  u->kind->expired(u);
}

/* The timer fires in the next turn of the loop. */
static void start_timer_after_expiry(lk_session_lease *lease)
{
  lk__lease_start_timer(lease, &lease->life.after_expiry,
                        lk_client_input_ms(lease->client));
}

static void on_expired(lk_session_lease *lease)
{
  lease->known_deadline_ms = LK_NO_LEASE;
  lk__heartbeat_update_timer(lease);
  start_timer_after_expiry(lease);
  lk__lease_for_each_user(lease, notify_expired);
}

static void notify_no_new_session(lk_session_lease *lease, lk_lease_user *u)
{
  (void)lease;
  u->kind->no_new_session(u);
}

/* The client starts a new session at once after an expiry, or never. If its
 * state is still EXPIRED one turn of the loop later, it starts none. */
static void on_turn_after_expiry(lk_client *c, void *arg)
{
  lk_session_lease *lease = arg;

  if (lk_client_state(c) != LK_STATE_EXPIRED)
    return;
  lk__lease_ref(lease);
  lease->end_err = LK_ERR_CLOSED;
  lk__lease_for_each_user(lease, notify_no_new_session);
  lk__lease_unref(lease);
}

static void notify_closed(lk_session_lease *lease, lk_lease_user *u)
{
  u->kind->closed(u, lease->end_err);
}

static void stop_timers(lk_session_lease *lease)
{
  lk__lease_stop_timer(lease, &lease->watchdog);
  lk__lease_stop_timer(lease, &lease->life.after_expiry);
  lk__lease_stop_timer(lease, &lease->heartbeat.timer);
  lease->heartbeat.timer_runs = false;
  lease->watchdog_due_ms = INT64_MAX;
}

static void lease_end(lk_session_lease *lease, int err)
{
  lease->end_err = err;
  stop_timers(lease);
  lk__lease_for_each_user(lease, notify_closed);
}

/* After this call the session lease calls no function of the client.
 * Acquisitions with a listener of their own still stop timers of the client
 * when they are notified of CLOSED. So lease_detach_client() is called only
 * after all of them were notified. */
static void lease_detach_client(lk_session_lease *lease)
{
  lk_client_detach(lease->client, &lease->life.listener);
  lease->life.detached = true;
}

/* ---- the end of the client ---------------------------------------------- */

static void notify_close_hooks(lk_session_lease *lease)
{
  for (lk_link *l = lease->life.close_hooks.next; l != &lease->life.close_hooks;
       l = l->next) {
    lk_close_hook *h = LK_OWNER(l, lk_close_hook, link);

    h->closed(h);
  }
}

static void lease_close(lk_session_lease *lease)
{
  lease_end(lease, LK_ERR_CLOSED);
  notify_close_hooks(lease);
  lease->life.closed = true;
  if (lease->life.acquisition_listeners == 0)
    lease_detach_client(lease);
}

void lk__lease_attach_listener(lk_session_lease *lease, lk_listener *l)
{
  lease->life.acquisition_listeners++;
  lk_client_attach(lease->client, l);
}

void lk__lease_detach_listener(lk_session_lease *lease, lk_listener *l)
{
  lk_client_detach(lease->client, l);
  lease->life.acquisition_listeners--;
}

void lk__lease_listener_done(lk_session_lease *lease)
{
  if (lease->life.closed && !lease->life.detached &&
      lease->life.acquisition_listeners == 0)
    lease_detach_client(lease);
}

static void notify_closed_unless_cleanup(lk_session_lease *lease,
                                         lk_lease_user *u)
{
  if (u->need != LK_LEASE_CLEANUP)
    notify_closed(lease, u);
}

/* The client is about to send closeSession. Locks are lost from now on: the
 * server may execute closeSession, and grant the locks to other clients, before
 * its reply arrives. Deletes under way continue. */
static void on_closing(lk_client *c, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  lk__lease_ref(lease);
  lease->end_err = LK_ERR_CLOSED;
  stop_timers(lease);
  lk__lease_for_each_user(lease, notify_closed_unless_cleanup);
  lk__lease_unref(lease);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_session_lease *lease = arg;

  (void)c;
  (void)err;
  lk__lease_ref(lease);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_READ_ONLY: break;
  case LK_STATE_CONNECTED: on_connected(lease); break;
  case LK_STATE_SUSPENDED: on_suspended(lease); break;
  case LK_STATE_EXPIRED: on_expired(lease); break;
  case LK_STATE_AUTH_FAILED: lease_end(lease, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: lease_close(lease); break;
  }
  lk__lease_unref(lease);
}

/* ---- the listener ------------------------------------------------------- */

/* When the session lease is created, the client may have left its first state.
 * It does not report its present state again, so the states that need an action
 * are handled here. */
void lk__lease_attach_client(lk_session_lease *lease)
{
  lease->life.listener = (lk_listener){.state = on_state,
                                       .reply = on_reply,
                                       .closing = on_closing,
                                       .arg = lease};
  lease->life.after_expiry =
      (lk_timer){.fire = on_turn_after_expiry, .arg = lease};
  switch (lk_client_state(lease->client)) {
  case LK_STATE_EXPIRED: start_timer_after_expiry(lease); break;
  case LK_STATE_AUTH_FAILED: lease->end_err = LK_ERR_AUTH_FAILED; break;
  case LK_STATE_CLOSED: /* no listener is notified after this state */
    lease->end_err = LK_ERR_CLOSED;
    lease->life.closed = true;
    lease->life.detached = true;
    return;
  case LK_STATE_CONNECTING:
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
  case LK_STATE_SUSPENDED: break;
  }
  /* All other listeners are notified after the session lease. */
  lk__client_attach_first(lease->client, &lease->life.listener);
}
