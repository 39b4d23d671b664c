/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/coverage.h"
#include "sim/world/facts.h"

#include <latchkey/member.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * A member joins and leaves the group, and replaces its data, at random times,
 * also in callbacks. Members of several processes may have the same name. An
 * operator sometimes deletes a node of the group.
 */

enum { NAMES = 12 };

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static int64_t random_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a) / 4);
}

static void free_member(sim_actor *a)
{
  lk_membership *m = a->member->membership;

  a->member->membership = NULL;
  a->member->wanted = false;
  lk_membership_free(m);
}

/* ---- operations ---------------------------------------------------------- */

static void join(sim_actor *a)
{
  int err = lk_membership_join(a->member->membership);

  TRACE(a, "joins: %s", err == 0 ? "0" : lk_error_name(err));
  a->member->wanted = err == 0;
}

static void leave(sim_actor *a)
{
  TRACE(a, "leaves");
  a->member->wanted = false;
  lk_membership_leave(a->member->membership);
}

static void replace_data(sim_actor *a)
{
  sim_member *m = a->member;
  char data[sizeof m->data];

  snprintf(data, sizeof data, "%s.%u", a->name, ++m->writes);
  if (lk_membership_set_data(m->membership, lk_text(data)) == 0)
    memcpy(m->data, data, sizeof data);
}

static void act_in_callback(sim_actor *a)
{
  if (a->stopping)
    return;
  switch (sim_roll(&a->rng, 16)) {
  case 0: leave(a); break;
  case 1: join(a); break;
  case 2: replace_data(a); break;
  case 3: free_member(a); break;
  default: break;
  }
}

static void on_event(lk_membership *membership,
                     const lk_membership_event *event, void *arg)
{
  sim_actor *a = arg;
  sim_member *m = a->member;
  bool after_free = membership != m->membership;

  TRACE(a, "%s%s%s", lk_membership_event_text(event->type),
        event->err == 0 ? "" : ": ",
        event->err == 0 ? "" : lk_error_name(event->err));
  sim_report_fact(a->process->world->checker,
                  &(sim_fact){.type = SIM_MEMBER_EVENT,
                              .member_actor = a,
                              .member_event = event,
                              .member_freed = after_free});
  if (after_free)
    return;
  if (event->type == LK_MEMBERSHIP_EVENT_JOINED)
    m->joined = true;
  if (event->type == LK_MEMBERSHIP_EVENT_LEFT)
    m->joined = false;
  if (event->type == LK_MEMBERSHIP_EVENT_ENDED)
    m->ended = true;
  if (event->type == LK_MEMBERSHIP_EVENT_NAME_TAKEN)
    sim_coverage_milestone(SIM_MILESTONE_NAME_TAKEN);
  if (event->type == LK_MEMBERSHIP_EVENT_LEFT && event->err != 0)
    sim_coverage_milestone(SIM_MILESTONE_MEMBERSHIP_LOST);
  if (event->type != LK_MEMBERSHIP_EVENT_ENDED)
    act_in_callback(a);
}

static void make_member(sim_actor *a)
{
  sim_member *m = a->member;
  lk_membership_config config = {.size = sizeof config,
                                 .persistent_parents = sim_one_in(&a->rng, 4),
                                 .on_event = on_event,
                                 .arg = a};
  char name[8];

  snprintf(name, sizeof name, "m%u", (unsigned)sim_roll(&a->rng, NAMES));
  snprintf(m->path, sizeof m->path, "%s/%s", SIM_GROUP_DIR, name);
  snprintf(m->data, sizeof m->data, "%s.%u", a->name, ++m->writes);
  m->wanted = false;
  m->joined = false;
  m->ended = false;
  m->unsettled_since_us = 0;
  m->joining_since_us = 0;
  config.data = lk_text(m->data);
  a->process->failing_allocations = 0; /* this call must not fail */
  if (lk_membership_new(&m->membership, a->process->client, SIM_GROUP_DIR, name,
                        &config) != 0)
    abort();
}

static void act_at_random(sim_actor *a)
{
  switch (sim_roll(&a->rng, 8)) {
  case 0: leave(a); break;
  case 1:
  case 2: replace_data(a); break;
  case 3: sim_actor_delete_any_child(a, SIM_GROUP_DIR); break;
  case 4: free_member(a); break;
  default: join(a); break;
  }
}

static void member_act(sim_actor *a)
{
  if (a->member->membership == NULL)
    make_member(a);
  if (!a->stopping)
    act_at_random(a);
  else if (!a->member->stops && sim_one_in(&a->rng, 3))
    leave(a);
  a->member->stops = a->stopping;
  a->idle = a->stopping && sim_member_is_settled(a);
  if (sim_process_runs(a->process))
    sim_actor_act_in(a, random_time(a));
}

static void member_start(sim_actor *a)
{
  if (a->member == NULL)
    a->member = sim_allocate(sizeof *a->member);
  a->member->stops = false;
  make_member(a);
  sim_actor_act_in(a, random_time(a));
}

/* ---- committed state ----------------------------------------------------- */

static bool has_data(const sim_node *n, const char *data)
{
  return (size_t)n->stat.data_length == strlen(data) &&
         memcmp(n->data, data, strlen(data)) == 0;
}

/* Whether the node at the path of the member is as the member wants it. */
static bool is_node_settled(const sim_member *m, const sim_node *n,
                            int64_t session)
{
  bool is_own = n != NULL && n->stat.ephemeral_owner == session;

  if (!m->wanted)
    return !m->joined && !is_own;
  if (n != NULL && !is_own) /* the name is taken */
    return !m->joined;
  return m->joined && is_own && has_data(n, m->data);
}

/* The nodes of earlier members of this session are deleted. */
bool sim_member_is_settled(const sim_actor *a)
{
  const sim_member *m = a->member;
  const sim_world *w = a->process->world;
  const sim_node *dir =
      sim_tree_find(sim_ensemble_committed_tree(w->ensemble), SIM_GROUP_DIR);
  int64_t session = lk_client_session(a->process->client).id;
  const sim_node *own = NULL;

  if (m->membership == NULL || m->ended)
    return true; /* the next member, or the end of the session, settles it */
  for (const sim_node *n = dir == NULL ? NULL : dir->children; n != NULL;
       n = n->next) {
    if (strcmp(n->path, m->path) == 0)
      own = n;
    else if (n->stat.ephemeral_owner == session &&
             !sim_checker_excuses_node(w->checker, n->path))
      return false;
  }
  if (own != NULL && sim_checker_excuses_node(w->checker, own->path))
    return true;
  return is_node_settled(m, own, session);
}

const sim_actor_kind sim_member_actor = {.start = member_start,
                                         .act = member_act,
                                         .leave = free_member,
                                         .reports_idle = true};
