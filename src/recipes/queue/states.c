/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define NAME(state) [LK_CONTEND_##state]
#define ON(event, state) [LK_EV_##event] = LK_CONTEND_##state

/* From any state before the grant it can stop, and its node can be gone for
 * good together with its session. */
#define WANTING ON(HALT, PAUSED), ON(STOP, LEAVING), ON(GONE, OVER)
/* Own was listed, so it can be found missing. */
#define QUEUED WANTING, ON(ABSENT, CREATING)

const lk_contend_state lk__contend_table[LK_CONTEND_NSTATES][LK_EV_COUNT] = {
  NAME(IDLE)     = {ON(NEW, CREATING), ON(PEEK, PEEKING), WANTING},
  /* AGAIN: own was found, and the reads behind it ended with the connection. */
  NAME(PAUSED)   = {ON(NEW, CREATING), ON(PEEK, PEEKING), ON(MAYBE, LOOKING),
                    ON(MADE, LISTING), ON(AGAIN, STAY), QUEUED},
  NAME(PEEKING)  = {ON(NEW, CREATING), ON(PARKED, WAITING), WANTING},
  NAME(CREATING) = {ON(NO_PARENT, PARENTS), ON(BEHIND, PARKING),
                    ON(PARKED, WAITING), ON(FIRST, HELD), ON(STALE, CHECKING),
                    QUEUED},
  NAME(PARENTS)  = {ON(NO_PARENT, PARENTS), ON(BEHIND, PARKING),
                    ON(PARKED, WAITING), ON(FIRST, HELD), ON(STALE, CHECKING),
                    QUEUED},
  NAME(LOOKING)  = {ON(BEHIND, PARKING), ON(PARKED, WAITING), ON(FIRST, HELD),
                    ON(STALE, CHECKING), ON(UNREAD, READING),
                    ON(ALIKE, SEARCHING), QUEUED},
  NAME(SEARCHING) = {ON(AGAIN, LISTING), QUEUED},
  NAME(LISTING)  = {ON(BEHIND, PARKING), ON(FIRST, HELD), ON(STALE, CHECKING),
                    ON(UNREAD, READING), QUEUED},
  NAME(PARKING)  = {ON(PARKED, WAITING), ON(LEFT, PROBING), ON(AGAIN, LISTING),
                    ON(FIRST, HELD), QUEUED},
  NAME(WAITING)  = {ON(LEFT, PROBING), ON(AGAIN, LISTING), ON(PEEK, PEEKING),
                    ON(FIRST, HELD), QUEUED},
  NAME(PROBING)  = {ON(PARKED, WAITING), ON(BEHIND, PARKING),
                    ON(AGAIN, LISTING), ON(FIRST, HELD), QUEUED},
  NAME(READING)  = {ON(FIRST, HELD), ON(STALE, CHECKING), QUEUED},
  NAME(CHECKING) = {ON(FIRST, HELD), QUEUED},
  NAME(HELD)     = {ON(DOUBT, UNSURE), ON(STOP, LEAVING), ON(GONE, OVER)},
  NAME(UNSURE)   = {ON(PROVEN, HELD), ON(STOP, LEAVING), ON(GONE, OVER)},
  /* After a break it goes on when the next connection stands. */
  NAME(LEAVING)  = {ON(HALT, STAY), ON(GONE, OVER)},
  /* Requests that were under way when its keeper was freed end later. */
  NAME(OVER)     = {ON(GONE, STAY)},
};
/* clang-format on */

static void enter_over(lk_contend *ct)
{
  ct->own = LK_OWN_NONE;
  lk__contend_outdate(ct); /* replies that are still to come */
  lk__contend_drop_watches(ct);
  lk__lease_stop_timer(ct->lease, &ct->rest);
  lk__lease_remove_contender(ct->lease, ct);
  lk__contend_unref(ct);
}

/* The one thing a state begins with. */
static int enter(lk_contend *ct, lk_contend_state from)
{
  switch (ct->state) {
  case LK_CONTEND_PEEKING: return lk__enter_peeking(ct);
  case LK_CONTEND_CREATING: return lk__enter_creating(ct);
  case LK_CONTEND_PARENTS: return lk__enter_parents(ct);
  case LK_CONTEND_LOOKING: return lk__enter_looking(ct);
  case LK_CONTEND_SEARCHING: return lk__enter_searching(ct);
  case LK_CONTEND_LISTING: return lk__enter_listing(ct);
  case LK_CONTEND_PARKING: return lk__enter_parking(ct);
  case LK_CONTEND_PROBING: return lk__enter_probing(ct);
  case LK_CONTEND_READING: return lk__enter_reading(ct);
  case LK_CONTEND_CHECKING: return lk__enter_checking(ct);
  case LK_CONTEND_HELD:
    if (from != LK_CONTEND_UNSURE)
      lk__enter_held(ct);
    break;
  case LK_CONTEND_LEAVING: lk__cleanup_go(ct); break;
  case LK_CONTEND_OVER: enter_over(ct); break;
  case LK_CONTEND_NO_STEP:
  case LK_CONTEND_IDLE:
  case LK_CONTEND_PAUSED:
  case LK_CONTEND_WAITING:
  case LK_CONTEND_UNSURE:
  case LK_CONTEND_NSTATES: break;
  }
  return 0;
}

/* ---- events without a step ---------------------------------------------- */

void lk__contend_recover(lk_contend *ct)
{
  lk_keeper *k = ct->lease;

  switch (ct->state) {
  case LK_CONTEND_HELD:
  case LK_CONTEND_UNSURE:
    ct->proven = false;
    ct->read_due_ms = lk_client_now(k->client);
    if (!lk__heartbeat_now(k) && lk__lease_is_online(k))
      lk__contend_supervise(ct);
    break;
  case LK_CONTEND_LEAVING: lk__cleanup_go(ct); break;
  case LK_CONTEND_PAUSED:
  case LK_CONTEND_PEEKING:
  case LK_CONTEND_CREATING:
  case LK_CONTEND_PARENTS:
  case LK_CONTEND_LOOKING:
  case LK_CONTEND_SEARCHING:
  case LK_CONTEND_LISTING:
  case LK_CONTEND_PARKING:
  case LK_CONTEND_WAITING:
  case LK_CONTEND_PROBING:
  case LK_CONTEND_READING:
  case LK_CONTEND_CHECKING:
    /* The answer to a create under way tells the name of the node. */
    if (ct->own != LK_OWN_ASKED)
      lk__contend_outdate(ct);
    lk__contend_rest(ct, 0);
    lk__contend_step(ct, LK_EV_HALT);
    break;
  case LK_CONTEND_NO_STEP:
  case LK_CONTEND_IDLE:
  case LK_CONTEND_OVER:
  case LK_CONTEND_NSTATES: break;
  }
}

bool lk__contend_is_stuck(const lk_contend *ct)
{
  switch (ct->state) {
  case LK_CONTEND_PEEKING:
  case LK_CONTEND_CREATING:
  case LK_CONTEND_PARENTS:
  case LK_CONTEND_LOOKING:
  case LK_CONTEND_SEARCHING:
  case LK_CONTEND_LISTING:
  case LK_CONTEND_PARKING:
  case LK_CONTEND_PROBING:
  case LK_CONTEND_READING:
  case LK_CONTEND_CHECKING: return lk__contend_quiet(ct);
  case LK_CONTEND_WAITING:
    return lk__contend_quiet(ct) &&
           (lk__contend_is_fixed(ct) ? ct->own_watch : ct->pred_watch) == NULL;
  case LK_CONTEND_NO_STEP:
  case LK_CONTEND_IDLE:
  case LK_CONTEND_PAUSED:
  case LK_CONTEND_HELD:
  case LK_CONTEND_UNSURE:
  case LK_CONTEND_LEAVING:
  case LK_CONTEND_OVER:
  case LK_CONTEND_NSTATES: break;
  }
  return false;
}

#ifdef LK_DEBUG
void lk__lease_check(const lk_keeper *k)
{
  for (lk_contend *ct = NULL; (ct = lk__lease_next_contender(k, ct)) != NULL;) {
    if (!lk__contend_is_stuck(ct))
      continue;
    fprintf(stderr, "latchkey: a contender in state %d waits for nothing\n",
            (int)ct->state);
    abort();
  }
}

static void report_misstep(lk_contend *ct, lk_contend_event ev)
{
  fprintf(stderr,
          "latchkey: a contender in state %d has no step for event %d\n",
          (int)ct->state, (int)ev);
  abort();
}
#else
static void report_misstep(lk_contend *ct, lk_contend_event ev)
{
  char text[80];

  snprintf(text, sizeof text,
           "a contender in state %d has no step for event %d: it recovers",
           (int)ct->state, (int)ev);
  lk_client_log(ct->lease->client, LK_LOG_ERROR, LK_ERR_STATE, text);
  lk__contend_recover(ct);
}
#endif

void lk__contend_step(lk_contend *ct, lk_contend_event ev)
{
  lk_contend_state from = ct->state;
  lk_contend_state next = lk__contend_table[from][ev];

  if (next == LK_CONTEND_STAY)
    return;
  if (next == LK_CONTEND_NO_STEP) {
    report_misstep(ct, ev);
    return;
  }
  lk__contend_ref(ct);
  ct->state = next;
  lk__lease_count_contender(ct, from, next);
  if (ct->lease->on_step != NULL)
    ct->lease->on_step(ct->lease->on_step_arg, ct, ev, from);
  int err = enter(ct, from);

  if (err != 0)
    lk__contend_end(ct, err);
  lk__contend_unref(ct);
}
