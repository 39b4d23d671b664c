/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/watches.h"

#include "base/mem.h"
#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/wire/path.h"

/* ---- creation ------------------------------------------------------------ */

enum {
  PATH_STEP = 128, /* the memory of a path is a multiple of this, so that an
                      unused one is often large enough for another path */
  MAX_KEPT = 1024  /* the number of unused watches, paths, handle slots and
                      buckets of the map that are kept */
};

bool lk__watches_init(lk_watches *ws, const lk_mem *mem)
{
  *ws = (lk_watches){.mem = mem};
  lk__list_init(&ws->spare_watches);
  lk__list_init(&ws->ended);
  return lk__map_init(&ws->paths, mem);
}

/* ---- handles ------------------------------------------------------------- */

enum {
  FIRST_SLOTS = 16,
  /* The bits of a handle that have the slot: 32 of 64 bits; or 20 of 32 bits,
     which is enough for half a million watches, since tables double. The others
     have the serial number. */
  SLOT_BITS = sizeof(uintptr_t) > 4 ? 32 : 20
};

#define MAX_SLOTS ((uint32_t)(((uintptr_t)1 << SLOT_BITS) - 1))

/* Add free slots to a table that has none. false: there is no memory, or the
 * table would be too large. */
static bool add_slots(lk_watches *ws)
{
  uint32_t more = ws->nslots == 0 ? FIRST_SLOTS : ws->nslots;
  lk_watch_slot *slots;

  if (more > MAX_SLOTS - ws->nslots)
    return false;
  slots = lk__mem_resize(ws->mem, ws->slots,
                         ((size_t)ws->nslots + more) * sizeof *slots);
  if (slots == NULL)
    return false;
  ws->slots = slots;
  /* Each free slot is followed by the next one in the table. The last one has
   * the new `nslots` as `next`, which means that no slot is free. */
  for (uint32_t i = ws->nslots; i < ws->nslots + more; i++)
    slots[i] = (lk_watch_slot){.watch = NULL, .next = i + 1};
  ws->nslots += more;
  return true;
}

/* Give a new watch its handle. @return false: there is no memory, or there are
   too many watches. */
static bool watch_take_handle(lk_watches *ws, lk_watch *w)
{
  if (ws->free_slot == ws->nslots && !add_slots(ws))
    return false;
  w->slot = ws->free_slot;
  w->serial = ++ws->serial;
  ws->free_slot = ws->slots[w->slot].next;
  ws->slots[w->slot].watch = w;
  return true;
}

/* Free the slot of a watch that ends. */
static void watch_free_handle(lk_watches *ws, const lk_watch *w)
{
  ws->slots[w->slot] = (lk_watch_slot){.watch = NULL, .next = ws->free_slot};
  ws->free_slot = w->slot;
}

lk_watch *lk__watch_handle(const lk_watch *w)
{
  uintptr_t place = (uintptr_t)w->slot + 1; /* not 0: no handle is NULL */

  return (lk_watch *)((uintptr_t)w->serial << SLOT_BITS | place);
}

lk_watch *lk__watch_of(const lk_watches *ws, const lk_watch *handle)
{
  uintptr_t slot_mask = MAX_SLOTS; /* all of its SLOT_BITS are set */
  uintptr_t place = (uintptr_t)handle & slot_mask;
  lk_watch *w =
      place == 0 || place > ws->nslots ? NULL : ws->slots[place - 1].watch;

  return w != NULL && lk__watch_handle(w) == handle ? w : NULL;
}

/* ---- paths --------------------------------------------------------------- */

static bool copy_watched_path(lk_watches *ws, lk_watched *on, lk_bytes path)
{
  if (path.len >= on->path_cap) {
    /* at least path.len + 1, rounded up to whole steps */
    size_t cap = (path.len / PATH_STEP + 1) * PATH_STEP;
    char *room = lk__mem_resize(ws->mem, on->path, cap);

    if (room == NULL)
      return false;
    on->path = room;
    on->path_cap = cap;
  }
  memcpy(on->path, path.at, path.len);
  on->path[path.len] = '\0';
  return true;
}

static void keep_spare_path(lk_watches *ws, lk_watched *on)
{
  if (ws->nspare_paths == MAX_KEPT) {
    lk__mem_free(ws->mem, on->path);
    lk__mem_free(ws->mem, on);
    return;
  }
  on->spare = ws->spare_paths;
  ws->spare_paths = on;
  ws->nspare_paths++;
}

