/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection.h"

#include "base/mem.h"

void lk__connection_free(lk_connection *n)
{
  lk_driver_shared *x = n->shared;

  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    lk__watched_transport_free(&n->race.tries[i].transport, &x->mem);
  lk__address_list_free(&n->addresses, &x->mem);
  lk__mem_free(&x->mem, n);
  lk__driver_shared_unref(x);
}

void lk__connection_request_update(lk_connection *n)
{
  if (!lk__list_empty(&n->update) || lk__driver_shared_in_child(n->shared))
    return;
  lk__connection_hold_loop(n); /* so that the loop runs until the update */
  lk__driver_shared_add_update(n->shared, &n->update);
}

/* If the heap has an entry with an earlier time, the entry is kept. At that
   time, lk__connection_on_deadline() finds that the client's deadline has not
   come, and sets the later one. */
void lk__connection_set_deadline(lk_connection *n, int64_t at_ms)
{
  lk_heap *heap = &n->shared->deadlines;

  if (at_ms == INT64_MAX ||
      (lk__heap_has(&n->deadline) && n->deadline.at <= at_ms))
    return;
  lk__heap_remove(heap, &n->deadline);
  lk__heap_add(heap, &n->deadline, at_ms);
}
