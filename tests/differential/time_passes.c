/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/time_passes.h"

#include <latchkey/client.h>

#include "proto/wire/opcode.h"
#include "support/wire.h"

enum { OBSERVING, EXPIRING, IDLE, RESUMING }; /* connections */

enum {
  NO_ZXID = 0,
  MIN_TIMEOUT_MS = 1, /* the server raises it to its lower bound */
  MAX_TIMEOUT_MS = 60000,
  TTL_FLAGS = 5 /* of createTTL */
};

typedef struct time_passes {
  pair *pair;
  int32_t xid; /* of the last request */
} time_passes;

/* ---- sending ------------------------------------------------------------ */

static void add_request(time_passes *t, unsigned conn, int32_t op,
                        const void *value)
{
  lk_buf body = wire_buf();

  wire_record(&body, lk__opcode_info(op)->request, value);
  pair_add_request(t->pair, conn, ++t->xid, op,
                   lk_bytes_of(lk__buf_bytes(&body), lk__buf_len(&body)));
  lk__buf_free(&body);
}

static void connect_session(time_passes *t, unsigned conn, unsigned server,
                            int64_t session, int32_t timeout_ms)
{
  pair_open(t->pair, conn, server);
  pair_connect(t->pair, conn, session, PAIR_RIGHT_PASSWORD, NO_ZXID,
               timeout_ms);
  pair_receive(t->pair, conn);
}

static void create(time_passes *t, unsigned conn, int32_t op, const char *path,
                   int32_t flags)
{
  lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_request r = {lk_text(path), lk_text("x"),
                                lk__vec_of(&open, 1), flags};

  add_request(t, conn, op, &r);
  pair_receive(t->pair, conn);
}

static void delete_node(time_passes *t, unsigned conn, const char *path)
{
  struct lk_path_version_request r = {lk_text(path), -1};

  add_request(t, conn, LK_OPCODE_DELETE, &r);
  pair_receive(t->pair, conn);
}

static void read_node(time_passes *t, unsigned conn, int32_t op,
                      const char *path)
{
  struct lk_path_watch_request r = {.path = lk_text(path), .watch = false};

  add_request(t, conn, op, &r);
}

static void read_and_watch(time_passes *t, unsigned conn, int32_t op,
                           const char *path)
{
  struct lk_path_watch_request r = {.path = lk_text(path), .watch = true};

  add_request(t, conn, op, &r);
}

static void await_deletion(time_passes *t, unsigned conn, const char *path)
{
  read_node(t, conn, LK_OPCODE_EXISTS, path);
  pair_await(t->pair, conn, LK_ERR_NO_NODE);
}

/* ---- containers --------------------------------------------------------- */

/* Waits until the servers have deleted unused nodes: a new empty container is
 * gone. */
