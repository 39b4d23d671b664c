/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * What a TLS peer may send. Bit 0 of the first byte selects one of two peers:
 *
 * - 0: the input is everything that the peer sends, as chunks with one byte of
 *   length before each.
 * - 1: an OpenSSL server in this process, and an attacker between it and the
 *   client. The rest of the input is the attacker's program: see enum step.
 *
 * Oracle: the client connects only to a server with the right certificate. The
 * first peer cannot have one, so its handshake fails. The client receives
 * exactly what the server sent, and all of it if the attacker changed nothing.
 * No step reads without end, or asks for more while bytes are held back.
 *
 * The bytes go through memory: this program has its own TCP transport. OpenSSL
 * draws random bytes, so two runs of one input differ.
 */

#include "target.h"

#include "base/buf.h"
#include "net/tcp.h"
#include "support/tls_server.h"

#include <latchkey/client.h>

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>

enum {
  MOST_IDLE = 1000, /* steps in a row without progress */
  MOST_READS = 256, /* in a step */
  FROM_CLIENT = 300,
};

static unsigned char pattern(size_t i)
{
  return (unsigned char)(i * 31 + i / 251);
}

static bool is_pattern(const unsigned char *at, size_t len, size_t from)
{
  for (size_t i = 0; i < len; i++) {
    if (at[i] != pattern(from + i))
      return false;
  }
  return true;
}

static void append(lk_buf *b, const void *bytes, size_t len)
{
  must(len == 0 || lk__buf_append(b, bytes, len));
}

/* ---- TCP in memory ------------------------------------------------------ */

static struct {
  lk_buf to_client, to_server;
  bool ended;      /* `to_client` ends: no more bytes follow */
  bool reset;      /* `to_client` ends with a reset */
  size_t most;     /* maximum bytes of a read */
  size_t room;     /* bytes that the client may write before it has to wait */
  unsigned reads;  /* reads in the current step */
  lk_flow blocked; /* why the last call did not complete; or DONE */
} wire;

static lk_flow wire_open(lk_transport *t, const lk_endpoint *to)
{
  (void)t;
  (void)to;
  return LK_FLOW_WRITE;
}

static lk_flow wire_handshake(lk_transport *t)
{
  (void)t;
  return LK_FLOW_DONE;
}

static lk_flow wire_send(lk_transport *t, const void *bytes, size_t len,
                         size_t *done)
{
  *done = 0;
  if (wire.reset)
    return lk__transport_fail(t, LK_ERR_CONNECTION_LOSS, "send", EPIPE);
  *done = len < wire.room ? len : wire.room;
  wire.room -= *done;
  append(&wire.to_server, bytes, *done);
  wire.blocked = *done < len ? LK_FLOW_WRITE : LK_FLOW_DONE;
  return wire.blocked;
}

static lk_flow wire_recv(lk_transport *t, void *room, size_t size, size_t *got)
{
  size_t len = lk__buf_len(&wire.to_client);

  must(++wire.reads <= MOST_READS);
  len = len < size ? len : size;
  *got = len < wire.most ? len : wire.most;
  wire.blocked = LK_FLOW_DONE;
  if (*got == 0 && wire.reset)
    return lk__transport_fail(t, LK_ERR_CONNECTION_LOSS, "receive", ECONNRESET);
  if (*got == 0 && wire.ended)
    return LK_FLOW_END;
  if (*got == 0) {
    wire.blocked = LK_FLOW_READ;
    return LK_FLOW_READ;
  }
  memcpy(room, lk__buf_bytes(&wire.to_client), *got);
  lk__buf_consume(&wire.to_client, *got);
  return LK_FLOW_DONE;
}

static void wire_close(lk_transport *t)
{
  (void)t;
}

/* Replaces that of the library. */
const lk_transport_type *lk_transport_tcp(void)
{
  static const lk_transport_type type = {
      .size = sizeof type,
      .object_size = sizeof(lk_tcp),
      .open = wire_open,
      .handshake = wire_handshake,
      .send = wire_send,
      .recv = wire_recv,
      .close = wire_close,
  };

  return &type;
}

