/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_LOCK_OPTIONS_H
#define LK_RECIPES_LOCK_LOCK_OPTIONS_H

/**
 * @file
 * The options of a lock, checked and copied.
 */

#include "recipes/common/config_copy.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/layouts.h"

#include <latchkey/lock.h>

/** Path and options of a lock, copied, as its acquisitions need them. */
typedef struct lk_lock_options {
  lk_contender_config contender;
  const lk_layout_rules *rules;
  lk_plain_names plain;
  char *path;
  char *data;
  char *prefix;
  lk_acls *acl;
  lk_acls *parent_acl;
} lk_lock_options;

/** Copy a caller's config; NULL: all is as usual. LK_ERR_BAD_ARGUMENT: the log
    says why. */
int lk__lock_config_copy(const lk_client *c, lk_lock_config *out,
                         const lk_lock_config *config);
/** Check path and options: 0, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_PATH. */
int lk__lock_options_check(const char *path, const lk_lock_config *config);
/** Copy them. false: no memory; free what there is. */
bool lk__lock_options_init(lk_lock_options *o, const lk_mem *mem,
                           const char *path, const lk_lock_config *config,
                           lk_multilock_side side);
/** The role of a side in the queue. */
const lk_role *lk__lock_options_role(const lk_lock_options *o,
                                     lk_multilock_side side);
void lk__lock_options_free(lk_lock_options *o, const lk_mem *mem);

#endif
