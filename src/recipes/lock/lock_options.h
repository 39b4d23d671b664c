/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_LOCK_OPTIONS_H
#define LK_RECIPES_LOCK_LOCK_OPTIONS_H

/**
 * @file
 * The options of a lock, checked and copied.
 */

#include "recipes/call.h"
#include "recipes/names.h"
#include "recipes/queue/contender.h"

#include <latchkey/lock.h>

/** The options of a lock in the form that its acquisitions need. `contender`
    points to the copies in the other members. */
typedef struct lk_lock_options {
  lk_contender_config contender;
  const lk_layout_rules *rules;
  lk_plain_names plain; /**< for a layout with a prefix */
  char *path;
  char *data;          /**< with LK_ANNOUNCEMENT behind it */
  char *prefix;        /**< NULL: none, or the default */
  lk_acls *acl;        /**< NULL: the default */
  lk_acls *parent_acl; /**< NULL: the default */
} lk_lock_options;

/** Copy a caller's config; NULL: the defaults. 0, or LK_ERR_BAD_ARGUMENT, whose
    reason is logged. */
int lk__lock_config_copy(const lk_client *c, lk_lock_config *out,
                         const lk_lock_config *config);
/** Check path and options: 0, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_PATH. */
int lk__lock_options_check(const char *path, const lk_lock_config *config);
/** Copy path and options to `o`, which is zeroed. false: no memory; the caller
    must then call lk__lock_options_free() for the copies made so far. */
bool lk__lock_options_init(lk_lock_options *o, const lk_mem *mem,
                           const char *path, const lk_lock_config *config,
                           lk_multilock_side side);
/** The role that contenders of `side` have in the queue. */
const lk_role *lk__lock_options_role(const lk_lock_options *o,
                                     lk_multilock_side side);
void lk__lock_options_free(lk_lock_options *o, const lk_mem *mem);

#endif
