/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "net/tcp.h"
#include "net/tls_context.h"
#include "net/tls_error.h"
#include "net/tls_inspect.h"
#include "proto/engine/tls_config.h"

/* TLS on TCP. OpenSSL reads and writes through a BIO of ours, since its own may
 * raise SIGPIPE. */

enum {
  LONGEST_NAME = LK_TLS_LONGEST_NAME + 1,
  /* A step of the handshake reads the socket at most so often; a record takes
     two reads. Without a limit a server that never pauses can hold the loop
     inside OpenSSL by messages that are no data: HelloRequests, KeyUpdates,
     tickets. */
  READS_PER_STEP = 256,
  /* and a later step so often; a read takes 16 KB of records */
  READS_AHEAD_PER_STEP = 8,
  /* and sends at most so many bytes */
  SENT_PER_STEP = 1024 * 1024,
};

typedef struct lk_tls {
  lk_tcp tcp;
  SSL *ssl;
  BIO_METHOD *method;
  lk_tls_config config; /* borrowed; the client keeps it */
  bool connected;       /* TCP is */
  bool ended;           /* the server has closed TCP */
  bool more;            /* recv() left bytes behind */
  bool refused;         /* by OpenSSL, which takes no further step */
  bool drained;         /* the socket, by a read in this step */
  unsigned reads;       /* of the socket that this step has left */
  lk_flow over;         /* what recv() has to say once more; or DONE */
  lk_tls_step_info facts;
  char name[LONGEST_NAME];

  /* kept from one connection to the next */
  SSL_CTX *context;
  unsigned char digest[LK_TLS_DIGEST_LEN]; /* of what it was made from */
  SSL_SESSION *session;                    /* with a server of `session_name` */
  time_t verified; /* when the certificate was that `session` stands for */
  char session_name[LONGEST_NAME];
} lk_tls;

static lk_tls *tls_of(lk_transport *t)
{
  return (lk_tls *)(void *)t;
}

/* ---- the socket -----------------------------------------------------------
 */

static int bio_result(BIO *bio, lk_tls *s, lk_flow flow, size_t n, int retry)
{
  BIO_clear_retry_flags(bio);
  if (n > 0)
    return (int)n;
  if (flow == LK_FLOW_READ || flow == LK_FLOW_WRITE)
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  if (flow == LK_FLOW_FAILED)
    s->facts.number = s->tcp.base.number;
  s->ended = flow == LK_FLOW_END;
  return s->ended ? 0 : -1;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
  lk_tls *s = BIO_get_data(bio);
  size_t done;
  lk_flow flow =
      lk_transport_tcp()->send(&s->tcp.base, bytes, (size_t)len, &done);

  return bio_result(bio, s, flow, done, BIO_FLAGS_WRITE);
}

static int bio_read(BIO *bio, char *room, int size)
{
  lk_tls *s = BIO_get_data(bio);
  size_t got = 0;
  lk_flow flow = LK_FLOW_READ;

  if (!s->drained && s->reads > 0) {
    s->reads--;
    flow = lk_transport_tcp()->recv(&s->tcp.base, room, (size_t)size, &got);
    s->drained = got > 0 && got < (size_t)size;
  }
  s->facts.heard = s->facts.heard || got > 0;
  return bio_result(bio, s, flow, got, BIO_FLAGS_READ);
}

static long bio_control(BIO *bio, int command, long number, void *at)
{
  const lk_tls *s = BIO_get_data(bio);

  (void)number;
  (void)at;
  return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && s->ended);
}

static BIO *new_bio(lk_tls *s)
{
  BIO *bio = NULL;

  if (s->method == NULL) {
    s->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "latchkey");
    if (s->method == NULL)
      return NULL;
    BIO_meth_set_write(s->method, bio_write);
    BIO_meth_set_read(s->method, bio_read);
    BIO_meth_set_ctrl(s->method, bio_control);
  }
  bio = BIO_new(s->method);
  if (bio != NULL) {
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
  }
  return bio;
}

/* ---- what OpenSSL tells ---------------------------------------------------
 */

/* Take over a session. */
static void keep_session(lk_tls *s, SSL_SESSION *session)
{
  SSL_SESSION_free(s->session);
  s->session = session;
  memcpy(s->session_name, s->name, sizeof s->session_name);
}

