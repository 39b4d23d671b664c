/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/coverage.h"
#include "sim/world/facts.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * An identity user adds identities to its client at any time, also in callbacks
 * and without a connection. It keeps a node that only its first identity may
 * use, and sends whoAmI. The identities of a process are the same after each
 * restart.
 */

enum { USER_SIZE = 24, ANY_VERSION = -1 };

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static sim_checker *checker_of(const sim_actor *a)
{
  return a->process->world->checker;
}

static sim_identity_use *new_identity_use(sim_actor *a, sim_verb verb)
{
  sim_identity_use *x = sim_checker_allocate(checker_of(a), sizeof *x);

  *x = (sim_identity_use){
      .actor = a, .verb = verb, .identities_before = a->identities};
  return x;
}

static void end_identity_use(sim_identity_use *x, int err)
{
  sim_actor *a = x->actor;

  TRACE(a, "a request with %u identities completes: %s", x->identities_before,
        err == 0 ? "0" : lk_error_name(err));
  x->completions++;
  sim_report_fact(
      checker_of(a),
      &(sim_fact){.type = SIM_IDENTITY_USED, .err = err, .identity_use = x});
}

/* ---- identities --------------------------------------------------------- */

static void format_user(const sim_actor *a, unsigned number,
                        char user[USER_SIZE])
{
  snprintf(user, USER_SIZE, "%s-%u", a->process->name, number);
}

static void on_added(lk_client *c, int err, void *arg)
{
  (void)c;
  end_identity_use(arg, err);
}

static void add_identity(sim_actor *a)
{
  sim_identity_use *x = new_identity_use(a, SIM_ADD_AUTH);
  char user[USER_SIZE];
  char text[40];

  format_user(a, a->identities, user);
  snprintf(text, sizeof text, "%s:word", user);
  TRACE(a, "adds identity %s", user);
  if (lk_add_auth(a->process->client, "digest", lk_text(text), on_added, x) !=
      0)
    return;
  a->identities++;
  sim_coverage_milestone(a->process->state == LK_STATE_CONNECTED
                             ? SIM_MILESTONE_IDENTITY_WHILE_CONNECTED
                             : SIM_MILESTONE_IDENTITY_WITHOUT_CONNECTION);
}

/* Adds an identity at one of four changes of the session state. */
static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)state;
  (void)err;
  if (a->identities < SIM_MOST_IDENTITIES && !a->stopping &&
      sim_one_in(&a->rng, 4))
    add_identity(a);
}

/* ---- requests that need identities -------------------------------------- */

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  (void)path;
  (void)stat;
  end_identity_use(arg, err);
}

static void on_got(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  (void)c;
  (void)data;
  (void)stat;
  end_identity_use(arg, err);
}

static void on_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  end_identity_use(arg, err);
}

static void on_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  end_identity_use(arg, err);
}

static bool has_user(const lk_identity *ids, size_t count, const char *user)
{
  for (size_t i = 0; i < count; i++) {
    if (ids[i].user.len == strlen(user) &&
        memcmp(ids[i].user.at, user, ids[i].user.len) == 0)
      return true;
  }
  return false;
}

static void on_who_am_i(lk_client *c, int err, const lk_identity *ids,
                        size_t count, void *arg)
{
  sim_identity_use *x = arg;
  char user[USER_SIZE];

  (void)c;
  for (unsigned i = 0; err == 0 && i < x->identities_before; i++) {
    format_user(x->actor, i, user);
    x->missing = x->missing || !has_user(ids, count, user);
  }
  end_identity_use(x, err);
}

/* Sends a random request that needs the first identity. */
static void use_first_identity(sim_actor *a)
{
  enum { CHOICES = 6 };

  static const sim_verb verbs[CHOICES] = {SIM_CREATE, SIM_CREATE, SIM_GET,
                                          SIM_SET,    SIM_DELETE, SIM_WHO_AM_I};
  sim_identity_use *x = new_identity_use(a, verbs[sim_roll(&a->rng, CHOICES)]);
  lk_client *c = a->process->client;
  lk_call call = {.size = sizeof call, .repeat = sim_one_in(&a->rng, 2)};
  char path[32];

  /* The node is not in SIM_REQUEST_DIR: watchers watch there, and may not read
   * this node. */
  snprintf(path, sizeof path, "/%s.own", a->process->name);
  switch ((int)x->verb) {
  case SIM_CREATE:
    (void)lk_create2(c, path, lk_text(a->name), lk_acl_creator(), LK_PERSISTENT,
                     NULL, on_created, x);
    break;
  case SIM_GET: (void)lk_get(c, path, &call, on_got, x); break;
  case SIM_SET:
    (void)lk_set(c, path, lk_text(a->name), ANY_VERSION, NULL, on_set, x);
    break;
  case SIM_DELETE:
    (void)lk_delete(c, path, ANY_VERSION, NULL, on_deleted, x);
    break;
  default: (void)lk_who_am_i(c, &call, on_who_am_i, x); break;
  }
}

/* ---- actor -------------------------------------------------------------- */

static void identity_user_act(sim_actor *a)
{
  if (a->stopping)
    return;
  if (a->identities < SIM_MOST_IDENTITIES && sim_one_in(&a->rng, 6))
    add_identity(a);
  for (uint32_t i = sim_roll(&a->rng, 3); i > 0 && a->identities > 0; i--)
    use_first_identity(a);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 2));
}

static void identity_user_start(sim_actor *a)
{
  a->identities = 0;
  a->listener =
      (lk_listener){.size = sizeof(lk_listener), .state = on_state, .arg = a};
  lk_client_attach(a->process->client, &a->listener);
  sim_actor_act_in(a, sim_between(&a->rng, 0, 2 * sim_actor_T_us(a)));
}

const sim_actor_kind sim_identity_user = {.start = identity_user_start,
                                          .act = identity_user_act};
