/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * What a hostile server may say during a SASL exchange. The bytes are a
 * program: which mechanism, and then what happens, one deed after another:
 * tokens that are right, nearly right or anything at all, errors, other frames,
 * time, and a user who does something in the steps of a mechanism. The peer
 * aborts where anything is sent ahead of the end of an exchange. With
 * DIGEST-MD5 no client is ever connected: the server does not know the
 * password.
 */

#include "proto/engine/engine.h"
#include "support/peer.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct program {
  peer p;
  fake_mechanism fake;
  bool digest;
  const uint8_t *at;
  const uint8_t *end;
  unsigned number;  /* of the next request */
  unsigned planned; /* deeds to be done in callbacks */
  char name[24];
} program;

static unsigned take(program *g)
{
  return g->at == g->end ? 0 : *g->at++;
}

static lk_bytes take_bytes(program *g)
{
  size_t len = take(g), left = (size_t)(g->end - g->at);
  lk_bytes b = {g->at, len < left ? len : left};

  g->at += b.len;
  return b;
}

/* One thing that can happen; its name is for the log that a failure shows. */
typedef struct deed {
  const char *name;
  void (*run)(program *g);
} deed;
#define DEED(name)   \
  {                  \
#    name, do_##name \
  }

static void run(program *g, const deed *list, size_t count)
{
  const deed *chosen = &list[take(g) % count];

  peer_say(&g->p, "> %s", chosen->name);
  chosen->run(g);
}

/* ---- the user ----------------------------------------------------------- */

static const char *next_name(program *g)
{
  snprintf(g->name, sizeof g->name, "r%u", g->number++);
  return g->name;
}

static void do_get(program *g)
{
  peer_call call = {.name = next_name(g), .repeat = take(g) % 2 == 1};

  peer_get(&g->p, &call, "/a");
}

static void do_auth(program *g)
{
  peer_auth(&g->p, next_name(g), "digest", lk_text("bob:secret"));
}

static void do_close(program *g)
{
  peer_close(&g->p, next_name(g));
}

static void do_free(program *g)
{
  if (take(g) % 8 == 7)
    peer_free(&g->p);
}

static void do_hosts(program *g)
{
  static const char *const hosts[] = {"a", "b", "a,b"};

  (void)lk_client_set_hosts(g->p.client, hosts[take(g) % 3]);
}

static const deed calls[] = {
    DEED(get), DEED(get), DEED(auth), DEED(close), DEED(free), DEED(hosts),
};

static void do_call(program *g)
{
  run(g, calls, sizeof calls / sizeof calls[0]);
}

static void do_plan(program *g)
{
  g->planned = take(g) % 4;
}

static void react(peer *p, const char *name, const char *event)
{
  program *g = p->arg;

  (void)name;
  if (g->digest &&
      (strcmp(event, "connected") == 0 || strcmp(event, "read-only") == 0))
    abort(); /* by whom? */
  if (g->planned == 0 || p->client == NULL)
    return;
  g->planned--;
  do_call(g);
}

/* ---- transport and time ------------------------------------------------- */

static void do_connected(program *g)
{
  peer_connected(&g->p);
}

static void do_failed(program *g)
{
  peer_failed(&g->p, take(g) % 2 ? LK_ERR_LOSS : 0, NULL);
}

static void do_pass(program *g)
{
  peer_pass(&g->p, (int64_t)take(g) * 20);
}

/* ---- the server --------------------------------------------------------- */

static void say(program *g, lk_buf *b)
{
  peer_receive(&g->p, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_free(b);
}

static void do_welcome(program *g)
{
  lk_buf b = wire_buf();

  wire_welcome(&b, 7, 2000);
  say(g, &b);
}

static void say_token(program *g, lk_bytes token)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  wire_header(&b, g->p.client->sasl->xid, 0, 0);
  wire_bytes(&b, token);
  wire_end(&b, mark);
  say(g, &b);
}

static void do_token(program *g)
{
  say_token(g, take_bytes(g));
}

static void do_null(program *g)
{
  say_token(g, lk_bytes_of(NULL, 0));
}

