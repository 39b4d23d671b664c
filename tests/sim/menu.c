/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/menu.h"

#include <string.h>

/* clang-format off */
const sim_menu sim_menus[] = {
  {.name = "mutex", .weight = 5,
   .text = "mutexes",
   .kinds = {[SIM_MUTEX] = 1}},
  {.name = "rwlock", .weight = 3,
   .text = "read-write locks, and some mutexes among them",
   .kinds = {[SIM_MUTEX] = 1, [SIM_RWLOCK] = 4}},
};
/* clang-format on */
const size_t sim_nmenus = sizeof sim_menus / sizeof sim_menus[0];

const sim_menu *sim_menu_find(const char *name)
{
  for (size_t i = 0; i < sim_nmenus; i++) {
    if (strcmp(sim_menus[i].name, name) == 0)
      return &sim_menus[i];
  }
  return NULL;
}

const sim_menu *sim_menu_of(uint64_t seed)
{
  sim_rng root = {seed};
  sim_rng r = sim_rng_fork(&root, 'm');
  uint32_t sum = 0;

  for (size_t i = 0; i < sim_nmenus; i++)
    sum += sim_menus[i].weight;
  uint32_t left = sim_roll(&r, sum);

  for (size_t i = 0;; i++) {
    if (left < sim_menus[i].weight)
      return &sim_menus[i];
    left -= sim_menus[i].weight;
  }
}

/* Nothing is drawn where there is nothing to choose. */
static sim_kind some_kind(const sim_menu *m, sim_rng *r)
{
  uint32_t sum = 0;
  size_t last = 0;

  for (size_t i = 0; i < SIM_NKINDS; i++) {
    sum += m->kinds[i];
    last = m->kinds[i] > 0 ? i : last;
  }
  if (sum == m->kinds[last])
    return (sim_kind)last;
  uint32_t left = sim_roll(r, sum);
  size_t i = 0;

  for (; left >= m->kinds[i]; i++)
    left -= m->kinds[i];
  return (sim_kind)i;
}

sim_wish sim_some_wish(const sim_world *w, sim_rng *r, unsigned lock_at)
{
  return (sim_wish){.kind = some_kind(w->menu, r),
                    .nseats = 1,
                    .seats = {{.lock_at = lock_at}}};
}