static void wire_reset(void)
{
  lk__buf_free(&wire.to_client);
  lk__buf_free(&wire.to_server);
  wire.ended = wire.reset = false;
  wire.most = wire.room = SIZE_MAX;
}

/* ---- the client --------------------------------------------------------- */

static struct {
  lk_transport *t;
  lk_tls_config config;
  lk_flow flow; /* of the last step */
  bool connected;
  size_t sent;
  size_t received;
  int idle; /* steps since the last progress */
} client;

static void client_check_failure(void)
{
  const char *why = client.t->why;
  size_t len = strnlen(why, sizeof client.t->why);

  must(client.t->err < 0 && len > 0 && len < sizeof client.t->why);
  for (size_t i = 0; i < len; i++)
    must(why[i] >= ' ' && why[i] < 0x7f);
}

/* What must hold after every step. */
static void client_check(lk_flow flow)
{
  client.flow = flow;
  if (flow == LK_FLOW_WRITE)
    must(wire.blocked == LK_FLOW_WRITE || !client.connected);
  if (flow == LK_FLOW_FAILED)
    client_check_failure();
}

static void client_send(const lk_transport_type *type)
{
  unsigned char bytes[FROM_CLIENT];
  size_t done;

  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = pattern(i);
  client_check(type->send(client.t, bytes + client.sent,
                          sizeof bytes - client.sent, &done));
  must(client.flow != LK_FLOW_END && done <= sizeof bytes - client.sent);
  client.sent += done;
}

static void client_receive(const lk_transport_type *type)
{
  unsigned char room[1000];
  size_t got;

  client_check(type->recv(client.t, room, sizeof room, &got));
  must((client.flow == LK_FLOW_DONE) == (got > 0) && got <= sizeof room);
  must(is_pattern(room, got, client.received));
  client.received += got;
}

/* One step, or two once it is connected. */
static void client_step(void)
{
  const lk_transport_type *type = lk_transport_tls();

  wire.reads = 0;
  if (!client.connected) {
    client_check(type->handshake(client.t));
    must(client.flow != LK_FLOW_END);
    client.connected = client.flow == LK_FLOW_DONE;
    return;
  }
  if (client.sent < FROM_CLIENT)
    client_send(type);
  wire.reads = 0;
  /* a read is allowed after a failed send() */
  client_receive(type);
}

/* Among MOST_IDLE steps in a row at least one must read something. */
static void client_step_with_progress(void)
{
  size_t before = lk__buf_len(&wire.to_client);

  client_step();
  client.idle = lk__buf_len(&wire.to_client) < before ? 0 : client.idle + 1;
  must(client.idle < MOST_IDLE);
}

static bool client_over(void)
{
  return client.flow == LK_FLOW_FAILED || client.flow == LK_FLOW_END;
}

static void client_open(void)
{
  static lk_address address;
  const lk_endpoint to = {.size = sizeof to,
                          .address = &address.any,
                          .address_len = sizeof address.v4,
                          .host = "zk.test",
                          .tls = &client.config};

  must(lk__address_parse(&address, "127.0.0.1"));
  client.connected = false;
  client.idle = 0;
  client.sent = client.received = 0;
  client_check(lk_transport_tls()->open(client.t, &to));
  must(client.flow == LK_FLOW_WRITE);
}

static void client_new(void)
{
  client.t = calloc(1, lk_transport_tls()->object_size);
  must(client.t != NULL);
  client.t->fd = -1;
}

static void client_free(void)
{
  lk_transport_tls()->end(client.t);
  free(client.t);
}

/* ---- the input ---------------------------------------------------------- */

typedef struct script {
  const uint8_t *at;
  size_t left;
} script;

static uint8_t script_byte(script *s)
{
  if (s->left == 0)
    return 0;
  s->left--;
  return *s->at++;
}

static size_t script_bytes(script *s, size_t most, const uint8_t **out)
{
  size_t len = most < s->left ? most : s->left;

  *out = s->at;
  s->at += len;
  s->left -= len;
  return len;
}

/* ---- a peer that sends the input ---------------------------------------- */

