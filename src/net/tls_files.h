/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_FILES_H
#define LK_NET_TLS_FILES_H

#include "net/transport.h"

/** The files that a lk_tls_config can name. */
enum lk_tls_file {
  LK_TLS_FILE_CA,
  LK_TLS_FILE_CERT,
  LK_TLS_FILE_KEY,
  LK_TLS_FILE_CRL,
  LK_TLS_FILE_PASSWORD,
  LK_TLS_FILE_COUNT
};

typedef struct lk_tls_files {
  /** The contents, owned by this struct. `at` NULL: the file is not configured.
   */
  lk_bytes contents[LK_TLS_FILE_COUNT];
} lk_tls_files;

/** Read all configured files. false: `t` has the error. In either case the
    caller has to call lk__tls_files_free(). */
bool lk__tls_files_read(lk_transport *t, lk_tls_files *f,
                        const lk_tls_config *config);
/** Overwrite the contents with zeros and free them. */
void lk__tls_files_free(lk_tls_files *f);

enum { LK_TLS_DIGEST_LEN = 32 };

/** Whether the CAs of the system are trusted. */
static inline bool lk__tls_uses_system_cas(const lk_tls_config *c)
{
  bool has_own =
      c->ca_file != NULL || c->ca_dir != NULL || c->ca_pem.at != NULL;

  return c->system_cas || !has_own;
}

/** Compute the SHA-256 of all that a context is made from: the files, the PEM
    in memory, names, and the options that weaken verification. false: `t` has
    the error. */
bool lk__tls_files_digest(lk_transport *t, const lk_tls_files *f,
                          const lk_tls_config *config,
                          unsigned char out[LK_TLS_DIGEST_LEN]);

#endif
