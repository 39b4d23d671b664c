/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/tls_inspect.h"

#include <openssl/err.h>
#include <stdio.h>

#include "net/tls_error.h"

enum { SECONDS_PER_DAY = 86400 };

/* Write a name in the format of RFC 2253, in ASCII, and truncate it to `size`.
 */
static void print_name(const X509_NAME *name, char *out, size_t size)
{
  BIO *text = BIO_new(BIO_s_mem());
  int len = 0;

  if (text != NULL && X509_NAME_print_ex(text, name, 0, XN_FLAG_RFC2253) >= 0)
    len = BIO_read(text, out, (int)size - 1);
  out[len > 0 ? len : 0] = '\0';
  BIO_free(text);
}

/* The seconds since 1970; 0 if `time` is not valid. */
static int64_t seconds_of(const ASN1_TIME *time)
{
  ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
  int days = 0, seconds = 0;

  bool valid =
      epoch != NULL && ASN1_TIME_diff(&days, &seconds, epoch, time) == 1;

  ASN1_TIME_free(epoch);
  if (!valid)
    return 0;
  return (int64_t)days * SECONDS_PER_DAY + seconds;
}

static void certificate_describe(const X509 *certificate,
                                 lk_tls_certificate *out)
{
  if (certificate == NULL)
    return;
  print_name(X509_get_subject_name(certificate), out->subject,
             sizeof out->subject);
  print_name(X509_get_issuer_name(certificate), out->issuer,
             sizeof out->issuer);
  lk__tls_list_names(certificate, out->names, sizeof out->names);
  out->not_before_s = seconds_of(X509_get0_notBefore(certificate));
  out->not_after_s = seconds_of(X509_get0_notAfter(certificate));
}

/* NULL: the server has sent none. */
static const X509 *server_certificate(const SSL *ssl)
{
  const X509 *certificate = SSL_get0_peer_certificate(ssl);
  const STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);

  if (certificate != NULL)
    return certificate;
  /* A certificate that OpenSSL has refused is in the chain only. */
  return sk_X509_num(chain) > 0 ? sk_X509_value(chain, 0) : NULL;
}

void lk__tls_describe(const SSL *ssl, lk_tls_connection *out)
{
  const SSL_CIPHER *cipher = SSL_get_current_cipher(ssl);

  memset(out, 0, sizeof *out);
  if (cipher == NULL) /* the handshake has failed, or is not complete */
    cipher = SSL_get_pending_cipher(ssl);
  if (cipher != NULL) {
    snprintf(out->version, sizeof out->version, "%s", SSL_get_version(ssl));
    snprintf(out->cipher, sizeof out->cipher, "%s",
             SSL_CIPHER_get_name(cipher));
  }
  certificate_describe(server_certificate(ssl), &out->server);
  certificate_describe(SSL_get_certificate(ssl), &out->own);
  ERR_clear_error();
}
