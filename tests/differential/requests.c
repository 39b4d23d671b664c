/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/client.h>

#include "differential/values.h"
#include "proto/wire/multi.h"
#include "support/server_version.h"
#include "support/wire.h"

typedef union request {
  struct lk_create_request create;
  struct lk_create_ttl_request create_ttl; /* begins with a create request */
  struct lk_path_version_request path_version;
  struct lk_set_data_request set_data;
  struct lk_path_watch_request path_watch;
} request;

/* Flags of createTTL. */
enum { TTL_FLAGS = 5, TTL_SEQUENTIAL_FLAGS = 6 };

static bool are_ttl_flags(int32_t flags)
{
  return flags == TTL_FLAGS || flags == TTL_SEQUENTIAL_FLAGS;
}

/* The TTL of a create. If the flags are those of a node without a TTL, it is
 * never negative: that would crash a real server, again after each restart. */
static int64_t random_ttl(generator *g, int32_t flags)
{
  static const int64_t right[] = {1, 1000, 3600000, LK_TTL_MAX_MS},
                       wrong[] = {LK_TTL_MAX_MS + 1, 0, -1, INT64_MIN};

  if (!are_ttl_flags(flags))
    return (int64_t)sim_roll(&g->rng, 1000);
  return sim_chance(&g->rng, 900) ? ANY_OF(g, right) : ANY_OF(g, wrong);
}

static int32_t random_create(generator *g, struct lk_create_ttl_request *ttl,
                             lk_acl entries[4])
{
  static const weighted ops[] = {{LK_OPCODE_CREATE, 50},
                                 {LK_OPCODE_CREATE2, 35},
                                 {LK_OPCODE_CREATE_CONTAINER, 15},
                                 {LK_OPCODE_CREATE_TTL, 12},
                                 {0, 0}};
  /* Of create and create2. 0 to 3 are right, 4 is for containers, 5 and 6 are
   * for nodes with a TTL, and no others exist. */
  static const weighted plain_flags[] = {{0, 400}, {1, 200}, {2, 180}, {3, 120},
                                         {4, 20},  {5, 10},  {6, 10},  {7, 10},
                                         {-1, 10}, {100, 5}, {0, 0}};
  static const weighted container_flags[] = {
      {4, 800}, {0, 20}, {1, 20}, {2, 50}, {3, 20},
      {5, 5},   {6, 5},  {7, 5},  {-1, 5}, {0, 0}};
  static const weighted ttl_flags[] = {{5, 400}, {6, 400}, {0, 20}, {1, 20},
                                       {2, 20},  {3, 20},  {4, 20}, {7, 10},
                                       {-1, 10}, {0, 0}};
  int32_t op = random_weighted(g, ops);
  struct lk_create_request *r = &ttl->create;
  const weighted *flags = plain_flags;

  if (op == LK_OPCODE_CREATE_CONTAINER)
    flags = container_flags;
  else if (op == LK_OPCODE_CREATE_TTL)
    flags = ttl_flags;
  r->flags = random_weighted(g, flags);
  if (op == LK_OPCODE_CREATE_TTL)
    ttl->ttl_ms = random_ttl(g, r->flags);
  if (one_in_16(g))
    r->path = odd_path(g);
  else if (one_in_16(g))
    r->path = random_path(g);
  else
    r->path = new_path(g);
  /* The sequence number may follow a slash, or half of a UTF-8 character. */
  if ((r->flags & LK_SEQUENTIAL) != 0 && r->path.len > 1 && one_in_2(g))
    r->path.len -= 1;
  r->data = random_data(g);
  r->acl = random_acl(g, entries, MOSTLY_OPEN);
  return op;
}

static int32_t random_change(generator *g, request *r, lk_acl entries[4])
{
  /* If there are many nodes, more are deleted. */
  uint32_t delete_weight = g->count > GENERATOR_NODES / 2 ? 40 : 15;
  const weighted ops[] = {{LK_OPCODE_CREATE, 30},
                          {LK_OPCODE_DELETE, delete_weight},
                          {LK_OPCODE_SET_DATA, 16},
                          {0, 0}};

  switch (random_weighted(g, ops)) {
  case LK_OPCODE_CREATE: return random_create(g, &r->create_ttl, entries);
  case LK_OPCODE_DELETE:
    r->path_version.path = path_to_delete(g);
    r->path_version.version = version_for(g, r->path_version.path);
    return LK_OPCODE_DELETE;
  default:
    r->set_data.path = random_path(g);
    r->set_data.data = random_data(g);
    r->set_data.version = version_for(g, r->set_data.path);
    return LK_OPCODE_SET_DATA;
  }
}

static void append_operation(int32_t op, const request *r, lk_buf *body)
{
  struct lk_multi_header head = {.type = op, .done = false, .err = -1};

  wire_record(body, &lk__multi_header_record, &head);
  wire_record(body, lk__operation_record(op, LK_OPERATIONS_OF_REQUEST), r);
}