static lk_watched *take_spare_path(lk_watches *ws)
{
  lk_watched *on = ws->spare_paths;

  if (on == NULL)
    return lk__mem_new(ws->mem, sizeof *on);
  ws->spare_paths = on->spare;
  ws->nspare_paths--;
  return on;
}

static lk_watched *new_watched(lk_watches *ws, lk_bytes path)
{
  lk_watched *on = take_spare_path(ws);

  if (on == NULL)
    return NULL;
  for (int i = 0; i < LK_WATCH_KINDS; i++)
    lk__list_init(&on->kinds[i]);
  lk__list_init(&on->pending);
  memset(on->pending_count, 0, sizeof on->pending_count);
  memset(on->unsent_count, 0, sizeof on->unsent_count);
  memset(on->asked, 0, sizeof on->asked);
  for (int i = 0; i < LK_WATCH_KINDS; i++)
    on->missing_after[i] = LK_REGISTERED;
  on->last_request = 0;
  on->refs = 0;
  if (copy_watched_path(ws, on, path) &&
      lk__map_add(&ws->paths, &on->map, on->path, path.len))
    return on;
  keep_spare_path(ws, on);
  return NULL;
}

lk_watched *lk__watched_find(const lk_watches *ws, lk_bytes path)
{
  return lk__watched_of_node(lk__map_find(&ws->paths, path.at, path.len));
}

void lk__watched_ref(lk_watched *on)
{
  on->refs++;
}

/* The last watch has ended: free the memory that many watches have needed. */
static void trim_table(lk_watches *ws)
{
  lk__map_trim(&ws->paths, MAX_KEPT);
  if (ws->nslots <= MAX_KEPT)
    return;
  lk__mem_free(ws->mem, ws->slots);
  ws->slots = NULL;
  ws->nslots = 0;
  ws->free_slot = 0;
}

void lk__watched_unref(lk_watches *ws, lk_watched *on)
{
  if (--on->refs > 0)
    return;
  lk__map_remove(&ws->paths, &on->map);
  keep_spare_path(ws, on);
  if (lk__map_count(&ws->paths) == 0)
    trim_table(ws);
}

/* ---- the life of a watch ------------------------------------------------- */

static lk_watch *new_watch(lk_watches *ws)
{
  if (lk__list_empty(&ws->spare_watches))
    return lk__mem_new(ws->mem, sizeof(lk_watch));
  lk_link *link = ws->spare_watches.next;

  lk__list_remove(link);
  ws->nspare_watches--;
  return LK_OWNER(link, lk_watch, link);
}

static void keep_spare_watch(lk_watches *ws, lk_watch *w)
{
  if (ws->nspare_watches == MAX_KEPT) {
    lk__mem_free(ws->mem, w);
    return;
  }
  lk__list_add(&ws->spare_watches, &w->link);
  ws->nspare_watches++;
}

lk_watch *lk__watch_new(lk_watches *ws, lk_bytes path, lk_watch_kind kind,
                        const lk_call *call)
{
  lk_watch *w = new_watch(ws);

  if (w == NULL)
    return NULL;
  lk__list_init(&w->link);
  lk__list_init(&w->event_link);
  w->on = lk__watched_find(ws, path);
  if (w->on == NULL)
    w->on = new_watched(ws, path);
  if (w->on == NULL) {
    keep_spare_watch(ws, w);
    return NULL;
  }
  lk__watched_ref(w->on);
  if (!watch_take_handle(ws, w)) {
    lk__watched_unref(ws, w->on);
    keep_spare_watch(ws, w);
    return NULL;
  }
  w->cb = call->on_event;
  w->arg = call->watch_arg;
  w->kind = kind;
  w->until_disconnect = call->until_disconnect;
  w->standing = false;
  w->unsent = false;
  w->remove_at_reply = false;
  w->reported_too_early = false;
  w->outside_chroot = false;
  w->relies = false;
  lk__list_add(&w->on->pending, &w->link);
  w->on->pending_count[kind]++;
  return w;
}

void lk__watch_set_unsent(lk_watch *w)
{
  if (w->unsent)
    return;
  w->unsent = true;
  w->on->unsent_count[w->kind]++;
}

