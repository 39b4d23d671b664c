/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_SAFE_LIST_H
#define LK_BASE_SAFE_LIST_H

#include "base/list.h"

/**
 * A list whose members may leave, be freed and join while it is walked: what a
 * callback needs that may free anything. `members` may be read like any list by
 * a loop that calls no callback.
 */
typedef struct lk_safe_list {
  lk_link members;
  struct lk_safe_iterator *innermost; /**< under way, or NULL */
} lk_safe_list;

/**
 * A walk over such a list visits the members that it had at the beginning, in
 * order, each once, except those that leave before they are visited. Another
 * walk of the same list may begin and end within it. The list must outlive it.
 *
 *   lk__safe_iterator_begin(&w, &list);
 *   for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;)
 *     notify(LK_OWNER(l, item, link));
 */
typedef struct lk_safe_iterator {
  lk_safe_list *list;
  lk_link *next; /**< the next to be visited; NULL: none */
  lk_link *last; /**< the last to be visited */
  struct lk_safe_iterator *outer;
} lk_safe_iterator;

void lk__safe_list_init(lk_safe_list *s);
/** Put `l` at the end. */
void lk__safe_list_add(lk_safe_list *s, lk_link *l);
/** Take out; nothing happens to a link that is in no list. */
void lk__safe_list_remove(lk_safe_list *s, lk_link *l);

/** Run it until lk__safe_iterator_next() returns NULL, or end it. */
void lk__safe_iterator_begin(lk_safe_iterator *w, lk_safe_list *s);
/** NULL: that was all, and the walk has ended. */
lk_link *lk__safe_iterator_next(lk_safe_iterator *w);
/** Stop before the end. All walks that began within it must have ended. */
void lk__safe_iterator_end(lk_safe_iterator *w);

#endif
