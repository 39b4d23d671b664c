/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/tls_context.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/tls_cache.h"
#include "net/tls_error.h"

/* ---- objects of a PEM ---------------------------------------------------- */

/* The arguments of lk__tls_context_new(), and the context that it makes. */
typedef struct loading {
  lk_transport *t;
  const lk_tls_config *config;
  const lk_tls_files *files;
  SSL_CTX *context;
} loading;

/* Pass each object that `read` finds in a PEM to `add`, which has to free it.
   Returns the number of objects; -1: `add` failed, or the PEM is damaged. */
static int pem_for_each(lk_bytes pem, void *(*read)(BIO *from),
                        bool (*add)(loading *l, void *object), loading *l)
{
  BIO *from = pem.len > INT_MAX ? NULL : BIO_new_mem_buf(pem.at, (int)pem.len);
  int count = 0;
  void *object;

  if (from == NULL)
    return -1;
  ERR_clear_error();
  while (count >= 0 && (object = read(from)) != NULL)
    count = add(l, object) ? count + 1 : -1;
  BIO_free(from);
  /* At the end of a PEM OpenSSL reports NO_START_LINE, which is no error here.
     The first error is asked for, since NO_START_LINE may also follow an error
     about memory. */
  unsigned long code = ERR_peek_error();

  if (count < 0 || (code != 0 && (ERR_GET_LIB(code) != ERR_LIB_PEM ||
                                  ERR_GET_REASON(code) != PEM_R_NO_START_LINE)))
    return -1;
  ERR_clear_error();
  return count;
}

/* A password callback that fails. Without a callback OpenSSL would ask on the
   terminal. */
static int on_no_password(char *out, int size, int writing, void *arg)
{
  (void)out;
  (void)size;
  (void)writing;
  (void)arg;
  return -1;
}

static void *read_certificate(BIO *from)
{
  return PEM_read_bio_X509(from, NULL, on_no_password, NULL);
}

static void *read_crl(BIO *from)
{
  return PEM_read_bio_X509_CRL(from, NULL, on_no_password, NULL);
}

static bool add_ca(loading *l, void *object)
{
  bool ok =
      X509_STORE_add_cert(SSL_CTX_get_cert_store(l->context), object) == 1;

  X509_free(object);
  return ok;
}

static bool add_crl(loading *l, void *object)
{
  bool ok = X509_STORE_add_crl(SSL_CTX_get_cert_store(l->context), object) == 1;

  X509_CRL_free(object);
  return ok;
}

/* The first certificate of the PEM is the client's, the others are its chain.
 */
static bool add_client_certificate(loading *l, void *object)
{
  bool ok = SSL_CTX_get0_certificate(l->context) == NULL
                ? SSL_CTX_use_certificate(l->context, object) == 1
                : SSL_CTX_add1_chain_cert(l->context, object) == 1;

  X509_free(object);
  return ok;
}

/* Load all objects of a PEM. No PEM (`at` is NULL) is fine; one without objects
   is an error, which is about the file or option `name`. */
static bool load_list(loading *l, lk_bytes pem, const char *name,
                      void *(*read)(BIO *from),
                      bool (*add)(loading *l, void *object))
{
  if (pem.at == NULL)
    return true;
  int count = pem_for_each(pem, read, add, l);

  if (count > 0)
    return true;
  const char *what =
      read == read_crl ? "has no revocation list" : "has no certificate";

  if (count < 0)
    what = "is damaged";
  lk__tls_error_set_file(l->t, name, what);
  return false;
}

/* ---- the CAs and the revocation lists ------------------------------------ */

/* How an error names the source of a PEM: by the file, or else by the member of
   lk_tls_config. */
static const char *name_of(const char *file, const char *member)
{
  return file == NULL ? member : file;
}

static bool load_folder(loading *l, const char *folder)
{
  if (folder == NULL || SSL_CTX_load_verify_dir(l->context, folder) == 1)
    return true;
  lk__tls_error_set_file(l->t, folder, "cannot be used as a folder of CAs");
  return false;
}

