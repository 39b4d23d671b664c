/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TLS_FILES_H
#define LK_NET_TLS_FILES_H

#include "net/transport.h"

/** The PEM of a lk_tls_config: its files, which are read here, and what it has
    in memory. One that is not there has no bytes. */
enum lk_tls_file {
  LK_TLS_FILE_CA,
  LK_TLS_FILE_CERT,
  LK_TLS_FILE_KEY,
  LK_TLS_FILE_CRL,
  LK_TLS_FILE_PASSWORD,
  LK_TLS_FILE_COUNT
};

typedef struct lk_tls_files {
  lk_bytes read[LK_TLS_FILE_COUNT]; /**< ours */
} lk_tls_files;

/** Read them all; false: `t` has the error. Free in any case. */
bool lk__tls_files_read(lk_transport *t, lk_tls_files *f,
                        const lk_tls_config *config);
/** Wipe and free. */
void lk__tls_files_free(lk_tls_files *f);

enum { LK_TLS_DIGEST_LEN = 32 };

/** SHA-256 of all that decides whom a context trusts and what it shows: the
    files, what is in memory, the names and the opt-outs. false: `t` has the
    error. */
bool lk__tls_files_digest(lk_transport *t, const lk_tls_files *f,
                          const lk_tls_config *config,
                          unsigned char out[LK_TLS_DIGEST_LEN]);

#endif
