/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_BIO_H
#define LK_NET_TLS_BIO_H

#include "net/transport_error.h"

#include <openssl/bio.h>

/** The TCP connection as OpenSSL reads and writes it. OpenSSL's own BIO of a
    socket may raise SIGPIPE. */
typedef struct lk_tls_bio {
  lk_transport *tcp;
  BIO_METHOD *method;  /**< made by the first connection, and kept */
  unsigned reads_left; /**< of the socket, in this step */
  bool drained;  /**< a read of this step found less than it had room for */
  bool received; /**< bytes have come from the server */
  bool ended;    /**< the server has closed TCP */
  int number;    /**< errno of the socket; 0: none */
} lk_tls_bio;

/** Begin a connection. `tcp` belongs to it. */
void lk__tls_bio_reset(lk_tls_bio *b, lk_transport *tcp);
/** NULL: no memory. The BIO refers to `b`. */
BIO *lk__tls_bio_new(lk_tls_bio *b);
/** Begin a step, in which the socket is read at most `reads` times. */
void lk__tls_bio_begin_step(lk_tls_bio *b, unsigned reads);
void lk__tls_bio_free(lk_tls_bio *b);

#endif
