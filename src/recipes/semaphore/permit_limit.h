/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_PERMIT_LIMIT_H
#define LK_RECIPES_SEMAPHORE_PERMIT_LIMIT_H

/**
 * @file
 * The node that holds the number of permits.
 */

#include "recipes/semaphore/semaphore_state.h"

/** Read the limit, if a node holds it: 0, or why the request was refused. */
int lk__permit_limit_read(lk_semaphore_acquisition *s);
/** Stop the timer and cancel the watch. */
void lk__permit_limit_forget(lk_semaphore_acquisition *s);
/** `limit.pause` has fired. */
void lk__permit_limit_on_timer(lk_client *c, void *arg);

#endif