/* The environment may replace a name that is built into OpenSSL. */
static const char *system_name(const char *variable, const char *built_in)
{
  const char *name = getenv(variable);

  return name == NULL ? built_in : name;
}

/* Whether OpenSSL has read CAs from the system's file, or will look for them in
   the system's folder or folders. */
static bool system_has_cas(SSL_CTX *context)
{
  const char *folder =
      system_name(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
  STACK_OF(X509_OBJECT) *cas =
      X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));

  return sk_X509_OBJECT_num(cas) > 0 || strchr(folder, ':') != NULL ||
         access(folder, R_OK | X_OK) == 0;
}

/* OpenSSL is content with a missing file, as in an image without /etc. No
   server's certificate would be valid then, for a reason that misleads. */
static bool load_system_cas(loading *l)
{
  const char *file = system_name(X509_get_default_cert_file_env(),
                                 X509_get_default_cert_file());

  if (SSL_CTX_set_default_verify_paths(l->context) != 1) {
    lk__tls_error_set_library(l->t, "cannot use the system's CAs");
    return false;
  }
  ERR_clear_error();
  if (system_has_cas(l->context))
    return true;
  lk__tls_error_set_file(l->t, file,
                         access(file, R_OK) == 0 ? "has no certificate"
                                                 : strerror(errno));
  return false;
}

static bool load_trust(loading *l)
{
  const lk_tls_config *c = l->config;

  if (c->any_certificate)
    return true;
  if (lk__tls_uses_system_cas(c) && !load_system_cas(l))
    return false;
  return load_list(l, l->files->contents[LK_TLS_FILE_CA],
                   name_of(c->ca_file, "ca_file"), read_certificate, add_ca) &&
         load_list(l, c->ca_pem, "ca_pem", read_certificate, add_ca) &&
         load_folder(l, c->ca_dir);
}

static bool load_crls(loading *l)
{
  const lk_tls_config *c = l->config;

  if (c->any_certificate || (c->crl_file == NULL && c->crl_pem.at == NULL))
    return true;
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(l->context),
                              X509_V_FLAG_CRL_CHECK |
                                  X509_V_FLAG_CRL_CHECK_ALL);
  return load_list(l, l->files->contents[LK_TLS_FILE_CRL],
                   name_of(c->crl_file, "crl_file"), read_crl, add_crl) &&
         load_list(l, c->crl_pem, "crl_pem", read_crl, add_crl);
}

/* ---- the client's certificate and key ------------------------------------ */

/* Copy the first line, without a NUL. Returns its length; -1: it is too long.
 */
static int copy_first_line(lk_bytes text, char *out, size_t size)
{
  const char *at = text.at;
  size_t len = 0;

  while (len < text.len && at[len] != '\n' && at[len] != '\r')
    len++;
  if (len > size)
    return -1;
  if (len > 0)
    memcpy(out, at, len);
  return (int)len;
}

/* The password callback for the key. Returns the length; -1: no password. */
static int on_key_password(char *out, int size, int writing, void *arg)
{
  const loading *l = arg;
  lk_bytes file = l->files->contents[LK_TLS_FILE_PASSWORD];

  (void)writing;
  if (file.at != NULL)
    return copy_first_line(file, out, (size_t)size);
  if (l->config->password == NULL)
    return -1;
  int len = l->config->password(out, (size_t)size, l->config->password_arg);

  return len > size ? -1 : len;
}

static lk_bytes file_or_pem(lk_bytes file, lk_bytes pem)
{
  return file.at != NULL ? file : pem;
}

/* Whether a block of the PEM is a private key of any kind. */
static bool has_key_block(lk_bytes pem)
{
  static const char end[] = "PRIVATE KEY-----";
  size_t len = sizeof end - 1;

  for (size_t i = 0; i + len <= pem.len; i++)
    if (memcmp((const char *)pem.at + i, end, len) == 0)
      return true;
  return false;
}

