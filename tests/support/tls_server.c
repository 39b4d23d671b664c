/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/tls_server.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60 };

/* Abort with the last errors if `ok` is false. Not an assertion of Check, since
   programs that are no tests use this file, too. */
static void must(bool ok)
{
  if (ok)
    return;
  perror("the TLS server of the test");
  ERR_print_errors_fp(stderr);
  abort();
}

/* ---- certificates -------------------------------------------------------- */

static void add_extension(X509 *certificate, X509V3_CTX *context, int nid,
                          const char *value)
{
  X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, context, nid, value);

  must(e != NULL && X509_add_ext(certificate, e, -1) == 1);
  X509_EXTENSION_free(e);
}

static void add_extensions(X509 *certificate, X509 *issuer,
                           const tls_wish *wish)
{
  X509V3_CTX context;

  X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  add_extension(certificate, &context, NID_basic_constraints,
                wish->ca ? "critical,CA:TRUE" : "CA:FALSE");
  add_extension(certificate, &context, NID_key_usage,
                wish->ca ? "critical,keyCertSign,cRLSign"
                         : "critical,digitalSignature");
  add_extension(certificate, &context, NID_subject_key_identifier, "hash");
  if (wish->names != NULL)
    add_extension(certificate, &context, NID_subject_alt_name, wish->names);
}

tls_identity tls_issue(const tls_identity *issuer, const char *subject,
                       const tls_wish *wish)
{
  tls_identity i = {X509_new(), EVP_EC_gen("P-256")};
  long days = wish->days == 0 ? 30 : wish->days;
  long serial = wish->serial == 0 ? 1 : wish->serial;
  long from = (long)wish->from_days * DAY_S; /* from now */
  long until = from + days * DAY_S;

  must(i.certificate != NULL && i.key != NULL);
  X509_NAME *name = X509_get_subject_name(i.certificate);
  X509 *signer = issuer == NULL ? i.certificate : issuer->certificate;
  EVP_PKEY *signing_key = issuer == NULL ? i.key : issuer->key;

  must(X509_set_version(i.certificate, X509_VERSION_3) == 1);
  must(ASN1_INTEGER_set(X509_get_serialNumber(i.certificate), serial) == 1);
  must(X509_gmtime_adj(X509_getm_notBefore(i.certificate), from) != NULL);
  must(X509_gmtime_adj(X509_getm_notAfter(i.certificate), until) != NULL);
  must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                  (const unsigned char *)subject, -1, -1,
                                  0) == 1);
  must(X509_set_issuer_name(i.certificate, X509_get_subject_name(signer)) == 1);
  must(X509_set_pubkey(i.certificate, i.key) == 1);
  add_extensions(i.certificate, signer, wish);
  must(X509_sign(i.certificate, signing_key, EVP_sha256()) > 0);
  return i;
}

void tls_identity_free(tls_identity *i)
{
  X509_free(i->certificate);
  EVP_PKEY_free(i->key);
  *i = (tls_identity){NULL, NULL};
}

static char *text_of(BIO *bio)
{
  char *bytes;
  long len = BIO_get_mem_data(bio, &bytes);
  char *text = malloc((size_t)len + 1);

  must(text != NULL);
  memcpy(text, bytes, (size_t)len);
  text[len] = '\0';
  BIO_free(bio);
  return text;
}

char *tls_pem_of_certificate(const tls_identity *i)
{
  BIO *bio = BIO_new(BIO_s_mem());

  must(PEM_write_bio_X509(bio, i->certificate) == 1);
  return text_of(bio);
}

char *tls_pem_of_key(const tls_identity *i, const char *password)
{
  BIO *bio = BIO_new(BIO_s_mem());
  int len = password == NULL ? 0 : (int)strlen(password);

  must(PEM_write_bio_PKCS8PrivateKey(
           bio, i->key, password == NULL ? NULL : EVP_aes_128_cbc(), password,
           len, NULL, NULL) == 1);
  return text_of(bio);
}

static void revoke_serial(X509_CRL *crl, long serial)
{
  X509_REVOKED *r = X509_REVOKED_new();
  ASN1_INTEGER *number = ASN1_INTEGER_new();
  ASN1_TIME *when = X509_gmtime_adj(NULL, -60);

  must(ASN1_INTEGER_set(number, serial) == 1);
  must(X509_REVOKED_set_serialNumber(r, number) == 1);
  must(X509_REVOKED_set_revocationDate(r, when) == 1);
  must(X509_CRL_add0_revoked(crl, r) == 1);
  ASN1_INTEGER_free(number);
  ASN1_TIME_free(when);
}

