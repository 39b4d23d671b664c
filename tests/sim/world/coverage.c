/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/coverage.h"

#include "sim/world/sessions.h"

#include "recipes/queue/contender.h"
#include "recipes/queue/single_node.h"

#include <inttypes.h>
#include <string.h>

static struct {
  uint64_t steps[LK_CONTENDER_NSTATES][LK_CONTENDER_NEVENTS];
  uint64_t state_changes[SIM_SESSION_STATES][SIM_SESSION_STATES];
  uint64_t milestones[SIM_NMILESTONES];
  uint64_t faults[SIM_NFAULTS];
} coverage;

#define STATE(name) [LK_CONTENDER_##name] = #name
#define EVENT(name) [LK_CONTENDER_ON_##name] = #name

static const char *const states[LK_CONTENDER_NSTATES] = {
    STATE(IDLE),
    STATE(PAUSED),
    STATE(LISTING_FIRST),
    STATE(CREATING),
    STATE(CREATING_PARENTS),
    STATE(RECOVERING),
    STATE(READING_POSSIBLE_NODES),
    STATE(LISTING),
    STATE(SETTING_WATCHES),
    STATE(WAITING),
    STATE(READING_PREDECESSORS),
    STATE(READING_OWN),
    STATE(CHECKING_OWN),
    STATE(HELD),
    STATE(UNSURE),
    STATE(CLEANING_UP),
    STATE(FINISHED)};

static const char *const events[LK_CONTENDER_NEVENTS] = {
    EVENT(START),        EVENT(LIST_FIRST),   EVENT(OWN_IN_DOUBT),
    EVENT(OWN_EXISTS),   EVENT(NO_PARENT),    EVENT(POSSIBLE_NODES),
    EVENT(OWN_MISSING),  EVENT(PREDECESSORS), EVENT(WATCHES_SET),
    EVENT(FEW_LEFT),     EVENT(LIST_NEEDED),  EVENT(TOKEN_NEEDED),
    EVENT(CHECK_NEEDED), EVENT(GRANT),        EVENT(PAUSE),
    EVENT(LEASE_ENDING), EVENT(LEASE_PROVEN), EVENT(STOP),
    EVENT(GONE_FOR_GOOD)};

void sim_coverage_step(lk_contender_event ev, lk_contender_state from)
{
  coverage.steps[from][ev]++;
}

void sim_coverage_state_change(lk_state from, lk_state to)
{
  coverage.state_changes[from][to]++;
}

static bool is_step_of(const lk_contender_machine *m, size_t s, size_t e)
{
  lk_contender_state next =
      lk__contender_next_state(m, (lk_contender_state)s, (lk_contender_event)e);

  return next != LK_CONTENDER_NO_STEP && next != LK_CONTENDER_STAY;
}

/* Whether the event leads from the state to another one. */
static bool is_step(size_t s, size_t e)
{
  return is_step_of(&lk__queue_machine, s, e) ||
         is_step_of(&lk__single_node_machine, s, e);
}

static void print_steps(FILE *out)
{
  unsigned possible = 0, covered = 0;

  for (size_t s = 0; s < LK_CONTENDER_NSTATES; s++) {
    for (size_t e = 0; e < LK_CONTENDER_NEVENTS; e++) {
      if (is_step(s, e))
        possible++;
      if (coverage.steps[s][e] > 0)
        covered++;
    }
  }
  fprintf(out, "recipe machine: %u of %u steps\n", covered, possible);
  for (size_t s = 0; s < LK_CONTENDER_NSTATES; s++) {
    for (size_t e = 0; e < LK_CONTENDER_NEVENTS; e++) {
      if (is_step(s, e) && coverage.steps[s][e] == 0)
        fprintf(out, "  never: %s in %s\n", events[e], states[s]);
    }
  }
}

static void print_state_changes(FILE *out)
{
  unsigned possible = 0, covered = 0;

  for (int from = 0; from < SIM_SESSION_STATES; from++) {
    for (int to = 0; to < SIM_SESSION_STATES; to++) {
      if (sim_session_may_change(from, to, true))
        possible++;
      if (coverage.state_changes[from][to] > 0)
        covered++;
    }
  }
  fprintf(out, "sessions: %u of %u changes\n", covered, possible);
  for (int from = 0; from < SIM_SESSION_STATES; from++) {
    for (int to = 0; to < SIM_SESSION_STATES; to++) {
      if (sim_session_may_change(from, to, true) &&
          coverage.state_changes[from][to] == 0)
        fprintf(out, "  never: from %s to %s\n", lk_state_text((lk_state)from),
                lk_state_text((lk_state)to));
    }
  }
}

void sim_coverage_milestone(sim_milestone m)
{
  coverage.milestones[m]++;
}

static void print_milestones(FILE *out, bool with_counts)
{
#define TEXT(name, text) text,
  static const char *const texts[] = {SIM_MILESTONES(TEXT)};
  unsigned covered = 0;

  for (size_t m = 0; m < SIM_NMILESTONES; m++) {
    if (coverage.milestones[m] > 0)
      covered++;
  }
  fprintf(out, "milestones: %u of %u kinds\n", covered,
          (unsigned)SIM_NMILESTONES);
  for (size_t m = 0; m < SIM_NMILESTONES; m++) {
    if (with_counts)
      fprintf(out, "  %10" PRIu64 " %s\n", coverage.milestones[m], texts[m]);
    else if (coverage.milestones[m] == 0)
      fprintf(out, "  never: %s\n", texts[m]);
  }
}

void sim_coverage_fault(enum sim_fault fault)
{
  coverage.faults[fault]++;
}

static void print_faults(FILE *out, bool with_counts)
{
  unsigned covered = 0;

  for (size_t i = 0; i < SIM_NFAULTS; i++) {
    if (coverage.faults[i] > 0)
      covered++;
  }
  fprintf(out, "faults: %u of %u kinds\n", covered, (unsigned)SIM_NFAULTS);
  for (size_t i = 0; i < SIM_NFAULTS; i++) {
    if (with_counts)
      fprintf(out, "  %10" PRIu64 " %s\n", coverage.faults[i],
              sim_fault_names[i]);
    else if (coverage.faults[i] == 0)
      fprintf(out, "  never: %s\n", sim_fault_names[i]);
  }
}

void sim_coverage_print(FILE *out, bool with_counts)
{
  print_steps(out);
  print_milestones(out, with_counts);
  print_state_changes(out);
  print_faults(out, with_counts);
}

size_t sim_coverage_size(void)
{
  return sizeof coverage;
}

void sim_coverage_save(void *out)
{
  memcpy(out, &coverage, sizeof coverage);
}

void sim_coverage_add(const void *saved)
{
  uint64_t *counts =
      (uint64_t *)(void *)&coverage; /* it has no other members */

  for (size_t i = 0; i < sizeof coverage / sizeof *counts; i++) {
    uint64_t count;

    memcpy(&count, (const char *)saved + i * sizeof count, sizeof count);
    counts[i] += count;
  }
}
