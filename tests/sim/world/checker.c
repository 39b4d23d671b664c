/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/actors.h"
#include "sim/world/allocate.h"
#include "sim/world/conditions.h"
#include "sim/world/leases.h"
#include "sim/world/lock_styles.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PERIODIC_CHECKS = 16 };

#define INVARIANT(function, name, facts, text) {name, text},
const sim_invariant sim_invariants[] = {SIM_INVARIANTS(INVARIANT)};
const size_t sim_ninvariants = sizeof sim_invariants / sizeof *sim_invariants;

#define FUNCTION(function, name, facts, text) {facts, sim_##function},
static const struct {
  uint32_t facts;
  void (*function)(sim_checker *j, const sim_fact *f);
} functions[] = {SIM_INVARIANTS(FUNCTION)};

void sim_checker_report(sim_checker *j, const sim_fact *f)
{
  bool judging = j->world->in_checker;

  sim_milestones_note(f);
  j->world->in_checker = true;
  for (size_t i = 0; i < j->ninvariants_of_fact[f->type]; i++) {
    j->current = j->invariants_of_fact[f->type][i];
    functions[j->current].function(j, f);
  }
  j->world->in_checker = judging;
}

/* The invariants that each fact is passed to. */
static void index_invariants_by_fact(sim_checker *j)
{
  for (size_t t = 0; t < SIM_NFACTS; t++) {
    j->ninvariants_of_fact[t] = 0;
    for (size_t i = 0; i < sim_ninvariants; i++) {
      if ((functions[i].facts & SIM_FACT(t)) != 0 && !j->verdicts[i].off)
        j->invariants_of_fact[t][j->ninvariants_of_fact[t]++] =
            (unsigned char)i;
    }
  }
}

void sim_violated(sim_checker *j, const char *format, ...)
{
  char *what = j->verdicts[j->current].what;
  char text[sizeof j->verdicts->what];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  j->violations++;
  if (j->verdicts[j->current].broken++ == 0)
    memcpy(what, text, sizeof text);
  SIM_TRACE(&j->world->trace, "checker", "%s: %s",
            sim_invariants[j->current].name, text);
}

/* ---- setup and end ------------------------------------------------------ */

sim_checker *sim_checker_new(sim_world *w)
{
  sim_checker *j = sim_allocate(sizeof *j);

  j->world = w;
  j->verdicts = sim_allocate(sim_ninvariants * sizeof *j->verdicts);
  j->history.agenda = &w->agenda;
  j->history.locks = w->locks;
  j->history.nlocks = &w->nlocks;
  j->history.style = &w->style;
  j->leader = -1;
  index_invariants_by_fact(j);
  return j;
}

typedef struct sim_chunk {
  struct sim_chunk *next;
} sim_chunk;

void *sim_checker_allocate(sim_checker *j, size_t size)
{
  sim_chunk *c = sim_allocate(sizeof *c + size);

  c->next = j->chunks;
  j->chunks = c;
  return c + 1;
}

static void free_chunks(sim_checker *j)
{
  while (j->chunks != NULL) {
    sim_chunk *c = j->chunks;

    j->chunks = c->next;
    free(c);
  }
}

static void free_handles(sim_checker *j)
{
  while (j->all_handles != NULL) {
    sim_handle *h = j->all_handles;

    j->all_handles = h->next_of_all;
    free(h);
  }
}

void sim_checker_free(sim_checker *j)
{
  sim_contenders_free(j, NULL);
  free_handles(j);
  free_chunks(j);
  for (size_t i = 0; i < SIM_MOST_PROCESSES; i++)
    sim_life_end(&j->lives[i]);
  sim_change_log_free(&j->change_log);
  sim_history_free(&j->history);
  free(j->verdicts);
  free(j);
}

bool sim_checker_disable(sim_checker *j, const char *invariant)
{
  for (size_t i = 0; i < sim_ninvariants; i++) {
    if (strcmp(sim_invariants[i].name, invariant) == 0) {
      j->verdicts[i].off = true;
      index_invariants_by_fact(j);
      return true;
    }
  }
  return false;
}

size_t sim_checker_broken(const sim_checker *j, size_t invariant,
                          const char **what)
{
  if (what != NULL)
    *what = j->verdicts[invariant].what;
  return j->verdicts[invariant].broken;
}

size_t sim_checker_violations(const sim_checker *j)
{
  return j->violations;
}

/* ---- committed transactions --------------------------------------------- */

/* The assurance of the contender; for other nodes that of the process. */
static lk_assurance assurance_of(const sim_checker *j, const sim_contender *a,
                                 const sim_entry *e)
{
  if (a != NULL)
    return a->ct->lease->config.assurance;
  return e->creator_session == NULL
             ? LK_ASSURE_QUORUM
             : j->world->processes[e->creator_session->process].assurance;
}

