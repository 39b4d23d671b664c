/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/safe_list.h"

void lk__safe_list_init(lk_safe_list *s)
{
  lk__list_init(&s->members);
  s->innermost = NULL;
}

void lk__safe_list_add(lk_safe_list *s, lk_link *l)
{
  lk__list_add(&s->members, l);
}

void lk__safe_list_add_first(lk_safe_list *s, lk_link *l)
{
  lk__list_add(s->members.next, l);
}

/* Every iterator that would return `l` next goes on with the member behind it.
 */
void lk__safe_list_remove(lk_safe_list *s, lk_link *l)
{
  for (lk_safe_iterator *w = s->innermost; w != NULL; w = w->outer) {
    if (w->next == l)
      w->next = l == w->last ? NULL : l->next;
    else if (w->last == l)
      w->last = l->prev;
  }
  lk__list_remove(l);
}

void lk__safe_iterator_begin(lk_safe_iterator *w, lk_safe_list *s)
{
  bool empty = lk__list_empty(&s->members);

  *w = (lk_safe_iterator){.list = s,
                          .next = empty ? NULL : s->members.next,
                          .last = s->members.prev,
                          .outer = s->innermost};
  s->innermost = w;
}

lk_link *lk__safe_iterator_next(lk_safe_iterator *w)
{
  lk_link *l = w->next;

  if (l == NULL)
    lk__safe_iterator_end(w);
  else
    w->next = l == w->last ? NULL : l->next;
  return l;
}

void lk__safe_iterator_end(lk_safe_iterator *w)
{
  w->list->innermost = w->outer;
}
