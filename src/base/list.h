/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_LIST_H
#define LK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/**
 * A doubly linked list through its members. A list is a link that points to
 * itself when empty; so does a member that is in no list.
 */
typedef struct lk_link {
  struct lk_link *next;
  struct lk_link *prev;
} lk_link;

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

/** Put `l` before `at`: at the end, if `at` is the list. */
static inline void lk__list_add(lk_link *at, lk_link *l)
{
  l->prev = at->prev;
  l->next = at;
  at->prev->next = l;
  at->prev = l;
}

/** Take out; nothing happens to a link that is in no list. */
static inline void lk__list_remove(lk_link *l)
{
  l->prev->next = l->next;
  l->next->prev = l->prev;
  lk__list_init(l);
}

/** Take out the first member; NULL: there is none. */
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