static void append_end(lk_buf *body)
{
  static const struct lk_multi_header end = {
      .type = -1, .done = true, .err = -1};

  wire_record(body, &lk__multi_header_record, &end);
}

static bool is_create(int32_t op)
{
  return op == LK_OPCODE_CREATE || op == LK_OPCODE_CREATE2 ||
         op == LK_OPCODE_CREATE_CONTAINER || op == LK_OPCODE_CREATE_TTL;
}

static int32_t append_multi(generator *g, lk_buf *body)
{
  uint32_t count = sim_roll(&g->rng, 6);
  lk_acl entries[4];
  request r;

  for (uint32_t i = 0; i < count; i++) {
    int32_t op = LK_OPCODE_CHECK;

    if (sim_chance(&g->rng, 250)) {
      r.path_version.path = random_path(g);
      r.path_version.version = version_for(g, r.path_version.path);
    } else
      op = random_change(g, &r, entries);
    /* After a create with TTL flags and no TTL, a server keeps the effects of
     * earlier operations of the multi for some time. */
    if (lk__opcode_info(op)->request == &lk__create_request_record &&
        are_ttl_flags(r.create.flags))
      g->wait_for_reply = true;
    /* In newer servers it ends the multi by an exception, which is answered in
     * another way by each version. */
    if (is_create(op) && r.create.acl.items == NULL &&
        server_has(SERVER_STAT_OF_CREATE_IN_MULTI))
      r.create.acl = lk__vec_of(entries, 0);
    append_operation(op, &r, body);
  }
  append_end(body);
  return LK_OPCODE_MULTI;
}

static int32_t append_multi_read(generator *g, lk_buf *body)
{
  uint32_t count = sim_roll(&g->rng, 4);
  request r;

  for (uint32_t i = 0; i < count; i++) {
    r.path_watch.path = random_path(g);
    r.path_watch.watch = one_in_16(g);
    append_operation(one_in_2(g) ? LK_OPCODE_GET_DATA : LK_OPCODE_GET_CHILDREN,
                     &r, body);
  }
  append_end(body);
  return LK_OPCODE_MULTI_READ;
}

static int32_t append_change(generator *g, lk_buf *body)
{
  lk_acl entries[4];
  request r;
  int32_t op = random_change(g, &r, entries);

  wire_record(body, lk__opcode_info(op)->request, &r);
  return op;
}

static int32_t append_set_acl(generator *g, lk_buf *body)
{
  lk_acl entries[4];
  struct lk_set_acl_request r = {.path = random_path(g)};
  const generator_node *n = find_node(g, r.path);

  r.acl = random_acl(g, entries, SELDOM_OPEN);
  r.version = random_version(g, n == NULL ? 0 : n->aversion);
  if (r.path.len <= strlen(g->base)) /* the base node must stay accessible */
    return append_change(g, body);
  /* The next request may be checked with the old list or the new one: a server
   * does not record that the list is about to change. */
  g->wait_for_reply = true;
  wire_record(body, &lk__set_acl_request_record, &r);
  return LK_OPCODE_SET_ACL;
}

/* Reconfiguration is disabled, whatever the request is. */
static int32_t append_reconfig(generator *g, lk_buf *body)
{
  static const char *const members[] = {
      NULL, "", "3", "server.4=127.0.0.1:2888:3888;127.0.0.1:2181", "x"};
  struct lk_reconfig_request r = {
      lk_text(ANY_OF(g, members)), lk_text(ANY_OF(g, members)),
      lk_text(ANY_OF(g, members)), one_in_2(g) ? -1 : 0};

  wire_record(body, &lk__reconfig_request_record, &r);
  return LK_OPCODE_RECONFIG;
}

static int32_t append_path(generator *g, int32_t op, lk_buf *body)
{
  struct lk_path_request r = {random_path(g)};

  wire_record(body, &lk__path_request_record, &r);
  return op;
}

static int32_t append_path_watch(generator *g, int32_t op, lk_buf *body)
{
  struct lk_path_watch_request r = {random_path(g), one_in_2(g)};

  /* Only single reads have a null path: in a multi, a null path ends a thread
   * of a real follower. */
  if (one_in_125(g))
    r.path = lk_text(NULL);
  wire_record(body, &lk__path_watch_request_record, &r);
  return op;
}

static int32_t append_path_type(generator *g, int32_t op, lk_buf *body)
{
  struct lk_path_type_request r = {path_to_watch(g),
                                   (int32_t)sim_between(&g->rng, 1, 3)};

  if (one_in_125(g)) /* also types that do not exist */
    r.type = (int32_t)sim_between(&g->rng, -1, 6);
  wire_record(body, &lk__path_type_request_record, &r);
  return op;
}

static int32_t append_add_watch(generator *g, lk_buf *body)
{
  struct lk_add_watch_request r = {
      path_to_watch(g), one_in_2(g) ? LK_WATCH_RECURSIVE : LK_WATCH_PERSISTENT};

  if (one_in_125(g))
    r.mode = 2; /* unknown */
  wire_record(body, &lk__add_watch_request_record, &r);
  return LK_OPCODE_ADD_WATCH;
}

