/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_acquisition.h"
#include "recipes/local/local_handoff.h"
#include "recipes/local/local_node.h"
#include "recipes/local/local_request.h"
#include "recipes/queue/queue.h"

/* The cleanup of the released node has ended: it was deleted, or `err` says why
 * it could not be deleted. */
static void released_node_gone(void *arg, int err)
{
  lk_local_request *r = arg;

  if (r->callbacks != NULL)
    r->callbacks->gone(r->arg, err);
  lk__local_request_finish(r);
}

static void released_node_ignore_notice(void *arg, const lk_notice *notice)
{
  (void)arg;
  (void)notice;
}

static const lk_acquisition_callbacks released_node_callbacks = {
    .notice = released_node_ignore_notice, .gone = released_node_gone};

/* ---- functions of lk_acquisition_kind ---------------------------------- */

static lk_local_request *local_request_of(lk_acquisition *a)
{
  return (lk_local_request *)a; /* `acquisition` is the first member */
}

/* Why a new request must not wait behind the other local ones, or 0. If there
 * is no contender yet, one is begun, which looks at its queue by itself. */
static int local_request_refusal(const lk_local_queue *q,
                                 const lk_local_request *r)
{
  if (q->node == NULL)
    return 0;
  const bool once = false;

  if (r->once)
    return LK_ERR_BUSY;
  return lk__max_queue_refusal(once, q->options.contender.max_queue,
                               lk__local_queue_count_before_new(q));
}

static void local_request_begin(lk_acquisition *a)
{
  lk_local_request *r = local_request_of(a);
  lk_local_queue *q = r->queue;
  int err = local_request_refusal(q, r);

  if (err != 0) {
    lk__local_request_end_later(r, r->callbacks->ended, err);
    return;
  }
  lk__local_request_enqueue(r);
  q->refs++; /* a callback may free the last handle */
  if (q->node == NULL)
    lk__local_node_begin_if_needed(q);
  else
    lk__local_queue_start_timer(q); /* to report the position of the request */
  lk__local_queue_unref(q);
}

static void local_request_stop_waiting(lk_local_request *r)
{
  lk_local_queue *q = r->queue;

  lk__local_request_dequeue(r);
  lk__local_request_finish(r);
  lk__local_node_update_once(q);
  if (lk__local_queue_first(q) == NULL && q->holder == NULL && q->node != NULL)
    lk__local_node_give_back(q);
}

/* Hand the node off to the next request (in the next turn of the loop), or
 * delete it. */
static void local_request_release(lk_local_request *r, bool report_gone)
{
  lk_local_queue *q = r->queue;

  q->holder = NULL;
  r->acquisition.held_with_parts = false;
  if (lk__local_handoff_is_allowed(q)) {
    if (report_gone)
      lk__local_request_end_later(r, r->callbacks->gone, 0);
    else
      lk__local_request_finish(r);
    lk__local_queue_start_timer(q);
    return;
  }
  lk__local_node_release(q, report_gone ? &released_node_callbacks : NULL, r);
  if (!report_gone)
    lk__local_request_finish(r);
  lk__local_node_begin_if_needed(q);
}

static void local_request_stop(lk_acquisition *a, bool report_gone)
{
  lk_local_request *r = local_request_of(a);
  lk_local_queue *q = r->queue;

  q->refs++;
  if (r == q->holder)
    local_request_release(r, report_gone);
  else if (!report_gone && !lk__local_request_is_waiting(r))
    r->callbacks = NULL; /* the end was queued, and is not reported any more */
  else
    local_request_stop_waiting(r);
  lk__local_queue_unref(q);
}

static void local_request_remove_callbacks(lk_acquisition *a)
{
  local_request_of(a)->callbacks = NULL;
}

static void local_request_ref(lk_acquisition *a)
{
  local_request_of(a)->refs++;
}

static void local_request_unref(lk_acquisition *a)
{
  lk__local_request_unref(local_request_of(a));
}

static const lk_acquisition_kind local_request_kind = {
    .begin = local_request_begin,
    .stop = local_request_stop,
    .remove_callbacks = local_request_remove_callbacks,
    .ref = local_request_ref,
    .unref = local_request_unref};

/* ---- handles ----------------------------------------------------------- */

static lk_acquisition *
local_request_make(lk_lock *l, const lk_acquisition_callbacks *callbacks)
{
  lk_local_request *r = lk__local_request_new(l->source.plan, l, callbacks);

  if (r == NULL)
    return NULL;
  r->acquisition.kind = &local_request_kind;
  r->acquisition.parts = &r->node;
  return &r->acquisition;
}

static void local_queue_detach_handle(void *plan, const lk_mem *mem)
{
  (void)mem;
  lk__local_queue_unref(plan);
}

bool lk__local_acquisition_attach(lk_lock *l, const lk_lock_config *config)
{
  lk_local_queue *q = lk__local_queue_find(l);

  if (q == NULL)
    q = lk__local_queue_new(l, config, lk__local_node_on_timer);
  if (q == NULL)
    return false;
  q->refs++; /* the reference of the handle; a new queue has none */
  l->source.make = local_request_make;
  l->source.plan = q;
  l->source.free_plan = local_queue_detach_handle;
  l->has_local_queue = true;
  return true;
}
