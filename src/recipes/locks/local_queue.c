/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/locks/local_queue.h"

#include "base/mem.h"
#include "recipes/locks/lock.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/queue.h"

/* The most handoffs of one node. After them the node is deleted, and a new
    node queues, so that other clients are not starved. */
enum { LK_MAX_HANDOFFS = 16 };

static void local_request_finish(lk_local_request *r);
static void local_request_dequeue(lk_local_request *r);
static lk_local_request *local_queue_first(const lk_local_queue *q);
static void local_request_grant(lk_local_request *r);
static void local_request_end_later(lk_local_request *r,
                                    void (*end)(void *arg, int err), int err);
static void local_queue_report_ends(lk_local_queue *q);
static void local_queue_end_first(lk_local_queue *q, int err);
static void local_queue_report_positions(lk_local_queue *q);
static bool local_handoff_is_allowed(const lk_local_queue *q);
static void local_handoff_to_first(lk_local_queue *q);
static lk_local_queue *local_queue_find(const lk_lock *l);
static lk_local_queue *local_queue_new(const lk_lock *l,
                                       const lk_lock_config *config,
                                       void (*fire)(lk_client *c, void *arg));
static void local_queue_unref(lk_local_queue *q);
static void local_queue_start_timer(lk_local_queue *q);

/* ---- the node ------------------------------------------------------------ */

/* The contender that the requests of a local queue share: when it begins, and
   when its node is deleted. */

static const lk_acquisition_callbacks local_contender_callbacks;

static void local_queue_detach_node(lk_local_queue *q)
{
  lk_contender *node = q->node;

  q->node = NULL;
  q->handoffs = 0;
  lk__contender_unref(node);
}

/* Set the contender's option `once` to that of the first request. */
static void local_node_update_once(lk_local_queue *q)
{
  const lk_local_request *first = local_queue_first(q);

  q->options.contender.once = first != NULL && first->once;
}

/* Begin a contender if requests wait and there is no contender. If there is
   still none afterwards, report the queued ends at once, since a closed client
   fires no timer. */
static void local_node_begin_if_needed(lk_local_queue *q)
{
  while (local_queue_first(q) != NULL && q->node == NULL) {
    if (q->lease->end_err != 0) {
      local_queue_end_first(q, q->lease->end_err);
      continue;
    }
    local_node_update_once(q);
    q->node = lk__contender_new(q->lease, &q->options.contender,
                                &local_contender_callbacks, q);
    if (q->node == NULL) {
      local_queue_end_first(q, LK_ERR_NO_MEMORY);
      continue;
    }
    lk__contender_ref(q->node); /* until local_queue_detach_node() */
    lk__contender_begin(q->node);
  }
  if (q->node == NULL)
    local_queue_report_ends(q);
}

/* Delete the node, which no request holds. Requests that wait get a new one.
 */
static void local_node_give_back(lk_local_queue *q)
{
  lk__contender_stop(q->node, LK_NO_GONE_REPORT);
  local_queue_detach_node(q);
  local_node_begin_if_needed(q);
}

/* The holder releases, and the node is not handed off: delete it. `callbacks`
   are those of its contender from then on; NULL: the end of the cleanup is not
   reported. */
static void local_node_release(lk_local_queue *q,
                               const lk_acquisition_callbacks *callbacks,
                               void *arg)
{
  lk_gone_report report =
      callbacks != NULL ? LK_GONE_REPORT : LK_NO_GONE_REPORT;

  if (report == LK_GONE_REPORT) {
    q->node->callbacks = callbacks;
    q->node->callbacks_arg = arg;
  }
  lk__contender_stop(q->node, report);
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
  if (local_handoff_is_allowed(q))
    local_handoff_to_first(q);
  else
    local_node_give_back(q);
}

/* lk_timer.fire of a local queue: report queued ends, and hand off or delete a
   node that no request holds. */
static void local_node_on_timer(lk_client *c, void *arg)
{
  lk_local_queue *q = arg;

  (void)c;
  q->refs++;
  local_queue_report_ends(q);
  if (local_node_is_free(q))
    local_node_hand_off_or_give_back(q);
  local_queue_report_positions(q);
  local_queue_unref(q);
}

/* ---- callbacks of the contender ---------------------------------------- */

static void local_contender_granted(void *arg)
{
  lk_local_queue *q = arg;

  q->refs++;
  local_request_grant(local_queue_first(q));
  local_queue_unref(q);
}

