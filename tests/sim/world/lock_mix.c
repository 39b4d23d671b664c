/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/lock_mix.h"

#include "sim/world/lock_styles.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const sim_lock_mix sim_lock_mixes[] = {
  {.name = "mutex", .weight = 5,
   .text = "mutexes",
   .kinds = {[SIM_MUTEX] = 1}},
  {.name = "rwlock", .weight = 3,
   .text = "read-write locks, and some mutexes among them",
   .kinds = {[SIM_MUTEX] = 1, [SIM_RWLOCK] = 4}},
  {.name = "semaphore", .weight = 3,
   .text = "a semaphore, one or several permits at a time",
   .kinds = {[SIM_SEMAPHORE] = 1}},
  {.name = "multilock", .weight = 3,
   .text = "multi-locks, and single locks among them",
   .kinds = {[SIM_MUTEX] = 1, [SIM_RWLOCK] = 1, [SIM_MULTILOCK] = 4}},
  {.name = "mixed", .weight = 2,
   .text = "all kinds",
   .kinds = {[SIM_MUTEX] = 1, [SIM_RWLOCK] = 2, [SIM_SEMAPHORE] = 2,
             [SIM_MULTILOCK] = 2}},
};
/* clang-format on */
const size_t sim_nlock_mixes = sizeof sim_lock_mixes / sizeof sim_lock_mixes[0];

const sim_lock_mix *sim_lock_mix_find(const char *name)
{
  for (size_t i = 0; i < sim_nlock_mixes; i++) {
    if (strcmp(sim_lock_mixes[i].name, name) == 0)
      return &sim_lock_mixes[i];
  }
  return NULL;
}

const sim_lock_mix *sim_lock_mix_of(uint64_t seed)
{
  sim_rng root = {seed};
  sim_rng r = sim_rng_fork(&root, 'm');
  uint32_t sum = 0;

  for (size_t i = 0; i < sim_nlock_mixes; i++)
    sum += sim_lock_mixes[i].weight;
  uint32_t point = sim_roll(&r, sum); /* in all weights, as in a row */

  for (size_t i = 0;; i++) {
    if (point < sim_lock_mixes[i].weight)
      return &sim_lock_mixes[i];
    point -= sim_lock_mixes[i].weight;
  }
}

/* If there is only one kind, nothing is drawn from the generator, so that the
 * later draws are the same as before there were several kinds. */
static sim_kind random_kind(const sim_lock_mix *m, sim_rng *r)
{
  uint32_t sum = 0;
  size_t last = 0;

  for (size_t i = 0; i < SIM_NKINDS; i++) {
    sum += m->kinds[i];
    if (m->kinds[i] > 0)
      last = i;
  }
  bool is_only_kind = sum == m->kinds[last];

  if (is_only_kind)
    return (sim_kind)last;
  uint32_t point = sim_roll(r, sum); /* in all weights, as in a row */
  size_t i = 0;

  for (; point >= m->kinds[i]; i++)
    point -= m->kinds[i];
  return (sim_kind)i;
}

/* ---- directories of locks ----------------------------------------------- */

static void add_directory(sim_world *w, const char *path)
{
  snprintf(w->locks[w->nlocks++], SIM_LOCK_PATH, "%s", path);
}

/* With multi-locks there are several directories, sorted by their bytes as
 * multi-locks sort them. */
static void set_queue_paths(sim_world *w, sim_rng *r)
{
  static const char *const paths[] = {"/b", "/locks/a", "/very/deep/down/c"};
  bool few = w->lock_mix->kinds[SIM_SEMAPHORE] > 0 || sim_one_in(r, 2);
  size_t count = few ? 2 : 3;

  w->nlocks = 0;
  for (size_t i = 0; i < count; i++)
    add_directory(w, paths[i]);
  w->reversed = sim_one_in(r, 4);
}

