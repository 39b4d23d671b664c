/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/actor.h"

/* Subscriptions. */

static void judge_news(sim_checker *j, const sim_fact *f)
{
  if (f->stray)
    sim_violated(j, "a subscription to %s is notified after it was freed",
                 f->notice->path);
  else if (f->notice->told && sim_same_state(&f->notice->last, f->known))
    sim_violated(j, "%s is reported twice", f->notice->path);
}

/* Nothing changes any more, and all links are there. How long a client takes to
   connect, RECONNECTS judges. */
static void judge_subscriber(sim_checker *j, const sim_actor *a)
{
  sim_notice *n = a->notice;
  const sim_life *l = sim_life_of(j, a->process);
  bool right = n->subscription == NULL || l->state != LK_STATE_CONNECTED ||
               sim_is_up_to_date(a);

  if (right || n->wrong_us == 0 || n->wrong_us < l->smooth_us)
    n->wrong_us = right ? 0 : sim_now_us(j);
  if (n->wrong_us == 0 || sim_now_us(j) - n->wrong_us <= sim_patience_us(j))
    return;
  sim_violated(j, "%s is not notified of the last change of %s", a->name,
               n->path);
  n->wrong_us = 0;
}

/* After the last change all are told of it; nothing is told twice in a row, or
 * to who does not want to know. */
void sim_subscribe_converges(sim_checker *j, const sim_fact *f)
{
  if (f->type == SIM_NEWS) {
    judge_news(j, f);
    return;
  }
  for (size_t i = 0; i < j->world->nprocesses && j->calming_us != 0; i++) {
    const sim_process *p = &j->world->processes[i];

    if (!sim_process_runs(p))
      continue;
    for (sim_actor *a = p->actors; a != NULL; a = a->next) {
      if (a->kind == &sim_subscriber)
        judge_subscriber(j, a);
    }
  }
}
