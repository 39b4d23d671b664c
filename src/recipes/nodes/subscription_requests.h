/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_SUBSCRIPTION_REQUESTS_H
#define LK_RECIPES_NODES_SUBSCRIPTION_REQUESTS_H

#include "recipes/nodes/subscription_report.h"

/**
 * @file
 * The requests of a subscription, its watch, and its pauses.
 */

void lk__subscription_start_timer(lk_subscription *s, int64_t ms);
/** Read the node with a watch. @return why nothing was sent, or 0. */
int lk__subscription_request_state(lk_subscription *s);
/** The same in place of a watch that stands; a failure is retried. */
void lk__subscription_read(lk_subscription *s);
/** See by exists whether the watch is lost. */
void lk__subscription_check(lk_subscription *s);
void lk__subscription_drop_watch(lk_subscription *s, bool on_server);

#endif
