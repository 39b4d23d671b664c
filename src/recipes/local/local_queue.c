/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_request.h"
#include "recipes/queue/contender_start.h"
#include "recipes/queue/state_machine.h"

#include "recipes/common/memory.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/queue_limit.h"

/* ---- life -------------------------------------------------------------- */

void lk__local_queue_unref(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (--q->refs > 0)
    return;
  lk__list_remove(&q->link);
  lk__lease_stop_timer(lease, &q->timer);
  lk__lock_options_free(&q->options, &lease->mem);
  lk__give(&lease->mem, q);
  lk__lease_unref(lease);
}

void lk__local_queue_schedule(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (!lease->life.detached)
    lk__lease_start_timer(lease, &q->timer, lk_client_input_ms(lease->client));
}

void lk__local_queues_stop_timers(lk_session_lease *lease)
{
  for (lk_link *l = lease->queues.local.next; l != &lease->queues.local;
       l = l->next)
    lk__lease_stop_timer(lease, &LK_OWNER(l, lk_local_queue, link)->timer);
}

/* ---- the node ---------------------------------------------------------- */

static const lk_acquisition_callbacks local_contender_callbacks;

static void local_queue_detach_node(lk_local_queue *q)
{
  lk_contender *node = q->node;

  q->node = NULL;
  q->handoffs = 0;
  lk__contender_unref(node);
}

/* The contender gives up instead of waiting if the first request does. */
static void local_queue_update_once(lk_local_queue *q)
{
  const lk_local_request *first = lk__local_queue_first(q);

  q->options.what.once = first != NULL && first->once;
}

/* Begin a contender if requests wait and none exists. */
static void local_queue_ensure_node(lk_local_queue *q)
{
  while (lk__local_queue_first(q) != NULL && q->node == NULL) {
    if (q->lease->over != 0) {
      lk__local_queue_end_first(q, q->lease->over);
      continue;
    }
    local_queue_update_once(q);
    q->node = lk__contender_new(q->lease, &q->options.what,
                                &local_contender_callbacks, q);
    if (q->node == NULL) {
      lk__local_queue_end_first(q, LK_ERR_NO_MEMORY);
      continue;
    }
    lk__contender_ref(q->node);
    lk__contender_begin(q->node);
  }
  if (q->node == NULL)
    lk__local_queue_report_ends(q);
}

static void local_queue_give_node_back(lk_local_queue *q)
{
  lk__contender_stop(q->node, false);
  local_queue_detach_node(q);
  local_queue_ensure_node(q);
}

/* ---- handing off ------------------------------------------------------- */

/* The node holds the lock, and no local request does. */
static bool local_queue_node_is_free(const lk_local_queue *q)
{
  return q->node != NULL && q->holder == NULL && lk__contender_holds(q->node);
}

/* false: the node must be released, for other clients or since it is lost. */
static bool local_queue_may_hand_off(const lk_local_queue *q)
{
  const lk_contender *node = q->node;

  return lk__local_queue_first(q) != NULL && q->handoffs < LK_MAX_HANDOFFS &&
         !node->holding.revoked && node->state == LK_CONTENDER_HELD;
}

static void local_queue_grant_first(lk_local_queue *q)
{
  lk_local_request *r = lk__local_queue_first(q);

  lk__local_request_dequeue(r);
  q->holder = r;
  r->node = q->node;
  lk__contender_ref(r->node);
  r->acquisition.count = 1;
  r->acquisition.whole = true;
  r->acquisition.turn = q->handoffs;
  if (lk__local_queue_first(q) != NULL)
    lk__local_queue_schedule(q);
  r->callbacks->granted(r->arg);
}

/* Grant to the first waiter once the lease is long enough. */
static void local_queue_hand_off(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (!local_queue_may_hand_off(q)) {
    local_queue_give_node_back(q);
  } else if (lk__lease_may_grant(lease, lk_client_clock(lease->client))) {
    q->handoffs++;
    local_queue_grant_first(q);
  } else {
    lk__contender_await_lease(q->node);
  }
}

static void local_queue_on_timer(lk_client *c, void *arg)
{
  lk_local_queue *q = arg;

  (void)c;
  q->refs++;
  lk__local_queue_report_ends(q);
  if (local_queue_node_is_free(q))
    local_queue_hand_off(q);
  lk__local_queue_report_positions(q);
  lk__local_queue_unref(q);
}

/* ---- callbacks of the contender ---------------------------------------- */

static void local_contender_granted(void *arg)
{
  lk_local_queue *q = arg;

  q->refs++;
  local_queue_grant_first(q);
  lk__local_queue_unref(q);
}

/* End the requests that wait now. A callback may add a new request, which gets
 * a new contender. */
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
  if (q->lease->over != 0 || err == LK_ERR_SESSION_EXPIRED)
    local_queue_end_all(q, err);
  else
    lk__local_queue_end_first(q, err);
  local_queue_ensure_node(q);
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
    r->acquisition.whole = false;
    r->callbacks->lost(r->arg, err);
    lk__local_request_finish(r);
  }
  local_queue_ensure_node(q);
  lk__local_queue_unref(q);
}

static void local_contender_on_notice(void *arg, const lk_notice *notice)
{
  lk_local_queue *q = arg;
  lk_local_request *r =
      q->holder != NULL ? q->holder : lk__local_queue_first(q);

  q->refs++;
  if (r != NULL && notice->type == LK_NOTICE_WAITING) {
    r->position_reported = true;
    lk__local_queue_schedule(q); /* for the positions of later requests */
  }
  if (local_queue_node_is_free(q))
    lk__local_queue_schedule(q); /* the notice may allow the hand-off */
  else if (r != NULL && (r == q->holder || !lk__contender_holds(q->node)))
    r->callbacks->notice(r->arg, notice);
  lk__local_queue_unref(q);
}

