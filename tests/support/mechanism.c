/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/mechanism.h"

#include "support/peer.h"
#include "support/peer_things.h"

#include <stdio.h>
#include <stdlib.h>

/** The state of one exchange. */
typedef struct fake_exchange {
  fake_mechanism *m;
  const lk_sasl_facts *facts;
  lk_mem mem;
  char *token; /**< its own block, so that a sanitizer reports it if the library
                    reads the token too late */
  int sent;    /**< how many tokens were sent */
} fake_exchange;

/* Report the call to the test. Returns whether the call has to fail. */
static bool report_and_fail(fake_mechanism *m, const char *event)
{
  bool fail = ++m->calls == m->fail_at;

  peer_react(m->p, "sasl", event);
  return fail;
}

static int give_password(char *out, size_t size, void *arg)
{
  fake_mechanism *m = arg;

  m->calls = 0;
  peer_must(m->p, size == LK_SASL_PASSWORD_MAX, "another room for a password");
  memcpy(out, "secret", 6);
  return report_and_fail(m, "password") ? m->fail_err : 6;
}

static int start(void **state, const lk_sasl_facts *facts, const char **why)
{
  fake_mechanism *m = facts->arg;
  fake_exchange *e;

  peer_log_line(m->p, "sasl start %s at %s", facts->user, facts->server);
  peer_must(m->p, !m->running, "two exchanges at a time");
  peer_must(m->p,
            facts->password.len == 6 &&
                memcmp(facts->password.at, "secret", 6) == 0,
            "another password");
  peer_must(m->p, facts->client == m->p->client, "another client");
  e = facts->mem->resize(facts->mem->arg, NULL, sizeof *e);
  if (e == NULL)
    return LK_ERR_NO_MEMORY;
  *e = (fake_exchange){.m = m, .facts = facts, .mem = *facts->mem};
  if (report_and_fail(m, "start")) {
    *why = "no ticket";
    e->mem.resize(e->mem.arg, e, 0);
    return m->fail_err;
  }
  *state = e;
  m->running = true;
  m->done = false;
  return 0;
}

static void say_challenge(fake_mechanism *m, lk_bytes challenge)
{
  if (challenge.at == NULL)
    peer_log_line(m->p, "sasl step");
  else
    peer_log_line(m->p, "sasl step \"%.*s\"", (int)challenge.len,
                  (const char *)challenge.at);
}

/* The first token is empty; on the wire it must be empty, too, and not null. */
static int make_token(fake_exchange *e, lk_bytes *response)
{
  char *token = e->mem.resize(e->mem.arg, e->token, 16);

  if (token == NULL)
    return LK_ERR_NO_MEMORY;
  e->token = token;
  snprintf(e->token, 16, "token %d", e->sent);
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

  say_challenge(m, challenge);
  peer_must(m->p, m->running && !m->done, "a step behind the end");
  if (report_and_fail(m, "step")) {
    *why = "a fake failure";
    return m->fail_err;
  }
  /* The test may have freed the client in the meantime: even then the challenge
     must stay until step() returns. */
  peer_must(m->p, challenge.len == 0 || *(const char *)challenge.at == first,
            "the challenge is gone");
  if (e->sent < m->tokens) {
    int result = make_token(e, response);

    m->done = m->speaks_last && e->sent == m->tokens && result >= 0;
    return m->done ? LK_SASL_DONE : result;
  }
  m->done = true;
  return LK_SASL_DONE;
}

static void end(void *state)
{
  fake_exchange *e = state;
  fake_mechanism *m = e->m;
  lk_mem mem = e->mem;

  peer_must(m->p, m->running, "an exchange ends twice");
  peer_log_line(m->p, "sasl end");
  m->running = false;
  m->proved = m->done;
  mem.resize(mem.arg, e->token, 0);
  mem.resize(mem.arg, e, 0);
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
