/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/properties.h"

#include "sim/actor.h"

/* A process from its first connection to its close. */

/* ---- close --------------------------------------------------------------- */

static void judge_closing(sim_judge *j, const sim_life *l)
{
  for (const sim_handle *h = l->handles; h != NULL; h = h->next) {
    if (h->lock != NULL && !h->freeing && lk_lock_ok(h->lock))
      sim_accuse(j, "%s holds although its client is closed", h->name);
  }
  for (const sim_actor *a = l->process->actors; a != NULL; a = a->next) {
    if (a->sitting.lock != NULL && lk_lock_ok(a->sitting.lock))
      sim_accuse(j, "%s sits although its client is closed", a->name);
  }
}

/* Of a session that was closed nothing is left when that is answered. */
static void judge_closed(sim_judge *j, const sim_process *p)
{
  for (const sim_entry *e = j->ledger.standing; e != NULL; e = e->next) {
    if (e->session != 0 && e->session == p->closed_session)
      sim_accuse(j, "%s stands although %s has closed its session", e->path,
                 p->name);
  }
}

/* Nothing is held once close is called, and no node of the session stands
 * after it. */
void sim_close_ends(sim_judge *j, const sim_fact *f)
{
  if (f->type == SIM_CLOSED) {
    if (f->err == 0 || f->err == LK_ERR_SESSION_EXPIRED)
      judge_closed(j, f->life->process);
    return;
  }
  if (f->type == SIM_GOT) {
    if (f->err == 0 && !f->handle->again && f->handle->process->closing)
      sim_accuse(j, "%s is granted although its client is closed",
                 f->handle->name);
    return;
  }
  for (size_t i = 0; i < j->world->nprocesses; i++) {
    const sim_process *p = j->lives[i].process;

    if (p != NULL && p->closing && sim_process_lives(p))
      judge_closing(j, &j->lives[i]);
  }
}

/* ---- what lk_lock_ok() says ---------------------------------------------- */

static const char *missing(const sim_handle *h)
{
  lk_lock_state state = lk_lock_get_state(h->lock);

  if (state != LK_LOCK_HELD && state != LK_LOCK_UNSURE)
    return "its state";
  if (lk_lock_count(h->lock) == 0)
    return "a count";
  if (lk_lock_token(h->lock) == 0)
    return "a token";
  if (lk_lock_node(h->lock) == NULL)
    return "a node";
  if (lk_lock_deadline(h->lock) <= sim_process_clock(h->process))
    return "a lease";
  return NULL;
}

static void judge_ok(sim_judge *j, const sim_handle *h)
{
  const char *what;

  if (h->lock == NULL || h->freeing || !sim_process_lives(h->process) ||
      !lk_lock_ok(h->lock))
    return;
  what = missing(h);
  if (what != NULL)
    sim_accuse(j, "%s is said to hold without %s", h->name, what);
}

/* lk_lock_ok() implies state, count, token, node and lease. */
void sim_lock_ok(sim_judge *j, const sim_fact *f)
{
  if (f->type == SIM_STATE) {
    for (const sim_handle *h = f->life->handles; h != NULL; h = h->next)
      judge_ok(j, h);
  } else if (f->type == SIM_PATROL) {
    SIM_EACH_HANDLE(j, h)
    judge_ok(j, h);
  } else {
    judge_ok(j, f->handle);
  }
}
