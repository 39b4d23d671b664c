/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_SUBSCRIPTION_REQUESTS_H
#define LK_RECIPES_NODES_SUBSCRIPTION_REQUESTS_H

#include "recipes/nodes/subscription_report.h"

/**
 * @file
 * The requests of a subscription, its watch, and its pauses.
 */

/** Start the timer, which fires `in_ms` from now. */
void lk__subscription_start_timer(lk_subscription *s, int64_t in_ms);
/** Send a read of the node, with a watch. Returns 0, or why the request was
    refused. */
int lk__subscription_request_node(lk_subscription *s);
/** Cancel the present watch and send a read with a new one. A refused request
    is retried after a pause. */
void lk__subscription_read(lk_subscription *s);
/** Send an exists, which shows whether the watch is lost. */
void lk__subscription_check(lk_subscription *s);
/** Cancel the watch, if there is one, in the client and at the server. */
void lk__subscription_cancel_watch(lk_subscription *s);
/** Cancel the watch, if there is one, in the client only. */
void lk__subscription_forget_watch(lk_subscription *s);

#endif
