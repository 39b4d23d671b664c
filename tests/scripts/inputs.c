/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"
#include "scripts/inputs.h"
#include "support/harness_things.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the client --------------------------------------------------------- */

static void do_on(script_player *player, words *w)
{
  if (player->nplans == PLANS_MAX)
    abort();
  plan *new_plan = &player->plans[player->nplans++];

  snprintf(new_plan->when, sizeof new_plan->when, "%s",
           words_text(w, "a callback"));
  new_plan->line[0] = '\0';
  for (size_t len = 0; words_left(w); len = strlen(new_plan->line)) {
    const word *next = words_take(w, "an input");

    snprintf(new_plan->line + len, sizeof new_plan->line - len,
             next->quoted ? "\"%s\" " : "%s ", next->text);
  }
}

/* Takes an option of the fake SASL mechanism. false: the next word is none. */
static bool take_sasl_option(script_player *player, words *w)
{
  const char *v;

  if ((v = words_value(w, "sasl")) != NULL) {
    player->sasl.tokens = atoi(v);
    player->sasl.h = &player->h;
    player->h.sasl = &player->sasl;
  } else if ((v = words_value(w, "sasl-fails")) != NULL) {
    player->sasl.fail_at = atoi(v);
    player->sasl.fail_err = words_error(w);
  } else if (words_are(w, "sasl-speaks-last")) {
    player->sasl.speaks_last = true;
  } else {
    return false;
  }
  return true;
}

static void do_new(script_player *player, words *w)
{
  lk_client_config config = {.size = sizeof config};
  lk_session resume = {.id = 0};
  lk_sasl_config sasl;
  const char *v;
  char name[16];

  while (words_left(w)) {
    if (take_sasl_option(player, w))
      continue;
    if ((v = words_value(w, "hosts")) != NULL)
      config.hosts = v;
    else if ((v = words_value(w, "timeout")) != NULL)
      config.session_timeout_ms = atoi(v);
    else if ((v = words_value(w, "give-up")) != NULL)
      config.give_up_ms = atoi(v);
    else if ((v = words_value(w, "send-limit")) != NULL)
      config.send_limit = (size_t)atol(v);
    else if ((v = words_value(w, "receive-limit")) != NULL)
      config.receive_limit = (size_t)atol(v);
    else if ((v = words_value(w, "outstanding")) != NULL)
      config.outstanding_limit = (size_t)atol(v);
    else if ((v = words_value(w, "resume")) != NULL) {
      resume.id = strtoll(v, NULL, 0);
      /* as wire_welcome() makes passwords */
      memset(resume.password, (int)(resume.id & 0xff), sizeof resume.password);
      config.resume = &resume;
    } else if (words_are(w, "one-session"))
      config.one_session = true;
    else if (words_are(w, "read-only"))
      config.read_only = true;
    else
      abort();
  }
  if (player->h.sasl != NULL) {
    fake_mechanism_config(&player->sasl, &sasl);
    config.sasl = &sasl;
  }
  int err = harness_init(&player->h, &config);

  if (err != 0)
    harness_log_line(&player->h, "no client: %s",
                     harness_error(err, name, sizeof name));
}

static void do_random(script_player *player, words *w)
{
  player->h.random = (unsigned char)words_number(w, "a byte");
}

static void do_hosts(script_player *player, words *w)
{
  char room[16];
  int err = lk_client_set_hosts(player->h.client, words_text(w, "servers"));

  if (err != 0)
    harness_log_line(&player->h, "hosts refused: %s",
                     harness_error(err, room, sizeof room));
}

static void do_leave_server(script_player *player, words *w)
{
  char room[16];
  int err = lk_client_leave_server(player->h.client);

  (void)w;
  if (err != 0)
    harness_log_line(&player->h, "it stays: %s",
                     harness_error(err, room, sizeof room));
}

static void do_free(script_player *player, words *w)
{
  (void)w;
  harness_free(&player->h);
}

/* Sets the last xid inside the client: the next request gets the one after it.
 */
static void do_xid(script_player *player, words *w)
{
  player->h.client->session.last_xid = (int32_t)words_number(w, "an xid");
}

static void do_fork(script_player *player, words *w)
{
  (void)w;
  player->h.forked = true;
}

static void do_deadline(script_player *player, words *w)
{
  int64_t deadline_ms = lk_client_deadline(player->h.client);

  (void)w;
  if (deadline_ms == INT64_MAX)
    harness_log_line(&player->h, "deadline never");
  else
    harness_log_line(&player->h, "deadline in %" PRId64,
                     deadline_ms - player->h.now);
}

