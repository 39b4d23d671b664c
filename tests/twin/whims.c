/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "twin/whims.h"

#include "fake/wire.h"
#include "proto/multi.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- chance -----------------------------------------------------------------
 */

#define COUNT_OF(a)  (sizeof(a) / sizeof(a)[0])
#define ANY_OF(w, a) ((a)[sim_roll(&(w)->rng, COUNT_OF(a))])

static bool often(whims *w)
{
  return sim_chance(&w->rng, 500);
}

static bool seldom(whims *w)
{
  return sim_chance(&w->rng, 60);
}

static bool hardly_ever(whims *w)
{
  return sim_chance(&w->rng, 8);
}

/* One of the numbers that come with weights; they end with weight 0. */
typedef struct weighted {
  int32_t value;
  uint32_t weight;
} weighted;

static int32_t pick(whims *w, const weighted *of)
{
  uint32_t sum = 0, at;

  for (const weighted *i = of; i->weight > 0; i++)
    sum += i->weight;
  for (at = sim_roll(&w->rng, sum); at >= of->weight; of++)
    at -= of->weight;
  return of->value;
}

/* ---- nodes ------------------------------------------------------------------
 */

void whims_move(whims *w, const char *base)
{
  snprintf(w->base, sizeof w->base, "%s", base);
  w->count = 0;
}

static whims_node *find(whims *w, lk_bytes path)
{
  for (size_t i = 0; i < w->count; i++)
    if (strlen(w->nodes[i].path) == path.len &&
        memcmp(w->nodes[i].path, path.at, path.len) == 0)
      return &w->nodes[i];
  return NULL;
}

static void forget(whims *w, lk_bytes path)
{
  whims_node *n = find(w, path);

  if (n != NULL)
    *n = w->nodes[--w->count];
}

static void add(whims *w, lk_bytes path)
{
  whims_node *n = find(w, path);

  if (path.len <= strlen(w->base) || path.len >= WHIMS_PATH)
    return;
  if (n == NULL && w->count == WHIMS_NODES)
    n = &w->nodes[sim_roll(&w->rng, WHIMS_NODES)];
  if (n == NULL)
    n = &w->nodes[w->count++];
  memcpy(n->path, path.at, path.len);
  n->path[path.len] = '\0';
  n->version = n->aversion = 0;
}

static const whims_node *some_node(whims *w)
{
  return w->count == 0 ? NULL
                       : &w->nodes[sim_roll(&w->rng, (uint32_t)w->count)];
}

/* ---- paths ------------------------------------------------------------------
 */

static char *next_text(whims *w)
{
  return w->texts[w->text++ % COUNT_OF(w->texts)];
}

/* Where a node may be, or a new one: not far down. */
static lk_bytes new_path(whims *w)
{
  static const char *const names[] = {"a", "b",        "c",  "d",
                                      "e", "\xc3\xbc", "f g"};
  const whims_node *parent = some_node(w);
  const char *at = parent == NULL || often(w) ? w->base : parent->path;
  char *text = next_text(w);

  if (strlen(at) > 60)
    at = w->base;
  snprintf(text, WHIMS_PATH, "%.*s/%s", WHIMS_PATH - 20, at, ANY_OF(w, names));
  return lk_text(text);
}

static lk_bytes odd_path(whims *w)
{
  static const char *const roots[] = {"", "x", "/", "//"};
  static const char *const ends[] = {"/",
                                     "//a",
                                     "/a/",
                                     "/.",
                                     "/..",
                                     "/./b",
                                     "/../b",
                                     "/...",
                                     "/a\x01",
                                     "/a\x7f",
                                     "/a\xc2\x85",
                                     "/\xed\x80\x80",
                                     "/\xee\x80\x80",
                                     "/\xef\xbf\xb0",
                                     "/\xef\xbf\xaf",
                                     "/\xf0\x9f\x98\x80",
                                     "/\xff",
                                     "/a\x1f"};
  char *text = next_text(w);

  if (seldom(w))
    return lk_text(ANY_OF(w, roots));
  snprintf(text, WHIMS_PATH, "%s%s", w->base, ANY_OF(w, ends));
  if (seldom(w)) /* a NUL in it */
    return lk_bytes_of(text, strlen(text) + 1);
  return lk_text(text);
}

