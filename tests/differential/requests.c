/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/client.h>

#include "differential/values.h"
#include "proto/wire/multi.h"
#include "support/wire.h"

typedef union request {
  struct lk_create_request create;
  struct lk_create_ttl_request create_ttl; /* the first member is a create */
  struct lk_path_version_request path_version;
  struct lk_set_data_request set_data;
  struct lk_path_watch_request path_watch;
} request;

/* The TTL of a create. With flags of a node without a TTL it is never negative:
 * that would crash a real server, again after each restart. */
static int64_t random_ttl(generator *w, int32_t flags)
{
  static const int64_t right[] = {1, 1000, 3600000, LK_TTL_MAX_MS},
                       wrong[] = {LK_TTL_MAX_MS + 1, 0, -1, INT64_MIN};

  if (flags != 5 && flags != 6)
    return (int64_t)sim_roll(&w->rng, 1000);
  return sim_chance(&w->rng, 900) ? ANY_OF(w, right) : ANY_OF(w, wrong);
}

static int32_t random_create(generator *w, struct lk_create_ttl_request *ttl,
                             lk_acl entries[4])
{
  static const weighted ops[] = {{LK_OPCODE_CREATE, 50},
                                 {LK_OPCODE_CREATE2, 35},
                                 {LK_OPCODE_CREATE_CONTAINER, 15},
                                 {LK_OPCODE_CREATE_TTL, 12},
                                 {0, 0}};
  static const weighted normal_form[] = {{0, 400}, {1, 200}, {2, 180}, {3, 120},
                                         {4, 20},  {5, 10},  {6, 10},  {7, 10},
                                         {-1, 10}, {100, 5}, {0, 0}};
  static const weighted container[] = {{4, 800}, {0, 20}, {1, 20}, {2, 50},
                                       {3, 20},  {5, 5},  {6, 5},  {7, 5},
                                       {-1, 5},  {0, 0}};
  static const weighted timed[] = {{5, 400}, {6, 400}, {0, 20}, {1, 20},
                                   {2, 20},  {3, 20},  {4, 20}, {7, 10},
                                   {-1, 10}, {0, 0}};
  int32_t op = random_weighted(w, ops);
  struct lk_create_request *r = &ttl->create;

  r->flags = random_weighted(w, op == LK_OPCODE_CREATE_CONTAINER ? container
                                : op == LK_OPCODE_CREATE_TTL     ? timed
                                                                 : normal_form);
  if (op == LK_OPCODE_CREATE_TTL)
    ttl->ttl_ms = random_ttl(w, r->flags);
  r->path = one_in_16(w)   ? odd_path(w)
            : one_in_16(w) ? random_path(w)
                           : new_path(w);
  /* The path may now end with a slash, or with half of a character. */
  if ((r->flags & 2) != 0 && r->path.len > 1 && one_in_2(w))
    r->path.len -= 1;
  r->data = random_data(w);
  r->acl = random_acl(w, entries, true);
  return op;
}

static int32_t random_change(generator *w, request *r, lk_acl entries[4])
{
  /* If there are many nodes, more are deleted. */
  uint32_t full = w->count > GENERATOR_NODES / 2 ? 40 : 15;
  const weighted ops[] = {{LK_OPCODE_CREATE, 30},
                          {LK_OPCODE_DELETE, full},
                          {LK_OPCODE_SET_DATA, 16},
                          {0, 0}};

  switch (random_weighted(w, ops)) {
  case LK_OPCODE_CREATE: return random_create(w, &r->create_ttl, entries);
  case LK_OPCODE_DELETE:
    r->path_version.path = path_to_delete(w);
    r->path_version.version = version_of(w, r->path_version.path);
    return LK_OPCODE_DELETE;
  default:
    r->set_data.path = random_path(w);
    r->set_data.data = random_data(w);
    r->set_data.version = version_of(w, r->set_data.path);
    return LK_OPCODE_SET_DATA;
  }
}

static void put_part(int32_t op, const request *r, lk_buf *body)
{
  struct lk_multi_header head = {op, false, -1};

  wire_record(body, &lk__multi_header_record, &head);
  wire_record(body, lk__operation_record(op, false), r);
}

