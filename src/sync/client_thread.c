/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/client_thread.h"

#include "sync/blocking_call.h"
#include "sync/lock_owners.h"

static void on_driver_wake(lk_driver *d)
{
  lk_sync_client *c = LK_OWNER(d, lk_sync_client, driver);

  bool freeing = lk__tasks_begin(c);

  if (freeing)
    c->must_stop = true;
  if (atomic_exchange(&c->cancel_was_set, false))
    lk__blocking_calls_interrupt_cancelled(c);
}

static void on_client_state(lk_client *client, lk_state state, int err,
                            void *arg)
{
  lk_sync_client *c = arg;

  (void)client;
  atomic_store(&c->state, (int)state);
  if (c->on_state != NULL)
    c->on_state(c, state, err, c->arg);
}

/* Publish the lease deadline to the threads that hold locks. The session lease
   has handled the reply before this listener. */
static void on_reply(lk_client *client, const lk_reply *reply, void *arg)
{
  lk_sync_client *c = arg;
  int64_t lease_ms = lk_lease_deadline(c->client);

  (void)client;
  (void)reply;
  if (lease_ms == c->lease_ms)
    return;
  c->lease_ms = lease_ms;
  lk__lock_owners_publish(c);
}

/* The handle is being freed. Tasks that were posted earlier still begin, and
   are refused because `closing` is set. lk_client_free() completes all
   requests. */
static void end_thread(lk_sync_client *c)
{
  c->closing = true;
  (void)lk__tasks_begin(c);
  lk_client_free(c->client);
}

void *lk__sync_thread_main(void *arg)
{
  lk_sync_client *c = arg;

  /* start_thread() holds the mutex until it has set `c->thread`. */
  pthread_mutex_lock(&c->mutex);
  pthread_mutex_unlock(&c->mutex);
  c->listener =
      (lk_listener){.state = on_client_state, .reply = on_reply, .arg = c};
  lk_client_attach(c->client, &c->listener);
  c->driver.on_wake = on_driver_wake;
  lk__loop_hold(c->loop); /* it runs until `must_stop` is set */
  lk__loop_run(c->loop, &c->must_stop);
  end_thread(c);
  return NULL;
}
