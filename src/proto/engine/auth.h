/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_AUTH_H
#define LK_PROTO_ENGINE_AUTH_H

/**
 * @file
 * Identities that lk_add_auth() gave. They are sent first on each connection.
 */

#include <latchkey/client.h>

typedef struct lk_auth {
  struct lk_auth *next;
  lk_done_cb done; /**< NULL once it was called */
  void *arg;
  size_t len;            /**< of `frame` */
  unsigned char frame[]; /**< the whole packet, wiped when freed */
} lk_auth;

typedef struct lk_engine_auth {
  lk_auth *first;
  lk_auth *next_reply; /**< the reply to this one comes next; NULL: none */
} lk_engine_auth;

/** Append all identities to the output of a new connection.
    @return false: no memory. */
bool lk__auth_send_all(lk_client *c);
/** A server accepted the oldest identity that has no reply yet.
    @return false: there is none. */
bool lk__auth_accept_next(lk_client *c);
/** Complete with `err` every identity that has no reply yet. */
void lk__auth_fail_all(lk_client *c, int err);
/** Wipe and free all identities. */
void lk__auth_free_all(lk_client *c);

#endif
