/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/turn.h"

#include "recipes/memory.h"

/* ---- life -------------------------------------------------------------- */

lk_turn *lk__turn_new(lk_local *q, lk_lock *l, const lk_owner *who)
{
  lk_turn *t = lk__take(&q->keeper->mem, sizeof *t);

  if (t == NULL)
    return NULL;
  t->queue = q;
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
    lk__contend_unref(t->node);
  lk__give(&q->keeper->mem, t);
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
  lk_turn **at = &t->queue->first;

  while (*at != NULL)
    at = &(*at)->next;
  *at = t;
}

void lk__turn_unlist(lk_turn *t)
{
  lk_turn **at = &t->queue->first;

  while (*at != t)
    at = &(*at)->next;
  *at = t->next;
}

bool lk__turn_waits(const lk_turn *t)
{
  const lk_turn *w = t->queue->first;

  while (w != NULL && w != t)
    w = w->next;
  return w != NULL;
}

/* ---- ends -------------------------------------------------------------- */

/* Not in the call that brought it about. */
void lk__turn_end_later(lk_turn *t, void (*end)(void *arg, int err), int err)
{
  lk_turn **at = &t->queue->ends;

  while (*at != NULL)
    at = &(*at)->next;
  *at = t;
  t->end = end;
  t->err = err;
  t->next = NULL;
  lk__local_soon(t->queue);
}

void lk__turn_tell_ends(lk_local *q)
{
  while (q->ends != NULL) {
    lk_turn *t = q->ends;

    q->ends = t->next;
    if (t->owner != NULL)
      t->end(t->arg, t->err);
    lk__turn_over(t);
  }
}

void lk__turn_end_first(lk_local *q, int err)
{
  lk_turn *t = q->first;

  q->first = t->next;
  t->owner->ended(t->arg, err);
  lk__turn_over(t);
}

/* ---- places ------------------------------------------------------------ */

static size_t ahead_of_first(const lk_local *q)
{
  return lk__contend_holds(q->node) ? 1 : q->node->ahead.count;
}

size_t lk__turn_ahead(const lk_local *q, const lk_turn *t)
{
  size_t ahead = ahead_of_first(q);

  for (const lk_turn *w = q->first; w != t; w = w->next)
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

static void tell_place(lk_local *q, lk_turn *t)
{
  lk_news news = {.type = LK_NEWS_WAITING,
                  .position = lk__turn_ahead(q, t),
                  .node = head(q)};

  t->told = true;
  t->owner->news(t->arg, &news);
}

static lk_turn *untold(const lk_local *q)
{
  lk_turn *t = q->first;

  while (t != NULL && t->told)
    t = t->next;
  return t;
}

void lk__turn_tell_places(lk_local *q)
{
  for (lk_turn *t; head(q) != NULL && (t = untold(q)) != NULL;)
    tell_place(q, t);
}
