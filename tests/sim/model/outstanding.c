/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"

#include <stdlib.h>

/**
 * @file
 * What will be, once all that is proposed is applied: records of the nodes
 * concerned, the newest of which counts, and the leader's tree for all others.
 */

static sim_change_record *newest(const sim_outstanding *h, const sim_path *p)
{
  for (size_t i = h->count; i-- > h->first;) {
    if (h->futures[i].path == p)
      return &h->futures[i];
  }
  return NULL;
}

bool sim_outstanding_look(const sim_server *s, const sim_path *p,
                          sim_change_record *out)
{
  const sim_change_record *f = p == NULL ? NULL : newest(&s->head, p);

  if (f != NULL) {
    *out = *f;
    return f->exists;
  }
  const sim_node *n = sim_tree_node(&s->tree, p);

  if (n == NULL)
    return false;
  *out = (sim_change_record){.path = p,
                             .exists = true,
                             .container = n->container,
                             .access = n->access,
                             .version = n->stat.version,
                             .aversion = n->stat.aversion,
                             .counter = n->counter,
                             .children = n->stat.num_children,
                             .owner = n->stat.ephemeral_owner};
  return true;
}

void sim_outstanding_add(sim_outstanding *h, const sim_change_record *f,
                         int64_t zxid)
{
  if (h->first == h->count)
    h->first = h->count = 0;
  if (h->count == h->cap) {
    h->cap = h->cap == 0 ? 32 : h->cap * 2;
    h->futures = realloc(h->futures, h->cap * sizeof *h->futures);
  }
  h->futures[h->count] = *f;
  h->futures[h->count++].zxid = zxid;
}

void sim_outstanding_forget(sim_outstanding *h, int64_t zxid)
{
  while (h->first < h->count && h->futures[h->first].zxid <= zxid)
    h->first++;
}

void sim_outstanding_set_counter(sim_outstanding *h, const sim_path *p,
                                 int32_t counter)
{
  for (size_t i = h->first; i < h->count; i++) {
    if (h->futures[i].path == p)
      h->futures[i].counter = counter;
  }
}
