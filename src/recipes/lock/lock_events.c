/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lock/lock_callbacks.h"

/* The callbacks of an acquisition, reported to the user of the lock. */

static void on_acquire_granted(void *arg)
{
  lk_lock *l = arg;

  lk__lock_enter(l);
  lk__lock_stop_timer(l, &l->timers.acquire);
  l->count = 1;
  lk__lock_complete(l, &l->acquire, 0);
  lk__lock_leave(l);
}

static void on_acquire_ended(void *arg, int err)
{
  lk_lock *l = arg;

  (void)lk__lock_detach_acquisition(l);
  l->start_err = err;
  lk__lock_enter(l);
  lk__lock_complete(l, &l->acquire, err);
  lk__lock_leave(l);
}

static void on_lock_lost(void *arg, int err)
{
  lk_lock *l = arg;
  lk_lock_event event = {.type = LK_LOCK_EVENT_LOST, .err = err};

  lk__lock_enter(l);
  (void)lk__lock_detach_acquisition(l);
  l->lost = true;
  lk__lock_notify(l, &event);
  lk__lock_complete_verify(l, LK_ERR_LOST);
  lk__lock_complete_without_reply(l, LK_ERR_LOST);
  lk__lock_leave(l);
}

static void on_node_gone(void *arg, int err)
{
  lk_lock *l = arg;

  lk__lock_enter(l);
  lk__lock_stop_timer(l, &l->timers.release);
  l->released = NULL;
  lk__lock_complete(l, &l->release, err);
  lk__lock_leave(l);
}

/* The event by which a notice is reported. */
static lk_lock_event_type lock_event_type(lk_notice_type type)
{
  switch (type) {
  case LK_NOTICE_WAITING: return LK_LOCK_EVENT_WAITING;
  case LK_NOTICE_PLACE_LOST: return LK_LOCK_EVENT_PLACE_LOST;
  case LK_NOTICE_MIXED_QUEUE: return LK_LOCK_EVENT_MIXED_QUEUE;
  case LK_NOTICE_SUSPENDED: return LK_LOCK_EVENT_SUSPENDED;
  case LK_NOTICE_UNSURE: return LK_LOCK_EVENT_UNSURE;
  case LK_NOTICE_LEASE_PROVEN: return LK_LOCK_EVENT_RENEWED;
  case LK_NOTICE_REVOKED: return LK_LOCK_EVENT_REVOKED;
  case LK_NOTICE_UNWATCHED: return LK_LOCK_EVENT_UNWATCHED;
  case LK_NOTICE_COUNTER_NEAR_END: break; /* on_notice() logs it instead */
  }
  return LK_LOCK_EVENT_UNWATCHED;
}

/* The mark of a notice that is reported only once; NULL: it is reported each
 * time. */
static bool *lock_reported_mark(lk_lock *l, lk_notice_type type)
{
  switch (type) {
  case LK_NOTICE_MIXED_QUEUE: return &l->reported.mixed_queue;
  case LK_NOTICE_UNWATCHED: return &l->reported.unwatched;
  case LK_NOTICE_COUNTER_NEAR_END: return &l->reported.counter_near_end;
  case LK_NOTICE_WAITING:
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_SUSPENDED:
  case LK_NOTICE_UNSURE:
  case LK_NOTICE_LEASE_PROVEN:
  case LK_NOTICE_REVOKED: break;
  }
  return NULL;
}

static void on_notice(void *arg, const lk_notice *notice)
{
  lk_lock *l = arg;
  lk_lock_event event = {.type = lock_event_type(notice->type),
                         .err = notice->err,
                         .position = notice->position,
                         .node = notice->node,
                         .deadline_ms = notice->deadline_ms};
  bool *reported = lock_reported_mark(l, notice->type);

  if (reported != NULL) {
    if (*reported)
      return;
    *reported = true;
  }
  if (notice->type == LK_NOTICE_COUNTER_NEAR_END)
    lk_client_log(l->lease->client, LK_LOG_WARNING, LK_ERR_SEQ_UNSAFE,
                  "a queue's sequence counter is past half of its range: let "
                  "the queue run empty and delete its directory");
  else
    lk__lock_notify(l, &event);
}

const lk_acquisition_callbacks lk__lock_callbacks = {
    .granted = on_acquire_granted,
    .ended = on_acquire_ended,
    .lost = on_lock_lost,
    .notice = on_notice,
    .gone = on_node_gone,
};
