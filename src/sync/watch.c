/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/watch.h"

#include "sync/blocking_call.h"

lk_sync_watch *lk__sync_watch_new(lk_sync_client *c, const lk_sync_call *call)
{
  lk_sync_watch *w = lk__mem_new(&c->mem, sizeof *w);

  if (w == NULL)
    return NULL;
  w->client = c;
  w->on_event = call->on_event;
  w->arg = call->watch_arg;
  w->handed = call->watch != NULL;
  return w;
}

void lk__sync_watch_discard(lk_sync_watch *w)
{
  if (w != NULL)
    lk__mem_free(&w->client->mem, w);
}

/* One with a handle may be freed by its callback. */
void lk__sync_watch_event(lk_client *client, lk_watch *watch,
                          const lk_event *event, void *arg)
{
  lk_sync_watch *w = arg;
  bool last = !w->stays || event->type == LK_EVENT_ENDED;
  bool ours = last && !w->handed;

  (void)client;
  (void)watch;
  if (last)
    w->watch = NULL;
  w->on_event(w->client, event, w->arg);
  if (ours)
    lk__sync_watch_discard(w);
}

/* ---- the end ------------------------------------------------------------- */

static void end(lk_sync_watch *w)
{
  if (w->watch != NULL)
    lk_watch_cancel(w->client->client, w->watch, true);
  lk__sync_watch_discard(w);
}

/** A watch that is to be dropped. */
typedef struct farewell {
  lk_blocking_call errand;
  lk_sync_watch *watch;
} farewell;

static void begin_end(lk_blocking_call *e)
{
  end(LK_OWNER(e, farewell, errand)->watch);
  lk__blocking_call_complete(e, 0);
}

void lk_sync_watch_free(lk_sync_watch *w)
{
  farewell f = {.watch = w};

  if (w == NULL)
    return;
  if (lk__sync_refusal(w->client) == LK_ERR_STATE)
    end(w);
  else
    (void)lk__blocking_call_do(&f.errand, w->client, begin_end);
}
