/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_VALUES_H
#define LK_DIFFERENTIAL_VALUES_H

#include "differential/generator.h"

/**
 * What requests are made of: nodes that may be there, paths of all kinds, data,
 * access lists.
 */

#define COUNT_OF(a)  (sizeof(a) / sizeof(a)[0])
#define ANY_OF(w, a) ((a)[sim_roll(&(w)->rng, COUNT_OF(a))])

static inline bool often(generator *w)
{
  return sim_chance(&w->rng, 500);
}

static inline bool seldom(generator *w)
{
  return sim_chance(&w->rng, 60);
}

static inline bool hardly_ever(generator *w)
{
  return sim_chance(&w->rng, 8);
}

/** One of the numbers that come with weights; they end with weight 0. */
typedef struct weighted {
  int32_t value;
  uint32_t weight;
} weighted;

int32_t pick(generator *w, const weighted *of);

/** What is believed of a node; NULL: not that it is there. */
generator_node *known_node(generator *w, lk_bytes path);
/** NULL: none is known. */
const generator_node *some_node(generator *w);

/** Paths are valid as long as the request at hand. */
lk_bytes some_path(generator *w);
/** Where none may be yet, but a parent. */
lk_bytes new_path(generator *w);
/** One that is wrong, or looks so. */
lk_bytes odd_path(generator *w);
lk_bytes path_to_watch(generator *w);
/** Rather one that has no children. */
lk_bytes path_to_delete(generator *w);

/** Rather -1 or `known`. */
int32_t some_version(generator *w, int32_t known);
int32_t version_of(generator *w, lk_bytes path);
lk_bytes some_data(generator *w);
/** `open`: nearly always to all; a tree that is closed teaches nothing. */
lk_vec some_acl(generator *w, lk_acl entries[4], bool open);

#endif
