/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "net/address.h"
#include "net/tcp.h"
#include "net/tls_cache.h"
#include "net/tls_context.h"
#include "net/tls_error.h"
#include "net/transport.h"
#include "proto/engine/tls_config.h"

/* ---- the BIO ------------------------------------------------------------- */

/* Lets OpenSSL read and write the TCP connection. OpenSSL's own BIO for
   sockets is not used, because it may raise SIGPIPE. */
typedef struct lk_tls_bio {
  lk_transport *tcp;
  BIO_METHOD *method;  /* made for the first connection, and kept */
  unsigned reads_left; /* reads of the socket that this step may still do */
  bool drained;        /* this step has emptied the socket */
  bool received;       /* bytes have come from the server */
  bool ended;          /* the server has closed TCP */
  int sys_errno;       /* the error of the socket; 0: none */
} lk_tls_bio;

/* What a function of the BIO returns after a call of TCP: the number of bytes,
   0 at the end, or -1. `retry` is the flag that tells OpenSSL to try again. */
static int bio_result(BIO *bio, lk_flow flow, size_t n, int retry)
{
  lk_tls_bio *b = BIO_get_data(bio);

  BIO_clear_retry_flags(bio);
  if (n > 0)
    return (int)n;
  if (flow == LK_FLOW_READ || flow == LK_FLOW_WRITE)
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  if (flow == LK_FLOW_FAILED)
    b->sys_errno = b->tcp->sys_errno;
  b->ended = flow == LK_FLOW_END;
  return b->ended ? 0 : -1;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
  const lk_tls_bio *b = BIO_get_data(bio);
  size_t done;
  lk_flow flow = lk_transport_tcp()->send(b->tcp, bytes, (size_t)len, &done);

  return bio_result(bio, flow, done, BIO_FLAGS_WRITE);
}

/* After a read that did not fill its room the socket is empty. Further reads in
   the same step would be system calls in vain. */
static int bio_read(BIO *bio, char *room, int size)
{
  lk_tls_bio *b = BIO_get_data(bio);
  size_t got = 0;
  lk_flow flow = LK_FLOW_READ;

  if (!b->drained && b->reads_left > 0) {
    b->reads_left--;
    flow = lk_transport_tcp()->recv(b->tcp, room, (size_t)size, &got);
    b->drained = got > 0 && got < (size_t)size;
  }
  b->received = b->received || got > 0;
  return bio_result(bio, flow, got, BIO_FLAGS_READ);
}

/* OpenSSL asks for a flush, for which there is nothing to do, and whether the
   server has closed TCP. All other commands are refused by 0. */
static long bio_control(BIO *bio, int command, long number, void *at)
{
  const lk_tls_bio *b = BIO_get_data(bio);

  (void)number;
  (void)at;
  return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && b->ended);
}

static bool bio_make_method(lk_tls_bio *b)
{
  if (b->method != NULL)
    return true;
  b->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "latchkey");
  if (b->method == NULL)
    return false;
  BIO_meth_set_write(b->method, bio_write);
  BIO_meth_set_read(b->method, bio_read);
  BIO_meth_set_ctrl(b->method, bio_control);
  return true;
}

/* Make a BIO, which uses `b` until the BIO is freed. NULL: no memory. */
static BIO *tls_bio_new(lk_tls_bio *b)
{
  BIO *bio = bio_make_method(b) ? BIO_new(b->method) : NULL;

  if (bio == NULL)
    return NULL;
  BIO_set_data(bio, b);
  BIO_set_init(bio, 1);
  return bio;
}

/* Begin a connection, which uses `tcp`. */
static void tls_bio_reset(lk_tls_bio *b, lk_transport *tcp)
{
  *b = (lk_tls_bio){.tcp = tcp, .method = b->method};
}

/* Begin a step, in which the socket is read at most `reads` times. */
static void tls_bio_begin_step(lk_tls_bio *b, unsigned reads)
{
  b->drained = false;
  b->reads_left = reads;
}

static void tls_bio_free(lk_tls_bio *b)
{
  BIO_meth_free(b->method);
  b->method = NULL;
}

/* ---- the transport ------------------------------------------------------- */

/* OpenSSL on top of the TCP transport of tcp.c. */