/* A contender without a handle belongs to a local queue. */
static void note_created(sim_checker *j, sim_entry *e)
{
  const sim_contender *a = sim_contender_for(j, e);

  e->assurance = assurance_of(j, a, e);
  if (a == NULL) {
    /* created by a request of the process that had the session before */
    e->is_excused = e->creator_session != NULL && e->creator_session->resumed;
    return;
  }
  if (a->handle == NULL) {
    e->local_queue_life = a->life;
    return;
  }
  e->handle = a->handle;
  e->acquire_number = a->acquire_number;
  if (e->handle->acquire_number == a->acquire_number &&
      e->handle->first_node_us == 0 && e->is_contender)
    e->handle->first_node_us = e->created_us;
}

static void note_deleted(const sim_entry *e)
{
  sim_handle *h = e->handle;

  if (h == NULL || e->acquire_number != h->acquire_number)
    return;
  /* A multi-lock may delete a node whose state it does not know. */
  if (h->kind == SIM_MULTILOCK || e->deletion_cause != SIM_DELETED_BY_OWNER ||
      e->ownerless)
    h->displaced = true;
  if (e->deletion_cause == SIM_DELETED_BY_OWNER)
    return;
  h->nodes_taken++;
}

static void change_log_add(sim_checker *j, const sim_node *node,
                           lk_event_type type, int64_t zxid)
{
  if (sim_records_received(j->world))
    sim_change_log_add(&j->change_log, node, type, zxid);
}

static void on_node_created(const sim_node *node, void *arg)
{
  sim_checker *j = arg;
  sim_entry *e = sim_history_add_node(&j->history, node);

  change_log_add(j, node, LK_EVENT_CREATED, node->stat.czxid);
  if (e == NULL)
    return;
  if (j->restoring) {
    e->restored = e->is_excused = true;
    e->key[0] = '\0'; /* its contender may use another node of that name */
    return;
  }
  note_created(j, e);
  sim_checker_report(j, &(sim_fact){.type = SIM_NODE_CREATED, .entry = e});
}

static void on_data_set(const sim_node *node, void *arg)
{
  change_log_add(arg, node, LK_EVENT_CHANGED, node->stat.mzxid);
}

static void on_access_set(const sim_node *node, int64_t zxid, void *arg)
{
  change_log_add(arg, node, LK_EVENT_ENDED, zxid);
}

static void on_node_deleted(const sim_node *node, int64_t zxid, void *arg)
{
  sim_checker *j = arg;

  change_log_add(j, node, LK_EVENT_DELETED, zxid);
  sim_history_delete_node(&j->history, node, zxid);
}

/* In a style that stores the id in the data: if the data are replaced before
 * the create was answered, the contender cannot recognise the node. */
static void note_change(sim_checker *j)
{
  for (sim_entry *e = j->history.existing; e != NULL; e = e->next) {
    const sim_contender *a = NULL;

    if (e->lock_index == SIM_NO_LOCK || e->changed_us != sim_now_us(j))
      continue;
    a = sim_contender_for(j, e);
    if (e->revoked)
      e->ownerless = e->ownerless || a == NULL || a->ct->own.token == 0;
    else
      e->is_excused = e->is_excused || a == NULL || a->ct->own.token == 0;
  }
}

static void on_committed(const sim_commit *commit, const sim_tree *committed,
                         void *arg)
{
  sim_checker *j = arg;

  sim_history_committed(&j->history, commit, committed);
  if (j->world->style->unique == 0)
    note_change(j);
  while (j->history.being_deleted != NULL) {
    sim_entry *e = j->history.being_deleted;

    j->history.being_deleted = e->next;
    e->next = NULL;
    if (j->restoring)
      continue;
    note_deleted(e);
    sim_checker_report(j, &(sim_fact){.type = SIM_NODE_DELETED, .entry = e});
  }
  if (!j->restoring)
    sim_checker_report(j, &(sim_fact){.type = SIM_COMMITTED, .commit = commit});
}

static void on_session_ended(int64_t session, bool expired, void *arg)
{
  sim_checker *j = arg;

  sim_history_end_session(&j->history, session, expired);
  if (j->restoring)
    return;
  sim_checker_report(
      j, &(sim_fact){.type = SIM_SESSION_ENDED,
                     .session = sim_history_session(&j->history, session)});
}

static void on_session_resumed(int64_t session, int32_t timeout_ms, void *arg)
{
  sim_checker *j = arg;

  sim_history_session(&j->history, session)->granted_ms = timeout_ms;
}

sim_ensemble_hooks sim_checker_hooks(sim_checker *j)
{
  return (sim_ensemble_hooks){.committed = on_committed,
                              .created = on_node_created,
                              .deleted = on_node_deleted,
                              .data_set = on_data_set,
                              .access_set = on_access_set,
                              .session_ended = on_session_ended,
                              .session_resumed = on_session_resumed,
                              .arg = j};
}

