/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_handoff.h"
#include "recipes/local/local_node.h"
#include "recipes/local/local_request.h"
#include "recipes/queue/contender.h"

static const lk_acquisition_callbacks local_contender_callbacks;

static void local_queue_detach_node(lk_local_queue *q)
{
  lk_contender *node = q->node;

  q->node = NULL;
  q->handoffs = 0;
  lk__contender_unref(node);
}

void lk__local_node_update_once(lk_local_queue *q)
{
  const lk_local_request *first = lk__local_queue_first(q);

  q->options.contender.once = first != NULL && first->once;
}

void lk__local_node_begin_if_needed(lk_local_queue *q)
{
  while (lk__local_queue_first(q) != NULL && q->node == NULL) {
    if (q->lease->end_err != 0) {
      lk__local_queue_end_first(q, q->lease->end_err);
      continue;
    }
    lk__local_node_update_once(q);
    q->node = lk__contender_new(q->lease, &q->options.contender,
                                &local_contender_callbacks, q);
    if (q->node == NULL) {
      lk__local_queue_end_first(q, LK_ERR_NO_MEMORY);
      continue;
    }
    lk__contender_ref(q->node); /* until local_queue_detach_node() */
    lk__contender_begin(q->node);
  }
  if (q->node == NULL)
    lk__local_queue_report_ends(q);
}

void lk__local_node_give_back(lk_local_queue *q)
{
  const bool report_gone = false;

  lk__contender_stop(q->node, report_gone);
  local_queue_detach_node(q);
  lk__local_node_begin_if_needed(q);
}

void lk__local_node_release(lk_local_queue *q,
                            const lk_acquisition_callbacks *callbacks,
                            void *arg)
{
  bool report_gone = callbacks != NULL;

  if (report_gone) {
    q->node->callbacks = callbacks;
    q->node->callbacks_arg = arg;
  }
  lk__contender_stop(q->node, report_gone);
  local_queue_detach_node(q);
}

/* ---- in the next turn of the loop --------------------------------------- */

/* The node holds the lock, and no local request does. */
static bool local_node_is_free(const lk_local_queue *q)
{
  return q->node != NULL && q->holder == NULL && lk__contender_holds(q->node);
}

static void local_node_hand_off_or_give_back(lk_local_queue *q)
{
  if (lk__local_handoff_is_allowed(q))
    lk__local_handoff_to_first(q);
  else
    lk__local_node_give_back(q);
}

void lk__local_node_on_timer(lk_client *c, void *arg)
{
  lk_local_queue *q = arg;

  (void)c;
  q->refs++;
  lk__local_queue_report_ends(q);
  if (local_node_is_free(q))
    local_node_hand_off_or_give_back(q);
  lk__local_queue_report_positions(q);
  lk__local_queue_unref(q);
}

/* ---- callbacks of the contender ---------------------------------------- */

static void local_contender_granted(void *arg)
{
  lk_local_queue *q = arg;

  q->refs++;
  lk__local_request_grant(lk__local_queue_first(q));
  lk__local_queue_unref(q);
}

/* End all requests that wait now. They leave the queue before the first
 * callback is invoked: a callback may add a request, which gets a new
 * contender. */
static void local_queue_end_all(lk_local_queue *q, int err)
{
  for (lk_local_request *r; (r = lk__local_queue_first(q)) != NULL;) {
    lk__local_request_dequeue(r);
    lk__local_request_end_later(r, r->callbacks->ended, err);
  }
  lk__local_queue_report_ends(q);
}

static void local_contender_ended(void *arg, int err)
{
  lk_local_queue *q = arg;

  q->refs++;
  local_queue_detach_node(q);
  if (q->lease->end_err != 0 || err == LK_ERR_SESSION_EXPIRED)
    local_queue_end_all(q, err);
  else
    lk__local_queue_end_first(q, err);
  lk__local_node_begin_if_needed(q);
  lk__local_queue_unref(q);
}

static void local_contender_lost(void *arg, int err)
{
  lk_local_queue *q = arg;
  lk_local_request *r = q->holder;

  q->refs++;
  local_queue_detach_node(q);
  q->holder = NULL;
  if (r != NULL) {
    r->acquisition.held_with_parts = false;
    r->callbacks->lost(r->arg, err);
    lk__local_request_finish(r);
  }
  lk__local_node_begin_if_needed(q);
  lk__local_queue_unref(q);
}

/* Notices are passed on to the holder, or to the first request while the
 * contender waits. */
static void local_contender_on_notice(void *arg, const lk_notice *notice)
{
  lk_local_queue *q = arg;
  lk_local_request *r =
      q->holder != NULL ? q->holder : lk__local_queue_first(q);

  q->refs++;
  if (r != NULL && notice->type == LK_NOTICE_WAITING) {
    r->position_reported = true;
    lk__local_queue_start_timer(q); /* to report positions to later requests */
  }
  if (local_node_is_free(q))
    lk__local_queue_start_timer(q); /* the lease may now allow the handoff */
  else if (r != NULL)
    r->callbacks->notice(r->arg, notice);
  lk__local_queue_unref(q);
}

static const lk_acquisition_callbacks local_contender_callbacks = {
    .granted = local_contender_granted,
    .ended = local_contender_ended,
    .lost = local_contender_lost,
    .notice = local_contender_on_notice};
