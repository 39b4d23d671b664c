/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCKS_PERMIT_LIMIT_H
#define LK_RECIPES_LOCKS_PERMIT_LIMIT_H

/**
 * @file
 * The number of permits, if a node holds it: reading that node, watching it,
 * and creating it.
 */

#include "recipes/locks/semaphore.h"

/** Read the limit and watch it. No effect if no node holds the limit or the
    watch is set already. Returns 0, or why the request was refused. */
int lk__permit_limit_read(lk_semaphore_acquisition *s);
/** Stop the timer and cancel the watch. */
void lk__permit_limit_forget(lk_semaphore_acquisition *s);
/** The callback of `limit.pause`; `arg` is the lk_semaphore_acquisition. */
void lk__permit_limit_on_timer(lk_client *c, void *arg);

#endif
