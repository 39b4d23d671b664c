/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_PATHS_H
#define LK_SIM_MODEL_PATHS_H

#include "jute/arena.h"
#include "jute/writer.h"

/**
 * A path that somebody has named, once in an ensemble. Its number finds its
 * node in each tree and its watches at each server.
 */
typedef struct sim_path {
  const char *text; /**< NUL-terminated */
  const char *name; /**< its last part */
  size_t len;
  uint32_t number; /**< 0: the root */
  uint32_t hash;
  struct sim_path *parent; /**< NULL: of the root */
  struct sim_path *next;   /**< in its bucket */
} sim_path;

static inline lk_bytes sim_path_name(const sim_path *p)
{
  return lk_bytes_of(p->name, p->len - (size_t)(p->name - p->text));
}

typedef struct sim_paths {
  lk_arena *arena; /**< where they live; not the table's */
  sim_path **buckets;
  size_t nbuckets; /**< a power of two */
  uint32_t count;
  sim_path *root;
  sim_path *nameless; /**< "", which can be watched but never changes */
} sim_paths;

void sim_paths_init(sim_paths *p, lk_arena *arena);
void sim_paths_free(sim_paths *p);
/** NULL: nobody has named it, or it is none. "" is the root. */
sim_path *sim_path_find(const sim_paths *p, lk_bytes text);
/** Find, or add with its parents; `text` has no NUL inside. */
sim_path *sim_path_get(sim_paths *p, lk_bytes text);

/** What a client with that chroot calls by a path; a path that is not below it,
    but /zookeeper's, is no path at all. */
lk_bytes sim_path_strip_chroot(const char *chroot, lk_bytes path);
/** The same back. */
void sim_write_path_with_chroot(lk_writer *w, const char *chroot,
                                lk_bytes path);

#endif
