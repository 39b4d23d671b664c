/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_BIO_H
#define LK_NET_TLS_BIO_H

#include "net/transport_error.h"

#include <openssl/bio.h>

/** Lets OpenSSL read and write the TCP connection. OpenSSL's own BIO for
   sockets is not used, because it may raise SIGPIPE. */
typedef struct lk_tls_bio {
  lk_transport *tcp;
  BIO_METHOD *method;  /**< made for the first connection, and kept */
  unsigned reads_left; /**< reads of the socket that this step may still do */
  bool drained;        /**< this step has emptied the socket */
  bool received;       /**< bytes have come from the server */
  bool ended;          /**< the server has closed TCP */
  int sys_errno;       /**< the error of the socket; 0: none */
} lk_tls_bio;

/** Begin a connection, which uses `tcp`. */
void lk__tls_bio_reset(lk_tls_bio *b, lk_transport *tcp);
/** Make a BIO, which uses `b` until the BIO is freed. NULL: no memory. */
BIO *lk__tls_bio_new(lk_tls_bio *b);
/** Begin a step, in which the socket is read at most `reads` times. */
void lk__tls_bio_begin_step(lk_tls_bio *b, unsigned reads);
void lk__tls_bio_free(lk_tls_bio *b);

#endif
