/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MULTILOCK_TRANSACTION_H
#define LK_RECIPES_MULTILOCK_TRANSACTION_H

/**
 * @file
 * The transaction that creates the missing nodes of a multi-lock.
 */

#include "recipes/multilock/multilock_nodes.h"

/** Send a transaction that creates all missing nodes. No effect without a
    connection, while a transaction is under way or while `orphans` > 0. */
void lk__multilock_begin_transaction(lk_multilock_acquisition *m);

#endif
