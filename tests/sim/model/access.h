/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_ACCESS_H
#define LK_SIM_MODEL_ACCESS_H

#include "jute/record.h"

/**
 * The identities of a client, and the access list of a node. Neither changes
 * after it is made: a change makes another. Both live as long as the ensemble.
 */
typedef struct sim_ids {
  size_t count;
  lk_acl *entries; /**< scheme and id of each identity; perms are unused */
} sim_ids;

typedef struct sim_access {
  int32_t world_perms; /**< permissions of world:anyone */
  size_t count;
  lk_acl *entries;
} sim_access;

/** The access list by which world:anyone has all permissions. */
extern const sim_access sim_access_open;

/** The identity of a new connection: its address, 127.0.0.1. */
const sim_ids *sim_ids_new(lk_arena *memory);
/** `ids` and the identity that an auth request adds. NULL: the request is
    refused. */
const sim_ids *sim_ids_add(const sim_ids *ids, lk_bytes scheme, lk_bytes auth,
                           lk_arena *memory);
/** The id as whoAmI and getACL show it: without the digest of the password. */
lk_bytes sim_id_without_digest(const lk_acl *id);

/** The access list that a create or setACL of a client with `ids` requests.
    NULL: the list is invalid (INVALIDACL). */
const sim_access *sim_access_make(lk_vec entries, const sim_ids *ids,
                                  lk_arena *memory);
/** An access list with one entry, world:anyone. */
const sim_access *sim_access_for_world(int32_t perms, lk_arena *memory);
/** Whether a client with `ids` has one of the permissions in the set `perms`.
    `ids` NULL: the ensemble itself, which has all permissions. */
bool sim_access_allows(const sim_access *a, const sim_ids *ids, int32_t perms);

#endif
