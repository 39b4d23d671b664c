/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_MAP_H
#define LK_BASE_MAP_H

#include "base/mem.h"

#include <uthash.h>

/** A member of a map: first member of what is kept. The key is its owner's
    and must not change while it is in a map. */
typedef struct lk_map_node {
  UT_hash_handle hh;
  const char *key;
  size_t len; /**< of the key, bytes */
} lk_map_node;

/** Text (of one byte at least) -> node, over uthash. It points into itself:
    do not move it. Zero it if it may be freed before it is made. */
typedef struct lk_map {
  const lk_mem *mem;
  lk_map_node *head;
  lk_map_node anchor; /**< always in it: uthash frees its table when empty */
} lk_map;

/** @return false: no memory. */
bool lk__map_init(lk_map *m, const lk_mem *mem);
lk_map_node *lk__map_find(const lk_map *m, const char *key, size_t len);
/** Add; the key must not be there. false: no memory, m is as it was. */
bool lk__map_add(lk_map *m, lk_map_node *n, const char *key, size_t len);
void lk__map_remove(lk_map *m, lk_map_node *n);
/** Walk in order of adding: first, then next until NULL. The node at hand may
    be removed after its next was asked for. */
lk_map_node *lk__map_first(const lk_map *m);
lk_map_node *lk__map_next(const lk_map_node *n);
size_t lk__map_count(const lk_map *m);
/** Give memory back when an empty map has a table for more than `keep`. Without
    memory for a smaller one it stays as it is. */
void lk__map_trim(lk_map *m, size_t keep);
/** Free the table, not the nodes; nothing is found any more. */
void lk__map_free(lk_map *m);

#endif
