/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/time_passes.h"

#include <latchkey/client.h>

#include "proto/wire/opcode.h"
#include "support/wire.h"

enum { OBSERVING, EXPIRING, IDLE, RESUMING }; /* connections */

typedef struct time_passes {
  pair *pair;
  int32_t xid;
} time_passes;

/* ---- sending ------------------------------------------------------------ */

static void ask(time_passes *a, unsigned conn, int32_t op, const void *value)
{
  lk_buf body = wire_buf();

  wire_record(&body, lk__opcode_info(op)->request, value);
  pair_add_request(a->pair, conn, ++a->xid, op,
                   lk_bytes_of(lk__buf_bytes(&body), lk__buf_len(&body)));
  lk__buf_free(&body);
}

static void hello(time_passes *a, unsigned conn, unsigned server,
                  int64_t session, int32_t timeout_ms)
{
  pair_open(a->pair, conn, server);
  pair_connect(a->pair, conn, session, true, 0, timeout_ms);
  pair_receive(a->pair, conn);
}

static void create(time_passes *a, unsigned conn, int32_t op, const char *path,
                   int32_t flags)
{
  lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_request r = {lk_text(path), lk_text("x"),
                                lk__vec_of(&open, 1), flags};

  ask(a, conn, op, &r);
  pair_receive(a->pair, conn);
}

static void delete_node(time_passes *a, unsigned conn, const char *path)
{
  struct lk_path_version_request r = {lk_text(path), -1};

  ask(a, conn, LK_OPCODE_DELETE, &r);
  pair_receive(a->pair, conn);
}

static void read_node(time_passes *a, unsigned conn, int32_t op,
                      const char *path, bool watch)
{
  struct lk_path_watch_request r = {lk_text(path), watch};

  ask(a, conn, op, &r);
}

static void await_deletion(time_passes *a, unsigned conn, const char *path)
{
  read_node(a, conn, LK_OPCODE_EXISTS, path, false);
  pair_await(a->pair, conn, LK_ERR_NO_NODE);
}

/* ---- containers --------------------------------------------------------- */

/* Waits until the servers have deleted unused nodes: a new empty container is
 * gone. */
