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
  lk_node_identity identity;
  /** By lk_multilock_side; NULL: from the prefix, see lk_plain_names. */
  const lk_role *roles[LK_MULTILOCK_WRITE + 1];
  const lk_role *permit; /**< NULL: the layout has no semaphore */
  lk_node_identity permit_identity;
  bool containers; /**< its directories are containers */
  bool downgrades; /**< other clients expect the read node of a writer that
                      downgrades, see rwlock/downgrade.c */
} lk_layout_rules;

/** NULL: there is no such layout. */
const lk_layout_rules *lk__layout_rules(lk_layout layout);

/** The role of a mutex with plain names. It has pointers to itself: do not move
    it. */
typedef struct lk_plain_names {
  lk_node_kind kind;
  const lk_node_kind *kinds[1];
  lk_name_format format;
  lk_role role;
} lk_plain_names;

/** Whether `prefix` is valid; NULL is the default. */
bool lk__plain_prefix_is_valid(const char *prefix);
/** `prefix` is borrowed. */
void lk__plain_names_init(lk_plain_names *p, const char *prefix);

#endif
