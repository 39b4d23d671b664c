/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * A watcher sets persistent watches on nodes and trees, which stay over
 * reconnects until it cancels them or the session ends. A requester in the same
 * process sets one-shot watches on the same nodes.
 */

enum { NODES = 4, MOST_WATCHES = 5 };

#define TRACE(r, ...) \
  SIM_TRACE(&(r)->process->world->trace, (r)->process->name, __VA_ARGS__)

static sim_checker *checker_of(const sim_process *p)
{
  return p->world->checker;
}

/* ---- callbacks ---------------------------------------------------------- */

static void cancel_watch(sim_request *r, bool on_server)
{
  TRACE(r, "watch of request %" PRIu64 " is cancelled", r->number);
  r->watch_registered = false;
  sim_watch_cancel(r->process, r->watch, on_server);
  r->watch = NULL;
}

/* Some watches are cancelled when their node is deleted. The number of the
 * request decides which ones, so that nothing is drawn from the random
 * generator here. */
static void on_watch(lk_client *c, lk_watch *w, const lk_event *e, void *arg)
{
  sim_request *r = arg;
  bool is_chosen = r->number % 7 == 0;
  bool on_server = r->number % 2 == 0;

  (void)c;
  (void)w;
  TRACE(r, "watch of request %" PRIu64 ", %s: %d of %s %s", r->number, r->path,
        (int)e->type, (const char *)e->path.at,
        e->err == 0 ? "" : lk_error_name(e->err));
  sim_report_fact(
      checker_of(r->process),
      &(sim_fact){.type = SIM_WATCH_EVENT, .request = r, .watch_event = e});
  if (e->type == LK_EVENT_ENDED) {
    r->watch_registered = false;
    r->watch = NULL;
  } else if (r->watch_registered && is_chosen && e->type == LK_EVENT_DELETED) {
    cancel_watch(r, on_server);
  }
}

static void on_done(lk_client *c, int err, void *arg)
{
  sim_request *r = arg;
  const lk_reply *reply = lk_client_reply(c);

  TRACE(r, "request %" PRIu64 ", watches %s: %s", r->number, r->path,
        err == 0 ? "0" : lk_error_name(err));
  r->completions++;
  r->err = err;
  r->watch_registered = reply != NULL && err == 0;
  if (!r->watch_registered)
    r->watch = NULL;
  r->watch_zxid = reply == NULL ? 0 : reply->zxid;
  r->connection = reply == NULL ? 0 : reply->connection;
  bool is_from_read_only_server =
      reply != NULL && reply->evidence == LK_EVIDENCE_NONE;

  r->may_report_anything = is_from_read_only_server;
  sim_report_fact(checker_of(r->process),
                  &(sim_fact){.type = SIM_REQUEST_ENDED,
                              .err = err,
                              .request = r,
                              .result = &(sim_result){.err = err}});
}

/* ---- operations --------------------------------------------------------- */

static void set_random_path(sim_actor *a, sim_request *r)
{
  unsigned node = sim_roll(&a->rng, NODES);

  switch (sim_roll(&a->rng, 4)) {
  case 0: snprintf(r->path, sizeof r->path, "%s", SIM_REQUEST_DIR); break;
  case 1:
    snprintf(r->path, sizeof r->path, "%s/n%u/x", SIM_REQUEST_DIR, node);
    break;
  default:
    snprintf(r->path, sizeof r->path, "%s/n%u", SIM_REQUEST_DIR, node);
    break;
  }
}

static void add_watch(sim_actor *a)
{
  sim_request *r = sim_checker_new_request(checker_of(a->process), a->process);
  lk_call call = {.size = sizeof call,
                  .until_disconnect = sim_one_in(&a->rng, 7),
                  .on_event = on_watch,
                  .watch_arg = r,
                  .watch = &r->watch};

  r->verb = SIM_ADD_WATCH;
  r->persistent = sim_allocate(sizeof *r->persistent);
  r->persistent->mode =
      sim_one_in(&a->rng, 2) ? LK_WATCH_PERSISTENT : LK_WATCH_RECURSIVE;
  set_random_path(a, r);
  if (sim_one_in(&a->rng, 8))
    call.timeout_ms = 1 + a->process->world->timeout_ms / 20;
  r->sets_watch = true;
  r->until_disconnect = call.until_disconnect;
  r->in_call = true;
  r->err = lk_add_watch(a->process->client, r->path, r->persistent->mode, &call,
                        on_done, r);
  if (r->err != 0) /* refused: there is a watch of the other mode */
    r->completions = 1;
  r->in_call = false;
}

/* The number of registered persistent watches. */
static size_t count_watches(const sim_actor *a)
{
  size_t n = 0;

  for (size_t i = 0;; i++) {
    const sim_request *r =
        sim_checker_registered_watch(checker_of(a->process), a->process, i);

    if (r == NULL)
      return n;
    if (r->persistent != NULL)
      n++;
  }
}

/* Often there is no watch of the random number, or it is a one-shot watch of
 * the requester. */
static void cancel_random_watch(sim_actor *a)
{
  sim_request *r = sim_checker_registered_watch(
      checker_of(a->process), a->process, sim_roll(&a->rng, 2 * MOST_WATCHES));

  if (r == NULL || r->persistent == NULL)
    return;
  bool on_server = sim_one_in(&a->rng, 2);

  cancel_watch(r, on_server);
}

static void watcher_act(sim_actor *a)
{
  if (a->stopping)
    return;
  if (count_watches(a) < MOST_WATCHES)
    add_watch(a);
  if (sim_one_in(&a->rng, 3))
    cancel_random_watch(a);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

static void watcher_start(sim_actor *a)
{
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

const sim_actor_kind sim_watcher = {.start = watcher_start, .act = watcher_act};
