/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_EXCLUSION_H
#define LK_RECIPES_QUEUE_EXCLUSION_H

/**
 * @file
 * Which contenders exclude each other: the roles of readers, writers and
 * permits.
 */

#include "recipes/queue/names.h"

/** The role of a contender in its queue: which others it excludes, and which
    exclude it. */
typedef struct lk_role {
  const lk_node_kind *kind;     /**< kind of this contender's node */
  const lk_name_format *format; /**< names of all contenders in the queue */
  bool exclusive; /**< no other contender may hold at the same time */
  /** Whether an earlier contender, with a node of kind `earlier`, excludes this
      one. NULL for a permit. */
  bool (*excludes)(const lk_node_kind *earlier);
  bool is_permit; /**< excluded by the number of permit nodes alone */
} lk_role;

extern const lk_role lk__role_mutex;
/** The sides of Curator's read-write lock. */
extern const lk_role lk__role_read;
extern const lk_role lk__role_write;
/** A candidate of Curator's leader latch. */
extern const lk_role lk__role_latch;
/** A permit of Curator's semaphore. */
extern const lk_role lk__role_permit;
/** kazoo's locks. */
extern const lk_role lk__role_kazoo_read;
extern const lk_role lk__role_kazoo_write;
/** A permit of kazoo's semaphore. */
extern const lk_role lk__role_kazoo_permit;
/** The shared lock of plain names. */
extern const lk_role lk__role_plain_read;
extern const lk_role lk__role_plain_write;
/** lk_role.excludes of writers, for roles that are made at run time. */
bool lk__excludes_writer(const lk_node_kind *earlier);

#endif