int32_t generator_read(generator *g, lk_buf *body)
{
  static const weighted ops[] = {{LK_OPCODE_EXISTS, 16},
                                 {LK_OPCODE_GET_DATA, 16},
                                 {LK_OPCODE_GET_CHILDREN, 8},
                                 {LK_OPCODE_GET_CHILDREN2, 8},
                                 {LK_OPCODE_GET_ACL, 3},
                                 {LK_OPCODE_GET_EPHEMERALS, 2},
                                 {LK_OPCODE_GET_ALL_CHILDREN_NUMBER, 2},
                                 {LK_OPCODE_MULTI_READ, 4},
                                 {LK_OPCODE_WHO_AM_I, 1},
                                 {LK_OPCODE_PING, 1},
                                 {0, 0}};
  int32_t op = random_weighted(g, ops);

  if (!server_has_opcode(op)) /* it would end the connection */
    op = LK_OPCODE_EXISTS;
  if (op == LK_OPCODE_MULTI_READ)
    return append_multi_read(g, body);
  if (op == LK_OPCODE_WHO_AM_I || op == LK_OPCODE_PING)
    return op;
  if (lk__opcode_info(op)->request == &lk__path_request_record)
    return append_path(g, op, body);
  return append_path_watch(g, op, body);
}

int32_t generator_set(generator *g, lk_buf *body)
{
  struct lk_set_data_request r = {random_path(g), random_data(g), -1};

  wire_record(body, &lk__set_data_request_record, &r);
  return LK_OPCODE_SET_DATA;
}

int32_t generator_write(generator *g, lk_buf *body)
{
  static const weighted ops[] = {{LK_OPCODE_CREATE, 70},
                                 {LK_OPCODE_SET_ACL, 6},
                                 {LK_OPCODE_MULTI, 14},
                                 {LK_OPCODE_RECONFIG, 1},
                                 {0, 0}};

  switch (random_weighted(g, ops)) {
  case LK_OPCODE_RECONFIG: return append_reconfig(g, body);
  case LK_OPCODE_SET_ACL: return append_set_acl(g, body);
  case LK_OPCODE_MULTI: return append_multi(g, body);
  default: return append_change(g, body);
  }
}

static int32_t append_watch_request(generator *g, lk_buf *body)
{
  static const weighted ops[] = {{LK_OPCODE_ADD_WATCH, 3},
                                 {LK_OPCODE_REMOVE_WATCHES, 4},
                                 {LK_OPCODE_CHECK_WATCHES, 2},
                                 {0, 0}};
  int32_t op = random_weighted(g, ops);

  if (!server_has_opcode(op))
    op = LK_OPCODE_REMOVE_WATCHES;
  return op == LK_OPCODE_ADD_WATCH ? append_add_watch(g, body)
                                   : append_path_type(g, op, body);
}

int32_t generator_request(generator *g, lk_buf *body)
{
  uint32_t percent = sim_roll(&g->rng, 100);

  g->wait_for_reply = false;
  if (percent < 48)
    return generator_write(g, body);
  if (percent < 91)
    return generator_read(g, body);
  if (percent < 98)
    return append_watch_request(g, body);
  return append_path(g, LK_OPCODE_SYNC, body);
}

static lk_vec random_paths(generator *g, lk_bytes paths[4])
{
  size_t count = sim_roll(&g->rng, 4);

  for (size_t i = 0; i < count; i++) {
    const generator_node *n = random_node(g);

    paths[i] = n == NULL || one_in_16(g) ? lk_text(g->base) : lk_text(n->path);
  }
  return lk__vec_of(paths, count);
}

int32_t generator_set_watches(generator *g, int64_t zxid, lk_buf *body)
{
  lk_bytes paths[5][4];
  struct lk_set_watches2_request r = {{zxid, random_paths(g, paths[0]),
                                       random_paths(g, paths[1]),
                                       random_paths(g, paths[2])},
                                      random_paths(g, paths[3]),
                                      random_paths(g, paths[4])};

  if (one_in_2(g) || !server_has_opcode(LK_OPCODE_SET_WATCHES2)) {
    wire_record(body, &lk__set_watches_request_record, &r.one_shot);
    return LK_OPCODE_SET_WATCHES;
  }
  wire_record(body, &lk__set_watches2_request_record, &r);
  return LK_OPCODE_SET_WATCHES2;
}

static void append_auth(generator *g, const char *scheme, lk_buf *body)
{
  static const char *const users[] = {"bob:secret", "ann:secret", "nocolon",
                                      ""};
  struct lk_auth_request r = {0, lk_text(scheme), lk_text(ANY_OF(g, users))};

  wire_record(body, &lk__auth_request_record, &r);
}

void generator_auth(generator *g, lk_buf *body)
{
  append_auth(g, "digest", body);
}

void generator_auth_of_unknown_scheme(generator *g, lk_buf *body)
{
  append_auth(g, "nosuch", body);
}
