/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lock/lock.h"

/* What an attempt says, told to whoever has the lock. */

static void tell(lk_lock *l, const lk_lock_event *event)
{
  lk__lock_enter(l);
  if (l->on_event != NULL && !l->freed)
    l->on_event(l, event, l->arg);
  lk__lock_leave(l);
}

static void on_granted(void *arg)
{
  lk_lock *l = arg;

  lk__lock_enter(l);
  lk__lock_stop_timer(l, &l->timeout);
  l->count = 1;
  lk__lock_call(l, &l->acquire, 0);
  lk__lock_leave(l);
}

static void on_ended(void *arg, int err)
{
  lk_lock *l = arg;

  (void)lk__lock_part(l);
  l->start_err = err;
  lk__lock_enter(l);
  lk__lock_call(l, &l->acquire, err);
  lk__lock_leave(l);
}

static void on_lost(void *arg, int err)
{
  lk_lock *l = arg;
  lk_lock_event event = {.type = LK_LOCK_EVENT_LOST, .err = err};

  lk__lock_enter(l);
  (void)lk__lock_part(l);
  l->lost = true;
  tell(l, &event);
  lk__lock_end_verify(l, LK_ERR_LOST);
  lk__lock_call_soon(l, LK_ERR_LOST);
  lk__lock_leave(l);
}

static void on_gone(void *arg, int err)
{
  lk_lock *l = arg;

  lk__lock_enter(l);
  lk__lock_stop_timer(l, &l->release_timeout);
  l->released = NULL;
  lk__lock_call(l, &l->release, err);
  lk__lock_leave(l);
}

static lk_lock_event_type type_of(lk_news_type type)
{
  switch (type) {
  case LK_NEWS_WAITING: return LK_LOCK_EVENT_WAITING;
  case LK_NEWS_PLACE_LOST: return LK_LOCK_EVENT_PLACE_LOST;
  case LK_NEWS_MIXED: return LK_LOCK_EVENT_MIXED_QUEUE;
  case LK_NEWS_SUSPENDED: return LK_LOCK_EVENT_SUSPENDED;
  case LK_NEWS_UNSURE: return LK_LOCK_EVENT_UNSURE;
  case LK_NEWS_PROVEN: return LK_LOCK_EVENT_HELD;
  case LK_NEWS_REVOKED: return LK_LOCK_EVENT_REVOKED;
  case LK_NEWS_UNWATCHED:
  case LK_NEWS_NEAR_LIMIT: break;
  }
  return LK_LOCK_EVENT_UNWATCHED;
}

/* Whether this was told before, of what is told once. */
static bool is_old(lk_lock *l, lk_news_type type)
{
  bool never = false;
  bool *told = type == LK_NEWS_MIXED        ? &l->told_mixed
               : type == LK_NEWS_UNWATCHED  ? &l->told_unwatched
               : type == LK_NEWS_NEAR_LIMIT ? &l->told_limit
                                            : &never;
  bool before = *told;

  *told = true;
  return before;
}

static void on_news(void *arg, const lk_news *news)
{
  lk_lock *l = arg;
  lk_lock_event event = {.type = type_of(news->type),
                         .err = news->err,
                         .position = news->position,
                         .node = news->node,
                         .deadline_ms = news->deadline_ms};

  if (is_old(l, news->type))
    return;
  if (news->type == LK_NEWS_NEAR_LIMIT)
    lk_client_log(l->lease->client, LK_LOG_WARNING, LK_ERR_SEQ_UNSAFE,
                  "a queue's sequence counter is past half of its range: let "
                  "the queue run empty and delete its directory");
  else
    tell(l, &event);
}

const lk_owner lk__lock_owner = {.granted = on_granted,
                                 .ended = on_ended,
                                 .lost = on_lost,
                                 .news = on_news,
                                 .gone = on_gone};