static void await_sweep(time_passes *t)
{
  create(t, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/sweep", LK_CONTAINER);
  create(t, OBSERVING, LK_OPCODE_CREATE, "/sweep/child", LK_PERSISTENT);
  delete_node(t, OBSERVING, "/sweep/child");
  await_deletion(t, OBSERVING, "/sweep");
}

/* A container is deleted after its last child, with an event. */
static void empty_containers_are_deleted(time_passes *t)
{
  create(t, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/box", LK_CONTAINER);
  create(t, OBSERVING, LK_OPCODE_CREATE, "/box/n-", LK_SEQUENTIAL);
  create(t, OBSERVING, LK_OPCODE_CREATE2, "/box/n-", LK_SEQUENTIAL);
  delete_node(t, OBSERVING, "/box/n-0000000000");
  await_sweep(t);
  read_and_watch(t, OBSERVING, LK_OPCODE_GET_DATA, "/box");
  read_and_watch(t, OBSERVING, LK_OPCODE_GET_CHILDREN2, "/box");
  read_and_watch(t, OBSERVING, LK_OPCODE_GET_CHILDREN2, "/");
  pair_receive(t->pair, OBSERVING);
  delete_node(t, OBSERVING, "/box/n-0000000001");
  await_deletion(t, OBSERVING, "/box");
  create(t, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/box", LK_CONTAINER);
  create(t, OBSERVING, LK_OPCODE_CREATE, "/box/n-", LK_SEQUENTIAL);
}

static void unused_containers_and_plain_nodes_stay(time_passes *t)
{
  create(t, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/unused", LK_CONTAINER);
  create(t, OBSERVING, LK_OPCODE_CREATE2, "/plain", LK_CONTAINER);
  create(t, OBSERVING, LK_OPCODE_CREATE, "/plain/child", LK_PERSISTENT);
  delete_node(t, OBSERVING, "/plain/child");
  await_sweep(t);
  await_sweep(t);
  read_node(t, OBSERVING, LK_OPCODE_EXISTS, "/unused");
  read_node(t, OBSERVING, LK_OPCODE_EXISTS, "/plain");
  pair_receive(t->pair, OBSERVING);
}

static void nested_containers_are_deleted(time_passes *t)
{
  create(t, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/outer", LK_CONTAINER);
  create(t, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/outer/inner",
         LK_CONTAINER);
  create(t, OBSERVING, LK_OPCODE_CREATE, "/outer/inner/child", LK_PERSISTENT);
  delete_node(t, OBSERVING, "/outer/inner/child");
  await_deletion(t, OBSERVING, "/outer/inner");
  await_deletion(t, OBSERVING, "/outer");
}

/* ---- nodes with a time to live ------------------------------------------ */

static void create_ttl(time_passes *t, const char *path, int64_t ttl_ms)
{
  lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_ttl_request r = {
      {lk_text(path), lk_text("x"), lk__vec_of(&open, 1), TTL_FLAGS}, ttl_ms};

  add_request(t, OBSERVING, LK_OPCODE_CREATE_TTL, &r);
  pair_receive(t->pair, OBSERVING);
}

/* Unlike a container, a TTL node is deleted even if it never had a child. It is
 * not deleted while it has one. */
static void expired_ttl_nodes_are_deleted(time_passes *t)
{
  create_ttl(t, "/brief", 1000);
  create_ttl(t, "/long", LK_TTL_MAX_MS);
  create_ttl(t, "/full", 1);
  create(t, OBSERVING, LK_OPCODE_CREATE, "/full/child", LK_PERSISTENT);
  read_and_watch(t, OBSERVING, LK_OPCODE_GET_DATA, "/brief");
  read_and_watch(t, OBSERVING, LK_OPCODE_GET_CHILDREN, "/");
  pair_receive(t->pair, OBSERVING);
  await_deletion(t, OBSERVING, "/brief");
  await_sweep(t);
  read_node(t, OBSERVING, LK_OPCODE_EXISTS, "/long");
  read_and_watch(t, OBSERVING, LK_OPCODE_EXISTS, "/full");
  pair_receive(t->pair, OBSERVING);
  delete_node(t, OBSERVING, "/full/child");
  await_deletion(t, OBSERVING, "/full");
}

/* ---- sessions ----------------------------------------------------------- */

/* The session of a closed connection expires. Its ephemeral nodes are deleted
 * with it, and it cannot be resumed. */
static void closed_client_expires(time_passes *t, unsigned server,
                                  int64_t session)
{
  connect_session(t, EXPIRING, server, PAIR_NEW_SESSION, MIN_TIMEOUT_MS);
  create(t, EXPIRING, LK_OPCODE_CREATE, "/mortal", LK_EPHEMERAL);
  create(t, EXPIRING, LK_OPCODE_CREATE, "/mortal-",
         LK_EPHEMERAL | LK_SEQUENTIAL);
  pair_close(t->pair, EXPIRING);
  read_and_watch(t, OBSERVING, LK_OPCODE_GET_DATA, "/mortal");
  read_and_watch(t, OBSERVING, LK_OPCODE_GET_CHILDREN, "/");
  pair_receive(t->pair, OBSERVING);
  await_deletion(t, OBSERVING, "/mortal");
  await_sweep(t);
  connect_session(t, RESUMING, server, session, MAX_TIMEOUT_MS);
  pair_receive_close(t->pair, RESUMING);
}

/* The server closes a connection that has been idle for the session timeout. */
static void idle_client_expires(time_passes *t, unsigned server,
                                int64_t session)
{
  connect_session(t, IDLE, server, PAIR_NEW_SESSION, MIN_TIMEOUT_MS);
  create(t, IDLE, LK_OPCODE_CREATE, "/idler", LK_EPHEMERAL);
  pair_receive_close(t->pair, IDLE);
  await_deletion(t, OBSERVING, "/idler");
  await_sweep(t);
  connect_session(t, RESUMING, server, session, MAX_TIMEOUT_MS);
  pair_receive_close(t->pair, RESUMING);
}

void time_passes_run(pair *p, unsigned servers)
{
  time_passes t = {p, 0};
  unsigned last_server = servers - 1;

  p->any_order = true;
  connect_session(&t, OBSERVING, 0, PAIR_NEW_SESSION, MAX_TIMEOUT_MS);
  empty_containers_are_deleted(&t);
  unused_containers_and_plain_nodes_stay(&t);
  nested_containers_are_deleted(&t);
  expired_ttl_nodes_are_deleted(&t);
  /* Session 1 is that of OBSERVING. */
  closed_client_expires(&t, last_server, 2);
  idle_client_expires(&t, last_server, 3);
  pair_close(p, OBSERVING);
}