char *tls_pem_of_crl(const tls_identity *ca, const long *serials, size_t count,
                     bool outdated)
{
  X509_CRL *crl = X509_CRL_new();
  ASN1_TIME *last = X509_gmtime_adj(NULL, -2L * DAY_S);
  ASN1_TIME *next = X509_gmtime_adj(NULL, outdated ? -DAY_S : DAY_S);
  BIO *bio = BIO_new(BIO_s_mem());

  must(X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1);
  must(X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->certificate)) ==
       1);
  must(X509_CRL_set1_lastUpdate(crl, last) == 1);
  must(X509_CRL_set1_nextUpdate(crl, next) == 1);
  for (size_t i = 0; i < count; i++)
    revoke_serial(crl, serials[i]);
  must(X509_CRL_sign(crl, ca->key, EVP_sha256()) > 0);
  must(PEM_write_bio_X509_CRL(bio, crl) == 1);
  ASN1_TIME_free(last);
  ASN1_TIME_free(next);
  X509_CRL_free(crl);
  return text_of(bio);
}

/* ---- the server ---------------------------------------------------------- */

static void listen_somewhere(tls_server *s)
{
  const int receive_buffer =
      16 * 1024; /* small: a client's output soon waits */
  socklen_t len = sizeof s->at;

  must(lk__address_parse(&s->at, "127.0.0.1"));
  s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  must(s->listener >= 0);
  setsockopt(s->listener, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
             sizeof receive_buffer);
  must(bind(s->listener, &s->at.any, sizeof s->at.v4) == 0);
  must(listen(s->listener, 8) == 0);
  must(getsockname(s->listener, &s->at.any, &len) == 0);
}

void tls_server_open(tls_server *s, const tls_identity *own,
                     const tls_identity *trust)
{
  static const unsigned char label[] = "latchkey";

  memset(s, 0, sizeof *s);
  s->fd = -1;
  listen_somewhere(s);
  s->context = SSL_CTX_new(TLS_server_method());
  must(s->context != NULL);
  must(SSL_CTX_use_certificate(s->context, own->certificate) == 1);
  must(SSL_CTX_use_PrivateKey(s->context, own->key) == 1);
  must(SSL_CTX_set_session_id_context(s->context, label, sizeof label) == 1);
  SSL_CTX_set_mode(s->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (trust == NULL)
    return;
  must(X509_STORE_add_cert(SSL_CTX_get_cert_store(s->context),
                           trust->certificate) == 1);
  SSL_CTX_set_verify(s->context,
                     SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

static void accept_one(tls_server *s)
{
  const int yes = 1;

  s->fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (s->fd < 0)
    return;
  /* Sent bytes arrive at once, without waiting for an acknowledgement. */
  setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  s->ssl = SSL_new(s->context);
  must(s->ssl != NULL && SSL_set_fd(s->ssl, s->fd) == 1);
  SSL_set_accept_state(s->ssl);
  s->ready = s->failed = s->closed = false;
  s->got = s->received = 0;
}

/* Note in `closed` or `failed` why a call of OpenSSL returned `result`, unless
   it only has to wait. */
static void note_result(tls_server *s, int result)
{
  int error = SSL_get_error(s->ssl, result);

  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return;
  s->closed = error == SSL_ERROR_ZERO_RETURN;
  s->failed = !s->closed;
  ERR_clear_error();
}

static void receive(tls_server *s)
{
  char discarded[16 * 1024];

  for (;;) {
    size_t left = sizeof s->room - s->got;
    int n = left > 0 ? SSL_read(s->ssl, s->room + s->got, (int)left)
                     : SSL_read(s->ssl, discarded, sizeof discarded);

    if (n <= 0) {
      note_result(s, n);
      return;
    }
    s->received += (size_t)n;
    if (left > 0)
      s->got += (size_t)n;
  }
}

void tls_server_step(tls_server *s)
{
  if (s->fd < 0)
    accept_one(s);
  if (s->fd < 0 || s->failed || s->closed)
    return;
  if (!s->ready) {
    int result = SSL_do_handshake(s->ssl);

    s->ready = result == 1;
    if (!s->ready) {
      note_result(s, result);
      return;
    }
  }
  receive(s);
}

void tls_server_send(tls_server *s, const void *bytes, size_t len)
{
  size_t n = 0;

  must(SSL_write_ex(s->ssl, bytes, len, &n) == 1 && n == len);
}

void tls_server_hang_up(tls_server *s)
{
  SSL_free(s->ssl);
  s->ssl = NULL;
  if (s->fd >= 0)
    close(s->fd);
  s->fd = -1;
  ERR_clear_error();
}

void tls_server_announce_and_hang_up(tls_server *s)
{
  if (s->ssl != NULL)
    (void)SSL_shutdown(s->ssl);
  tls_server_hang_up(s);
}

void tls_server_close(tls_server *s)
{
  tls_server_hang_up(s);
  close(s->listener);
  SSL_CTX_free(s->context);
}
