/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/failing_mem.h"
#include "support/suite.h"

#include <latchkey/sasl.h>

#include <gsasl.h>
#include <stdio.h>

/* DIGEST-MD5 of the client, with libgsasl as the server, which has ZooKeeper's
   settings. tests/live/client/access.py tests it with ZooKeeper itself. */

static failing_mem mem;
static Gsasl *library;
static Gsasl_session *server;
static const char *servers_password;
static const lk_sasl_mechanism *md5;

static int on_property(Gsasl *g, Gsasl_session *s, Gsasl_property property)
{
  (void)g;
  switch ((int)property) {
  case GSASL_PASSWORD:
    return gsasl_property_set(s, GSASL_PASSWORD, servers_password);
  case GSASL_SERVICE: return gsasl_property_set(s, GSASL_SERVICE, "zookeeper");
  case GSASL_HOSTNAME:
    return gsasl_property_set(s, GSASL_HOSTNAME, "zk-sasl-md5");
  case GSASL_REALM: return gsasl_property_set(s, GSASL_REALM, "zk-sasl-md5");
  default: return GSASL_NO_CALLBACK;
  }
}

static lk_sasl_facts facts(const char *user, const char *password)
{
  return (lk_sasl_facts){.size = sizeof(lk_sasl_facts),
                         .user = user,
                         .password = lk_text(password),
                         .service = "zookeeper",
                         .host = "zk-sasl-md5",
                         .mem = &mem.mem};
}

static void begin(void)
{
  failing_mem_init(&mem);
  md5 = lk_sasl_digest_md5();
  ck_assert_ptr_nonnull(md5);
  ck_assert_int_eq(gsasl_init(&library), GSASL_OK);
  gsasl_callback_set(library, on_property);
  ck_assert_int_eq(gsasl_server_start(library, "DIGEST-MD5", &server),
                   GSASL_OK);
}

static void finish(void)
{
  gsasl_finish(server);
  gsasl_done(library);
  ck_assert_uint_eq(mem.live, 0);
}

static void *start(const char *user, const char *password)
{
  lk_sasl_facts f = facts(user, password);
  const char *why = NULL;
  void *state = NULL;

  ck_assert_int_eq(md5->start(&state, &f, &why), 0);
  return state;
}

enum { TOKEN_SIZE = 1000 }; /* room for a token as text */

/* Make one step of the client and copy its response. `challenge`
   NULL: the first step, before any challenge of the server. */
static int step(void *state, const char *challenge, char *response,
                const char **why)
{
  lk_bytes out = {NULL, 0};
  int result = md5->step(state, lk_text(challenge), &out, why);

  response[0] = '\0';
  if (out.at != NULL)
    snprintf(response, TOKEN_SIZE, "%.*s", (int)out.len, (const char *)out.at);
  return result;
}

/* Pass a token to the server. Returns its result, GSASL_..., and
   writes the server's token to `out`. */
static int step_of_server(const char *token, char *out)
{
  char *answer = NULL;
  size_t len = 0;
  int result = gsasl_step(server, token, strlen(token), &answer, &len);

  snprintf(out, TOKEN_SIZE, "%.*s", (int)len, answer == NULL ? "" : answer);
  gsasl_free(answer);
  return result;
}

static bool contains(const char *text, const char *part)
{
  return strstr(text, part) != NULL;
}

START_TEST(client_and_server_prove_that_they_know_the_password)
{
  char clients_token[TOKEN_SIZE], servers_token[TOKEN_SIZE];
  const char *why = NULL;

  servers_password = "s\xc3\xa4"
                     "cret, \"quoted\"";
  begin();
  void *state = start("bob", servers_password);

  ck_assert_int_eq(step(state, NULL, clients_token, &why), LK_SASL_CONTINUE);
  ck_assert_str_eq(clients_token, "");
  ck_assert_int_eq(step_of_server("", servers_token), GSASL_NEEDS_MORE);
  ck_assert_int_eq(step(state, servers_token, clients_token, &why),
                   LK_SASL_CONTINUE);
  ck_assert(contains(clients_token, "username=\"bob\""));
  ck_assert(contains(clients_token, "realm=\"zk-sasl-md5\""));
  ck_assert(contains(clients_token, "digest-uri=\"zookeeper/zk-sasl-md5\""));
  ck_assert(contains(clients_token, "qop=auth"));
  ck_assert(!contains(clients_token, "cret"));
  ck_assert_int_eq(step_of_server(clients_token, servers_token), GSASL_OK);
  ck_assert(contains(servers_token, "rspauth="));
  ck_assert_int_eq(step(state, servers_token, clients_token, &why),
                   LK_SASL_DONE);
  ck_assert_str_eq(clients_token, "");
  md5->end(state);
  finish();
}
END_TEST

