/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_TLS_H
#define LK_TLS_H

/**
 * @file
 * TLS. A client whose connect string begins with "tls://", or whose
 * lk_client_config.tls is set, speaks TLS with every server, and never plain
 * TCP. Part of <latchkey/client.h>.
 *
 * A server must prove by a chain of certificates up to a trusted CA that it has
 * the name or the address which the connect string gives it. Names are compared
 * with the DNS names of the certificate's subjectAltName, addresses with its IP
 * addresses; the subject's common name is not used (RFC 9525, section 6.3). A
 * name is sent to the server as well (SNI). TLS 1.2 is the least, compression
 * and renegotiation are off. The system's OpenSSL configuration applies.
 *
 * Files are PEM. They are read again at each connection attempt, on the thread
 * of the client, so a replaced certificate or CRL counts from the next
 * connection on. The client resumes a TLS session, which skips the verification
 * of the server, under three conditions: the server name is the same, all files
 * have the same content, and the server was verified in the last ten minutes.
 * With `ca_dir`, or with the system's CAs, it resumes none.
 *
 * ZooKeeper has TLS on `secureClientPort`. It requires a client's certificate
 * unless `ssl.clientAuth` is "want" or "none", and takes the subject of that
 * certificate for an identity of the scheme "x509", without lk_add_auth().
 *
 * A failed handshake is a failed connection attempt: the client goes on to the
 * next server and tries again, since a file or a server may be repaired
 * meanwhile. The log gets a warning with LK_ERR_TLS and the reason at once, and
 * lk_client_last_error() has it. No state changes, and requests wait until
 * their deadline. A program that would rather end sets an lk_sync_cancel in its
 * log callback, or notes the error there and lets a timer of its own end the
 * client.
 */

#include <latchkey/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Options of TLS: trusted CAs, own certificate. Set `size`; 0 and NULL select
 * the default. Texts and bytes are copied by lk_client_new(), and its copies of
 * `key_pem` are wiped before they are freed.
 */
typedef struct lk_tls_config {
  size_t size; /**< sizeof(lk_tls_config) */
  /** Certificates of trusted CAs: a file, a folder with hashed names (openssl
      rehash), or PEM in memory. Several add up. Without any: the system's,
      which `system_cas` adds to them. */
  const char *ca_file;
  const char *ca_dir;
  lk_bytes ca_pem;
  /** The client's certificate, with the chain behind it. Without one the
      client presents none. */
  const char *cert_file;
  lk_bytes cert_pem;
  /** Its key. Without one here, it is read from the PEM of the certificate. */
  const char *key_file;
  lk_bytes key_pem;
  /** The password of an encrypted key: the first line of a file, or what a
      function writes to `out`. It returns the length, at most `size`, or -1 for
      none. It is called during connection attempts, on the thread of the
      client, and must not call any function of the client. */
  const char *password_file;
  int (*password)(char *out, size_t size, void *arg);
  void *password_arg;
  /** Certificate revocation lists. If there is any, each certificate of a chain
      needs the current list of its CA: if that is missing or outdated, the
      server is refused. */
  const char *crl_file;
  lk_bytes crl_pem;
  /** Opt out: accept a trusted certificate with any name. Every holder of a
      certificate of that CA can impersonate a server. Logged as a warning
      at each connection. */
  bool any_name;
  /** Opt out: accept any certificate. An attacker on the network can read and
      change everything. Logged as a warning at each connection. */
  bool any_certificate;
  bool system_cas; /**< trust the system's CAs beside the ones above */
  /** The name that servers must have, and that is sent as SNI, in place of that
      in the connect string: for servers that are reached by address, or that
      share one certificate. */
  const char *server_name;
} lk_tls_config;

/** Causes of a failed handshake. A program treats a value that it does not know
    as LK_TLS_OTHER. */
typedef enum lk_tls_cause {
  LK_TLS_OTHER = 0,
  LK_TLS_NAME = 1,          /**< the certificate is for another name */
  LK_TLS_ISSUER = 2,        /**< no chain leads to a trusted CA */
  LK_TLS_EXPIRED = 3,       /**< a certificate of the chain has expired */
  LK_TLS_NOT_YET_VALID = 4, /**< one of the chain is not valid yet: is the clock
                             right? */
  LK_TLS_REVOKED = 5,       /**< one of the chain is on a revocation list */
  LK_TLS_CRL = 6, /**< a revocation list is missing, outdated or forged */
  LK_TLS_WANTS_CERTIFICATE = 7, /**< the server wants a client's certificate */
  LK_TLS_REFUSES_CERTIFICATE = 8, /**< the server refuses that certificate */
  LK_TLS_NOT_TLS = 9,             /**< the port does not speak TLS */
  LK_TLS_FILES = 10 /**< a file of the lk_tls_config is missing or wrong */
} lk_tls_cause;

/**
 * Load what `config` names, as each connection attempt does, without
 * connecting. `text` gets the reason of a failure, at most `size` bytes with
 * the final NUL, or an empty string.
 *
 * @return 0; LK_ERR_TLS: a file is missing or wrong; LK_ERR_BAD_ARGUMENT: its
 *         options contradict each other, or `size` is not set;
 *         LK_ERR_NO_MEMORY; LK_ERR_UNIMPLEMENTED: the library was built
 *         without OpenSSL.
 */
LK_API int lk_tls_check(const lk_tls_config *config, char *text, size_t size);

/** A certificate. Names are as RFC 2253 writes them, such as
    "CN=alice,O=latchkey", in ASCII; texts are cut where they are too long. */
typedef struct lk_tls_certificate {
  char subject[192]; /**< "": there is no certificate */
  char issuer[192];
  char names[256];      /**< DNS names and addresses, ", " between; or ""; an
                             address in a DNS entry is "DNS:192.0.2.1" */
  int64_t not_before_s; /**< in seconds since 1970 */
  int64_t not_after_s;
  uint64_t reserved[2];
} lk_tls_certificate;

/** A TLS connection. Texts that are not known are "". */
typedef struct lk_tls_connection {
  char version[16]; /**< "TLSv1.3" */
  char cipher[64];
  lk_tls_certificate server; /**< whether or not it was refused */
  lk_tls_certificate own;    /**< the one that the client presents on request */
} lk_tls_connection;

struct lk_transport;

/**
 * Describe the connection of `t`, an object of lk_transport_tls(), for people.
 * Also after LK_FLOW_FAILED, and not after close(). `size`: of `out`.
 *
 * @return 0; LK_ERR_STATE: TCP is not connected; LK_ERR_UNIMPLEMENTED: the
 *         library was built without OpenSSL.
 */
LK_API int lk_tls_inspect(const struct lk_transport *t, lk_tls_connection *out,
                          size_t size);

#ifdef __cplusplus
}
#endif
#endif
