/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_READS_H
#define LK_SIM_MODEL_READS_H

#include "sim/model/model.h"

/** A request that reads. */
typedef struct sim_read_request {
  sim_conn *c;
  int32_t xid;
  int32_t op;
  lk_bytes path;
  const sim_node *node; /**< NULL: there is none */
  bool hide_digests;    /**< getACL: the client may not see digests */
} sim_read_request;

/** A reply without a body. */
void sim_reply_without_body(const sim_read_request *r, int err);
bool sim_has_nul(lk_bytes b);
/** The node on the server of `c`, or NULL. */
const sim_node *sim_node_at(const sim_conn *c, lk_bytes path);
/** The path that a watch is set on. "" names the root, but its watches are not
    those of "/". */
sim_path *sim_watched_path(const sim_conn *c, lk_bytes path);

/* watch_requests.c: setWatches and setWatches2, addWatch, removeWatches and
 * checkWatches. */
void sim_set_watches(sim_read_request *r, lk_reader *in);
void sim_add_watch(sim_read_request *r, lk_reader *in);
void sim_remove_watches(sim_read_request *r, lk_reader *in);

#endif
