/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The whole engine. The input is a program (program.h): three bytes of options
 * for the client, then actions. Actions are calls of the API, events of the
 * transport, passing time, and replies of a server, which are valid, nearly
 * valid or arbitrary. Some actions run inside the next callbacks.
 *
 * Oracle: the harness (tests/support/harness.h) aborts where the client breaks
 * a promise of <latchkey/client.h>.
 */

#include "program.h"
#include "proto/engine/client.h"
#include "proto/wire/multi.h"
#include "support/wire.h"

#include <stdio.h>

/* ---- calls of the user -------------------------------------------------- */

static const char *take_path(fuzz_program *g)
{
  static const char *const paths[] = {"/",    "/a",   "/a/b", "/b",
                                      "/b/c", "/a/x", "bad",  "/a/"};

  return paths[take_byte(&g->in) % 8];
}

static harness_call take_call(fuzz_program *g)
{
  unsigned options = take_byte(&g->in);
  harness_call call = {.name = g->name};

  snprintf(g->name, sizeof g->name, "r%u", g->number++);
  snprintf(g->watch, sizeof g->watch, "w%u", g->number % 16);
  if (options & 1)
    call.watch = g->watch;
  call.repeat = (options & 2) != 0;
  call.until_disconnect = (options & 4) != 0;
  call.cancellable = options % 16 != 0;
  call.fails_offline = options == 16;
  if (options & 8)
    call.timeout_ms = options >> 4 == 15 ? -2 : (int64_t)(options >> 4) * 40;
  return call;
}

static void do_get(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_get(&g->h, &call, take_path(g));
}

static void do_exists(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_exists(&g->h, &call, take_path(g));
}

static void do_children(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_children(&g->h, &call, take_path(g));
}

/* The data of a write is the name of the request, by which the harness
 * recognises the request. */
static void do_create(fuzz_program *g)
{
  unsigned kind = take_byte(&g->in);
  harness_call call = take_call(g);

  harness_create(&g->h, &call, (kind & 8) != 0, take_path(g), lk_text(g->name),
                 (int)(kind & 7));
}

static void do_set(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_set(&g->h, &call, take_path(g), lk_text(g->name), -1);
}

static void do_delete(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_delete(&g->h, &call, take_path(g), (int32_t)take_byte(&g->in) - 2);
}

static void do_sync(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_sync(&g->h, &call, take_path(g));
}

static void do_multi(fuzz_program *g)
{
  harness_call call = take_call(g);
  const char *a = take_path(g);
  const char *b = take_path(g);
  lk_op ops[3] = {lk_op_set(a, lk_text(g->name), -1),
                  lk_op_create(b, lk_text(g->name), NULL, LK_SEQUENTIAL),
                  lk_op_check(a, 1)};

  harness_multi(&g->h, &call, ops, take_byte(&g->in) % 4);
}

static void do_auth(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_auth(&g->h, call.name, "digest", lk_text("bob:secret"));
}

static void do_large(fuzz_program *g)
{
  harness_call call = take_call(g);
  size_t len = (size_t)take_byte(&g->in) * 40;
  char *data = calloc(1, len + 1);

  must(data != NULL);
  harness_set(&g->h, &call, "/a", lk_bytes_of(data, len), -1);
  free(data);
}

static void do_close(fuzz_program *g)
{
  harness_call call = take_call(g);

  if (take_byte(&g->in) % 8 == 0)
    harness_close(&g->h, call.name);
}

static void do_free(fuzz_program *g)
{
  if (take_byte(&g->in) % 32 == 31)
    harness_free(&g->h);
}

static void do_cancel(fuzz_program *g)
{
  unsigned which = take_byte(&g->in);
  char name[24];

  snprintf(name, sizeof name, "w%u", which % 16);
  harness_cancel(&g->h, name, which >= 128);
}

static void do_cancel_request(fuzz_program *g)
{
  char name[24];
  unsigned made_before = take_byte(&g->in) % 16;

  snprintf(name, sizeof name, "r%u", g->number - 1 - made_before);
  harness_cancel_request(&g->h, name);
}

static void do_leave_server(fuzz_program *g)
{
  if (g->h.client != NULL)
    (void)lk_client_leave_server(g->h.client);
}

static const char *take_listener(fuzz_program *g)
{
  static const char *const names[] = {"l0", "l1", "l2", "l3"};

  return names[take_byte(&g->in) % 4];
}

static void do_listen(fuzz_program *g)
{
  const char *name = take_listener(g);

  harness_unlisten(&g->h, name);
  harness_listen(&g->h, name, true, name[1] % 2 != 0);
}

static void do_unlisten(fuzz_program *g)
{
  harness_unlisten(&g->h, take_listener(g));
}

static void do_timer(fuzz_program *g)
{
  const char *name = take_byte(&g->in) % 2 ? "t0" : "t1";

  harness_timer(&g->h, name, 1 + (int64_t)take_byte(&g->in) * 20);
}

static void do_stop(fuzz_program *g)
{
  harness_stop(&g->h, take_byte(&g->in) % 2 ? "t0" : "t1");
}

