/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LOCK_STYLES_H
#define LK_SIM_WORLD_LOCK_STYLES_H

#include "sim/world/world.h"

#include <latchkey/lock.h>

/**
 * The layout of contender nodes, and the limit of predecessors. All lockers of
 * a run use the same style. The seed chooses it apart from lock mix and
 * scenario. Semaphores support some styles; in a mix with other kinds they use
 * the default. To add one: a line in the list, and its effect in locker.c.
 */
struct sim_lock_style {
  const char *name;
  const char *text;
  unsigned weight; /**< of its choice by a seed */
  lk_layout layout;
  const char *prefix; /**< of a native mutex, or NULL */
  size_t id_len; /**< length of the contender's id at the start of a node name;
                    0: the id is at the end of the data */
  bool short_queue; /**< max_queue is small */
  bool semaphores;  /**< semaphores support it */
};

enum { SIM_UUID = 36 };

extern const sim_lock_style sim_lock_styles[];
extern const size_t sim_nlock_styles;

/** The style of that name; NULL: there is none. */
const sim_lock_style *sim_lock_style_find(const char *name);
/** Whether the lock mix supports the style. */
bool sim_lock_style_fits(const sim_lock_style *h, const sim_lock_mix *lock_mix);
/** The style that a seed chooses among those of the lock mix. */
const sim_lock_style *sim_lock_style_of(uint64_t seed,
                                        const sim_lock_mix *lock_mix);

/** Whether names have no id of the contender. Mutexes and read-write locks then
    have different queues. */
static inline bool sim_names_have_no_id(const sim_lock_style *h)
{
  return h->layout == LK_LAYOUT_NATIVE || h->layout == LK_LAYOUT_NATIVE_UUID;
}
/** Whether the id of a contender is at the end of its node's data. */
static inline bool sim_id_is_in_data(const sim_lock_style *h)
{
  return h->id_len == 0;
}

#endif
