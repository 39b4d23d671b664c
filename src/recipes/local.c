/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local.h"

#include "recipes/memory.h"

/** One owner's wish. */
typedef struct turn {
  lk_attempt attempt;
  lk_contend *node; /**< once it was granted: the only part */
  lk_local *queue;
  size_t refs; /* the owner's, until it was told the end; questions */
  const lk_owner *owner;
  void *arg;
  bool once;
  bool told; /* its place */
  int err;   /* of an end that is to be told */
  void (*end)(void *arg, int err);
  struct turn *next; /* behind it, or in the list of ends */
} turn;

struct lk_local {
  lk_local *next; /* the keeper's */
  lk_keeper *keeper;
  size_t refs;        /* handles, turns, whoever is inside */
  lk_options options; /* of the handle that was the first */
  lk_contend *node;   /* wanted or held; or NULL */
  turn *holder;       /* whose turn it is, or NULL */
  turn *first;        /* who waits, in order */
  turn *ends;         /* ends to be told, in no order */
  unsigned handoffs;  /* in a row */
  lk_timer soon;
};

/* ---- life -------------------------------------------------------------- */

static void unref(lk_local *q)
{
  lk_keeper *k = q->keeper;
  lk_local **at = &k->locals;

  if (--q->refs > 0)
    return;
  while (*at != q)
    at = &(*at)->next;
  *at = q->next;
  if (!k->detached)
    lk_timer_stop(k->client, &q->soon);
  lk__options_free(&q->options, &k->mem);
  lk__give(&k->mem, q);
  lk__keeper_unref(k);
}

static void unref_turn(turn *t)
{
  lk_local *q = t->queue;

  if (--t->refs > 0)
    return;
  if (t->node != NULL)
    lk__contend_unref(t->node);
  lk__give(&q->keeper->mem, t);
  unref(q);
}

/* It is over; its owner hears no more of it. */
static void over(turn *t)
{
  t->owner = NULL;
  t->attempt.whole = false;
  unref_turn(t);
}

static void look_soon(lk_local *q)
{
  lk_client *c = q->keeper->client;

  if (!q->keeper->detached)
    lk_timer_start(c, &q->soon, lk_client_now(c));
}

/* ---- ends -------------------------------------------------------------- */

/* Not in the call that brought it about. */
static void end_later(turn *t, void (*end)(void *arg, int err), int err)
{
  t->end = end;
  t->err = err;
  t->next = t->queue->ends;
  t->queue->ends = t;
  look_soon(t->queue);
}

static void tell_ends(lk_local *q)
{
  while (q->ends != NULL) {
    turn *t = q->ends;

    q->ends = t->next;
    if (t->owner != NULL)
      t->end(t->arg, t->err);
    over(t);
  }
}

static void end_first(lk_local *q, int err)
{
  turn *t = q->first;

  q->first = t->next;
  t->owner->ended(t->arg, err);
  over(t);
}

static void unlist(turn **at, const turn *t)
{
  while (*at != t)
    at = &(*at)->next;
  *at = t->next;
}

static bool is_listed(const turn *first, const turn *t)
{
  while (first != NULL && first != t)
    first = first->next;
  return first != NULL;
}

/* ---- the node ---------------------------------------------------------- */

static const lk_owner of_queue;

/* Ours no more. */
static void part(lk_local *q)
{
  lk_contend *node = q->node;

  q->node = NULL;
  q->handoffs = 0;
  lk__contend_unref(node);
}

/* Whoever is the first must not wait where it will not. */
static void aim(lk_local *q)
{
  q->options.what.once = q->first != NULL && q->first->once;
}

/* Want a node while somebody waits and there is none. */
static void want(lk_local *q)
{
  while (q->first != NULL && q->node == NULL) {
    if (q->keeper->over != 0) {
      end_first(q, q->keeper->over);
      continue;
    }
    aim(q);
    q->node = lk__contend_new(q->keeper, &q->options.what, &of_queue, q);
    if (q->node == NULL) {
      end_first(q, LK_ERR_NO_MEMORY);
      continue;
    }
    lk__contend_ref(q->node);
    lk__contend_begin(q->node);
  }
  if (q->node == NULL)
    tell_ends(q);
}

static void give_back(lk_local *q)
{
  lk__contend_stop(q->node, false);
  part(q);
  want(q);
}

/* It is held, and nobody here has it. */
static bool is_free(const lk_local *q)
{
  return q->node != NULL && q->holder == NULL && lk__contend_holds(q->node);
}

