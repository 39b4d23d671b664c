/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/actor.h"

/* Subscriptions. */

static void check_report(sim_checker *checker, const sim_fact *f)
{
  if (f->after_free)
    sim_violated(checker, "a subscription to %s is notified after it was freed",
                 f->subscribed->path);
  else if (f->subscribed->notified &&
           sim_node_state_equals(&f->subscribed->last, f->new_state))
    sim_violated(checker, "%s is reported twice", f->subscribed->path);
}

/* Called when the faults are over. */
static void check_subscriber(sim_checker *checker, const sim_actor *a)
{
  sim_subscribed *n = a->subscribed;
  const sim_life *l = sim_life_of(checker, a->process);
  bool is_stale = n->subscription != NULL && l->state == LK_STATE_CONNECTED &&
                  !sim_subscriber_is_up_to_date(a);

  if (sim_is_overdue(checker, l, is_stale, &n->stale_since_us,
                     sim_grace_us(checker)))
    sim_violated(checker, "%s is not notified of the last change of %s",
                 a->name, n->path);
}

/* After the last change each subscriber has seen the last state. No state is
 * reported twice in a row, or after the subscription was freed. */
void sim_subscribe_converges(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_SUBSCRIPTION_EVENT) {
    check_report(checker, f);
    return;
  }
  bool faults_are_over = checker->faults_over_us != 0;

  if (!faults_are_over)
    return;
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_process *p = &checker->world->processes[i];

    if (!sim_process_runs(p))
      continue;
    for (sim_actor *a = p->actors; a != NULL; a = a->next) {
      if (a->kind == &sim_subscriber)
        check_subscriber(checker, a);
    }
  }
}