static void do_facts(script_player *player, words *w)
{
  const lk_client *c = player->h.client;
  const char *why;
  char room[16];
  int err = lk_client_last_error(c, &why);

  (void)w;
  harness_log_line(
      &player->h, "%s, session 0x%" PRIx64 ", %d ms, connection %" PRIu64,
      lk_state_text(lk_client_state(c)), (uint64_t)lk_client_session(c).id,
      (int)lk_client_timeout_ms(c), lk_client_connection(c));
  harness_log_line(&player->h, "server %s, trouble %s %s", lk_client_server(c),
                   harness_error(err, room, sizeof room), why);
  if (lk_client_peer(c)[0] != '\0')
    harness_log_line(&player->h, "peer %s, local %s", lk_client_peer(c),
                     lk_client_local(c));
}

/* ---- the transport ------------------------------------------------------- */

enum { CLOSED_BY_SERVER = 0 }; /* in place of the error of a connection */

static void do_resolved(script_player *player, words *w)
{
  harness_resolved(&player->h, (uint32_t)words_number(w, "how many?"));
}

/* The addresses of a connection that is not reported yet. */
static void do_addresses(script_player *player, words *w)
{
  const char *local = words_text(w, "an address");

  lk_client_note_addresses(player->h.client, player->h.want.attempt, local,
                           words_text(w, "an address"));
}

static void do_connected(script_player *player, words *w)
{
  (void)w;
  harness_connected(&player->h);
}

static void do_failed(script_player *player, words *w)
{
  int err = words_error(w);

  harness_failed(&player->h, err, words_left(w) ? words_text(w, "why?") : NULL);
}

static void do_closed(script_player *player, words *w)
{
  (void)w;
  harness_failed(&player->h, CLOSED_BY_SERVER, NULL);
}

static void do_eager(script_player *player, words *w)
{
  (void)w;
  player->h.eager = true;
}

static void do_room(script_player *player, words *w)
{
  player->h.room =
      words_are(w, "all") ? SIZE_MAX : (size_t)words_number(w, "bytes");
}

static void do_mute(script_player *player, words *w)
{
  player->h.mute = !words_are(w, "off");
}

static void do_probed(script_player *player, words *w)
{
  harness_probed(&player->h, words_left(w) ? words_text(w, "an answer") : "");
}

/* Lets time pass while the driver does not run. */
static void do_stall(script_player *player, words *w)
{
  player->h.now += words_number(w, "ms");
  player->asleep = true;
}

static void do_time(script_player *player, words *w)
{
  harness_pass(&player->h, words_number(w, "ms"));
}

/* ---- the server ---------------------------------------------------------- */

/* Gives the bytes in `b` to the client, and frees `b`. If the server closes in
   the middle of them (play_mode.cut), the client gets those before. */
static void give_to_client(script_player *player, lk_buf *b)
{
  size_t len = lk__buf_len(b);
  bool closes = player->mode.cut && player->mode.at - player->received <= len;

  if (closes)
    len = player->mode.at - player->received;
  player->received += len;
  harness_receive(&player->h, lk__buf_bytes(b), len);
  lk__buf_free(b);
  if (!closes)
    return;
  player->mode.cut = false;
  player->mode.failed = true;
  harness_failed(&player->h, CLOSED_BY_SERVER, NULL);
}

static void do_welcome(script_player *player, words *w)
{
  lk_buf b = wire_buf();
  int64_t session = words_number(w, "a session");
  int32_t timeout_ms = (int32_t)words_number(w, "ms");

  if (words_are(w, "read-only"))
    wire_welcome_read_only(&b, session, timeout_ms);
  else
    wire_welcome(&b, session, timeout_ms);
  give_to_client(player, &b);
}

static void do_reply(script_player *player, words *w)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  int32_t xid = (int32_t)words_number(w, "an xid");
  int64_t zxid = words_number(w, "a zxid");

  wire_header(&b, xid, zxid, words_error(w));
  words_encode(w, &b);
  wire_end(&b, mark);
  give_to_client(player, &b);
}

enum { NO_ZXID = 0 };

static void do_pong(script_player *player, words *w)
{
  lk_buf b = wire_buf();

  int err = words_left(w) ? words_error(w) : 0;

  wire_reply(&b, LK_XID_PING, NO_ZXID, err);
  give_to_client(player, &b);
}

static void do_event(script_player *player, words *w)
{
  lk_buf b = wire_buf();
  int32_t type = (int32_t)words_number(w, "a type");

  wire_event(&b, type, words_text(w, "a path"));
  give_to_client(player, &b);
}

static void do_frame(script_player *player, words *w)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  words_encode(w, &b);
  wire_end(&b, mark);
  give_to_client(player, &b);
}

static void do_bytes(script_player *player, words *w)
{
  lk_buf b = wire_buf();

  words_encode(w, &b);
  give_to_client(player, &b);
}

/* ---- calls --------------------------------------------------------------- */