static const action calls[] = {
    ACTION(get),    ACTION(exists), ACTION(children), ACTION(create),
    ACTION(set),    ACTION(delete), ACTION(sync),     ACTION(multi),
    ACTION(auth),   ACTION(large),  ACTION(close),    ACTION(free),
    ACTION(cancel), ACTION(listen), ACTION(unlisten), ACTION(timer),
    ACTION(stop),
};

static void do_call(fuzz_program *g)
{
  run_action(g, ACTIONS(calls));
}

static void do_list(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_children(&g->h, &call, take_path(g));
}

static void do_count(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_count(&g->h, &call, take_path(g));
}

static void do_ephemerals(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_ephemerals(&g->h, &call, take_path(g));
}

static void do_get_acl(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_get_acl(&g->h, &call, take_path(g));
}

static void do_set_acl(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_set_acl(&g->h, &call, take_path(g), lk_acl_open(),
                  (int32_t)take_byte(&g->in) - 2);
}

/* The client must refuse flags and TTLs that could crash a server; the harness
 * checks each request that is sent. */
static void do_create_ttl(fuzz_program *g)
{
  harness_call call = take_call(g);
  const char *path = take_path(g);
  int flags = (int)take_byte(&g->in) % 8;
  int64_t ttl_ms = (int64_t)take_byte(&g->in) - 2;

  harness_create_ttl(&g->h, &call, path, lk_text(g->name), flags, ttl_ms);
}

static void do_multi_read(fuzz_program *g)
{
  harness_call call = take_call(g);
  lk_read reads[] = {lk_read_get(take_path(g)),
                     lk_read_get_children(take_path(g))};

  harness_multi_read(&g->h, &call, reads, take_byte(&g->in) % 3);
}

static void do_who_am_i(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_who_am_i(&g->h, &call);
}

static void do_config(fuzz_program *g)
{
  harness_call call = take_call(g);

  harness_config(&g->h, &call);
}

static void do_reconfig(fuzz_program *g)
{
  harness_call call = take_call(g);
  lk_reconfiguration change = {.size = sizeof change, .leaving = "1"};

  harness_reconfig(&g->h, &call, &change);
}

static void do_add_watch(fuzz_program *g)
{
  harness_call call = take_call(g);

  call.watch = g->watch;
  harness_add_watch(&g->h, &call, take_path(g),
                    take_byte(&g->in) % 2 ? LK_WATCH_RECURSIVE
                                          : LK_WATCH_PERSISTENT);
}

static const action rare_calls[] = {
    ACTION(list),         ACTION(count),     ACTION(ephemerals),
    ACTION(get_acl),      ACTION(set_acl),   ACTION(create_ttl),
    ACTION(multi_read),   ACTION(who_am_i),  ACTION(config),
    ACTION(reconfig),     ACTION(add_watch), ACTION(add_watch),
    ACTION(add_watch),    ACTION(cancel),    ACTION(cancel_request),
    ACTION(leave_server),
};

static void do_rare_call(fuzz_program *g)
{
  run_action(g, ACTIONS(rare_calls));
}

static void run_deferred(harness *h, const char *name, const char *event)
{
  fuzz_program *g = h->arg;

  (void)name;
  (void)event;
  if (g->deferred == 0 || h->client == NULL)
    return;
  g->deferred--;
  if (take_byte(&g->in) % 4 == 3)
    do_rare_call(g);
  else
    do_call(g);
}

static void do_defer(fuzz_program *g)
{
  g->deferred = take_byte(&g->in) % 8;
}

/* ---- transport and time ------------------------------------------------- */

static void do_connected(fuzz_program *g)
{
  g->h.room = SIZE_MAX;
  harness_connected(&g->h);
}

static void do_failed(fuzz_program *g)
{
  static const int errs[] = {0, LK_ERR_CONNECTION_LOSS, LK_ERR_CONNECT,
                             LK_ERR_RESOLVE};

  harness_failed(&g->h, errs[take_byte(&g->in) % 4], NULL);
}

/* End the outstanding probe, or if there is none, the lookup of names. */
static void do_resolved_or_probed(fuzz_program *g)
{
  static const char *const answers[] = {"rw", "ro", "", "rwx"};
  unsigned which = take_byte(&g->in) % 4;

  if (g->h.probe != 0)
    harness_probed(&g->h, answers[which]);
  else
    harness_resolved(&g->h, which);
}

static void do_socket_room(fuzz_program *g)
{
  unsigned room = take_byte(&g->in);

  g->h.room = room == 255 ? SIZE_MAX : room;
  harness_settle(&g->h);
}

static void do_wait(fuzz_program *g)
{
  harness_pass(&g->h, (int64_t)take_byte(&g->in) * 50);
}

/* Advance the clock without calling the client, as a late driver would. */
static void do_clock(fuzz_program *g)
{
  g->h.now += (int64_t)take_byte(&g->in) * 100;
}

/* ---- the server --------------------------------------------------------- */