static void run_raw(script *s)
{
  wire_reset();
  client_open();
  while (!client_over()) {
    const uint8_t *bytes;

    client_step_with_progress();
    must(client.flow != LK_FLOW_DONE);
    if (client.flow != LK_FLOW_READ || lk__buf_len(&wire.to_client) > 0)
      continue;
    wire.ended = s->left == 0;
    size_t len = script_bytes(s, script_byte(s), &bytes);

    append(&wire.to_client, bytes, len);
  }
  lk_transport_tls()->close(client.t);
}

/* ---- an OpenSSL server -------------------------------------------------- */

/* The certificates of the server. */
enum { RIGHT, WRONG_NAME, WRONG_CA, EXPIRED, IDENTITIES };

static struct {
  SSL_CTX *contexts[IDENTITIES];
  SSL *ssl;
  size_t sent, received;
  bool closed; /* close_notify was sent, or an error occurred */
} server;

static void server_open(int identity, bool old, bool asks)
{
  server.ssl = SSL_new(server.contexts[identity]);
  BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

  must(server.ssl != NULL && in != NULL && out != NULL);
  SSL_set_bio(server.ssl, in, out);
  SSL_set_accept_state(server.ssl);
  if (old)
    SSL_set_max_proto_version(server.ssl, TLS1_2_VERSION);
  if (asks)
    SSL_set_verify(server.ssl, SSL_VERIFY_PEER, NULL);
  server.sent = server.received = 0;
  server.closed = false;
}

static bool server_ready(void)
{
  return SSL_is_init_finished(server.ssl) && !server.closed;
}

static void server_receive(void)
{
  unsigned char room[1000];
  size_t got = 0;

  while (SSL_read_ex(server.ssl, room, sizeof room, &got) == 1) {
    must(is_pattern(room, got, server.received));
    server.received += got;
  }
}

/* Processes all that the client has sent. */
static void server_step(void)
{
  size_t len = lk__buf_len(&wire.to_server);

  ERR_clear_error();
  if (len > 0)
    must(BIO_write(SSL_get_rbio(server.ssl), lk__buf_bytes(&wire.to_server),
                   (int)len) == (int)len);
  lk__buf_consume(&wire.to_server, len);
  if (!server.closed) {
    if (!SSL_is_init_finished(server.ssl))
      (void)SSL_do_handshake(server.ssl);
    if (SSL_is_init_finished(server.ssl))
      server_receive();
  }
  ERR_clear_error();
}

static void server_send(size_t len)
{
  unsigned char bytes[4096];
  size_t n = 0;

  must(len <= sizeof bytes);
  for (size_t i = 0; i < len; i++)
    bytes[i] = pattern(server.sent + i);
  if (SSL_write_ex(server.ssl, bytes, len, &n) == 1)
    server.sent += n;
  ERR_clear_error();
}

enum { NEW_KEYS, TICKET, RENEGOTIATION, CLOSE, BEHAVIOURS };

static void server_behave(int how)
{
  switch (how) {
  case NEW_KEYS:
    (void)SSL_key_update(server.ssl, SSL_KEY_UPDATE_REQUESTED);
    (void)SSL_do_handshake(server.ssl);
    break;
  case TICKET:
    (void)SSL_new_session_ticket(server.ssl);
    (void)SSL_do_handshake(server.ssl);
    break;
  case RENEGOTIATION:
    (void)SSL_renegotiate(server.ssl);
    (void)SSL_do_handshake(server.ssl);
    break;
  default:
    (void)SSL_shutdown(server.ssl);
    server.closed = true;
    break;
  }
  ERR_clear_error();
}

/* ---- the attacker between them ------------------------------------------ */

/* A step: the lower three bits of a byte; the upper ones are a number. */
enum step {
  PASS,   /* pass eight times this number of bytes */
  FLIP,   /* change a byte with the next byte of the input */
  INSERT, /* insert this number of bytes of the input */
  DROP,   /* drop this number of bytes */
  END,    /* end the connection, by a reset if the number is odd */
  SEND,   /* the server sends a hundred times this number of bytes */
  BEHAVE, /* the server behaves differently */
  LIMIT,  /* limit the bytes of a read, if the number is odd; else of a write */
};