static const lk_acquisition_callbacks local_contender_callbacks = {
    .granted = local_contender_granted,
    .ended = local_contender_ended,
    .lost = local_contender_lost,
    .notice = local_contender_on_notice};

/* The node of the last holder was deleted, or `err` says why it stays. */
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

/* ---- as an acquisition ------------------------------------------------- */

static lk_local_request *local_request_of(lk_acquisition *a)
{
  return (lk_local_request *)a;
}

/* The error for a request that must not wait behind the local ones, or 0. */
static int local_request_refusal(const lk_local_queue *q,
                                 const lk_local_request *r)
{
  size_t most = q->options.what.max_queue;
  size_t ahead = q->node == NULL ? 0 : lk__local_queue_count_before(q, NULL);

  if (q->node == NULL)
    return 0;
  if (r->once)
    return LK_ERR_BUSY;
  return lk__queue_limit_refusal(false, most, ahead);
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
  q->refs++;
  if (q->node == NULL)
    local_queue_ensure_node(q);
  else
    lk__local_queue_schedule(q);
  lk__local_queue_unref(q);
}

static void local_request_stop_waiting(lk_local_request *r)
{
  lk_local_queue *q = r->queue;

  lk__local_request_dequeue(r);
  lk__local_request_finish(r);
  local_queue_update_once(q);
  if (lk__local_queue_first(q) == NULL && q->holder == NULL && q->node != NULL)
    local_queue_give_node_back(q);
}

/* Hand the node off to the next request, or delete it. */
static void local_request_release(lk_local_request *r, bool report_gone)
{
  lk_local_queue *q = r->queue;

  q->holder = NULL;
  r->acquisition.whole = false;
  if (local_queue_may_hand_off(q)) {
    if (report_gone)
      lk__local_request_end_later(r, r->callbacks->gone, 0);
    else
      lk__local_request_finish(r);
    lk__local_queue_schedule(q);
    return;
  }
  if (report_gone) {
    q->node->callbacks = &released_node_callbacks;
    q->node->callbacks_arg = r;
  }
  lk__contender_stop(q->node, report_gone);
  local_queue_detach_node(q);
  if (!report_gone)
    lk__local_request_finish(r);
  local_queue_ensure_node(q);
}

static void local_request_stop(lk_acquisition *a, bool report_gone)
{
  lk_local_request *r = local_request_of(a);
  lk_local_queue *q = r->queue;

  q->refs++;
  if (!report_gone && r != q->holder && !lk__local_request_is_waiting(r))
    r->callbacks = NULL; /* its end was queued, and is not reported */
  else if (r == q->holder)
    local_request_release(r, report_gone);
  else
    local_request_stop_waiting(r);
  lk__local_queue_unref(q);
}

static void local_request_disown(lk_acquisition *a)
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
    .disown = local_request_disown,
    .ref = local_request_ref,
    .unref = local_request_unref};

/* ---- handles ----------------------------------------------------------- */

static lk_acquisition *
local_request_make(lk_lock *l, const lk_acquisition_callbacks *callbacks)
{
  lk_local_request *r = lk__local_request_new(l->plan, l, callbacks);

  if (r == NULL)
    return NULL;
  r->acquisition.kind = &local_request_kind;
  r->acquisition.parts = &r->node;
  return &r->acquisition;
}

/* Contender nodes with different marks in their names cannot share one node. */
static bool local_queue_matches(const lk_lock_options *a,
                                const lk_lock_options *b)
{
  return a->rules == b->rules && strcmp(a->path, b->path) == 0 &&
         strcmp(a->what.role->kind->text, b->what.role->kind->text) == 0;
}

static lk_local_queue *local_queue_find(const lk_lock *l)
{
  lk_link *all = &l->lease->queues.local;

  for (lk_link *at = all->next; at != all; at = at->next) {
    lk_local_queue *q = LK_OWNER(at, lk_local_queue, link);

    if (local_queue_matches(&q->options, &l->options))
      return q;
  }
  return NULL;
}

static lk_local_queue *local_queue_new(lk_lock *l, const lk_lock_config *config)
{
  lk_session_lease *lease = l->lease;
  lk_local_queue *q = lk__take(&lease->mem, sizeof *q);

  if (q == NULL)
    return NULL;
  if (!lk__lock_options_init(&q->options, &lease->mem, l->options.path, config,
                             LK_MULTILOCK_MUTEX)) {
    lk__lock_options_free(&q->options, &lease->mem);
    lk__give(&lease->mem, q);
    return NULL;
  }
  q->lease = lease;
  q->timer = (lk_timer){.fire = local_queue_on_timer, .arg = q};
  lk__safe_list_init(&q->waiters);
  lk__list_init(&q->ends);
  lk__list_add(&lease->queues.local, &q->link);
  lk__lease_ref(lease);
  return q;
}

static void local_queue_detach_handle(void *plan, const lk_mem *mem)
{
  (void)mem;
  lk__local_queue_unref(plan);
}

bool lk__local_queue_attach(lk_lock *l, const lk_lock_config *config)
{
  lk_local_queue *q = local_queue_find(l);

  if (q == NULL)
    q = local_queue_new(l, config);
  if (q == NULL)
    return false;
  q->refs++;
  l->make = local_request_make;
  l->plan = q;
  l->free_plan = local_queue_detach_handle;
  return true;
}
