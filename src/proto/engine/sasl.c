/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/sasl.h"

#include <errno.h>
#include <stdio.h>

#include "base/sized_struct.h"
#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/connection.h"
#include "proto/engine/invariants.h"
#include "proto/engine/requests.h"
#include "proto/engine/session.h"
#include "proto/wire/opcode.h"
#include "sasl/password.h"

/* ---- creation ------------------------------------------------------------ */

static size_t text_size(const char *text)
{
  return text == NULL ? 0 : strlen(text) + 1;
}

/* Copy the text to `*room`, which moves behind the copy. NULL stays NULL. */
static const char *copy_text(char **room, const char *text)
{
  size_t size = text_size(text);
  char *copy = *room;

  if (text == NULL)
    return NULL;
  memcpy(copy, text, size);
  *room += size;
  return copy;
}

/* Copy the mechanism that `config` selects; without one, DIGEST-MD5. */
static int find_mechanism(lk_client *c, lk_sasl_mechanism *out,
                          const lk_sasl_config *config)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_sasl_mechanism);
  const lk_sasl_mechanism *from = config->mechanism;

  if (from == NULL)
    from = lk_sasl_digest_md5();
  if (from == NULL) {
    lk__client_logf(c, LK_LOG_ERROR, LK_ERR_UNIMPLEMENTED,
                    "SASL DIGEST-MD5: this library was built without libgsasl");
    return LK_ERR_UNIMPLEMENTED;
  }
  int err = lk__client_copy_options(c, &what, out, from);

  if (err != 0)
    return err;
  if (out->name != NULL && out->start != NULL && out->step != NULL &&
      out->end != NULL)
    return 0;
  lk__client_logf(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT,
                  "lk_sasl_mechanism: a function or the name is missing");
  return LK_ERR_BAD_ARGUMENT;
}

static const char *sasl_complaint(const lk_sasl_config *config)
{
  int sources = (config->password_file != NULL) + (config->password_fd != 0) +
                (config->password != NULL);

  if (sources > 1)
    return "lk_sasl_config has more than one source of a password";
  if (config->password_fd < 0)
    return "lk_sasl_config.password_fd is negative";
  if (config->mechanism == NULL && (config->user == NULL || sources == 0))
    return "lk_sasl_config has no user or no password";
  return NULL;
}

static int copy_config(lk_client *c, lk_sasl_config *out,
                       const lk_sasl_config *from)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_sasl_config);
  int err = lk__client_copy_options(c, &what, out, from);
  const char *wrong = err == 0 ? sasl_complaint(out) : NULL;

  if (wrong == NULL)
    return err;
  lk__client_logf(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, "%s", wrong);
  return LK_ERR_BAD_ARGUMENT;
}

static const char *password_error_text(int err)
{
  switch (err) {
  case LK_ERR_SYSTEM: return strerror(errno);
  case LK_ERR_TOO_BIG: return "the first line is too long for a password";
  default: return "the first line is empty";
  }
}

/* Read the password into s->stored, if it is in a file or comes from a
 * descriptor. */
static int store_password(lk_client *c, const lk_sasl_config *config)
{
  lk_sasl *s = c->sasl;

  if (config->password_file == NULL && config->password_fd == 0)
    return 0;
  s->stored = lk__mem_new(&c->mem, LK_SASL_PASSWORD_MAX);
  if (s->stored == NULL)
    return LK_ERR_NO_MEMORY;
  int result = lk__password_read(s->stored, LK_SASL_PASSWORD_MAX,
                                 config->password_file, config->password_fd);

  if (result >= 0) {
    s->stored_len = (size_t)result;
    return 0;
  }
  int error = errno; /* the log may change errno */

  if (config->password_file != NULL)
    lk__client_logf(c, LK_LOG_ERROR, result,
                    "cannot read a password from %s: %s", config->password_file,
                    password_error_text(result));
  else
    lk__client_logf(c, LK_LOG_ERROR, result,
                    "cannot read a password from descriptor %d: %s",
                    config->password_fd, password_error_text(result));
  errno = error;
  return result == LK_ERR_SYSTEM ? result : LK_ERR_BAD_ARGUMENT;
}

