/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_MAP_H
#define LK_BASE_MAP_H

#include "base/mem.h"

#include <uthash.h>

/** A node of a map: the first member of the struct that the map finds. The key
    belongs to the owner of the node and must not change while the node is in a
    map. */
typedef struct lk_map_node {
  UT_hash_handle hh;
  const char *key;
  size_t len; /**< of the key, bytes */
} lk_map_node;

/** A map from a key, text of at least one byte, to a node: a wrapper of uthash.
    The map points into itself, so it must not be moved. Zero the struct if
    lk__map_free() may be called before lk__map_init(). */
typedef struct lk_map {
  const lk_mem *mem;
  lk_map_node *head;  /**< the first node, by which uthash finds its table */
  lk_map_node anchor; /**< always in the map, since uthash would free the table
                           of an empty map; its key is "" */
} lk_map;

/** @return false: no memory. */
bool lk__map_init(lk_map *m, const lk_mem *mem);
/** The node of the key; NULL: there is none. */
lk_map_node *lk__map_find(const lk_map *m, const char *key, size_t len);
/** Add `n` with a key that is not in the map. false: there is no memory, or the
    key has no byte or too many, and the map is unchanged. */
bool lk__map_add(lk_map *m, lk_map_node *n, const char *key, size_t len);
void lk__map_remove(lk_map *m, lk_map_node *n);
/** Walk through the nodes in the order in which they were added; NULL: no more.
    A node may be removed during the walk after lk__map_next() was called for
    it. */
lk_map_node *lk__map_first(const lk_map *m);
lk_map_node *lk__map_next(const lk_map_node *n);
/** The number of nodes that lk__map_add() has added. */
size_t lk__map_count(const lk_map *m);
/** Replace the table of an empty map by a small one if it has more than
    `max_buckets`. Without memory for the small one the map is unchanged. */
void lk__map_trim(lk_map *m, size_t max_buckets);
/** Free the table, but not the nodes, which belong to their owners. */
void lk__map_free(lk_map *m);

#endif
