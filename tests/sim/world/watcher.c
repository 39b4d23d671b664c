/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * A watcher watches nodes and trees, and stays: over reconnects, until it has
 * enough of them, or its session ends. The requester beside it watches the same
 * nodes once.
 */

enum { NODES = 4, MOST_WATCHES = 5 };

#define SAY(r, ...) \
  SIM_TRACE(&(r)->process->world->trace, (r)->process->name, __VA_ARGS__)

static sim_checker *judge_of(const sim_process *p)
{
  return p->world->checker;
}

/* ---- what it is told ---------------------------------------------------- */

static void cancel(sim_request *r, bool on_server)
{
  SAY(r, "watch of request %" PRIu64 " is cancelled", r->number);
  r->stands = false;
  lk_watch_cancel(r->process->client, r->watch, on_server);
  r->watch = NULL;
}

/* Its number says when it has enough, so that nothing is drawn here. */
static void on_watch(lk_client *c, lk_watch *w, const lk_event *e, void *arg)
{
  sim_request *r = arg;

  (void)c;
  (void)w;
  SAY(r, "watch of request %" PRIu64 ", %s: %d of %s %s", r->number, r->path,
      (int)e->type, (const char *)e->path.at,
      e->err == 0 ? "" : lk_error_name(e->err));
  sim_checker_tell(judge_of(r->process),
                   &(sim_fact){.type = SIM_EVENT, .request = r, .watched = e});
  if (e->type == LK_EVENT_ENDED) {
    r->stands = false;
    r->watch = NULL;
  } else if (r->stands && r->number % 7 == 0 && e->type == LK_EVENT_DELETED)
    cancel(r, r->number % 2 == 0);
}

static void on_done(lk_client *c, int err, void *arg)
{
  sim_request *r = arg;
  const lk_reply *a = lk_client_reply(c);

  SAY(r, "request %" PRIu64 ", watches %s: %s", r->number, r->path,
      err == 0 ? "0" : lk_error_name(err));
  r->ends++;
  r->err = err;
  r->stands = a != NULL && err == 0;
  if (!r->stands)
    r->watch = NULL;
  r->since = a == NULL ? 0 : a->zxid;
  r->connection = a == NULL ? 0 : a->connection;
  r->fires = a != NULL && a->evidence == LK_EVIDENCE_NONE;
  sim_checker_tell(judge_of(r->process),
                   &(sim_fact){.type = SIM_ENDED,
                               .err = err,
                               .request = r,
                               .result = &(sim_result){.err = err}});
}

/* ---- what it does ------------------------------------------------------- */

static void some_path(sim_actor *a, sim_request *r)
{
  unsigned node = sim_roll(&a->rng, NODES);

  switch (sim_roll(&a->rng, 4)) {
  case 0: snprintf(r->path, sizeof r->path, "%s", SIM_RAW); break;
  case 1: snprintf(r->path, sizeof r->path, "%s/n%u/x", SIM_RAW, node); break;
  default: snprintf(r->path, sizeof r->path, "%s/n%u", SIM_RAW, node); break;
  }
}

static void watch(sim_actor *a)
{
  sim_request *r = sim_checker_request(judge_of(a->process), a->process);
  lk_call call = {.size = sizeof call,
                  .until_disconnect = sim_roll(&a->rng, 7) == 0,
                  .on_event = on_watch,
                  .watch_arg = r,
                  .watch = &r->watch};

  r->verb = SIM_ADD_WATCH;
  r->stay = sim_allocate(sizeof *r->stay);
  r->stay->mode =
      sim_roll(&a->rng, 2) == 0 ? LK_WATCH_PERSISTENT : LK_WATCH_RECURSIVE;
  some_path(a, r);
  if (sim_roll(&a->rng, 8) == 0)
    call.timeout_ms = 1 + a->process->world->timeout_ms / 20;
  r->watches = true;
  r->until_disconnect = call.until_disconnect;
  r->calling = true;
  r->err = lk_add_watch(a->process->client, r->path, r->stay->mode, &call,
                        on_done, r);
  r->ends = r->err != 0; /* the other mode is there */
  r->calling = false;
}

/* Of all that stay, also those whose request has not ended. */
static size_t count(const sim_actor *a)
{
  size_t n = 0;
  sim_request *r;

  for (size_t i = 0;
       (r = sim_checker_watch(judge_of(a->process), a->process, i)) != NULL;
       i++)
    n += r->stay != NULL;
  return n;
}

static void have_enough(sim_actor *a)
{
  sim_request *r = sim_checker_watch(judge_of(a->process), a->process,
                                     sim_roll(&a->rng, 2 * MOST_WATCHES));

  if (r != NULL && r->stay != NULL)
    cancel(r, sim_roll(&a->rng, 2) == 0);
}

static void act(sim_actor *a)
{
  if (a->stopping)
    return;
  if (count(a) < MOST_WATCHES)
    watch(a);
  if (sim_roll(&a->rng, 3) == 0)
    have_enough(a);
  sim_actor_wait(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

static void start(sim_actor *a)
{
  sim_actor_wait(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

static void leave(sim_actor *a)
{
  (void)a;
}

const sim_actor_kind sim_watcher = {.start = start, .act = act, .leave = leave};
