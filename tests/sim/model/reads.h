/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_READS_H
#define LK_SIM_MODEL_READS_H

#include "sim/model/model.h"

/** A read request while it is answered. */
typedef struct sim_read_request {
  sim_conn *c;
  int32_t xid;
  int32_t op;
  lk_bytes path;        /**< as the client sent it; `at` NULL: it is missing */
  const sim_node *node; /**< the node at `path`; NULL: there is none */
  bool hide_digests;    /**< getACL: the client may not see digests */
} sim_read_request;

/** A reply without a body. */
void sim_reply_without_body(const sim_read_request *r, int err);
bool sim_has_nul(lk_bytes b);
/** The node at a client's path, on the server of its connection; NULL: there is
    none. */
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
