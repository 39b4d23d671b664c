/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/heartbeat.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/retry_backoff.h"

#include <stdio.h>
#include <stdlib.h>

lk_contender_state lk__contender_next_state(const lk_contender_machine *m,
                                            lk_contender_state state,
                                            lk_contender_event ev)
{
  const lk_contender_rules *rules = m->states[state];

  return rules == NULL ? LK_CONTENDER_NO_STEP : rules->next[ev];
}

/* ---- events without a step ---------------------------------------------- */

void lk__contender_restart(lk_contender *ct)
{
  const lk_contender_rules *rules = lk__contender_rules(ct);

  if (rules->restart != NULL) {
    rules->restart(ct);
    return;
  }
  if (ct->state == LK_CONTENDER_IDLE || ct->state == LK_CONTENDER_FINISHED)
    return;
  /* The reply to a create under way is needed: it has the name of the node. */
  if (ct->own.state != LK_OWN_REQUESTED)
    lk__contender_ignore_replies(ct);
  /* The pause ends in the next turn of the loop. */
  lk__contender_start_pause(ct, 0);
  lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

#ifdef LK_DEBUG
static void contender_report_missing_step(lk_contender *ct,
                                          lk_contender_event ev)
{
  fprintf(stderr,
          "latchkey: a contender in state %d has no step for event %d\n",
          (int)ct->state, (int)ev);
  abort();
}
#else
static void contender_report_missing_step(lk_contender *ct,
                                          lk_contender_event ev)
{
  char text[80];

  snprintf(text, sizeof text,
           "a contender in state %d has no step for event %d: it recovers",
           (int)ct->state, (int)ev);
  lk_client_log(ct->lease->client, LK_LOG_ERROR, LK_ERR_STATE, text);
  lk__contender_restart(ct);
}
#endif

/* ---- a step ------------------------------------------------------------- */

/* A waiter for a single-node lock does not need the lease: it has no own node
 * to keep, and the create before its grant renews the lease. */
static lk_lease_need contender_lease_need(const lk_contender *ct)
{
  lk_lease_need need = lk__contender_rules(ct)->need;

  return need == LK_LEASE_WAITING && lk__contender_is_single_node(ct)
             ? LK_LEASE_NOT_NEEDED
             : need;
}

void lk__contender_step(lk_contender *ct, lk_contender_event ev)
{
  lk_contender_state from = ct->state;
  lk_contender_state next = lk__contender_next_state(ct->machine, from, ev);
  const lk_contender_observer *observer = ct->lease->observer;

  if (next == LK_CONTENDER_STAY)
    return;
  if (next == LK_CONTENDER_NO_STEP) {
    contender_report_missing_step(ct, ev);
    return;
  }
  lk__contender_ref(ct);
  ct->state = next;
  lk__lease_set_need(ct->lease, &ct->lease_user, contender_lease_need(ct));
  if (observer != NULL)
    observer->on_step(observer->arg, ct, ev, from);
  const lk_contender_rules *rules = ct->machine->states[next];
  int err = rules->enter == NULL ? 0 : rules->enter(ct, from);

  if (err != 0)
    lk__contender_fail(ct, err);
  lk__contender_unref(ct);
}

/* ---- stop and fail ------------------------------------------------------ */

void lk__contender_stop(lk_contender *ct, bool report_gone)
{
  if (!report_gone)
    ct->callbacks = NULL;
  /* The reply to a create under way is needed: it has the name of the node. */
  if (ct->own.state != LK_OWN_REQUESTED)
    lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  lk__lease_stop_timer(ct->lease, &ct->pause.timer);
  lk__contender_step(ct, LK_CONTENDER_ON_STOP);
}

void lk__contender_fail(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  void *arg = ct->callbacks_arg;
  const bool report_gone = false;

  lk__contender_stop(ct, report_gone);
  if (callbacks != NULL)
    callbacks->ended(arg, err);
}
