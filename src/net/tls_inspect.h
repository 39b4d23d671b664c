/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_INSPECT_H
#define LK_NET_TLS_INSPECT_H

#include <latchkey/tls.h>

#include <openssl/ssl.h>

/** Describe a connection, even if its handshake has failed. */
void lk__tls_describe(const SSL *ssl, lk_tls_connection *out);

#endif
