/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_request.h"

#include "recipes/common/memory.h"
#include "recipes/queue/holding.h"

/* ---- life -------------------------------------------------------------- */

void lk__local_queue_unref(lk_local_queue *q)
{
  lk_session_lease *k = q->lease;

  if (--q->refs > 0)
    return;
  lk__list_remove(&q->link);
  lk__lease_stop_timer(k, &q->soon);
  lk__lock_options_free(&q->options, &k->mem);
  lk__give(&k->mem, q);
  lk__lease_unref(k);
}

void lk__local_queue_schedule(lk_local_queue *q)
{
  lk_session_lease *k = q->lease;

  if (!k->life.detached)
    lk__lease_start_timer(k, &q->soon, lk_client_now(k->client));
}

void lk__local_queues_stop_timers(lk_session_lease *k)
{
  for (lk_link *l = k->queues.local.next; l != &k->queues.local; l = l->next)
    lk__lease_stop_timer(k, &LK_OWNER(l, lk_local_queue, link)->soon);
}

/* ---- the node ---------------------------------------------------------- */

static const lk_acquisition_callbacks of_queue;

/* Ours no more. */
static void part(lk_local_queue *q)
{
  lk_contender *node = q->node;

  q->node = NULL;
  q->handoffs = 0;
  lk__contender_unref(node);
}

/* Whoever is the first must not wait where it will not. */
static void aim(lk_local_queue *q)
{
  const lk_local_request *first = lk__local_queue_first(q);

  q->options.what.once = first != NULL && first->once;
}

