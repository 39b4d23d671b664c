/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SERVER_MOVE_H
#define LK_PROTO_ENGINE_SERVER_MOVE_H

/**
 * @file
 * Moving to another server while connected: to one of a new list, or from a
 * read-only server to one with a quorum. The client waits for a moment without
 * outstanding replies. After a sixth of the session timeout it stops sending,
 * and after a third it leaves in any case.
 */

#include <latchkey/client.h>

typedef struct lk_engine_move {
  bool wanted; /**< the server in turn is the one to move to */
  int64_t since_ms;
  bool quorum_only; /**< for one round, read-only servers are not accepted */
} lk_engine_move;

/** Move to the server in turn when no reply is outstanding. */
void lk__move_begin(lk_client *c);
/** When lk__move_run() has something to do; LK_NEVER: no move is wanted. */
int64_t lk__move_deadline(const lk_client *c);
/** Stop sending, or leave the server, if that is due at the client's clock. */
void lk__move_run(lk_client *c);

#endif
