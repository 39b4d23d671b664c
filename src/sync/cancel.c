/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/cancel.h"

int lk_sync_cancel_new(lk_sync_cancel **out, lk_sync_client *c)
{
  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  lk_sync_cancel *x = lk__mem_new(&c->mem, sizeof *x);

  if (x == NULL)
    return LK_ERR_NO_MEMORY;
  x->client = c;
  *out = x;
  return 0;
}

/* `set` is stored before `cancel_was_set`. The thread of the handle examines
   all calls after it has seen `cancel_was_set`, and so it sees `set`. A call
   that begins later examines its own cancel. */
void lk_sync_cancel_set(lk_sync_cancel *x)
{
  if (x == NULL)
    return;
  atomic_store(&x->set, true);
  atomic_store(&x->client->cancel_was_set, true);
  lk__driver_wake(&x->client->driver);
}

void lk_sync_cancel_clear(lk_sync_cancel *x)
{
  if (x != NULL)
    atomic_store(&x->set, false);
}

void lk_sync_cancel_free(lk_sync_cancel *x)
{
  if (x != NULL && !lk__driver_in_child(&x->client->driver))
    lk__mem_free(&x->client->mem, x);
}