void lk__watch_set_sent(lk_watch *w)
{
  if (!w->unsent)
    return;
  w->unsent = false;
  w->on->unsent_count[w->kind]--;
}

/* Whether the request of the watch has no reply. A watch that stands no more
 * and is in no list is getting its last event. */
static bool is_pending(const lk_watch *w)
{
  return !w->standing && !lk__list_empty(&w->link);
}

static void uncount_pending(lk_watch *w)
{
  lk__watch_set_sent(w);
  w->on->pending_count[w->kind]--;
}

static void count_recursive(lk_watches *ws, const lk_watch *w)
{
  size_t len = strlen(w->on->path);

  ws->recursive++;
  if (len > ws->longest_recursive)
    ws->longest_recursive = len;
}

void lk__watch_stand(lk_watches *ws, lk_watch *w, lk_watch_kind kind)
{
  uncount_pending(w);
  w->kind = kind;
  w->standing = true;
  ws->standing++;
  if (lk__watch_stays(kind))
    ws->added++;
  if (kind == LK_WATCH_KIND_RECURSIVE)
    count_recursive(ws, w);
  /* An addWatch registers the other persistent watches of its kind, too. A
   * one-shot request does not: only a setWatches reports the changes that
   * earlier one-shot watches may have missed. */
  if (lk__watch_stays(kind) || lk__list_empty(&w->on->kinds[kind]))
    w->on->missing_after[kind] = LK_REGISTERED;
  lk__list_remove(&w->link);
  lk__list_add(&w->on->kinds[kind], &w->link);
}

/* Undo lk__watch_stand(): the watch gets no further events. */
static void watch_fall(lk_watches *ws, lk_watch *w)
{
  if (!w->standing)
    return;
  w->standing = false;
  ws->standing--;
  if (lk__watch_stays(w->kind))
    ws->added--;
  if (w->kind == LK_WATCH_KIND_RECURSIVE && --ws->recursive == 0)
    ws->longest_recursive = 0;
}

void lk__watch_drop(lk_watches *ws, lk_watch *w)
{
  lk_watched *on = w->on;

  if (is_pending(w))
    uncount_pending(w);
  lk__list_remove(&w->link);
  lk__list_remove(&w->event_link);
  watch_fall(ws, w);
  watch_free_handle(ws, w);
  keep_spare_watch(ws, w);
  lk__watched_unref(ws, on);
}

/* ---- other watches of a path --------------------------------------------- */

/* Whether the list has a watch other than `w`, which may be NULL. This does not
 * walk the list, since one path may have many watches. */
static bool has_other(const lk_link *list, const lk_watch *w)
{
  const lk_link *first = list->next;

  if (first == list)
    return false; /* the list is empty */
  bool has_only_w = w != NULL && first == &w->link && first->next == list;

  return !has_only_w;
}

bool lk__watched_has(const lk_watched *on, lk_watch_kind kind,
                     const lk_watch *w)
{
  bool w_is_counted =
      w != NULL && w->on == on && w->kind == kind && is_pending(w);
  uint32_t other_pending = on->pending_count[kind] - (w_is_counted ? 1 : 0);

  return has_other(&on->kinds[kind], w) || other_pending > 0;
}

/* Whether the server has the watches of `kind`, which is persistent. */
static bool is_registered(const lk_watched *on, lk_watch_kind kind)
{
  return on->missing_after[kind] == LK_REGISTERED &&
         !lk__list_empty(&on->kinds[kind]);
}

bool lk__watched_serves(const lk_watched *on, lk_watch_kind kind)
{
  return is_registered(on, LK_WATCH_KIND_PERSISTENT) ||
         (kind != LK_WATCH_KIND_CHILD &&
          is_registered(on, LK_WATCH_KIND_RECURSIVE));
}

/* Whether a request for watches of `kind`, which is persistent, was sent and
 * has no reply. */
static bool is_requested(const lk_watches *ws, const lk_watched *on,
                         lk_watch_kind kind)
{
  bool by_set_watches = ws->set_watches_under_way && on->asked[kind] &&
                        !lk__list_empty(&on->kinds[kind]);

  return by_set_watches || on->pending_count[kind] > on->unsent_count[kind];
}

