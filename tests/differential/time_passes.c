/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/time_passes.h"

#include <latchkey/client.h>

#include "proto/wire/opcode.h"
#include "support/wire.h"

enum { WITNESS, MORTAL, IDLER, GHOST }; /* connections */

typedef struct time_passes {
  pair *pair;
  int32_t xid;
} time_passes;

/* ---- asking ------------------------------------------------------------- */

static void ask(time_passes *a, unsigned conn, int32_t op, const void *value)
{
  lk_buf body = wire_buf();

  wire_record(&body, lk__opcode_info(op)->request, value);
  pair_ask(a->pair, conn, ++a->xid, op,
           lk_bytes_of(lk__buf_bytes(&body), lk__buf_len(&body)));
  lk__buf_free(&body);
}

static void hello(time_passes *a, unsigned conn, unsigned server,
                  int64_t session, int32_t timeout_ms)
{
  pair_open(a->pair, conn, server);
  pair_hello(a->pair, conn, session, true, 0, timeout_ms);
  pair_hear(a->pair, conn);
}

static void create(time_passes *a, unsigned conn, int32_t op, const char *path,
                   int32_t flags)
{
  lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_request r = {lk_text(path), lk_text("x"),
                                lk__vec_of(&open, 1), flags};

  ask(a, conn, op, &r);
  pair_hear(a->pair, conn);
}

static void erase(time_passes *a, unsigned conn, const char *path)
{
  struct lk_path_version_request r = {lk_text(path), -1};

  ask(a, conn, LK_OPCODE_DELETE, &r);
  pair_hear(a->pair, conn);
}

static void look(time_passes *a, unsigned conn, int32_t op, const char *path,
                 bool watch)
{
  struct lk_path_watch_request r = {lk_text(path), watch};

  ask(a, conn, op, &r);
}

static void await_end(time_passes *a, unsigned conn, const char *path)
{
  look(a, conn, LK_OPCODE_EXISTS, path, false);
  pair_await(a->pair, conn, LK_ERR_NO_NODE);
}

/* ---- containers --------------------------------------------------------- */

/* A sweep has come and gone when a container that was made now is no more. */
static void await_sweep(time_passes *a)
{
  create(a, WITNESS, LK_OPCODE_CREATE_CONTAINER, "/sweep", 4);
  create(a, WITNESS, LK_OPCODE_CREATE, "/sweep/child", 0);
  erase(a, WITNESS, "/sweep/child");
  await_end(a, WITNESS, "/sweep");
}

/* It goes when its last child has gone; a watch tells of it. */
static void empty_containers_go(time_passes *a)
{
  create(a, WITNESS, LK_OPCODE_CREATE_CONTAINER, "/box", 4);
  create(a, WITNESS, LK_OPCODE_CREATE, "/box/n-", 2);
  create(a, WITNESS, LK_OPCODE_CREATE2, "/box/n-", 2);
  erase(a, WITNESS, "/box/n-0000000000");
  await_sweep(a);
  look(a, WITNESS, LK_OPCODE_GET_DATA, "/box", true);
  look(a, WITNESS, LK_OPCODE_GET_CHILDREN2, "/box", true);
  look(a, WITNESS, LK_OPCODE_GET_CHILDREN2, "/", true);
  pair_hear(a->pair, WITNESS);
  erase(a, WITNESS, "/box/n-0000000001");
  await_end(a, WITNESS, "/box");
  create(a, WITNESS, LK_OPCODE_CREATE_CONTAINER, "/box", 4);
  create(a, WITNESS, LK_OPCODE_CREATE, "/box/n-", 2);
}

static void others_stay(time_passes *a)
{
  create(a, WITNESS, LK_OPCODE_CREATE_CONTAINER, "/unused", 4);
  create(a, WITNESS, LK_OPCODE_CREATE2, "/plain", 4);
  create(a, WITNESS, LK_OPCODE_CREATE, "/plain/child", 0);
  erase(a, WITNESS, "/plain/child");
  await_sweep(a);
  await_sweep(a);
  look(a, WITNESS, LK_OPCODE_EXISTS, "/unused", false);
  look(a, WITNESS, LK_OPCODE_EXISTS, "/plain", false);
  pair_hear(a->pair, WITNESS);
}