static lk_sasl *new_sasl(const lk_mem *mem, const lk_sasl_config *config,
                         const lk_sasl_mechanism *mechanism)
{
  const char *service = config->service == NULL ? "zookeeper" : config->service;
  const char *host = config->host == NULL ? "zk-sasl-md5" : config->host;
  lk_sasl *s = lk__mem_new(mem, sizeof *s + text_size(config->user) +
                                    text_size(service) + text_size(host));

  if (s == NULL)
    return NULL;
  char *room = s->texts;

  s->user = copy_text(&room, config->user);
  s->service = copy_text(&room, service);
  s->host = copy_text(&room, host);
  s->mechanism = *mechanism;
  s->mechanism_arg = config->mechanism_arg;
  s->password = config->password;
  s->password_arg = config->password_arg;
  return s;
}

int lk__sasl_new(lk_client *c, const lk_sasl_config *config)
{
  lk_sasl_mechanism mechanism;
  lk_sasl_config own;
  int err = copy_config(c, &own, config);

  if (err == 0)
    err = find_mechanism(c, &mechanism, &own);
  if (err != 0)
    return err;
  c->sasl = new_sasl(&c->mem, &own, &mechanism);
  if (c->sasl == NULL)
    return LK_ERR_NO_MEMORY;
  err = store_password(c, &own);
  if (err != 0) {
    int error = errno; /* the caller reads it after LK_ERR_SYSTEM */

    lk__sasl_free(c);
    errno = error;
  }
  return err;
}

/* ---- the end of an exchange ---------------------------------------------- */

void lk__sasl_drop(lk_client *c)
{
  lk_sasl *s = c->sasl;

  if (s == NULL || !s->must_end)
    return;
  s->must_end = false;
  s->mechanism.end(s->state);
  lk__mem_wipe(s->secret, sizeof s->secret);
}

/* The step at which an exchange failed. */
typedef enum lk_sasl_step {
  LK_SASL_START,      /* there is no password, or the mechanism cannot start */
  LK_SASL_CHALLENGE,  /* the mechanism cannot answer the server's token */
  LK_SASL_MECHANISM,  /* the server refuses the mechanism, since the client has
                         not sent credentials yet */
  LK_SASL_REFUSED,    /* the server refuses the client's credentials */
  LK_SASL_SERVER,     /* the server has not proven that it is authentic */
  LK_SASL_UNSUPPORTED /* the server does not support SASL */
} lk_sasl_step;

static const char *step_text(lk_sasl_step step)
{
  switch (step) {
  case LK_SASL_START: return "cannot start";
  case LK_SASL_CHALLENGE: return "cannot answer the challenge";
  case LK_SASL_MECHANISM:
    return "the server refuses the mechanism, as in FIPS mode";
  case LK_SASL_REFUSED: return "the server refuses user or password";
  case LK_SASL_SERVER: return "the server is not authentic";
  case LK_SASL_UNSUPPORTED: return "the server does not support SASL";
  }
  return "";
}

/* The exchange has failed at `step`: end the client for good. A lack of memory
 * says nothing about the credentials and ends only the connection. */
static void sasl_fail(lk_client *c, lk_sasl_step step, int err, const char *why)
{
  char text[256];

  if (err == LK_ERR_NO_MEMORY) {
    lk__engine_connection_end(c, err, NULL);
    return;
  }
  snprintf(text, sizeof text, "SASL %s: %s%s%s", c->sasl->mechanism.name,
           step_text(step), why == NULL ? "" : ": ", why == NULL ? "" : why);
  lk__session_refused(c, LK_ERR_AUTH_FAILED, text);
}

static void sasl_succeed(lk_client *c)
{
  lk_handshake welcome = c->sasl->welcome;

  lk__sasl_drop(c);
  lk__client_logf(c, LK_LOG_INFO, 0, "%s: authenticated by SASL %s",
                  c->connection.server, c->sasl->mechanism.name);
  lk__session_establish(c, &welcome);
}

/* ---- tokens -------------------------------------------------------------- */

enum { INT_LEN = 4 }; /* bytes of an int, such as a length field */

/* Send a token. A null token is sent as an empty one, since servers close the
 * connection at null. false: there is no memory. */
static bool send_token(lk_client *c, lk_bytes token)
{
  lk_sasl *s = c->sasl;
  int32_t xid = lk__request_next_xid(c);
  struct lk_request_header header = {xid, LK_OPCODE_SASL};
  struct lk_sasl_request request = {token.at == NULL ? lk_text("") : token};
  size_t header_len = 2 * INT_LEN;
  size_t len = header_len + INT_LEN + token.len; /* behind the length field */
  lk_writer w;

  if (!lk__buf_reserve(&c->output.bytes, INT_LEN + len))
    return false;
  lk__writer_init(&w, lk__buf_room(&c->output.bytes), INT_LEN + len);
  lk__writer_int(&w, (int32_t)len);
  lk__record_encode(&lk__request_header_record, &header, &w);
  lk__record_encode(&lk__sasl_request_record, &request, &w);
  c->output.bytes.end += w.len;
  c->session.last_xid = s->xid = xid;
  s->sent_token = s->sent_token || token.len > 0;
  lk__client_wake(c);
  return true;
}

