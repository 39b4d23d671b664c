/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/wait.h"

#include "sync/call_entry.h"

static int wait_inside(lk_wait *w, lk_sync_client *c, const lk_sync_call *call,
                       void (*begin)(lk_blocking_call *b))
{
  int err = lk__blocking_call_init_from(&w->call, c, call);

  if (err != 0)
    return err;
  lk__list_init(&w->link);
  err = lk__blocking_call_wait(&w->call, begin);
  lk__blocking_call_destroy(&w->call);
  return err;
}

int lk__wait_do(lk_wait *w, lk_sync_client *c, size_t *object_calls,
                const lk_sync_call *call, void (*begin)(lk_blocking_call *b))
{
  int cancel_state;
  int err = lk__sync_enter_object(c, object_calls, &cancel_state);

  if (err != 0)
    return err;
  err = wait_inside(w, c, call, begin);
  lk__sync_leave_object(c, object_calls, cancel_state);
  return err;
}

void lk__wait_end(lk_wait *w, int err)
{
  lk__list_remove(&w->link);
  lk__blocking_call_complete(&w->call, err);
}

static void interrupt_wait(lk_blocking_call *b, int err)
{
  lk__wait_end(lk__wait_of(b), err);
}

void lk__wait_add(lk_wait *w, lk_link *list)
{
  lk__list_add(list, &w->link);
  lk__blocking_call_allow_interrupt(&w->call, interrupt_wait);
  lk__blocking_call_start_timer(&w->call);
}
