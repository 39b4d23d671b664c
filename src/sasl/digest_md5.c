/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* DIGEST-MD5 (RFC 2831). libgsasl does the work: it gets the server's token and
 * returns the client's. It allocates with malloc(), not with lk_mem. */

#include <gsasl.h>

#include <latchkey/sasl.h>

#include "base/mem.h"

typedef struct digest {
  const lk_mem *mem;
  Gsasl *library;
  Gsasl_session *session;
  char *token;        /* the last token that libgsasl returned, or NULL */
  bool response_sent; /* by the client, so the next token of the server must
                         prove that the server knows the password, too */
} digest;

/* Wipe the password in libgsasl's memory, since gsasl_finish() does not. */
static void digest_wipe_password(Gsasl_session *session)
{
  const char *password = gsasl_property_fast(session, GSASL_PASSWORD);
  char *writable;

  if (password == NULL)
    return;
  /* drops `const` without a warning */
  memcpy(&writable, &password, sizeof writable);
  lk__mem_wipe(writable, strlen(writable));
}

static void digest_end(void *state)
{
  digest *d = state;

  gsasl_free(d->token);
  if (d->session != NULL) {
    digest_wipe_password(d->session);
    gsasl_finish(d->session);
  }
  gsasl_done(d->library);
  lk__mem_free(d->mem, d);
}

static int digest_error(int result, const char **why)
{
  *why = gsasl_strerror(result);
  return result == GSASL_MALLOC_ERROR ? LK_ERR_NO_MEMORY : LK_ERR_SYSTEM;
}

/* Set the properties that libgsasl needs for a response. */
static int digest_set_properties(Gsasl_session *session,
                                 const lk_sasl_facts *facts)
{
  int result = gsasl_property_set(session, GSASL_AUTHID, facts->user);

  if (result == GSASL_OK)
    result = gsasl_property_set(session, GSASL_SERVICE, facts->service);
  if (result == GSASL_OK)
    result = gsasl_property_set(session, GSASL_HOSTNAME, facts->host);
  if (result == GSASL_OK)
    result = gsasl_property_set_raw(session, GSASL_PASSWORD, facts->password.at,
                                    facts->password.len);
  return result;
}

/* Why DIGEST-MD5 cannot use these credentials; NULL: it can. */
static const char *digest_complaint(const char *user, lk_bytes password)
{
  if (user == NULL || password.at == NULL)
    return "it needs a user and a password";
  if (memchr(password.at, '\0', password.len) != NULL)
    return "the password contains a NUL";
  for (; *user != '\0'; user++) {
    if ((unsigned char)*user >= 0x80)
      return "the user is not ASCII";
  }
  return NULL;
}

static int digest_start(void **state, const lk_sasl_facts *facts,
                        const char **why)
{
  const char *wrong = digest_complaint(facts->user, facts->password);

  if (wrong != NULL) {
    *why = wrong;
    return LK_ERR_BAD_ARGUMENT;
  }
  digest *d = lk__mem_new(facts->mem, sizeof *d);

  if (d == NULL)
    return LK_ERR_NO_MEMORY;
  d->mem = facts->mem;
  int result = gsasl_init(&d->library);

  if (result == GSASL_OK)
    result = gsasl_client_start(d->library, "DIGEST-MD5", &d->session);
  if (result == GSASL_OK)
    result = digest_set_properties(d->session, facts);
  if (result == GSASL_OK) {
    *state = d;
    return 0;
  }
  digest_end(d); /* libgsasl's functions accept what is still NULL */
  return digest_error(result, why);
}

/* The error of a step that failed. Once the client has sent its response, the
 * step checked the server's `rspauth`, the proof that it knows the password. */
static int digest_fail(const digest *d, int result, const char **why)
{
  int err = digest_error(result, why);

  if (err == LK_ERR_NO_MEMORY)
    return err;
  if (!d->response_sent)
    return LK_ERR_PROTOCOL;
  *why = "its rspauth is wrong";
  return LK_ERR_AUTH_FAILED;
}

static int digest_step(void *state, lk_bytes challenge, lk_bytes *response,
                       const char **why)
{
  digest *d = state;
  size_t len = 0;

  gsasl_free(d->token);
  d->token = NULL;
  /* libgsasl would read an empty token as a C string, beyond its end. */
  if (challenge.at != NULL && challenge.len == 0)
    return digest_fail(d, GSASL_MECHANISM_PARSE_ERROR, why);
  int result =
      gsasl_step(d->session, challenge.at, challenge.len, &d->token, &len);

  if (result != GSASL_OK && result != GSASL_NEEDS_MORE)
    return digest_fail(d, result, why);
  if (len > 0)
    *response = lk_bytes_of(d->token, len);
  d->response_sent = len > 0;
  return result == GSASL_OK ? LK_SASL_DONE : LK_SASL_CONTINUE;
}

const lk_sasl_mechanism *lk_sasl_digest_md5(void)
{
  static const lk_sasl_mechanism mechanism = {.size = sizeof mechanism,
                                              .name = "DIGEST-MD5",
                                              .start = digest_start,
                                              .step = digest_step,
                                              .end = digest_end};

  return &mechanism;
}
