/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_request.h"

#include "recipes/common/memory.h"

/* ---- life -------------------------------------------------------------- */

lk_turn *lk__turn_new(lk_local *q, lk_lock *l,
                      const lk_acquisition_callbacks *who)
{
  lk_turn *t = lk__take(&q->lease->mem, sizeof *t);

  if (t == NULL)
    return NULL;
  t->queue = q;
  lk__list_init(&t->link);
  t->refs = 1;
  t->owner = who;
  t->arg = l;
  t->once = l->options.what.once;
  q->refs++;
  return t;
}

void lk__turn_unref(lk_turn *t)
{
  lk_local *q = t->queue;

  if (--t->refs > 0)
    return;
  if (t->node != NULL)
    lk__contender_unref(t->node);
  lk__give(&q->lease->mem, t);
  lk__local_unref(q);
}

void lk__turn_over(lk_turn *t)
{
  t->owner = NULL;
  t->attempt.whole = false;
  lk__turn_unref(t);
}

/* ---- order ------------------------------------------------------------- */

void lk__turn_enlist(lk_turn *t)
{
  lk__safe_list_add(&t->queue->waiters, &t->link);
}

void lk__turn_unlist(lk_turn *t)
{
  lk__safe_list_remove(&t->queue->waiters, &t->link);
}

bool lk__turn_waits(const lk_turn *t)
{
  return t->end == NULL && !lk__list_empty(&t->link);
}

lk_turn *lk__turn_first(const lk_local *q)
{
  const lk_link *all = &q->waiters.members;

  return lk__list_empty(all) ? NULL : LK_OWNER(all->next, lk_turn, link);
}

/* ---- ends -------------------------------------------------------------- */

/* Not in the call that brought it about. */
void lk__turn_end_later(lk_turn *t, void (*end)(void *arg, int err), int err)
{
  lk__list_add(&t->queue->ends, &t->link);
  t->end = end;
  t->err = err;
  lk__local_soon(t->queue);
}

void lk__turn_tell_ends(lk_local *q)
{
  lk_link now;

  lk__list_init(&now);
  lk__list_move(&now, &q->ends);
  for (lk_link *l; (l = lk__list_pop(&now)) != NULL;) {
    lk_turn *t = LK_OWNER(l, lk_turn, link);

    if (t->owner != NULL)
      t->end(t->arg, t->err);
    lk__turn_over(t);
  }
}

void lk__turn_end_first(lk_local *q, int err)
{
  lk_turn *t = lk__turn_first(q);

  if (t == NULL)
    return;
  lk__turn_unlist(t);
  t->owner->ended(t->arg, err);
  lk__turn_over(t);
}

/* ---- places ------------------------------------------------------------ */

static size_t ahead_of_first(const lk_local *q)
{
  return lk__contender_holds(q->node) ? 1 : q->node->ahead.count;
}

size_t lk__turn_ahead(const lk_local *q, const lk_turn *t)
{
  const lk_link *all = &q->waiters.members;
  const lk_link *end = t == NULL ? all : &t->link;
  size_t ahead = ahead_of_first(q);

  for (const lk_link *l = all->next; l != end; l = l->next)
    ahead++;
  return ahead;
}

/* Who stands before all of ours, or NULL while that is not known. */
static const char *head(const lk_local *q)
{
  if (q->node == NULL)
    return NULL;
  return lk__contender_holds(q->node) ? q->node->node : q->node->ahead.head;
}

static void tell_place(lk_local *q, lk_turn *t)
{
  lk_notice news = {.type = LK_NOTICE_WAITING,
                    .position = lk__turn_ahead(q, t),
                    .node = head(q)};

  t->told = true;
  t->owner->news(t->arg, &news);
}

void lk__turn_tell_places(lk_local *q)
{
  lk_walk w;

  lk__walk_begin(&w, &q->waiters);
  for (lk_link *l; (l = lk__walk_next(&w)) != NULL;) {
    lk_turn *t = LK_OWNER(l, lk_turn, link);

    if (!t->told && head(q) != NULL)
      tell_place(q, t);
  }
}
