/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "proto/engine/watch_table.h"

enum {
  FIRST_SLOTS = 16,
  /* The bits of a handle that have the slot: 32 of 64 bits; or 20 of 32 bits,
     which is enough for half a million watches, since tables double. The others
     have the serial number. */
  SLOT_BITS = sizeof(uintptr_t) > 4 ? 32 : 20
};

#define MAX_SLOTS ((uint32_t)(((uintptr_t)1 << SLOT_BITS) - 1))

/* Add free slots to a table that has none. false: there is no memory, or the
 * table would be too large. */
static bool add_slots(lk_watches *ws)
{
  uint32_t more = ws->nslots == 0 ? FIRST_SLOTS : ws->nslots;
  lk_watch_slot *slots;

  if (more > MAX_SLOTS - ws->nslots)
    return false;
  slots = lk__mem_resize(ws->mem, ws->slots,
                         ((size_t)ws->nslots + more) * sizeof *slots);
  if (slots == NULL)
    return false;
  ws->slots = slots;
  /* Each free slot is followed by the next one in the table. The last one has
   * the new `nslots` as `next`, which means that no slot is free. */
  for (uint32_t i = ws->nslots; i < ws->nslots + more; i++)
    slots[i] = (lk_watch_slot){.watch = NULL, .next = i + 1};
  ws->nslots += more;
  return true;
}

bool lk__watch_take_handle(lk_watches *ws, lk_watch *w)
{
  if (ws->free_slot == ws->nslots && !add_slots(ws))
    return false;
  w->slot = ws->free_slot;
  w->serial = ++ws->serial;
  ws->free_slot = ws->slots[w->slot].next;
  ws->slots[w->slot].watch = w;
  return true;
}

void lk__watch_free_handle(lk_watches *ws, const lk_watch *w)
{
  ws->slots[w->slot] = (lk_watch_slot){.watch = NULL, .next = ws->free_slot};
  ws->free_slot = w->slot;
}

lk_watch *lk__watch_handle(const lk_watch *w)
{
  uintptr_t place = (uintptr_t)w->slot + 1; /* not 0: no handle is NULL */

  return (lk_watch *)((uintptr_t)w->serial << SLOT_BITS | place);
}

lk_watch *lk__watch_of(const lk_watches *ws, const lk_watch *handle)
{
  uintptr_t slot_mask = MAX_SLOTS; /* all of its SLOT_BITS are set */
  uintptr_t place = (uintptr_t)handle & slot_mask;
  lk_watch *w =
      place == 0 || place > ws->nslots ? NULL : ws->slots[place - 1].watch;

  return w != NULL && lk__watch_handle(w) == handle ? w : NULL;
}
