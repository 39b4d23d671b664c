/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * A rare requester sends the requests that locks do not need: multi, multiRead,
 * getChildren, getAllChildrenNumber, getEphemerals, whoAmI, access lists,
 * containers, TTL nodes, and a reconfiguration, which the servers refuse. It
 * uses the nodes of the requesters and children of these. Some of the children
 * may not be read at times.
 */

enum { NODES = 4, MOST_AT_ONCE = 3, ANY_VERSION = -1 };

static sim_checker *checker_of(const sim_process *p)
{
  return p->world->checker;
}

#define TRACE(r, ...) \
  SIM_TRACE(&(r)->process->world->trace, (r)->process->name, __VA_ARGS__)

/* ---- completion --------------------------------------------------------- */

static const char *verb_of(const sim_request *r)
{
  static const char *const verbs[] = {
      [SIM_BATCH] = "multi",     [SIM_READS] = "multi-read",
      [SIM_MAKE] = "create",     [SIM_LIST] = "names",
      [SIM_COUNT] = "count",     [SIM_EPHEMERALS] = "own ephemeral",
      [SIM_WHO_AM_I] = "who",    [SIM_GET_ACL] = "get ACL",
      [SIM_SET_ACL] = "set ACL", [SIM_RECONFIG] = "reconfig"};

  return verbs[r->verb];
}

static void end_request(sim_request *r, const sim_result *result)
{
  TRACE(r, "request %" PRIu64 ", %s %s: %s", r->number, verb_of(r), r->path,
        result->err == 0 ? "0" : lk_error_name(result->err));
  r->completions++;
  r->err = result->err;
  sim_report_fact(checker_of(r->process), &(sim_fact){.type = SIM_REQUEST_ENDED,
                                                      .err = result->err,
                                                      .request = r,
                                                      .result = result});
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .path = path, .stat = stat});
}

static void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .stat = stat});
}

static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .data = data, .stat = stat});
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  (void)c;
  end_request(
      arg,
      &(sim_result){.err = err, .names = names, .count = count, .stat = stat});
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .names = paths, .count = count});
}

static void on_count(lk_client *c, int err, int32_t count, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .count = (size_t)count});
}

static void on_ids(lk_client *c, int err, const lk_identity *ids, size_t count,
                   void *arg)
{
  (void)c;
  (void)ids;
  end_request(arg, &(sim_result){.err = err, .count = count});
}

static void on_acl(lk_client *c, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .acl = acl, .stat = stat});
}

static void on_done(lk_client *c, int err, const lk_op_result *results,
                    size_t count, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .done = results, .count = count});
}

static void on_read(lk_client *c, int err, const lk_read_result *results,
                    size_t count, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err, .read = results, .count = count});
}

/* ---- requests ----------------------------------------------------------- */

/* The path of a node that all requesters share, or of a child of it. */
static void random_path(sim_actor *a, bool is_below_node,
                        char path[SIM_CHANGE_PATH])
{
  unsigned node = sim_roll(&a->rng, NODES);

  if (is_below_node)
    snprintf(path, SIM_CHANGE_PATH, "%s/n%u/%c", SIM_REQUEST_DIR, node,
             sim_one_in(&a->rng, 2) ? 'x' : 'y');
  else
    snprintf(path, SIM_CHANGE_PATH, "%s/n%u", SIM_REQUEST_DIR, node);
}

static void random_create_mode(sim_actor *a, sim_request_op *e)
{
  enum { CHOICES = 6 };

  static const int flags[CHOICES] = {
      LK_PERSISTENT, LK_PERSISTENT, LK_EPHEMERAL, LK_EPHEMERAL | LK_SEQUENTIAL,
      LK_CONTAINER,  LK_CONTAINER};

  e->flags = flags[sim_roll(&a->rng, CHOICES)];
  if (!sim_one_in(&a->rng, 4))
    return;
  e->type = LK_OP_CREATE_TTL;
  e->flags = sim_one_in(&a->rng, 8) ? LK_SEQUENTIAL : LK_PERSISTENT;
  e->ttl_ms = sim_between(&a->rng, 1, a->process->world->timeout_ms * 4);
}

