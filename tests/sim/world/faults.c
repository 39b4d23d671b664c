/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/active_fault.h"

#include "sim/world/allocate.h"
#include "sim/world/conditions.h"
#include "sim/world/coverage.h"
#include "sim/world/scenario.h"
#include "sim/world/schedule.h"

#include <stdlib.h>

enum {
  RETRY_US = 100000, /* time until a fault is healed that could not be */
  DEFAULT_GAP_PERMILLE = 300 /* mean time between faults, of T */
};

/* ---- helpers ------------------------------------------------------------ */

int64_t sim_fault_T_us(const sim_faults *f)
{
  return f->world->timeout_ms * SIM_MS;
}

int64_t sim_fault_duration(sim_faults *f)
{
  int64_t t = sim_fault_T_us(f);

  switch (sim_roll(&f->rng, 8)) {
  case 0: return sim_between(&f->rng, t, 2 * t);
  case 1:
  case 2: return sim_between(&f->rng, t / 2, t);
  case 3:
  case 4:
  case 5: return sim_between(&f->rng, t / 8, t / 2);
  default: return sim_between(&f->rng, t / 100, t / 8);
  }
}

unsigned sim_random_process(sim_faults *f)
{
  return sim_roll(&f->rng, (uint32_t)f->world->nprocesses);
}

static bool is_first_in_queue(const sim_faults *f, size_t lock, int64_t session)
{
  const sim_node *dir = sim_tree_find(
      sim_ensemble_committed_tree(f->world->ensemble), f->world->locks[lock]);

  /* the children of a node are sorted, the oldest first */
  return session != 0 && dir != NULL && dir->children != NULL &&
         dir->children->stat.ephemeral_owner == session;
}

unsigned sim_likely_holder(sim_faults *f)
{
  size_t lock = sim_roll(&f->rng, (uint32_t)f->world->nlocks);

  for (unsigned i = 0; i < f->world->nprocesses; i++) {
    const sim_process *p = &f->world->processes[i];
    bool may_be_chosen = !sim_one_in(&f->rng, 4);

    if (may_be_chosen && p->client != NULL &&
        is_first_in_queue(f, lock, lk_client_session(p->client).id))
      return i;
  }
  return sim_random_process(f);
}

unsigned sim_random_server(sim_faults *f)
{
  return sim_roll(&f->rng, f->world->config.servers);
}

/* ---- active faults ------------------------------------------------------ */

static void on_heal(void *arg)
{
  sim_active_fault *x = arg;
  sim_rng scenario_rng = x->faults->rng;

  x->faults->rng = x->rng;
  bool is_over = x->heal(x);

  x->rng = x->faults->rng;
  x->faults->rng = scenario_rng;
  if (!is_over) { /* not possible now */
    sim_schedule_in(&x->faults->world->agenda, &x->job, RETRY_US);
    return;
  }
  sim_unschedule(&x->faults->world->agenda, &x->job);
  lk__list_remove(&x->link);
  free(x);
}

sim_active_fault *sim_start_fault(sim_faults *f,
                                  bool (*heal)(sim_active_fault *x),
                                  int64_t for_us)
{
  sim_active_fault *x = sim_allocate(sizeof *x);

  x->faults = f;
  x->rng = sim_rng_fork(&f->rng, 'h');
  x->heal = heal;
  x->job = (sim_job){.run = on_heal, .arg = x};
  lk__list_init(&x->link);
  lk__list_add(&f->active_faults, &x->link);
  sim_schedule_in(&f->world->agenda, &x->job, for_us);
  return x;
}

/* ---- choice and schedule ------------------------------------------------ */