enum {
  /* Reads of the socket in one step. Without a limit, a server that sends
     HelloRequests, KeyUpdates or tickets without a pause would keep the loop
     inside OpenSSL, since these messages are not passed on to the caller. */
  MAX_READS_PER_HANDSHAKE_STEP = 256, /* two reads for each record */
  MAX_READS_PER_TRANSFER_STEP = 8,    /* up to 16 KB of records for each read */
  MAX_BYTES_PER_SEND = 1024 * 1024,
};

typedef struct lk_tls {
  lk_tcp tcp;
  lk_tls_config config; /* borrowed; the client keeps it */
  lk_tls_cache cache;
  lk_tls_bio bio;

  /* The following belong to the present connection. */
  SSL *ssl; /* NULL: TCP is not connected yet */
  bool tcp_connected;
  bool has_more;     /* recv() is to be called again without waiting */
  bool ssl_failed;   /* after this OpenSSL must not be called for `ssl` */
  lk_flow recv_flow; /* END or FAILED: the next recv() returns this; DONE:
                        the next recv() reads */
  size_t waiting_record_len; /* the length of the data in a record that OpenSSL
                            could not send yet; 0: none */
  lk_tls_step_info info;
  /* The certificate must be for this name. */
  char name[LK_TLS_LONGEST_NAME + 1];
} lk_tls;

static lk_tls *tls_of(lk_transport *t)
{
  return (lk_tls *)(void *)t;
}

/* ---- callbacks of OpenSSL ------------------------------------------------ */

/* A TLS 1.3 server sends tickets after the handshake, each of which makes a new
   session. The last one is kept. */
static int on_tls_session(SSL *ssl, SSL_SESSION *session)
{
  lk_tls *s = SSL_get_app_data(ssl);

  lk__tls_cache_set_session(&s->cache, session, s->name);
  return 1; /* `session` is now owned by the cache */
}

/* Does not change the result of the verification. If the certificate is for
   another name, its names are kept for the message. */
static int on_tls_verdict(int ok, X509_STORE_CTX *verifying)
{
  SSL *ssl = X509_STORE_CTX_get_ex_data(verifying,
                                        SSL_get_ex_data_X509_STORE_CTX_idx());
  lk_tls *s = SSL_get_app_data(ssl);
  int verdict = X509_STORE_CTX_get_error(verifying);

  if (ok == 0 && (verdict == X509_V_ERR_HOSTNAME_MISMATCH ||
                  verdict == X509_V_ERR_IP_ADDRESS_MISMATCH))
    lk__tls_list_names(X509_STORE_CTX_get0_cert(verifying), s->info.names,
                       sizeof s->info.names);
  return ok;
}

/* Called when the server requests a certificate and the client has none. */
static int on_tls_certificate_request(SSL *ssl, X509 **certificate,
                                      EVP_PKEY **key)
{
  lk_tls *s = SSL_get_app_data(ssl);

  (void)certificate;
  (void)key;
  s->info.certificate_requested = true;
  return 0; /* no certificate is given */
}

static void tls_set_callbacks(SSL_CTX *context)
{
  SSL_CTX_sess_set_new_cb(context, on_tls_session);
  if (SSL_CTX_get0_certificate(context) == NULL)
    SSL_CTX_set_client_cert_cb(context, on_tls_certificate_request);
}

/* ---- connecting ---------------------------------------------------------- */

/* Set the name that the server's certificate must be for. Certificates hold
   names without a final dot, and addresses without an interface ("%eth0"), so
   both are cut off. */
static void tls_set_name(lk_tls *s, const char *host)
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
  s->info.name = s->name;
}

static lk_flow tls_open(lk_transport *t, const lk_endpoint *to)
{
  lk_tls *s = tls_of(t);
  lk_endpoint own;

  if (lk__transport_copy_endpoint(t, &own, to) != LK_FLOW_DONE)
    return LK_FLOW_FAILED;
  s->config = *own.tls;
  s->tcp_connected = false;
  s->has_more = false;
  s->ssl_failed = false;
  s->recv_flow = LK_FLOW_DONE;
  s->waiting_record_len = 0;
  s->info = (lk_tls_step_info){.name = s->name};
  t->cause = LK_TLS_OTHER;
  tls_bio_reset(&s->bio, t);
  tls_set_name(s, own.host);
  if (!lk__tls_cache_load(&s->cache, t, &s->config))
    return LK_FLOW_FAILED;
  tls_set_callbacks(s->cache.context);
  return lk_transport_tcp()->open(t, &own);
}