/* -1 matches any version; 0 and 1 are the versions of a new node and of a node
 * that was set once. */
static int32_t random_version(sim_actor *a)
{
  return sim_one_in(&a->rng, 4) ? (int32_t)sim_roll(&a->rng, 2) : ANY_VERSION;
}

static void random_op(sim_actor *a, const sim_request *r, unsigned number,
                      sim_request_op *e)
{
  enum { TYPES = 8, READS = 2 };

  static const int32_t types[TYPES] = {
      LK_OP_CREATE, LK_OP_CREATE2, LK_OP_CREATE2, LK_OP_SET,
      LK_OP_SET,    LK_OP_DELETE,  LK_OP_CHECK,   LK_OP_CHECK};
  static const int32_t reads[READS] = {LK_READ_GET, LK_READ_GET_CHILDREN};

  bool is_below_node = sim_one_in(&a->rng, 2);

  random_path(a, is_below_node, e->path);
  e->version = random_version(a);
  snprintf(e->data, sizeof e->data, "%s.%" PRIu64 ".%" PRIu64 ".%u", a->name,
           a->process->life, r->number, number);
  if (r->verb == SIM_READS)
    e->type = reads[sim_roll(&a->rng, READS)];
  else if (r->verb == SIM_MAKE)
    e->type = LK_OP_CREATE2;
  else
    e->type = types[sim_roll(&a->rng, TYPES)];
  if (e->type == LK_OP_CREATE || e->type == LK_OP_CREATE2)
    random_create_mode(a, e);
}

static lk_op make_op(const sim_request_op *e)
{
  lk_bytes data = lk_text(e->data);

  switch (e->type) {
  case LK_OP_CREATE: return lk_op_create(e->path, data, NULL, e->flags);
  case LK_OP_CREATE2: return lk_op_create2(e->path, data, NULL, e->flags);
  case LK_OP_CREATE_TTL:
    return lk_op_create_ttl(e->path, data, NULL, e->flags, e->ttl_ms);
  case LK_OP_SET: return lk_op_set(e->path, data, e->version);
  case LK_OP_DELETE: return lk_op_delete(e->path, e->version);
  default: return lk_op_check(e->path, e->version);
  }
}

static int send_batch(sim_request *r, const lk_call *call)
{
  lk_op ops[SIM_MOST_OPS];

  for (size_t i = 0; i < r->nops; i++)
    ops[i] = make_op(&r->ops[i]);
  return lk_multi(r->process->client, ops, r->nops, call, on_done, r);
}

static int send_reads(sim_request *r, const lk_call *call)
{
  lk_read reads[SIM_MOST_OPS];

  for (size_t i = 0; i < r->nops; i++)
    reads[i] = r->ops[i].type == LK_READ_GET
                   ? lk_read_get(r->ops[i].path)
                   : lk_read_get_children(r->ops[i].path);
  return lk_multi_read(r->process->client, reads, r->nops, call, on_read, r);
}

static int send_make(sim_request *r, const lk_call *call)
{
  const sim_request_op *e = r->ops;
  lk_client *c = r->process->client;

  if (e->type == LK_OP_CREATE_TTL)
    return lk_create_ttl(c, e->path, lk_text(e->data), NULL, e->flags,
                         e->ttl_ms, call, on_created, r);
  return lk_create2(c, e->path, lk_text(e->data), NULL, e->flags, call,
                    on_created, r);
}

static int send_set_acl(sim_request *r, const lk_call *call)
{
  lk_acl entry = {
      .perms = r->perms, .scheme = lk_text("world"), .id = lk_text("anyone")};
  lk_acls acl = {.entries = &entry, .count = 1};

  return lk_set_acl(r->process->client, r->path, &acl, ANY_VERSION, call,
                    on_stat, r);
}

static int send_reconfig(sim_request *r, const lk_call *call)
{
  lk_reconfiguration change = {
      .size = sizeof change, .leaving = "2", .version = ANY_VERSION};

  return lk_reconfig(r->process->client, &change, call, on_data, r);
}

