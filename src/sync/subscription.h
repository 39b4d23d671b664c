/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_SUBSCRIPTION_H
#define LK_SYNC_SUBSCRIPTION_H

/**
 * @file
 * One-shot and persistent watches for threads, and subscriptions, which keep
 * the newest state of a node.
 */

#include "sync/call.h"

struct lk_sync_watch {
  lk_sync_client *client;
  void (*on_event)(lk_sync_client *c, const lk_event *event, void *arg);
  void *arg;
  lk_watch *watch; /**< NULL: no event follows. For the thread of the handle */
  bool is_persistent;   /**< persistent: events come until LK_EVENT_ENDED */
  bool owned_by_caller; /**< the caller frees it by lk_sync_watch_free() */
};

/** Make a watch for `call->on_event`; NULL: no memory. */
lk_sync_watch *lk__sync_watch_new(lk_sync_client *c, const lk_sync_call *call);
/** For lk_call.on_event; `arg` is the watch. */
void lk__sync_watch_event(lk_client *client, lk_watch *w, const lk_event *event,
                          void *arg);
/** Free a watch that is not set. NULL is fine. */
void lk__sync_watch_discard(lk_sync_watch *w);

#endif
