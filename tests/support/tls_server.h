/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_TLS_SERVER_H
#define LK_SUPPORT_TLS_SERVER_H

#include "net/address.h"

#include <openssl/ssl.h>

/**
 * @file
 * Certificates that are made in memory, and a TLS server on the test's own
 * thread: each call of tls_server_step() does what is possible at that time.
 */

/** A certificate and its key. */
typedef struct tls_identity {
  X509 *certificate;
  EVP_PKEY *key;
} tls_identity;

/** What a certificate is to contain. */
typedef struct tls_wish {
  const char *names; /**< subjectAltName as "DNS:a, IP:1.2.3.4"; NULL: none */
  int from_days; /**< the days from now until it becomes valid; may be < 0 */
  int days;      /**< for how many days it is valid; 0: for 30 */
  long serial;   /**< the serial number; 0: the number 1 */
  bool ca;       /**< it may sign other certificates */
} tls_wish;

/** Make a certificate with a new key. `issuer` NULL: signed by itself. */
tls_identity tls_issue(const tls_identity *issuer, const char *subject,
                       const tls_wish *wish);
void tls_identity_free(tls_identity *i);

/** PEM as a text, to be freed. `password` NULL: the key is not encrypted. */
char *tls_pem_of_certificate(const tls_identity *i);
char *tls_pem_of_key(const tls_identity *i, const char *password);
/** A revocation list of `ca` with `count` serial numbers. `outdated`: the next
    list should have appeared already. */
char *tls_pem_of_crl(const tls_identity *ca, const long *serials, size_t count,
                     bool outdated);

/** A server on 127.0.0.1 for one connection at a time. */
typedef struct tls_server {
  int listener;
  lk_address at;
  SSL_CTX *context;
  int fd; /**< the connection; -1: there is none */
  SSL *ssl;
  bool ready;           /**< the handshake has succeeded */
  bool failed;          /**< the handshake or a read has failed */
  bool closed;          /**< the client has closed the connection */
  size_t got;           /**< how many bytes are in `room` */
  size_t received;      /**< how many bytes have come, including those for
                             which `room` had no place */
  char room[64 * 1024]; /**< the first bytes received */
} tls_server;

/** Listen. `trust`: the CA of the clients' certificates; NULL: clients need no
    certificate. */
void tls_server_open(tls_server *s, const tls_identity *own,
                     const tls_identity *trust);
/** Accept a connection, continue its handshake, and receive, as far as possible
    without waiting. */
void tls_server_step(tls_server *s);
/** Send all bytes at once; aborts if that is not possible. */
void tls_server_send(tls_server *s, const void *bytes, size_t len);
/** Close the connection without an alert. */
void tls_server_hang_up(tls_server *s);
/** Send the alert close_notify and close the connection. */
void tls_server_announce_and_hang_up(tls_server *s);
void tls_server_close(tls_server *s);

#endif
