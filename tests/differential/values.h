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

/** A value and the weight of its choice. A list of values ends with weight
    0. */
typedef struct weighted {
  int32_t value;
  uint32_t weight;
} weighted;

int32_t random_weighted(generator *w, const weighted *of);

/** A known node; NULL: the node is not known to exist. */
generator_node *find_node(generator *w, lk_bytes path);
/** One of the known nodes; NULL: none is known. */
const generator_node *random_node(generator *w);

/** A path of any kind. The texts of paths are valid until the next request. */
lk_bytes random_path(generator *w);
/** A path that probably does not exist, below one that does. */
lk_bytes new_path(generator *w);
/** An invalid or unusual path. */
lk_bytes odd_path(generator *w);
lk_bytes path_to_watch(generator *w);
/** A path to delete, mostly of a node without children. */
lk_bytes path_to_delete(generator *w);

/** A version, mostly -1 (any) or `known`. */
int32_t random_version(generator *w, int32_t known);
int32_t version_of(generator *w, lk_bytes path);
lk_bytes random_data(generator *w);
/** An access list. `open`: mostly one that is open to all, since requests for
    closed nodes only give errors. */
lk_vec random_acl(generator *w, lk_acl entries[4], bool open);

#endif
