/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/conditions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * A requester sends requests of all kinds on a few nodes that all requesters
 * share. The data it writes are unique, so that each reply and each event can
 * be compared with the committed changes.
 */

enum {
  NODES = 4,
  MOST_AT_ONCE = 4,
  MOST_WATCHES = 12,
  ANY_VERSION = -1,
  ANY_NODE = 0
};

static sim_checker *checker_of(const sim_request *r)
{
  return r->process->world->checker;
}

#define TRACE(r, ...) \
  SIM_TRACE(&(r)->process->world->trace, (r)->process->name, __VA_ARGS__)

/* ---- completion --------------------------------------------------------- */

static const char *const verbs[] = {
    [SIM_CREATE] = "create", [SIM_DELETE] = "delete", [SIM_EXISTS] = "exists",
    [SIM_GET] = "get",       [SIM_SET] = "set",       [SIM_CHILDREN] = "list",
    [SIM_SYNC] = "sync",     [SIM_MULTI] = "multi",   [SIM_WHO_AM_I] = "who"};

static void end_request(sim_request *r, const sim_result *result)
{
  const lk_reply *reply = lk_client_reply(r->process->client);
  bool exists_found_none =
      r->verb == SIM_EXISTS && result->err == LK_ERR_NO_NODE;

  TRACE(r, "request %" PRIu64 ", %s %s: %s", r->number, verbs[r->verb], r->path,
        result->err == 0 ? "0" : lk_error_name(result->err));
  r->completions++;
  r->err = result->err;
  sim_report_fact(checker_of(r), &(sim_fact){.type = SIM_REQUEST_ENDED,
                                             .err = result->err,
                                             .request = r,
                                             .result = result});
  if (!r->sets_watch)
    return;
  r->watch_registered =
      reply != NULL && (result->err == 0 || exists_found_none);
  if (!r->watch_registered)
    r->watch = NULL;
  r->watch_zxid = reply == NULL ? 0 : reply->zxid;
  r->connection = reply == NULL ? 0 : reply->connection;
  bool is_from_read_only_server =
      reply != NULL && reply->evidence == LK_EVIDENCE_NONE;

  r->may_report_anything = is_from_read_only_server;
}

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  end_request(arg, &(sim_result){.err = err});
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

static void on_parts(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  (void)c;
  (void)results;
  (void)count;
  end_request(arg, &(sim_result){.err = err});
}

static void on_watch(lk_client *c, lk_watch *w, const lk_event *e, void *arg)
{
  sim_request *r = arg;

  (void)c;
  (void)w;
  TRACE(r, "watch of request %" PRIu64 ", %s: %d %s", r->number, r->path,
        (int)e->type, e->err == 0 ? "" : lk_error_name(e->err));
  sim_report_fact(
      checker_of(r),
      &(sim_fact){.type = SIM_WATCH_EVENT, .request = r, .watch_event = e});
  r->watch_registered = false;
  r->watch = NULL;
}

static void on_ids(lk_client *c, int err, const lk_identity *ids, size_t count,
                   void *arg)
{
  (void)c;
  (void)ids;
  end_request(arg, &(sim_result){.err = err, .count = count});
}

/* ---- requests ----------------------------------------------------------- */

/* `random`: a number from which all random choices are derived. */
static int send_create(sim_request *r, const lk_call *call, uint32_t random)
{
  lk_client *c = r->process->client;
  int flags = random % 3 == 0 ? LK_EPHEMERAL : LK_PERSISTENT;
  bool without_stat = random % 2 == 1;

  r->sequential = random % 5 == 0;
  if (r->sequential)
    flags |= LK_SEQUENTIAL;
  if (without_stat)
    return lk_create(c, r->path, lk_text(r->data), NULL, flags, call,
                     on_created, r);
  return lk_create2(c, r->path, lk_text(r->data), NULL, flags, call, on_created,
                    r);
}

static int send_multi(sim_request *r, const lk_call *call)
{
  lk_op ops[2] = {lk_op_check(SIM_REQUEST_DIR, ANY_VERSION),
                  lk_op_set(r->path, lk_text(r->data), ANY_VERSION)};

  return lk_multi(r->process->client, ops, 2, call, on_parts, r);
}

static int send_request(sim_request *r, const lk_call *call, uint32_t random)
{
  lk_client *c = r->process->client;

  switch ((int)r->verb) {
  case SIM_CREATE: return send_create(r, call, random);
  case SIM_DELETE: return lk_delete(c, r->path, ANY_VERSION, call, on_done, r);
  case SIM_EXISTS: return lk_exists(c, r->path, call, on_stat, r);
  case SIM_GET: return lk_get(c, r->path, call, on_data, r);
  case SIM_SET:
    return lk_set(c, r->path, lk_text(r->data), ANY_VERSION, call, on_stat, r);
  case SIM_CHILDREN: return lk_get_children(c, r->path, call, on_names, r);
  case SIM_SYNC: return lk_server_sync(c, r->path, call, on_done, r);
  case SIM_MULTI: return send_multi(r, call);
  case SIM_WHO_AM_I: return lk_who_am_i(c, call, on_ids, r);
  default: break;
  }
  return LK_ERR_BAD_ARGUMENT;
}

static bool is_read(sim_verb v)
{
  return v == SIM_EXISTS || v == SIM_GET || v == SIM_CHILDREN;
}

static size_t watches_of(const sim_actor *a)
{
  return sim_checker_count_watches(a->process->world->checker, a->process);
}