/* The last one counts: TLS 1.3 sends tickets after the handshake. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
  keep_session(SSL_get_app_data(ssl), session);
  return 1; /* it is ours now */
}

static int on_verdict(int ok, X509_STORE_CTX *verifying)
{
  SSL *ssl = X509_STORE_CTX_get_ex_data(verifying,
                                        SSL_get_ex_data_X509_STORE_CTX_idx());
  lk_tls *s = SSL_get_app_data(ssl);
  int verdict = X509_STORE_CTX_get_error(verifying);

  if (ok == 0 && (verdict == X509_V_ERR_HOSTNAME_MISMATCH ||
                  verdict == X509_V_ERR_IP_ADDRESS_MISMATCH))
    lk__tls_names(X509_STORE_CTX_get0_cert(verifying), s->facts.names,
                  sizeof s->facts.names);
  return ok;
}

/* The server wants a certificate, and there is none. */
static int on_asked(SSL *ssl, X509 **certificate, EVP_PKEY **key)
{
  lk_tls *s = SSL_get_app_data(ssl);

  (void)certificate;
  (void)key;
  s->facts.asked = true;
  return 0;
}

/* ---- a context ------------------------------------------------------------
 */

static void drop_session(lk_tls *s)
{
  SSL_SESSION_free(s->session);
  s->session = NULL;
}

static void drop_context(lk_tls *s)
{
  drop_session(s);
  SSL_CTX_free(s->context);
  s->context = NULL;
}

static bool renew_context(lk_tls *s, const lk_tls_files *files)
{
  lk_transport *t = &s->tcp.base;
  unsigned char digest[LK_TLS_DIGEST_LEN];

  if (!lk__tls_files_digest(t, files, &s->config, digest))
    return false;
  if (s->context != NULL && memcmp(digest, s->digest, sizeof digest) == 0)
    return true;
  drop_context(s);
  s->context = lk__tls_context(t, &s->config, files);
  if (s->context == NULL)
    return false;
  memcpy(s->digest, digest, sizeof digest);
  SSL_CTX_sess_set_new_cb(s->context, on_session);
  if (SSL_CTX_get0_certificate(s->context) == NULL)
    SSL_CTX_set_client_cert_cb(s->context, on_asked);
  return true;
}

/* As the files are now. What a folder or the system trusts can change without
 * any of them: then each connection is verified anew. */
static bool load_context(lk_tls *s)
{
  const lk_tls_config *c = &s->config;
  lk_tls_files files;

  if (c->ca_dir != NULL || (c->ca_file == NULL && c->ca_pem.at == NULL))
    drop_context(s);
  bool ok =
      lk__tls_files_read(&s->tcp.base, &files, c) && renew_context(s, &files);

  lk__tls_files_free(&files);
  return ok;
}

/* ---- a connection ---------------------------------------------------------
 */

/* As certificates write it: without a final dot, or an address without its
 * interface. */
static void set_name(lk_tls *s, const char *host)
{
  const char *name =
      s->config.server_name == NULL ? host : s->config.server_name;
  lk_address literal;
  char *interface;

  snprintf(s->name, sizeof s->name, "%s", name);
  size_t len = strlen(s->name);

  if (len > 1 && s->name[len - 1] == '.')
    s->name[len - 1] = '\0';
  interface = strchr(s->name, '%');
  if (interface != NULL && lk__address_parse(&literal, name))
    *interface = '\0';
  s->facts.name = s->name;
}

