/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_request.h"

#include "recipes/common/memory.h"

/* ---- life -------------------------------------------------------------- */

lk_local_request *lk__local_request_new(lk_local_queue *q, lk_lock *l,
                                        const lk_acquisition_callbacks *who)
{
  lk_local_request *t = lk__take(&q->lease->mem, sizeof *t);

  if (t == NULL)
    return NULL;
  t->queue = q;
  lk__list_init(&t->link);
  t->refs = 1;
  t->callbacks = who;
  t->arg = l;
  t->once = l->options.what.once;
  q->refs++;
  return t;
}

void lk__local_request_unref(lk_local_request *t)
{
  lk_local_queue *q = t->queue;

  if (--t->refs > 0)
    return;
  if (t->node != NULL)
    lk__contender_unref(t->node);
  lk__give(&q->lease->mem, t);
  lk__local_queue_unref(q);
}

void lk__local_request_finish(lk_local_request *t)
{
  t->callbacks = NULL;
  t->acquisition.whole = false;
  lk__local_request_unref(t);
}

/* ---- order ------------------------------------------------------------- */

void lk__local_request_enqueue(lk_local_request *t)
{
  lk__safe_list_add(&t->queue->waiters, &t->link);
}

void lk__local_request_dequeue(lk_local_request *t)
{
  lk__safe_list_remove(&t->queue->waiters, &t->link);
}

bool lk__local_request_is_waiting(const lk_local_request *t)
{
  return t->end == NULL && !lk__list_empty(&t->link);
}

lk_local_request *lk__local_queue_first(const lk_local_queue *q)
{
  const lk_link *all = &q->waiters.members;

  return lk__list_empty(all) ? NULL
                             : LK_OWNER(all->next, lk_local_request, link);
}

/* ---- ends -------------------------------------------------------------- */

/* Not in the call that brought it about. */
void lk__local_request_end_later(lk_local_request *t,
                                 void (*end)(void *arg, int err), int err)
{
  lk__list_add(&t->queue->ends, &t->link);
  t->end = end;
  t->err = err;
  lk__local_queue_schedule(t->queue);
}

void lk__local_queue_report_ends(lk_local_queue *q)
{
  lk_link now;

  lk__list_init(&now);
  lk__list_move(&now, &q->ends);
  for (lk_link *l; (l = lk__list_pop(&now)) != NULL;) {
    lk_local_request *t = LK_OWNER(l, lk_local_request, link);

    if (t->callbacks != NULL)
      t->end(t->arg, t->err);
    lk__local_request_finish(t);
  }
}

void lk__local_queue_end_first(lk_local_queue *q, int err)
{
  lk_local_request *t = lk__local_queue_first(q);

  if (t == NULL)
    return;
  lk__local_request_dequeue(t);
  t->callbacks->ended(t->arg, err);
  lk__local_request_finish(t);
}

/* ---- places ------------------------------------------------------------ */

static size_t ahead_of_first(const lk_local_queue *q)
{
  return lk__contender_holds(q->node) ? 1 : q->node->predecessors.count;
}

size_t lk__local_queue_count_before(const lk_local_queue *q,
                                    const lk_local_request *t)
{
  const lk_link *all = &q->waiters.members;
  const lk_link *end = t == NULL ? all : &t->link;
  size_t ahead = ahead_of_first(q);

  for (const lk_link *l = all->next; l != end; l = l->next)
    ahead++;
  return ahead;
}

/* Who stands before all of ours, or NULL while that is not known. */
static const char *head(const lk_local_queue *q)
{
  if (q->node == NULL)
    return NULL;
  return lk__contender_holds(q->node) ? q->node->own.path
                                      : q->node->predecessors.first;
}

static void tell_place(lk_local_queue *q, lk_local_request *t)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING,
                      .position = lk__local_queue_count_before(q, t),
                      .node = head(q)};

  t->told = true;
  t->callbacks->notice(t->arg, &notice);
}

void lk__local_queue_report_positions(lk_local_queue *q)
{
  lk_walk w;

  lk__walk_begin(&w, &q->waiters);
  for (lk_link *l; (l = lk__walk_next(&w)) != NULL;) {
    lk_local_request *t = LK_OWNER(l, lk_local_request, link);

    if (!t->told && head(q) != NULL)
      tell_place(q, t);
  }
}
