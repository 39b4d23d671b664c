/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/watch.h"

#include "sync/blocking_call.h"
#include "sync/call_entry.h"

lk_sync_watch *lk__sync_watch_new(lk_sync_client *c, const lk_sync_call *call)
{
  lk_sync_watch *w = lk__mem_new(&c->mem, sizeof *w);

  if (w == NULL)
    return NULL;
  w->client = c;
  w->on_event = call->on_event;
  w->arg = call->watch_arg;
  w->owned_by_caller = call->watch != NULL;
  return w;
}

void lk__sync_watch_discard(lk_sync_watch *w)
{
  if (w != NULL)
    lk__mem_free(&w->client->mem, w);
}

/* If the caller owns the watch, `on_event` may free it. So `w` is not used
   after the callback unless it is ours to free. */
void lk__sync_watch_event(lk_client *client, lk_watch *watch,
                          const lk_event *event, void *arg)
{
  lk_sync_watch *w = arg;
  bool last = !w->is_persistent || event->type == LK_EVENT_ENDED;
  bool ours = last && !w->owned_by_caller;

  (void)client;
  (void)watch;
  if (last)
    w->watch = NULL;
  w->on_event(w->client, event, w->arg);
  if (ours)
    lk__sync_watch_discard(w);
}

/* ---- the end ------------------------------------------------------------- */

static void watch_remove(lk_sync_watch *w)
{
  if (w->watch != NULL)
    lk_watch_cancel(w->client->client, w->watch, true);
  lk__sync_watch_discard(w);
}

/** A call that frees `watch`. */
typedef struct watch_end {
  lk_blocking_call call;
  lk_sync_watch *watch;
} watch_end;

static void begin_watch_end(lk_blocking_call *e)
{
  watch_remove(LK_OWNER(e, watch_end, call)->watch);
  lk__blocking_call_complete(e, 0);
}

void lk_sync_watch_free(lk_sync_watch *w)
{
  watch_end f = {.watch = w};

  if (w == NULL)
    return;
  if (lk__sync_refusal(w->client) == LK_ERR_STATE)
    watch_remove(w);
  else
    (void)lk__blocking_call_do(&f.call, w->client, begin_watch_end);
}
