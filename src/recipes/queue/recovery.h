/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_RECOVERY_H
#define LK_RECIPES_QUEUE_RECOVERY_H

/**
 * @file
 * Recovering the own node after the reply to its create was lost, or after a
 * connection broke where its name is not unique. RECOVERING and CLEANING_UP do
 * it alike, and differ in what they do with the result.
 */

#include "recipes/queue/own_node.h"
#include "recipes/queue/state_machine.h"

/** Nodes that may be the own one, where names do not tell. */
typedef struct lk_candidates {
  int64_t *suffix; /**< ascending; read from the end */
  size_t count;    /**< not yet read */
  size_t next;     /**< the next whose reply comes */
  bool found;
  bool enough;   /**< those left are older than the create */
  bool in_order; /**< the numbers are in the order of creation */
  int err;
} lk_candidates;

/** The result of a recovery. */
typedef enum lk_recovered {
  LK_RECOVERED_ABSENT,     /**< the create was not and will not be executed */
  LK_RECOVERED_FOUND,      /**< the own node exists, and its path is known */
  LK_RECOVERED_CANDIDATES, /**< nodes that may be the own one must be read */
  LK_RECOVERED_FAILED      /**< a request completed with `*err` */
} lk_recovered;

/** Request a transaction, and behind it what shows whether the own node exists.
    0, or why a request was refused. */
int lk__recovery_begin(lk_contender *ct);
/** RECOVERING: begin the state, in any machine. */
int lk__contender_enter_recovering(lk_contender *ct, lk_contender_state from);
/** RECOVERING and CLEANING_UP: the list completed with `err`. */
void lk__recovery_take_list(lk_contender *ct, int err, const lk_bytes *names,
                            size_t count);
/** CLEANING_UP: request the ephemeral nodes of this session, instead of a list
    that is larger than the client accepts. */
int lk__recovery_list_session(lk_contender *ct);

/** Note which of the listed names may be the own node. 0, or
    LK_ERR_NO_MEMORY. */
int lk__candidates_take(lk_contender *ct, const lk_bytes *names, size_t count);
/** Read the next candidates, or end the recovery. 0, or why a request was
    refused. */
int lk__candidates_read(lk_contender *ct);
void lk__candidates_free(lk_contender *ct);

#endif
