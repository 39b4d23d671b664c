/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_TIMERS_H
#define LK_PROTO_ENGINE_TIMERS_H

/**
 * @file
 * lk_timer: timers of recipes and programs on a client's clock.
 */

#include <latchkey/client.h>

/** Invoke the callbacks of the timers that are due at the client's clock. */
void lk__timers_run(lk_client *c);
/** When the next timer is due; LK_NEVER: there is none. */
int64_t lk__timers_deadline(const lk_client *c);

#endif
