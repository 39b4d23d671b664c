/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SERVER_MOVE_H
#define LK_PROTO_ENGINE_SERVER_MOVE_H

/**
 * @file
 * Moving to another server while connected: to a server of a new list, or from
 * a read-only server to one with a quorum. The client leaves when no reply is
 * outstanding. If that takes longer than a sixth of the session timeout, it
 * stops sending. After a third of the session timeout it leaves in any case.
 */

#include <latchkey/client.h>

typedef struct lk_engine_move {
  bool wanted;      /**< move to the server in turn */
  int64_t since_ms; /**< when the move was first wanted */
  bool quorum_only; /**< do not accept read-only servers in this round */
} lk_engine_move;

/** Begin a move to the server in turn. */
void lk__move_begin(lk_client *c);
/** When lk__move_run() has something to do; LK_NEVER: no move is wanted. */
int64_t lk__move_deadline(const lk_client *c);
/** Stop sending if that is due at the client's clock.
    @return whether the client must leave the server now. */
bool lk__move_run(lk_client *c);
/** Why the client leaves the server: a line for the log. */
const char *lk__move_text(const lk_client *c);

#endif