/* The step at which the mechanism has failed with `err`. */
static lk_sasl_step failed_step(const lk_sasl *s, int err)
{
  if (err == LK_ERR_AUTH_FAILED)
    return LK_SASL_SERVER;
  return s->replies == 0 ? LK_SASL_START : LK_SASL_CHALLENGE;
}

/* The mechanism has processed a token of the server with `result`: an error,
 * LK_SASL_DONE or LK_SASL_CONTINUE. */
static void take_result(lk_client *c, int result, lk_bytes response,
                        const char *why)
{
  lk_sasl *s = c->sasl;

  if (result != LK_SASL_DONE && result != LK_SASL_CONTINUE) {
    sasl_fail(c, failed_step(s, result), result, why);
    return;
  }
  s->satisfied = result == LK_SASL_DONE;
  if (s->satisfied && response.at == NULL)
    sasl_succeed(c);
  else if (response.len > c->options.send_limit)
    sasl_fail(c, LK_SASL_CHALLENGE, LK_ERR_TOO_BIG, "the token is too long");
  else if (!send_token(c, response))
    lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
}

/* ---- calls of the mechanism ---------------------------------------------- */

/* Whether the exchange of this connection attempt is still under way. A
 * callback can have ended it. */
static bool exchange_continues(const lk_client *c, uint64_t attempt)
{
  return c->connection.phase == LK_PHASE_SASL &&
         c->connection.attempt == attempt && !c->nesting.free_wanted;
}

/* Let the mechanism process a token of the server. The mechanism may call the
 * program, which may end this connection. `must_end` is false meanwhile, so
 * that lk__sasl_drop() does not free the state that the mechanism is using. */
static void run_mechanism_step(lk_client *c, lk_bytes challenge)
{
  lk_sasl *s = c->sasl;
  lk_bytes response = {NULL, 0};
  const char *why = NULL;
  uint64_t attempt = c->connection.attempt;

  s->must_end = false;
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  int result = s->mechanism.step(s->state, challenge, &response, &why);

  s->must_end = true;
  if (exchange_continues(c, attempt))
    take_result(c, result, response, why);
  else
    lk__sasl_drop(c);
}

/* Copy the password to s->secret. Returns its length or an error, which is
 * negative. */
static int fetch_password(lk_client *c)
{
  lk_sasl *s = c->sasl;

  if (s->stored != NULL) {
    memcpy(s->secret, s->stored, s->stored_len);
    return (int)s->stored_len;
  }
  if (s->password == NULL)
    return 0;
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  int len = s->password(s->secret, sizeof s->secret, s->password_arg);

  return len > (int)sizeof s->secret ? LK_ERR_TOO_BIG : len;
}

static lk_sasl_facts mechanism_facts(lk_client *c, int password_len)
{
  lk_sasl *s = c->sasl;
  bool has_password = s->stored != NULL || s->password != NULL;

  return (lk_sasl_facts){
      .size = sizeof(lk_sasl_facts) + LK_NO_PADDING_BEHIND(lk_sasl_facts, arg),
      .user = s->user,
      .password =
          lk_bytes_of(has_password ? s->secret : NULL, (size_t)password_len),
      .service = s->service,
      .host = s->host,
      .server = c->hosts.items[c->hosts.in_turn].name,
      .local = c->connection.local,
      .peer = c->connection.peer,
      .mem = &c->mem,
      .client = c,
      .arg = s->mechanism_arg};
}

/* Start the mechanism. false: it could not start, or a callback has ended the
 * exchange. */
static bool run_mechanism_start(lk_client *c)
{
  lk_sasl *s = c->sasl;
  uint64_t attempt = c->connection.attempt;
  const char *why = NULL;
  int password_len = fetch_password(c); /* or an error */
  int err = password_len < 0 ? password_len : 0;

  s->state = NULL;
  if (err != 0)
    why = "no password";
  else if (exchange_continues(c, attempt)) {
    lk_sasl_facts facts = mechanism_facts(c, password_len);

    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    err = s->mechanism.start(&s->state, &facts, &why);
    s->must_end = err == 0;
  }
  if (s->must_end && exchange_continues(c, attempt))
    return true;
  /* lk__sasl_drop() wipes the password only if the mechanism has started. */
  if (!s->must_end)
    lk__mem_wipe(s->secret, sizeof s->secret);
  lk__sasl_drop(c);
  if (exchange_continues(c, attempt))
    sasl_fail(c, LK_SASL_START, err, why);
  return false;
}

