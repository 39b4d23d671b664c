/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/habits.h"

#include "sim/world/menu.h"

#include <string.h>

/* clang-format off */
const sim_habit sim_habits[] = {
  {.name = "usual", .weight = 8, .unique = 40, .permits = true,
   .text = "Curator's names, and a node for each owner"},
  {.name = "kazoo", .weight = 1, .layout = LK_LAYOUT_KAZOO, .unique = 32,
   .permits = true,
   .text = "kazoo's names"},
  {.name = "native", .weight = 2, .layout = LK_LAYOUT_NATIVE,
   .text = "plain names, which do not tell who made them"},
  {.name = "digits", .weight = 1, .layout = LK_LAYOUT_NATIVE, .prefix = "",
   .text = "the same, of a mutex the number alone"},
  {.name = "native-uuid", .weight = 1, .layout = LK_LAYOUT_NATIVE_UUID,
   .unique = SIM_UUID + 1,
   .text = "plain names behind a UUID"},
  {.name = "local", .weight = 2, .unique = 40, .local = true,
   .text = "mutexes of one process behind one node"},
  {.name = "brief", .weight = 1, .unique = 40, .brief = true,
   .permits = true,
   .text = "nobody waits behind many"},
};
/* clang-format on */
const size_t sim_nhabits = sizeof sim_habits / sizeof sim_habits[0];

const sim_habit *sim_habit_find(const char *name)
{
  for (size_t i = 0; i < sim_nhabits; i++) {
    if (strcmp(sim_habits[i].name, name) == 0)
      return &sim_habits[i];
  }
  return NULL;
}

bool sim_habit_fits(const sim_habit *h, const sim_menu *menu)
{
  if (menu->kinds[SIM_SEMAPHORE] == 0 || h == &sim_habits[0])
    return true;
  for (size_t i = 0; i < SIM_NKINDS; i++) {
    if (i != SIM_SEMAPHORE && menu->kinds[i] > 0)
      return false;
  }
  return h->permits;
}

const sim_habit *sim_habit_of(uint64_t seed, const sim_menu *menu)
{
  sim_rng root = {seed};
  sim_rng r = sim_rng_fork(&root, 'h');
  uint32_t sum = 0;

  for (size_t i = 0; i < sim_nhabits; i++)
    sum += sim_habit_fits(&sim_habits[i], menu) ? sim_habits[i].weight : 0;
  uint32_t left = sim_roll(&r, sum);

  for (size_t i = 0;; i++) {
    unsigned weight =
        sim_habit_fits(&sim_habits[i], menu) ? sim_habits[i].weight : 0;

    if (left < weight)
      return &sim_habits[i];
    left -= weight;
  }
}
