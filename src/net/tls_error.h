/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_ERROR_H
#define LK_NET_TLS_ERROR_H

#include "net/transport.h"

#include <openssl/ssl.h>

/** What is known of a connection besides OpenSSL's own errors. */
typedef struct lk_tls_step_info {
  const char *name;     /**< the server's certificate must be for this name */
  char names[128];      /**< the names that it is for instead; "" if none */
  bool has_certificate; /**< the client has a certificate */
  bool certificate_requested; /**< the server has requested a certificate, and
                                   the client has none */
  bool received;              /**< bytes have come from the server */
  int sys_errno;              /**< the error of the socket; 0: none */
} lk_tls_step_info;

/** Write the DNS names and addresses of a certificate to `list`, with commas
    between them; "" if it has none. */
void lk__tls_list_names(const X509 *certificate, char *list, size_t size);

/** OpenSSL has failed outside a connection. Sets the message "TLS: what: reason
    given by OpenSSL". */
void lk__tls_error_set_library(lk_transport *t, const char *what);

/** A file or a PEM of the configuration is wrong. Sets the message "TLS: name:
    what: reason given by OpenSSL", if OpenSSL has given one. */
void lk__tls_error_set_file(lk_transport *t, const char *name,
                            const char *what);

/** A call for `ssl` has failed; `error` is the result of SSL_get_error(). Sets
    the error that fits. */
void lk__tls_error_set_step(lk_transport *t, const SSL *ssl, int error,
                            const lk_tls_step_info *info);

#endif