#define INJECTOR(name, function, text) \
  [SIM_FAULT_##name] = sim_inject_##function,
static bool (*const injectors[SIM_NFAULTS])(sim_faults *f) = {
    SIM_FAULTS(INJECTOR)};

#define NAME(name, function, text) #function,
const char *const sim_fault_names[SIM_NFAULTS] = {SIM_FAULTS(NAME)};

/* Injects a fault and records it. false: it is not possible now. */
static bool inject(sim_faults *f, enum sim_fault kind)
{
  uint64_t draws = f->rng.state;

  if (!injectors[kind](f))
    return false;
  sim_coverage_fault(kind);
  if (f->world->record != NULL)
    sim_schedule_add(f->world->record, f->world->agenda.now_us, kind, draws);
  return true;
}

/* Injects a fault, chosen at random by the weights. false: it is not possible
 * now. */
static bool inject_one(sim_faults *f, const unsigned *weights)
{
  uint32_t sum = 0;
  size_t i = 0;

  for (size_t k = 0; k < SIM_NFAULTS; k++)
    sum += weights[k];
  /* finds the weight at a random point, as if all weights lay in a row */
  for (uint32_t point = sim_roll(&f->rng, sum); point >= weights[i]; i++)
    point -= weights[i];
  return inject(f, (enum sim_fault)i);
}

static void on_scenario_fault(void *arg)
{
  sim_faults *f = arg;
  unsigned permille = f->world->scenario->gap_permille > 0
                          ? f->world->scenario->gap_permille
                          : DEFAULT_GAP_PERMILLE;
  int64_t gap = sim_fault_T_us(f) * permille / 1000;

  if (inject_one(f, f->world->scenario->faults))
    f->world->nfaults++;
  /* In scenario "calm" a fault ends before the next begins, and in "one-silent"
   * long before. */
  if (!f->world->scenario->calm && !f->world->scenario->one_silent)
    gap = sim_between(&f->rng, gap / 10, 2 * gap);
  sim_schedule_in(&f->world->agenda, &f->next, gap);
}

/* Lends the random generator of the condition to the injectors, so that the
 * faults of the scenario are the same with and without the condition. */
static void on_condition_fault(void *arg)
{
  sim_condition_faults *t = arg;
  sim_faults *f = t->faults;
  sim_rng scenario_rng = f->rng;
  int64_t gap = sim_fault_T_us(f) * t->condition->gap_permille / 1000;

  f->rng = t->rng;
  (void)inject_one(f, t->condition->faults);
  gap = sim_between(&f->rng, gap / 10, 2 * gap);
  t->rng = f->rng;
  f->rng = scenario_rng;
  sim_schedule_in(&f->world->agenda, &t->next, gap);
}

/* Injects the listed faults that are due. */
static void on_listed_fault(void *arg)
{
  sim_faults *f = arg;
  sim_world *w = f->world;
  const sim_schedule *s = w->schedule;

  for (; f->next_listed < s->count; f->next_listed++) {
    const sim_listed_fault *x = &s->faults[f->next_listed];

    if (x->at_us > w->agenda.now_us) {
      sim_schedule_at(&w->agenda, &f->next, x->at_us);
      return;
    }
    f->rng.state = x->draws;
    if (inject(f, x->kind))
      w->nfaults++;
  }
}

static void add_condition_faults(sim_faults *f, sim_condition_id id)
{
  sim_condition_faults *t = &f->condition_faults[f->ncondition_faults++];

  *t = (sim_condition_faults){.faults = f,
                              .condition = &sim_conditions[id],
                              .rng =
                                  sim_rng_fork(&f->world->rng, 'f' * 256 + id),
                              .next = {.run = on_condition_fault, .arg = t}};
}

/* ---- setup and end ------------------------------------------------------ */

sim_faults *sim_faults_new(sim_world *w)
{
  sim_faults *f = sim_allocate(sizeof *f);

  f->world = w;
  f->rng = sim_rng_fork(&w->rng, 'f');
  f->next = (sim_job){.run = on_scenario_fault, .arg = f};
  lk__list_init(&f->active_faults);
  sim_network_limit_pieces(w->network, w->scenario->pieces);
  for (unsigned i = 0; i < SIM_NCONDITIONS; i++) {
    if (sim_has_condition(w, (sim_condition_id)i) &&
        sim_conditions[i].gap_permille > 0)
      add_condition_faults(f, (sim_condition_id)i);
  }
  return f;
}

void sim_faults_begin(sim_faults *f)
{
  if (f->world->schedule != NULL && f->world->schedule->is_listed) {
    f->next.run = on_listed_fault;
    on_listed_fault(f);
    return;
  }
  on_scenario_fault(f);
  for (size_t i = 0; i < f->ncondition_faults; i++)
    on_condition_fault(&f->condition_faults[i]);
}

static void cancel_next_faults(sim_faults *f)
{
  sim_unschedule(&f->world->agenda, &f->next);
  for (size_t i = 0; i < f->ncondition_faults; i++)
    sim_unschedule(&f->world->agenda, &f->condition_faults[i].next);
}

void sim_faults_end(sim_faults *f)
{
  f->over = true;
  cancel_next_faults(f);
  for (lk_link *l = f->active_faults.next, *next; l != &f->active_faults;
       l = next) {
    next = l->next;
    on_heal(LK_OWNER(l, sim_active_fault, link));
  }
  sim_network_limit_pieces(f->world->network, SIM_PIECES_OF_ANY_SIZE);
  sim_network_cancel_resets(f->world->network);
}

void sim_faults_free(sim_faults *f)
{
  if (f == NULL)
    return;
  while (!lk__list_empty(&f->active_faults)) {
    sim_active_fault *x =
        LK_OWNER(f->active_faults.next, sim_active_fault, link);

    sim_unschedule(&f->world->agenda, &x->job);
    lk__list_remove(&x->link);
    free(x);
  }
  cancel_next_faults(f);
  free(f);
}
