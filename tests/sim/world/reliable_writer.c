/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/facts.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * A reliable writer creates, sets and deletes nodes by reliable writes, one at
 * a time. Its own nodes are persistent, and no other actor uses them. All
 * writers also write to one shared node.
 */

enum { OWN_NODES = 3, ANY_VERSION = -1 };

#define SHARED SIM_REQUEST_DIR "/shared"

static sim_checker *checker_of(const sim_actor *a)
{
  return a->process->world->checker;
}

/* ---- completion --------------------------------------------------------- */

static void end_write(sim_write *x, int err)
{
  sim_actor *a = x->actor;

  SIM_TRACE(&a->process->world->trace, a->name, "has written %s: %s", x->data,
            err == 0 ? "0" : lk_error_name(err));
  x->err = err;
  x->ended = true;
  sim_report_fact(checker_of(a),
                  &(sim_fact){.type = SIM_WRITE_ENDED, .err = err, .write = x});
  if (a->write == x) /* not a write of an earlier client */
    a->write = NULL;
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  (void)path;
  (void)stat;
  end_write(arg, err);
}

static void on_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  end_write(arg, err);
}

static void on_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  end_write(arg, err);
}

/* ---- writes ------------------------------------------------------------- */

static int send_write(sim_actor *a, sim_write *x, const lk_call *call)
{
  lk_client *c = a->process->client;
  bool sole_writer = !x->shared;
  bool is_persistent = sole_writer || sim_one_in(&a->rng, 2);
  int flags = is_persistent ? LK_PERSISTENT : LK_EPHEMERAL;

  if (x->verb == SIM_CREATE)
    return lk_create_reliable(c, x->path, lk_text(x->data), NULL, flags,
                              sole_writer, call, on_created, x);
  if (x->verb == SIM_DELETE)
    return lk_delete_reliable(c, x->path, ANY_VERSION, sole_writer, call,
                              on_deleted, x);
  return lk_set_reliable(c, x->path, lk_text(x->data), ANY_VERSION, sole_writer,
                         call, on_set, x);
}

static void begin_write(sim_actor *a)
{
  enum { CHOICES = 4 };

  static const sim_verb verbs[CHOICES] = {SIM_CREATE, SIM_SET, SIM_SET,
                                          SIM_DELETE};
  sim_write *x = sim_checker_new_write(checker_of(a));
  lk_call call = {.size = sizeof call};

  x->actor = a;
  x->verb = verbs[sim_roll(&a->rng, CHOICES)];
  x->shared = sim_one_in(&a->rng, 4);
  if (x->shared && x->verb == SIM_DELETE)
    x->verb = SIM_SET;
  if (x->shared)
    snprintf(x->path, sizeof x->path, "%s", SHARED);
  else
    snprintf(x->path, sizeof x->path, "%s/%s.%u", SIM_REQUEST_DIR, a->name,
             (unsigned)sim_roll(&a->rng, OWN_NODES));
  snprintf(x->data, sizeof x->data, "%s.%" PRIu64, a->name,
           a->process->world->agenda.done);
  if (sim_one_in(&a->rng, 6))
    call.timeout_ms = 1 + (int)sim_roll(&a->rng, 1000);
  a->write = x;
  if (send_write(a, x, &call) != 0) {
    x->ended = true;
    x->err = LK_ERR_NOT_SENT;
    a->write = NULL;
  }
}

/* ---- actor -------------------------------------------------------------- */

static void reliable_writer_act(sim_actor *a)
{
  if (a->write == NULL && !a->stopping)
    begin_write(a);
  a->idle = a->stopping && a->write == NULL;
  if (!a->idle)
    sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 2));
}

static void reliable_writer_start(sim_actor *a)
{
  a->write = NULL;
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 2));
}

const sim_actor_kind sim_reliable_writer = {.start = reliable_writer_start,
                                            .act = reliable_writer_act,
                                            .reports_idle = true};
