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

enum {
  PERIODIC_CHECKS = 16, /* in a session timeout */
  NO_LEADER = -1        /* as sim_ensemble_leader() returns it */
};

#define INVARIANT(function, name, facts, text) {name, text},
const sim_invariant sim_invariants[] = {SIM_INVARIANTS(INVARIANT)};
const size_t sim_ninvariants = sizeof sim_invariants / sizeof *sim_invariants;

#define FUNCTION(function, name, facts, text) {facts, sim_##function},
static const struct {
  uint32_t facts;
  void (*function)(sim_checker *checker, const sim_fact *f);
} functions[] = {SIM_INVARIANTS(FUNCTION)};

void sim_report_fact(sim_checker *checker, const sim_fact *f)
{
  bool was_in_checker = checker->world->in_checker;

  sim_milestones_note(f);
  checker->world->in_checker = true;
  for (size_t i = 0; i < checker->ninvariants_of_fact[f->type]; i++) {
    checker->current = checker->invariants_of_fact[f->type][i];
    functions[checker->current].function(checker, f);
  }
  checker->world->in_checker = was_in_checker;
}

static void index_invariants_by_fact(sim_checker *checker)
{
  for (size_t t = 0; t < SIM_NFACTS; t++) {
    checker->ninvariants_of_fact[t] = 0;
    for (size_t i = 0; i < sim_ninvariants; i++) {
      if ((functions[i].facts & SIM_FACT(t)) != 0 && !checker->verdicts[i].off)
        checker->invariants_of_fact[t][checker->ninvariants_of_fact[t]++] =
            (unsigned char)i;
    }
  }
}

void sim_violated(sim_checker *checker, const char *format, ...)
{
  char *what = checker->verdicts[checker->current].what;
  char text[sizeof checker->verdicts->what];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  checker->violations++;
  if (checker->verdicts[checker->current].broken++ == 0)
    memcpy(what, text, sizeof text);
  SIM_TRACE(&checker->world->trace, "checker", "%s: %s",
            sim_invariants[checker->current].name, text);
}

/* ---- setup and end ------------------------------------------------------ */

sim_checker *sim_checker_new(sim_world *w)
{
  sim_checker *checker = sim_allocate(sizeof *checker);

  checker->world = w;
  checker->all_count_descendants =
      sim_versions_all_have(w->config.version, SERVER_COUNT_OF_DESCENDANTS);
  checker->moved_in_results = !sim_versions_all_have(
      w->config.version, SERVER_MOVED_SESSION_CLOSES_ITS_MULTI);
  checker->change_log.events_need_read =
      sim_versions_any_has(w->config.version, SERVER_EVENTS_NEED_READ);
  checker->verdicts = sim_allocate(sim_ninvariants * sizeof *checker->verdicts);
  checker->history.agenda = &w->agenda;
  /* pointers into the world, which chooses these members later */
  checker->history.locks = w->locks;
  checker->history.nlocks = &w->nlocks;
  checker->history.style = &w->style;
  checker->leader = NO_LEADER;
  index_invariants_by_fact(checker);
  return checker;
}

typedef struct sim_chunk {
  struct sim_chunk *next;
} sim_chunk;

void *sim_checker_allocate(sim_checker *checker, size_t size)
{
  sim_chunk *c = sim_allocate(sizeof *c + size);

  c->next = checker->chunks;
  checker->chunks = c;
  return c + 1;
}

static void free_chunks(sim_checker *checker)
{
  while (checker->chunks != NULL) {
    sim_chunk *c = checker->chunks;

    checker->chunks = c->next;
    free(c);
  }
}

static void free_handles(sim_checker *checker)
{
  while (checker->all_handles != NULL) {
    sim_handle *h = checker->all_handles;

    checker->all_handles = h->next_of_all;
    free(h);
  }
}

void sim_checker_free(sim_checker *checker)
{
  sim_contenders_free_all(checker);
  free_handles(checker);
  free_chunks(checker);
  for (size_t i = 0; i < SIM_MOST_PROCESSES; i++)
    sim_life_end(&checker->lives[i]);
  sim_change_log_free(&checker->change_log);
  sim_history_free(&checker->history);
  free(checker->verdicts);
  free(checker);
}

