/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define NAME(state) [LK_CONTENDER_##state]
#define ON(event, state) [LK_CONTENDER_ON_##event] = LK_CONTENDER_##state

/* From any state before the grant it can stop, and its node can be gone for
 * good together with its session. */
#define WANTING ON(PAUSE, PAUSED), ON(STOP, CLEANING_UP), ON(OWN_GONE, FINISHED)
/* Own was listed, so it can be found missing. */
#define QUEUED WANTING, ON(OWN_MISSING, CREATING)

const lk_contender_state lk__contender_table[LK_CONTENDER_NSTATES][LK_CONTENDER_NEVENTS] = {
  NAME(IDLE)     = {ON(START, CREATING), ON(LIST_FIRST, LISTING_FIRST), WANTING},
  /* AGAIN: own was found, and the reads behind it ended with the connection. */
  NAME(PAUSED)   = {ON(START, CREATING), ON(LIST_FIRST, LISTING_FIRST), ON(OWN_IN_DOUBT, RECOVERING),
                    ON(OWN_EXISTS, LISTING), ON(LIST_NEEDED, STAY), QUEUED},
  NAME(LISTING_FIRST)  = {ON(START, CREATING), ON(WATCHES_SET, WAITING), WANTING},
  NAME(CREATING) = {ON(NO_PARENT, CREATING_PARENTS), ON(PREDECESSORS, SETTING_WATCHES),
                    ON(WATCHES_SET, WAITING), ON(GRANT, HELD), ON(CHECK_NEEDED, CHECKING_OWN),
                    QUEUED},
  NAME(CREATING_PARENTS)  = {ON(NO_PARENT, CREATING_PARENTS), ON(PREDECESSORS, SETTING_WATCHES),
                    ON(WATCHES_SET, WAITING), ON(GRANT, HELD), ON(CHECK_NEEDED, CHECKING_OWN),
                    QUEUED},
  NAME(RECOVERING)  = {ON(PREDECESSORS, SETTING_WATCHES), ON(WATCHES_SET, WAITING), ON(GRANT, HELD),
                    ON(CHECK_NEEDED, CHECKING_OWN), ON(TOKEN_NEEDED, READING_OWN),
                    ON(CANDIDATES, READING_CANDIDATES), QUEUED},
  NAME(READING_CANDIDATES) = {ON(LIST_NEEDED, LISTING), QUEUED},
  NAME(LISTING)  = {ON(PREDECESSORS, SETTING_WATCHES), ON(GRANT, HELD), ON(CHECK_NEEDED, CHECKING_OWN),
                    ON(TOKEN_NEEDED, READING_OWN), QUEUED},
  NAME(SETTING_WATCHES)  = {ON(WATCHES_SET, WAITING), ON(FEW_LEFT, READING_PREDECESSORS), ON(LIST_NEEDED, LISTING),
                    ON(GRANT, HELD), QUEUED},
  NAME(WAITING)  = {ON(FEW_LEFT, READING_PREDECESSORS), ON(LIST_NEEDED, LISTING), ON(LIST_FIRST, LISTING_FIRST),
                    ON(GRANT, HELD), QUEUED},
  NAME(READING_PREDECESSORS)  = {ON(WATCHES_SET, WAITING), ON(PREDECESSORS, SETTING_WATCHES),
                    ON(LIST_NEEDED, LISTING), ON(GRANT, HELD), QUEUED},
  NAME(READING_OWN)  = {ON(GRANT, HELD), ON(CHECK_NEEDED, CHECKING_OWN), QUEUED},
  NAME(CHECKING_OWN) = {ON(GRANT, HELD), QUEUED},
  NAME(HELD)     = {ON(LEASE_ENDING, UNSURE), ON(STOP, CLEANING_UP), ON(OWN_GONE, FINISHED)},
  NAME(UNSURE)   = {ON(LEASE_PROVEN, HELD), ON(STOP, CLEANING_UP), ON(OWN_GONE, FINISHED)},
  /* After a break it goes on when the next connection stands. */
  NAME(CLEANING_UP)  = {ON(PAUSE, STAY), ON(OWN_GONE, FINISHED)},
  /* Requests that were under way when its client was freed end later. */
  NAME(FINISHED)     = {ON(OWN_GONE, STAY)},
};
/* clang-format on */

static void contender_enter_finished(lk_contender *ct)
{
  ct->own.state = LK_OWN_NONE;
  lk__contender_ignore_replies(ct); /* replies that are still to come */
  lk__contender_cancel_watches(ct);
  lk__lease_stop_timer(ct->lease, &ct->pause.timer);
  lk__lease_remove_contender(ct->lease, ct);
  lk__contender_unref(ct);
}

/* The one thing a state begins with. */
static int contender_enter(lk_contender *ct, lk_contender_state from)
{
  switch (ct->state) {
  case LK_CONTENDER_LISTING_FIRST: return lk__enter_listing_first(ct);
  case LK_CONTENDER_CREATING: return lk__enter_creating(ct);
  case LK_CONTENDER_CREATING_PARENTS: return lk__enter_creating_parents(ct);
  case LK_CONTENDER_RECOVERING: return lk__enter_recovering(ct);
  case LK_CONTENDER_READING_CANDIDATES: return lk__enter_reading_candidates(ct);
  case LK_CONTENDER_LISTING: return lk__enter_listing(ct);
  case LK_CONTENDER_SETTING_WATCHES: return lk__enter_setting_watches(ct);
  case LK_CONTENDER_READING_PREDECESSORS:
    return lk__enter_reading_predecessors(ct);
  case LK_CONTENDER_READING_OWN: return lk__enter_reading_own(ct);
  case LK_CONTENDER_CHECKING_OWN: return lk__enter_checking_own(ct);
  case LK_CONTENDER_HELD:
    if (from != LK_CONTENDER_UNSURE)
      lk__enter_held(ct);
    break;
  case LK_CONTENDER_CLEANING_UP: lk__cleanup_go(ct); break;
  case LK_CONTENDER_FINISHED: contender_enter_finished(ct); break;
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_WAITING:
  case LK_CONTENDER_UNSURE:
  case LK_CONTENDER_NSTATES: break;
  }
  return 0;
}

/* ---- events without a step ---------------------------------------------- */

void lk__contender_restart(lk_contender *ct)
{
  lk_session_lease *k = ct->lease;

  switch (ct->state) {
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
    ct->holding.proven = false;
    ct->holding.watch_due_ms = lk_client_now(k->client);
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
    /* The answer to a create under way tells the name of the node. */
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
    return lk__contender_has_all_replies(ct) &&
           (lk__contender_is_single_node(ct) ? ct->own.watch
                                             : ct->wait.watch) == NULL;
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
void lk__lease_check(const lk_session_lease *k)
{
  for (lk_contender *ct = NULL;
       (ct = lk__lease_next_contender(k, ct)) != NULL;) {
    if (!lk__contender_is_stuck(ct))
      continue;
    fprintf(stderr, "latchkey: a contender in state %d waits for nothing\n",
            (int)ct->state);
    abort();
  }
}

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

void lk__contender_step(lk_contender *ct, lk_contender_event ev)
{
  lk_contender_state from = ct->state;
  lk_contender_state next = lk__contender_table[from][ev];

  if (next == LK_CONTENDER_STAY)
    return;
  if (next == LK_CONTENDER_NO_STEP) {
    contender_report_missing_step(ct, ev);
    return;
  }
  lk__contender_ref(ct);
  ct->state = next;
  lk__lease_count_contender(ct, from, next);
  if (ct->lease->on_step != NULL)
    ct->lease->on_step(ct->lease->on_step_arg, ct, ev, from);
  int err = contender_enter(ct, from);

  if (err != 0)
    lk__contender_fail(ct, err);
  lk__contender_unref(ct);
}