static void containers_go_from_inside_out(time_passes *a)
{
  create(a, WITNESS, LK_OPCODE_CREATE_CONTAINER, "/outer", 4);
  create(a, WITNESS, LK_OPCODE_CREATE_CONTAINER, "/outer/inner", 4);
  create(a, WITNESS, LK_OPCODE_CREATE, "/outer/inner/child", 0);
  erase(a, WITNESS, "/outer/inner/child");
  await_end(a, WITNESS, "/outer/inner");
  await_end(a, WITNESS, "/outer");
}

/* ---- nodes with a time to live ------------------------------------------ */

static void create_ttl(time_passes *a, const char *path, int64_t ttl_ms)
{
  lk_acl open = {LK_PERM_ALL, lk_text("world"), lk_text("anyone")};
  struct lk_create_ttl_request r = {
      {lk_text(path), lk_text("x"), lk__vec_of(&open, 1), 5}, ttl_ms};

  ask(a, WITNESS, LK_OPCODE_CREATE_TTL, &r);
  pair_hear(a->pair, WITNESS);
}

/* It need not have had a child, and no child may be left. */
static void what_is_too_old_goes(time_passes *a)
{
  create_ttl(a, "/brief", 1000);
  create_ttl(a, "/long", LK_TTL_MAX_MS);
  create_ttl(a, "/full", 1);
  create(a, WITNESS, LK_OPCODE_CREATE, "/full/child", 0);
  look(a, WITNESS, LK_OPCODE_GET_DATA, "/brief", true);
  look(a, WITNESS, LK_OPCODE_GET_CHILDREN, "/", true);
  pair_hear(a->pair, WITNESS);
  await_end(a, WITNESS, "/brief");
  await_sweep(a);
  look(a, WITNESS, LK_OPCODE_EXISTS, "/long", false);
  look(a, WITNESS, LK_OPCODE_EXISTS, "/full", true);
  pair_hear(a->pair, WITNESS);
  erase(a, WITNESS, "/full/child");
  await_end(a, WITNESS, "/full");
}

/* ---- sessions ----------------------------------------------------------- */

/* Its ephemerals go with it, all at once; it cannot come back. */
static void the_unheard_of_expire(time_passes *a, unsigned server,
                                  int64_t session)
{
  hello(a, MORTAL, server, 0, 1);
  create(a, MORTAL, LK_OPCODE_CREATE, "/mortal", 1);
  create(a, MORTAL, LK_OPCODE_CREATE, "/mortal-", 3);
  pair_close(a->pair, MORTAL);
  look(a, WITNESS, LK_OPCODE_GET_DATA, "/mortal", true);
  look(a, WITNESS, LK_OPCODE_GET_CHILDREN, "/", true);
  pair_hear(a->pair, WITNESS);
  await_end(a, WITNESS, "/mortal");
  await_sweep(a);
  hello(a, GHOST, server, session, 60000);
  pair_hear_end(a->pair, GHOST);
}

/* A connection that is silent is just closed. */
static void the_silent_expire(time_passes *a, unsigned server, int64_t session)
{
  hello(a, IDLER, server, 0, 1);
  create(a, IDLER, LK_OPCODE_CREATE, "/idler", 1);
  pair_hear_end(a->pair, IDLER);
  await_end(a, WITNESS, "/idler");
  await_sweep(a);
  hello(a, GHOST, server, session, 60000);
  pair_hear_end(a->pair, GHOST);
}

void time_passes_run(pair *p, unsigned servers)
{
  time_passes a = {p, 0};
  unsigned last = servers - 1;

  p->any_order = true;
  hello(&a, WITNESS, 0, 0, 60000);
  empty_containers_go(&a);
  others_stay(&a);
  containers_go_from_inside_out(&a);
  what_is_too_old_goes(&a);
  the_unheard_of_expire(&a, last, 2);
  the_silent_expire(&a, last, 3);
  pair_close(p, WITNESS);
}
