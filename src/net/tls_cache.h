/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_CACHE_H
#define LK_NET_TLS_CACHE_H

#include <time.h>

#include "net/tls_context.h"
#include "proto/engine/tls_config.h"

/** What a client keeps from one TLS connection to the next: the context that
    was made from its files, and the last session. */
typedef struct lk_tls_cache {
  SSL_CTX *context;                        /**< NULL: none has been made */
  unsigned char digest[LK_TLS_DIGEST_LEN]; /**< see lk__tls_files_digest() */
  SSL_SESSION *session; /**< NULL: there is no session to resume */
  time_t verified_s;    /**< when the certificate of `session` was verified */
  char session_name[LK_TLS_LONGEST_NAME + 1]; /**< the server of `session` */
} lk_tls_cache;

/** Read the files, and make `context` anew if they have changed. false: `t` has
    the error. */
bool lk__tls_cache_load(lk_tls_cache *k, lk_transport *t,
                        const lk_tls_config *config);
/** Have `ssl` resume the session, if the session is one with the server `name`
    and may be resumed. */
void lk__tls_cache_offer_session(const lk_tls_cache *k, SSL *ssl,
                                 const char *name);
/** Keep `session`, which is one with the server `name`, in place of the last.
    The cache frees it. */
void lk__tls_cache_set_session(lk_tls_cache *k, SSL_SESSION *session,
                               const char *name);
void lk__tls_cache_drop_session(lk_tls_cache *k);
/** Drop the context and the session. */
void lk__tls_cache_clear(lk_tls_cache *k);

#endif
