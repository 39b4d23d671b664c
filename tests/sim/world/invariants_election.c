/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/actor.h"
#include "sim/world/conditions.h"

#include <string.h>

/* Leader election. */

/* The candidate of a process that has a client; NULL: none. */
static sim_actor *candidate_of(const sim_process *p)
{
  sim_actor *a = sim_process_has_client(p) ? p->actors : NULL;

  while (a != NULL && (a->kind != &sim_candidate_actor ||
                       a->candidate == NULL || a->candidate->candidate == NULL))
    a = a->next;
  return a;
}

static uint64_t term_of(const sim_actor *a)
{
  return lk_lock_token(lk_candidate_lock(a->candidate->candidate));
}

static bool leads_until_now(const sim_actor *a)
{
  return sim_lease_lasts(a->process,
                         lk_candidate_lock(a->candidate->candidate));
}

/* ---- events -------------------------------------------------------------- */

/* The terms of an ensemble that was wiped or restored may be smaller. */
static void check_term(sim_checker *checker, const sim_actor *a, uint64_t term)
{
  const sim_entry *e = sim_history_by_zxid(&checker->history, (int64_t)term);
  bool same_incarnation = sim_incarnation((int64_t)term) ==
                          sim_incarnation((int64_t)checker->last_term);

  if (e == NULL)
    sim_violated(checker, "%s leads in term 0x%" PRIx64 ", which no node has",
                 a->name, term);
  else if (same_incarnation && term <= checker->last_term && !e->restored &&
           !sim_has_condition(checker->world, SIM_RESUMES) &&
           !(e->deleted_zxid != 0 && sim_deletion_is_excused(checker, e)))
    sim_violated(checker, "%s leads in term 0x%" PRIx64 " after 0x%" PRIx64,
                 a->name, term, checker->last_term);
  checker->last_term = term;
}

static void check_elected(sim_checker *checker, const sim_actor *a,
                          const lk_candidate_event *event)
{
  sim_candidate *c = a->candidate;

  if (c->leads)
    sim_violated(checker, "%s is elected while it leads", a->name);
  if (event->term != term_of(a))
    sim_violated(checker, "%s is elected in a term that it does not have",
                 a->name);
  check_term(checker, a, event->term);
  c->leads = true;
  c->unsure = false;
  c->term = event->term;
}

static void check_change_of_lease(sim_checker *checker, const sim_actor *a,
                                  const lk_candidate_event *event)
{
  sim_candidate *c = a->candidate;
  bool unsure = event->type == LK_CANDIDATE_EVENT_UNSURE;

  if (!c->leads || event->term != c->term || c->unsure == unsure)
    sim_violated(checker, "%s is %s out of order", a->name,
                 lk_candidate_event_text(event->type));
  c->unsure = unsure;
}

static void check_deposed(sim_checker *checker, const sim_actor *a,
                          const lk_candidate_event *event)
{
  sim_candidate *c = a->candidate;

  if (!c->leads || event->term != c->term)
    sim_violated(checker, "%s is deposed, but does not lead in that term",
                 a->name);
  c->leads = false;
}

static void check_event(sim_checker *checker, const sim_actor *a,
                        const lk_candidate_event *event)
{
  if (a->candidate->ended)
    sim_violated(checker, "%s gets an event after the last", a->name);
  switch (event->type) {
  case LK_CANDIDATE_EVENT_ELECTED: check_elected(checker, a, event); break;
  case LK_CANDIDATE_EVENT_UNSURE:
  case LK_CANDIDATE_EVENT_RENEWED:
    check_change_of_lease(checker, a, event);
    break;
  case LK_CANDIDATE_EVENT_DEPOSED: check_deposed(checker, a, event); break;
  case LK_CANDIDATE_EVENT_RETRYING:
  case LK_CANDIDATE_EVENT_ENDED:
    if (a->candidate->leads)
      sim_violated(checker, "%s is %s while it leads", a->name,
                   lk_candidate_event_text(event->type));
    break;
  }
  a->candidate->ended = event->type == LK_CANDIDATE_EVENT_ENDED;
}

/* ---- leaders ------------------------------------------------------------- */