bool sim_checker_disable(sim_checker *checker, const char *invariant)
{
  for (size_t i = 0; i < sim_ninvariants; i++) {
    if (strcmp(sim_invariants[i].name, invariant) == 0) {
      checker->verdicts[i].off = true;
      index_invariants_by_fact(checker);
      return true;
    }
  }
  return false;
}

size_t sim_checker_violations_of(const sim_checker *checker, size_t invariant,
                                 const char **what)
{
  if (what != NULL)
    *what = checker->verdicts[invariant].what;
  return checker->verdicts[invariant].broken;
}

size_t sim_checker_violations(const sim_checker *checker)
{
  return checker->violations;
}

/* ---- committed transactions --------------------------------------------- */

/* The assurance that protects the node. `a`: the contender that created the
 * node; NULL: no contender of a process that runs. */
static lk_assurance assurance_of(const sim_checker *checker,
                                 const sim_contender *a, const sim_entry *e)
{
  if (a != NULL)
    return a->ct->lease->config.assurance;
  if (e->creator_session == NULL)
    return LK_ASSURE_QUORUM; /* the strictest one */
  return checker->world->processes[e->creator_session->process].assurance;
}

static void note_created(sim_checker *checker, sim_entry *e)
{
  const sim_contender *a = sim_contender_for(checker, e);

  e->assurance = assurance_of(checker, a, e);
  if (a == NULL) {
    /* the create was sent by the process that had this session before the
     * present process resumed it */
    e->is_excused = e->creator_session != NULL && e->creator_session->resumed;
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
  /* The handle has lost its place in the queue, so others may be granted before
   * it. A multi-lock gives up members while it waits. An ownerless node may be
   * deleted by any contender of its session. */
  if (h->kind == SIM_MULTILOCK || e->deletion_cause != SIM_DELETED_BY_OWNER ||
      e->ownerless)
    h->displaced = true;
  if (e->deletion_cause != SIM_DELETED_BY_OWNER)
    h->nodes_taken++;
}

static void change_log_add(sim_checker *checker, const sim_node *node,
                           lk_event_type type, int64_t zxid)
{
  if (sim_is_recording_frames(checker->world))
    sim_change_log_add(&checker->change_log, node, type, zxid);
}

static void on_node_created(const sim_node *node, void *arg)
{
  sim_checker *checker = arg;
  sim_entry *e = sim_history_add_node(&checker->history, node);

  change_log_add(checker, node, LK_EVENT_CREATED, node->stat.czxid);
  if (e == NULL)
    return;
  if (checker->restoring) {
    e->restored = e->is_excused = true;
    /* The contender that created the node before the restore may have another
     * node now. So no contender must be found by the key of this one. */
    e->key[0] = '\0';
    return;
  }
  note_created(checker, e);
  sim_report_fact(checker, &(sim_fact){.type = SIM_NODE_CREATED, .entry = e});
}

static void on_data_set(const sim_node *node, void *arg)
{
  change_log_add(arg, node, LK_EVENT_CHANGED, node->stat.mzxid);
}

static void on_access_set(const sim_node *node, int64_t zxid, void *arg)
{
  change_log_add(arg, node, SIM_ACCESS_CHANGED, zxid);
}

static void on_node_deleted(const sim_node *node, int64_t zxid, void *arg)
{
  sim_checker *checker = arg;

  change_log_add(checker, node, LK_EVENT_DELETED, zxid);
  sim_history_delete_node(&checker->history, node, zxid);
}

/* Called for styles that store the contender's id in the data of its node. A
 * change of the data replaces the id. A contender that does not know its node
 * yet has no token, and cannot find the node any more. An operator's change
 * excuses the node. A revocation makes it ownerless: any contender of the
 * session may adopt it. */
static void note_lost_ids(sim_checker *checker)
{
  for (sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->lock_index == SIM_NO_LOCK || e->changed_us != sim_now_us(checker))
      continue;
    const sim_contender *a = sim_contender_for(checker, e);
    bool knows_its_node = a != NULL && a->ct->own.token != 0;

    if (knows_its_node)
      continue;
    if (e->revoked)
      e->ownerless = true;
    else
      e->is_excused = true;
  }
}