/* Verify the certificate for the name, and send the name (SNI). */
static bool tls_require_name(lk_tls *s)
{
  X509_VERIFY_PARAM *param = SSL_get0_param(s->ssl);
  lk_address literal;
  bool is_address = lk__address_parse(&literal, s->name);
  bool accepts_any_name = s->config.any_name || s->config.any_certificate;

  X509_VERIFY_PARAM_set_hostflags(param,
                                  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (!is_address && SSL_set_tlsext_host_name(s->ssl, s->name) != 1)
    return false;
  if (accepts_any_name)
    return true;
  return is_address ? X509_VERIFY_PARAM_set1_ip_asc(param, s->name) == 1
                    : SSL_set1_host(s->ssl, s->name) == 1;
}

static lk_flow tls_begin(lk_tls *s)
{
  s->ssl = SSL_new(s->cache.context);
  BIO *bio = s->ssl == NULL ? NULL : tls_bio_new(&s->bio);

  if (bio == NULL) {
    lk__tls_error_set_library(&s->tcp.base, "cannot begin");
    return LK_FLOW_FAILED;
  }
  SSL_set_bio(s->ssl, bio, bio);
  SSL_set_app_data(s->ssl, s);
  SSL_set_verify(s->ssl, SSL_CTX_get_verify_mode(s->cache.context),
                 on_tls_verdict);
  SSL_set_connect_state(s->ssl);
  s->info.has_certificate = SSL_get_certificate(s->ssl) != NULL;
  if (!tls_require_name(s)) {
    lk__tls_error_set_library(&s->tcp.base, "cannot set the server's name");
    return LK_FLOW_FAILED;
  }
  lk__tls_cache_offer_session(&s->cache, s->ssl, s->name);
  return LK_FLOW_DONE;
}

/* Errors that other users of OpenSSL have left on this thread are cleared, as
   SSL_get_error() would take them for errors of this connection. */
static void tls_begin_step(lk_tls *s)
{
  /* tls_handshake() switches read-ahead on at its end. */
  bool handshake_done = SSL_get_read_ahead(s->ssl) == 1;

  ERR_clear_error();
  tls_bio_begin_step(&s->bio, handshake_done ? MAX_READS_PER_TRANSFER_STEP
                                             : MAX_READS_PER_HANDSHAKE_STEP);
}

/* What to do after a call of OpenSSL that returned `result`, which is no
   success. Sets the error of the transport if the connection has failed. */
static lk_flow tls_flow_of(lk_tls *s, int result)
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
  s->ssl_failed = error == SSL_ERROR_SSL;
  s->info.received = s->bio.received;
  s->info.sys_errno = s->bio.sys_errno;
  lk__tls_error_set_step(&s->tcp.base, s->ssl, error, &s->info);
  return LK_FLOW_FAILED;
}

static lk_flow tls_handshake(lk_transport *t)
{
  lk_tls *s = tls_of(t);

  if (!s->tcp_connected) {
    lk_flow flow = lk_transport_tcp()->handshake(t);

    if (flow != LK_FLOW_DONE)
      return flow;
    s->tcp_connected = true;
    flow = tls_begin(s);
    if (flow != LK_FLOW_DONE)
      return flow;
  }
  tls_begin_step(s);
  int result = SSL_do_handshake(s->ssl);

  if (result != 1)
    return tls_flow_of(s, result);
  if (SSL_session_reused(s->ssl) == 0)
    s->cache.verified_s = time(NULL);
  /* A TLS 1.2 server may send a new ticket while it resumes a session. The old
     session cannot be resumed again then, and OpenSSL does not call
     on_tls_session() for the new one. */
  else if (SSL_version(s->ssl) < TLS1_3_VERSION)
    lk__tls_cache_set_session(&s->cache, SSL_get1_session(s->ssl), s->name);
  /* With read-ahead during the handshake, OpenSSL could also read records that
     follow the handshake. The loop would not notice them, since the descriptor
     is not readable any more. */
  SSL_set_read_ahead(s->ssl, 1);
  return LK_FLOW_DONE;
}

/* ---- sending and receiving ----------------------------------------------- */

/* Send the bytes of one record. If OpenSSL could not send a record, the next
   call passes exactly the bytes of that record again. With more bytes OpenSSL
   would go on with a second record. If that had to wait, too, OpenSSL would not
   report that the first was sent, and a request that the server may execute
   would count as not sent. */
