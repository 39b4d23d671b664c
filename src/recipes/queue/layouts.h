/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_LAYOUTS_H
#define LK_RECIPES_QUEUE_LAYOUTS_H

/**
 * @file
 * Which names, roles and directories each layout has.
 */

#include "recipes/queue/exclusion.h"

#include <latchkey/multilock.h>

/** The rules of a layout. */
typedef struct lk_layout_rules {
  lk_node_identity identity; /**< of the nodes of locks */
  /** The role of each lk_multilock_side. NULL: made of the prefix, if the
      layout has one; else the layout has no such locks. */
  const lk_role *roles[LK_MULTILOCK_WRITE + 1];
  bool has_prefix; /**< the names of mutexes have a prefix, see
                        lk_plain_names */
  const lk_role *permit; /**< NULL: the layout has no semaphore */
  lk_node_identity permit_identity;
  bool containers; /**< the directories of locks are containers */
  bool downgrades; /**< other clients expect the read node of a writer that
                      downgrades, see rwlock/downgrade.c */
} lk_layout_rules;

/** The rules of `layout`; NULL: there is no such layout. */
const lk_layout_rules *lk__layout_rules(lk_layout layout);

/** Whether the layout has locks of this kind. */
bool lk__layout_has_side(const lk_layout_rules *rules, lk_multilock_side side);

/** The role of a mutex with plain names, and what the role points to. The
    struct must not be moved, since it has pointers to itself. */
typedef struct lk_plain_names {
  lk_node_kind kind;
  const lk_node_kind *kinds[1];
  lk_name_format format;
  lk_role role;
} lk_plain_names;

/** Whether `prefix` is valid; NULL, for the default prefix, is. */
bool lk__plain_prefix_is_valid(const char *prefix);
/** `prefix` must exist as long as `p`; NULL: the default, "seq-". */
void lk__plain_names_init(lk_plain_names *p, const char *prefix);

#endif
