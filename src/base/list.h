/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_LIST_H
#define LK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <latchkey/types.h>

/*
 * A doubly linked, circular list. The list and each of its members are links.
 * The link of an empty list points to itself, and so does the link of a member
 * that is in no list.
 */

/** The owner of a link: the `type` whose member `field` is at `link`. */
#define LK_OWNER(link, type, field) \
  ((type *)(void *)((char *)(link)-offsetof(type, field)))

static inline void lk__list_init(lk_link *l)
{
  l->next = l;
  l->prev = l;
}

static inline bool lk__list_empty(const lk_link *l)
{
  return l->next == l;
}

/** Put `l` before the member `at`. If `at` is the list, `l` becomes the last
    member. */
static inline void lk__list_add(lk_link *at, lk_link *l)
{
  l->prev = at->prev;
  l->next = at;
  at->prev->next = l;
  at->prev = l;
}

/** Remove `l` from its list, if it is in one. */
static inline void lk__list_remove(lk_link *l)
{
  l->prev->next = l->next;
  l->next->prev = l->prev;
  lk__list_init(l);
}

/** Remove and return the first member; NULL: the list is empty. */
static inline lk_link *lk__list_pop(lk_link *list)
{
  lk_link *l = list->next;

  if (l == list)
    return NULL;
  lk__list_remove(l);
  return l;
}

/** Move all members of `from` to the end of `to`. */
static inline void lk__list_move(lk_link *to, lk_link *from)
{
  if (lk__list_empty(from))
    return;
  from->next->prev = to->prev;
  to->prev->next = from->next;
  from->prev->next = to;
  to->prev = from->prev;
  lk__list_init(from);
}

#endif