/* Those elsewhere may wait for it, or ask for it; or it may be lost. */
static bool may_hand_over(const lk_local *q)
{
  const lk_contend *node = q->node;

  return q->first != NULL && q->handoffs < LK_HANDOFFS && !node->revoked &&
         node->state == LK_CONTEND_HELD &&
         lk_client_clock(q->keeper->client) < lk__contend_deadline(node);
}

static void grant(lk_local *q)
{
  turn *t = q->first;

  q->first = t->next;
  q->holder = t;
  t->node = q->node;
  lk__contend_ref(t->node);
  t->attempt.count = 1;
  t->attempt.whole = true;
  t->attempt.turn = q->handoffs;
  if (q->first != NULL)
    look_soon(q);
  t->owner->granted(t->arg);
}

/* ---- places ------------------------------------------------------------ */

static size_t ahead_of_first(const lk_local *q)
{
  return lk__contend_holds(q->node) ? 1 : q->node->ahead.count;
}

static size_t ahead_of(const lk_local *q, const turn *t)
{
  size_t ahead = ahead_of_first(q);

  for (const turn *w = q->first; w != t; w = w->next)
    ahead++;
  return ahead;
}

/* Who stands before all of ours, or NULL while that is not known. */
static const char *head(const lk_local *q)
{
  if (q->node == NULL)
    return NULL;
  return lk__contend_holds(q->node) ? q->node->node : q->node->ahead.head;
}

static void tell_place(lk_local *q, turn *t)
{
  lk_news news = {
      .type = LK_NEWS_WAITING, .position = ahead_of(q, t), .node = head(q)};

  t->told = true;
  t->owner->news(t->arg, &news);
}

static turn *untold(const lk_local *q)
{
  turn *t = q->first;

  while (t != NULL && t->told)
    t = t->next;
  return t;
}

static void tell_places(lk_local *q)
{
  for (turn *t; head(q) != NULL && (t = untold(q)) != NULL;)
    tell_place(q, t);
}

static void on_soon(lk_client *c, void *arg)
{
  lk_local *q = arg;

  (void)c;
  q->refs++;
  tell_ends(q);
  if (is_free(q)) {
    if (may_hand_over(q)) {
      q->handoffs++;
      grant(q);
    } else {
      give_back(q);
    }
  }
  tell_places(q);
  unref(q);
}

/* ---- what the node's attempt says -------------------------------------- */

static void on_granted(void *arg)
{
  lk_local *q = arg;

  q->refs++;
  grant(q);
  unref(q);
}

static void on_ended(void *arg, int err)
{
  lk_local *q = arg;
  bool all = q->keeper->over != 0 || err == LK_ERR_SESSION_EXPIRED;

  q->refs++;
  part(q);
  do
    end_first(q, err);
  while (all && q->first != NULL);
  want(q);
  unref(q);
}

static void on_lost(void *arg, int err)
{
  lk_local *q = arg;
  turn *t = q->holder;

  q->refs++;
  part(q);
  q->holder = NULL;
  if (t != NULL) {
    t->attempt.whole = false;
    t->owner->lost(t->arg, err);
    over(t);
  }
  want(q);
  unref(q);
}

static void on_news(void *arg, const lk_news *news)
{
  lk_local *q = arg;
  turn *t = q->holder != NULL ? q->holder : q->first;

  q->refs++;
  if (t != NULL && news->type == LK_NEWS_WAITING) {
    t->told = true;
    look_soon(q); /* those behind it */
  }
  if (t != NULL && (t == q->holder || !lk__contend_holds(q->node)))
    t->owner->news(t->arg, news);
  unref(q);
}

static const lk_owner of_queue = {
    .granted = on_granted, .ended = on_ended, .lost = on_lost, .news = on_news};

/* The node that its last holder gave back is gone. */
static void on_gone(void *arg, int err)
{
  turn *t = arg;

  if (t->owner != NULL)
    t->owner->gone(t->arg, err);
  over(t);
}

static void ignore(void *arg, const lk_news *news)
{
  (void)arg;
  (void)news;
}

static const lk_owner of_leaver = {.news = ignore, .gone = on_gone};

/* ---- what the owner says ----------------------------------------------- */

static turn *of(lk_attempt *a)
{
  return (turn *)a;
}

