/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/tls_cache.h"

#include <stdio.h>
#include <string.h>

/* A session may be resumed for so long after the certificate was verified. */
enum { MAX_SESSION_AGE_S = 600 };

/* ---- sessions ------------------------------------------------------------ */

void lk__tls_cache_set_session(lk_tls_cache *k, SSL_SESSION *session,
                               const char *name)
{
  SSL_SESSION_free(k->session);
  k->session = session;
  snprintf(k->session_name, sizeof k->session_name, "%s", name);
}

void lk__tls_cache_drop_session(lk_tls_cache *k)
{
  SSL_SESSION_free(k->session);
  k->session = NULL;
}

/* Whether the session may be resumed. The certificate is not verified again
   then, so its expiry is checked here. The age is checked, too: OpenSSL counts
   it from the last ticket, and does not check it in clients. */
static bool tls_session_is_current(const lk_tls_cache *k)
{
  X509 *certificate = SSL_SESSION_get0_peer(k->session);
  time_t now = time(NULL);

  return certificate != NULL && SSL_SESSION_is_resumable(k->session) == 1 &&
         now >= k->verified_s && now - k->verified_s < MAX_SESSION_AGE_S &&
         X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

void lk__tls_cache_offer_session(const lk_tls_cache *k, SSL *ssl,
                                 const char *name)
{
  if (k->session != NULL && strcmp(k->session_name, name) == 0 &&
      tls_session_is_current(k))
    (void)SSL_set_session(ssl, k->session);
}

/* ---- the context --------------------------------------------------------- */

void lk__tls_cache_clear(lk_tls_cache *k)
{
  lk__tls_cache_drop_session(k);
  SSL_CTX_free(k->context);
  k->context = NULL;
}

/* Make a new context, unless the present one was made of the same options. */
static bool tls_cache_renew(lk_tls_cache *k, lk_transport *t,
                            const lk_tls_config *config,
                            const lk_tls_files *files)
{
  unsigned char digest[LK_TLS_DIGEST_LEN];

  if (!lk__tls_files_digest(t, files, config, digest))
    return false;
  if (k->context != NULL && memcmp(digest, k->digest, sizeof digest) == 0)
    return true;
  lk__tls_cache_clear(k);
  k->context = lk__tls_context_new(t, config, files);
  if (k->context == NULL)
    return false;
  SSL_CTX_set_timeout(k->context, MAX_SESSION_AGE_S);
  memcpy(k->digest, digest, sizeof digest);
  return true;
}

/* The CAs in a folder or in the system's store are not part of the digest. If
   such CAs are used, nothing is kept: they may have changed, so the context is
   made anew and each certificate is verified. */
bool lk__tls_cache_load(lk_tls_cache *k, lk_transport *t,
                        const lk_tls_config *config)
{
  lk_tls_files files;

  if (config->ca_dir != NULL || lk__tls_uses_system_cas(config))
    lk__tls_cache_clear(k);
  bool ok = lk__tls_files_read(t, &files, config) &&
            tls_cache_renew(k, t, config, &files);

  lk__tls_files_free(&files);
  return ok;
}