bool lk__watched_will_serve(const lk_watches *ws, const lk_watched *on,
                            lk_watch_kind kind)
{
  return lk__watched_serves(on, kind) ||
         is_requested(ws, on, LK_WATCH_KIND_PERSISTENT) ||
         (kind != LK_WATCH_KIND_CHILD &&
          is_requested(ws, on, LK_WATCH_KIND_RECURSIVE));
}

/* Whether a removeWatches for a watch of kind `a` would remove what a watch of
 * kind `b` needs. The server keeps one watch for data and exist together, and
 * one for children. A persistent watch `b` is both of them, so before 3.9 it
 * loses half when a one-shot watch is removed. A persistent watch `a` is
 * removed even if one-shot watches are left, which end. */
static bool removal_concerns(lk_watch_kind a, lk_watch_kind b)
{
  if (lk__watch_stays(a) || lk__watch_stays(b))
    return lk__watch_stays(b);
  return (a == LK_WATCH_KIND_CHILD) == (b == LK_WATCH_KIND_CHILD);
}

bool lk__watch_is_removable(const lk_watch *w)
{
  for (int i = 0; i < LK_WATCH_KINDS; i++) {
    if (removal_concerns(w->kind, (lk_watch_kind)i) &&
        lk__watched_has(w->on, (lk_watch_kind)i, w))
      return false;
  }
  return true;
}

/* ---- watches that end before an event ------------------------------------ */

void lk__watch_end(lk_watches *ws, lk_watch *w)
{
  lk__list_remove(&w->link);
  watch_fall(ws, w);
  lk__list_add(&ws->ended, &w->event_link);
}

static void watched_end_kind(lk_watches *ws, lk_watched *on, int kind)
{
  while (!lk__list_empty(&on->kinds[kind]))
    lk__watch_end(ws, LK_OWNER(on->kinds[kind].next, lk_watch, link));
}

/* One-shot watches that the server had get the events of the persistent watch.
 * For those that were not registered, nothing reports the changes before it. */
void lk__watched_end_replaced(lk_watches *ws, lk_watched *on,
                              lk_watch_kind staying)
{
  for (int kind = 0; kind < LK_ONE_SHOT_KINDS; kind++) {
    bool lacks_its_events =
        kind == LK_WATCH_KIND_CHILD && staying == LK_WATCH_KIND_RECURSIVE;

    if (lacks_its_events || on->missing_after[kind] != LK_REGISTERED)
      watched_end_kind(ws, on, kind);
  }
}

void lk__watched_end_removed(lk_watches *ws, lk_watched *on)
{
  for (int kind = 0; kind < LK_ONE_SHOT_KINDS; kind++)
    watched_end_kind(ws, on, kind);
  for (lk_link *l = on->pending.next; l != &on->pending; l = l->next)
    LK_OWNER(l, lk_watch, link)->relies = true;
}

/* ---- finding the watches that get an event ------------------------------- */

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

/* One-shot watches on the path of a persistent watch are not registered again,
 * see watch_calls.c. */
static void take_from_path(lk_watched *on, bool only_disconnected, lk_link *out)
{
  bool has_staying = !lk__list_empty(&on->kinds[LK_WATCH_KIND_PERSISTENT]) ||
                     !lk__list_empty(&on->kinds[LK_WATCH_KIND_RECURSIVE]);

  for (int i = 0; i < LK_WATCH_KINDS; i++) {
    bool all = !only_disconnected ||
               (has_staying && !lk__watch_stays((lk_watch_kind)i));

    take_watches(&on->kinds[i], !all, out);
  }
}

static void take_from_all_paths(lk_watches *ws, bool only_disconnected,
                                lk_link *out)
{
  while (!lk__list_empty(&ws->ended)) {
    lk_link *event_link = ws->ended.next;

    lk__list_remove(event_link);
    lk__list_add(out, event_link);
  }
  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL;
       n = lk__map_next(n))
    take_from_path(lk__watched_of_node(n), only_disconnected, out);
}

void lk__watches_take_all(lk_watches *ws, lk_link *out)
{
  bool only_disconnected = false;

  take_from_all_paths(ws, only_disconnected, out);
}

void lk__watches_take_disconnected(lk_watches *ws, lk_link *out)
{
  bool only_disconnected = true;

  take_from_all_paths(ws, only_disconnected, out);
}

