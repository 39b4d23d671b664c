/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Deadlines of requests. A request moves with its ring, so it is found by where
 * its last byte is, which ascends in each ring: as many requests as there are
 * may have deadlines, and each costs no more than the logarithm of that.
 */

#include "proto/engine/engine.h"

enum { MAX_SPARES = 1024 };

static lk_deadline *take_deadline(lk_client *c)
{
  lk_deadline *d = c->spare_deadlines;

  if (d == NULL)
    return lk__mem_new(&c->mem, sizeof *d);
  c->spare_deadlines = d->spare;
  c->nspare_deadlines--;
  return d;
}

bool lk__deadline_add(lk_client *c, lk_request *r, int64_t at_ms)
{
  if (at_ms == LK_NEVER)
    return true;
  r->deadline = take_deadline(c);
  if (r->deadline == NULL)
    return false;
  lk__heap_add(&c->deadlines, &r->deadline->node, at_ms);
  return true;
}

void lk__deadline_drop(lk_client *c, lk_request *r)
{
  lk_deadline *d = r->deadline;

  if (d == NULL)
    return; /* callers that are in a hurry look themselves */
  r->deadline = NULL;
  lk__heap_remove(&c->deadlines, &d->node);
  if (c->nspare_deadlines == MAX_SPARES) {
    lk__mem_free(&c->mem, d);
    return;
  }
  d->spare = c->spare_deadlines;
  c->spare_deadlines = d;
  c->nspare_deadlines++;
}

/* The request whose last byte is at `end`: it is there. */
static lk_request *find_by_end(const lk_ring *ring, uint64_t end)
{
  size_t low = 0, high = ring->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    lk_request *r = lk__ring_at(ring, middle);

    if (r->end == end)
      return r;
    if (r->end < end)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

lk_request *lk__deadline_due(const lk_client *c)
{
  if (lk__deadline_next(c) > c->now)
    return NULL;
  const lk_deadline *d = LK_OWNER(c->deadlines.root, lk_deadline, node);

  return find_by_end(d->waits ? &c->waiting : &c->sent, d->end);
}

void lk__deadlines_free(lk_client *c)
{
  while (c->spare_deadlines != NULL) {
    lk_deadline *d = c->spare_deadlines;

    c->spare_deadlines = d->spare;
    lk__mem_free(&c->mem, d);
  }
}