static void on_committed(const sim_commit *commit, const sim_tree *committed,
                         void *arg)
{
  sim_checker *checker = arg;

  sim_history_committed(&checker->history, commit, committed);
  if (sim_id_is_in_data(checker->world->style))
    note_lost_ids(checker);
  while (checker->history.being_deleted != NULL) {
    sim_entry *e = checker->history.being_deleted;

    checker->history.being_deleted = e->next;
    e->next = NULL;
    if (checker->restoring)
      continue;
    note_deleted(e);
    sim_report_fact(checker, &(sim_fact){.type = SIM_NODE_DELETED, .entry = e});
  }
  if (!checker->restoring)
    sim_report_fact(checker,
                    &(sim_fact){.type = SIM_COMMITTED, .commit = commit});
}

static void on_session_ended(int64_t session, bool expired, void *arg)
{
  sim_checker *checker = arg;

  sim_history_end_session(&checker->history, session, expired);
  if (checker->restoring)
    return;
  sim_report_fact(checker, &(sim_fact){.type = SIM_SESSION_ENDED,
                                       .session = sim_history_session(
                                           &checker->history, session)});
}

static void on_session_resumed(int64_t session, int32_t timeout_ms, void *arg)
{
  sim_checker *checker = arg;

  sim_history_session(&checker->history, session)->granted_ms = timeout_ms;
}

sim_ensemble_hooks sim_checker_hooks(sim_checker *checker)
{
  return (sim_ensemble_hooks){.committed = on_committed,
                              .created = on_node_created,
                              .deleted = on_node_deleted,
                              .data_set = on_data_set,
                              .access_set = on_access_set,
                              .session_ended = on_session_ended,
                              .session_resumed = on_session_resumed,
                              .arg = checker};
}

void sim_checker_note_all_ended_by_operator(sim_checker *checker)
{
  const sim_tree *committed =
      sim_ensemble_committed_tree(checker->world->ensemble);

  for (size_t i = 0; i < committed->nsessions; i++)
    sim_checker_note_ended_by_operator(checker, committed->sessions[i].id);
}

void sim_checker_note_wiped(sim_checker *checker)
{
  checker->history.wiped = true;
  memset(checker->last_token, 0, sizeof checker->last_token);
}

void sim_checker_begin_restore(sim_checker *checker)
{
  checker->restoring = true;
}

void sim_checker_end_restore(sim_checker *checker)
{
  checker->restoring = false;
}

void sim_checker_note_ended_by_operator(sim_checker *checker, int64_t session)
{
  sim_history_session(&checker->history, session)->ended_by_operator = true;
}

void sim_checker_note_foreign_holder(sim_checker *checker, const char *path)
{
  sim_entry *e = sim_history_find(&checker->history, path);

  if (e != NULL)
    e->foreign_holds = true;
}

/* ---- phases of a run ---------------------------------------------------- */

static void note_pauses(sim_checker *checker)
{
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    sim_life *l = &checker->lives[i];

    if (l->process == NULL)
      continue;
    if (l->was_paused && !l->process->paused) {
      l->resumed_us = sim_now_us(checker);
      l->undisturbed_since_us = sim_now_us(checker);
    }
    l->was_paused = l->process->paused;
    if (sim_network_is_mute(checker->world->network, l->process->index))
      l->undisturbed_since_us = sim_now_us(checker);
  }
}

static void note_leader(sim_checker *checker)
{
  int leader = sim_ensemble_leader(checker->world->ensemble);

  if (leader == checker->leader)
    return;
  checker->leader = leader;
  checker->leader_since_us = sim_now_us(checker);
}

/* Evidence depends on the leader's pings. A stopped leader sends none, so
 * clients get no evidence until the next leader is elected. */