/* Want a node while somebody waits and there is none. */
static void want(lk_local_queue *q)
{
  while (lk__local_queue_first(q) != NULL && q->node == NULL) {
    if (q->lease->over != 0) {
      lk__local_queue_end_first(q, q->lease->over);
      continue;
    }
    aim(q);
    q->node = lk__contender_new(q->lease, &q->options.what, &of_queue, q);
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

static void give_back(lk_local_queue *q)
{
  lk__contender_stop(q->node, false);
  part(q);
  want(q);
}

/* ---- handing on -------------------------------------------------------- */

/* It is held, and nobody here has it. */
static bool is_free(const lk_local_queue *q)
{
  return q->node != NULL && q->holder == NULL && lk__contender_holds(q->node);
}

/* Those elsewhere may wait for it, or ask for it; or it may be lost. */
static bool may_keep(const lk_local_queue *q)
{
  const lk_contender *node = q->node;

  return lk__local_queue_first(q) != NULL && q->handoffs < LK_MAX_HANDOFFS &&
         !node->holding.revoked && node->state == LK_CONTENDER_HELD;
}

static void grant(lk_local_queue *q)
{
  lk_local_request *t = lk__local_queue_first(q);

  lk__local_request_dequeue(t);
  q->holder = t;
  t->node = q->node;
  lk__contender_ref(t->node);
  t->acquisition.count = 1;
  t->acquisition.whole = true;
  t->acquisition.turn = q->handoffs;
  if (lk__local_queue_first(q) != NULL)
    lk__local_queue_schedule(q);
  t->callbacks->granted(t->arg);
}

/* To the first who waits, once the lease is long enough. */
static void hand_over(lk_local_queue *q)
{
  lk_session_lease *k = q->lease;

  if (!may_keep(q)) {
    give_back(q);
  } else if (lk__lease_may_grant(k, lk_client_clock(k->client))) {
    q->handoffs++;
    grant(q);
  } else {
    lk__contender_await_lease(q->node);
  }
}

static void on_soon(lk_client *c, void *arg)
{
  lk_local_queue *q = arg;

  (void)c;
  q->refs++;
  lk__local_queue_report_ends(q);
  if (is_free(q))
    hand_over(q);
  lk__local_queue_report_positions(q);
  lk__local_queue_unref(q);
}

/* ---- what the node's attempt says -------------------------------------- */

static void on_granted(void *arg)
{
  lk_local_queue *q = arg;

  q->refs++;
  grant(q);
  lk__local_queue_unref(q);
}

/* Of those who wait now; who asks again when it is told wants a new node. */
static void end_all(lk_local_queue *q, int err)
{
  for (lk_local_request *t; (t = lk__local_queue_first(q)) != NULL;) {
    lk__local_request_dequeue(t);
    lk__local_request_end_later(t, t->callbacks->ended, err);
  }
  lk__local_queue_report_ends(q);
}

static void on_ended(void *arg, int err)
{
  lk_local_queue *q = arg;

  q->refs++;
  part(q);
  if (q->lease->over != 0 || err == LK_ERR_SESSION_EXPIRED)
    end_all(q, err);
  else
    lk__local_queue_end_first(q, err);
  want(q);
  lk__local_queue_unref(q);
}

static void on_lost(void *arg, int err)
{
  lk_local_queue *q = arg;
  lk_local_request *t = q->holder;

  q->refs++;
  part(q);
  q->holder = NULL;
  if (t != NULL) {
    t->acquisition.whole = false;
    t->callbacks->lost(t->arg, err);
    lk__local_request_finish(t);
  }
  want(q);
  lk__local_queue_unref(q);
}

static void on_news(void *arg, const lk_notice *notice)
{
  lk_local_queue *q = arg;
  lk_local_request *t =
      q->holder != NULL ? q->holder : lk__local_queue_first(q);

  q->refs++;
  if (t != NULL && notice->type == LK_NOTICE_WAITING) {
    t->told = true;
    lk__local_queue_schedule(q); /* those behind it */
  }
  if (is_free(q))
    lk__local_queue_schedule(q); /* it was to be handed over */
  else if (t != NULL && (t == q->holder || !lk__contender_holds(q->node)))
    t->callbacks->notice(t->arg, notice);
  lk__local_queue_unref(q);
}

static const lk_acquisition_callbacks of_queue = {.granted = on_granted,
                                                  .ended = on_ended,
                                                  .lost = on_lost,
                                                  .notice = on_news};

/* The node that its last holder gave back is gone. */
static void on_gone(void *arg, int err)
{
  lk_local_request *t = arg;

  if (t->callbacks != NULL)
    t->callbacks->gone(t->arg, err);
  lk__local_request_finish(t);
}

static void ignore(void *arg, const lk_notice *notice)
{
  (void)arg;
  (void)notice;
}

static const lk_acquisition_callbacks of_leaver = {.notice = ignore,
                                                   .gone = on_gone};

/* ---- what the owner says ----------------------------------------------- */

static lk_local_request *of(lk_acquisition *a)
{
  return (lk_local_request *)a;
}

/* Why it is turned away by who waits here already, or 0. */
static int refusal(const lk_local_queue *q, const lk_local_request *t)
{
  size_t most = q->options.what.max_queue;
  size_t ahead = q->node == NULL ? 0 : lk__local_queue_count_before(q, NULL);

  if (q->node == NULL)
    return 0;
  if (t->once)
    return LK_ERR_BUSY;
  return most > 0 && ahead > most ? LK_ERR_QUEUE_FULL : 0;
}

static void begin(lk_acquisition *a)
{
  lk_local_request *t = of(a);
  lk_local_queue *q = t->queue;
  int err = refusal(q, t);

  if (err != 0) {
    lk__local_request_end_later(t, t->callbacks->ended, err);
    return;
  }
  lk__local_request_enqueue(t);
  q->refs++;
  if (q->node == NULL)
    want(q);
  else
    lk__local_queue_schedule(q);
  lk__local_queue_unref(q);
}

static void stop_waiting(lk_local_request *t)
{
  lk_local_queue *q = t->queue;

  lk__local_request_dequeue(t);
  lk__local_request_finish(t);
  aim(q);
  if (lk__local_queue_first(q) == NULL && q->holder == NULL && q->node != NULL)
    give_back(q);
}

/* Its turn is over: the next one's, or the node goes. */
static void let_go(lk_local_request *t, bool tell)
{
  lk_local_queue *q = t->queue;

  q->holder = NULL;
  t->acquisition.whole = false;
  if (may_keep(q)) {
    if (tell)
      lk__local_request_end_later(t, t->callbacks->gone, 0);
    else
      lk__local_request_finish(t);
    lk__local_queue_schedule(q);
    return;
  }
  if (tell) {
    q->node->callbacks = &of_leaver;
    q->node->callbacks_arg = t;
  }
  lk__contender_stop(q->node, tell);
  part(q);
  if (!tell)
    lk__local_request_finish(t);
  want(q);
}

static void stop(lk_acquisition *a, bool tell)
{
  lk_local_request *t = of(a);
  lk_local_queue *q = t->queue;

  q->refs++;
  if (!tell && t != q->holder && !lk__local_request_is_waiting(t))
    t->callbacks = NULL; /* its end will be told nobody */
  else if (t == q->holder)
    let_go(t, tell);
  else
    stop_waiting(t);
  lk__local_queue_unref(q);
}

static void disown(lk_acquisition *a)
{
  of(a)->callbacks = NULL;
}

static void ref_turn(lk_acquisition *a)
{
  of(a)->refs++;
}

static void unref_attempt(lk_acquisition *a)
{
  lk__local_request_unref(of(a));
}

static const lk_acquisition_kind a_turn = {.begin = begin,
                                           .stop = stop,
                                           .disown = disown,
                                           .ref = ref_turn,
                                           .unref = unref_attempt};

/* ---- handles ----------------------------------------------------------- */

static lk_acquisition *make(lk_lock *l, const lk_acquisition_callbacks *who)
{
  lk_local_request *t = lk__local_request_new(l->plan, l, who);

  if (t == NULL)
    return NULL;
  t->acquisition.kind = &a_turn;
  t->acquisition.parts = &t->node;
  return &t->acquisition;
}

/* Where names differ there are two queues: one node cannot stand in both. */
static bool is_same_queue(const lk_lock_options *a, const lk_lock_options *b)
{
  return a->rules == b->rules && strcmp(a->path, b->path) == 0 &&
         strcmp(a->what.role->kind->text, b->what.role->kind->text) == 0;
}

static lk_local_queue *find(const lk_lock *l)
{
  lk_link *all = &l->lease->queues.local;

  for (lk_link *at = all->next; at != all; at = at->next) {
    lk_local_queue *q = LK_OWNER(at, lk_local_queue, link);

    if (is_same_queue(&q->options, &l->options))
      return q;
  }
  return NULL;
}

static lk_local_queue *open(lk_lock *l, const lk_lock_config *config)
{
  lk_session_lease *k = l->lease;
  lk_local_queue *q = lk__take(&k->mem, sizeof *q);

  if (q == NULL)
    return NULL;
  if (!lk__lock_options_init(&q->options, &k->mem, l->options.path, config,
                             LK_MULTILOCK_MUTEX)) {
    lk__lock_options_free(&q->options, &k->mem);
    lk__give(&k->mem, q);
    return NULL;
  }
  q->lease = k;
  q->soon = (lk_timer){.fire = on_soon, .arg = q};
  lk__safe_list_init(&q->waiters);
  lk__list_init(&q->ends);
  lk__list_add(&k->queues.local, &q->link);
  lk__lease_ref(k);
  return q;
}

static void leave(void *plan, const lk_mem *mem)
{
  (void)mem;
  lk__local_queue_unref(plan);
}

bool lk__local_queue_attach(lk_lock *l, const lk_lock_config *config)
{
  lk_local_queue *q = find(l);

  if (q == NULL)
    q = open(l, config);
  if (q == NULL)
    return false;
  q->refs++;
  l->make = make;
  l->plan = q;
  l->free_plan = leave;
  return true;
}
