/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/lock_styles.h"

#include "sim/world/lock_mix.h"

#include <string.h>

/* Lengths of the id at the start of a node name. */
enum {
  CURATOR_ID = 3 + SIM_UUID + 1, /* "_c_", a UUID and "-" */
  KAZOO_ID = 32                  /* the digits of a UUID */
};

/* clang-format off */
const sim_lock_style sim_lock_styles[] = {
  {.name = "usual", .weight = 8, .id_len = CURATOR_ID, .semaphores = true,
   .text = "Curator's layout"},
  {.name = "kazoo", .weight = 1, .layout = LK_LAYOUT_KAZOO, .id_len = KAZOO_ID,
   .semaphores = true,
   .text = "kazoo's layout"},
  {.name = "native", .weight = 2, .layout = LK_LAYOUT_NATIVE,
   .text = "names without an id"},
  {.name = "digits", .weight = 1, .layout = LK_LAYOUT_NATIVE, .prefix = "",
   .text = "the same; the name of a mutex node is the number alone"},
  {.name = "native-uuid", .weight = 1, .layout = LK_LAYOUT_NATIVE_UUID,
   .id_len = SIM_UUID + 1,
   .text = "native names behind a UUID"},
  {.name = "brief", .weight = 3, .id_len = CURATOR_ID, .short_queue = true,
   .semaphores = true,
   .text = "the number of predecessors is limited"},
};
/* clang-format on */
const size_t sim_nlock_styles =
    sizeof sim_lock_styles / sizeof sim_lock_styles[0];

const sim_lock_style *sim_lock_style_find(const char *name)
{
  for (size_t i = 0; i < sim_nlock_styles; i++) {
    if (strcmp(sim_lock_styles[i].name, name) == 0)
      return &sim_lock_styles[i];
  }
  return NULL;
}

/* A style other than "usual" does not fit semaphores among other kinds, nor
 * semaphores that it does not support. */
bool sim_lock_style_fits(const sim_lock_style *h, const sim_lock_mix *lock_mix)
{
  bool is_usual = h == &sim_lock_styles[0];

  if (lock_mix->kinds[SIM_SEMAPHORE] == 0 || is_usual)
    return true;
  for (size_t i = 0; i < SIM_NKINDS; i++) {
    if (i != SIM_SEMAPHORE && lock_mix->kinds[i] > 0)
      return false;
  }
  return h->semaphores;
}

static unsigned weight_of(const sim_lock_style *h, const sim_lock_mix *lock_mix)
{
  return sim_lock_style_fits(h, lock_mix) ? h->weight : 0;
}

const sim_lock_style *sim_lock_style_of(uint64_t seed,
                                        const sim_lock_mix *lock_mix)
{
  sim_rng root = {seed};
  sim_rng r = sim_rng_fork(&root, 'h');
  uint32_t sum = 0;

  for (size_t i = 0; i < sim_nlock_styles; i++)
    sum += weight_of(&sim_lock_styles[i], lock_mix);
  uint32_t point = sim_roll(&r, sum); /* in all weights, as in a row */

  for (size_t i = 0;; i++) {
    unsigned weight = weight_of(&sim_lock_styles[i], lock_mix);

    if (point < weight)
      return &sim_lock_styles[i];
    point -= weight;
  }
}