static void put_end(lk_buf *body)
{
  static const struct lk_multi_header end = {-1, true, -1};

  wire_record(body, &lk__multi_header_record, &end);
}

static int32_t put_multi(generator *w, lk_buf *body)
{
  uint32_t count = sim_roll(&w->rng, 6);
  lk_acl entries[4];
  request r;

  for (uint32_t i = 0; i < count; i++) {
    int32_t op = LK_OPCODE_CHECK;

    if (sim_chance(&w->rng, 250)) {
      r.path_version.path = random_path(w);
      r.path_version.version = version_of(w, r.path_version.path);
    } else
      op = random_change(w, &r, entries);
    /* After a create with TTL flags and no TTL, a server keeps the effects of
     * earlier operations of the multi for some time. */
    if (lk__opcode_info(op)->request == &lk__create_request_record &&
        (r.create.flags == 5 || r.create.flags == 6))
      w->last = true;
    put_part(op, &r, body);
  }
  put_end(body);
  return LK_OPCODE_MULTI;
}

static int32_t put_multi_read(generator *w, lk_buf *body)
{
  uint32_t count = sim_roll(&w->rng, 4);
  request r;

  for (uint32_t i = 0; i < count; i++) {
    r.path_watch.path = random_path(w);
    r.path_watch.watch = one_in_16(w);
    put_part(one_in_2(w) ? LK_OPCODE_GET_DATA : LK_OPCODE_GET_CHILDREN, &r,
             body);
  }
  put_end(body);
  return LK_OPCODE_MULTI_READ;
}

static int32_t put_change(generator *w, lk_buf *body)
{
  lk_acl entries[4];
  request r;
  int32_t op = random_change(w, &r, entries);

  wire_record(body, lk__opcode_info(op)->request, &r);
  return op;
}

static int32_t put_set_acl(generator *w, lk_buf *body)
{
  lk_acl entries[4];
  struct lk_set_acl_request r = {.path = random_path(w)};
  const generator_node *n = find_node(w, r.path);

  r.acl = random_acl(w, entries, false);
  r.version = random_version(w, n == NULL ? 0 : n->aversion);
  if (r.path.len <= strlen(w->base)) /* the base node must stay accessible */
    return put_change(w, body);
  /* The next request may be checked with the old list or the new one: a server
   * does not record that the list is about to change. */
  w->last = true;
  wire_record(body, &lk__set_acl_request_record, &r);
  return LK_OPCODE_SET_ACL;
}

/* Reconfiguration is disabled, whatever the request is. */
static int32_t put_reconfig(generator *w, lk_buf *body)
{
  static const char *const members[] = {
      NULL, "", "3", "server.4=127.0.0.1:2888:3888;127.0.0.1:2181", "x"};
  struct lk_reconfig_request r = {
      lk_text(ANY_OF(w, members)), lk_text(ANY_OF(w, members)),
      lk_text(ANY_OF(w, members)), one_in_2(w) ? -1 : 0};

  wire_record(body, &lk__reconfig_request_record, &r);
  return LK_OPCODE_RECONFIG;
}

static int32_t put_path(generator *w, int32_t op, lk_buf *body)
{
  struct lk_path_request r = {random_path(w)};

  if (op == LK_OPCODE_SYNC && r.path.at == NULL)
    r.path = lk_text("/");
  wire_record(body, &lk__path_request_record, &r);
  return op;
}

static int32_t put_path_watch(generator *w, int32_t op, lk_buf *body)
{
  struct lk_path_watch_request r = {random_path(w), one_in_2(w)};

  if (one_in_125(w)) /* only in a request of its own: in a multi, a null path
                        ends a thread of a real follower */
    r.path = lk_text(NULL);
  wire_record(body, &lk__path_watch_request_record, &r);
  return op;
}

static int32_t put_path_type(generator *w, int32_t op, lk_buf *body)
{
  struct lk_path_type_request r = {path_to_watch(w),
                                   (int32_t)sim_between(&w->rng, 1, 3)};

  if (one_in_125(w))
    r.type = (int32_t)sim_between(&w->rng, -1, 6);
  wire_record(body, &lk__path_type_request_record, &r);
  return op;
}

