/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/digest.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A subscriber subscribes to the data or the children of a node that requesters
 * and single lockers change. It unsubscribes and subscribes again, also in
 * callbacks. At the end it must have seen the last state.
 */

enum {
  NODES = 4, /* those of the requesters */
  NO_CHECKS = -1
};

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static sim_checker *checker_of(const sim_actor *a)
{
  return a->process->world->checker;
}

static void unsubscribe(sim_actor *a)
{
  lk_subscription *s = a->subscribed->subscription;

  a->subscribed->subscription = NULL;
  lk_subscription_free(s);
}

/* ---- callbacks ---------------------------------------------------------- */

static uint64_t digest_of(const void *at, size_t len)
{
  return sim_digest_add(SIM_DIGEST, at, len);
}

static void notify_checker(sim_actor *a, lk_subscription *s,
                           const sim_node_state *state)
{
  sim_subscribed *n = a->subscribed;
  bool after_free = s != n->subscription; /* it is NULL, or a later one */
  sim_fact f = {.type = SIM_SUBSCRIPTION_EVENT,
                .subscribed = n,
                .new_state = state,
                .after_free = after_free};

  TRACE(a, "subscription to %s reports %s, 0x%llx", n->path,
        state->err == 0 ? "0" : lk_error_name(state->err),
        (unsigned long long)state->zxid);
  sim_report_fact(checker_of(a), &f);
  if (after_free)
    return;
  n->notified = true;
  n->last = *state;
  if (!a->stopping && sim_one_in(&a->rng, 16))
    unsubscribe(a);
}

static void on_names(lk_subscription *s, int err, const lk_bytes *names,
                     size_t count, const lk_stat *stat, void *arg)
{
  sim_node_state state = {.err = err};

  if (err == 0)
    state = (sim_node_state){
        .czxid = stat->czxid, .zxid = stat->pzxid, .version = stat->cversion};
  /* A sum does not depend on the order of the names. */
  for (size_t i = 0; i < count; i++)
    state.digest += digest_of(names[i].at, names[i].len);
  notify_checker(arg, s, &state);
}

static void on_data(lk_subscription *s, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  sim_node_state state = {.err = err};

  if (err == 0)
    state = (sim_node_state){.czxid = stat->czxid,
                             .zxid = stat->mzxid,
                             .version = stat->version,
                             .digest = digest_of(data->at, data->len)};
  notify_checker(arg, s, &state);
}

/* ---- committed state ---------------------------------------------------- */

static sim_node_state state_of_children(const sim_node *n)
{
  sim_node_state state = {.czxid = n->stat.czxid,
                          .zxid = n->stat.pzxid,
                          .version = n->stat.cversion};

  for (const sim_node *child = n->children; child != NULL; child = child->next)
    state.digest += digest_of(child->name, strlen(child->name));
  return state;
}

static sim_node_state state_of_data(const sim_node *n)
{
  return (sim_node_state){.czxid = n->stat.czxid,
                          .zxid = n->stat.mzxid,
                          .version = n->stat.version,
                          .digest =
                              digest_of(n->data, (size_t)n->stat.data_length)};
}

/* The state that the subscription must have reported in the end. */
static sim_node_state committed_state(const sim_actor *a)
{
  const sim_node *node =
      sim_tree_find(sim_ensemble_committed_tree(a->process->world->ensemble),
                    a->subscribed->path);

  if (node == NULL)
    return (sim_node_state){.err = LK_ERR_NO_NODE};
  return a->subscribed->children ? state_of_children(node)
                                 : state_of_data(node);
}

bool sim_node_state_equals(const sim_node_state *a, const sim_node_state *b)
{
  return a->err == b->err && a->czxid == b->czxid && a->zxid == b->zxid &&
         a->version == b->version && a->digest == b->digest;
}

bool sim_subscriber_is_up_to_date(const sim_actor *a)
{
  const sim_subscribed *n = a->subscribed;
  sim_node_state state = committed_state(a);

  return n->notified && sim_node_state_equals(&n->last, &state);
}

/* ---- operations --------------------------------------------------------- */

static void choose_node(sim_actor *a)
{
  sim_subscribed *n = a->subscribed;
  uint32_t node = sim_roll(&a->rng, NODES);

  n->children = sim_one_in(&a->rng, 2);
  if (n->children && sim_one_in(&a->rng, 2))
    snprintf(n->path, sizeof n->path, "%s", SIM_REQUEST_DIR);
  else
    snprintf(n->path, sizeof n->path, "%s/n%u", SIM_REQUEST_DIR,
             (unsigned)node);
}

/* Periodic checks would hide that an event is missing, so most subscriptions
 * have none. */
static void subscribe(sim_actor *a)
{
  sim_subscribed *n = a->subscribed;
  lk_subscription_config config = {
      .size = sizeof config,
      .check_ms = sim_one_in(&a->rng, 4) ? 100 : NO_CHECKS};
  lk_client *c = a->process->client;

  choose_node(a);
  n->notified = false;
  n->stale_since_us = 0;
  TRACE(a, "subscribes to the %s of %s", n->children ? "children" : "data",
        n->path);
  int err = n->children ? lk_subscribe_children(&n->subscription, c, n->path,
                                                &config, on_names, a)
                        : lk_subscribe_data(&n->subscription, c, n->path,
                                            &config, on_data, a);

  if (err != 0)
    n->subscription = NULL;
}

static void subscriber_act(sim_actor *a)
{
  sim_subscribed *n = a->subscribed;

  if (n->subscription == NULL)
    subscribe(a);
  else if (!a->stopping && sim_one_in(&a->rng, 24))
    unsubscribe(a);
  a->idle =
      a->stopping && n->subscription != NULL && sim_subscriber_is_up_to_date(a);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 2));
}

static void subscriber_start(sim_actor *a)
{
  if (a->subscribed == NULL)
    a->subscribed = sim_allocate(sizeof *a->subscribed);
  a->subscribed->subscription = NULL;
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

const sim_actor_kind sim_subscriber = {.start = subscriber_start,
                                       .act = subscriber_act,
                                       .leave = unsubscribe,
                                       .reports_idle = true};
