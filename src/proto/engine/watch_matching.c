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

/* Add the watches of a list to `out`. They stay in the list. */
static void add_watches(lk_link *list, lk_link *out)
{
  for (lk_link *l = list->next; l != list; l = l->next)
    lk__list_add(out, &LK_OWNER(l, lk_watch, link)->event_link);
}

/* Move the watches of a list to `out`. */
static void move_watches(lk_link *list, lk_link *out)
{
  while (!lk__list_empty(list)) {
    lk_watch *w = LK_OWNER(list->next, lk_watch, link);

    lk__list_remove(&w->link);
    lk__list_add(out, &w->event_link);
  }
}

/* Add the recursive watches of a path and of all its ancestors. A server may
 * send a path with very many of them: those that are longer than any watch's
 * path are not looked up. */
static void match_recursive(const lk_watches *ws, int32_t type, lk_bytes path,
                            lk_link *out)
{
  const char *at = path.at;
  size_t len = path.len;

  if (!event_fires(type, LK_WATCH_KIND_RECURSIVE))
    return;
  while (len > 0) {
    lk_watched *on = len > ws->longest_recursive
                         ? NULL
                         : lk__watched_find(ws, lk_bytes_of(at, len));

    if (on != NULL)
      add_watches(&on->kinds[LK_WATCH_KIND_RECURSIVE], out);
    if (len == 1)
      return;
    while (len > 0 && at[len - 1] != '/')
      len--;
    if (len > 1)
      len--; /* the path of a parent has no "/" at its end, but the root has */
  }
}

void lk__watches_match(lk_watches *ws, int32_t type, lk_bytes path,
                       lk_link *out)
{
  lk_watched *on = lk__watched_find(ws, path);

  /* All kinds but the recursive one, which is the last. */
  for (int i = 0; on != NULL && i < LK_WATCH_KIND_RECURSIVE; i++) {
    if (!event_fires(type, (lk_watch_kind)i))
      continue;
    if (lk__watch_stays((lk_watch_kind)i))
      add_watches(&on->kinds[i], out);
    else
      move_watches(&on->kinds[i], out);
  }
  if (ws->recursive > 0 && type != LK_EVENT_CHILDREN)
    match_recursive(ws, type, path, out);
}

/* Move all watches of a list to `out`, or only those with until_disconnect. */
static void take_watches(lk_link *list, bool only_until_disconnect,
                         lk_link *out)
{
  for (lk_link *l = list->next, *next; l != list; l = next) {
    lk_watch *w = LK_OWNER(l, lk_watch, link);

    next = l->next;
    if (only_until_disconnect && !w->until_disconnect)
      continue;
    lk__list_remove(l);
    lk__list_add(out, &w->event_link);
  }
}

static void take_from_all_paths(lk_watches *ws, bool only_until_disconnect,
                                lk_link *out)
{
  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL;
       n = lk__map_next(n)) {
    lk_watched *on = lk__watched_of_node(n);

    for (int i = 0; i < LK_WATCH_KINDS; i++)
      take_watches(&on->kinds[i], only_until_disconnect, out);
  }
}

void lk__watches_take_all(lk_watches *ws, lk_link *out)
{
  bool only_until_disconnect = false;

  take_from_all_paths(ws, only_until_disconnect, out);
}

void lk__watches_take_until_disconnect(lk_watches *ws, lk_link *out)
{
  bool only_until_disconnect = true;

  take_from_all_paths(ws, only_until_disconnect, out);
}

void lk__watches_add_staying(lk_watches *ws, lk_link *out)
{
  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL && ws->added > 0;
       n = lk__map_next(n)) {
    lk_watched *on = lk__watched_of_node(n);

    /* The kinds from LK_WATCH_KIND_PERSISTENT on stay after an event. */
    for (int i = LK_WATCH_KIND_PERSISTENT; i < LK_WATCH_KINDS; i++)
      add_watches(&on->kinds[i], out);
  }
}

void lk__watches_take_staying(lk_watches *ws, lk_link *out)
{
  size_t left = ws->added;

  lk__watches_add_staying(ws, out);
  /* `out` may have had members before: only the last ws->added ones are new. */
  for (lk_link *l = out->prev; left > 0; l = l->prev, left--) {
    lk_watch *w = LK_OWNER(l, lk_watch, event_link);

    lk__list_remove(&w->link);
    lk__watch_fall(ws, w);
  }
}
