/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call_entry.h"

/* Entering and leaving the handle: how each call begins and ends. */

int lk__sync_refusal(const lk_sync_client *c)
{
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  return pthread_equal(pthread_self(), c->thread) ? LK_ERR_STATE : 0;
}

/* The thread of the handle uses memory on the caller's stack. So cancellation
   of the calling thread is disabled until its call is completed. */
int lk__sync_enter_object(lk_sync_client *c, size_t *object_calls,
                          int *cancel_state)
{
  int err = lk__sync_refusal(c);

  if (err != 0)
    return err;
  *cancel_state = lk__sync_disable_cancel();
  pthread_mutex_lock(&c->mutex);
  bool open = !c->freeing;

  if (open) {
    c->calls_inside++;
    if (object_calls != NULL)
      ++*object_calls;
  }
  pthread_mutex_unlock(&c->mutex);
  if (open)
    return 0;
  lk__sync_restore_cancel(*cancel_state);
  return LK_ERR_CLOSED;
}

int lk__sync_enter(lk_sync_client *c, int *cancel_state)
{
  size_t *const no_object = NULL;

  return lk__sync_enter_object(c, no_object, cancel_state);
}

void lk__sync_leave_object(lk_sync_client *c, size_t *object_calls,
                           int cancel_state)
{
  pthread_mutex_lock(&c->mutex);
  c->calls_inside--;
  if (object_calls != NULL)
    --*object_calls;
  if (c->calls_inside == 0 || (object_calls != NULL && *object_calls == 0))
    pthread_cond_broadcast(&c->no_call_inside);
  pthread_mutex_unlock(&c->mutex);
  lk__sync_restore_cancel(cancel_state);
}

void lk__sync_leave(lk_sync_client *c, int cancel_state)
{
  size_t *const no_object = NULL;

  lk__sync_leave_object(c, no_object, cancel_state);
}

void lk__sync_await_calls(lk_sync_client *c, const size_t *object_calls)
{
  int cancel_state = lk__sync_disable_cancel();

  pthread_mutex_lock(&c->mutex);
  while (*object_calls > 0)
    pthread_cond_wait(&c->no_call_inside, &c->mutex);
  pthread_mutex_unlock(&c->mutex);
  lk__sync_restore_cancel(cancel_state);
}