/* Run an exchange up to the server's last token, which is written to
   `servers_token`. `expected`: the server's result of its last step. */
static void *run_until_proof(const char *password, char *servers_token,
                             int expected)
{
  char clients_token[TOKEN_SIZE];
  const char *why = NULL;

  servers_password = "secret";
  begin();
  void *state = start("bob", password);

  ck_assert_int_eq(step(state, NULL, clients_token, &why), LK_SASL_CONTINUE);
  step_of_server("", servers_token);
  ck_assert_int_eq(step(state, servers_token, clients_token, &why),
                   LK_SASL_CONTINUE);
  ck_assert_int_eq(step_of_server(clients_token, servers_token), expected);
  return state;
}

START_TEST(server_refuses_a_wrong_password)
{
  char servers_token[TOKEN_SIZE];
  void *state =
      run_until_proof("wrong", servers_token, GSASL_AUTHENTICATION_ERROR);

  md5->end(state);
  finish();
}
END_TEST

static void expect_proof_refused(const char *proof)
{
  char servers_token[TOKEN_SIZE], clients_token[TOKEN_SIZE];
  const char *why = NULL;
  void *state = run_until_proof("secret", servers_token, GSASL_OK);

  ck_assert_int_eq(step(state, proof, clients_token, &why), LK_ERR_AUTH_FAILED);
  ck_assert_str_eq(why, "its rspauth is wrong");
  md5->end(state);
  finish();
}

START_TEST(server_without_the_right_proof_is_refused)
{
  expect_proof_refused("rspauth=91e8b37ae9430b2685b5427e67c20103");
  expect_proof_refused("rspauth=");
  expect_proof_refused("");
  expect_proof_refused("nothing of the kind");
}
END_TEST

static void expect_challenge_refused(const char *challenge)
{
  char clients_token[TOKEN_SIZE];
  const char *why = NULL;

  begin();
  void *state = start("bob", "secret");

  ck_assert_int_eq(step(state, NULL, clients_token, &why), LK_SASL_CONTINUE);
  ck_assert_int_eq(step(state, challenge, clients_token, &why),
                   LK_ERR_PROTOCOL);
  ck_assert_ptr_nonnull(why);
  md5->end(state);
  finish();
}

START_TEST(invalid_challenge_gets_no_response)
{
  expect_challenge_refused("gibberish");
  expect_challenge_refused("realm=\"zk-sasl-md5\",charset=utf-8");
  expect_challenge_refused("nonce=\"x\",algorithm=other");
  expect_challenge_refused("rspauth=91e8b37ae9430b2685b5427e67c20103");
}
END_TEST

/* The challenge has no bytes and stands at the end of a block, so a sanitizer
   reports any read. */
START_TEST(an_empty_challenge_is_not_read)
{
  char *block = malloc(1);
  lk_bytes out = {NULL, 0};
  char clients_token[TOKEN_SIZE];
  const char *why = NULL;

  ck_assert_ptr_nonnull(block);
  *block = 'x';
  begin();
  void *state = start("bob", "secret");

  ck_assert_int_eq(step(state, NULL, clients_token, &why), LK_SASL_CONTINUE);
  ck_assert_int_eq(md5->step(state, lk_bytes_of(block, 0), &out, &why),
                   LK_ERR_PROTOCOL);
  md5->end(state);
  free(block);
  finish();
}
END_TEST

START_TEST(exchange_does_not_start_without_user_or_password)
{
  lk_sasl_facts f = facts(NULL, "secret");
  const char *why = NULL;
  void *state = NULL;

  begin();
  ck_assert_int_eq(md5->start(&state, &f, &why), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(why, "it needs a user and a password");
  f = facts("bob", NULL);
  ck_assert_int_eq(md5->start(&state, &f, &why), LK_ERR_BAD_ARGUMENT);
  f = facts("bob", "secret");
  f.password = lk_bytes_of("se\0cret", 7);
  ck_assert_int_eq(md5->start(&state, &f, &why), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(why, "the password contains a NUL");
  f = facts("jos\xc3\xa9", "secret");
  ck_assert_int_eq(md5->start(&state, &f, &why), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(why, "the user is not ASCII");
  f = facts("bob", "secret");
  mem.fail_at = 1;
  ck_assert_int_eq(md5->start(&state, &f, &why), LK_ERR_NO_MEMORY);
  finish();
}
END_TEST

SUITE("digest_md5", client_and_server_prove_that_they_know_the_password,
      server_refuses_a_wrong_password,
      server_without_the_right_proof_is_refused,
      invalid_challenge_gets_no_response, an_empty_challenge_is_not_read,
      exchange_does_not_start_without_user_or_password)