static lk_bytes some_path(whims *w)
{
  const whims_node *n = some_node(w);

  if (sim_chance(&w->rng, 20))
    return odd_path(w);
  if (seldom(w))
    return lk_text(w->base);
  if (n == NULL || sim_chance(&w->rng, 200))
    return new_path(w);
  return lk_text(n->path);
}

/* A server that has recursive watches cannot look for a path without a slash,
   and the model has no path with a NUL in it. */
static lk_bytes path_to_watch(whims *w)
{
  lk_bytes path = some_path(w);
  bool fits = path.len > 0 && *(const char *)path.at == '/' &&
              memchr(path.at, '\0', path.len) == NULL;

  return fits ? path : lk_text(w->base);
}

/* Rather one that has no children. */
static lk_bytes path_to_delete(whims *w)
{
  lk_bytes a = some_path(w), b = some_path(w);

  return a.len > b.len ? a : b;
}

static int32_t some_version(whims *w, int32_t known)
{
  if (often(w))
    return -1;
  return sim_chance(&w->rng, 700) ? known
                                  : (int32_t)sim_between(&w->rng, -2, 3);
}

static int32_t version_of(whims *w, lk_bytes path)
{
  const whims_node *n = find(w, path);

  return some_version(w, n == NULL ? 0 : n->version);
}

/* ---- what is written
 * ---------------------------------------------------------- */

static lk_bytes some_data(whims *w)
{
  static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  static char large[6000];

  if (seldom(w))
    return lk_text(NULL);
  if (hardly_ever(w))
    return lk_bytes_of(large, sim_roll(&w->rng, sizeof large));
  return lk_bytes_of(letters, sim_roll(&w->rng, sizeof letters));
}

static lk_acl entry(int32_t perms, const char *scheme, const char *id)
{
  lk_acl a = {perms, lk_text(scheme), lk_text(id)};

  return a;
}

static int32_t some_perms(whims *w)
{
  int32_t perms = (int32_t)sim_roll(&w->rng, 32);

  /* What nobody may change back is in the way for the rest. */
  return sim_chance(&w->rng, 900) ? perms | LK_PERM_ADMIN : perms;
}

static lk_acl some_entry(whims *w)
{
  static const char *const ids[] = {
      "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=", "ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=",
      "nobody", "a:b:c", ""};
  static const weighted kinds[] = {{0, 60}, {1, 20}, {2, 10}, {3, 6},
                                   {4, 2},  {5, 1},  {6, 1},  {0, 0}};

  switch (pick(w, kinds)) {
  case 0: return entry(some_perms(w), "world", "anyone");
  case 1: return entry(some_perms(w), "digest", ANY_OF(w, ids));
  case 2: return entry(some_perms(w), "auth", "");
  case 3:
    return entry(some_perms(w), "ip", often(w) ? "127.0.0.0/8" : "10.0.0.1");
  case 4: return entry(LK_PERM_ALL, "world", "everyone");
  case 5: return entry(LK_PERM_ALL, "nosuch", "x");
  default: return entry(LK_PERM_ALL, "ip", "x");
  }
}

/* Nearly always open to all: a tree that is closed teaches nothing. */
static lk_vec some_acl(whims *w, lk_acl entries[4], bool open)
{
  size_t count = 1 + sim_roll(&w->rng, 3);

  if (sim_chance(&w->rng, open ? 930 : 300)) {
    entries[0] = entry(LK_PERM_ALL, "world", "anyone");
    return lk__vec_of(entries, 1);
  }
  if (seldom(w))
    return lk__vec_of(often(w) ? entries : NULL, 0);
  for (size_t i = 0; i < count; i++)
    entries[i] = i > 0 && seldom(w) ? entries[0] : some_entry(w);
  return lk__vec_of(entries, count);
}

/* ---- requests
 * ------------------------------------------------------------------- */

typedef union request {
  struct lk_create_request create;
  struct lk_path_version_request path_version;
  struct lk_set_data_request set_data;
  struct lk_path_watch_request path_watch;
} request;

