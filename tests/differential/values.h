/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_VALUES_H
#define LK_DIFFERENTIAL_VALUES_H

#include "differential/generator.h"
#include "jute/record.h"

/**
 * Values of random requests: nodes that may exist, paths of all kinds, data,
 * access lists.
 */

#define COUNT_OF(a)  (sizeof(a) / sizeof(a)[0])
#define ANY_OF(g, a) ((a)[sim_roll(&(g)->rng, COUNT_OF(a))])

static inline bool one_in_2(generator *g)
{
  return sim_chance(&g->rng, 500);
}

static inline bool one_in_16(generator *g)
{
  return sim_chance(&g->rng, 60);
}

static inline bool one_in_125(generator *g)
{
  return sim_chance(&g->rng, 8);
}

/** A value and the weight of its choice. A list of values ends with weight
    0. */
typedef struct weighted {
  int32_t value;
  uint32_t weight;
} weighted;

int32_t random_weighted(generator *g, const weighted *list);

/** The node at `path`; NULL: it is not known to exist. */
generator_node *find_node(generator *g, lk_bytes path);
/** One of the known nodes; NULL: none is known. */
const generator_node *random_node(generator *g);

/** A path of any kind. The texts of paths are valid until the next request. */
lk_bytes random_path(generator *g);
/** A path below the base or below a known node. It may exist or not; its depth
    is limited. */
lk_bytes new_path(generator *g);
/** An invalid or unusual path. */
lk_bytes odd_path(generator *g);
/** A path that a watch can be set on. */
lk_bytes path_to_watch(generator *g);
/** A path to delete, mostly of a node without children. */
lk_bytes path_to_delete(generator *g);

/** A version, mostly -1 (any) or `known`. */
int32_t random_version(generator *g, int32_t known);
/** A version for a request on the node at `path`. */
int32_t version_for(generator *g, lk_bytes path);
lk_bytes random_data(generator *g);
/** How many of a thousand random access lists are open to all. Requests for
    other nodes mostly give errors. */
enum { MOSTLY_OPEN = 930, SELDOM_OPEN = 300 };

/** An access list; `entries` is its memory. */
lk_vec random_acl(generator *g, lk_acl entries[4], uint32_t open_permille);

#endif
