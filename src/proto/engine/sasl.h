/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SASL_H
#define LK_PROTO_ENGINE_SASL_H

#include <latchkey/client.h>

#include "proto/wire/handshake_frames.h"

/** Why an exchange failed. */
typedef enum lk_sasl_step {
  LK_SASL_START,      /**< password or mechanism */
  LK_SASL_CHALLENGE,  /**< what the server sent makes no sense */
  LK_SASL_REFUSED,    /**< the server refuses what the client sent */
  LK_SASL_SERVER,     /**< the server is not authentic */
  LK_SASL_UNSUPPORTED /**< the server does not support SASL */
} lk_sasl_step;

/** The SASL of a client: its identity, and the exchange under way. */
typedef struct lk_sasl {
  lk_sasl_mechanism mechanism;
  void *mechanism_arg;
  const char *user; /**< or NULL; all texts are in `texts` */
  const char *service;
  const char *host;
  int (*password)(char *out, size_t size, void *arg); /**< or NULL */
  void *password_arg;
  char *kept; /**< a password that was read from a file; LK_SASL_PASSWORD_MAX
                   bytes, or NULL */
  size_t kept_len;

  /* the exchange; nothing of it outlives its connection */
  lk_handshake welcome; /**< what the server said to the connect request */
  bool running;         /**< `state` is the mechanism's, which has to end it */
  void *state;
  bool satisfied; /**< the mechanism is done; the server's last word is due */
  unsigned replies;
  int32_t xid;                       /**< of the token under way */
  char secret[LK_SASL_PASSWORD_MAX]; /**< of this exchange */

  char texts[];
} lk_sasl;

/**
 * Make the SASL of `c` as `config` says; a password is read.
 * @return 0, or an error of lk_client_new(): nothing is left of it.
 */
int lk__sasl_new(lk_client *c, const lk_sasl_config *config);
/** Free it, if there is one; no exchange is under way. */
void lk__sasl_free(lk_client *c);

/** The connect request has its reply: begin the exchange. */
void lk__sasl_begin(lk_client *c, const lk_handshake *welcome);
/** A frame that arrived in LK_PHASE_SASL. */
void lk__sasl_take(lk_client *c, lk_bytes frame);
/** The exchange under way is over, if there is one. */
void lk__sasl_drop(lk_client *c);

#endif
