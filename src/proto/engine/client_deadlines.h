/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CLIENT_DEADLINES_H
#define LK_PROTO_ENGINE_CLIENT_DEADLINES_H

/**
 * @file
 * What a client does when time has passed. Each part has its own deadline, in
 * the file that works on it; here they are asked in turn.
 */

#include <latchkey/client.h>

/** Do everything that is due at the client's clock. */
void lk__client_run_due(lk_client *c);
int64_t lk__client_next_deadline(const lk_client *c);

#endif