void lk__sasl_begin(lk_client *c, const lk_handshake *welcome)
{
  lk_sasl *s = c->sasl;

  s->welcome = *welcome;
  s->satisfied = s->sent_token = false;
  s->replies = 0;
  s->xid = 0;
  lk__engine_connection_enter_phase(c, LK_PHASE_SASL);
  if (run_mechanism_start(c))
    run_mechanism_step(c, lk_bytes_of(NULL, 0));
}

/* ---- replies ------------------------------------------------------------- */

static void take_token(lk_client *c, lk_bytes token)
{
  lk_sasl *s = c->sasl;

  s->replies++;
  if (s->satisfied && token.len == 0)
    sasl_succeed(c);
  else if (s->satisfied)
    sasl_fail(c, LK_SASL_SERVER, LK_ERR_PROTOCOL,
              "a token follows the end of the exchange");
  else if (token.at == NULL && s->replies == 1)
    sasl_fail(c, LK_SASL_UNSUPPORTED, LK_ERR_UNIMPLEMENTED,
              "its zoo.cfg needs SASLAuthenticationProvider, and Java a JAAS "
              "file");
  else if (token.at == NULL)
    sasl_fail(c, LK_SASL_SERVER, LK_ERR_AUTH_FAILED,
              "the exchange ended without the server's proof");
  else
    run_mechanism_step(c, token);
}

/* The server has replied with an error. An error that says nothing about the
 * credentials ends only the connection. */
static void take_error(lk_client *c, int err)
{
  switch (err) {
  case LK_ERR_UNIMPLEMENTED:
    sasl_fail(c, LK_SASL_UNSUPPORTED, err, NULL);
    break;
  case LK_ERR_AUTH_FAILED:
    sasl_fail(c, c->sasl->sent_token ? LK_SASL_REFUSED : LK_SASL_MECHANISM, err,
              NULL);
    break;
  case LK_ERR_AUTH_REQUIRED:
  case LK_ERR_NO_AUTH: sasl_fail(c, LK_SASL_REFUSED, err, NULL); break;
  default: lk__engine_connection_end(c, err, NULL);
  }
}

/* The mechanism gets a copy of the token: a callback can end the connection,
 * which frees the bytes that were received. */
static void take_reply_token(lk_client *c, lk_reader *in)
{
  struct lk_sasl_reply reply;

  if (lk__record_decode(&lk__sasl_reply_record, &reply, in, NULL) != 0) {
    lk__engine_connection_end(c, LK_ERR_PROTOCOL, "malformed SASL token");
    return;
  }
  size_t len = reply.token.len;
  char *copy = lk__mem_resize(&c->mem, NULL, len + 1);

  if (copy == NULL) {
    lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
    return;
  }
  if (len > 0)
    memcpy(copy, reply.token.at, len);
  take_token(c, lk_bytes_of(reply.token.at == NULL ? NULL : copy, len));
  lk__mem_free(&c->mem, copy);
}

void lk__sasl_take(lk_client *c, lk_bytes frame)
{
  struct lk_reply_header header;
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  if (lk__record_decode(&lk__reply_header_record, &header, &in, NULL) != 0)
    lk__engine_connection_end(c, LK_ERR_PROTOCOL, "malformed reply header");
  else if (header.xid != c->sasl->xid || !lk__reply_error_is_valid(header.err))
    lk__engine_connection_end(c, LK_ERR_PROTOCOL,
                              "unexpected reply: not to the SASL token");
  else if (header.err != 0)
    take_error(c, header.err);
  else
    take_reply_token(c, &in);
}

/* ---- the end ------------------------------------------------------------- */

void lk__sasl_free(lk_client *c)
{
  lk_sasl *s = c->sasl;

  if (s == NULL)
    return;
  if (s->stored != NULL)
    lk__mem_wipe(s->stored, LK_SASL_PASSWORD_MAX);
  lk__mem_free(&c->mem, s->stored);
  lk__mem_wipe(s->secret, sizeof s->secret);
  lk__mem_free(&c->mem, s);
  c->sasl = NULL;
}
