/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The engine as a whole. The bytes are a program: how the client is made, and
 * then what happens, one deed after another: calls of the user, the fate of the
 * transport, time, and a server that says what is right, nearly right or
 * anything at all. Some deeds are put off into the next callbacks. The peer
 * knows what a client promises and aborts when it is not so.
 */

#include "proto/engine/engine.h"
#include "proto/wire/multi.h"
#include "support/peer.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct program {
  peer p;
  const uint8_t *at;
  const uint8_t *end;
  unsigned number;  /* of the next request */
  unsigned planned; /* deeds to be done in callbacks */
  int depth;
  int64_t session; /* last one that was given */
  char name[24];
  char watch[24];
} program;

static unsigned take(program *g)
{
  return g->at == g->end ? 0 : *g->at++;
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

/* ---- what a user does --------------------------------------------------- */

static const char *take_path(program *g)
{
  static const char *const paths[] = {"/",    "/a",   "/a/b", "/b",
                                      "/b/c", "/a/x", "bad",  "/a/"};

  return paths[take(g) % 8];
}

static peer_call take_call(program *g)
{
  unsigned options = take(g);
  peer_call call = {.name = g->name};

  snprintf(g->name, sizeof g->name, "r%u", g->number++);
  snprintf(g->watch, sizeof g->watch, "w%u", g->number % 16);
  if (options & 1)
    call.watch = g->watch;
  call.repeat = (options & 2) != 0;
  call.until_break = (options & 4) != 0;
  if (options & 8)
    call.timeout_ms = options >> 4 == 15 ? -2 : (int64_t)(options >> 4) * 40;
  return call;
}

static void do_get(program *g)
{
  peer_call call = take_call(g);

  peer_get(&g->p, &call, take_path(g));
}

static void do_exists(program *g)
{
  peer_call call = take_call(g);

  peer_exists(&g->p, &call, take_path(g));
}

static void do_children(program *g)
{
  peer_call call = take_call(g);

  peer_children(&g->p, &call, take_path(g));
}

/* The data of a write is its name, by which the peer knows it. */
static void do_create(program *g)
{
  unsigned kind = take(g);
  peer_call call = take_call(g);

  peer_create(&g->p, &call, (kind & 8) != 0, take_path(g), lk_text(g->name),
              (int)(kind & 7));
}

static void do_set(program *g)
{
  peer_call call = take_call(g);

  peer_set(&g->p, &call, take_path(g), lk_text(g->name), -1);
}

static void do_delete(program *g)
{
  peer_call call = take_call(g);

  peer_delete(&g->p, &call, take_path(g), (int32_t)take(g) - 2);
}

static void do_sync(program *g)
{
  peer_call call = take_call(g);

  peer_sync(&g->p, &call, take_path(g));
}

static void do_multi(program *g)
{
  peer_call call = take_call(g);
  const char *a = take_path(g);
  const char *b = take_path(g);
  lk_op ops[3] = {lk_op_set(a, lk_text(g->name), -1),
                  lk_op_create(b, lk_text(g->name), NULL, LK_SEQUENTIAL),
                  lk_op_check(a, 1)};

  peer_multi(&g->p, &call, ops, take(g) % 4);
}

static void do_auth(program *g)
{
  peer_call call = take_call(g);

  peer_auth(&g->p, call.name, "digest", lk_text("bob:secret"));
}

static void do_large(program *g)
{
  peer_call call = take_call(g);
  size_t len = (size_t)take(g) * 40;
  char *data = calloc(1, len + 1);

  if (data == NULL)
    abort();
  peer_set(&g->p, &call, "/a", lk_bytes_of(data, len), -1);
  free(data);
}

static void do_close(program *g)
{
  peer_call call = take_call(g);

  if (take(g) % 8 == 0)
    peer_close(&g->p, call.name);
}

static void do_free(program *g)
{
  if (take(g) % 32 == 31)
    peer_free(&g->p);
}

static void do_cancel(program *g)
{
  unsigned which = take(g);
  char name[24];

  snprintf(name, sizeof name, "w%u", which % 16);
  peer_cancel(&g->p, name, which >= 128);
}

static const char *take_listener(program *g)
{
  static const char *const names[] = {"l0", "l1", "l2", "l3"};

  return names[take(g) % 4];
}

static void do_listen(program *g)
{
  const char *name = take_listener(g);

  peer_unlisten(&g->p, name);
  peer_listen(&g->p, name, true);
}

static void do_unlisten(program *g)
{
  peer_unlisten(&g->p, take_listener(g));
}

static void do_timer(program *g)
{
  const char *name = take(g) % 2 ? "t0" : "t1";

  peer_timer(&g->p, name, 1 + (int64_t)take(g) * 20);
}

static void do_stop(program *g)
{
  peer_stop(&g->p, take(g) % 2 ? "t0" : "t1");
}

static const deed calls[] = {
    DEED(get),    DEED(exists), DEED(children), DEED(create), DEED(set),
    DEED(delete), DEED(sync),   DEED(multi),    DEED(auth),   DEED(large),
    DEED(close),  DEED(free),   DEED(cancel),   DEED(listen), DEED(unlisten),
    DEED(timer),  DEED(stop),
};

static void do_call(program *g)
{
  run(g, calls, sizeof calls / sizeof calls[0]);
}

static void do_list(program *g)
{
  peer_call call = take_call(g);

  peer_list(&g->p, &call, take_path(g));
}

static void do_count(program *g)
{
  peer_call call = take_call(g);

  peer_count(&g->p, &call, take_path(g));
}

static void do_ephemerals(program *g)
{
  peer_call call = take_call(g);

  peer_ephemerals(&g->p, &call, take_path(g));
}

static void do_get_acl(program *g)
{
  peer_call call = take_call(g);

  peer_get_acl(&g->p, &call, take_path(g));
}

static void do_set_acl(program *g)
{
  peer_call call = take_call(g);

  peer_set_acl(&g->p, &call, take_path(g), &lk_acl_open, (int32_t)take(g) - 2);
}

/* Whatever is asked for, what leaves a server can take: the peer reads it. */
static void do_create_ttl(program *g)
{
  peer_call call = take_call(g);
  const char *path = take_path(g);
  int flags = (int)take(g) % 8;
  int64_t ttl_ms = (int64_t)take(g) - 2;

  peer_create_ttl(&g->p, &call, path, lk_text(g->name), flags, ttl_ms);
}

static void do_multi_read(program *g)
{
  peer_call call = take_call(g);
  lk_read reads[] = {lk_read_get(take_path(g)), lk_read_list(take_path(g))};

  peer_multi_read(&g->p, &call, reads, take(g) % 3);
}

static void do_who_am_i(program *g)
{
  peer_call call = take_call(g);

  peer_who_am_i(&g->p, &call);
}

static void do_config(program *g)
{
  peer_call call = take_call(g);

  peer_config(&g->p, &call);
}

static void do_reconfig(program *g)
{
  peer_call call = take_call(g);
  lk_reconfiguration change = {.size = sizeof change, .leaving = "1"};

  peer_reconfig(&g->p, &call, &change);
}

static void do_add_watch(program *g)
{
  peer_call call = take_call(g);

  call.watch = g->watch;
  peer_add_watch(&g->p, &call, take_path(g),
                 take(g) % 2 ? LK_WATCH_TREE : LK_WATCH_NODE);
}

static const deed seldom[] = {
    DEED(list),      DEED(count),      DEED(ephemerals), DEED(get_acl),
    DEED(set_acl),   DEED(create_ttl), DEED(multi_read), DEED(who_am_i),
    DEED(config),    DEED(reconfig),   DEED(add_watch),  DEED(add_watch),
    DEED(add_watch), DEED(cancel),
};

static void do_seldom(program *g)
{
  run(g, seldom, sizeof seldom / sizeof seldom[0]);
}

static void react(peer *p, const char *name, const char *event)
{
  program *g = p->arg;

  (void)name;
  (void)event;
  if (g->planned == 0 || p->client == NULL)
    return;
  g->planned--;
  if (take(g) % 4 == 3)
    do_seldom(g);
  else
    do_call(g);
}

static void do_plan(program *g)
{
  g->planned = take(g) % 8;
}

/* ---- transport and time ------------------------------------------------- */

static void do_connected(program *g)
{
  g->p.room = SIZE_MAX;
  peer_connected(&g->p);
}

static void do_failed(program *g)
{
  static const int errs[] = {0, LK_ERR_LOSS, LK_ERR_CONNECT, LK_ERR_RESOLVE};

  peer_failed(&g->p, errs[take(g) % 4], NULL);
}

/* Addresses were found; or a server says whether it has a quorum, if one was
 * asked. */
static void do_resolved(program *g)
{
  static const char *const answers[] = {"rw", "ro", "", "rwx"};
  unsigned which = take(g) % 4;

  if (g->p.probe != 0)
    peer_probed(&g->p, answers[which]);
  else
    peer_resolved(&g->p, which);
}

static void do_room(program *g)
{
  unsigned room = take(g);

  g->p.room = room == 255 ? SIZE_MAX : room;
  peer_settle(&g->p);
}

static void do_pass(program *g)
{
  peer_pass(&g->p, (int64_t)take(g) * 50);
}

static void do_stall(program *g)
{
  g->p.now += (int64_t)take(g) * 100;
}

/* ---- the server --------------------------------------------------------- */

static void say(program *g, lk_buf *b)
{
  peer_receive(&g->p, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_free(b);
}

static void do_welcome(program *g)
{
  unsigned how = take(g);
  lk_buf b = wire_buf();

  if (how >= 200)
    g->session = how == 255 ? 0 : (int64_t)how;
  else if (g->session == 0)
    g->session = 1;
  if (g->p.read_only && how % 2 == 1)
    wire_welcome_read_only(&b, g->session, (int32_t)take(g) * 100);
  else
    wire_welcome(&b, g->session, (int32_t)take(g) * 100);
  say(g, &b);
}

static void put_bytes(program *g, lk_buf *b)
{
  size_t len = take(g), left = (size_t)(g->end - g->at);

  if (len > left)
    len = left;
  if (!lk__buf_append(b, g->at, len))
    abort();
  g->at += len;
}

static void put_stat(lk_buf *b)
{
  struct lk_stat_reply r = {.stat = {.czxid = 7}};

  wire_record(b, &lk__stat_reply_record, &r);
}

static void put_results(lk_buf *b, size_t parts, bool reads)
{
  for (size_t i = 0; i < parts; i++) {
    struct lk_multi_header h = {
        reads ? LK_OPCODE_GET_CHILDREN : LK_OPCODE_CHECK, false, 0};

    wire_record(b, &lk__multi_header_record, &h);
    if (reads)
      wire_int(b, 0); /* no names */
  }
  struct lk_multi_header end = {-1, true, -1};

  wire_record(b, &lk__multi_header_record, &end);
}

/* What a server would answer to the request at hand. */
static void put_body(lk_buf *b, const lk_request *r)
{
  static const lk_bytes names[] = {{"a", 1}, {"bc", 2}};
  struct lk_names_reply list = {lk__vec_of(names, 2)};

  switch (r->op) {
  case LK_OPCODE_RECONFIG:
  case LK_OPCODE_GET_DATA: wire_bytes(b, lk_text("data")); break;
  case LK_OPCODE_GET_CHILDREN:
  case LK_OPCODE_GET_EPHEMERALS:
    wire_record(b, &lk__names_reply_record, &list);
    return;
  case LK_OPCODE_GET_ACL:
  case LK_OPCODE_WHO_AM_I:
  case LK_OPCODE_GET_ALL_CHILDREN_NUMBER:
  case LK_OPCODE_ADD_WATCH: wire_int(b, 0); break;
  case LK_OPCODE_GET_CHILDREN2:
    wire_record(b, &lk__names_reply_record, &list);
    break;
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
  case LK_OPCODE_SYNC: wire_bytes(b, lk_text("/root/a/x")); break;
  case LK_OPCODE_MULTI: put_results(b, r->parts, false); return;
  case LK_OPCODE_MULTI_READ: put_results(b, r->parts, true); return;
  default: break;
  }
  put_stat(b);
}

static int32_t take_error(program *g)
{
  static const int32_t errs[] = {0,    0,    0,    0,    -101, -101,
                                 -110, -103, -118, -112, -124, -115,
                                 -102, -4,   -6,   -1003};

  return errs[take(g) % 16];
}

/* To the oldest request, as a good server would, or with an error. */
static void do_reply(program *g)
{
  const lk_client *c = g->p.client;

  if (c->sent.count == 0)
    return;
  const lk_request *head = lk__ring_at(&c->sent, 0);
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  int32_t err = take_error(g);

  wire_header(&b, head->xid, err == -6 ? -1 : (int64_t)g->number, err);
  if (err == 0)
    put_body(&b, head);
  wire_end(&b, mark);
  say(g, &b);
}

/* To the oldest request, with a body of any bytes. */
static void do_odd_reply(program *g)
{
  const lk_client *c = g->p.client;
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  const lk_request *head = c->sent.count == 0 ? NULL : lk__ring_at(&c->sent, 0);

  wire_header(&b, head == NULL ? 1 : head->xid, 9, 0);
  put_bytes(g, &b);
  wire_end(&b, mark);
  say(g, &b);
}

/* To what is not in the order of requests. */
static void do_other_reply(program *g)
{
  static const int32_t xids[] = {LK_XID_PING,
                                 LK_XID_AUTH,
                                 LK_XID_SET_WATCHES,
                                 LK_XID_EVENT,
                                 0,
                                 INT32_MAX,
                                 -3,
                                 1};
  lk_buf b = wire_buf();
  int32_t xid = xids[take(g) % 8];

  wire_reply(&b, xid, 5, take_error(g));
  say(g, &b);
}

static void do_event(program *g)
{
  static const char *const paths[] = {"/",         "/a",      "/a/b",   "/b",
                                      "/root",     "/root/a", "/rooty", "",
                                      "/root/a/b", "/root/b"};
  lk_buf b = wire_buf();
  int32_t type = (int32_t)take(g) % 7 - 1;

  wire_event(&b, type, paths[take(g) % 10]);
  say(g, &b);
}

static void do_bytes(program *g)
{
  lk_buf b = wire_buf();

  put_bytes(g, &b);
  say(g, &b);
}

static void do_frame(program *g)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  put_bytes(g, &b);
  wire_end(&b, mark);
  say(g, &b);
}

static const deed deeds[] = {
    DEED(call),  DEED(call),      DEED(call),      DEED(seldom),
    DEED(plan),  DEED(connected), DEED(failed),    DEED(resolved),
    DEED(room),  DEED(pass),      DEED(stall),     DEED(welcome),
    DEED(reply), DEED(reply),     DEED(odd_reply), DEED(other_reply),
    DEED(event), DEED(bytes),     DEED(frame),
};

/* ---- a life
 * ------------------------------------------------------------------ */

static bool begin(program *g)
{
  static const char *const hosts[] = {"a", "a,b", "a:1,[::1]:2,c", "a/root"};
  lk_session resume = {.id = 3};
  unsigned first = take(g), second = take(g), third = take(g);
  lk_client_config config = {.size = sizeof config,
                             .hosts = hosts[first & 3],
                             .one_session = (first & 4) != 0,
                             .read_only = (third & 64) != 0,
                             .resume = first & 8 ? &resume : NULL,
                             .give_up_ms = (int32_t)(first >> 4) * 500 - 1,
                             .session_timeout_ms =
                                 1000 + (int32_t)(second & 15) * 500,
                             .send_limit = second & 16 ? 200 : 0,
                             .receive_limit = second & 32 ? 150 : 0,
                             .outstanding_limit = second & 64 ? 5 : 0};

  failing_mem_init(&g->p.mem);
  g->p.mem.fail_at = third < 128 ? 0 : 20 + (third & 127) * 2;
  g->p.mem.for_good = (second & 128) != 0;
  g->p.step = third & 1 ? 1 + (third >> 1 & 7) : 0;
  g->p.seed = third + 1;
  g->p.react = react;
  g->p.arg = g;
  g->session = config.resume == NULL ? 0 : 3;
  if (peer_init(&g->p, &config) != 0)
    return false;
  peer_settle(&g->p);
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