static void do_connect_response(fuzz_program *g)
{
  unsigned how = take_byte(&g->in);
  lk_buf b = wire_buf();

  if (how >= 200)
    g->session = how == 255 ? 0 : (int64_t)how;
  else if (g->session == 0)
    g->session = 1;
  if (g->h.read_only && how % 2 == 1)
    wire_welcome_read_only(&b, g->session, (int32_t)take_byte(&g->in) * 100);
  else
    wire_welcome(&b, g->session, (int32_t)take_byte(&g->in) * 100);
  receive_from_server(g, &b);
}

static void append_bytes(fuzz_program *g, lk_buf *b)
{
  lk_bytes bytes = take_bytes(&g->in);

  must(lk__buf_append(b, bytes.at, bytes.len));
}

static void append_stat(lk_buf *b)
{
  struct lk_stat_reply r = {.stat = {.czxid = 1}};

  wire_record(b, &lk__stat_reply_record, &r);
}

static void append_results(lk_buf *b, size_t parts, bool reads)
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

/* The body of a valid reply to the request. */
static void append_reply_body(lk_buf *b, const lk_request *r)
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
  case LK_OPCODE_MULTI: append_results(b, r->operations, false); return;
  case LK_OPCODE_MULTI_READ: append_results(b, r->operations, true); return;
  default: break;
  }
  append_stat(b);
}

static int32_t take_error(fuzz_program *g)
{
  static const int32_t errs[] = {0,    0,    0,    0,    -101, -101,
                                 -110, -103, -118, -112, -124, -115,
                                 -102, -4,   -6,   -1003};

  return errs[take_byte(&g->in) % 16];
}

/* A valid reply to the oldest request, or an error. */
static void do_reply(fuzz_program *g)
{
  const lk_request *head = lk__requests_oldest(&g->h.client->requests);

  if (head == NULL)
    return;
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  int32_t err = take_error(g);

  wire_header(&b, head->xid, err == -6 ? -1 : (int64_t)g->number, err);
  if (err == 0)
    append_reply_body(&b, head);
  wire_end(&b, mark);
  receive_from_server(g, &b);
}

/* A reply to the oldest request with an arbitrary body. */
static void do_arbitrary_reply(fuzz_program *g)
{
  const lk_request *head = lk__requests_oldest(&g->h.client->requests);
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  wire_header(&b, head == NULL ? 1 : head->xid, 9, 0);
  append_bytes(g, &b);
  wire_end(&b, mark);
  receive_from_server(g, &b);
}

/* A reply whose xid is not that of the oldest request. */
static void do_unordered_reply(fuzz_program *g)
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
  int32_t xid = xids[take_byte(&g->in) % 8];

  wire_reply(&b, xid, 5, take_error(g));
  receive_from_server(g, &b);
}

static void do_event(fuzz_program *g)
{
  static const char *const paths[] = {"/",         "/a",      "/a/b",   "/b",
                                      "/root",     "/root/a", "/rooty", "",
                                      "/root/a/b", "/root/b"};
  lk_buf b = wire_buf();
  int32_t type = (int32_t)take_byte(&g->in) % 7 - 1;

  wire_event(&b, type, paths[take_byte(&g->in) % 10]);
  receive_from_server(g, &b);
}

static void do_bytes(fuzz_program *g)
{
  lk_buf b = wire_buf();

  append_bytes(g, &b);
  receive_from_server(g, &b);
}

static void do_frame(fuzz_program *g)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  append_bytes(g, &b);
  wire_end(&b, mark);
  receive_from_server(g, &b);
}

static const action actions[] = {
    ACTION(call),
    ACTION(call),
    ACTION(call),
    ACTION(rare_call),
    ACTION(defer),
    ACTION(connected),
    ACTION(failed),
    ACTION(resolved_or_probed),
    ACTION(socket_room),
    ACTION(wait),
    ACTION(clock),
    ACTION(connect_response),
    ACTION(reply),
    ACTION(reply),
    ACTION(arbitrary_reply),
    ACTION(unordered_reply),
    ACTION(event),
    ACTION(bytes),
    ACTION(frame),
};

/* ---- the client ---------------------------------------------------------- */

static bool make_client(fuzz_program *g)
{
  static const char *const hosts[] = {"a", "a,b", "a:1,[::1]:2,c", "a/root"};
  lk_session resume = {.id = 3};
  unsigned first = take_byte(&g->in), second = take_byte(&g->in),
           third = take_byte(&g->in);
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

  failing_mem_init(&g->h.mem);
  g->h.mem.fail_at = third < 128 ? 0 : 20 + (third & 127) * 2;
  g->h.mem.for_good = (second & 128) != 0;
  g->h.step = third & 1 ? 1 + (third >> 1 & 7) : 0;
  g->h.seed = third + 1;
  g->h.react = run_deferred;
  g->h.arg = g;
  g->session = config.resume == NULL ? 0 : 3;
  if (harness_init(&g->h, &config) != 0)
    return false;
  harness_settle(&g->h);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  run_program(data, size, make_client, ACTIONS(actions));
  return 0;
}
