/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void sim_schedule_add(sim_schedule *s, int64_t at_us, enum sim_fault kind,
                      uint64_t draws)
{
  if (s->count == SIM_MOST_LISTED_FAULTS)
    return;
  s->faults[s->count] = (sim_listed_fault){.at_us = at_us,
                                           .kind = kind,
                                           .draws = draws,
                                           .number = (unsigned)s->count + 1};
  s->count++;
}

bool sim_schedule_parse(sim_schedule *s, const char *text)
{
  int64_t at_us;
  char name[32];
  uint64_t draws;

  s->is_listed = true;
  if (strcmp(text, "none") == 0)
    return true;
  if (sscanf(text, "%" SCNd64 ":%31[a-z_]:%" SCNx64, &at_us, name, &draws) != 3)
    return false;
  for (int kind = 0; kind < SIM_NFAULTS; kind++) {
    if (strcmp(sim_fault_names[kind], name) == 0) {
      sim_schedule_add(s, at_us, (enum sim_fault)kind, draws);
      return true;
    }
  }
  return false;
}

bool sim_schedule_keep(sim_schedule *s, const char *numbers)
{
  bool kept[SIM_MOST_LISTED_FAULTS + 1] = {false};
  char *at = (char *)(uintptr_t)numbers;
  size_t count = 0;

  for (bool more = strcmp(numbers, "none") != 0; more; at++) {
    unsigned long first = strtoul(at, &at, 10), last = first;

    if (*at == '-')
      last = strtoul(at + 1, &at, 10);
    more = *at == ',';
    if (first == 0 || last < first || last > SIM_MOST_LISTED_FAULTS ||
        (!more && *at != '\0'))
      return false;
    for (unsigned long i = first; i <= last; i++)
      kept[i] = true;
  }
  for (size_t i = 0; i < s->count; i++) {
    if (kept[s->faults[i].number])
      s->faults[count++] = s->faults[i];
  }
  s->count = count;
  return true;
}

void sim_schedule_remove(sim_schedule *s, size_t index, size_t count)
{
  s->count -= count;
  memmove(&s->faults[index], &s->faults[index + count],
          (s->count - index) * sizeof *s->faults);
}

void sim_schedule_print_numbers(const sim_schedule *s, FILE *out)
{
  for (size_t i = 0; i < s->count; i++)
    fprintf(out, "%s%u", i == 0 ? "" : ",", s->faults[i].number);
  if (s->count == 0)
    fprintf(out, "none");
}

void sim_schedule_print(const sim_schedule *s, FILE *out)
{
  fprintf(out, "--until %" PRId64 "\n", s->until_us / SIM_MS);
  for (size_t i = 0; i < s->count; i++) {
    const sim_listed_fault *x = &s->faults[i];

    fprintf(out, "--fault %" PRId64 ":%s:%" PRIx64 "\n", x->at_us,
            sim_fault_names[x->kind], x->draws);
  }
  if (s->count == 0)
    fprintf(out, "--fault none\n");
}