static void check_leaders(sim_checker *checker)
{
  const sim_actor *leader = NULL;

  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_actor *a = candidate_of(&checker->world->processes[i]);

    if (a == NULL || !leads_until_now(a))
      continue;
    const sim_entry *e =
        sim_history_by_zxid(&checker->history, (int64_t)term_of(a));

    if (!a->candidate->leads)
      sim_violated(checker, "%s leads and was not told so", a->name);
    if (e != NULL && e->deleted_zxid != 0 &&
        sim_deletion_is_excused(checker, e))
      continue; /* its client cannot know of the deletion */
    if (leader != NULL)
      sim_violated(checker, "%s and %s both lead", leader->name, a->name);
    leader = a;
  }
}

static void check_deletion(sim_checker *checker, const sim_entry *e)
{
  if (strncmp(e->path, SIM_ELECTION_DIR "/", sizeof SIM_ELECTION_DIR) != 0 ||
      sim_deletion_is_excused(checker, e))
    return;
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_actor *a = candidate_of(&checker->world->processes[i]);

    if (a != NULL && term_of(a) == (uint64_t)e->created_zxid &&
        leads_until_now(a))
      sim_violated(checker, "%s leads, and its node was deleted", a->name);
  }
}

/* At most one candidate leads, in a larger term than all before, and is told so
 * once. */
void sim_one_leader(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_JOB_DONE)
    check_leaders(checker);
  else if (f->type == SIM_NODE_DELETED)
    check_deletion(checker, f->entry);
  else if (f->candidate_freed)
    sim_violated(checker, "%s gets an event after it was freed",
                 f->candidate_actor->name);
  else
    check_event(checker, f->candidate_actor, f->candidate_event);
}

/* ---- the end ------------------------------------------------------------- */

/* Since when a candidate waits on a connection without a disturbance;
 * INT64_MAX: none does. */
static int64_t longest_wait_us(sim_checker *checker)
{
  int64_t since = INT64_MAX;

  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_process *p = &checker->world->processes[i];
    const sim_actor *a = candidate_of(p);
    const sim_life *l = sim_life_of(checker, p);

    if (a == NULL || !sim_process_runs(p) || l->state != LK_STATE_CONNECTED ||
        lk_candidate_get_state(a->candidate->candidate) != LK_CANDIDATE_WAITING)
      continue;
    int64_t undisturbed = l->undisturbed_since_us > l->throttled_us
                              ? l->undisturbed_since_us
                              : l->throttled_us;

    since = undisturbed < since ? undisturbed : since;
  }
  return since;
}

static bool has_leader(const sim_checker *checker)
{
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_actor *a = candidate_of(&checker->world->processes[i]);

    if (a != NULL && a->candidate->leads)
      return true;
  }
  return false;
}

/* The nodes of processes that have died before the faults ended are gone after
 * their session timeout. */
static void check_progress(sim_checker *checker)
{
  int64_t since = longest_wait_us(checker);

  if (checker->faults_over_us == 0 || since == INT64_MAX ||
      has_leader(checker)) {
    checker->leaderless_since_us = 0;
    return;
  }
  if (checker->leaderless_since_us < since)
    checker->leaderless_since_us = sim_now_us(checker);
  if (sim_now_us(checker) - checker->leaderless_since_us >
      2 * sim_grace_us(checker)) {
    sim_violated(checker, "candidates wait, and none is elected");
    checker->leaderless_since_us = 0;
  }
}

/* At the end all candidates have led and resigned. */
static void check_end(sim_checker *checker)
{
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_actor *a = candidate_of(&checker->world->processes[i]);

    if (a != NULL && !a->idle &&
        lk_client_state(a->process->client) == LK_STATE_CONNECTED)
      sim_violated(checker, "%s has not led", a->name);
  }
  for (sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (strncmp(e->path, SIM_ELECTION_DIR "/", sizeof SIM_ELECTION_DIR) != 0 ||
        e->is_excused || e->restored)
      continue;
    const sim_life *l = sim_owner_of(checker, e);
    const sim_actor *a = l == NULL ? NULL : candidate_of(l->process);

    if (a != NULL && l->state == LK_STATE_CONNECTED &&
        !e->creator_session->resumed &&
        lk_candidate_get_state(a->candidate->candidate) == LK_CANDIDATE_STOPPED)
      sim_violated(checker, "%s has resigned, and %s exists", a->name, e->path);
  }
}

/* An election with candidates gets a leader, and no node is left behind. */
void sim_election_ends(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_QUIESCENT)
    check_end(checker);
  else
    check_progress(checker);
}
