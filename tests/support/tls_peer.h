/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_TLS_PEER_H
#define LK_SUPPORT_TLS_PEER_H

#include "net/address.h"

#include <openssl/ssl.h>

/**
 * @file
 * Certificates made in memory, and a TLS server in the thread of the test,
 * which advances by one step with each call.
 */

/** A certificate and its key. */
typedef struct tls_identity {
  X509 *certificate;
  EVP_PKEY *key;
} tls_identity;

/** The contents of a certificate. */
typedef struct tls_wish {
  const char *names; /**< subjectAltName as "DNS:a, IP:1.2.3.4"; NULL: none */
  int from_days;     /**< valid from now and so many days */
  int days;          /**< for so many; 0: 30 */
  long serial;       /**< 0: 1 */
  bool ca;
} tls_wish;

/** `issuer` NULL: signed by itself. */
tls_identity tls_issue(const tls_identity *issuer, const char *subject,
                       const tls_wish *wish);
void tls_identity_free(tls_identity *i);

/** PEM as a text, to be freed. `password` NULL: the key is not encrypted. */
char *tls_pem_of_certificate(const tls_identity *i);
char *tls_pem_of_key(const tls_identity *i, const char *password);
/** A list of `count` serial numbers that `ca` has revoked, up to date or not.
 */
char *tls_pem_of_crl(const tls_identity *ca, const long *serials, size_t count,
                     bool outdated);

/** A server on 127.0.0.1 for one connection at a time. */
typedef struct tls_server {
  int listener;
  lk_address at;
  SSL_CTX *context;
  int fd; /**< of the connection; -1: none */
  SSL *ssl;
  bool ready;      /**< the handshake is over */
  bool failed;     /**< so it was, or reading was */
  bool closed;     /**< by the client */
  size_t got;      /**< bytes in `room`, which are kept up to its size */
  size_t received; /**< bytes in all */
  char room[64 * 1024];
} tls_server;

/** `trust` NULL: clients need no certificate. */
void tls_server_open(tls_server *s, const tls_identity *own,
                     const tls_identity *trust);
/** Accept, go on with the handshake, receive: whatever is possible now. */
void tls_server_step(tls_server *s);
/** All of it, or the program aborts. */
void tls_server_send(tls_server *s, const void *bytes, size_t len);
/** Close the connection, with or without the alert that announces it. */
void tls_server_hang_up(tls_server *s, bool announced);
void tls_server_close(tls_server *s);

#endif
