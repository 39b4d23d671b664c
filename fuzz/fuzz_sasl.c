/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The SASL exchange with a hostile server. The input is a program (program.h):
 * a byte for the client, a byte for the mechanism, then actions. Actions are
 * tokens that are valid, nearly valid or arbitrary, errors, other frames,
 * passing time, and calls of the API during the steps of a mechanism.
 *
 * Oracle: the harness (tests/support/harness.h) aborts where the client sends a
 * request before the exchange has ended. With DIGEST-MD5 no client may ever
 * become connected, because this server does not know the password.
 */

#include "program.h"
#include "proto/engine/client.h"
#include "support/wire.h"

#include <stdio.h>

/* ---- calls of the user -------------------------------------------------- */

static const char *next_name(fuzz_program *g)
{
  snprintf(g->name, sizeof g->name, "r%u", g->number++);
  return g->name;
}

static void do_get(fuzz_program *g)
{
  harness_call call = {.name = next_name(g),
                       .repeat = take_byte(&g->in) % 2 == 1};

  harness_get(&g->h, &call, "/a");
}

static void do_auth(fuzz_program *g)
{
  harness_auth(&g->h, next_name(g), "digest", lk_text("bob:secret"));
}

static void do_close(fuzz_program *g)
{
  harness_close(&g->h, next_name(g));
}

static void do_free(fuzz_program *g)
{
  if (take_byte(&g->in) % 8 == 7)
    harness_free(&g->h);
}

static void do_hosts(fuzz_program *g)
{
  static const char *const hosts[] = {"a", "b", "a,b"};

  (void)lk_client_set_hosts(g->h.client, hosts[take_byte(&g->in) % 3]);
}

static const action calls[] = {
    ACTION(get),   ACTION(get),  ACTION(auth),
    ACTION(close), ACTION(free), ACTION(hosts),
};

static void do_call(fuzz_program *g)
{
  run_action(g, ACTIONS(calls));
}

static void do_defer(fuzz_program *g)
{
  g->deferred = take_byte(&g->in) % 4;
}

static void run_deferred(harness *h, const char *name, const char *event)
{
  fuzz_program *g = h->arg;

  (void)name;
  must(!g->digest ||
       (strcmp(event, "connected") != 0 && strcmp(event, "read-only") != 0));
  if (g->deferred == 0 || h->client == NULL)
    return;
  g->deferred--;
  do_call(g);
}

/* ---- transport and time ------------------------------------------------- */

static void do_connected(fuzz_program *g)
{
  harness_connected(&g->h);
}

static void do_failed(fuzz_program *g)
{
  harness_failed(&g->h, take_byte(&g->in) % 2 ? LK_ERR_CONNECTION_LOSS : 0,
                 NULL);
}

static void do_wait(fuzz_program *g)
{
  harness_pass(&g->h, (int64_t)take_byte(&g->in) * 20);
}

/* ---- the server --------------------------------------------------------- */

static void do_connect_response(fuzz_program *g)
{
  lk_buf b = wire_buf();

  wire_welcome(&b, 7, 2000);
  receive_from_server(g, &b);
}

static void receive_token(fuzz_program *g, lk_bytes token)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  wire_header(&b, g->h.client->sasl->xid, 0, 0);
  wire_bytes(&b, token);
  wire_end(&b, mark);
  receive_from_server(g, &b);
}

static void do_token(fuzz_program *g)
{
  receive_token(g, take_bytes(&g->in));
}

static void do_null(fuzz_program *g)
{
  receive_token(g, lk_bytes_of(NULL, 0));
}

/* A challenge as ZooKeeper sends it, with part of the input in it. */
static void do_challenge(fuzz_program *g)
{
  static const struct {
    const char *before, *behind;
  } texts[] = {
      {"realm=\"zk-sasl-md5\",nonce=\"", "\",charset=utf-8,algorithm=md5-sess"},
      {"realm=\"", "\",nonce=\"x\",charset=utf-8,algorithm=md5-sess"},
      {"nonce=\"x\",algorithm=md5-sess,", ""},
      {"nonce=\"x\",algorithm=md5-sess,qop=\"", "\",maxbuf=65536"}};
  unsigned which = take_byte(&g->in) % 4;
  lk_bytes odd = take_bytes(&g->in);
  char text[400];
  int len = snprintf(text, sizeof text, "%s%.*s%s", texts[which].before,
                     (int)odd.len, (const char *)odd.at, texts[which].behind);

  receive_token(g, lk_bytes_of(text, (size_t)len));
}

