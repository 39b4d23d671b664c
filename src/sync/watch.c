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
   after the callback unless this function has to free it. */
void lk__sync_watch_event(lk_client *client, lk_watch *watch,
                          const lk_event *event, void *arg)
{
  lk_sync_watch *w = arg;
  bool watch_has_ended = !w->is_persistent || event->type == LK_EVENT_ENDED;
  bool ours_to_free = watch_has_ended && !w->owned_by_caller;

  (void)client;
  (void)watch;
  if (watch_has_ended)
    w->watch = NULL;
  w->on_event(w->client, event, w->arg);
  if (ours_to_free)
    lk__sync_watch_discard(w);
}

/* ---- the end ------------------------------------------------------------- */

static void watch_cancel_and_free(lk_sync_watch *w)
{
  const bool on_server = true;

  if (w->watch != NULL)
    lk_watch_cancel(w->client->client, w->watch, on_server);
  lk__sync_watch_discard(w);
}

/** A call that frees `watch`. */
typedef struct watch_end {
  lk_blocking_call call;
  lk_sync_watch *watch;
} watch_end;

static void begin_watch_end(lk_blocking_call *b)
{
  watch_cancel_and_free(LK_OWNER(b, watch_end, call)->watch);
  lk__blocking_call_complete(b, 0);
}

void lk_sync_watch_free(lk_sync_watch *w)
{
  watch_end end = {.watch = w};

  if (w == NULL)
    return;
  bool on_thread_of_handle = lk__sync_refusal(w->client) == LK_ERR_STATE;

  if (on_thread_of_handle)
    watch_cancel_and_free(w);
  else
    (void)lk__blocking_call_do(&end.call, w->client, begin_watch_end);
}