static lk_flow tls_send_record(lk_tls *s, const unsigned char *at, size_t len,
                               size_t *done)
{
  size_t max_len = s->waiting_record_len > 0 ? s->waiting_record_len
                                             : (size_t)SSL3_RT_MAX_PLAIN_LENGTH;

  ERR_clear_error();
  s->waiting_record_len = len < max_len ? len : max_len;
  int result = SSL_write_ex(s->ssl, at, s->waiting_record_len, done);

  if (result != 1)
    return tls_flow_of(s, result);
  s->waiting_record_len = 0;
  return LK_FLOW_DONE;
}

static lk_flow tls_send(lk_transport *t, const void *bytes, size_t len,
                        size_t *done)
{
  lk_tls *s = tls_of(t);
  const unsigned char *at = bytes;
  lk_flow flow = LK_FLOW_DONE;

  *done = 0;
  if (s->ssl_failed)
    return LK_FLOW_FAILED;
  tls_begin_step(s);
  while (flow == LK_FLOW_DONE && *done < len) {
    size_t sent = 0;

    if (*done >= MAX_BYTES_PER_SEND) /* first, the loop serves others */
      return LK_FLOW_WRITE;
    flow = tls_send_record(s, at + *done, len - *done, &sent);
    *done += sent;
  }
  return flow;
}

static lk_flow tls_recv(lk_transport *t, void *room, size_t size, size_t *got)
{
  lk_tls *s = tls_of(t);
  unsigned char *at = room;
  lk_flow flow = s->ssl_failed ? LK_FLOW_FAILED : s->recv_flow;

  *got = 0;
  s->has_more = false;
  tls_begin_step(s);
  while (flow == LK_FLOW_DONE && *got < size) {
    size_t received = 0;

    ERR_clear_error();
    int result = SSL_read_ex(s->ssl, at + *got, size - *got, &received);

    *got += received;
    if (result != 1)
      flow = tls_flow_of(s, result);
    else if (s->bio.drained && SSL_has_pending(s->ssl) == 0)
      flow = LK_FLOW_READ;
  }
  if (*got == 0)
    return flow;
  /* The caller gets the bytes first; an end or a failure behind them is
     returned by the next call. */
  bool has_ended = flow == LK_FLOW_END || flow == LK_FLOW_FAILED;
  bool has_to_send =
      flow == LK_FLOW_WRITE; /* the next call returns this, too */
  bool has_bytes = flow == LK_FLOW_DONE && SSL_has_pending(s->ssl) == 1;

  s->recv_flow = has_ended ? flow : LK_FLOW_DONE;
  s->has_more = has_ended || has_to_send || has_bytes;
  return LK_FLOW_DONE;
}

static bool tls_has_more(const lk_transport *t)
{
  return ((const lk_tls *)(const void *)t)->has_more;
}

/* ---- queries ------------------------------------------------------------- */

int lk_tls_inspect(const lk_transport *t, lk_tls_connection *out, size_t size)
{
  const lk_tls *s = (const lk_tls *)(const void *)t;
  lk_tls_connection whole; /* the caller's struct may be of another version */
  size_t len = size < sizeof whole ? size : sizeof whole;

  memset(out, 0, size);
  if (s->ssl == NULL)
    return LK_ERR_STATE;
  lk__tls_describe(s->ssl, &whole);
  memcpy(out, &whole, len);
  return 0;
}

/* ---- end ----------------------------------------------------------------- */

/* SSL_shutdown() is called because OpenSSL does not resume the session of a
   connection that was not shut down. It sends nothing here. A session is
   dropped if the handshake did not succeed: some servers refuse to resume a
   session by closing the connection, and would do so each time. */
static void tls_end_connection(lk_tls *s)
{
  if (SSL_is_init_finished(s->ssl)) {
    SSL_set_quiet_shutdown(s->ssl, 1);
    (void)SSL_shutdown(s->ssl);
  } else {
    lk__tls_cache_drop_session(&s->cache);
  }
  SSL_free(s->ssl);
  s->ssl = NULL;
  ERR_clear_error();
}

static void tls_close(lk_transport *t)
{
  lk_tls *s = tls_of(t);

  if (s->ssl != NULL)
    tls_end_connection(s);
  lk_transport_tcp()->close(t);
}

static void tls_end(lk_transport *t)
{
  lk_tls *s = tls_of(t);

  lk__tls_cache_clear(&s->cache);
  tls_bio_free(&s->bio);
}

/* ---- the table of functions ---------------------------------------------- */

const lk_transport_type *lk_transport_tls(void)
{
  static const lk_transport_type type = {
      .size = sizeof type,
      .object_size = sizeof(lk_tls),
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
