/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CLIENT_DEADLINES_H
#define LK_PROTO_ENGINE_CLIENT_DEADLINES_H

/**
 * @file
 * The deadlines of all parts of a client together. Each part has functions for
 * its own deadline and for the work that is due then; these call them all.
 */

#include <latchkey/client.h>

/** Do everything that is due at the client's clock. */
void lk__client_run_due(lk_client *c);
/** Leave the server if it does not reply. Only ticks call this: another input
    may bring the bytes of a reply. */
void lk__client_leave_silent_server(lk_client *c);
/** When one of the two next has something to do; LK_NEVER: nothing is
    due until another input comes. */
int64_t lk__client_next_deadline(const lk_client *c);

#endif
