/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/lock_styles.h"

#include "sim/world/allocate.h"

#include "recipes/lock/lock.h"
#include "recipes/semaphore/semaphore_acquisition.h"

#include <stdio.h>
#include <string.h>

/* The attempts of the recipe machine, as its steps tell of them. */

void sim_contenders_forget(sim_checker *j, const sim_life *l)
{
  for (sim_contender **at = &j->attempts; *at != NULL;) {
    sim_contender *a = *at;

    if (a->life == l || l == NULL) {
      *at = a->next;
      free(a);
    } else {
      at = &a->next;
    }
  }
}

static sim_contender *find_attempt(const sim_checker *j, const lk_contender *ct)
{
  sim_contender *a = j->attempts;

  while (a != NULL && a->ct != ct)
    a = a->next;
  return a;
}

/* Where the data tell whose a node is, and the word that revokes has replaced
 * them, any attempt of its session that finds it takes it for its own. */
static bool has_adopted(const sim_checker *j, const lk_contender *ct,
                        const sim_entry *e)
{
  return j->world->style->unique == 0 && e->revoked &&
         ct->own.state == LK_OWN_CREATED &&
         ct->own.token == (uint64_t)e->made &&
         strcmp(ct->own.path, e->path) == 0;
}

sim_contender *sim_contender_for(const sim_checker *j, const sim_entry *e)
{
  for (sim_contender *a = j->attempts; a != NULL; a = a->next) {
    if (strcmp(a->ct->own.unique_part, e->key) == 0)
      return a;
  }
  for (sim_contender *a = j->attempts; a != NULL; a = a->next) {
    if (has_adopted(j, a->ct, e))
      return a;
  }
  return NULL;
}

static bool is_its(const sim_entry *e, const lk_contender *ct)
{
  return strcmp(e->key, ct->own.unique_part) == 0;
}

/* Who has made two stands where the first is that it can know of. */
sim_entry *sim_entry_of(const sim_checker *j, const lk_contender *ct)
{
  sim_entry *first = NULL;

  for (sim_entry *e = j->history.standing; e != NULL; e = e->next)
    first = (is_its(e, ct) && !e->left) || has_adopted(j, ct, e) ? e : first;
  for (sim_entry *e = j->history.newest; e != NULL && first == NULL;
       e = e->older)
    first = is_its(e, ct) ? e : NULL;
  return first;
}

/* Whether it is a part of what the handle wants. */
static bool is_of(const sim_handle *h, const lk_contender *ct)
{
  const lk_acquisition *a = h->lock->acquisition;

  for (size_t i = 0; a != NULL && i < a->count; i++) {
    if (a->parts[i] == ct)
      return true;
  }
  return a != NULL && h->kind == SIM_SEMAPHORE &&
         ((const lk_semaphore_acquisition *)(const void *)a)->queue_node == ct;
}

static sim_contender *new_attempt(sim_checker *j, sim_life *l,
                                  const lk_contender *ct)
{
  sim_contender *a = sim_allocate(sizeof *a);

  a->ct = ct;
  a->life = l;
  for (sim_handle *h = l->handles; h != NULL; h = h->next) {
    if (h->lock != NULL && is_of(h, ct))
      a->handle = h;
  }
  a->acquire = a->handle == NULL ? 0 : a->handle->acquire;
  a->next = j->attempts;
  j->attempts = a;
  return a;
}

static void forget_before(sim_contender *a, const lk_contender *ct)
{
  size_t left = 0;

  for (size_t i = 0; i < a->nbefore; i++) {
    if (a->before[i] != ct)
      a->before[left++] = a->before[i];
  }
  a->nbefore = left;
}

static void drop_attempt(sim_checker *j, const lk_contender *ct)
{
  for (sim_contender *a = j->attempts; a != NULL; a = a->next)
    forget_before(a, ct);
  for (sim_contender **at = &j->attempts; *at != NULL; at = &(*at)->next) {
    sim_contender *a = *at;

    if (a->ct == ct) {
      *at = a->next;
      free(a);
      return;
    }
  }
}

static sim_leave why(const sim_checker *j, const sim_handle *h)
{
  if (h == NULL)
    return SIM_FAILED;
  if (h->freeing)
    return SIM_FREES;
  if (h->cancelling)
    return SIM_CANCELS;
  if (h->letting)
    return SIM_RELEASES;
  if (h->timeout_ms == 0 ||
      (h->timeout_ms > 0 &&
       sim_process_clock(h->process) >= h->asked_ms + h->timeout_ms))
    return SIM_TIMED_OUT;
  (void)j;
  return SIM_FAILED;
}

/* A list that shows who is ahead was answered: by which state of a server? */
static bool has_listed(lk_contender_event ev, lk_contender_state from)
{
  bool lists = from == LK_CONTENDER_CREATING ||
               from == LK_CONTENDER_CREATING_PARENTS ||
               from == LK_CONTENDER_LISTING || from == LK_CONTENDER_RECOVERING;

  return lists &&
         (ev == LK_CONTENDER_ON_PREDECESSORS || ev == LK_CONTENDER_ON_GRANT ||
          ev == LK_CONTENDER_ON_CHECK_NEEDED ||
          ev == LK_CONTENDER_ON_TOKEN_NEEDED);
}

static void see_list(sim_contender *a, const lk_client *c)
{
  const lk_reply *answer = lk_client_reply(c);

  a->list_zxid = answer == NULL ? 0 : answer->zxid;
  a->list_connection = lk_client_connection(c);
}

void sim_contender_step(void *arg, const lk_contender *ct,
                        lk_contender_event ev, lk_contender_state from)
{
  sim_life *l = arg;
  sim_checker *j = l->process->world->checker;
  sim_contender *a = find_attempt(j, ct);

  sim_coverage_step(ev, from);
  if (ct->own.identity == LK_IDENTITY_NONE)
    return; /* it stands in no queue; see invariants_single.c */
  if (a == NULL)
    a = new_attempt(j, l, ct);
  if (has_listed(ev, from))
    see_list(a, ct->lease->client);
  if (ev == LK_CONTENDER_ON_STOP)
    a->leave = why(j, a->handle);
  sim_checker_tell(j, &(sim_fact){.type = SIM_STEP,
                                  .life = l,
                                  .attempt = a,
                                  .event = ev,
                                  .before = from});
  if (ct->state == LK_CONTENDER_FINISHED)
    drop_attempt(j, ct);
}
