/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "recipes/nodes/membership.h"
#include "sim/world/actor.h"

enum { LONGEST_PAUSE_MS = 15 * 1000 }; /* of a member */

/* Group membership, and rosters. */

/* Invokes `check` for each actor of the kind whose client is connected, when
 * the faults are over. */
static void check_actors(sim_checker *checker, const sim_actor_kind *kind,
                         void (*check)(sim_checker *checker, const sim_life *l,
                                       const sim_actor *a))
{
  if (checker->faults_over_us == 0)
    return;
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_process *p = &checker->world->processes[i];
    const sim_life *l = sim_life_of(checker, p);

    if (!sim_process_runs(p) || l->state != LK_STATE_CONNECTED)
      continue;
    for (const sim_actor *a = p->actors; a != NULL; a = a->next) {
      if (a->kind == kind)
        check(checker, l, a);
    }
  }
}

/* ---- members ------------------------------------------------------------- */

static void check_member(sim_checker *checker, const sim_life *l,
                         const sim_actor *a)
{
  sim_member *m = a->member;
  bool unsettled = !l->session->resumed && !sim_member_is_settled(a);
  /* A member that has lost its node several times pauses before it joins. */
  bool pauses = m->membership != NULL && m->membership->pause.running;
  int64_t grace_us = sim_grace_us(checker);
  int64_t with_pause_us = grace_us + LONGEST_PAUSE_MS * SIM_MS;
  bool joins_late = sim_is_overdue(checker, l, unsettled && !pauses,
                                   &m->joining_since_us, grace_us);
  bool pauses_too_long = sim_is_overdue(checker, l, unsettled,
                                        &m->unsettled_since_us, with_pause_us);

  if (joins_late || pauses_too_long)
    sim_violated(checker, "%s is %s member of the group, and its node is not",
                 a->name, m->wanted ? "a" : "no");
}

static void check_member_event(sim_checker *checker, const sim_fact *f)
{
  const sim_member *m = f->member_actor->member;
  const char *name = f->member_actor->name;
  bool joins = f->member_event->type == LK_MEMBERSHIP_EVENT_JOINED;
  bool leaves = f->member_event->type == LK_MEMBERSHIP_EVENT_LEFT;

  if (f->member_freed)
    sim_violated(checker, "%s gets an event after it was freed", name);
  else if (m->ended)
    sim_violated(checker, "%s gets an event after the last", name);
  else if ((joins && m->joined) || (leaves && !m->joined))
    sim_violated(checker, "%s %s twice", name, joins ? "joins" : "leaves");
  else if (joins && !m->wanted)
    sim_violated(checker, "%s joins after it has left", name);
}

/* A member is in the group with its data, and leaves no node. */
void sim_member_listed(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_MEMBER_EVENT)
    check_member_event(checker, f);
  else
    check_actors(checker, &sim_member_actor, check_member);
}

/* ---- rosters ------------------------------------------------------------- */

static void check_roster(sim_checker *checker, const sim_life *l,
                         const sim_actor *a)
{
  sim_roster *r = a->roster;
  bool is_stale = r->roster != NULL && !sim_roster_is_up_to_date(a);

  if (sim_is_overdue(checker, l, is_stale, &r->stale_since_us,
                     sim_grace_us(checker)))
    sim_violated(checker, "%s has not the last roster of %s", a->name, r->path);
}

/* After the last change each roster has been reported. */
void sim_roster_converges(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_PERIODIC)
    check_actors(checker, &sim_roster_reader, check_roster);
  else if (f->roster_freed)
    sim_violated(checker, "%s gets a roster after it was freed",
                 f->roster_actor->name);
}