static int32_t some_create(whims *w, struct lk_create_request *r,
                           lk_acl entries[4])
{
  static const weighted ops[] = {{LK_OPCODE_CREATE, 50},
                                 {LK_OPCODE_CREATE2, 35},
                                 {LK_OPCODE_CREATE_CONTAINER, 15},
                                 {0, 0}};
  static const weighted plain[] = {{0, 400}, {1, 200}, {2, 180}, {3, 120},
                                   {4, 20},  {5, 10},  {6, 10},  {7, 10},
                                   {-1, 10}, {100, 5}, {0, 0}};
  static const weighted container[] = {{4, 800}, {0, 20}, {1, 20}, {2, 50},
                                       {3, 20},  {5, 5},  {6, 5},  {7, 5},
                                       {-1, 5},  {0, 0}};
  int32_t op = pick(w, ops);

  r->flags = pick(w, op == LK_OPCODE_CREATE_CONTAINER ? container : plain);
  r->path = seldom(w) ? odd_path(w) : seldom(w) ? some_path(w) : new_path(w);
  if ((r->flags & 2) != 0 && r->path.len > 1 && often(w))
    r->path.len -= 1; /* "/a/", or half a letter */
  r->data = some_data(w);
  r->acl = some_acl(w, entries, true);
  return op;
}

static int32_t some_change(whims *w, request *r, lk_acl entries[4])
{
  /* Many nodes: rather fewer. */
  uint32_t full = w->count > WHIMS_NODES / 2 ? 40 : 15;
  const weighted ops[] = {{LK_OPCODE_CREATE, 30},
                          {LK_OPCODE_DELETE, full},
                          {LK_OPCODE_SET_DATA, 16},
                          {0, 0}};

  switch (pick(w, ops)) {
  case LK_OPCODE_CREATE: return some_create(w, &r->create, entries);
  case LK_OPCODE_DELETE:
    r->path_version.path = path_to_delete(w);
    r->path_version.version = version_of(w, r->path_version.path);
    return LK_OPCODE_DELETE;
  default:
    r->set_data.path = some_path(w);
    r->set_data.data = some_data(w);
    r->set_data.version = version_of(w, r->set_data.path);
    return LK_OPCODE_SET_DATA;
  }
}

static void put_part(int32_t op, const request *r, lk_buf *body)
{
  struct lk_multi_header head = {op, false, -1};

  wire_record(body, &lk__multi_header_record, &head);
  wire_record(body, lk__part_record(op, false), r);
}

static void put_end(lk_buf *body)
{
  static const struct lk_multi_header end = {-1, true, -1};

  wire_record(body, &lk__multi_header_record, &end);
}

static int32_t put_multi(whims *w, lk_buf *body)
{
  uint32_t count = sim_roll(&w->rng, 6);
  lk_acl entries[4];
  request r;

  for (uint32_t i = 0; i < count; i++) {
    int32_t op = LK_OPCODE_CHECK;

    if (sim_chance(&w->rng, 250)) {
      r.path_version.path = some_path(w);
      r.path_version.version = version_of(w, r.path_version.path);
    } else
      op = some_change(w, &r, entries);
    /* Servers fail so badly at nodes with a time to live that they keep what
       the parts before wanted, for some time. */
    if (lk__opcode_info(op)->request == &lk__create_request_record &&
        (r.create.flags == 5 || r.create.flags == 6))
      w->last = true;
    put_part(op, &r, body);
  }
  put_end(body);
  return LK_OPCODE_MULTI;
}

static int32_t put_multi_read(whims *w, lk_buf *body)
{
  uint32_t count = sim_roll(&w->rng, 4);
  request r;

  for (uint32_t i = 0; i < count; i++) {
    r.path_watch.path = some_path(w);
    r.path_watch.watch = seldom(w);
    put_part(often(w) ? LK_OPCODE_GET_DATA : LK_OPCODE_GET_CHILDREN, &r, body);
  }
  put_end(body);
  return LK_OPCODE_MULTI_READ;
}

static int32_t put_change(whims *w, lk_buf *body)
{
  lk_acl entries[4];
  request r;
  int32_t op = some_change(w, &r, entries);

  wire_record(body, lk__opcode_info(op)->request, &r);
  return op;
}

