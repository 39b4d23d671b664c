/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_PATHS_H
#define LK_SIM_MODEL_PATHS_H

#include "jute/arena.h"
#include "jute/writer.h"

/**
 * A path that a request has named. An ensemble has one sim_path for each text.
 * Its number is the index of the node in every tree, and of the watches at
 * every server.
 */
typedef struct sim_path {
  const char *text; /**< NUL-terminated */
  const char *name; /**< its last component */
  size_t len;
  uint32_t number; /**< 0: the root */
  uint32_t hash;
  struct sim_path *parent; /**< NULL: it is the root */
  struct sim_path *next;   /**< in the same bucket */
} sim_path;

static inline lk_bytes sim_path_name(const sim_path *p)
{
  return lk_bytes_of(p->name, p->len - (size_t)(p->name - p->text));
}

typedef struct sim_paths {
  lk_arena *arena; /**< memory of the paths; owned by the ensemble */
  sim_path **buckets;
  size_t nbuckets; /**< a power of two */
  uint32_t count;
  sim_path *root;
  /** the path "", which can be watched and never changes */
  sim_path *nameless;
} sim_paths;

void sim_paths_init(sim_paths *p, lk_arena *arena);
void sim_paths_free(sim_paths *p);
/** Find a path; NULL: no request has named it. "" is the root. */
sim_path *sim_path_find(const sim_paths *p, lk_bytes text);
/** Find the path, or add it and its parents; `text` has no NUL byte. */
sim_path *sim_path_get(sim_paths *p, lk_bytes text);

/** The path in the tree for a client's path. NULL: it is not below the chroot.
    /zookeeper is the same with and without a chroot. */
lk_bytes sim_path_strip_chroot(const char *chroot, lk_bytes path);
/** Write a path of the tree as the client with this chroot names it. */
void sim_write_path_with_chroot(lk_writer *w, const char *chroot,
                                lk_bytes path);

#endif