/* End all requests that wait now. They leave the queue before the first
 * callback is invoked: a callback may add a request, which gets a new
 * contender. */
static void local_queue_end_all(lk_local_queue *q, int err)
{
  for (lk_local_request *r; (r = local_queue_first(q)) != NULL;) {
    local_request_dequeue(r);
    local_request_end_later(r, r->callbacks->ended, err);
  }
  local_queue_report_ends(q);
}

static void local_contender_ended(void *arg, int err)
{
  lk_local_queue *q = arg;

  q->refs++;
  local_queue_detach_node(q);
  if (q->lease->end_err != 0 || err == LK_ERR_SESSION_EXPIRED)
    local_queue_end_all(q, err);
  else
    local_queue_end_first(q, err);
  local_node_begin_if_needed(q);
  local_queue_unref(q);
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
    local_request_finish(r);
  }
  local_node_begin_if_needed(q);
  local_queue_unref(q);
}

/* Notices are passed on to the holder, or to the first request while the
 * contender waits. */
static void local_contender_on_notice(void *arg, const lk_notice *notice)
{
  lk_local_queue *q = arg;
  lk_local_request *r = q->holder != NULL ? q->holder : local_queue_first(q);

  q->refs++;
  if (r != NULL && notice->type == LK_NOTICE_WAITING) {
    r->position_reported = true;
    local_queue_start_timer(q); /* to report positions to later requests */
  }
  if (local_node_is_free(q))
    local_queue_start_timer(q); /* the lease may now allow the handoff */
  else if (r != NULL)
    r->callbacks->notice(r->arg, notice);
  local_queue_unref(q);
}

static const lk_acquisition_callbacks local_contender_callbacks = {
    .granted = local_contender_granted,
    .ended = local_contender_ended,
    .lost = local_contender_lost,
    .notice = local_contender_on_notice};

/* ---- requests ------------------------------------------------------------ */

/* ---- life -------------------------------------------------------------- */

/* Make a request of `l`, with one reference, the owner's. NULL: no memory. */
static lk_local_request *
local_request_new(lk_local_queue *q, lk_lock *l,
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

static void lk__local_request_unref(lk_local_request *r)
{
  lk_local_queue *q = r->queue;

  if (--r->refs > 0)
    return;
  if (r->node != NULL)
    lk__contender_unref(r->node);
  lk__mem_free(&q->lease->mem, r);
  local_queue_unref(q);
}

/* End the request without a report, and drop the owner's reference. */
static void local_request_finish(lk_local_request *r)
{
  r->callbacks = NULL;
  r->acquisition.held_with_parts = false;
  lk__local_request_unref(r);
}

/* ---- order ------------------------------------------------------------- */

static void local_request_enqueue(lk_local_request *r)
{
  lk__safe_list_add(&r->queue->waiters, &r->link);
}

static void local_request_dequeue(lk_local_request *r)
{
  lk__safe_list_remove(&r->queue->waiters, &r->link);
}

/* `link` is in the list of waiters, or in the list of queued ends, or in none.
 */
static bool local_request_is_waiting(const lk_local_request *r)
{
  bool is_in_list = !lk__list_empty(&r->link);
  bool end_is_queued = r->end != NULL;

  return is_in_list && !end_is_queued;
}

/* The first waiter, or NULL. */
static lk_local_request *local_queue_first(const lk_local_queue *q)
{
  const lk_link *waiters = &q->waiters.members;

  return lk__list_empty(waiters)
             ? NULL
             : LK_OWNER(waiters->next, lk_local_request, link);
}

/* ---- grant ------------------------------------------------------------- */

/* The queue's node holds: grant the lock to `r`, the first waiter. */
static void local_request_grant(lk_local_request *r)
{
  lk_local_queue *q = r->queue;

  local_request_dequeue(r);
  q->holder = r;
  r->node = q->node;
  lk__contender_ref(r->node);
  r->acquisition.count = 1;
  r->acquisition.held_with_parts = true;
  r->acquisition.handoffs = q->handoffs;
  if (local_queue_first(q) != NULL)
    local_queue_start_timer(q);
  r->callbacks->granted(r->arg);
}

/* ---- ends -------------------------------------------------------------- */

/* Queue the end of `r`: the queue's timer invokes `end` with `err`. */
static void local_request_end_later(lk_local_request *r,
                                    void (*end)(void *arg, int err), int err)
{
  lk__list_add(&r->queue->ends, &r->link);
  r->end = end;
  r->err = err;
  local_queue_start_timer(r->queue);
}

/* Report the ends that are queued at the time of the call. */
static void local_queue_report_ends(lk_local_queue *q)
{
  lk_link ends;

  /* Ends that a callback adds are reported by the next call. */
  lk__list_init(&ends);
  lk__list_move(&ends, &q->ends);
  for (lk_link *l; (l = lk__list_pop(&ends)) != NULL;) {
    lk_local_request *r = LK_OWNER(l, lk_local_request, link);

    if (r->callbacks != NULL)
      r->end(r->arg, r->err);
    local_request_finish(r);
  }
}

/* End the first waiter with `err` and report it at once. */
static void local_queue_end_first(lk_local_queue *q, int err)
{
  lk_local_request *r = local_queue_first(q);

  if (r == NULL)
    return;
  local_request_dequeue(r);
  r->callbacks->ended(r->arg, err);
  local_request_finish(r);
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

/* The number of predecessors, local and other ones, that a request would have
   if it were added now. The queue must have a contender. */
static size_t local_queue_count_before_new(const lk_local_queue *q)
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

/* Report to each waiting request its position, if that is known and was not
   reported yet. */
static void local_queue_report_positions(lk_local_queue *q)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &q->waiters);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_local_request *r = LK_OWNER(l, lk_local_request, link);

    if (!r->position_reported && local_queue_head_path(q) != NULL)
      local_request_report_position(q, r);
  }
}