static int32_t put_set_acl(whims *w, lk_buf *body)
{
  lk_acl entries[4];
  struct lk_set_acl_request r = {.path = some_path(w)};
  const whims_node *n = find(w, r.path);

  r.acl = some_acl(w, entries, false);
  r.version = some_version(w, n == NULL ? 0 : n->aversion);
  if (r.path.len <= strlen(w->base)) /* this stays open */
    return put_change(w, body);
  /* The next request is judged by the old list or the new one, as it happens:
     servers forget that the list is about to change. */
  w->last = true;
  wire_record(body, &lk__set_acl_request_record, &r);
  return LK_OPCODE_SET_ACL;
}

static int32_t put_path(whims *w, int32_t op, lk_buf *body)
{
  struct lk_path_request r = {some_path(w)};

  if (op == LK_OPCODE_SYNC && r.path.at == NULL)
    r.path = lk_text("/");
  wire_record(body, &lk__path_request_record, &r);
  return op;
}

static int32_t put_path_watch(whims *w, int32_t op, lk_buf *body)
{
  struct lk_path_watch_request r = {some_path(w), often(w)};

  if (hardly_ever(w)) /* alone: in a multi it ends a follower's thread */
    r.path = lk_text(NULL);
  wire_record(body, &lk__path_watch_request_record, &r);
  return op;
}

static int32_t put_path_type(whims *w, int32_t op, lk_buf *body)
{
  struct lk_path_type_request r = {path_to_watch(w),
                                   (int32_t)sim_between(&w->rng, 1, 3)};

  if (hardly_ever(w))
    r.type = (int32_t)sim_between(&w->rng, -1, 6);
  wire_record(body, &lk__path_type_request_record, &r);
  return op;
}

static int32_t put_add_watch(whims *w, lk_buf *body)
{
  struct lk_add_watch_request r = {path_to_watch(w), often(w)};

  if (hardly_ever(w))
    r.mode = 2;
  wire_record(body, &lk__add_watch_request_record, &r);
  return LK_OPCODE_ADD_WATCH;
}

int32_t whims_read(whims *w, lk_buf *body)
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
  int32_t op = pick(w, ops);

  if (op == LK_OPCODE_MULTI_READ)
    return put_multi_read(w, body);
  if (op == LK_OPCODE_WHO_AM_I || op == LK_OPCODE_PING)
    return op;
  if (lk__opcode_info(op)->request == &lk__path_request_record)
    return put_path(w, op, body);
  return put_path_watch(w, op, body);
}

int32_t whims_set(whims *w, lk_buf *body)
{
  struct lk_set_data_request r = {some_path(w), some_data(w), -1};

  wire_record(body, &lk__set_data_request_record, &r);
  return LK_OPCODE_SET_DATA;
}

int32_t whims_write(whims *w, lk_buf *body)
{
  static const weighted ops[] = {{LK_OPCODE_CREATE, 70},
                                 {LK_OPCODE_SET_ACL, 6},
                                 {LK_OPCODE_MULTI, 14},
                                 {0, 0}};

  switch (pick(w, ops)) {
  case LK_OPCODE_SET_ACL: return put_set_acl(w, body);
  case LK_OPCODE_MULTI: return put_multi(w, body);
  default: return put_change(w, body);
  }
}

static int32_t whims_watch(whims *w, lk_buf *body)
{
  static const weighted ops[] = {{LK_OPCODE_ADD_WATCH, 3},
                                 {LK_OPCODE_REMOVE_WATCHES, 4},
                                 {LK_OPCODE_CHECK_WATCHES, 2},
                                 {0, 0}};
  int32_t op = pick(w, ops);

  return op == LK_OPCODE_ADD_WATCH ? put_add_watch(w, body)
                                   : put_path_type(w, op, body);
}

int32_t whims_request(whims *w, lk_buf *body)
{
  uint32_t at = sim_roll(&w->rng, 100);

  w->last = false;
  return at < 48   ? whims_write(w, body)
         : at < 91 ? whims_read(w, body)
         : at < 98 ? whims_watch(w, body)
                   : put_path(w, LK_OPCODE_SYNC, body);
}

