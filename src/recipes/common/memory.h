/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_MEMORY_H
#define LK_RECIPES_COMMON_MEMORY_H

#include <latchkey/client.h>

/** Zeroed memory of `size` > 0 bytes, or NULL. */
static inline void *lk__take(const lk_mem *mem, size_t size)
{
  void *p = mem->resize(mem->arg, NULL, size);

  if (p != NULL)
    memset(p, 0, size);
  return p;
}

/** Free `p`; NULL is allowed. */
static inline void lk__give(const lk_mem *mem, void *p)
{
  if (p != NULL)
    (void)mem->resize(mem->arg, p, 0);
}

#endif
