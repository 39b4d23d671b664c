/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_CONTEXT_H
#define LK_NET_TLS_CONTEXT_H

/**
 * @file
 * The SSL_CTX of a client, made from its options and files, and the description
 * of a connection that uses it.
 */

#include <openssl/ssl.h>

#include <latchkey/tls.h>

#include "net/tls_files.h"

/** Describe a connection, even if its handshake has failed. */
void lk__tls_describe(const SSL *ssl, lk_tls_connection *out);

/**
 * Make an SSL_CTX with the options of `config`, whose files have been read into
 * `files`. OpenSSL keeps no sessions in it. NULL: `t` has the error.
 */
SSL_CTX *lk__tls_context_new(lk_transport *t, const lk_tls_config *config,
                             const lk_tls_files *files);

#endif
