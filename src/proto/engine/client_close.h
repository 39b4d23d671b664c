/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CLIENT_CLOSE_H
#define LK_PROTO_ENGINE_CLIENT_CLOSE_H

/**
 * @file
 * lk_client_close(): closeSession behind all other requests, and the time that
 * it may take.
 */

#include <latchkey/client.h>

typedef struct lk_engine_close {
  bool begun;
  bool sent;      /**< closeSession is the last of the requests sent */
  bool lost;      /**< it was sent on a connection that broke */
  int64_t end_ms; /**< when it is given up */
  lk_close_cb done;
  void *arg;
} lk_engine_close;

/** Queue closeSession behind all others. @return false: no memory. */
bool lk__close_send(lk_client *c);
/** The result of closing if no reply comes: `unanswered` if closeSession left
    on this connection, else what is known of it. */
int lk__close_outcome(const lk_client *c, int unanswered);

/** When the close is given up; LK_NEVER: none has begun. */
int64_t lk__close_deadline(const lk_client *c);
/** End the client if a close has nothing to wait for, or its time is over. */
void lk__close_run(lk_client *c);

#endif
