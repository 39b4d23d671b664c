/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_ERROR_H
#define LK_NET_TLS_ERROR_H

#include "net/transport_error.h"

#include <openssl/ssl.h>

/** What is known of a connection besides OpenSSL's own errors. */
typedef struct lk_tls_step_info {
  const char *name;           /**< that the server's certificate must have */
  char names[128];            /**< that it has instead; "" if none */
  bool has_certificate;       /**< the client does */
  bool certificate_requested; /**< by the server, and the client has none */
  bool received;              /**< bytes have come from the server */
  int number;                 /**< errno of the socket; 0: none */
} lk_tls_step_info;

/** The DNS names and addresses that a certificate has, as a list; "" if none.
 */
void lk__tls_list_names(const X509 *certificate, char *list, size_t size);

/** Set LK_ERR_TLS with `cause` and a line: "TLS: " and the text. */
void lk__tls_error_set(lk_transport *t, lk_tls_cause cause, const char *text);

/** OpenSSL failed outside a connection: "TLS: what: its reason". */
void lk__tls_error_set_library(lk_transport *t, const char *what);

/** A file of the config is wrong: "TLS: name: what: OpenSSL's reason". */
void lk__tls_error_set_file(lk_transport *t, const char *name,
                            const char *what);

/** A step of `ssl` failed with the SSL_get_error() `error`. */
void lk__tls_error_set_step(lk_transport *t, const SSL *ssl, int error,
                            const lk_tls_step_info *info);

#endif
