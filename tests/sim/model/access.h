/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_ACCESS_H
#define LK_SIM_MODEL_ACCESS_H

#include "jute/record.h"

/**
 * Who somebody is, and who may do what with a node. Both stay as they are once
 * they are made, and last as long as the ensemble.
 */
typedef struct sim_ids {
  size_t count;
  lk_acl *entries; /**< scheme and id of each; perms say nothing */
} sim_ids;

typedef struct sim_access {
  int32_t world_perms; /**< what everybody may do */
  size_t count;
  lk_acl *entries;
} sim_access;

/** Everybody may do everything. */
extern const sim_access sim_access_open;

/** Who has said nothing yet is known by its address. */
const sim_ids *sim_ids_new(lk_arena *memory);
/** `ids` and what an auth packet says; NULL: it is refused. */
const sim_ids *sim_ids_add(const sim_ids *ids, lk_bytes scheme, lk_bytes auth,
                           lk_arena *memory);
/** Its part that may be told to others. */
lk_bytes sim_id_without_digest(const lk_acl *id);

/** A list as somebody asks for it; NULL: INVALIDACL. */
const sim_access *sim_access_make(lk_vec entries, const sim_ids *ids,
                                  lk_arena *memory);
/** The same for everybody alone. */
const sim_access *sim_access_for_world(int32_t perms, lk_arena *memory);
/** Whether one of the bits `perms` is granted; `ids` NULL: may do anything. */
bool sim_access_allows(const sim_access *a, const sim_ids *ids, int32_t perms);

#endif