static void do_rspauth(fuzz_program *g)
{
  char text[300];
  lk_bytes odd = take_bytes(&g->in);
  int len = snprintf(text, sizeof text, "rspauth=%.*s", (int)odd.len,
                     (const char *)odd.at);

  receive_token(g, lk_bytes_of(text, (size_t)len));
}

static void do_error(fuzz_program *g)
{
  static const int32_t errs[] = {LK_ERR_AUTH_FAILED,     LK_ERR_AUTH_REQUIRED,
                                 LK_ERR_UNIMPLEMENTED,   LK_ERR_SESSION_MOVED,
                                 LK_ERR_SESSION_EXPIRED, LK_ERR_THROTTLED,
                                 LK_ERR_NO_MEMORY,       1};
  lk_buf b = wire_buf();

  wire_reply(&b, g->h.client->sasl->xid, -1, errs[take_byte(&g->in) % 8]);
  receive_from_server(g, &b);
}

static void do_frame(fuzz_program *g)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  lk_bytes bytes = take_bytes(&g->in);

  must(lk__buf_append(&b, bytes.at, bytes.len));
  wire_end(&b, mark);
  receive_from_server(g, &b);
}

static const action actions[] = {
    ACTION(token),     ACTION(token),
    ACTION(challenge), ACTION(challenge),
    ACTION(rspauth),   ACTION(null),
    ACTION(error),     ACTION(frame),
    ACTION(connected), ACTION(connect_response),
    ACTION(failed),    ACTION(wait),
    ACTION(call),      ACTION(defer),
};

/* ---- the client ---------------------------------------------------------- */

static int give_password(char *out, size_t size, void *arg)
{
  (void)size;
  (void)arg;
  memcpy(out, "secret", 6);
  return 6;
}

static void choose_mechanism(fuzz_program *g, lk_sasl_config *out)
{
  unsigned how = take_byte(&g->in);

  g->digest = how % 2 == 0 && lk_sasl_digest_md5() != NULL;
  if (g->digest) {
    *out = (lk_sasl_config){
        .size = sizeof *out, .user = "bob", .password = give_password};
    return;
  }
  g->mechanism = (fake_mechanism){.h = &g->h,
                                  .tokens = 1 + (int)(how >> 1 & 3),
                                  .speaks_last = (how & 8) != 0,
                                  .fail_at = (int)(how >> 4 & 7),
                                  .fail_err = how & 128 ? LK_ERR_AUTH_FAILED
                                                        : LK_ERR_STATE};
  g->h.sasl = &g->mechanism;
  fake_mechanism_config(&g->mechanism, out);
}

static bool make_client(fuzz_program *g)
{
  lk_sasl_config sasl;
  unsigned how = take_byte(&g->in);
  lk_client_config config = {.size = sizeof config,
                             .hosts = how & 1 ? "a,b" : "a",
                             .session_timeout_ms = 2000,
                             .read_only = (how & 2) != 0,
                             .sasl = &sasl};

  failing_mem_init(&g->h.mem);
  g->h.mem.fail_at = how & 4 ? 10 + (how >> 5) * 3 : 0;
  g->h.step = how & 8 ? 1 + (how >> 5) : 0;
  g->h.seed = how + 1;
  g->h.react = run_deferred;
  g->h.arg = g;
  choose_mechanism(g, &sasl);
  if (harness_init(&g->h, &config) != 0)
    return false;
  harness_settle(&g->h);
  harness_connected(&g->h);
  if (g->h.client != NULL)
    do_connect_response(g);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  run_program(data, size, make_client, ACTIONS(actions));
  return 0;
}