harness_call input_take_name(words *w)
{
  harness_call call = {.name = words_text(w, "a name")};

  return call;
}

void input_take_options(harness_call *call, words *w)
{
  const char *v;

  while (words_left(w)) {
    if ((v = words_value(w, "watch")) != NULL)
      call->watch = v;
    else if ((v = words_value(w, "timeout")) != NULL)
      call->timeout_ms = strtoll(v, NULL, 0);
    else if (words_are(w, "repeat"))
      call->repeat = true;
    else if (words_are(w, "until-break"))
      call->until_disconnect = true;
    else if (words_are(w, "fails-offline"))
      call->fails_offline = true;
    else if (words_are(w, "cancellable"))
      call->cancellable = true;
    else
      abort(); /* an unknown option */
  }
}

int input_take_flags(words *w)
{
  int flags = 0;

  for (;;) {
    if (words_are(w, "ephemeral"))
      flags |= LK_EPHEMERAL;
    else if (words_are(w, "sequential"))
      flags |= LK_SEQUENTIAL;
    else if (words_are(w, "container"))
      flags |= LK_CONTAINER;
    else
      return flags;
  }
}

void input_read(script_player *player, words *w,
                int (*call)(harness *h, const harness_call *call,
                            const char *path))
{
  harness_call opts = input_take_name(w);
  const char *path = words_text(w, "a path");

  input_take_options(&opts, w);
  call(&player->h, &opts, path);
}

static void do_get(script_player *player, words *w)
{
  input_read(player, w, harness_get);
}

static void do_exists(script_player *player, words *w)
{
  input_read(player, w, harness_exists);
}

static void do_children(script_player *player, words *w)
{
  input_read(player, w, harness_children);
}

static void do_sync(script_player *player, words *w)
{
  input_read(player, w, harness_sync);
}

static void run_create(script_player *player, words *w, bool with_stat)
{
  harness_call opts = input_take_name(w);
  const char *path = words_text(w, "a path");
  lk_bytes data = words_bytes(w, "data");
  int flags = input_take_flags(w);

  input_take_options(&opts, w);
  harness_create(&player->h, &opts, with_stat, path, data, flags);
}

static void do_create(script_player *player, words *w)
{
  run_create(player, w, false);
}

static void do_create2(script_player *player, words *w)
{
  run_create(player, w, true);
}

static void do_delete(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  const char *path = words_text(w, "a path");
  int32_t version = (int32_t)words_number(w, "a version");

  input_take_options(&opts, w);
  harness_delete(&player->h, &opts, path, version);
}

static void do_set(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  const char *path = words_text(w, "a path");
  lk_bytes data = words_bytes(w, "data");
  int32_t version = (int32_t)words_number(w, "a version");

  input_take_options(&opts, w);
  harness_set(&player->h, &opts, path, data, version);
}

static lk_op take_op(words *w)
{
  const char *type = words_text(w, "an operation");
  const char *path = words_text(w, "a path");

  if (strcmp(type, "create") == 0) {
    lk_bytes data = words_bytes(w, "data");

    return lk_op_create(path, data, NULL, input_take_flags(w));
  }
  if (strcmp(type, "create2") == 0) {
    lk_bytes data = words_bytes(w, "data");

    return lk_op_create2(path, data, NULL, input_take_flags(w));
  }
  if (strcmp(type, "create-ttl") == 0) {
    lk_bytes data = words_bytes(w, "data");
    int64_t ttl_ms = words_number(w, "ms");

    return lk_op_create_ttl(path, data, NULL, input_take_flags(w), ttl_ms);
  }
  if (strcmp(type, "set") == 0) {
    lk_bytes data = words_bytes(w, "data");

    return lk_op_set(path, data, (int32_t)words_number(w, "a version"));
  }
  int32_t version = (int32_t)words_number(w, "a version");

  if (strcmp(type, "check") == 0)
    return lk_op_check(path, version);
  return lk_op_delete(path, version);
}

static void do_multi(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  lk_op ops[8];
  size_t count = 0;

  while (words_left(w) && count < sizeof ops / sizeof ops[0])
    ops[count++] = take_op(w);
  harness_multi(&player->h, &opts, ops, count);
}

static void do_auth(script_player *player, words *w)
{
  const char *name = words_text(w, "a name");
  const char *scheme = words_text(w, "a scheme");

  harness_auth(&player->h, name, scheme, words_bytes(w, "data"));
}

static void do_close(script_player *player, words *w)
{
  harness_close(&player->h, words_text(w, "a name"));
}

static void do_cancel(script_player *player, words *w)
{
  const char *name = words_text(w, "a watch");

  harness_cancel(&player->h, name, words_are(w, "server"));
}