/* Add the standing persistent watches, which stay in their lists. */
static void watches_add_staying(lk_watches *ws, lk_link *out)
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

  watches_add_staying(ws, out);
  /* `out` may have had members before: only the last ws->added ones are new. */
  for (lk_link *l = out->prev; left > 0; l = l->prev, left--) {
    lk_watch *w = LK_OWNER(l, lk_watch, event_link);

    lk__list_remove(&w->link);
    watch_fall(ws, w);
  }
}

/* ---- reporting events ---------------------------------------------------- */

/* Report the last event of a watch, then free it. `cb` is NULL during the
 * callback, so that cancelling the watch there has no effect. */
static void report_last_event(lk_client *c, lk_watch *w, const lk_event *event)
{
  lk_watch_cb cb = w->cb;

  w->cb = NULL;
  cb(c, lk__watch_handle(w), event, w->arg);
  lk__watch_drop(&c->watches, w);
}

/* Report an event to a watch that the event does not end. Its callback may
 * cancel the watch, so a reference keeps the path of the event until the
 * callback has returned. */
static void report_event(lk_client *c, lk_watch *w, const lk_event *event)
{
  lk_watched *on = w->on;

  lk__watched_ref(on);
  w->cb(c, lk__watch_handle(w), event, w->arg);
  lk__watched_unref(&c->watches, on);
}

void lk__watches_notify(lk_client *c, lk_link *list, lk_event_type type,
                        lk_bytes path, int err)
{
  while (!lk__list_empty(list)) {
    lk_watch *w = LK_OWNER(list->next, lk_watch, event_link);
    bool stays = lk__watch_stays(w->kind) && type != LK_EVENT_ENDED;
    /* A persistent watch may get events of other paths. Its end and the events
     * of one-shot watches are about the watch's own path, which lives until the
     * watch is dropped. */
    lk_bytes event_path = stays && path.at != NULL
                              ? path
                              : lk_bytes_of(w->on->path, w->on->map.len);
    size_t chroot_len = w->outside_chroot ? 0 : c->hosts.chroot_len;
    lk_event event = {
        .type = type,
        .path = lk__path_strip(c->hosts.chroot, chroot_len, event_path),
        .err = err};

    lk__list_remove(&w->event_link);
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    if (stays)
      report_event(c, w, &event);
    else
      report_last_event(c, w, &event);
  }
}

void lk__watches_notify_ended(lk_client *c, lk_link *list, int err)
{
  lk__watches_notify(c, list, LK_EVENT_ENDED, lk_bytes_of(NULL, 0), err);
}

static void report_reregistered(lk_client *c, lk_link *list)
{
  for (lk_link *l = list->next; l != list; l = l->next)
    LK_OWNER(l, lk_watch, event_link)->reported_too_early = false;
  lk__watches_notify(c, list, LK_EVENT_REREGISTERED, lk_bytes_of(NULL, 0), 0);
}

void lk__watches_notify_reregistered(lk_client *c)
{
  lk_link staying;

  lk__list_init(&staying);
  watches_add_staying(&c->watches, &staying);
  report_reregistered(c, &staying);
}

void lk__watches_notify_reregistered_late(lk_client *c)
{
  lk_link staying;

  lk__list_init(&staying);
  watches_add_staying(&c->watches, &staying);
  for (lk_link *l = staying.next, *next; l != &staying; l = next) {
    const lk_watch *w = LK_OWNER(l, lk_watch, event_link);
    bool registered = w->on->missing_after[w->kind] == LK_REGISTERED;

    next = l->next;
    if (!w->reported_too_early || !registered)
      lk__list_remove(l);
  }
  report_reregistered(c, &staying);
}

/* ---- the end ------------------------------------------------------------- */

void lk__watches_free(lk_watches *ws)
{
  while (!lk__list_empty(&ws->spare_watches)) {
    lk_link *link = ws->spare_watches.next;

    lk__list_remove(link);
    lk__mem_free(ws->mem, LK_OWNER(link, lk_watch, link));
  }
  while (ws->spare_paths != NULL) {
    lk_watched *on = ws->spare_paths;

    ws->spare_paths = on->spare;
    lk__mem_free(ws->mem, on->path);
    lk__mem_free(ws->mem, on);
  }
  lk__mem_free(ws->mem, ws->slots);
  ws->nslots = 0; /* no handle is valid any more */
  lk__map_free(&ws->paths);
}
