/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LOCK_STYLES_H
#define LK_SIM_WORLD_LOCK_STYLES_H

#include "sim/world/world.h"

#include <latchkey/lock.h>

/**
 * How the locks of a run are asked for, by all of its lockers: what their nodes
 * are called, and who stands behind them. It is chosen apart from the lock mix
 * and from what goes wrong; semaphores know some, and none but the usual one
 * where they are among others. To add one: a line in the list, and what
 * locker.c makes of it.
 */
struct sim_lock_style {
  const char *name;
  const char *text;
  unsigned weight; /**< how often a seed chooses it */
  lk_layout layout;
  const char *prefix; /**< of a native mutex, or NULL */
  size_t unique; /**< so many characters of a name tell whose attempt it is; 0:
                      it stands at the end of the data */
  bool local;    /**< mutexes of one process queue behind one node */
  bool brief;    /**< some wait only behind a few */
  bool permits;  /**< semaphores know it */
};

enum { SIM_UUID = 36 };

extern const sim_lock_style sim_lock_styles[];
extern const size_t sim_nlock_styles;

/** NULL: there is none of that name. */
const sim_lock_style *sim_lock_style_find(const char *name);
/** Whether the locks of the lock mix know it. */
bool sim_lock_style_fits(const sim_lock_style *h, const sim_lock_mix *lock_mix);
/** The one that a seed chooses, of those that the lock mix knows. */
const sim_lock_style *sim_lock_style_of(uint64_t seed,
                                        const sim_lock_mix *lock_mix);

/** Whether names have no mark of who made them: those of mutexes and of
    read-write locks then stand in queues apart. */
static inline bool sim_names_have_no_id(const sim_lock_style *h)
{
  return h->layout == LK_LAYOUT_NATIVE || h->layout == LK_LAYOUT_NATIVE_UUID;
}

#endif
