/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SASL_H
#define LK_PROTO_ENGINE_SASL_H

/**
 * @file
 * Authentication of the client by SASL, between the handshake of a connection
 * and its first requests.
 */

#include <latchkey/client.h>

#include "proto/wire/handshake_frames.h"

/** The SASL of a client: its identity, and the exchange under way. */
typedef struct lk_sasl {
  lk_sasl_mechanism mechanism;
  void *mechanism_arg;
  const char *user; /**< NULL: none was given; stored in `texts` as the next
                         two */
  const char *service;
  const char *host;
  /** The program's function that gets the password; NULL: none. */
  int (*password)(char *out, size_t size, void *arg);
  void *password_arg;
  char *stored;      /**< the password that was read from a file or descriptor,
                          in LK_SASL_PASSWORD_MAX bytes; NULL: none */
  size_t stored_len; /**< bytes of that password */

  /* The exchange, which ends with its connection: */
  lk_handshake welcome; /**< the reply to the connect request */
  bool must_end;    /**< the mechanism has started; its `end` must be called */
  void *state;      /**< the mechanism's state of this exchange */
  bool satisfied;   /**< the mechanism has succeeded, and the server's last
                         reply is outstanding */
  bool sent_token;  /**< the client has sent a token that is not empty */
  unsigned replies; /**< replies with a token that the server has sent */
  int32_t xid;      /**< of the request with the last token */
  char secret[LK_SASL_PASSWORD_MAX]; /**< the password */

  char texts[]; /**< memory of `user`, `service` and `host` */
} lk_sasl;

/**
 * Create c->sasl from `config`, and read the password if it is in a file.
 * @return 0; or an error of lk_client_new(), then c->sasl is NULL.
 */
int lk__sasl_new(lk_client *c, const lk_sasl_config *config);
/** Free c->sasl, unless it is NULL. No exchange may be under way. */
void lk__sasl_free(lk_client *c);

/** Begin the exchange: the connect request has the reply `welcome`. */
void lk__sasl_begin(lk_client *c, const lk_handshake *welcome);
/** Process a frame that arrived in LK_PHASE_SASL. */
void lk__sasl_take(lk_client *c, lk_bytes frame);
/** End the exchange, if one is under way, and wipe its password. */
void lk__sasl_drop(lk_client *c);

#endif
