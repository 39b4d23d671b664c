/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/lock_styles.h"

#include "sim/world/allocate.h"

#include "recipes/locks/lock.h"
#include "recipes/locks/semaphore.h"

#include <stdio.h>
#include <string.h>

/* The checker's records of the library's contenders. Each step of a contender
 * updates its record. */

void sim_contenders_free_all(sim_checker *checker)
{
  while (checker->contenders != NULL) {
    sim_contender *a = checker->contenders;

    checker->contenders = a->next;
    free(a);
  }
}

void sim_contenders_free_of(sim_checker *checker, const sim_life *l)
{
  for (sim_contender **at = &checker->contenders; *at != NULL;) {
    sim_contender *a = *at;

    if (a->life == l) {
      *at = a->next;
      free(a);
    } else {
      at = &a->next;
    }
  }
}

static sim_contender *find_contender(const sim_checker *checker,
                                     const lk_contender *ct)
{
  sim_contender *a = checker->contenders;

  while (a != NULL && a->ct != ct)
    a = a->next;
  return a;
}

/* Whether the contender uses this node although the checker does not find the
 * contender by the node's id. With the id in the data, a revocation replaces
 * the id, and then any contender of the session that finds the node may adopt
 * it. A restored node has no id for the checker. The contender uses it if it
 * has first seen it after the restore. */
static bool has_adopted(const sim_checker *checker, const lk_contender *ct,
                        const sim_entry *e)
{
  bool id_is_replaced = sim_id_is_in_data(checker->world->style) && e->revoked;

  return (id_is_replaced || e->restored) && ct->own.state == LK_OWN_CREATED &&
         ct->own.token == (uint64_t)e->created_zxid &&
         strcmp(ct->own.path, e->path) == 0;
}

sim_contender *sim_contender_for(const sim_checker *checker, const sim_entry *e)
{
  for (sim_contender *a = checker->contenders; a != NULL; a = a->next) {
    if (strcmp(a->ct->own.unique_part, e->key) == 0)
      return a;
  }
  for (sim_contender *a = checker->contenders; a != NULL; a = a->next) {
    if (has_adopted(checker, a->ct, e))
      return a;
  }
  return NULL;
}

static bool is_created_by(const sim_entry *e, const lk_contender *ct)
{
  return strcmp(e->key, ct->own.unique_part) == 0;
}

/* A contender can have two existing nodes. Then this is the older one, unless
 * that one is excused because the contender cannot know of it. */
sim_entry *sim_entry_of(const sim_checker *checker, const lk_contender *ct)
{
  sim_entry *oldest = NULL;

  /* The list begins with the newest node. */
  for (sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if ((is_created_by(e, ct) && !e->is_excused) || has_adopted(checker, ct, e))
      oldest = e;
  }
  if (oldest != NULL)
    return oldest;
  /* No node exists; the last one may be deleted or excused. */
  for (sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (is_created_by(e, ct))
      return e;
  }
  return NULL;
}

/* Whether the contender was created by the current acquire of the handle. */
static bool is_contender_of(const sim_handle *h, const lk_contender *ct)
{
  const lk_acquisition *a = h->lock->acquisition;

  for (size_t i = 0; a != NULL && i < a->count; i++) {
    if (a->parts[i] == ct)
      return true;
  }
  return a != NULL && h->kind == SIM_SEMAPHORE &&
         ((const lk_semaphore_acquisition *)(const void *)a)->queue_node == ct;
}

static sim_contender *add_contender(sim_checker *checker, sim_life *l,
                                    const lk_contender *ct)
{
  sim_contender *a = sim_allocate(sizeof *a);

  a->ct = ct;
  a->life = l;
  for (sim_handle *h = l->handles; h != NULL; h = h->next) {
    if (h->lock != NULL && is_contender_of(h, ct))
      a->handle = h;
  }
  a->acquire_number = a->handle->acquire_number;
  a->next = checker->contenders;
  checker->contenders = a;
  return a;
}

static void forget_released(sim_contender *a, const lk_contender *ct)
{
  size_t kept = 0;

  for (size_t i = 0; i < a->nreleased_before; i++) {
    if (a->released_before[i] != ct)
      a->released_before[kept++] = a->released_before[i];
  }
  a->nreleased_before = kept;
}

static void remove_contender(sim_checker *checker, const lk_contender *ct)
{
  for (sim_contender *a = checker->contenders; a != NULL; a = a->next)
    forget_released(a, ct);
  for (sim_contender **at = &checker->contenders; *at != NULL;
       at = &(*at)->next) {
    sim_contender *a = *at;

    if (a->ct == ct) {
      *at = a->next;
      free(a);
      return;
    }
  }
}

static sim_stop_reason stop_reason(const sim_handle *h)
{
  if (h == NULL)
    return SIM_STOP_FAILED;
  if (h->freeing)
    return SIM_STOP_FREED;
  if (h->cancelling)
    return SIM_STOP_CANCELLED;
  if (h->in_release)
    return SIM_STOP_RELEASED;
  if (h->resetting)
    return SIM_STOP_FREED;
  if (h->timeout_ms == SIM_TRY ||
      (h->timeout_ms > 0 &&
       sim_process_clock(h->process) >= h->acquire_called_ms + h->timeout_ms))
    return SIM_STOP_TIMED_OUT;
  return SIM_STOP_FAILED;
}

/* Whether this step is the result of a list of the queue. */
static bool has_listed(lk_contender_event ev, lk_contender_state from)
{
  bool was_listing =
      from == LK_CONTENDER_CREATING || from == LK_CONTENDER_CREATING_PARENTS ||
      from == LK_CONTENDER_LISTING || from == LK_CONTENDER_RECOVERING;

  return was_listing &&
         (ev == LK_CONTENDER_ON_PREDECESSORS || ev == LK_CONTENDER_ON_GRANT ||
          ev == LK_CONTENDER_ON_CHECK_NEEDED ||
          ev == LK_CONTENDER_ON_TOKEN_NEEDED);
}

static void note_list(sim_contender *a, const lk_client *c)
{
  const lk_reply *reply = lk_client_reply(c);

  a->list_zxid = reply == NULL ? 0 : reply->zxid;
  a->list_connection = lk_client_connection(c);
}

void sim_contender_step(void *arg, const lk_contender *ct,
                        lk_contender_event ev, lk_contender_state from)
{
  sim_life *l = arg;
  sim_checker *checker = l->process->world->checker;
  sim_contender *a = find_contender(checker, ct);

  sim_coverage_step(ev, from);
  if (ct->own.identity == LK_IDENTITY_NONE)
    return; /* a single-node lock has no queue; see invariants_single.c */
  if (strcmp(ct->own.dir, SIM_ELECTION_DIR) == 0)
    return; /* it belongs to no handle; see invariants_election.c */
  if (a == NULL)
    a = add_contender(checker, l, ct);
  if (has_listed(ev, from))
    note_list(a, ct->lease->client);
  if (ev == LK_CONTENDER_ON_STOP)
    a->stop_reason = stop_reason(a->handle);
  sim_report_fact(checker, &(sim_fact){.type = SIM_CONTENDER_STEP,
                                       .life = l,
                                       .contender = a,
                                       .event = ev,
                                       .state_before = from});
  if (ct->state == LK_CONTENDER_FINISHED)
    remove_contender(checker, ct);
}