static void do_cancel_request(script_player *player, words *w)
{
  harness_cancel_request(&player->h, words_text(w, "a request"));
}

static void do_listen(script_player *player, words *w)
{
  const char *name = words_text(w, "a name");

  bool logs_replies = words_are(w, "answers");

  harness_listen(&player->h, name, logs_replies, words_are(w, "attempts"));
}

static void do_unlisten(script_player *player, words *w)
{
  harness_unlisten(&player->h, words_text(w, "a name"));
}

static void do_timer(script_player *player, words *w)
{
  const char *name = words_text(w, "a name");

  harness_timer(&player->h, name, words_number(w, "ms"));
}

static void do_stop(script_player *player, words *w)
{
  harness_stop(&player->h, words_text(w, "a name"));
}

/* ---- the table ---------------------------------------------------------- */

/* input.needs_no_client */
enum { CLIENT = false, ALWAYS = true };

static const input inputs[] = {
    /* the client */
    {"new", do_new, ALWAYS},       /* what lk_client_config has, as key=value */
    {"random", do_random, ALWAYS}, /* N: the value of every random byte */
    {"on", do_on, ALWAYS}, /* NAME[:EVENT] INPUT…: of a request or "state" */
    {"hosts", do_hosts, CLIENT}, /* the servers from now on */
    {"leave-server", do_leave_server, CLIENT},
    {"free", do_free, CLIENT},
    {"fork", do_fork, CLIENT},
    {"xid", do_xid, CLIENT},
    {"deadline", do_deadline, CLIENT},
    {"facts", do_facts, CLIENT},
    /* the transport */
    {"resolved", do_resolved, CLIENT},
    {"addresses", do_addresses, CLIENT}, /* LOCAL PEER */
    {"connected", do_connected, CLIENT},
    {"failed", do_failed, CLIENT}, /* ERROR [WHY] */
    {"closed", do_closed, CLIENT},
    {"probed", do_probed, CLIENT}, /* [ANSWER] */
    {"eager", do_eager, CLIENT},   /* the hook `wake` connects from now on */
    {"room", do_room, CLIENT},     /* bytes that it takes, or "all" */
    {"mute", do_mute, ALWAYS},     /* [off]: do not show sent requests */
    {"stall", do_stall, CLIENT},
    {"time", do_time, CLIENT},
    /* the server */
    {"welcome", do_welcome, CLIENT}, /* SESSION MS [read-only] */
    {"reply", do_reply, CLIENT},     /* XID ZXID ERROR BODY, see words.h */
    {"pong", do_pong, CLIENT},       /* [ERROR] */
    {"event", do_event, CLIENT},     /* TYPE PATH */
    {"frame", do_frame, CLIENT},     /* a body with a length before it */
    {"bytes", do_bytes, CLIENT},
    /* calls: NAME PATH ARGUMENT... [watch=NAME] [timeout=MS] [repeat]
       [until-break] [fails-offline] [cancellable] */
    {"get", do_get, CLIENT},
    {"exists", do_exists, CLIENT},
    {"children", do_children, CLIENT},
    {"sync", do_sync, CLIENT},
    {"create", do_create, CLIENT},
    {"create2", do_create2, CLIENT},
    {"delete", do_delete, CLIENT},
    {"set", do_set, CLIENT},
    {"multi", do_multi, CLIENT},
    {"count", input_count, CLIENT},
    {"ephemerals", input_ephemerals, CLIENT},
    {"get-acl", input_get_acl, CLIENT},
    {"set-acl", input_set_acl, CLIENT}, /* … VERSION PERMS:SCHEME:ID… */
    {"create-ttl", input_create_ttl, CLIENT}, /* … DATA MS [sequential] */
    {"multi-read", input_multi_read, CLIENT}, /* get|list PATH … */
    {"who-am-i", input_who_am_i, CLIENT},
    {"config", input_config, CLIENT},
    {"reconfig", input_reconfig, CLIENT},   /* [joining=] [leaving=]
                                            [members=] [version=] */
    {"add-watch", input_add_watch, CLIENT}, /* … [tree] */
    {"auth", do_auth, CLIENT},
    {"close", do_close, CLIENT},
    {"cancel", do_cancel, CLIENT}, /* WATCH [server] */
    {"cancel-request", do_cancel_request, CLIENT},
    {"listen", do_listen, CLIENT}, /* NAME [answers|attempts] */
    {"unlisten", do_unlisten, CLIENT},
    {"timer", do_timer, CLIENT}, /* NAME MS */
    {"stop", do_stop, CLIENT},
};

const input *input_find(const char *name)
{
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
    if (strcmp(inputs[i].name, name) == 0)
      return &inputs[i];
  }
  fprintf(stderr, "transcript: there is no input \"%s\"\n", name);
  abort();
}
