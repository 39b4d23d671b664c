/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Finding the watches that get an event, or the end of a connection. */

#include "proto/engine/watch_table.h"

/* Whether an event of `type` fires a watch of `kind` on the same path. A
 * creation fires data watches, too, since a server may report one to them after
 * a reconnect. */
static bool event_fires(int32_t type, lk_watch_kind kind)
{
  switch (type) {
  case LK_EVENT_CREATED: return kind != LK_WATCH_KIND_CHILD;
  case LK_EVENT_DELETED: return true;
  case LK_EVENT_CHANGED: return kind != LK_WATCH_KIND_CHILD;
  case LK_EVENT_CHILDREN:
    return kind == LK_WATCH_KIND_CHILD || kind == LK_WATCH_KIND_PERSISTENT;
  default: return false;
  }
}

/* Add the watches of a list to `out`. With `ends` they leave the list. */
static void add_all(lk_link *list, bool ends, lk_link *out)
{
  for (lk_link *l = list->next, *next; l != list; l = next) {
    lk_watch *w = LK_OWNER(l, lk_watch, link);

    next = l->next;
    lk__list_add(out, &w->tell);
    if (ends)
      lk__list_remove(&w->link);
  }
}

/* Add the recursive watches of a path and of all its ancestors. */
static void match_above(const lk_watches *ws, int32_t type, lk_bytes path,
                        lk_link *out)
{
  const char *at = path.at;
  size_t len = path.len;

  while (len > 0 && event_fires(type, LK_WATCH_KIND_RECURSIVE)) {
    lk_watched *on = lk__watched_find(ws, lk_bytes_of(at, len));

    if (on != NULL)
      add_all(&on->kinds[LK_WATCH_KIND_RECURSIVE], false, out);
    if (len == 1)
      return;
    while (len > 0 && at[len - 1] != '/')
      len--;
    len -= len > 1; /* remove the "/", unless it is the root */
  }
}

void lk__watches_match(lk_watches *ws, int32_t type, lk_bytes path,
                       lk_link *out)
{
  lk_watched *on = lk__watched_find(ws, path);

  for (int i = 0; on != NULL && i < LK_WATCH_KIND_RECURSIVE; i++) {
    if (event_fires(type, (lk_watch_kind)i))
      add_all(&on->kinds[i], i < LK_WATCH_KIND_ADDED, out);
  }
  if (ws->recursive > 0 && type != LK_EVENT_CHILDREN)
    match_above(ws, type, path, out);
}

/* Move the watches of a list to `out`: all, or those with until_disconnect. */
static void take_watches(lk_link *list, bool all, lk_link *out)
{
  for (lk_link *l = list->next, *next; l != list; l = next) {
    lk_watch *w = LK_OWNER(l, lk_watch, link);

    next = l->next;
    if (!all && !w->until_disconnect)
      continue;
    lk__list_remove(l);
    lk__list_add(out, &w->tell);
  }
}

void lk__watches_take(lk_watches *ws, bool all, lk_link *out)
{
  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL;
       n = lk__map_next(n)) {
    for (int i = 0; i < LK_WATCH_KINDS; i++)
      take_watches(&((lk_watched *)(void *)n)->kinds[i], all, out);
  }
}

void lk__watches_add_staying(lk_watches *ws, lk_link *out)
{
  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL && ws->added > 0;
       n = lk__map_next(n)) {
    for (int i = LK_WATCH_KIND_ADDED; i < LK_WATCH_KINDS; i++)
      add_all(&((lk_watched *)(void *)n)->kinds[i], false, out);
  }
}

void lk__watches_take_staying(lk_watches *ws, lk_link *out)
{
  size_t left = ws->added;

  /* `out` may have had members before: only the last ws->added ones are new. */
  lk__watches_add_staying(ws, out);
  for (lk_link *l = out->prev; left > 0; l = l->prev, left--) {
    lk_watch *w = LK_OWNER(l, lk_watch, tell);

    lk__list_remove(&w->link);
    lk__watch_fall(ws, w);
  }
}
