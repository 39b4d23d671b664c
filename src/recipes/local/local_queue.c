/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/local/local_queue.h"
#include "recipes/queue/lease.h"

/* ---- life --------------------------------------------------------------- */

void lk__local_queue_unref(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (--q->refs > 0)
    return;
  lk__list_remove(&q->link);
  lk__list_remove(&q->close_hook.link);
  lk__lease_stop_timer(lease, &q->timer);
  lk__lock_options_free(&q->options, &lease->mem);
  lk__mem_free(&lease->mem, q);
  lk__lease_unref(lease);
}

void lk__local_queue_start_timer(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (!lease->life.detached) /* then the client still exists */
    lk__lease_start_timer(lease, &q->timer, lk_client_input_ms(lease->client));
}

static void on_client_closed(lk_close_hook *h)
{
  lk_local_queue *q = LK_OWNER(h, lk_local_queue, close_hook);

  lk__lease_stop_timer(q->lease, &q->timer);
}

lk_local_queue *lk__local_queue_new(const lk_lock *l,
                                    const lk_lock_config *config,
                                    void (*fire)(lk_client *c, void *arg))
{
  lk_session_lease *lease = l->lease;
  lk_local_queue *q = lk__mem_new(&lease->mem, sizeof *q);

  if (q == NULL)
    return NULL;
  if (!lk__lock_options_init(&q->options, &lease->mem, l->options.path, config,
                             LK_MULTILOCK_MUTEX)) {
    lk__lock_options_free(&q->options, &lease->mem);
    lk__mem_free(&lease->mem, q);
    return NULL;
  }
  q->lease = lease;
  q->timer = (lk_timer){.fire = fire, .arg = q};
  lk__safe_list_init(&q->waiters);
  lk__list_init(&q->ends);
  lk__list_add(&lease->queues.local, &q->link);
  q->close_hook.closed = on_client_closed;
  lk__list_add(&lease->life.close_hooks, &q->close_hook.link);
  lk__lease_ref(lease);
  return q;
}

/* ---- the queue of a mutex ----------------------------------------------- */

/* Whether two mutexes can share one contender node: they must have the same
 * path, layout and text in the names of their nodes. */
static bool lock_options_share_node(const lk_lock_options *a,
                                    const lk_lock_options *b)
{
  return a->rules == b->rules && strcmp(a->path, b->path) == 0 &&
         strcmp(a->contender.role->kind->text, b->contender.role->kind->text) ==
             0;
}

lk_local_queue *lk__local_queue_find(const lk_lock *l)
{
  lk_link *queues = &l->lease->queues.local;

  for (lk_link *at = queues->next; at != queues; at = at->next) {
    lk_local_queue *q = LK_OWNER(at, lk_local_queue, link);

    if (lock_options_share_node(&q->options, &l->options))
      return q;
  }
  return NULL;
}