static int send_request(sim_request *r, const lk_call *call)
{
  lk_client *c = r->process->client;

  switch ((int)r->verb) {
  case SIM_BATCH: return send_batch(r, call);
  case SIM_READS: return send_reads(r, call);
  case SIM_MAKE: return send_make(r, call);
  case SIM_LIST: return lk_get_children(c, r->path, call, on_names, r);
  case SIM_COUNT: return lk_count_descendants(c, r->path, call, on_count, r);
  case SIM_EPHEMERALS: return lk_ephemerals(c, r->path, call, on_paths, r);
  case SIM_WHO_AM_I: return lk_who_am_i(c, call, on_ids, r);
  case SIM_GET_ACL: return lk_get_acl(c, r->path, call, on_acl, r);
  case SIM_SET_ACL: return send_set_acl(r, call);
  case SIM_RECONFIG: return send_reconfig(r, call);
  default: return LK_ERR_BAD_ARGUMENT;
  }
}

static bool is_write(sim_verb v)
{
  return v == SIM_BATCH || v == SIM_MAKE || v == SIM_SET_ACL ||
         v == SIM_RECONFIG;
}

static lk_call random_call(sim_actor *a, sim_verb verb)
{
  lk_call call = {.size = sizeof call};

  if (sim_one_in(&a->rng, 8))
    call.timeout_ms = 1 + a->process->world->timeout_ms /
                              (int64_t)(4 + sim_roll(&a->rng, 100));
  call.repeat = !is_write(verb) && sim_one_in(&a->rng, 3);
  return call;
}

static void send_random_request(sim_actor *a, sim_verb verb)
{
  sim_request *r = sim_checker_new_request(checker_of(a->process), a->process);
  lk_call call = random_call(a, verb);

  r->verb = verb;
  bool is_below_node = verb == SIM_SET_ACL || sim_one_in(&a->rng, 3);

  random_path(a, is_below_node, r->path);
  if (verb == SIM_EPHEMERALS || (verb == SIM_COUNT && sim_one_in(&a->rng, 3)))
    snprintf(r->path, sizeof r->path, "%s", SIM_REQUEST_DIR);
  r->perms = sim_one_in(&a->rng, 3) ? LK_PERM_ALL & ~LK_PERM_READ : LK_PERM_ALL;
  if (verb == SIM_BATCH || verb == SIM_READS)
    r->nops = sim_roll(&a->rng, SIM_MOST_OPS + 1);
  else if (verb == SIM_MAKE)
    r->nops = 1;
  r->ops = sim_allocate(SIM_MOST_OPS * sizeof *r->ops);
  for (unsigned i = 0; i < r->nops; i++)
    random_op(a, r, i, &r->ops[i]);
  r->in_call = true;
  if (send_request(r, &call) != 0) {
    r->completions = 1; /* refused: no callback follows */
    r->err = LK_ERR_CLOSED;
  }
  r->in_call = false;
}

/* ---- actor -------------------------------------------------------------- */

static void rare_requester_act(sim_actor *a)
{
  static const sim_verb some[] = {
      SIM_BATCH,   SIM_BATCH,   SIM_BATCH,      SIM_BATCH,    SIM_READS,
      SIM_READS,   SIM_READS,   SIM_MAKE,       SIM_MAKE,     SIM_MAKE,
      SIM_LIST,    SIM_COUNT,   SIM_EPHEMERALS, SIM_WHO_AM_I, SIM_GET_ACL,
      SIM_SET_ACL, SIM_RECONFIG};

  if (a->stopping)
    return;
  for (uint32_t i = sim_roll(&a->rng, MOST_AT_ONCE) + 1; i > 0; i--)
    send_random_request(a, some[sim_roll(&a->rng, sizeof some / sizeof *some)]);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 2));
}

static void rare_requester_start(sim_actor *a)
{
  (void)lk_create(a->process->client, SIM_REQUEST_DIR, lk_text(""), NULL,
                  LK_PERSISTENT, NULL, NULL, NULL);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

const sim_actor_kind sim_rare_requester = {.start = rare_requester_start,
                                           .act = rare_requester_act};