/* Demand the name, and send it. */
static bool expect_name(lk_tls *s)
{
  X509_VERIFY_PARAM *param = SSL_get0_param(s->ssl);
  lk_address literal;
  bool is_address = lk__address_parse(&literal, s->name);
  bool any = s->config.any_name || s->config.any_certificate;

  X509_VERIFY_PARAM_set_hostflags(param,
                                  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (!is_address && SSL_set_tlsext_host_name(s->ssl, s->name) != 1)
    return false;
  if (any)
    return true;
  return is_address ? X509_VERIFY_PARAM_set1_ip_asc(param, s->name) == 1
                    : SSL_set1_host(s->ssl, s->name) == 1;
}

/* The certificate may have expired since it was verified. OpenSSL's own limit
 * of a session's age begins anew with each ticket, and binds servers only. */
static bool is_current(const lk_tls *s)
{
  X509 *certificate = SSL_SESSION_get0_peer(s->session);
  time_t now = time(NULL);

  return certificate != NULL && SSL_SESSION_is_resumable(s->session) == 1 &&
         now >= s->verified && now - s->verified < LK_TLS_SESSION_LIFE_S &&
         X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

static void offer_session(lk_tls *s)
{
  if (s->session != NULL && strcmp(s->session_name, s->name) == 0 &&
      is_current(s))
    (void)SSL_set_session(s->ssl, s->session);
}

static lk_flow begin_tls(lk_tls *s)
{
  s->ssl = SSL_new(s->context);
  BIO *bio = s->ssl == NULL ? NULL : new_bio(s);

  if (bio == NULL) {
    lk__tls_error_set_library(&s->tcp.base, "cannot begin");
    return LK_FLOW_FAILED;
  }
  SSL_set_bio(s->ssl, bio, bio);
  SSL_set_app_data(s->ssl, s);
  SSL_set_verify(s->ssl, SSL_CTX_get_verify_mode(s->context), on_verdict);
  SSL_set_connect_state(s->ssl);
  s->facts.has_key = SSL_get_certificate(s->ssl) != NULL;
  if (!expect_name(s)) {
    lk__tls_error_set_library(&s->tcp.base, "cannot demand the server's name");
    return LK_FLOW_FAILED;
  }
  offer_session(s);
  return LK_FLOW_DONE;
}

static lk_flow tls_open(lk_transport *t, const lk_endpoint *to)
{
  lk_tls *s = tls_of(t);

  s->config = *to->tls;
  s->connected = false;
  s->ended = false;
  s->more = false;
  s->refused = false;
  s->over = LK_FLOW_DONE;
  s->facts = (lk_tls_step_info){.name = s->name};
  t->cause = LK_TLS_OTHER;
  set_name(s, to->host);
  if (!load_context(s))
    return LK_FLOW_FAILED;
  return lk_transport_tcp()->open(t, to);
}

/* Errors of other users of OpenSSL on this thread are none of ours. A read that
 * brought less than there was room for has drained the socket: another one
 * would be a system call that brings nothing. */
static void begin_step(lk_tls *s)
{
  ERR_clear_error();
  s->drained = false;
  s->reads =
      SSL_get_read_ahead(s->ssl) == 1 ? READS_AHEAD_PER_STEP : READS_PER_STEP;
}

/* How a step of OpenSSL ended that did not succeed. */
static lk_flow flow_of(lk_tls *s, int result)
{
  int error = SSL_get_error(s->ssl, result);

  switch (error) {
  case SSL_ERROR_WANT_READ: return LK_FLOW_READ;
  case SSL_ERROR_WANT_WRITE: return LK_FLOW_WRITE;
  case SSL_ERROR_ZERO_RETURN:
    if (SSL_is_init_finished(s->ssl))
      return LK_FLOW_END;
    break;
  default: break;
  }
  s->refused = error == SSL_ERROR_SSL;
  lk__tls_error_set_step(&s->tcp.base, s->ssl, error, &s->facts);
  return LK_FLOW_FAILED;
}

static lk_flow tls_handshake(lk_transport *t)
{
  lk_tls *s = tls_of(t);

  if (!s->connected) {
    lk_flow flow = lk_transport_tcp()->handshake(t);

    if (flow != LK_FLOW_DONE)
      return flow;
    s->connected = true;
    flow = begin_tls(s);
    if (flow != LK_FLOW_DONE)
      return flow;
  }
  begin_step(s);
  int result = SSL_do_handshake(s->ssl);

  if (result != 1)
    return flow_of(s, result);
  if (SSL_session_reused(s->ssl) == 0)
    s->verified = time(NULL);
  /* With TLS 1.2 a new ticket ends the session that was resumed, and OpenSSL
     does not call on_session() for the one that takes its place. */
  else if (SSL_version(s->ssl) < TLS1_3_VERSION)
    keep_session(s, SSL_get1_session(s->ssl));
  /* Not before: records right behind the handshake would wait inside OpenSSL,
     where no readable descriptor announces them. */
  SSL_set_read_ahead(s->ssl, 1);
  return LK_FLOW_DONE;
}

static lk_flow tls_send(lk_transport *t, const void *bytes, size_t len,
                        size_t *done)
{
  lk_tls *s = tls_of(t);
  const unsigned char *at = bytes;

  *done = 0;
  if (s->refused)
    return LK_FLOW_FAILED;
  begin_step(s);
  while (*done < len) {
    size_t n = 0;

    if (*done >= SENT_PER_STEP)
      return LK_FLOW_WRITE;

    ERR_clear_error();
    int result = SSL_write_ex(s->ssl, at + *done, len - *done, &n);

    if (result != 1)
      return flow_of(s, result);
    *done += n;
  }
  return LK_FLOW_DONE;
}

static lk_flow tls_recv(lk_transport *t, void *room, size_t size, size_t *got)
{
  lk_tls *s = tls_of(t);
  unsigned char *at = room;
  lk_flow flow = s->refused ? LK_FLOW_FAILED : s->over;

  *got = 0;
  s->more = false;
  begin_step(s);
  while (flow == LK_FLOW_DONE && *got < size) {
    size_t n = 0;

    ERR_clear_error();
    int result = SSL_read_ex(s->ssl, at + *got, size - *got, &n);

    *got += n;
    if (result != 1)
      flow = flow_of(s, result);
    else if (s->drained && SSL_has_pending(s->ssl) == 0)
      flow = LK_FLOW_READ;
  }
  if (*got == 0)
    return flow;
  /* The next call returns the flow that ended the loop. */
  s->over = flow == LK_FLOW_END || flow == LK_FLOW_FAILED ? flow : LK_FLOW_DONE;
  s->more = flow != LK_FLOW_READ &&
            (flow != LK_FLOW_DONE || SSL_has_pending(s->ssl) == 1);
  return LK_FLOW_DONE;
}

static bool tls_has_more(const lk_transport *t)
{
  return ((const lk_tls *)(const void *)t)->more;
}

/* A session of a connection that was not shut down would not be resumed. One
 * that did not lead to a connection is not offered again: some servers refuse
 * it in that way. */
static void end_ssl(lk_tls *s)
{
  if (SSL_is_init_finished(s->ssl)) {
    SSL_set_quiet_shutdown(s->ssl, 1);
    (void)SSL_shutdown(s->ssl);
  } else {
    drop_session(s);
  }
  SSL_free(s->ssl);
  s->ssl = NULL;
  ERR_clear_error();
}

static void tls_close(lk_transport *t)
{
  lk_tls *s = tls_of(t);

  if (s->ssl != NULL)
    end_ssl(s);
  lk_transport_tcp()->close(t);
}

static void tls_end(lk_transport *t)
{
  lk_tls *s = tls_of(t);

  drop_context(s);
  BIO_meth_free(s->method);
  s->method = NULL;
}

const lk_transport_type *lk_transport_tls(void)
{
  static const lk_transport_type type = {
      .size = sizeof(lk_tls),
      .open = tls_open,
      .handshake = tls_handshake,
      .send = tls_send,
      .recv = tls_recv,
      .has_more = tls_has_more,
      .close = tls_close,
      .end = tls_end,
  };

  return &type;
}

int lk_tls_inspect(const lk_transport *t, lk_tls_connection *out, size_t size)
{
  const lk_tls *s = (const lk_tls *)(const void *)t;
  lk_tls_connection whole;
  size_t len = size < sizeof whole ? size : sizeof whole;

  memset(out, 0, size);
  if (s->ssl == NULL)
    return LK_ERR_STATE;
  lk__tls_describe(s->ssl, &whole);
  memcpy(out, &whole, len);
  return 0;
}

int lk_tls_check(const lk_tls_config *config, char *text, size_t size)
{
  lk_tls s = {.tcp.base.fd = -1};
  lk_tls_config *own;
  const char *wrong = NULL;
  int err = lk__tls_copy(&own, &lk__mem_libc, config, &wrong);

  if (size > 0)
    snprintf(text, size, "%s", wrong == NULL ? "" : wrong);
  if (err != 0)
    return err;
  s.config = *own;
  if (!load_context(&s)) {
    err = s.tcp.base.err;
    if (size > 0)
      snprintf(text, size, "%s", s.tcp.base.why);
  }
  tls_end(&s.tcp.base);
  lk__tls_free(&lk__mem_libc, own);
  return err;
}
