/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/conditions.h"
#include "sim/world/lock_mix.h"
#include "sim/world/lock_styles.h"
#include "sim/world/scenario.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOCKERS_MAX = 3, AT_ONCE = 0 };

void sim_actor_act_in(sim_actor *a, int64_t us)
{
  sim_schedule_in(&a->process->world->agenda, &a->job, us);
}

void sim_actor_delete_any_child(sim_actor *a, const char *dir)
{
  sim_ensemble *e = a->process->world->ensemble;
  const sim_node *n = sim_tree_find(sim_ensemble_committed_tree(e), dir);

  n = n == NULL ? NULL : n->children;
  for (uint32_t i = sim_roll(&a->rng, 3); i > 0 && n != NULL; i--)
    n = n->next;
  if (n == NULL)
    return;
  SIM_TRACE(&a->process->world->trace, a->name, "an operator deletes %s",
            n->path);
  (void)sim_operator_delete(e, n->path);
}

static void actor_on_job(void *arg)
{
  sim_actor *a = arg;
  sim_process *p = a->process;

  if (sim_process_runs(p))
    a->kind->act(a);
  else if (p->paused) /* act right after the process has continued */
    sim_schedule_at(&p->world->agenda, &a->job, p->paused_until_us + 1);
}

/* The salt of the actor's random generator; no other generator has it. */
static uint64_t actor_salt(const sim_process *p, unsigned number)
{
  return (uint64_t)'a' << 32 | p->index << 8 | number;
}

static void actor_add(sim_process *p, const sim_actor_kind *kind,
                      unsigned number)
{
  sim_actor *a = sim_allocate(sizeof *a);

  a->process = p;
  a->kind = kind;
  a->number = number;
  snprintf(a->name, sizeof a->name, "%s.%u", p->name, number);
  a->rng = sim_rng_fork(&p->world->rng, actor_salt(p, number));
  a->job = (sim_job){.run = actor_on_job, .arg = a};
  a->next = p->actors;
  p->actors = a;
}

static bool run_has_single_lockers(const sim_world *w)
{
  sim_rng r = sim_rng_fork(&w->rng, 's');

  return sim_one_in(&r, 5);
}

static bool run_has_subscribers(const sim_world *w)
{
  sim_rng r = sim_rng_fork(&w->rng, 'u');

  return w->scenario->subscribers && sim_one_in(&r, 3);
}

static void add_two_actors(sim_process *p, const sim_actor_kind *kind,
                           unsigned number)
{
  actor_add(p, kind, number);
  actor_add(p, kind, number + 1);
}

/* The actors of a process are chosen by the seed, and are the same after each
 * restart of the process. */
static void add_actors(sim_process *p)
{
  sim_rng r = sim_rng_fork(&p->world->rng, 'a' * 256 + p->index);
  uint32_t one_foreign_waiter_in =
      p->world->scenario->faults[SIM_FAULT_COUNTER] > 0 ? 3 : 12;
  unsigned lockers = 1 + sim_roll(&r, LOCKERS_MAX);
  unsigned number = 0;

  while (number < lockers)
    actor_add(p, &sim_locker, number++);
  if (sim_one_in(&r, 3) || sim_has_condition(p->world, SIM_NARROW))
    actor_add(p, &sim_requester, number++);
  /* The overflow of sequence numbers is tested only if a node stays in the
   * queue meanwhile, and only the node of a foreign waiter stays. So runs with
   * that fault have more foreign waiters. */
  if (sim_one_in(&r, one_foreign_waiter_in))
    actor_add(p, &sim_foreign_waiter, number++);
  if (!sim_has_only_mutexes(p->world) && sim_one_in(&r, 3) &&
      p->world->style->layout == LK_LAYOUT_CURATOR)
    actor_add(p, &sim_foreign_locker, number++);
  if (!sim_has_only_mutexes(p->world) && p->world->has_limit_node &&
      p->index == 0)
    actor_add(p, &sim_permit_setter, number++);
  /* The number of an actor determines its random generator. From here on each
   * kind has its own distance from `number`, so that its generator does not
   * depend on which of the other kinds the run has. */
  if (run_has_single_lockers(p->world))
    add_two_actors(p, &sim_single_locker, number);
  if (run_has_subscribers(p->world))
    add_two_actors(p, &sim_subscriber, number + 2);
  if (sim_has_condition(p->world, SIM_WRITERS))
    actor_add(p, &sim_reliable_writer, number + 7);
  if (sim_has_condition(p->world, SIM_IDENTITIES))
    actor_add(p, &sim_identity_user, number + 8);
  if (sim_has_condition(p->world, SIM_MANY_READERS) && p->index == 0)
    actor_add(p, &sim_many_readers, number + 9);
  if (sim_has_condition(p->world, SIM_TREES))
    actor_add(p, &sim_tree_maker, number + 10);
  if (sim_has_condition(p->world, SIM_ELECTIONS))
    actor_add(p, &sim_candidate_actor, number + 11);
  if (sim_has_condition(p->world, SIM_GROUPS))
    actor_add(p, &sim_member_actor, number + 12);
  if (sim_has_condition(p->world, SIM_ELECTIONS) ||
      sim_has_condition(p->world, SIM_GROUPS))
    actor_add(p, &sim_roster_reader, number + 13);
  if (p->world->all_requests) {
    actor_add(p, &sim_rare_requester, number + 4);
    actor_add(p, &sim_watcher, number + 5);
    /* sets one-shot watches on the nodes that the watcher watches */
    actor_add(p, &sim_requester, number + 6);
  }
}

void sim_actors_start(sim_process *p)
{
  if (p->actors == NULL)
    add_actors(p);
  for (sim_actor *a = p->actors; a != NULL; a = a->next) {
    a->stopping = false;
    a->idle = false;
    a->kind->start(a);
  }
}

void sim_actors_stop(sim_process *p)
{
  for (sim_actor *a = p->actors; a != NULL; a = a->next) {
    a->stopping = true;
    sim_actor_act_in(a, AT_ONCE);
  }
}

void sim_actors_free(sim_process *p)
{
  for (sim_actor *a = p->actors; a != NULL; a = a->next) {
    sim_unschedule(&p->world->agenda, &a->job);
    if (a->kind->leave != NULL)
      a->kind->leave(a);
    a->idle = true;
  }
}

/* The process has died, so no function of the library is called. */
void sim_actors_forget(sim_process *p)
{
  for (sim_actor *a = p->actors; a != NULL; a = a->next) {
    sim_unschedule(&p->world->agenda, &a->job);
    a->handle = NULL;
    a->single.lock = NULL;
    a->write = NULL;
    if (a->subscribed != NULL)
      a->subscribed->subscription = NULL;
    if (a->candidate != NULL)
      a->candidate->candidate = NULL;
    if (a->member != NULL)
      a->member->membership = NULL;
    if (a->roster != NULL)
      a->roster->roster = NULL;
    a->idle = true;
  }
}

void sim_actors_destroy(sim_process *p)
{
  while (p->actors != NULL) {
    sim_actor *a = p->actors;

    p->actors = a->next;
    sim_unschedule(&p->world->agenda, &a->job);
    free(a->foreign_state);
    free(a->subscribed);
    free(a->candidate);
    free(a->member);
    free(a->roster);
    free(a->many_readers);
    free(a);
  }
}

bool sim_actors_are_idle(const sim_process *p)
{
  for (const sim_actor *a = p->actors; a != NULL; a = a->next) {
    if (a->kind->reports_idle && !a->idle)
      return false;
  }
  return true;
}
