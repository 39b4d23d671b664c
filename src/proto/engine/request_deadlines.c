/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/request_deadlines.h"

#include "base/mem.h"
#include "proto/engine/request_queue.h"

enum { MAX_SPARES = 1024 };

static lk_deadline *take_deadline(lk_request_deadlines *all, const lk_mem *mem)
{
  lk_deadline *d = all->spares;

  if (d == NULL)
    return lk__mem_new(mem, sizeof *d);
  all->spares = d->spare;
  all->nspares--;
  return d;
}

bool lk__deadline_add(lk_request_deadlines *all, const lk_mem *mem,
                      lk_request *r, int64_t at_ms)
{
  if (at_ms == LK_NEVER)
    return true;
  r->deadline = take_deadline(all, mem);
  if (r->deadline == NULL)
    return false;
  lk__heap_add(&all->heap, &r->deadline->node, at_ms);
  return true;
}

void lk__deadline_drop(lk_request_deadlines *all, const lk_mem *mem,
                       lk_request *r)
{
  lk_deadline *d = r->deadline;

  if (d == NULL)
    return;
  r->deadline = NULL;
  lk__heap_remove(&all->heap, &d->node);
  if (all->nspares == MAX_SPARES) {
    lk__mem_free(mem, d);
    return;
  }
  d->spare = all->spares;
  all->spares = d;
  all->nspares++;
}

const lk_deadline *lk__deadline_due(const lk_request_deadlines *all,
                                    int64_t now)
{
  return lk__deadline_next(all) > now
             ? NULL
             : LK_OWNER(all->heap.root, lk_deadline, node);
}

/* The requests dropped their deadlines when they completed, so only the spares
 * are left. */
void lk__deadlines_free(lk_request_deadlines *all, const lk_mem *mem)
{
  while (all->spares != NULL) {
    lk_deadline *d = all->spares;

    all->spares = d->spare;
    lk__mem_free(mem, d);
  }
}
