/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"

#include <stdlib.h>

/**
 * @file The tree as it will be when all proposals are applied. Each proposal
 * adds a record for each node that it changes. The newest record of a node
 * tells how it will be; a node without a record is as in the leader's tree.
 */

static sim_change_record *newest_record(const sim_outstanding *o,
                                        const sim_path *p)
{
  for (size_t i = o->count; i-- > o->first;) {
    if (o->records[i].path == p)
      return &o->records[i];
  }
  return NULL;
}

bool sim_outstanding_node(const sim_server *s, const sim_path *p,
                          sim_change_record *out)
{
  if (p == NULL)
    return false; /* no request has named the path */
  const sim_change_record *record = newest_record(&s->outstanding, p);

  if (record != NULL) {
    *out = *record;
    return record->exists;
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

void sim_outstanding_add(sim_outstanding *o, const sim_change_record *record,
                         int64_t zxid)
{
  if (o->first == o->count) /* all records were forgotten */
    o->first = o->count = 0;
  if (o->count == o->cap) {
    o->cap = o->cap == 0 ? 32 : o->cap * 2;
    o->records = realloc(o->records, o->cap * sizeof *o->records);
  }
  o->records[o->count] = *record;
  o->records[o->count++].zxid = zxid;
}

void sim_outstanding_forget(sim_outstanding *o, int64_t zxid)
{
  while (o->first < o->count && o->records[o->first].zxid <= zxid)
    o->first++;
}

void sim_outstanding_set_counter(sim_outstanding *o, const sim_path *p,
                                 int32_t counter)
{
  for (size_t i = o->first; i < o->count; i++) {
    if (o->records[i].path == p)
      o->records[i].counter = counter;
  }
}