void sim_checker_operator_ends_all(sim_checker *j)
{
  const sim_tree *committed = sim_ensemble_committed_tree(j->world->ensemble);

  for (size_t i = 0; i < committed->nsessions; i++)
    sim_checker_operator_ends(j, committed->sessions[i].id);
}

void sim_checker_wiped(sim_checker *j)
{
  j->history.wiped = true;
  memset(j->token, 0, sizeof j->token);
  memset(j->turn, 0, sizeof j->turn);
}

void sim_checker_set_restoring(sim_checker *j, bool restores)
{
  j->restoring = restores;
}

void sim_checker_operator_ends(sim_checker *j, int64_t session)
{
  sim_history_session(&j->history, session)->ended_by_operator = true;
}

void sim_checker_foreign_holds(sim_checker *j, const char *path)
{
  sim_entry *e = sim_history_find(&j->history, path);

  if (e != NULL)
    e->foreign_holds = true;
}

/* ---- phases of a run ---------------------------------------------------- */

static void note_pauses(sim_checker *j)
{
  for (size_t i = 0; i < j->world->nprocesses; i++) {
    sim_life *l = &j->lives[i];

    if (l->process == NULL)
      continue;
    if (l->was_paused && !l->process->paused) {
      l->resumed_us = sim_now_us(j);
      l->undisturbed_since_us = sim_now_us(j);
    }
    l->was_paused = l->process->paused;
  }
}

static void note_leader(sim_checker *j)
{
  int leader = sim_ensemble_leader(j->world->ensemble);

  if (leader == j->leader)
    return;
  j->leader = leader;
  j->leader_since_us = sim_now_us(j);
}

/* Evidence depends on the leader's pings. A stopped leader counts until there
 * is another. */
static void note_stopped_leader(sim_checker *j)
{
  if (j->leader >= 0)
    j->last_leader = (unsigned)j->leader;
  if (sim_server_is_stopped(
          sim_ensemble_server(j->world->ensemble, j->last_leader)))
    j->leader_stopped_us = sim_now_us(j);
}

/* By how much a leader's ping may be late: by how much the gap of a session
 * lease exceeds the period of pings. */
static int64_t ping_slack_us(const sim_world *w)
{
  int64_t period = w->config.tick_ms * SIM_MS / 2;

  return sim_has_condition(w, SIM_LIMITS)
             ? 0
             : w->shortest_ms * SIM_MS / 4 - period;
}

/* A write takes four messages between servers. With links this slow no lease
 * can be proven in time. */
static void note_links(sim_checker *j)
{
  int64_t slowest = sim_links_slowest_us(j->world->ensemble);

  if (slowest > j->world->shortest_ms * SIM_MS / 16)
    j->slow_us = sim_now_us(j);
  if (slowest > j->slowest_us + ping_slack_us(j->world))
    j->late_since_us = sim_now_us(j);
  j->slowest_us = slowest;
}

void sim_checker_after_job(sim_checker *j)
{
  note_pauses(j);
  note_leader(j);
  note_stopped_leader(j);
  note_links(j);
  sim_checker_report(j, &(sim_fact){.type = SIM_JOB_DONE});
  if (sim_now_us(j) < j->next_periodic_us)
    return;
  j->next_periodic_us = sim_now_us(j) + sim_T_us(j) / PERIODIC_CHECKS;
  if (j->world->faults_over && j->faults_over_us == 0)
    j->faults_over_us = sim_now_us(j);
  sim_checker_report(j, &(sim_fact){.type = SIM_PERIODIC});
}

static bool is_idle(const sim_handle *h)
{
  return h->lock == NULL || (!h->acquiring && h->count == 0 && !h->releasing &&
                             !h->verifying && h->guarded_writes == 0);
}

static bool is_asking(const sim_life *l)
{
  for (const sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->completions == 0)
      return true;
  }
  return false;
}

bool sim_checker_is_quiescent(const sim_checker *j)
{
  SIM_EACH_HANDLE(j, h)
  {
    if (!is_idle(h))
      return false;
  }
  for (size_t i = 0; i < j->world->nprocesses; i++) {
    const sim_life *l = &j->lives[i];

    if (l->process != NULL && !l->process->freeing_client &&
        (is_asking(l) || !sim_actors_idle(l->process) ||
         sim_lease_unfinished(l->process) > 0))
      return false;
  }
  return true;
}

void sim_checker_when_quiescent(sim_checker *j)
{
  sim_checker_report(j, &(sim_fact){.type = SIM_QUIESCENT});
}

void sim_checker_end(sim_checker *j)
{
  (void)j; /* each process was checked when it ended */
}
