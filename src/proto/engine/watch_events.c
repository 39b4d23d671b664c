/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Reporting events to watches. */

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/engine/watch_events.h"
#include "proto/wire/path.h"

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
  lk__watches_add_staying(&c->watches, &staying);
  report_reregistered(c, &staying);
}

void lk__watches_notify_reregistered_late(lk_client *c)
{
  lk_link staying;

  lk__list_init(&staying);
  lk__watches_add_staying(&c->watches, &staying);
  for (lk_link *l = staying.next, *next; l != &staying; l = next) {
    const lk_watch *w = LK_OWNER(l, lk_watch, event_link);
    bool registered = w->on->missing_after[w->kind] == LK_REGISTERED;

    next = l->next;
    if (!w->reported_too_early || !registered)
      lk__list_remove(l);
  }
  report_reregistered(c, &staying);
}
