/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/blocking_call.h"
#include "sync/holder.h"

/* Begin what was posted; true: the handle is to be freed. */
static bool work(lk_sync_client *c)
{
  lk_link todo;

  lk__list_init(&todo);
  pthread_mutex_lock(&c->mutex);
  lk__list_move(&todo, &c->tasks);
  bool freed = c->freed;

  pthread_mutex_unlock(&c->mutex);
  while (!lk__list_empty(&todo)) {
    lk_task *t = LK_OWNER(todo.next, lk_task, link);

    lk__list_remove(&t->link);
    t->begin(t);
  }
  return freed;
}

static void on_driver_wake(lk_driver *d)
{
  lk_sync_client *c = LK_OWNER(d, lk_sync_client, driver);

  if (work(c))
    c->stopped = true;
  if (atomic_exchange(&c->cancels, false))
    lk__blocking_calls_cancel(c);
}

static void on_state(lk_client *client, lk_state state, int err, void *arg)
{
  lk_sync_client *c = arg;

  (void)client;
  atomic_store(&c->state, (int)state);
  if (c->on_state != NULL)
    c->on_state(c, state, err, c->arg);
}

/* The session lease was notified first. */
static void on_answer(lk_client *client, const lk_reply *answer, void *arg)
{
  lk_sync_client *c = arg;
  int64_t lease = lk_lease_deadline(c->client);

  (void)client;
  (void)answer;
  if (lease == c->lease_ms)
    return;
  c->lease_ms = lease;
  lk__holders_publish(c);
}

/* What is still under way ends. Locks were freed before. */
static void wind_up(lk_sync_client *c)
{
  c->closed = true;
  (void)work(c);
  lk_client_free(c->client);
}

void *lk__sync_thread_main(void *arg)
{
  lk_sync_client *c = arg;

  pthread_mutex_lock(&c->mutex); /* the maker has finished */
  pthread_mutex_unlock(&c->mutex);
  c->listener = (lk_listener){.state = on_state, .reply = on_answer, .arg = c};
  lk_client_attach(c->client, &c->listener);
  c->driver.on_wake = on_driver_wake;
  c->loop->type->hold(c->loop, true);
  lk__loop_run(c->loop, &c->stopped);
  wind_up(c);
  return NULL;
}
