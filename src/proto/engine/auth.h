/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_AUTH_H
#define LK_PROTO_ENGINE_AUTH_H

/**
 * @file
 * The identities that lk_add_auth() adds to a client. They are sent first on
 * each connection.
 */

#include <latchkey/client.h>

typedef struct lk_auth {
  struct lk_auth *next;
  lk_done_cb done; /**< NULL: there is none, or it was called */
  void *arg;
  size_t len;            /**< bytes of `frame` */
  unsigned char frame[]; /**< the whole frame of the request, which is wiped
                              when it is freed */
} lk_auth;

typedef struct lk_engine_auth {
  lk_auth *first;      /**< the oldest identity, or NULL */
  lk_auth *next_reply; /**< the oldest identity that was sent on this connection
                            and has no reply; NULL: none */
} lk_engine_auth;

/** Append all identities to the output of a new connection.
    @return false: no memory. */
bool lk__auth_send_all(lk_client *c);
/** The server has accepted auth.next_reply, which is not NULL. */
void lk__auth_accept_next(lk_client *c);
/** Complete with `err` every lk_add_auth() that has not completed. */
void lk__auth_fail_all(lk_client *c, int err);
/** Wipe and free all identities. */
void lk__auth_free_all(lk_client *c);

#endif
