/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_SAFE_LIST_H
#define LK_BASE_SAFE_LIST_H

#include "base/list.h"

/**
 * A list whose members may be added, removed and freed during a walk, as a
 * callback may do that is called for each member. A loop that calls no callback
 * may walk `members` like any other list.
 */
typedef struct lk_safe_list {
  lk_link members;
  struct lk_safe_iterator *innermost; /**< the walk that began last and has not
                                           ended; NULL: there is none */
} lk_safe_list;

/**
 * A walk over such a list. It visits each member that the list had when the
 * walk began, once and in order, unless the member is removed before. Another
 * walk of the same list may begin and end during this one. The list must not be
 * freed during a walk.
 *
 *   lk__safe_iterator_begin(&w, &list);
 *   for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;)
 *     notify(LK_OWNER(l, item, link));
 */
typedef struct lk_safe_iterator {
  lk_safe_list *list;
  lk_link *next; /**< the next member to be visited; NULL: there is none */
  lk_link *last; /**< the last member to be visited */
  struct lk_safe_iterator *outer; /**< the walk during which this one began, or
                                       NULL */
} lk_safe_iterator;

void lk__safe_list_init(lk_safe_list *s);
/** Put `l` at the end, or at the begin. */
void lk__safe_list_add(lk_safe_list *s, lk_link *l);
void lk__safe_list_add_first(lk_safe_list *s, lk_link *l);
/** Remove `l`, if it is in the list. */
void lk__safe_list_remove(lk_safe_list *s, lk_link *l);

/** Begin a walk. It ends when lk__safe_iterator_next() returns NULL, or with
    lk__safe_iterator_end(). */
void lk__safe_iterator_begin(lk_safe_iterator *w, lk_safe_list *s);
/** The next member; NULL: all were visited, and the walk has ended. */
lk_link *lk__safe_iterator_next(lk_safe_iterator *w);
/** End a walk early. All walks that began during it must have ended. */
void lk__safe_iterator_end(lk_safe_iterator *w);

#endif
