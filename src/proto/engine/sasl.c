/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sized_struct.h"
#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/wire/opcode.h"

#include <stdio.h>

/* ---- the end of an exchange --------------------------------------------- */

static const char *step_text(lk_sasl_step step)
{
  switch (step) {
  case LK_SASL_START: return "cannot start";
  case LK_SASL_CHALLENGE: return "cannot answer the challenge";
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
    lk__session_end_connection(c, err, NULL);
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

/* ---- tokens ------------------------------------------------------------- */

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
    lk__session_end_connection(c, LK_ERR_NO_MEMORY, NULL);
}

/* ---- calls of the mechanism --------------------------------------------- */

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
  s->satisfied = false;
  s->replies = 0;
  s->xid = 0;
  lk__session_enter_phase(c, LK_PHASE_SASL);
  if (run_mechanism_start(c))
    run_mechanism_step(c, lk_bytes_of(NULL, 0));
}

/* ---- replies ------------------------------------------------------------ */

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
  case LK_ERR_AUTH_REQUIRED:
  case LK_ERR_NO_AUTH: sasl_fail(c, LK_SASL_REFUSED, err, NULL); break;
  default: lk__session_end_connection(c, err, NULL);
  }
}

/* The mechanism gets a copy of the token: a callback can end the connection,
 * which frees the bytes that were received. */
static void take_reply_token(lk_client *c, lk_reader *in)
{
  struct lk_sasl_reply reply;

  if (lk__record_decode(&lk__sasl_reply_record, &reply, in, NULL) != 0) {
    lk__session_end_connection(c, LK_ERR_PROTOCOL, "malformed SASL token");
    return;
  }
  size_t len = reply.token.len;
  char *copy = lk__mem_resize(&c->mem, NULL, len + 1);

  if (copy == NULL) {
    lk__session_end_connection(c, LK_ERR_NO_MEMORY, NULL);
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
    lk__session_end_connection(c, LK_ERR_PROTOCOL, "malformed reply header");
  else if (header.xid != c->sasl->xid || !lk__reply_error_is_valid(header.err))
    lk__session_end_connection(c, LK_ERR_PROTOCOL,
                               "unexpected reply: not to the SASL token");
  else if (header.err != 0)
    take_error(c, header.err);
  else
    take_reply_token(c, &in);
}