/* Why it is turned away by who waits here already, or 0. */
static int refusal(const lk_local *q, const turn *t)
{
  size_t most = q->options.what.max_queue;
  size_t ahead = q->node == NULL ? 0 : ahead_of(q, NULL);

  if (q->node == NULL)
    return 0;
  if (t->once)
    return LK_ERR_BUSY;
  return most > 0 && ahead > most ? LK_ERR_QUEUE_FULL : 0;
}

static void begin(lk_attempt *a)
{
  turn *t = of(a), **at = &t->queue->first;
  lk_local *q = t->queue;
  int err = refusal(q, t);

  if (err != 0) {
    end_later(t, t->owner->ended, err);
    return;
  }
  while (*at != NULL)
    at = &(*at)->next;
  *at = t;
  q->refs++;
  if (q->node == NULL)
    want(q);
  else
    look_soon(q);
  unref(q);
}

static void stop_waiting(turn *t)
{
  lk_local *q = t->queue;

  unlist(&q->first, t);
  over(t);
  aim(q);
  if (q->first == NULL && q->holder == NULL)
    give_back(q);
}

/* Its turn is over: the next one's, or the node goes. */
static void let_go(turn *t, bool tell)
{
  lk_local *q = t->queue;

  q->holder = NULL;
  t->attempt.whole = false;
  if (may_hand_over(q)) {
    if (tell)
      end_later(t, t->owner->gone, 0);
    else
      over(t);
    look_soon(q);
    return;
  }
  if (tell) {
    q->node->owner = &of_leaver;
    q->node->owner_arg = t;
  }
  lk__contend_stop(q->node, tell);
  part(q);
  if (!tell)
    over(t);
  want(q);
}

static void stop(lk_attempt *a, bool tell)
{
  turn *t = of(a);
  lk_local *q = t->queue;

  q->refs++;
  if (!tell && t != q->holder && !is_listed(q->first, t))
    t->owner = NULL; /* its end will be told nobody */
  else if (t == q->holder)
    let_go(t, tell);
  else
    stop_waiting(t);
  unref(q);
}

static void disown(lk_attempt *a)
{
  of(a)->owner = NULL;
}

static void ref_turn(lk_attempt *a)
{
  of(a)->refs++;
}

static void unref_attempt(lk_attempt *a)
{
  unref_turn(of(a));
}

static const lk_attempt_kind a_turn = {.begin = begin,
                                       .stop = stop,
                                       .disown = disown,
                                       .ref = ref_turn,
                                       .unref = unref_attempt};

/* ---- handles ----------------------------------------------------------- */

static lk_attempt *make(lk_lock *l, const lk_owner *who)
{
  lk_local *q = l->plan;
  turn *t = lk__take(&l->keeper->mem, sizeof *t);

  if (t == NULL)
    return NULL;
  t->attempt.kind = &a_turn;
  t->attempt.parts = &t->node;
  t->queue = q;
  t->refs = 1;
  t->owner = who;
  t->arg = l;
  t->once = l->options.what.once;
  q->refs++;
  return &t->attempt;
}

/* Where names differ there are two queues: one node cannot stand in both. */
static bool is_same_queue(const lk_options *a, const lk_options *b)
{
  return a->rules == b->rules && strcmp(a->path, b->path) == 0 &&
         strcmp(a->what.role->mark->text, b->what.role->mark->text) == 0;
}

static lk_local *find(const lk_lock *l)
{
  lk_local *q = l->keeper->locals;

  while (q != NULL && !is_same_queue(&q->options, &l->options))
    q = q->next;
  return q;
}

static lk_local *open(lk_lock *l, const lk_lock_config *config)
{
  lk_keeper *k = l->keeper;
  lk_local *q = lk__take(&k->mem, sizeof *q);

  if (q == NULL)
    return NULL;
  if (!lk__options_init(&q->options, &k->mem, l->options.path, config,
                        LK_MULTILOCK_MUTEX)) {
    lk__options_free(&q->options, &k->mem);
    lk__give(&k->mem, q);
    return NULL;
  }
  q->keeper = k;
  q->soon = (lk_timer){.fire = on_soon, .arg = q};
  q->next = k->locals;
  k->locals = q;
  lk__keeper_ref(k);
  return q;
}

static void leave(void *plan, const lk_mem *mem)
{
  (void)mem;
  unref(plan);
}

bool lk__local_adopt(lk_lock *l, const lk_lock_config *config)
{
  lk_local *q = find(l);

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