static void note_stopped_leader(sim_checker *checker)
{
  if (checker->leader != NO_LEADER)
    checker->last_leader = (unsigned)checker->leader;
  if (sim_server_is_stopped(
          sim_ensemble_server(checker->world->ensemble, checker->last_leader)))
    checker->leader_last_stopped_us = sim_now_us(checker);
}

/* A server reports to the leader which clients it has heard from, with each of
 * the leader's pings. What it heard before it failed may not be reported. */
static void note_unheard_servers(sim_checker *checker)
{
  const sim_world *w = checker->world;

  for (unsigned i = 0; i < w->nprocesses; i++) {
    sim_life *l = &checker->lives[i];
    int connected_to = sim_network_server_of(w->network, i);

    if (connected_to >= 0)
      l->last_server = (unsigned)connected_to;
    if (l->session != NULL &&
        !sim_server_is_heard(w->ensemble, l->last_server, checker->leader))
      l->session->unheard_us = sim_now_us(checker);
  }
}

/* By how much a leader's ping may be late before a lease runs out. A lease
 * needs evidence once in its gap, which is T/4. The pings come every half tick.
 * With condition "limits" the gap may be as short as that. */
static int64_t ping_slack_us(const sim_world *w)
{
  int64_t ping_interval_us = w->config.tick_ms * SIM_MS / 2;

  return sim_has_condition(w, SIM_LIMITS)
             ? 0
             : w->shortest_ms * SIM_MS / 4 - ping_interval_us;
}

/* Notes two reasons why a lease may run out without a fault of the client. */
static void note_slow_links(sim_checker *checker)
{
  int64_t slowest = sim_links_slowest_us(checker->world->ensemble);

  /* A write takes four messages between servers: together more than T/4. */
  if (slowest > checker->world->shortest_ms * SIM_MS / 16)
    checker->links_last_slow_us = sim_now_us(checker);
  /* The first ping on a link that has become slower is late by the increase. */
  if (slowest > checker->slowest_link_us + ping_slack_us(checker->world))
    checker->link_delay_grew_us = sim_now_us(checker);
  checker->slowest_link_us = slowest;
}

void sim_checker_after_job(sim_checker *checker)
{
  note_pauses(checker);
  note_leader(checker);
  note_stopped_leader(checker);
  note_unheard_servers(checker);
  note_slow_links(checker);
  sim_report_fact(checker, &(sim_fact){.type = SIM_JOB_DONE});
  if (sim_now_us(checker) < checker->next_periodic_us)
    return;
  checker->next_periodic_us =
      sim_now_us(checker) + sim_T_us(checker) / PERIODIC_CHECKS;
  if (checker->world->faults_over && checker->faults_over_us == 0)
    checker->faults_over_us = sim_now_us(checker);
  sim_report_fact(checker, &(sim_fact){.type = SIM_PERIODIC});
}

static bool handle_is_idle(const sim_handle *h)
{
  return h->lock == NULL || (!h->acquiring && h->count == 0 && !h->releasing &&
                             !h->verifying && h->guarded_writes == 0);
}

static bool has_outstanding_request(const sim_life *l)
{
  for (const sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->completions == 0)
      return true;
  }
  return false;
}

bool sim_checker_is_quiescent(const sim_checker *checker)
{
  SIM_EACH_HANDLE(checker, h)
  {
    if (!handle_is_idle(h))
      return false;
  }
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_life *l = &checker->lives[i];

    if (l->process != NULL && !l->process->freeing_client &&
        (has_outstanding_request(l) || !sim_actors_are_idle(l->process) ||
         sim_lease_unfinished(l->process) > 0))
      return false;
  }
  return true;
}

bool sim_checker_excuses_node(const sim_checker *checker, const char *path)
{
  const sim_entry *e = sim_history_find(&checker->history, path);

  return e != NULL && (e->is_excused || e->restored);
}

void sim_checker_when_quiescent(sim_checker *checker)
{
  sim_report_fact(checker, &(sim_fact){.type = SIM_QUIESCENT});
}
