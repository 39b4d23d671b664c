/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lock/lock.h"
#include "recipes/queue/lease_deadline.h"

/* A forked child holds nothing: the session is its parent's. */
static bool lock_is_held_here(const lk_lock *l)
{
  return lk__lock_holds(l) && !lk__lock_is_forked(l);
}

lk_lock_state lk_lock_get_state(const lk_lock *l)
{
  if (lk__lock_is_forked(l))
    return LK_LOCK_IDLE;
  /* An acquire whose deadline had passed when it began has no acquisition. */
  if (l->acquire_is_late)
    return LK_LOCK_ACQUIRING;
  if (l->acquisition == NULL)
    return l->lost ? LK_LOCK_LOST : LK_LOCK_IDLE;
  if (!lk__lock_holds(l))
    return LK_LOCK_ACQUIRING;
  return lk__acquisition_is_unsure(l->acquisition) ? LK_LOCK_UNSURE
                                                   : LK_LOCK_HELD;
}

bool lk_lock_ok(const lk_lock *l)
{
  return lock_is_held_here(l) && lk_client_clock(l->lease->client) <
                                     lk__acquisition_deadline(l->acquisition);
}

int64_t lk_lock_deadline(const lk_lock *l)
{
  return lock_is_held_here(l) ? lk__acquisition_deadline(l->acquisition)
                              : LK_NO_LEASE;
}

uint64_t lk_lock_token(const lk_lock *l)
{
  return lock_is_held_here(l) ? lk__acquisition_token(l->acquisition) : 0;
}

uint64_t lk_lock_handoffs(const lk_lock *l)
{
  return lock_is_held_here(l) ? l->acquisition->handoffs : 0;
}

const char *lk_lock_node(const lk_lock *l)
{
  return l->acquisition == NULL || lk__lock_is_forked(l)
             ? NULL
             : lk__acquisition_node_path(l->acquisition);
}

const char *lk_lock_path(const lk_lock *l)
{
  return l->options.path;
}

size_t lk_lock_count(const lk_lock *l)
{
  return lk__lock_is_forked(l) ? 0 : l->count;
}

/* ---- texts --------------------------------------------------------------- */

const char *lk_lock_state_text(lk_lock_state state)
{
  switch (state) {
  case LK_LOCK_IDLE: return "idle";
  case LK_LOCK_ACQUIRING: return "acquiring";
  case LK_LOCK_HELD: return "held";
  case LK_LOCK_UNSURE: return "unsure";
  case LK_LOCK_LOST: return "lost";
  }
  return "unknown state";
}

const char *lk_lock_event_text(lk_lock_event_type type)
{
  switch (type) {
  case LK_LOCK_EVENT_WAITING: return "waiting";
  case LK_LOCK_EVENT_PLACE_LOST: return "place lost";
  case LK_LOCK_EVENT_SUSPENDED: return "suspended";
  case LK_LOCK_EVENT_UNSURE: return "unsure";
  case LK_LOCK_EVENT_RENEWED: return "renewed";
  case LK_LOCK_EVENT_LOST: return "lost";
  case LK_LOCK_EVENT_MIXED_QUEUE: return "mixed queue";
  case LK_LOCK_EVENT_UNWATCHED: return "unwatched";
  case LK_LOCK_EVENT_REVOKED: return "revoked";
  }
  return "unknown event";
}
