/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_VALUES_H
#define LK_DIFFERENTIAL_VALUES_H

#include "differential/generator.h"

/**
 * Values of random requests: nodes that may exist, paths of all kinds, data,
 * access lists.
 */

#define COUNT_OF(a)  (sizeof(a) / sizeof(a)[0])
#define ANY_OF(w, a) ((a)[sim_roll(&(w)->rng, COUNT_OF(a))])

static inline bool one_in_2(generator *w)
{
  return sim_chance(&w->rng, 500);
}

static inline bool one_in_16(generator *w)
{
  return sim_chance(&w->rng, 60);
}

static inline bool one_in_125(generator *w)
{
  return sim_chance(&w->rng, 8);
}

/** A number with its weight; weight 0 ends a list. */
typedef struct weighted {
  int32_t value;
  uint32_t weight;
} weighted;

int32_t random_weighted(generator *w, const weighted *of);

/** NULL: not known to exist. */
generator_node *find_node(generator *w, lk_bytes path);
/** NULL: none is known. */
const generator_node *random_node(generator *w);

/** Paths are valid until the next request. */
lk_bytes random_path(generator *w);
/** A path that probably does not exist, below one that does. */
lk_bytes new_path(generator *w);
/** An invalid or unusual path. */
lk_bytes odd_path(generator *w);
lk_bytes path_to_watch(generator *w);
/** Mostly of a node without children. */
lk_bytes path_to_delete(generator *w);

/** Mostly -1 or `known`. */
int32_t random_version(generator *w, int32_t known);
int32_t version_of(generator *w, lk_bytes path);
lk_bytes random_data(generator *w);
/** `open`: mostly open to all, since a closed tree gives errors only. */
lk_vec random_acl(generator *w, lk_acl entries[4], bool open);

#endif
