/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_ALLOCATE_H
#define LK_SIM_WORLD_ALLOCATE_H

#include <stdlib.h>

/** Zeroed memory; aborts if there is none. */
static inline void *sim_allocate(size_t size)
{
  void *p = calloc(1, size);

  if (p == NULL)
    abort();
  return p;
}

#endif
