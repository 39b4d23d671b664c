/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/mechanism.h"

#include "support/harness.h"
#include "support/harness_things.h"

#include <stdio.h>
#include <stdlib.h>

static const char the_password[] = "secret";

enum { PASSWORD_LEN = sizeof the_password - 1, TOKEN_ROOM = 16 };

/** The state of one exchange. */
typedef struct fake_exchange {
  fake_mechanism *m;
  const lk_sasl_facts *facts;
  lk_mem mem;
  char *token; /**< its own block, so that a sanitizer reports it if the library
                    reads the token too late */
  int sent;    /**< how many tokens were sent */
} fake_exchange;

static void free_block(const lk_mem *mem, void *block)
{
  mem->resize(mem->arg, block, 0);
}

/* Report a call to the test. Returns whether the call has to fail. */
static bool report_call(fake_mechanism *m, const char *event)
{
  m->calls++;
  bool must_fail = m->calls == m->fail_at;

  harness_react(m->h, "sasl", event);
  return must_fail;
}

static int give_password(char *out, size_t size, void *arg)
{
  fake_mechanism *m = arg;

  m->calls = 0; /* each exchange begins with this call */
  harness_must(m->h, size == LK_SASL_PASSWORD_MAX,
               "the room for the password has a wrong size");
  memcpy(out, the_password, PASSWORD_LEN);
  bool must_fail = report_call(m, "password");

  return must_fail ? m->fail_err : PASSWORD_LEN;
}

static int start(void **state, const lk_sasl_facts *facts, const char **why)
{
  fake_mechanism *m = facts->arg;
  fake_exchange *e;

  harness_log_line(m->h, "sasl start %s at %s", facts->user, facts->server);
  harness_must(m->h, !m->running, "two exchanges at a time");
  harness_must(m->h,
               facts->password.len == PASSWORD_LEN &&
                   memcmp(facts->password.at, the_password, PASSWORD_LEN) == 0,
               "a wrong password");
  harness_must(m->h, facts->client == m->h->client, "a wrong client");
  e = facts->mem->resize(facts->mem->arg, NULL, sizeof *e);
  if (e == NULL)
    return LK_ERR_NO_MEMORY;
  *e = (fake_exchange){.m = m, .facts = facts, .mem = *facts->mem};
  bool must_fail = report_call(m, "start");

  if (must_fail) {
    *why = "no ticket";
    free_block(facts->mem, e);
    return m->fail_err;
  }
  *state = e;
  m->running = true;
  m->done = false;
  return 0;
}

static void log_challenge(fake_mechanism *m, lk_bytes challenge)
{
  if (challenge.at == NULL)
    harness_log_line(m->h, "sasl step");
  else
    harness_log_line(m->h, "sasl step \"%.*s\"", (int)challenge.len,
                     (const char *)challenge.at);
}

static int make_token(fake_exchange *e, lk_bytes *response)
{
  char *token = e->mem.resize(e->mem.arg, e->token, TOKEN_ROOM);

  if (token == NULL)
    return LK_ERR_NO_MEMORY;
  e->token = token;
  snprintf(e->token, TOKEN_ROOM, "token %d", e->sent);
  /* The first response stays empty. On the wire it must be empty, and not null.
   */
  if (e->sent > 0)
    *response = lk_text(e->token);
  e->sent++;
  return LK_SASL_CONTINUE;
}

static int step(void *state, lk_bytes challenge, lk_bytes *response,
                const char **why)
{
  fake_exchange *e = state;
  fake_mechanism *m = e->m;
  char first = challenge.len == 0 ? '\0' : *(const char *)challenge.at;

  log_challenge(m, challenge);
  harness_must(m->h, m->running && !m->done, "a step behind the end");
  bool must_fail = report_call(m, "step");

  if (must_fail) {
    *why = "a fake failure";
    return m->fail_err;
  }
  /* The test may have freed the client in the meantime: even then the challenge
     must stay until step() returns. */
  harness_must(m->h, challenge.len == 0 || *(const char *)challenge.at == first,
               "the challenge is gone");
  if (e->sent == m->tokens) { /* this is the server's answer to the last one */
    m->done = true;
    return LK_SASL_DONE;
  }
  int result = make_token(e, response);
  bool failed = result < 0;
  bool is_last_token = e->sent == m->tokens;

  m->done = !failed && is_last_token && m->speaks_last;
  return m->done ? LK_SASL_DONE : result;
}

static void end(void *state)
{
  fake_exchange *e = state;
  fake_mechanism *m = e->m;
  lk_mem mem = e->mem;

  harness_must(m->h, m->running, "an exchange ends twice");
  harness_log_line(m->h, "sasl end");
  m->running = false;
  m->proved = m->done;
  free_block(&mem, e->token);
  free_block(&mem, e);
}

static const lk_sasl_mechanism mechanism = {
    .size = sizeof mechanism,
    .name = "FAKE",
    .start = start,
    .step = step,
    .end = end,
};

void fake_mechanism_config(fake_mechanism *m, lk_sasl_config *out)
{
  *out = (lk_sasl_config){.size = sizeof *out,
                          .mechanism = &mechanism,
                          .mechanism_arg = m,
                          .user = "bob",
                          .password = give_password,
                          .password_arg = m};
}
