/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_request.h"

#include "base/mem.h"

/* ---- life -------------------------------------------------------------- */

lk_local_request *
lk__local_request_new(lk_local_queue *q, lk_lock *l,
                      const lk_acquisition_callbacks *callbacks)
{
  lk_local_request *r = lk__mem_new(&q->lease->mem, sizeof *r);

  if (r == NULL)
    return NULL;
  r->queue = q;
  lk__list_init(&r->link);
  r->refs = 1;
  r->callbacks = callbacks;
  r->arg = l;
  r->once = l->options.contender.once;
  q->refs++;
  return r;
}

void lk__local_request_unref(lk_local_request *r)
{
  lk_local_queue *q = r->queue;

  if (--r->refs > 0)
    return;
  if (r->node != NULL)
    lk__contender_unref(r->node);
  lk__mem_free(&q->lease->mem, r);
  lk__local_queue_unref(q);
}

void lk__local_request_finish(lk_local_request *r)
{
  r->callbacks = NULL;
  r->acquisition.held_with_parts = false;
  lk__local_request_unref(r);
}

/* ---- order ------------------------------------------------------------- */

void lk__local_request_enqueue(lk_local_request *r)
{
  lk__safe_list_add(&r->queue->waiters, &r->link);
}

void lk__local_request_dequeue(lk_local_request *r)
{
  lk__safe_list_remove(&r->queue->waiters, &r->link);
}

/* `link` is in the list of waiters, or in the list of queued ends, or in none.
 */
bool lk__local_request_is_waiting(const lk_local_request *r)
{
  bool is_in_list = !lk__list_empty(&r->link);
  bool end_is_queued = r->end != NULL;

  return is_in_list && !end_is_queued;
}

lk_local_request *lk__local_queue_first(const lk_local_queue *q)
{
  const lk_link *waiters = &q->waiters.members;

  return lk__list_empty(waiters)
             ? NULL
             : LK_OWNER(waiters->next, lk_local_request, link);
}

/* ---- grant ------------------------------------------------------------- */

void lk__local_request_grant(lk_local_request *r)
{
  lk_local_queue *q = r->queue;

  lk__local_request_dequeue(r);
  q->holder = r;
  r->node = q->node;
  lk__contender_ref(r->node);
  r->acquisition.count = 1;
  r->acquisition.held_with_parts = true;
  r->acquisition.handoffs = q->handoffs;
  if (lk__local_queue_first(q) != NULL)
    lk__local_queue_start_timer(q);
  r->callbacks->granted(r->arg);
}

/* ---- ends -------------------------------------------------------------- */

void lk__local_request_end_later(lk_local_request *r,
                                 void (*end)(void *arg, int err), int err)
{
  lk__list_add(&r->queue->ends, &r->link);
  r->end = end;
  r->err = err;
  lk__local_queue_start_timer(r->queue);
}

void lk__local_queue_report_ends(lk_local_queue *q)
{
  lk_link ends;

  /* Ends that a callback adds are reported by the next call. */
  lk__list_init(&ends);
  lk__list_move(&ends, &q->ends);
  for (lk_link *l; (l = lk__list_pop(&ends)) != NULL;) {
    lk_local_request *r = LK_OWNER(l, lk_local_request, link);

    if (r->callbacks != NULL)
      r->end(r->arg, r->err);
    lk__local_request_finish(r);
  }
}

void lk__local_queue_end_first(lk_local_queue *q, int err)
{
  lk_local_request *r = lk__local_queue_first(q);

  if (r == NULL)
    return;
  lk__local_request_dequeue(r);
  r->callbacks->ended(r->arg, err);
  lk__local_request_finish(r);
}

/* ---- positions --------------------------------------------------------- */

/* The number of contenders before the waiting requests: the local holder, or
 * the predecessors of the contender. */
static size_t local_queue_count_before_waiters(const lk_local_queue *q)
{
  return lk__contender_holds(q->node) ? 1 : q->node->predecessors.count;
}

/* `end`: a member of the list of waiters, or the list itself, which counts all
 * of them. */
static size_t local_queue_count_up_to(const lk_local_queue *q,
                                      const lk_link *end)
{
  size_t count = local_queue_count_before_waiters(q);

  for (const lk_link *l = q->waiters.members.next; l != end; l = l->next)
    count++;
  return count;
}

size_t lk__local_queue_count_before_new(const lk_local_queue *q)
{
  return local_queue_count_up_to(q, &q->waiters.members);
}

/* The path of the first contender, of this or another client, in the queue of
 * the lock. NULL: not known yet. */
static const char *local_queue_head_path(const lk_local_queue *q)
{
  if (q->node == NULL)
    return NULL;
  return lk__contender_holds(q->node) ? q->node->own.path
                                      : q->node->predecessors.head_path;
}

static void local_request_report_position(lk_local_queue *q,
                                          lk_local_request *r)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING,
                      .position = local_queue_count_up_to(q, &r->link),
                      .node = local_queue_head_path(q)};

  r->position_reported = true;
  r->callbacks->notice(r->arg, &notice);
}

void lk__local_queue_report_positions(lk_local_queue *q)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &q->waiters);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_local_request *r = LK_OWNER(l, lk_local_request, link);

    if (!r->position_reported && local_queue_head_path(q) != NULL)
      local_request_report_position(q, r);
  }
}