/* ZooKeeper's challenge, with some of the input in a place. */
static void do_challenge(program *g)
{
  static const struct {
    const char *before, *behind;
  } texts[] = {
      {"realm=\"zk-sasl-md5\",nonce=\"", "\",charset=utf-8,algorithm=md5-sess"},
      {"realm=\"", "\",nonce=\"x\",charset=utf-8,algorithm=md5-sess"},
      {"nonce=\"x\",algorithm=md5-sess,", ""},
      {"nonce=\"x\",algorithm=md5-sess,qop=\"", "\",maxbuf=65536"}};
  unsigned which = take(g) % 4;
  lk_bytes odd = take_bytes(g);
  char text[400];
  int len = snprintf(text, sizeof text, "%s%.*s%s", texts[which].before,
                     (int)odd.len, (const char *)odd.at, texts[which].behind);

  say_token(g, lk_bytes_of(text, (size_t)len));
}

static void do_rspauth(program *g)
{
  char text[300];
  lk_bytes odd = take_bytes(g);
  int len = snprintf(text, sizeof text, "rspauth=%.*s", (int)odd.len,
                     (const char *)odd.at);

  say_token(g, lk_bytes_of(text, (size_t)len));
}

static void do_error(program *g)
{
  static const int32_t errs[] = {LK_ERR_AUTH_FAILED,     LK_ERR_AUTH_REQUIRED,
                                 LK_ERR_UNIMPLEMENTED,   LK_ERR_SESSION_MOVED,
                                 LK_ERR_SESSION_EXPIRED, LK_ERR_THROTTLED,
                                 LK_ERR_NO_MEMORY,       1};
  lk_buf b = wire_buf();

  wire_reply(&b, g->p.client->sasl->xid, -1, errs[take(g) % 8]);
  say(g, &b);
}

static void do_frame(program *g)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  lk_bytes bytes = take_bytes(g);

  if (!lk__buf_append(&b, bytes.at, bytes.len))
    abort();
  wire_end(&b, mark);
  say(g, &b);
}

static const deed deeds[] = {
    DEED(token),  DEED(token), DEED(challenge), DEED(challenge), DEED(rspauth),
    DEED(null),   DEED(error), DEED(frame),     DEED(connected), DEED(welcome),
    DEED(failed), DEED(pass),  DEED(call),      DEED(plan),
};

/* ---- a life ------------------------------------------------------------- */

static int give_password(char *out, size_t size, void *arg)
{
  (void)size;
  (void)arg;
  memcpy(out, "secret", 6);
  return 6;
}

static void choose_mechanism(program *g, lk_sasl_config *out)
{
  unsigned how = take(g);

  g->digest = how % 2 == 0 && lk_sasl_digest_md5() != NULL;
  if (g->digest) {
    *out = (lk_sasl_config){
        .size = sizeof *out, .user = "bob", .password = give_password};
    return;
  }
  g->fake = (fake_mechanism){.p = &g->p,
                             .tokens = 1 + (int)(how >> 1 & 3),
                             .speaks_last = (how & 8) != 0,
                             .fail_at = (int)(how >> 4 & 7),
                             .fail_err =
                                 how & 128 ? LK_ERR_AUTH_FAILED : LK_ERR_STATE};
  g->p.sasl = &g->fake;
  fake_mechanism_config(&g->fake, out);
}

static bool begin(program *g)
{
  lk_sasl_config sasl;
  unsigned how = take(g);
  lk_client_config config = {.size = sizeof config,
                             .hosts = how & 1 ? "a,b" : "a",
                             .session_timeout_ms = 2000,
                             .read_only = (how & 2) != 0,
                             .sasl = &sasl};

  failing_mem_init(&g->p.mem);
  g->p.mem.fail_at = how & 4 ? 10 + (how >> 5) * 3 : 0;
  g->p.step = how & 8 ? 1 + (how >> 5) : 0;
  g->p.seed = how + 1;
  g->p.react = react;
  g->p.arg = g;
  choose_mechanism(g, &sasl);
  if (peer_init(&g->p, &config) != 0)
    return false;
  peer_settle(&g->p);
  peer_connected(&g->p);
  if (g->p.client != NULL)
    do_welcome(g);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  program *g = calloc(1, sizeof *g);

  if (g == NULL)
    abort();
  g->at = data;
  g->end = data + size;
  if (begin(g)) {
    while (g->at != g->end && g->p.client != NULL)
      run(g, deeds, sizeof deeds / sizeof deeds[0]);
  }
  g->planned = 0;
  peer_done(&g->p);
  free(g);
  return 0;
}