static struct {
  lk_buf held;    /* received from the server, not passed on */
  size_t passing; /* bytes of `held` that may be passed */
  bool tampered;  /* bytes were changed */
  bool narrow;    /* the client has to wait for space to write */
  bool new_keys;  /* the server requests new keys */
} attacker;

static void attacker_pass(size_t len)
{
  append(&wire.to_client, lk__buf_bytes(&attacker.held), len);
  lk__buf_consume(&attacker.held, len);
}

static void attacker_pass_decided(void)
{
  size_t len = lk__buf_len(&attacker.held);

  len = len < attacker.passing ? len : attacker.passing;
  attacker_pass(len);
  attacker.passing -= len;
}

static void attacker_cut(bool reset)
{
  attacker.tampered = true;
  wire.ended = !reset;
  wire.reset = reset;
}

static void attacker_limit(size_t number)
{
  if (number % 2 == 1)
    wire.most = number;
  else
    wire.room = number;
  attacker.narrow = attacker.narrow || number % 2 == 0;
}

static void attacker_flip(uint8_t with)
{
  const unsigned char *held = lk__buf_bytes(&attacker.held);

  if (held == NULL)
    return;
  unsigned char byte = held[0] ^ with;

  attacker.tampered = attacker.tampered || with != 0;
  append(&wire.to_client, &byte, 1);
  lk__buf_consume(&attacker.held, 1);
}

static void attacker_insert(script *s, size_t number)
{
  const uint8_t *bytes;
  size_t len = script_bytes(s, number, &bytes);

  attacker.tampered = attacker.tampered || len > 0;
  append(&wire.to_client, bytes, len);
}

static void attacker_drop(size_t number)
{
  size_t len = lk__buf_len(&attacker.held);

  attacker.tampered = true;
  lk__buf_consume(&attacker.held, number < len ? number : len);
}

static void attacker_run_step(script *s)
{
  uint8_t byte = script_byte(s);
  size_t number = byte >> 3;

  switch ((enum step)(byte & 7)) {
  case PASS: attacker.passing = 8 * number + 1; break;
  case FLIP:
    if (lk__buf_len(&attacker.held) > 0)
      attacker_flip(script_byte(s));
    break;
  case INSERT: attacker_insert(s, number); break;
  case DROP: attacker_drop(number + 1); break;
  case END: attacker_cut(number % 2 == 1); break;
  case SEND:
    if (server_ready())
      server_send(100 * number + 1);
    break;
  case BEHAVE:
    attacker.new_keys = attacker.new_keys || number % BEHAVIOURS == NEW_KEYS;
    /* the server treats the refusal of a renegotiation as an error */
    attacker.tampered =
        attacker.tampered || number % BEHAVIOURS == RENEGOTIATION;
    if (server_ready())
      server_behave((int)(number % BEHAVIOURS));
    break;
  case LIMIT: attacker_limit(number); break;
  }
}

static void attacker_take_from_server(void)
{
  char room[4096];
  int n;

  server_step();
  while ((n = BIO_read(SSL_get_wbio(server.ssl), room, sizeof room)) > 0)
    append(&attacker.held, room, (size_t)n);
}

/* Called when the client waits. */
static void attacker_turn(script *s)
{
  wire.room = wire.room > SIZE_MAX / 2 ? SIZE_MAX : 64;
  attacker_take_from_server();
  attacker_pass_decided();
  while (lk__buf_len(&wire.to_client) == 0 && s->left > 0 && !wire.ended &&
         !wire.reset && attacker.passing == 0) {
    attacker_run_step(s);
    attacker_take_from_server();
    attacker_pass_decided();
  }
  if (lk__buf_len(&wire.to_client) > 0 || s->left > 0)
    return;
  attacker.passing = 0;
  attacker_pass(lk__buf_len(&attacker.held));
  if (lk__buf_len(&wire.to_client) == 0 && client.flow == LK_FLOW_READ &&
      (!client.connected || client.sent == FROM_CLIENT))
    wire.ended = true;
}

/* Bytes that are decided on but have not arrived are not waited for: neither
 * side would continue. */