static bool load_key(loading *l, lk_bytes pem, const char *name)
{
  BIO *from = pem.len > INT_MAX ? NULL : BIO_new_mem_buf(pem.at, (int)pem.len);
  EVP_PKEY *key = from == NULL
                      ? NULL
                      : PEM_read_bio_PrivateKey(from, NULL, on_key_password, l);
  const char *what = NULL; /* what is wrong; NULL: nothing */

  BIO_free(from);
  if (key == NULL && !has_key_block(pem)) {
    what = "has no private key";
    ERR_clear_error(); /* OpenSSL's "unsupported" would mislead the user */
  } else if (key == NULL) {
    what = "has no key that can be read";
  } else if (SSL_CTX_use_PrivateKey(l->context, key) != 1) {
    what = "does not fit the certificate";
  }
  EVP_PKEY_free(key);
  if (what != NULL)
    lk__tls_error_set_file(l->t, name, what);
  return what == NULL;
}

static bool load_client_certificate(loading *l)
{
  const lk_tls_config *c = l->config;
  const char *cert_name = name_of(c->cert_file, "cert_pem");
  lk_bytes cert =
      file_or_pem(l->files->contents[LK_TLS_FILE_CERT], c->cert_pem);
  lk_bytes key = file_or_pem(l->files->contents[LK_TLS_FILE_KEY], c->key_pem);

  if (cert.at == NULL)
    return true;
  if (!load_list(l, cert, cert_name, read_certificate, add_client_certificate))
    return false;
  return key.at == NULL ? load_key(l, cert, cert_name)
                        : load_key(l, key, name_of(c->key_file, "key_pem"));
}

/* ---- creation ------------------------------------------------------------ */

static void set_options(loading *l)
{
  SSL_CTX *context = l->context;
  int verify = l->config->any_certificate ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;

  /* IGNORE_UNEXPECTED_EOF, since most servers close without an alert. */
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  /* Records are sent one by one, and the rest of the client's output may have
     moved in memory when it is sent. */
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context, verify, NULL);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT |
                                              SSL_SESS_CACHE_NO_INTERNAL);
}

/* Refuse versions before TLS 1.2. The configuration of the system may already
   demand a later version, which must not be lowered. */
static bool demand_tls_1_2(SSL_CTX *context)
{
  return SSL_CTX_get_min_proto_version(context) >= TLS1_2_VERSION ||
         SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

SSL_CTX *lk__tls_context_new(lk_transport *t, const lk_tls_config *config,
                             const lk_tls_files *files)
{
  loading l = {t, config, files, SSL_CTX_new(TLS_client_method())};

  if (l.context == NULL) {
    lk__tls_error_set_library(t, "cannot make a context");
    return NULL;
  }
  set_options(&l);
  if (!demand_tls_1_2(l.context))
    lk__tls_error_set_library(t, "TLS 1.2 is not available");
  else if (load_trust(&l) && load_crls(&l) && load_client_certificate(&l))
    return l.context;
  SSL_CTX_free(l.context);
  return NULL;
}

/* ---- a check of the options ---------------------------------------------- */

int lk_tls_check(const lk_tls_config *config, char *text, size_t size)
{
  lk_tls_cache cache = {0};
  lk_transport t = {.fd = -1};
  lk_tls_config *copy;
  const char *wrong = NULL; /* what is wrong with `config`; NULL: not known */
  char room[LK_SIZE_TEXT_ROOM];
  int err = lk__tls_copy(&copy, &lk__mem_libc, config, &wrong, room);

  if (size > 0)
    snprintf(text, size, "%s", wrong == NULL ? "" : wrong);
  if (err != 0)
    return err;
  if (!lk__tls_cache_load(&cache, &t, copy)) {
    err = t.err;
    if (size > 0)
      snprintf(text, size, "%s", t.why);
  }
  lk__tls_cache_clear(&cache);
  lk__tls_free(&lk__mem_libc, copy);
  return err;
}

/* ---- the description of a connection ------------------------------------- */

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