static lk_vec some_paths(whims *w, lk_bytes paths[4])
{
  size_t count = sim_roll(&w->rng, 4);

  for (size_t i = 0; i < count; i++) {
    const whims_node *n = some_node(w);

    paths[i] = n == NULL || seldom(w) ? lk_text(w->base) : lk_text(n->path);
  }
  return lk__vec_of(paths, count);
}

int32_t whims_set_watches(whims *w, int64_t zxid, lk_buf *body)
{
  lk_bytes paths[5][4];
  struct lk_set_watches2_request r = {{zxid, some_paths(w, paths[0]),
                                       some_paths(w, paths[1]),
                                       some_paths(w, paths[2])},
                                      some_paths(w, paths[3]),
                                      some_paths(w, paths[4])};

  if (often(w)) {
    wire_record(body, &lk__set_watches_request_record, &r.one_shot);
    return LK_OPCODE_SET_WATCHES;
  }
  wire_record(body, &lk__set_watches2_request_record, &r);
  return LK_OPCODE_SET_WATCHES2;
}

void whims_auth(whims *w, bool known, lk_buf *body)
{
  static const char *const users[] = {"bob:secret", "ann:secret", "nocolon",
                                      ""};
  struct lk_auth_request r = {0, lk_text("digest"), lk_text(ANY_OF(w, users))};

  if (!known)
    r.scheme = lk_text("nosuch");
  wire_record(body, &lk__auth_request_record, &r);
}

/* ---- learning
 * ---------------------------------------------------------------------- */

static void learn_stat(whims *w, lk_bytes path, const lk_stat *s)
{
  whims_node *n = find(w, path);

  if (n == NULL)
    return;
  n->version = s->version;
  n->aversion = s->aversion;
}

/* The bodies of a request, or of a part of one, and of its answer. */
static void learn_one(whims *w, int32_t op, lk_reader *asked, lk_reader *said)
{
  const lk_opcode_info *info = lk__opcode_info(op);
  lk_bytes path = lk__reader_bytes(asked);
  lk_stat stat;

  if (asked->err != 0 || path.at == NULL)
    return;
  if (info->request == &lk__create_request_record)
    add(w, lk__reader_bytes(said));
  else if (op == LK_OPCODE_DELETE)
    forget(w, path);
  else if (op != LK_OPCODE_CHECK && info->reply->nfields > 0 &&
           info->reply->fields[info->reply->nfields - 1].kind == LK_KIND_STAT &&
           lk__reader_left(said) >= LK_STAT_SIZE) {
    said->at = said->end - LK_STAT_SIZE;
    lk__reader_stat(said, &stat);
    learn_stat(w, path, &stat);
  }
}

static void learn_parts(whims *w, lk_reader *asked, lk_reader *said)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_part part, result;

  while (lk__part_decode(asked, false, &arena, &part) &&
         lk__part_decode(said, true, &arena, &result)) {
    if (result.type == LK_OPCODE_CREATE || result.type == LK_OPCODE_CREATE2)
      add(w, result.type == LK_OPCODE_CREATE ? result.body.path.path
                                             : result.body.path_stat.path);
    else if (result.type == LK_OPCODE_DELETE)
      forget(w, part.body.path_version.path);
    else if (result.type == LK_OPCODE_SET_DATA)
      learn_stat(w, part.body.set_data.path, &result.body.stat.stat);
  }
  lk__arena_free(&arena);
}

void whims_learn(whims *w, int32_t op, lk_bytes asked, lk_bytes said)
{
  lk_reader question, answer;
  struct lk_reply_header head;

  lk__reader_init(&question, asked.at, asked.len);
  lk__reader_init(&answer, said.at, said.len);
  lk__record_decode(&lk__reply_header_record, &head, &answer, NULL);
  if (head.err == LK_ERR_NO_NODE && lk__opcode_info(op)->request->nfields > 0 &&
      lk__opcode_info(op)->request->fields[0].kind == LK_KIND_BYTES &&
      lk__opcode_info(op)->request != &lk__create_request_record)
    forget(w, lk__reader_bytes(&question));
  else if (head.err == 0 && op == LK_OPCODE_MULTI)
    learn_parts(w, &question, &answer);
  else if (head.err == 0 && lk__opcode_info(op)->request->nfields > 0)
    learn_one(w, op, &question, &answer);
}
