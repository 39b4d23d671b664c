/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_READS_H
#define LK_SIM_MODEL_READS_H

#include "sim/model/model.h"

/** Who asks, and for what. */
typedef struct sim_reading {
  sim_conn *c;
  int32_t xid;
  int32_t op;
  lk_bytes path;
  const sim_node *node; /**< NULL: there is none */
  bool secret;          /**< getACL: not all may be shown */
} sim_reading;

/** An answer without a body. */
void sim_refuse(const sim_reading *r, int err);
bool sim_has_nul(lk_bytes b);
/** The node as the server at hand has it, or NULL. */
const sim_node *sim_seen(const sim_conn *c, lk_bytes path);
/** What is watched: "" names the root, but its watches are others'. */
sim_path *sim_watched(const sim_conn *c, lk_bytes path);

/* watching.c: setWatches and setWatches2, addWatch, removeWatches and
   checkWatches. */
void sim_set_watches(sim_reading *r, lk_reader *in);
void sim_add_watch(sim_reading *r, lk_reader *in);
void sim_remove_watches(sim_reading *r, lk_reader *in);

#endif