/* With kazoo's layout the number of permits is fixed. */
static void set_semaphore_paths(sim_world *w, sim_rng *r)
{
  bool is_kazoo = w->style->layout == LK_LAYOUT_KAZOO;

  w->semaphore_index = w->nlocks;
  add_directory(w, is_kazoo ? SIM_SEMAPHORE_PATH "-__lock__"
                            : SIM_SEMAPHORE_PATH "/locks");
  add_directory(w,
                is_kazoo ? SIM_SEMAPHORE_PATH : SIM_SEMAPHORE_PATH "/leases");
  w->permits = (int32_t)sim_between(r, 1, SIM_MOST_PERMITS);
  w->has_limit_node = sim_one_in(r, 2) && !is_kazoo;
}

void sim_lock_mix_set_paths(sim_world *w)
{
  sim_rng r = sim_rng_fork(&w->rng, 'l');

  if (w->lock_mix->kinds[SIM_MULTILOCK] > 0)
    set_queue_paths(w, &r);
  w->nqueues = w->nlocks;
  if (w->lock_mix->kinds[SIM_SEMAPHORE] == 0)
    return;
  if (w->lock_mix->kinds[SIM_MUTEX] == 0) /* the semaphore is the only lock */
    w->nlocks = 0;
  set_semaphore_paths(w, &r);
}

/* ---- requests of locks -------------------------------------------------- */

/* Whether all locks must be read-write locks: if names have no id, mutexes and
 * read-write locks do not exclude each other. */
static bool has_only_rwlocks(const sim_world *w)
{
  return sim_names_have_no_id(w->style) && !sim_has_only_mutexes(w);
}

static sim_place random_place(const sim_world *w, sim_rng *r,
                              unsigned lock_index)
{
  enum { READ_SIDE, WRITE_SIDE, MUTEX, SIDES };
  uint32_t side = sim_roll(r, SIDES);

  if (side == MUTEX && has_only_rwlocks(w))
    side = WRITE_SIDE;
  return (sim_place){.lock_index = lock_index,
                     .shares = side == READ_SIDE,
                     .writes = side == WRITE_SIDE};
}

/* A random set of the queues, mostly with several of them, in the order that
 * all actors use. */
static void request_several(sim_lock_request *x, const sim_world *w, sim_rng *r)
{
  unsigned last = (unsigned)w->nqueues - 1;
  uint32_t all = (1U << w->nqueues) - 1; /* a set with a bit for each queue */
  uint32_t some = sim_roll(r, 1U << w->nqueues);

  if (some == 0)
    some = all;
  x->nplaces = 0;
  for (unsigned i = 0; i <= last; i++) {
    unsigned queue = w->reversed ? last - i : i;

    if ((some >> queue & 1) != 0)
      x->places[x->nplaces++] = random_place(w, r, queue);
  }
  x->backwards = sim_one_in(r, 2);
}

/* If the number of permits is fixed, a request for more is never granted. */
static void request_permits(sim_lock_request *x, const sim_world *w, sim_rng *r)
{
  int32_t largest = w->has_limit_node ? SIM_MOST_PERMITS : w->permits;

  /* a place in the queue, and one among the holders of permits, which do not
   * exclude each other */
  x->nplaces = 2;
  x->places[0] = (sim_place){.lock_index = (unsigned)w->semaphore_index};
  x->places[1] = (sim_place){.lock_index = (unsigned)w->semaphore_index + 1,
                             .shares = true};
  x->take = sim_one_in(r, 2) ? 1 : (int32_t)sim_between(r, 1, largest);
}

sim_lock_request sim_random_lock_request(const sim_world *w, sim_rng *r,
                                         unsigned lock_index)
{
  sim_lock_request x = {.kind = random_kind(w->lock_mix, r),
                        .nplaces = 1,
                        .places = {{.lock_index = lock_index}}};

  if (x.kind == SIM_MUTEX && has_only_rwlocks(w))
    x.kind = SIM_RWLOCK;
  if (x.kind == SIM_MULTILOCK)
    request_several(&x, w, r);
  else if (x.kind == SIM_SEMAPHORE)
    request_permits(&x, w, r);
  return x;
}