/* ---- the handoff --------------------------------------------------------- */

/* The handoff of a held node from one local request to the next, without a
   request to the servers. */

/* Whether the held node may be handed off to the first local request. It must
   be deleted instead if no request waits, the limit is reached, another client
   has asked for the release, the lease is about to end, or a guarded multi of
   the last holder may be executed later, when the next one holds. */
static bool local_handoff_is_allowed(const lk_local_queue *q)
{
  const lk_contender *node = q->node;

  return local_queue_first(q) != NULL && q->handoffs < LK_MAX_HANDOFFS &&
         !node->holding.revoked && node->holding.unanswered_multis == 0 &&
         node->state == LK_CONTENDER_HELD;
}

/* Grant the lock to the first request, if the lease is long enough. Otherwise
   renew the lease; a notice of the contender then starts the next attempt. For
   a handoff that is allowed. */
static void local_handoff_to_first(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (lk__lease_may_grant(lease, lk_client_clock(lease->client))) {
    q->handoffs++;
    local_request_grant(local_queue_first(q));
  } else {
    lk__contender_await_lease(q->node);
  }
}

/* ---- the acquisition ----------------------------------------------------- */

/* The cleanup of the released node has ended: it was deleted, or `err` says why
 * it could not be deleted. */
static void released_node_gone(void *arg, int err)
{
  lk_local_request *r = arg;

  if (r->callbacks != NULL)
    r->callbacks->gone(r->arg, err);
  local_request_finish(r);
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
                               local_queue_count_before_new(q));
}

static void local_request_begin(lk_acquisition *a)
{
  lk_local_request *r = local_request_of(a);
  lk_local_queue *q = r->queue;
  int err = local_request_refusal(q, r);

  if (err != 0) {
    local_request_end_later(r, r->callbacks->ended, err);
    return;
  }
  local_request_enqueue(r);
  q->refs++; /* a callback may free the last handle */
  if (q->node == NULL)
    local_node_begin_if_needed(q);
  else
    local_queue_start_timer(q); /* to report the position of the request */
  local_queue_unref(q);
}

static void local_request_stop_waiting(lk_local_request *r)
{
  lk_local_queue *q = r->queue;

  local_request_dequeue(r);
  local_request_finish(r);
  local_node_update_once(q);
  if (local_queue_first(q) == NULL && q->holder == NULL && q->node != NULL)
    local_node_give_back(q);
}

/* Hand the node off to the next request (in the next turn of the loop), or
 * delete it. */
static void local_request_release(lk_local_request *r, lk_gone_report report)
{
  lk_local_queue *q = r->queue;

  q->holder = NULL;
  r->acquisition.held_with_parts = false;
  if (local_handoff_is_allowed(q)) {
    if (report == LK_GONE_REPORT)
      local_request_end_later(r, r->callbacks->gone, 0);
    else
      local_request_finish(r);
    local_queue_start_timer(q);
    return;
  }
  local_node_release(
      q, report == LK_GONE_REPORT ? &released_node_callbacks : NULL, r);
  if (report == LK_NO_GONE_REPORT)
    local_request_finish(r);
  local_node_begin_if_needed(q);
}

