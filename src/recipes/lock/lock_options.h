/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_LOCK_OPTIONS_H
#define LK_RECIPES_LOCK_LOCK_OPTIONS_H

#include "recipes/common/sized.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/layouts.h"

#include <latchkey/lock.h>

/** Path and options of a lock, copied, as its attempts need them. */
typedef struct lk_options {
  lk_contend_config what;
  const lk_layout_rules *rules;
  lk_plain plain;
  char *path;
  char *data;
  char *prefix;
  lk_acls *acl;
  lk_acls *parent_acl;
} lk_options;

/** Copy a caller's config; NULL: all is as usual. LK_ERR_BAD_ARGUMENT: the log
    says why. */
int lk__options_take(const lk_keeper *k, lk_lock_config *out,
                     const lk_lock_config *config);
/** The same for what a kind of locks has besides. */
int lk__options_take_more(const lk_keeper *k, const lk_sized *what, void *out,
                          const void *from);
/** Whether a lock can be made of these: 0, LK_ERR_BAD_ARGUMENT,
    LK_ERR_BAD_PATH. */
int lk__options_check(const char *path, const lk_lock_config *config);
/** Whether a node with these data is that of a holder who says so. */
bool lk__is_announcement(lk_bytes data);
/** Copy them. false: no memory; free what there is. */
bool lk__options_init(lk_options *o, const lk_mem *mem, const char *path,
                      const lk_lock_config *config, lk_multilock_side side);
/** What another side is to the queue. */
const lk_role *lk__options_role(const lk_options *o, lk_multilock_side side);
void lk__options_free(lk_options *o, const lk_mem *mem);

#endif
