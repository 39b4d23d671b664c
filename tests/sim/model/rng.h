/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_RNG_H
#define LK_SIM_MODEL_RNG_H

#include <stdbool.h>
#include <stdint.h>

/**
 * A pseudo-random generator with a seed. Each part of a simulation has its own,
 * so that the draws of one do not change those of another.
 */
typedef struct sim_rng {
  uint64_t state;
} sim_rng;

static inline uint64_t sim_rng_next(sim_rng *r)
{
  uint64_t z = (r->state += 0x9e3779b97f4a7c15U);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/** A new generator, determined by `r` and `salt`; does not advance `r`. */
static inline sim_rng sim_rng_fork(const sim_rng *r, uint64_t salt)
{
  sim_rng child = {r->state ^ (salt * 0xd6e8feb86659fd93U)};

  child.state = sim_rng_next(&child);
  return child;
}

/** A number from 0 to sides - 1. */
static inline uint32_t sim_roll(sim_rng *r, uint32_t sides)
{
  return (uint32_t)(((sim_rng_next(r) >> 32) * sides) >> 32);
}

/** true in one of `cases` cases, at random. */
static inline bool sim_one_in(sim_rng *r, uint32_t cases)
{
  return sim_roll(r, cases) == 0;
}

/** A number from low to high, both included. */
static inline int64_t sim_between(sim_rng *r, int64_t low, int64_t high)
{
  return low + (int64_t)(sim_rng_next(r) % (uint64_t)(high - low + 1));
}

/** true with a probability of `permille` in a thousand. */
static inline bool sim_chance(sim_rng *r, uint32_t permille)
{
  return sim_roll(r, 1000) < permille;
}

#endif