static lk_call random_call(sim_actor *a, sim_request *r)
{
  lk_call call = {.size = sizeof call};
  uint32_t random = (uint32_t)sim_rng_next(&a->rng);

  if (random % 8 == 0)
    call.timeout_ms =
        1 + a->process->world->timeout_ms / (int)(4 + random % 100);
  if ((is_read(r->verb) || r->verb == SIM_WHO_AM_I) && random % 3 == 0)
    call.repeat = true;
  if (is_read(r->verb) && watches_of(a) < MOST_WATCHES) {
    call.on_event = on_watch;
    call.watch_arg = r;
    call.watch = &r->watch;
    call.until_disconnect = random % 7 == 0;
  }
  r->sets_watch = call.on_event != NULL;
  r->until_disconnect = call.until_disconnect;
  return call;
}

static void send_random_request(sim_actor *a, sim_verb verb, uint32_t node)
{
  sim_request *r =
      sim_checker_new_request(a->process->world->checker, a->process);
  lk_call call;

  r->verb = verb;
  if (verb == SIM_CHILDREN)
    snprintf(r->path, sizeof r->path, "%s", SIM_REQUEST_DIR);
  else
    snprintf(r->path, sizeof r->path, "%s/n%u", SIM_REQUEST_DIR,
             (unsigned)node);
  snprintf(r->data, sizeof r->data, "%s.%" PRIu64 ".%" PRIu64, a->name,
           a->process->life, r->number);
  call = random_call(a, r);
  r->in_call = true;
  uint32_t random = (uint32_t)sim_rng_next(&a->rng);

  if (send_request(r, &call, random) != 0) {
    r->completions = 1; /* refused: no callback follows */
    r->err = LK_ERR_CLOSED;
  }
  r->in_call = false;
}

/* Creates the large node, with zeros. */
static void make_large(sim_actor *a)
{
  void *zeros = sim_allocate(SIM_LARGE);

  (void)lk_create(a->process->client, SIM_LARGE_PATH,
                  lk_bytes_of(zeros, SIM_LARGE), NULL, LK_PERSISTENT, NULL,
                  NULL, NULL);
  free(zeros);
}

static void on_large(lk_client *c, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)stat;
  SIM_TRACE(&a->process->world->trace, a->name, "has read the large node: %s",
            err == 0 ? "0" : lk_error_name(err));
  a->reading = false;
  if (err == 0 && data->len != SIM_LARGE)
    abort();
}

/* Starts a read of the large node, unless one is outstanding. */
static void read_large(sim_actor *a)
{
  lk_call call = {.size = sizeof call, .repeat = sim_one_in(&a->rng, 2)};

  if (a->reading)
    return;
  a->reading =
      lk_get(a->process->client, SIM_LARGE_PATH, &call, on_large, a) == 0;
}

static void cancel_random_watch(sim_actor *a)
{
  sim_request *r = sim_checker_registered_watch(
      a->process->world->checker, a->process, sim_roll(&a->rng, MOST_WATCHES));

  if (r == NULL)
    return;
  TRACE(r, "watch of request %" PRIu64 " is cancelled", r->number);
  bool on_server = sim_one_in(&a->rng, 2);

  sim_watch_cancel(a->process, r->watch, on_server);
  r->watch_registered = false;
  r->watch = NULL;
}

/* ---- actor -------------------------------------------------------------- */

static void requester_act(sim_actor *a)
{
  static const sim_verb some[] = {
      SIM_CREATE, SIM_CREATE, SIM_DELETE, SIM_EXISTS, SIM_EXISTS,   SIM_GET,
      SIM_GET,    SIM_SET,    SIM_SET,    SIM_SYNC,   SIM_CHILDREN, SIM_MULTI};

  if (a->stopping)
    return;
  for (uint32_t i = sim_roll(&a->rng, MOST_AT_ONCE) + 1; i > 0; i--)
    send_random_request(a, some[sim_roll(&a->rng, sizeof some / sizeof *some)],
                        sim_roll(&a->rng, NODES));
  if (sim_has_condition(a->process->world, SIM_NARROW))
    read_large(a);
  if (sim_has_condition(a->process->world, SIM_REFUSALS) &&
      sim_one_in(&a->rng, 2))
    send_random_request(a, SIM_WHO_AM_I, ANY_NODE);
  if (sim_one_in(&a->rng, 4))
    cancel_random_watch(a);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

/* A request made now is sent on the next connection, behind those that the
 * client repeats there. */
static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)err;
  if (state == LK_STATE_SUSPENDED && !a->stopping)
    send_random_request(a, SIM_GET, sim_roll(&a->rng, NODES));
}

static void requester_start(sim_actor *a)
{
  a->listener =
      (lk_listener){.size = sizeof(lk_listener), .state = on_state, .arg = a};
  lk_client_attach(a->process->client, &a->listener);
  (void)lk_create(a->process->client, SIM_REQUEST_DIR, lk_text(""), NULL,
                  LK_PERSISTENT, NULL, NULL, NULL);
  (void)lk_create(a->process->client, SIM_REQUEST_DIR "/guarded", lk_text(""),
                  NULL, LK_PERSISTENT, NULL, NULL, NULL);
  a->reading = false;
  if (sim_has_condition(a->process->world, SIM_NARROW))
    make_large(a);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

const sim_actor_kind sim_requester = {.start = requester_start,
                                      .act = requester_act};
