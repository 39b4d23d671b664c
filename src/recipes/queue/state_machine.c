/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender_list.h"
#include "recipes/queue/create.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/queue_limit.h"
#include "recipes/queue/requests.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- states without requests -------------------------------------------- */

const lk_contender_rules lk__rules_idle = {
    .next = {LK_ON(START, CREATING), LK_ON(LIST_FIRST, LISTING_FIRST),
             LK_ON_ANY_BEFORE_GRANT}};

/* LIST_NEEDED: the own node was recovered, and the reads behind it completed
 * with the connection. */
const lk_contender_rules lk__rules_paused = {
    .next = {LK_ON(START, CREATING), LK_ON(LIST_FIRST, LISTING_FIRST),
             LK_ON(OWN_IN_DOUBT, RECOVERING), LK_ON(OWN_EXISTS, LISTING),
             LK_ON(LIST_NEEDED, STAY), LK_ON_ANY_IN_QUEUE}};

static int contender_enter_finished(lk_contender *ct, lk_contender_state from)
{
  (void)from;
  ct->own.state = LK_OWN_NONE;
  lk__contender_ignore_replies(ct); /* replies that are still to come */
  lk__contender_cancel_watches(ct);
  lk__lease_stop_timer(ct->lease, &ct->pause.timer);
  lk__lease_remove_user(ct->lease, &ct->lease_user);
  lk__contender_unref(ct);
  return 0;
}

/* Requests that were under way when the session lease was freed end later. */
const lk_contender_rules lk__rules_finished = {
    .next = {LK_ON(OWN_GONE, STAY)}, .enter = contender_enter_finished};

/* ---- the machine of a queue --------------------------------------------- */

static bool queue_check_proves_own(const lk_contender *ct)
{
  return !lk__own_node_is_unverified(&ct->own, lk__contender_connection(ct));
}

static bool queue_has_watch(const lk_contender *ct)
{
  return ct->wait.watch != NULL;
}

const lk_contender_machine lk__queue_machine = {
    .states = {[LK_CONTENDER_IDLE] = &lk__rules_idle,
               [LK_CONTENDER_PAUSED] = &lk__rules_paused,
               [LK_CONTENDER_LISTING_FIRST] = &lk__rules_listing_first,
               [LK_CONTENDER_CREATING] = &lk__rules_creating,
               [LK_CONTENDER_CREATING_PARENTS] = &lk__rules_creating_parents,
               [LK_CONTENDER_RECOVERING] = &lk__rules_recovering,
               [LK_CONTENDER_READING_CANDIDATES] =
                   &lk__rules_reading_candidates,
               [LK_CONTENDER_LISTING] = &lk__rules_listing,
               [LK_CONTENDER_SETTING_WATCHES] = &lk__rules_setting_watches,
               [LK_CONTENDER_WAITING] = &lk__rules_waiting,
               [LK_CONTENDER_READING_PREDECESSORS] =
                   &lk__rules_reading_predecessors,
               [LK_CONTENDER_READING_OWN] = &lk__rules_reading_own,
               [LK_CONTENDER_CHECKING_OWN] = &lk__rules_checking_own,
               [LK_CONTENDER_HELD] = &lk__rules_held,
               [LK_CONTENDER_UNSURE] = &lk__rules_unsure,
               [LK_CONTENDER_CLEANING_UP] = &lk__rules_cleaning_up,
               [LK_CONTENDER_FINISHED] = &lk__rules_finished},
    .waits_with_own_node = true,
    .reads_first = lk__queue_limit_needs_peek,
    .request_view = lk__contender_send_list,
    .check_proves_own = queue_check_proves_own,
    .has_watch = queue_has_watch};

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
  lk_session_lease *k = ct->lease;

  switch (ct->state) {
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
    ct->holding.proven = false;
    ct->holding.watch_due_ms = lk_client_input_ms(k->client);
    if (!lk__heartbeat_now(k) && lk__lease_is_online(k))
      lk__contender_supervise_own(ct);
    break;
  case LK_CONTENDER_CLEANING_UP: lk__cleanup_go(ct); break;
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_LISTING_FIRST:
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
  case LK_CONTENDER_RECOVERING:
  case LK_CONTENDER_READING_CANDIDATES:
  case LK_CONTENDER_LISTING:
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_WAITING:
  case LK_CONTENDER_READING_PREDECESSORS:
  case LK_CONTENDER_READING_OWN:
  case LK_CONTENDER_CHECKING_OWN:
    /* The reply to a create under way has the name of the node. */
    if (ct->own.state != LK_OWN_REQUESTED)
      lk__contender_ignore_replies(ct);
    lk__contender_start_pause(ct, 0);
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
}

bool lk__contender_is_stuck(const lk_contender *ct)
{
  switch (ct->state) {
  case LK_CONTENDER_LISTING_FIRST:
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
  case LK_CONTENDER_RECOVERING:
  case LK_CONTENDER_READING_CANDIDATES:
  case LK_CONTENDER_LISTING:
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_READING_PREDECESSORS:
  case LK_CONTENDER_READING_OWN:
  case LK_CONTENDER_CHECKING_OWN: return lk__contender_has_all_replies(ct);
  case LK_CONTENDER_WAITING:
    return lk__contender_has_all_replies(ct) && !ct->machine->has_watch(ct);
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
  case LK_CONTENDER_CLEANING_UP:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
  return false;
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
  lk__lease_set_need(ct->lease, &ct->lease_user, lk__contender_lease_need(ct));
  if (observer != NULL)
    observer->on_step(observer->arg, ct, ev, from);
  const lk_contender_rules *rules = ct->machine->states[next];
  int err = rules->enter == NULL ? 0 : rules->enter(ct, from);

  if (err != 0)
    lk__contender_fail(ct, err);
  lk__contender_unref(ct);
}