static int32_t put_add_watch(generator *w, lk_buf *body)
{
  struct lk_add_watch_request r = {path_to_watch(w), one_in_2(w)};

  if (one_in_125(w))
    r.mode = 2;
  wire_record(body, &lk__add_watch_request_record, &r);
  return LK_OPCODE_ADD_WATCH;
}

int32_t generator_read(generator *w, lk_buf *body)
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
  int32_t op = random_weighted(w, ops);

  if (op == LK_OPCODE_MULTI_READ)
    return put_multi_read(w, body);
  if (op == LK_OPCODE_WHO_AM_I || op == LK_OPCODE_PING)
    return op;
  if (lk__opcode_info(op)->request == &lk__path_request_record)
    return put_path(w, op, body);
  return put_path_watch(w, op, body);
}

int32_t generator_set(generator *w, lk_buf *body)
{
  struct lk_set_data_request r = {random_path(w), random_data(w), -1};

  wire_record(body, &lk__set_data_request_record, &r);
  return LK_OPCODE_SET_DATA;
}

int32_t generator_write(generator *w, lk_buf *body)
{
  static const weighted ops[] = {{LK_OPCODE_CREATE, 70},
                                 {LK_OPCODE_SET_ACL, 6},
                                 {LK_OPCODE_MULTI, 14},
                                 {LK_OPCODE_RECONFIG, 1},
                                 {0, 0}};

  switch (random_weighted(w, ops)) {
  case LK_OPCODE_RECONFIG: return put_reconfig(w, body);
  case LK_OPCODE_SET_ACL: return put_set_acl(w, body);
  case LK_OPCODE_MULTI: return put_multi(w, body);
  default: return put_change(w, body);
  }
}

static int32_t generator_watch(generator *w, lk_buf *body)
{
  static const weighted ops[] = {{LK_OPCODE_ADD_WATCH, 3},
                                 {LK_OPCODE_REMOVE_WATCHES, 4},
                                 {LK_OPCODE_CHECK_WATCHES, 2},
                                 {0, 0}};
  int32_t op = random_weighted(w, ops);

  return op == LK_OPCODE_ADD_WATCH ? put_add_watch(w, body)
                                   : put_path_type(w, op, body);
}

int32_t generator_request(generator *w, lk_buf *body)
{
  uint32_t at = sim_roll(&w->rng, 100);

  w->last = false;
  return at < 48   ? generator_write(w, body)
         : at < 91 ? generator_read(w, body)
         : at < 98 ? generator_watch(w, body)
                   : put_path(w, LK_OPCODE_SYNC, body);
}

static lk_vec random_paths(generator *w, lk_bytes paths[4])
{
  size_t count = sim_roll(&w->rng, 4);

  for (size_t i = 0; i < count; i++) {
    const generator_node *n = random_node(w);

    paths[i] = n == NULL || one_in_16(w) ? lk_text(w->base) : lk_text(n->path);
  }
  return lk__vec_of(paths, count);
}

int32_t generator_set_watches(generator *w, int64_t zxid, lk_buf *body)
{
  lk_bytes paths[5][4];
  struct lk_set_watches2_request r = {{zxid, random_paths(w, paths[0]),
                                       random_paths(w, paths[1]),
                                       random_paths(w, paths[2])},
                                      random_paths(w, paths[3]),
                                      random_paths(w, paths[4])};

  if (one_in_2(w)) {
    wire_record(body, &lk__set_watches_request_record, &r.one_shot);
    return LK_OPCODE_SET_WATCHES;
  }
  wire_record(body, &lk__set_watches2_request_record, &r);
  return LK_OPCODE_SET_WATCHES2;
}

void generator_auth(generator *w, bool known, lk_buf *body)
{
  static const char *const users[] = {"bob:secret", "ann:secret", "nocolon",
                                      ""};
  struct lk_auth_request r = {0, lk_text("digest"), lk_text(ANY_OF(w, users))};

  if (!known)
    r.scheme = lk_text("nosuch");
  wire_record(body, &lk__auth_request_record, &r);
}