static void await_sweep(time_passes *a)
{
  create(a, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/sweep", 4);
  create(a, OBSERVING, LK_OPCODE_CREATE, "/sweep/child", 0);
  delete_node(a, OBSERVING, "/sweep/child");
  await_deletion(a, OBSERVING, "/sweep");
}

/* A container is deleted after its last child, with an event. */
static void empty_containers_are_deleted(time_passes *a)
{
  create(a, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/box", 4);
  create(a, OBSERVING, LK_OPCODE_CREATE, "/box/n-", 2);
  create(a, OBSERVING, LK_OPCODE_CREATE2, "/box/n-", 2);
  delete_node(a, OBSERVING, "/box/n-0000000000");
  await_sweep(a);
  read_node(a, OBSERVING, LK_OPCODE_GET_DATA, "/box", true);
  read_node(a, OBSERVING, LK_OPCODE_GET_CHILDREN2, "/box", true);
  read_node(a, OBSERVING, LK_OPCODE_GET_CHILDREN2, "/", true);
  pair_receive(a->pair, OBSERVING);
  delete_node(a, OBSERVING, "/box/n-0000000001");
  await_deletion(a, OBSERVING, "/box");
  create(a, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/box", 4);
  create(a, OBSERVING, LK_OPCODE_CREATE, "/box/n-", 2);
}

static void other_nodes_stay(time_passes *a)
{
  create(a, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/unused", 4);
  create(a, OBSERVING, LK_OPCODE_CREATE2, "/plain", 4);
  create(a, OBSERVING, LK_OPCODE_CREATE, "/plain/child", 0);
  delete_node(a, OBSERVING, "/plain/child");
  await_sweep(a);
  await_sweep(a);
  read_node(a, OBSERVING, LK_OPCODE_EXISTS, "/unused", false);
  read_node(a, OBSERVING, LK_OPCODE_EXISTS, "/plain", false);
  pair_receive(a->pair, OBSERVING);
}

static void nested_containers_are_deleted(time_passes *a)
{
  create(a, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/outer", 4);
  create(a, OBSERVING, LK_OPCODE_CREATE_CONTAINER, "/outer/inner", 4);
  create(a, OBSERVING, LK_OPCODE_CREATE, "/outer/inner/child", 0);
  delete_node(a, OBSERVING, "/outer/inner/child");
  await_deletion(a, OBSERVING, "/outer/inner");
  await_deletion(a, OBSERVING, "/outer");
}

/* ---- nodes with a time to live ------------------------------------------ */

static void create_ttl(time_passes *a, const char *path, int64_t ttl_ms)
{
  lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_ttl_request r = {
      {lk_text(path), lk_text("x"), lk__vec_of(&open, 1), 5}, ttl_ms};

  ask(a, OBSERVING, LK_OPCODE_CREATE_TTL, &r);
  pair_receive(a->pair, OBSERVING);
}

/* Unlike a container, a TTL node is deleted even if it never had a child. It is
 * not deleted while it has one. */
static void expired_ttl_nodes_are_deleted(time_passes *a)
{
  create_ttl(a, "/brief", 1000);
  create_ttl(a, "/long", LK_TTL_MAX_MS);
  create_ttl(a, "/full", 1);
  create(a, OBSERVING, LK_OPCODE_CREATE, "/full/child", 0);
  read_node(a, OBSERVING, LK_OPCODE_GET_DATA, "/brief", true);
  read_node(a, OBSERVING, LK_OPCODE_GET_CHILDREN, "/", true);
  pair_receive(a->pair, OBSERVING);
  await_deletion(a, OBSERVING, "/brief");
  await_sweep(a);
  read_node(a, OBSERVING, LK_OPCODE_EXISTS, "/long", false);
  read_node(a, OBSERVING, LK_OPCODE_EXISTS, "/full", true);
  pair_receive(a->pair, OBSERVING);
  delete_node(a, OBSERVING, "/full/child");
  await_deletion(a, OBSERVING, "/full");
}

/* ---- sessions ----------------------------------------------------------- */

/* The session of a closed connection expires. Its ephemeral nodes are deleted
 * with it, and it cannot be resumed. */
static void closed_client_expires(time_passes *a, unsigned server,
                                  int64_t session)
{
  hello(a, EXPIRING, server, 0, 1);
  create(a, EXPIRING, LK_OPCODE_CREATE, "/mortal", 1);
  create(a, EXPIRING, LK_OPCODE_CREATE, "/mortal-", 3);
  pair_close(a->pair, EXPIRING);
  read_node(a, OBSERVING, LK_OPCODE_GET_DATA, "/mortal", true);
  read_node(a, OBSERVING, LK_OPCODE_GET_CHILDREN, "/", true);
  pair_receive(a->pair, OBSERVING);
  await_deletion(a, OBSERVING, "/mortal");
  await_sweep(a);
  hello(a, RESUMING, server, session, 60000);
  pair_receive_close(a->pair, RESUMING);
}

/* The server closes a connection that has been idle for the session timeout. */
static void idle_client_expires(time_passes *a, unsigned server,
                                int64_t session)
{
  hello(a, IDLE, server, 0, 1);
  create(a, IDLE, LK_OPCODE_CREATE, "/idler", 1);
  pair_receive_close(a->pair, IDLE);
  await_deletion(a, OBSERVING, "/idler");
  await_sweep(a);
  hello(a, RESUMING, server, session, 60000);
  pair_receive_close(a->pair, RESUMING);
}

void time_passes_run(pair *p, unsigned servers)
{
  time_passes a = {p, 0};
  unsigned last = servers - 1;

  p->any_order = true;
  hello(&a, OBSERVING, 0, 0, 60000);
  empty_containers_are_deleted(&a);
  other_nodes_stay(&a);
  nested_containers_are_deleted(&a);
  expired_ttl_nodes_are_deleted(&a);
  closed_client_expires(&a, last, 2);
  idle_client_expires(&a, last, 3);
  pair_close(p, OBSERVING);
}
