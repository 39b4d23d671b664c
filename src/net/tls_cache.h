/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_CACHE_H
#define LK_NET_TLS_CACHE_H

#include <time.h>

#include "net/tls_context.h"
#include "proto/engine/tls_config.h"

/** What a client keeps from one TLS connection to the next: the context that
    was made of its files, and the last session of a server. */
typedef struct lk_tls_cache {
  SSL_CTX *context;
  unsigned char digest[LK_TLS_DIGEST_LEN]; /**< of what `context` is made of */
  SSL_SESSION *session;                    /**< or NULL */
  time_t verified_s; /**< when the certificate of `session` was verified */
  char session_name[LK_TLS_LONGEST_NAME + 1]; /**< the server's */
} lk_tls_cache;

/** Make `context` of the files as they are now, unless they are unchanged.
    false: `t` has the error. */
bool lk__tls_cache_load(lk_tls_cache *k, lk_transport *t,
                        const lk_tls_config *config);
/** Have `ssl` resume the session, if it is one of `name` and may be resumed. */
void lk__tls_cache_offer_session(const lk_tls_cache *k, SSL *ssl,
                                 const char *name);
/** Take over `session`, of the server `name`. */
void lk__tls_cache_set_session(lk_tls_cache *k, SSL_SESSION *session,
                               const char *name);
void lk__tls_cache_drop_session(lk_tls_cache *k);
/** Drop all. */
void lk__tls_cache_clear(lk_tls_cache *k);

#endif