static void local_request_stop(lk_acquisition *a, lk_gone_report report)
{
  lk_local_request *r = local_request_of(a);
  lk_local_queue *q = r->queue;

  q->refs++;
  if (r == q->holder)
    local_request_release(r, report);
  else if (report == LK_NO_GONE_REPORT && !local_request_is_waiting(r))
    r->callbacks = NULL; /* the end was queued, and is not reported any more */
  else
    local_request_stop_waiting(r);
  local_queue_unref(q);
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
  lk_local_request *r = local_request_new(l->source.plan, l, callbacks);

  if (r == NULL)
    return NULL;
  r->acquisition.kind = &local_request_kind;
  r->acquisition.parts = &r->node;
  return &r->acquisition;
}

static void local_queue_detach_handle(void *plan, const lk_mem *mem)
{
  (void)mem;
  local_queue_unref(plan);
}

bool lk__local_acquisition_attach(lk_lock *l, const lk_lock_config *config)
{
  lk_local_queue *q = local_queue_find(l);

  if (q == NULL)
    q = local_queue_new(l, config, local_node_on_timer);
  if (q == NULL)
    return false;
  q->refs++; /* the reference of the handle; a new queue has none */
  l->source.make = local_request_make;
  l->source.plan = q;
  l->source.free_plan = local_queue_detach_handle;
  l->has_local_queue = true;
  return true;
}

/* ---- the queue ----------------------------------------------------------- */

/* ---- life --------------------------------------------------------------- */

static void local_queue_unref(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (--q->refs > 0)
    return;
  lk__list_remove(&q->link);
  lk__list_remove(&q->close_hook.link);
  lk__lease_stop_timer(lease, &q->timer);
  lk__lock_options_free(&q->options, &lease->mem);
  lk__mem_free(&lease->mem, q);
  lk__lease_unref(lease);
}

/* Start the queue's timer, to fire in the next turn of the loop. The timer
   invokes callbacks that must not be invoked inside a call of an owner. */
static void local_queue_start_timer(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (!lease->life.detached) /* then the client still exists */
    lk__lease_start_timer(lease, &q->timer, lk_client_input_ms(lease->client));
}

static void on_client_closed(lk_close_hook *h)
{
  lk_local_queue *q = LK_OWNER(h, lk_local_queue, close_hook);

  lk__lease_stop_timer(q->lease, &q->timer);
}

/* Make the queue of the handle's mutex; `fire` is the function of its timer.
   NULL: no memory. */
static lk_local_queue *local_queue_new(const lk_lock *l,
                                       const lk_lock_config *config,
                                       void (*fire)(lk_client *c, void *arg))
{
  lk_session_lease *lease = l->lease;
  lk_local_queue *q = lk__mem_new(&lease->mem, sizeof *q);

  if (q == NULL)
    return NULL;
  if (!lk__lock_options_init(&q->options, &lease->mem, l->options.path, config,
                             LK_MULTILOCK_MUTEX)) {
    lk__lock_options_free(&q->options, &lease->mem);
    lk__mem_free(&lease->mem, q);
    return NULL;
  }
  q->lease = lease;
  q->timer = (lk_timer){.fire = fire, .arg = q};
  lk__safe_list_init(&q->waiters);
  lk__list_init(&q->ends);
  lk__list_add(&lease->queues.local, &q->link);
  q->close_hook.closed = on_client_closed;
  lk__list_add(&lease->life.close_hooks, &q->close_hook.link);
  lk__lease_ref(lease);
  return q;
}

/* ---- the queue of a mutex ----------------------------------------------- */

/* Whether two mutexes can share one contender node: they must have the same
 * path, layout and text in the names of their nodes. */
static bool lock_options_share_node(const lk_lock_options *a,
                                    const lk_lock_options *b)
{
  return a->rules == b->rules && strcmp(a->path, b->path) == 0 &&
         strcmp(a->contender.role->kind->text, b->contender.role->kind->text) ==
             0;
}

/* The queue of the handle's mutex, or NULL. */
static lk_local_queue *local_queue_find(const lk_lock *l)
{
  lk_link *queues = &l->lease->queues.local;

  for (lk_link *at = queues->next; at != queues; at = at->next) {
    lk_local_queue *q = LK_OWNER(at, lk_local_queue, link);

    if (lock_options_share_node(&q->options, &l->options))
      return q;
  }
  return NULL;
}