static void attacker_turn_or_give_up(script *s)
{
  attacker_turn(s);
  if (lk__buf_len(&wire.to_client) == 0 && lk__buf_len(&attacker.held) == 0)
    attacker.passing = 0;
}

/* The client wants to read, so it has returned everything that arrived. */
static void check_all_received(void)
{
  if (client.connected && !attacker.tampered && !attacker.new_keys &&
      lk__buf_len(&attacker.held) == 0 && lk__buf_len(&wire.to_client) == 0)
    must(client.received == server.sent);
}

static void run_attacked(script *s, int identity, uint8_t options)
{
  bool right =
      identity == RIGHT || (identity == WRONG_NAME && client.config.any_name);

  wire_reset();
  lk__buf_free(&attacker.held);
  attacker.passing = 0;
  attacker.tampered = attacker.narrow = attacker.new_keys = false;
  server_open(identity, (options & 4) != 0, (options & 8) != 0);
  client_open();
  while (!client_over()) {
    client_step_with_progress();
    must(!client.connected || right);
    if (client.flow == LK_FLOW_READ)
      check_all_received();
    if (client.flow == LK_FLOW_READ || client.flow == LK_FLOW_WRITE)
      attacker_turn_or_give_up(s);
  }
  must(client.received <= server.sent);
  must(right || client.flow == LK_FLOW_FAILED);
  /* OpenSSL 3.0 cannot answer by new keys while a record waits for room. */
  if (attacker.narrow && attacker.new_keys)
    attacker.tampered = true;
  if (right && !attacker.tampered)
    must(client.flow == LK_FLOW_END && client.received == server.sent &&
         (server.closed || server.received == FROM_CLIENT));
  lk_transport_tls()->close(client.t);
  SSL_free(server.ssl);
}

/* ---- all of it ---------------------------------------------------------- */

static void start_server(int which, const tls_identity *own)
{
  static const unsigned char label[] = "latchkey";
  SSL_CTX *c = SSL_CTX_new(TLS_server_method());

  must(c != NULL && SSL_CTX_use_certificate(c, own->certificate) == 1 &&
       SSL_CTX_use_PrivateKey(c, own->key) == 1 &&
       SSL_CTX_set_session_id_context(c, label, sizeof label) == 1);
  server.contexts[which] = c;
}

static void start_all_servers(void)
{
  const tls_wish authority = {.ca = true, .from_days = -60, .days = 90};
  const tls_wish right = {.names = "DNS:zk.test"};
  const tls_wish wrong = {.names = "DNS:other.test"};
  const tls_wish old = {.names = "DNS:zk.test", .from_days = -9, .days = 8};
  tls_identity ca = tls_issue(NULL, "CA", &authority);
  tls_identity other = tls_issue(NULL, "another CA", &authority);
  tls_identity own[IDENTITIES] = {
      [RIGHT] = tls_issue(&ca, "server", &right),
      [WRONG_NAME] = tls_issue(&ca, "server", &wrong),
      [WRONG_CA] = tls_issue(&other, "server", &right),
      [EXPIRED] = tls_issue(&ca, "server", &old),
  };
  static char *pem;

  wire.to_client.mem = wire.to_server.mem = attacker.held.mem = &lk__mem_libc;
  for (int i = 0; i < IDENTITIES; i++) {
    start_server(i, &own[i]);
    tls_identity_free(&own[i]);
  }
  pem = tls_pem_of_certificate(&ca);
  tls_identity_free(&ca);
  tls_identity_free(&other);
  client.config =
      (lk_tls_config){.size = sizeof client.config, .ca_pem = lk_text(pem)};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  script s = {data, size};
  uint8_t options = script_byte(&s);

  if (client.config.size == 0)
    start_all_servers();
  client_new();
  client.config.any_name = (options & 64) != 0;
  if ((options & 1) == 0) {
    run_raw(&s);
  } else {
    run_attacked(&s, (options >> 4) % IDENTITIES, options);
    if ((options & 2) != 0) /* perhaps the session is resumed */
      run_attacked(&s, (options >> 4) % IDENTITIES, options);
  }
  client_free();
  wire_reset();
  lk__buf_free(&attacker.held);
  return 0;
}
