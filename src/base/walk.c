/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/walk.h"

void lk__safe_list_init(lk_safe_list *s)
{
  lk__list_init(&s->members);
  s->walk = NULL;
}

void lk__safe_list_add(lk_safe_list *s, lk_link *l)
{
  lk__list_add(&s->members, l);
}

void lk__safe_list_remove(lk_safe_list *s, lk_link *l)
{
  for (lk_walk *w = s->walk; w != NULL; w = w->outer) {
    if (w->next == l)
      w->next = l == w->last ? NULL : l->next;
    else if (w->last == l)
      w->last = l->prev;
  }
  lk__list_remove(l);
}

void lk__walk_begin(lk_walk *w, lk_safe_list *s)
{
  bool empty = lk__list_empty(&s->members);

  *w = (lk_walk){.list = s,
                 .next = empty ? NULL : s->members.next,
                 .last = s->members.prev,
                 .outer = s->walk};
  s->walk = w;
}

lk_link *lk__walk_next(lk_walk *w)
{
  lk_link *l = w->next;

  if (l == NULL)
    lk__walk_end(w);
  else
    w->next = l == w->last ? NULL : l->next;
  return l;
}

void lk__walk_end(lk_walk *w)
{
  w->list->walk = w->outer;
}
